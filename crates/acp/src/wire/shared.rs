//! The encoders that are alike in both versions.

/// Expanded in each version, with its types in scope.
macro_rules! shared {
    () => {
        /// An update without content, with data for programs in its `_meta`.
        fn meta_update(topic: &str, data: Value) -> SessionUpdate {
            let meta = ours(json!({ topic: data }));
            SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().meta(meta))
        }

        fn extra(extra: Extra) -> SessionUpdate {
            let data = extra.data.to_value().map(truncate::frame).unwrap_or_default();
            match extra.call {
                Some(call) => meta_update(extra.topic.as_str(), json!({"toolCallId": &*call, "data": data})),
                None => meta_update(extra.topic.as_str(), data),
            }
        }

        fn subagent(agent: &Subagent) -> SessionUpdate {
            let about = json!({
                "toolCallId": &*agent.call, "taskId": agent.task.as_deref(), "title": agent.title,
                "status": status_name(agent.status),
            });
            meta_update("subagent", about)
        }

        fn notice(notice: Notice) -> SessionUpdate {
            let severity = match notice.severity {
                Severity::Info => NoticeSeverity::Info,
                Severity::Warning => NoticeSeverity::Warning,
                Severity::Error => NoticeSeverity::Error,
            };
            let data = notice_data(&notice);
            let meta = ours(json!({"topic": notice.topic.as_str(), notice.topic.as_str(): data}));
            let wire = WireNotice::new(severity, notice.title).description(notice.description);
            SessionUpdate::Notice(wire.meta(meta))
        }

        fn compaction(compaction: Compaction) -> SessionUpdate {
            let status = match compaction.status {
                Status::Pending | Status::InProgress => CompactionStatus::InProgress,
                Status::Completed => CompactionStatus::Completed,
                Status::Failed => CompactionStatus::Failed,
                Status::Cancelled => CompactionStatus::Cancelled,
            };
            let mut update = CompactionUpdate::new(CompactionId::new(compaction.id), status);
            if let Some(summary) = compaction.summary {
                update = update.summary(vec![ContentBlock::Text(TextContent::new(summary))]);
            }
            if let Some(error) = compaction.error {
                update = update.error(error);
            }
            SessionUpdate::CompactionUpdate(update)
        }

        fn usage(usage: Usage) -> SessionUpdate {
            let mut update = UsageUpdate::new(usage.used, usage.size);
            if let Some(amount) = usage.cost {
                update = update.cost(Cost::new(amount, "USD"));
            }
            let model = usage.model.map(|model| ours(json!({"model": model})));
            SessionUpdate::UsageUpdate(update.meta(model))
        }

        fn title(title: String) -> SessionUpdate {
            SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().title(title))
        }

        fn commands(commands: Vec<Command>) -> SessionUpdate {
            let commands = commands.into_iter().map(command).collect();
            SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands))
        }

        fn plan_entries(entries: Vec<PlanEntry>) -> Vec<WirePlanEntry> {
            let entries = entries.into_iter().map(|entry| {
                let status = match entry.status {
                    PlanStatus::Pending => PlanEntryStatus::Pending,
                    PlanStatus::InProgress => PlanEntryStatus::InProgress,
                    PlanStatus::Completed => PlanEntryStatus::Completed,
                };
                WirePlanEntry::new(entry.content, PlanEntryPriority::Medium, status)
            });
            entries.collect()
        }

        fn block(content: Content) -> ContentBlock {
            match content {
                Content::Text(text) => ContentBlock::Text(TextContent::new(text)),
                Content::Image { media_type, data } => {
                    ContentBlock::Image(ImageContent::new(data, media_type.as_str()))
                }
                Content::Link { uri, name } => ContentBlock::ResourceLink(ResourceLink::new(name, uri)),
            }
        }

        fn locations(locations: Vec<Location>) -> Vec<ToolCallLocation> {
            let locations = locations.into_iter();
            locations
                .map(|location| ToolCallLocation::new(location.path).line(location.line))
                .collect()
        }

        fn kind(kind: Kind) -> ToolKind {
            match kind {
                Kind::Read => ToolKind::Read,
                Kind::Edit => ToolKind::Edit,
                Kind::Search => ToolKind::Search,
                Kind::Execute => ToolKind::Execute,
                Kind::Think => ToolKind::Think,
                Kind::Fetch => ToolKind::Fetch,
                Kind::SwitchMode => ToolKind::SwitchMode,
                Kind::Other => ToolKind::Other,
            }
        }
    };
}
