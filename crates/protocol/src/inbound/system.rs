//! `system`: everything that is neither said nor asked, by `subtype`.

use serde::{Deserialize, Serialize};

use crate::wire_enum;

mod compact;
mod hook;
mod init;
mod model;
mod notice;
mod permission;
mod session;
mod task;
mod ui;

pub use compact::*;
pub use hook::*;
pub use init::*;
pub use model::*;
pub use notice::*;
pub use permission::*;
pub use session::*;
pub use task::*;
pub use ui::*;

wire_enum! {
    /// `system`: events of the session; the `subtype` says which.
    pub enum SystemMessage by "subtype" {
        /// The session's state at the start of a turn.
        "init" => Init(Box<Init>),
        /// What the CLI is busy with; changes of the permission mode.
        "status" => Status(Status),
        /// Earlier messages were replaced by a summary.
        "compact_boundary" => CompactBoundary(CompactBoundary),
        /// A hook command runs.
        "hook_started" => HookStarted(HookStarted),
        /// A hook command says something.
        "hook_progress" => HookProgress(HookProgress),
        /// A hook command has ended.
        "hook_response" => HookResponse(HookResponse),
        /// What the Stop hooks did.
        "stop_hook_summary" => StopHookSummary(StopHookSummary),
        /// Background work, a subagent or a slow command began.
        "task_started" => TaskStarted(TaskStarted),
        /// The state of a task changed.
        "task_updated" => TaskUpdated(TaskUpdated),
        /// A task made progress.
        "task_progress" => TaskProgress(TaskProgress),
        /// A task ended.
        "task_notification" => TaskNotification(TaskNotification),
        /// The set of background tasks.
        "background_tasks_changed" => BackgroundTasksChanged(BackgroundTasksChanged),
        /// What the turn is doing, in a line.
        "task_summary" => TaskSummary(TaskSummary),
        /// States of the to-do list.
        "task_list_statuses" => TaskListStatuses(TaskListStatuses),
        /// All agents were stopped.
        "agents_killed" => AgentsKilled(BareSystemMessage),
        /// An API request failed and is tried again.
        "api_retry" => ApiRetry(ApiRetry),
        /// A failed API request, as the terminal shows it.
        "api_error" => ApiError(ApiError),
        /// A control request of the host takes its time.
        "control_request_progress" => ControlRequestProgress(ControlRequestProgress),
        /// Another model stands in.
        "model_fallback" => ModelFallback(ModelFallback),
        /// The user was asked for another model.
        "model_consent_fallback" => ModelConsentFallback(ModelConsentFallback),
        /// After a refusal another model stands in.
        "model_refusal_fallback" => ModelRefusalFallback(ModelRefusalFallback),
        /// After a refusal no other model stands in.
        "model_refusal_no_fallback" => ModelRefusalNoFallback(ModelRefusalNoFallback),
        /// A tool call was refused without asking.
        "permission_denied" => PermissionDenied(PermissionDenied),
        /// A tool call is being checked.
        "permission_check_status" => PermissionCheckStatus(PermissionCheckStatus),
        /// Commands were allowed after all.
        "permission_retry" => PermissionRetry(PermissionRetry),
        /// Permission requests of an earlier process were settled.
        "inherited_asks_settled" => InheritedAsksSettled(InheritedAsksSettled),
        /// A late permission had no effect.
        "late_allow_not_run" => LateAllowNotRun(LateAllowNotRun),
        /// What an MCP server asked for at an address is done.
        "elicitation_complete" => ElicitationComplete(ElicitationComplete),
        /// Idle, running, or waiting for an answer.
        "session_state_changed" => SessionStateChanged(SessionStateChanged),
        /// The session's name.
        "session_title_changed" => SessionTitleChanged(SessionTitleChanged),
        /// Facts about the session that changed.
        "session_metadata" => SessionMetadata(SessionMetadata),
        /// The disk is full.
        "session_writes_lost" => SessionWritesLost(SessionWritesLost),
        /// The process is about to end.
        "worker_shutting_down" => WorkerShuttingDown(WorkerShuttingDown),
        /// A session store did not take what it was given. Made by SDKs, not by the CLI.
        "mirror_error" => MirrorError(MirrorError),
        /// A session store is behind, or has caught up. Made by Outrigger, not by the CLI.
        "mirror_lag" => MirrorLag(MirrorLag),
        /// The state of a cloud session.
        "cloud_session_delta" => CloudSessionDelta(CloudSessionDelta),
        /// A turn can be handed over.
        "turn_handoff_available" => TurnHandoffAvailable(TurnHandoffAvailable),
        /// A turn gave way to another prompt.
        "turn_preempted" => TurnPreempted(TurnPreempted),
        /// How long a turn took.
        "turn_duration" => TurnDuration(TurnDuration),
        /// What a turn did, in a line.
        "post_turn_summary" => PostTurnSummary(PostTurnSummary),
        /// What happened while nobody looked.
        "away_summary" => AwaySummary(SystemText),
        /// Whether effort is set by turn.
        "per_turn_effort_changed" => PerTurnEffortChanged(PerTurnEffortChanged),
        /// A message of another session was held back.
        "peer_message_hold" => PeerMessageHold(PeerMessageHold),
        /// A schedule fired.
        "scheduled_task_fire" => ScheduledTaskFire(SystemText),
        /// A remark for the user.
        "informational" => Informational(Informational),
        /// A short notice for the user.
        "notification" => Notification(Notification),
        /// What a slash command printed.
        "local_command_output" => LocalCommandOutput(SystemText),
        /// A line of thinking, as the terminal shows it.
        "thinking" => Thinking(SystemText),
        /// How much the model has thought.
        "thinking_tokens" => ThinkingTokens(ThinkingTokens),
        /// The slash commands.
        "commands_changed" => CommandsChanged(CommandsChanged),
        /// How the installation of plugins is going.
        "plugin_install" => PluginInstall(PluginInstall),
        /// Memories were read.
        "memory_recall" => MemoryRecall(MemoryRecall),
        /// Memories were written.
        "memory_saved" => MemorySaved(MemorySaved),
        /// The instruction files are too long.
        "instruction_size_warning" => InstructionSizeWarning(InstructionSizeWarning),
        /// Files were uploaded.
        "files_persisted" => FilesPersisted(FilesPersisted),
        /// Copies of files.
        "file_snapshot" => FileSnapshot(FileSnapshot),
        /// Attached files could not be had.
        "file_attachments_missing" => FileAttachmentsMissing(FileAttachmentsMissing),
        /// A draft of feedback waits.
        "feedback_draft_queued" => FeedbackDraftQueued(FeedbackDraftQueued),
        /// A pull request, or the like, was touched.
        "code_change_published" => CodeChangePublished(CodeChangePublished),
        /// Something was committed, pushed, merged or rebased.
        "vcs_state_changed" => VcsStateChanged(VcsStateChanged),
        /// The shell's working directory.
        "shell_cwd" => ShellCwd(ShellCwd),
        /// What is being developed.
        "dev_intent" => DevIntent(DevIntent),
        /// A mark left by a handed over turn.
        "upgrade_relay_marker" => UpgradeRelayMarker(UpgradeRelayMarker),
        /// What plugins draw has to be drawn again.
        "ui_invalidate" => UiInvalidate(UiInvalidate),
        /// A plugin logs.
        "ui_log" => UiLog(UiLog),
        /// A plugin notifies the user.
        "ui_notify" => UiNotify(UiNotify),
        /// A plugin takes a notification back.
        "ui_notify_cancel" => UiNotifyCancel(UiNotifyCancel),
        /// A plugin shows a short notice.
        "ui_toast" => UiToast(UiToast),
        /// A plugin's line of status.
        "ui_status" => UiStatus(UiStatus),
        /// Where rows of plugins belong.
        "ui_placed" => UiPlaced(UiPlaced),
        /// The panes of plugins.
        "ui_panes" => UiPanes(UiPanes),
        /// A pane scrolls.
        "ui_scroll" => UiScroll(UiScroll),
        /// The focus moves.
        "ui_focus" => UiFocus(UiFocus),
    }
}

/// A system message without fields of its own.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct BareSystemMessage {
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// A system message that is just text.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SystemText {
    /// The text.
    pub content: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}
