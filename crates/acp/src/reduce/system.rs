//! What is neither said nor asked: each kind of system message, to what a person or a program is told of it.

use std::sync::Arc;
use std::time::Instant;

use outrigger::protocol::RawJson;
use outrigger::protocol::inbound::SystemMessage;
use outrigger::protocol::inbound::system::{
    CheckStatus, HookOutcome, Informational, Init, Level, MemoryRecall, NotificationPriority,
    PluginInstallStatus, TaskNotification, TaskOutcome, TaskStarted, TaskUpdated,
};
use serde::Serialize;

use super::Reducer;
use super::calls::Ending;
use super::step::Steps;
use crate::event::{
    Call, CallChange, Chunk, Content, Event, Extra, Kind, Location, Notice, Severity, Status, Topic,
};
use crate::tool;

impl Reducer {
    pub(super) fn system(&mut self, message: SystemMessage, now: Instant, steps: &mut Steps) {
        use SystemMessage as S;
        match message {
            S::Init(init) => self.init(&init, steps),
            S::Status(status) => {
                self.compactions.status(&status, steps);
                if let Some(mode) = &status.permission_mode {
                    self.mode(mode.as_str(), steps);
                }
            }
            S::CompactBoundary(boundary) => {
                if boundary.historical != Some(true) {
                    self.compactions.boundary(&boundary.uuid, steps);
                    if let Some(tokens) = boundary.compact_metadata.post_tokens {
                        self.meter.context(tokens, steps);
                    }
                }
            }

            S::HookStarted(hook) => extra(steps, Topic::HookStarted, None, &hook),
            S::HookProgress(hook) => extra(steps, Topic::HookProgress, None, &hook),
            S::HookResponse(hook) => match hook.outcome {
                HookOutcome::Error => {
                    let said = [&hook.stderr, &hook.stdout, &hook.output];
                    let said = said.into_iter().find(|said| !said.trim().is_empty());
                    let code = hook.exit_code.map(|code| format!(" (exit code {code})"));
                    let title = format!("Hook {} failed{}", hook.hook_name, code.unwrap_or_default());
                    let said = said.cloned();
                    notice(
                        steps,
                        Severity::Warning,
                        title,
                        said,
                        Topic::HookResponse,
                        &hook,
                        false,
                    );
                }
                _ => extra(steps, Topic::HookResponse, None, &hook),
            },
            S::StopHookSummary(hooks) => {
                match hooks.hook_errors.is_empty() && !hooks.prevented_continuation {
                    true => extra(steps, Topic::StopHookSummary, None, &hooks),
                    false => {
                        let said = hooks.stop_reason.iter().chain(&hooks.hook_errors);
                        let said = said.cloned().collect::<Vec<_>>().join("\n");
                        let title = "A stop hook had something to say".to_owned();
                        notice(
                            steps,
                            Severity::Warning,
                            title,
                            Some(said),
                            Topic::StopHookSummary,
                            &hooks,
                            false,
                        );
                    }
                }
            }

            S::TaskStarted(task) => self.task_started(&task, steps),
            S::TaskUpdated(task) => self.task_updated(&task),
            S::TaskProgress(task) => {
                let call = task.tool_use_id.as_deref();
                if let Some(call) = call {
                    self.calls.run(call, &self.place, steps);
                }
                extra(steps, Topic::TaskProgress, call, &task);
            }
            S::TaskNotification(task) => self.task_ended(&task, now, steps),
            S::BackgroundTasksChanged(tasks) => extra(steps, Topic::BackgroundTasks, None, &tasks),
            S::TaskSummary(summary) => extra(steps, Topic::TaskSummary, None, &summary),
            S::TaskListStatuses(list) => self.plan.statuses(&list.statuses, steps),
            S::AgentsKilled(all) => extra(steps, Topic::AgentsKilled, None, &all),

            S::ApiRetry(retry) => {
                let cause = match retry.error_status {
                    Some(status) => format!("The API answered {status} ({})", retry.error),
                    None => "The API did not answer".to_owned(),
                };
                let wait = retry.retry_delay_ms / 1000.0;
                let count = format!("{} of {}", retry.attempt, retry.max_retries);
                let title = format!("{cause}; trying again in {wait:.1} s ({count})");
                notice(
                    steps,
                    Severity::Warning,
                    title,
                    None,
                    Topic::ApiRetry,
                    &retry,
                    false,
                );
            }
            // What the terminal is told beside `api_retry`.
            S::ApiError(error) => extra(steps, Topic::ApiError, None, &error),
            S::ControlRequestProgress(progress) => {
                extra(steps, Topic::ControlRequestProgress, None, &progress)
            }
            S::ModelFallback(to) => {
                let title = to.content.clone();
                notice(
                    steps,
                    Severity::Warning,
                    title,
                    None,
                    Topic::ModelFallback,
                    &to,
                    true,
                );
                steps.event(Event::ConfigChanged);
            }
            S::ModelConsentFallback(to) => {
                let title = to.content.clone();
                notice(
                    steps,
                    Severity::Info,
                    title,
                    None,
                    Topic::ModelConsentFallback,
                    &to,
                    true,
                );
                steps.event(Event::ConfigChanged);
            }
            S::ModelRefusalFallback(to) => {
                let title = to.content.clone();
                let why = to.api_refusal_explanation.clone();
                notice(
                    steps,
                    Severity::Warning,
                    title,
                    why,
                    Topic::ModelRefusalFallback,
                    &to,
                    true,
                );
            }
            S::ModelRefusalNoFallback(no) => {
                let title = no.content.clone();
                let why = no.api_refusal_explanation.clone();
                notice(
                    steps,
                    Severity::Warning,
                    title,
                    why,
                    Topic::ModelRefusalNoFallback,
                    &no,
                    true,
                );
            }

            // The result of the call follows, and says the same.
            S::PermissionDenied(denied) => {
                extra(steps, Topic::PermissionDenied, Some(&denied.tool_use_id), &denied);
            }
            S::PermissionCheckStatus(check) => {
                let is_waiting = check.status == CheckStatus::Checking;
                self.calls.checked(&check.tool_use_id, is_waiting, now);
                extra(
                    steps,
                    Topic::PermissionCheckStatus,
                    Some(&check.tool_use_id),
                    &check,
                );
            }
            S::PermissionRetry(retry) => {
                let title = retry.content.clone();
                notice(
                    steps,
                    Severity::Info,
                    title,
                    None,
                    Topic::PermissionRetry,
                    &retry,
                    false,
                );
            }
            S::InheritedAsksSettled(asks) => extra(steps, Topic::InheritedAsksSettled, None, &asks),
            S::LateAllowNotRun(late) => {
                let title = format!("An approval came too late ({})", late.reason);
                notice(
                    steps,
                    Severity::Warning,
                    title,
                    None,
                    Topic::LateAllowNotRun,
                    &late,
                    true,
                );
            }
            S::ElicitationComplete(done) => extra(steps, Topic::ElicitationComplete, None, &done),

            // The session follows these itself.
            S::SessionStateChanged(_) | S::WorkerShuttingDown(_) => {}
            S::SessionTitleChanged(title) => {
                self.is_named = true;
                self.title(title.title, steps);
            }
            S::SessionMetadata(metadata) => extra(steps, Topic::SessionMetadata, None, &metadata),
            S::SessionWritesLost(lost) => {
                let title = format!("The conversation can't be saved ({})", lost.error_code);
                let what = Some(lost.lost.join("\n")).filter(|lost| !lost.is_empty());
                notice(
                    steps,
                    Severity::Error,
                    title,
                    what,
                    Topic::SessionWritesLost,
                    &lost,
                    true,
                );
            }
            S::MirrorError(error) => {
                let title = "A session store did not take the conversation".to_owned();
                let why = Some(error.error.clone());
                notice(
                    steps,
                    Severity::Warning,
                    title,
                    why,
                    Topic::MirrorError,
                    &error,
                    false,
                );
            }
            S::MirrorLag(lag) => {
                let title = match lag.behind {
                    true => "The session store is behind with the conversation",
                    false => "The session store has caught up",
                };
                let (title, why) = (title.to_owned(), lag.error.clone());
                notice(
                    steps,
                    Severity::Warning,
                    title,
                    why,
                    Topic::MirrorLag,
                    &lag,
                    false,
                );
            }
            S::CloudSessionDelta(delta) => extra(steps, Topic::CloudSession, None, &delta),
            S::TurnHandoffAvailable(handoff) => extra(steps, Topic::TurnHandoffAvailable, None, &handoff),
            S::TurnPreempted(turn) => extra(steps, Topic::TurnPreempted, None, &turn),
            S::TurnDuration(turn) => extra(steps, Topic::TurnDuration, None, &turn),
            S::PostTurnSummary(summary) => extra(steps, Topic::PostTurnSummary, None, &summary),
            S::AwaySummary(summary) => {
                let title = "While you were away".to_owned();
                let text = Some(summary.content.clone());
                notice(
                    steps,
                    Severity::Info,
                    title,
                    text,
                    Topic::AwaySummary,
                    &summary,
                    false,
                );
            }
            S::PerTurnEffortChanged(effort) => extra(steps, Topic::PerTurnEffort, None, &effort),
            S::PeerMessageHold(hold) => extra(steps, Topic::PeerMessageHold, None, &hold),
            S::ScheduledTaskFire(fire) => {
                let title = tool::line(&fire.content);
                notice(
                    steps,
                    Severity::Info,
                    title,
                    None,
                    Topic::ScheduledTaskFire,
                    &fire,
                    true,
                );
            }

            S::Informational(said) => self.informational(&said, steps),
            S::Notification(said) => {
                let severity = match said.priority {
                    NotificationPriority::Immediate => Severity::Warning,
                    _ => Severity::Info,
                };
                let title = tool::line(&said.text);
                notice(steps, severity, title, None, Topic::Notification, &said, false);
            }
            S::LocalCommandOutput(output) => self.local_output(&output.content, steps),
            // The terminal's line about what comes as thinking anyway.
            S::Thinking(_) => {}
            S::ThinkingTokens(tokens) => extra(steps, Topic::ThinkingTokens, None, &tokens),
            S::CommandsChanged(changed) => self.commands.changed(&changed.commands, steps),
            S::PluginInstall(plugin) => match plugin.status {
                PluginInstallStatus::Failed => {
                    let name = plugin.name.as_deref().unwrap_or("A plugin");
                    let title = format!("{name} could not be installed");
                    let why = plugin.error.clone();
                    notice(
                        steps,
                        Severity::Error,
                        title,
                        why,
                        Topic::PluginInstall,
                        &plugin,
                        true,
                    );
                }
                _ => extra(steps, Topic::PluginInstall, None, &plugin),
            },
            S::MemoryRecall(recall) => self.recalled(&recall, steps),
            S::MemorySaved(saved) => {
                let title = format!("Remembered: {}", saved.written_paths.join(", "));
                notice(
                    steps,
                    Severity::Info,
                    title,
                    None,
                    Topic::MemorySaved,
                    &saved,
                    false,
                );
            }
            S::InstructionSizeWarning(size) => {
                let title = format!(
                    "The instruction files are too long: {} characters, of {}",
                    size.total_chars, size.total_limit_chars
                );
                notice(
                    steps,
                    Severity::Warning,
                    title,
                    None,
                    Topic::InstructionSize,
                    &size,
                    false,
                );
            }
            S::FilesPersisted(files) => match files.failed.is_empty() {
                true => extra(steps, Topic::FilesPersisted, None, &files),
                false => {
                    let failed = files.failed.iter();
                    let failed = failed.map(|file| format!("{}: {}", file.filename, file.error));
                    let failed = Some(failed.collect::<Vec<_>>().join("\n"));
                    let title = "Some files could not be kept".to_owned();
                    notice(
                        steps,
                        Severity::Warning,
                        title,
                        failed,
                        Topic::FilesPersisted,
                        &files,
                        false,
                    );
                }
            },
            S::FileSnapshot(_) => {}
            S::FileAttachmentsMissing(missing) => {
                let count = missing.missing.len();
                let title = format!("{count} of {} attached files are missing", missing.sent_count);
                notice(
                    steps,
                    Severity::Warning,
                    title,
                    None,
                    Topic::AttachmentsMissing,
                    &missing,
                    true,
                );
            }
            S::FeedbackDraftQueued(draft) => extra(steps, Topic::FeedbackDraft, None, &draft),
            S::CodeChangePublished(change) => {
                let action = change.action.as_deref().unwrap_or("published");
                let title = format!("{} {}: {action}", change.repo, change.identifier);
                let url = Some(change.url.clone());
                notice(
                    steps,
                    Severity::Info,
                    title,
                    url,
                    Topic::CodeChange,
                    &change,
                    false,
                );
            }
            S::VcsStateChanged(change) => extra(steps, Topic::VcsState, None, &change),
            S::ShellCwd(cwd) => extra(steps, Topic::ShellCwd, None, &cwd),
            S::DevIntent(intent) => extra(steps, Topic::DevIntent, None, &intent),
            S::UpgradeRelayMarker(_) => {}

            S::UiNotify(said) => {
                let text = Some(said.text.clone());
                notice(
                    steps,
                    Severity::Info,
                    said.title.clone(),
                    text,
                    Topic::PluginNotice,
                    &said,
                    false,
                );
            }
            S::UiToast(said) => {
                let title = tool::line(&said.text);
                notice(
                    steps,
                    Severity::Info,
                    title,
                    None,
                    Topic::PluginNotice,
                    &said,
                    false,
                );
            }
            S::UiLog(said) => extra(steps, Topic::PluginLog, None, &said),
            S::UiStatus(said) => extra(steps, Topic::PluginStatus, None, &said),
            // What plugins draw in the CLI's own terminal.
            S::UiInvalidate(_)
            | S::UiNotifyCancel(_)
            | S::UiPlaced(_)
            | S::UiPanes(_)
            | S::UiScroll(_)
            | S::UiFocus(_) => {}

            S::Unknown(raw) => tell_extra(steps, Topic::Unknown, None, raw),
            S::Misfit(misfit) => tell_extra(steps, Topic::Misfit, None, misfit.raw),
            // The union may grow; what is new is for programs until somebody has looked at it.
            other => extra(steps, Topic::Unknown, None, &other),
        }
    }

    fn init(&mut self, init: &Init, steps: &mut Steps) {
        self.meter.model(&init.model);
        self.mode(init.permission_mode.as_str(), steps);
        if self.model.as_deref() != Some(&init.model) {
            // Whoever began the session knows what it began with.
            if self.model.replace(init.model.clone()).is_some() {
                steps.event(Event::ConfigChanged);
            }
        }
        for error in init.plugin_errors.iter().flatten() {
            if self.said.insert(format!("{}: {}", error.plugin, error.message)) {
                let title = format!("Plugin {} could not be loaded", error.plugin);
                let why = Some(error.message.clone());
                notice(
                    steps,
                    Severity::Error,
                    title,
                    why,
                    Topic::PluginError,
                    error,
                    true,
                );
            }
        }
        for warning in init.plugin_warnings.iter().flatten() {
            if self
                .said
                .insert(format!("{}: {}", warning.plugin, warning.message))
            {
                let title = format!("Plugin {}", warning.plugin);
                let why = Some(warning.message.clone());
                notice(
                    steps,
                    Severity::Warning,
                    title,
                    why,
                    Topic::PluginWarning,
                    warning,
                    false,
                );
            }
        }
        for error in init.mcp_server_errors.iter().flatten() {
            if self.said.insert(format!("{}: {}", error.name, error.message)) {
                let title = format!("MCP server {} is not configured well", error.name);
                let why = Some(error.message.clone());
                notice(
                    steps,
                    Severity::Error,
                    title,
                    why,
                    Topic::McpServerError,
                    error,
                    true,
                );
            }
        }
        for server in &init.mcp_servers {
            let is_bad = matches!(server.status.as_str(), "failed" | "needs-auth");
            if is_bad && self.said.insert(format!("{}: {}", server.name, server.status)) {
                let title = match server.status.as_str() {
                    "failed" => format!("MCP server {} could not be reached", server.name),
                    _ => format!("MCP server {} needs you to log in", server.name),
                };
                notice(
                    steps,
                    Severity::Warning,
                    title,
                    None,
                    Topic::McpServer,
                    server,
                    true,
                );
            }
        }
    }

    pub(super) fn mode(&mut self, mode: &str, steps: &mut Steps) {
        if self.mode.as_deref() != Some(mode) {
            self.mode = Some(mode.to_owned());
            steps.event(Event::Mode(mode.to_owned()));
        }
    }

    pub(super) fn title(&mut self, title: String, steps: &mut Steps) {
        if self.title.as_ref() != Some(&title) {
            self.title = Some(title.clone());
            steps.event(Event::Title(title));
        }
    }

    fn task_started(&mut self, task: &TaskStarted, steps: &mut Steps) {
        let Some(call) = &task.tool_use_id else {
            return extra(steps, Topic::TaskStarted, None, task);
        };
        let background = task.is_backgrounded;
        self.calls
            .task(call, &task.task_id, background, &self.place, steps);
        if task.task_type.as_deref() == Some("local_agent") {
            let id: Arc<str> = task.task_id.as_str().into();
            self.subagent(call, Some(id), &task.description, Status::InProgress, steps);
        }
    }

    fn task_updated(&mut self, task: &TaskUpdated) {
        if task.patch.is_backgrounded == Some(true)
            && let Some(call) = self.calls.of_task(&task.task_id)
        {
            self.calls.moves_to_background(&call);
        }
    }

    fn task_ended(&mut self, task: &TaskNotification, now: Instant, steps: &mut Steps) {
        let named = task.tool_use_id.as_deref().map(Arc::from);
        let Some(call) = named.or_else(|| self.calls.of_task(&task.task_id)) else {
            return extra(steps, Topic::TaskEnded, None, task);
        };
        let status = match task.status {
            TaskOutcome::Completed => Status::Completed,
            TaskOutcome::Stopped => Status::Cancelled,
            _ => Status::Failed,
        };
        let code = tool::code_in(&task.summary).or(match task.status {
            TaskOutcome::Completed => Some(0),
            _ => None,
        });
        let handed = task.handback_report.as_ref().map(|report| report.text.clone());
        let is_report = task.summary_is_report == Some(true) || task.status != TaskOutcome::Completed;
        let said = Some(task.summary.clone()).filter(|said| is_report && !said.trim().is_empty());
        let last = self.last_words.remove(&call);
        let ending = Ending {
            status,
            code,
            report: handed.or(said).or(last),
        };
        if self.subagents.contains_key(&call) {
            let id: Arc<str> = task.task_id.as_str().into();
            self.subagent(&call, Some(id), "", status, steps);
        }
        self.calls.ended_task(&call, ending, &self.place, now, steps);
    }

    fn informational(&mut self, said: &Informational, steps: &mut Steps) {
        if said.is_meta == Some(true) {
            return extra(steps, Topic::Informational, said.tool_use_id.as_deref(), said);
        }
        let stops = said.prevent_continuation == Some(true);
        let severity = match said.level {
            Level::Warning => Severity::Warning,
            _ => Severity::Info,
        };
        let (first, rest) = said.content.split_once('\n').unwrap_or((&said.content, ""));
        let rest = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
        let is_important = stops || severity == Severity::Warning;
        notice(
            steps,
            severity,
            first.to_owned(),
            rest,
            Topic::Informational,
            said,
            is_important,
        );
    }

    /// What a slash command printed, unless it was said already.
    pub(super) fn local_output(&mut self, text: &str, steps: &mut Steps) {
        let text = text.trim();
        if text.is_empty() || self.local.as_deref() == Some(text) {
            return;
        }
        self.local = Some(text.to_owned());
        steps.event(Event::Text(Chunk {
            message_id: None,
            parent: None,
            content: Content::Text(text.to_owned()),
        }));
    }

    /// Memories that were read are shown as what they are: files that were read.
    fn recalled(&mut self, recall: &MemoryRecall, steps: &mut Steps) {
        let locations = recall.memories.iter().map(|memory| Location {
            path: self.place.absolute(&memory.path),
            line: None,
        });
        let locations: Vec<_> = locations.collect();
        let title = match locations.as_slice() {
            [one] => format!("Recall {}", self.place.shown(&one.path)),
            many => format!("Recall {} memories", many.len()),
        };
        let id: Arc<str> = recall.uuid.as_str().into();
        let tool: Arc<str> = "memory_recall".into();
        steps.event(Event::Call(Box::new(Call {
            id: id.clone(),
            tool: tool.clone(),
            parent: None,
            title,
            kind: Kind::Read,
            status: Status::InProgress,
            content: Vec::new(),
            locations,
            input: None,
        })));
        let status = Some(Status::Completed);
        steps.change(CallChange {
            id,
            tool,
            status,
            ..CallChange::default()
        });
    }
}

/// For people.
pub(super) fn notice<T: Serialize>(
    steps: &mut Steps,
    severity: Severity,
    title: String,
    description: Option<String>,
    topic: Topic,
    data: &T,
    important: bool,
) {
    steps.event(Event::Notice(Notice {
        severity,
        title: tool::without_keys(&title),
        description: description.map(|text| tool::without_keys(&text)),
        topic,
        data: RawJson::encode(data).ok(),
        important,
    }));
}

/// For programs.
pub(super) fn extra<T: Serialize>(steps: &mut Steps, topic: Topic, call: Option<&str>, data: &T) {
    if let Ok(data) = RawJson::encode(data) {
        tell_extra(steps, topic, call, data);
    }
}

pub(super) fn tell_extra(steps: &mut Steps, topic: Topic, call: Option<&str>, data: RawJson) {
    let call = call.map(Arc::from);
    steps.event(Event::Extra(Box::new(Extra { topic, call, data })));
}
