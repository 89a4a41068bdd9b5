//! System messages: each kind becomes an update, a notice for the user, an extra for programs, or nothing.

use std::sync::Arc;
use std::time::Instant;

use outrigger::protocol::inbound::SystemMessage;
use outrigger::protocol::inbound::system::{
    CheckStatus, HookOutcome, Informational, Init, MemoryRecall, NoticeLevel, NotificationPriority,
    PluginInstallStatus, TaskNotification, TaskOutcome, TaskStarted, TaskUpdated,
};
use serde::Serialize;

use super::Reducer;
use super::calls::CallEnd;
use super::step::Steps;
use crate::event::{
    AgentDetails, CallChange, Chunk, Content, Event, Kind, Location, NewToolCall, Notice, Severity, Status,
    Topic,
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

            S::HookStarted(hook) => steps.extra(Topic::HookStarted, &hook),
            S::HookProgress(hook) => steps.extra(Topic::HookProgress, &hook),
            S::HookResponse(hook) => match hook.outcome {
                HookOutcome::Error => {
                    let output = [&hook.stderr, &hook.stdout, &hook.output];
                    let output = output.into_iter().find(|text| !text.trim().is_empty());
                    let code = hook.exit_code.map(|code| format!(" (exit code {code})"));
                    let title = format!("Hook {} failed{}", hook.hook_name, code.unwrap_or_default());
                    let notice = Notice::warning(Topic::HookResponse, title).description(output.cloned());
                    steps.notice(notice, &hook);
                }
                _ => steps.extra(Topic::HookResponse, &hook),
            },
            S::StopHookSummary(hooks) => {
                match hooks.hook_errors.is_empty() && !hooks.prevented_continuation {
                    true => steps.extra(Topic::StopHookSummary, &hooks),
                    false => {
                        let reasons = hooks.stop_reason.iter().chain(&hooks.hook_errors);
                        let reasons = reasons.cloned().collect::<Vec<_>>().join("\n");
                        let title = "A stop hook had something to say";
                        let notice = Notice::warning(Topic::StopHookSummary, title);
                        steps.notice(notice.description(Some(reasons)), &hooks);
                    }
                }
            }

            S::TaskStarted(task) => self.task_started(&task, steps),
            S::TaskUpdated(task) => self.task_updated(&task),
            S::TaskProgress(task) => {
                let call = task.tool_use_id.as_deref();
                if let Some(call) = call {
                    self.calls.run(call, &self.dir, steps);
                }
                steps.extra_of(call, Topic::TaskProgress, &task);
            }
            S::TaskNotification(task) => self.task_ended(&task, now, steps),
            S::BackgroundTasksChanged(tasks) => steps.extra(Topic::BackgroundTasks, &tasks),
            S::TaskSummary(summary) => steps.extra(Topic::TaskSummary, &summary),
            S::TaskListStatuses(list) => self.plan.statuses(&list.statuses, steps),
            S::AgentsKilled(all) => steps.extra(Topic::AgentsKilled, &all),

            S::ApiRetry(retry) => {
                let cause = match retry.error_status {
                    Some(status) => format!("The API answered {status} ({})", retry.error),
                    None => "The API did not answer".to_owned(),
                };
                let wait = retry.retry_delay_ms / 1000.0;
                let count = format!("{} of {}", retry.attempt, retry.max_retries);
                let title = format!("{cause}; trying again in {wait:.1} s ({count})");
                steps.notice(Notice::warning(Topic::ApiRetry, title), &retry);
            }
            // The CLI writes it for its terminal, beside `api_retry`.
            S::ApiError(error) => steps.extra(Topic::ApiError, &error),
            S::ControlRequestProgress(progress) => steps.extra(Topic::ControlRequestProgress, &progress),
            S::ModelFallback(to) => {
                steps.notice(
                    Notice::warning(Topic::ModelFallback, &to.content).important(),
                    &to,
                );
                steps.event(Event::ConfigChanged);
            }
            S::ModelConsentFallback(to) => {
                let notice = Notice::info(Topic::ModelConsentFallback, &to.content);
                steps.notice(notice.important(), &to);
                steps.event(Event::ConfigChanged);
            }
            S::ModelRefusalFallback(to) => {
                let notice = Notice::warning(Topic::ModelRefusalFallback, &to.content);
                let notice = notice.description(to.api_refusal_explanation.clone());
                steps.notice(notice.important(), &to);
            }
            S::ModelRefusalNoFallback(no) => {
                let notice = Notice::warning(Topic::ModelRefusalNoFallback, &no.content);
                let notice = notice.description(no.api_refusal_explanation.clone());
                steps.notice(notice.important(), &no);
            }

            // The result of the call follows, with the same text.
            S::PermissionDenied(denied) => {
                steps.extra_of(Some(&denied.tool_use_id), Topic::PermissionDenied, &denied);
            }
            S::PermissionCheckStatus(check) => {
                let is_waiting = check.status == CheckStatus::Checking;
                self.calls.checked(&check.tool_use_id, is_waiting, now);
                steps.extra_of(Some(&check.tool_use_id), Topic::PermissionCheckStatus, &check);
            }
            S::PermissionRetry(retry) => {
                steps.notice(Notice::info(Topic::PermissionRetry, &retry.content), &retry);
            }
            S::InheritedAsksSettled(asks) => steps.extra(Topic::InheritedAsksSettled, &asks),
            S::LateAllowNotRun(late) => {
                let title = format!("An approval came too late ({})", late.reason);
                steps.notice(Notice::warning(Topic::LateAllowNotRun, title).important(), &late);
            }
            S::ElicitationComplete(done) => steps.extra(Topic::ElicitationComplete, &done),

            // The session's task handles these itself.
            S::SessionStateChanged(_) | S::WorkerShuttingDown(_) => {}
            S::SessionTitleChanged(title) => {
                self.is_named = true;
                self.title(title.title, steps);
            }
            S::SessionMetadata(metadata) => steps.extra(Topic::SessionMetadata, &metadata),
            S::SessionWritesLost(lost) => {
                let title = format!("The conversation can't be saved ({})", lost.error_code);
                let paths = Some(lost.lost.join("\n")).filter(|paths| !paths.is_empty());
                let notice = Notice::error(Topic::SessionWritesLost, title).description(paths);
                steps.notice(notice.important(), &lost);
            }
            S::MirrorError(error) => {
                let notice = Notice::warning(
                    Topic::MirrorError,
                    "A session store did not take the conversation",
                );
                steps.notice(notice.description(Some(error.error.clone())), &error);
            }
            S::MirrorLag(lag) => {
                let title = match lag.behind {
                    true => "The session store is behind with the conversation",
                    false => "The session store has caught up",
                };
                let notice = Notice::warning(Topic::MirrorLag, title).description(lag.error.clone());
                steps.notice(notice, &lag);
            }
            S::CloudSessionDelta(delta) => steps.extra(Topic::CloudSession, &delta),
            S::TurnHandoffAvailable(handoff) => steps.extra(Topic::TurnHandoffAvailable, &handoff),
            S::TurnPreempted(turn) => steps.extra(Topic::TurnPreempted, &turn),
            S::TurnDuration(turn) => steps.extra(Topic::TurnDuration, &turn),
            S::PostTurnSummary(summary) => steps.extra(Topic::PostTurnSummary, &summary),
            S::AwaySummary(summary) => {
                let notice = Notice::info(Topic::AwaySummary, "While you were away");
                steps.notice(notice.description(Some(summary.content.clone())), &summary);
            }
            S::PerTurnEffortChanged(effort) => steps.extra(Topic::PerTurnEffort, &effort),
            S::PeerMessageHold(hold) => steps.extra(Topic::PeerMessageHold, &hold),
            S::ScheduledTaskFire(fire) => {
                let notice = Notice::info(Topic::ScheduledTaskFire, tool::line(&fire.content));
                steps.notice(notice.important(), &fire);
            }

            S::Informational(message) => informational(&message, steps),
            S::Notification(notification) => {
                let severity = match notification.priority {
                    NotificationPriority::Immediate => Severity::Warning,
                    _ => Severity::Info,
                };
                let title = tool::line(&notification.text);
                steps.notice(Notice::new(severity, Topic::Notification, title), &notification);
            }
            S::LocalCommandOutput(output) => self.local_output(&output.content, steps),
            // The same comes as thinking.
            S::Thinking(_) => {}
            S::ThinkingTokens(tokens) => steps.extra(Topic::ThinkingTokens, &tokens),
            S::CommandsChanged(changed) => self.commands.changed(&changed.commands, steps),
            S::PluginInstall(plugin) => match plugin.status {
                PluginInstallStatus::Failed => {
                    let name = plugin.name.as_deref().unwrap_or("A plugin");
                    let title = format!("{name} could not be installed");
                    let notice = Notice::error(Topic::PluginInstall, title);
                    steps.notice(notice.description(plugin.error.clone()).important(), &plugin);
                }
                _ => steps.extra(Topic::PluginInstall, &plugin),
            },
            S::MemoryRecall(recall) => self.recalled(&recall, steps),
            S::MemorySaved(saved) => {
                let title = format!("Remembered: {}", saved.written_paths.join(", "));
                steps.notice(Notice::info(Topic::MemorySaved, title), &saved);
            }
            S::InstructionSizeWarning(size) => {
                let title = format!(
                    "The instruction files are too long: {} characters, of {}",
                    size.total_chars, size.total_limit_chars
                );
                steps.notice(Notice::warning(Topic::InstructionSize, title), &size);
            }
            S::FilesPersisted(files) => match files.failed.is_empty() {
                true => steps.extra(Topic::FilesPersisted, &files),
                false => {
                    let failed = files.failed.iter();
                    let failed = failed.map(|file| format!("{}: {}", file.filename, file.error));
                    let failed = failed.collect::<Vec<_>>().join("\n");
                    let notice = Notice::warning(Topic::FilesPersisted, "Some files could not be kept");
                    steps.notice(notice.description(Some(failed)), &files);
                }
            },
            S::FileSnapshot(_) => {}
            S::FileAttachmentsMissing(missing) => {
                let count = missing.missing.len();
                let title = format!("{count} of {} attached files are missing", missing.sent_count);
                steps.notice(
                    Notice::warning(Topic::AttachmentsMissing, title).important(),
                    &missing,
                );
            }
            S::FeedbackDraftQueued(draft) => steps.extra(Topic::FeedbackDraft, &draft),
            S::CodeChangePublished(change) => {
                let action = change.action.as_deref().unwrap_or("published");
                let title = format!("{} {}: {action}", change.repo, change.identifier);
                let notice = Notice::info(Topic::CodeChange, title).description(Some(change.url.clone()));
                steps.notice(notice, &change);
            }
            S::VcsStateChanged(change) => steps.extra(Topic::VcsState, &change),
            S::ShellCwd(cwd) => steps.extra(Topic::ShellCwd, &cwd),
            S::DevIntent(intent) => steps.extra(Topic::DevIntent, &intent),
            S::UpgradeRelayMarker(_) => {}

            S::UiNotify(plugin) => {
                let notice = Notice::info(Topic::PluginNotice, &plugin.title);
                steps.notice(notice.description(Some(plugin.text.clone())), &plugin);
            }
            S::UiToast(plugin) => {
                let title = tool::line(&plugin.text);
                steps.notice(Notice::info(Topic::PluginNotice, title), &plugin);
            }
            S::UiLog(plugin) => steps.extra(Topic::PluginLog, &plugin),
            S::UiStatus(plugin) => steps.extra(Topic::PluginStatus, &plugin),
            // Plugins draw these in the CLI's own terminal.
            S::UiInvalidate(_)
            | S::UiNotifyCancel(_)
            | S::UiPlaced(_)
            | S::UiPanes(_)
            | S::UiScroll(_)
            | S::UiFocus(_) => {}

            S::Unknown(raw) => steps.raw_extra(Topic::Unknown, raw),
            S::Misfit(misfit) => steps.raw_extra(Topic::Misfit, misfit.raw),
            // The union may grow: a message without an arm here goes to programs only.
            other => steps.extra(Topic::Unknown, &other),
        }
    }

    fn init(&mut self, init: &Init, steps: &mut Steps) {
        self.meter.model(&init.model);
        self.mode(init.permission_mode.as_str(), steps);
        if self.model.as_deref() != Some(&init.model) {
            // The reply that opened the session named its first model.
            if self.model.replace(init.model.clone()).is_some() {
                steps.event(Event::ConfigChanged);
            }
        }
        for error in init.plugin_errors.iter().flatten() {
            let title = format!("Plugin {} could not be loaded", error.plugin);
            let notice = Notice::error(Topic::PluginError, title).important();
            self.notice_once(&error.plugin, &error.message, notice, error, steps);
        }
        for warning in init.plugin_warnings.iter().flatten() {
            let notice = Notice::warning(Topic::PluginWarning, format!("Plugin {}", warning.plugin));
            self.notice_once(&warning.plugin, &warning.message, notice, warning, steps);
        }
        for error in init.mcp_server_errors.iter().flatten() {
            let title = format!("MCP server {} is not configured well", error.name);
            let notice = Notice::error(Topic::McpServerError, title).important();
            self.notice_once(&error.name, &error.message, notice, error, steps);
        }
        for server in &init.mcp_servers {
            let status = server.status.as_str();
            let problem = match status {
                "failed" => "could not be reached",
                "needs-auth" => "needs you to log in",
                _ => continue,
            };
            if self.notices.insert(format!("{}: {status}", server.name)) {
                let title = format!("MCP server {} {problem}", server.name);
                steps.notice(Notice::warning(Topic::McpServer, title).important(), server);
            }
        }
    }

    /// A notice with this description, unless the session had it already: each process repeats its problems in `init`.
    fn notice_once<T: Serialize>(
        &mut self,
        name: &str,
        message: &str,
        notice: Notice,
        data: &T,
        steps: &mut Steps,
    ) {
        if self.notices.insert(format!("{name}: {message}")) {
            steps.notice(notice.description(Some(message.to_owned())), data);
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
            return steps.extra(Topic::TaskStarted, task);
        };
        let background = task.is_backgrounded;
        self.calls.task(call, &task.task_id, background, &self.dir, steps);
        if task.task_type.as_deref() == Some("local_agent") {
            let id: Arc<str> = task.task_id.as_str().into();
            let more = AgentDetails {
                kind: task.subagent_type.clone(),
                prompt: task.prompt.clone(),
                failure: None,
            };
            self.subagent(call, Some(id), &task.description, Status::InProgress, more, steps);
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
            return steps.extra(Topic::TaskEnded, task);
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
        let ending = CallEnd {
            status,
            code,
            report: handed.or(said).or(last),
        };
        if self.subagents.contains_key(&call) {
            let id: Arc<str> = task.task_id.as_str().into();
            let failure = Some(task.summary.clone()).filter(|_| status == Status::Failed);
            let more = AgentDetails {
                failure,
                ..AgentDetails::default()
            };
            // Its calls can't go on without it, and its end follows theirs.
            self.calls.give_up_below(&call, Status::Cancelled, steps);
            self.subagent(&call, Some(id), "", status, more, steps);
        }
        self.calls.ended_task(&call, ending, &self.dir, now, steps);
    }

    /// The output of a slash command, unless it was reported already.
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

    /// Shows memories as what they are: files that were read.
    fn recalled(&mut self, recall: &MemoryRecall, steps: &mut Steps) {
        let locations = recall.memories.iter().map(|memory| Location {
            path: self.dir.absolute(&memory.path),
            line: None,
        });
        let locations: Vec<_> = locations.collect();
        let title = match locations.as_slice() {
            [one] => format!("Recall {}", self.dir.shown(&one.path)),
            many => format!("Recall {} memories", many.len()),
        };
        let id: Arc<str> = recall.uuid.as_str().into();
        let tool: Arc<str> = "memory_recall".into();
        steps.event(Event::Call(Box::new(NewToolCall {
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

fn informational(message: &Informational, steps: &mut Steps) {
    if message.is_meta == Some(true) {
        return steps.extra_of(message.tool_use_id.as_deref(), Topic::Informational, message);
    }
    let severity = match message.level {
        NoticeLevel::Warning => Severity::Warning,
        _ => Severity::Info,
    };
    let (first, rest) = message.content.split_once('\n').unwrap_or((&message.content, ""));
    let rest = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
    let mut notice = Notice::new(severity, Topic::Informational, first).description(rest);
    notice.important = message.prevent_continuation == Some(true) || severity == Severity::Warning;
    steps.notice(notice, message);
}
