//! Remarks, memories, plugins, files, version control.

use serde::{Deserialize, Serialize};

use crate::RawJson;
use crate::open_enum;

/// `informational`: a remark for the user.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Informational {
    /// The text.
    pub content: String,
    /// How important the text is.
    pub level: NoticeLevel,
    /// The tool call concerned.
    pub tool_use_id: Option<String>,
    /// True if this ended the turn.
    pub prevent_continuation: Option<bool>,
    /// The subject of the text, such as `hook_callback_failed`.
    pub tag: Option<String>,
    /// What became of a prompt that hooks looked at.
    pub prompt_submit_outcome: Option<PromptSubmitOutcome>,
    /// Another model is used than asked for.
    pub model_restriction: Option<ModelRestriction>,
    /// A hook did not decide.
    pub hook_no_verdict: Option<HookNoVerdict>,
    /// Files that were saved.
    pub saved_files: Option<Vec<SavedFile>>,
    /// Where the files come from.
    pub saved_from: Option<SavedFrom>,
    /// Whether the message is not meant to be shown.
    #[serde(rename = "isMeta")]
    pub is_meta: Option<bool>,
    /// When, as ISO 8601.
    pub timestamp: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// How important a remark is.
    pub enum NoticeLevel {
        /// Information: no action needed.
        Info = "info",
        /// A notice that the user should see.
        Notice = "notice",
        /// A suggestion.
        Suggestion = "suggestion",
        /// A warning.
        Warning = "warning",
    }
}

/// What became of a prompt that hooks looked at.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PromptSubmitOutcome {
    /// The outcome.
    pub kind: Option<PromptOutcomeKind>,
    /// Why there is no verdict, such as `hook_timed_out`.
    pub no_verdict_kind: Option<String>,
    /// Whether the prompt stays in the conversation.
    pub prompt_kept: bool,
    /// The reason, for people.
    pub reason: Option<String>,
}

open_enum! {
    /// What hooks did to a prompt.
    pub enum PromptOutcomeKind {
        /// A hook refused the prompt.
        BlockedByHook = "blocked_by_hook",
        /// A hook ended the turn.
        StoppedByHook = "stopped_by_hook",
        /// A hook dropped the prompt.
        DroppedByHook = "dropped_by_hook",
        /// The prompt was not passed on.
        NotPassedOn = "not_passed_on",
        /// A hook did not decide.
        NoVerdict = "no_verdict",
    }
}

/// Another model is used than asked for.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ModelRestriction {
    /// The model asked for.
    pub requested_model: String,
    /// The model used.
    pub effective_model: String,
    /// When: `start`, `switch` or `resume`.
    pub at: Option<String>,
}

/// A hook did not decide.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct HookNoVerdict {
    /// The event.
    pub hook_event: String,
    /// The call.
    pub tool_use_id: String,
    /// Whether the hook took too long.
    pub timed_out: bool,
    /// The plugin that the hook comes from.
    pub plugin_id: Option<String>,
    /// That plugin's directory.
    pub plugin_root: Option<String>,
}

/// A file that was saved.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SavedFile {
    /// The line that names the file.
    pub line: f64,
    /// The file's path.
    pub path: String,
    /// The path as shown.
    pub shown: String,
}

/// Where saved files are from.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SavedFrom {
    /// How many there are.
    pub files: f64,
    /// The file.
    pub file: Option<String>,
    /// The program.
    pub app: Option<String>,
}

/// `notification`: a short notice for the user.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Notification {
    /// Tells notices apart; a new one replaces one with the same key.
    pub key: String,
    /// The text.
    pub text: String,
    /// How urgent the notification is.
    pub priority: NotificationPriority,
    /// A colour by name.
    pub color: Option<String>,
    /// How long to show the notification, in milliseconds.
    pub timeout_ms: Option<f64>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// How urgent a notice is.
    pub enum NotificationPriority {
        /// The notification can wait.
        Low = "low",
        /// Somewhat.
        Medium = "medium",
        /// Quite.
        High = "high",
        /// At once.
        Immediate = "immediate",
    }
}

/// `thinking_tokens`: how much the model has thought. Comes with or without partial messages.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ThinkingTokens {
    /// Tokens so far, about.
    pub estimated_tokens: u64,
    /// Tokens since the last such line.
    pub estimated_tokens_delta: u64,
    /// The prompt.
    pub user_message_uuid: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `commands_changed`: all slash commands there are.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CommandsChanged {
    /// The commands.
    #[serde(default)]
    pub commands: Vec<SlashCommand>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// A slash command.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SlashCommand {
    /// The command's name without the slash.
    pub name: String,
    /// What the command does.
    pub description: String,
    /// What the arguments look like; may be empty.
    pub argument_hint: String,
    /// The command's other names.
    pub aliases: Option<Vec<String>>,
    /// True if the command is the CLI's own.
    pub builtin: Option<bool>,
    /// The plugin that the command comes from.
    pub plugin: Option<String>,
}

/// `plugin_install`: how the installation of plugins is going.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PluginInstall {
    /// The state of the installation.
    pub status: PluginInstallStatus,
    /// The plugin.
    pub name: Option<String>,
    /// Why the installation failed.
    pub error: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// Where the installation of plugins is.
    pub enum PluginInstallStatus {
        /// The installation has begun.
        Started = "started",
        /// One plugin is installed.
        Installed = "installed",
        /// One plugin could not be installed.
        Failed = "failed",
        /// The installation is over.
        Completed = "completed",
    }
}

/// `memory_recall`: memories were read.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MemoryRecall {
    /// How memories were recalled.
    pub mode: MemoryRecallMode,
    /// The memories.
    #[serde(default)]
    pub memories: Vec<Memory>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// How memories were read.
    pub enum MemoryRecallMode {
        /// Files were picked.
        Select = "select",
        /// The model wrote a text from the memories.
        Synthesize = "synthesize",
    }
}

/// A memory.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Memory {
    /// The file of the memory.
    pub path: String,
    /// Whose memory this is.
    pub scope: MemoryScope,
    /// The text of the memory.
    pub content: Option<String>,
}

open_enum! {
    /// Whose a memory is.
    pub enum MemoryScope {
        /// A memory of the user.
        Personal = "personal",
        /// The team's.
        Team = "team",
        /// The organisation's.
        Organization = "organization",
    }
}

/// `memory_saved`: memories were written.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MemorySaved {
    /// The files.
    #[serde(default)]
    pub written_paths: Vec<String>,
    /// How many are the team's.
    pub team_count: Option<u64>,
    /// What was done, as a word.
    pub verb: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `instruction_size_warning`: the instruction files are too long.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct InstructionSizeWarning {
    /// The length of the instructions, in characters.
    pub total_chars: u64,
    /// The most characters that all instructions should have.
    pub total_limit_chars: u64,
    /// How many there are.
    pub file_count: u64,
    /// Length of the longest.
    pub largest_chars: Option<u64>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `files_persisted`: files were uploaded.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FilesPersisted {
    /// Those that were.
    #[serde(default)]
    pub files: Vec<PersistedFile>,
    /// Those that were not.
    #[serde(default)]
    pub failed: Vec<FailedFile>,
    /// When, as ISO 8601.
    pub processed_at: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// A file that was uploaded.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PersistedFile {
    /// The file's name.
    pub filename: String,
    /// The file's id.
    pub file_id: String,
}

/// A file that was not uploaded.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FailedFile {
    /// The file's name.
    pub filename: String,
    /// The error.
    pub error: String,
}

/// `file_snapshot`: copies of files.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FileSnapshot {
    /// Text to show.
    pub content: String,
    /// The copies.
    #[serde(default)]
    pub snapshot_files: Vec<SnapshotFile>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// A copy of a file.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SnapshotFile {
    /// The file's key.
    pub key: String,
    /// The file's path.
    pub path: String,
    /// The file's content.
    pub content: String,
}

/// `file_attachments_missing`: attached files could not be had.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FileAttachmentsMissing {
    /// The prompt.
    pub message_uuid: String,
    /// How many were attached.
    pub sent_count: u64,
    /// Those that are missing.
    #[serde(default)]
    pub missing: Vec<MissingFile>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// An attached file that is missing.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MissingFile {
    /// The file.
    pub file_uuid: String,
    /// Why the file is missing.
    pub reason: String,
}

/// `feedback_draft_queued`: a draft of feedback waits to be sent.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FeedbackDraftQueued {
    /// The draft.
    pub draft_id: String,
    /// `bug`, `idea` or `missing_capability`.
    pub draft_type: String,
    /// The draft's title.
    pub title: String,
    /// The beginning of the draft.
    pub details_preview: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `code_change_published`: a pull request, or the like, was touched.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CodeChangePublished {
    /// The host of the code.
    pub provider: String,
    /// The change's address.
    pub url: String,
    /// The repository.
    pub repo: String,
    /// The number of the change.
    pub identifier: String,
    /// What was done, such as `created` or `merged`.
    pub action: Option<String>,
    /// The branch.
    pub branch: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `vcs_state_changed`: something was committed, pushed, merged or rebased.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct VcsStateChanged {
    /// What was done.
    pub kind: VcsChange,
    /// The directory.
    pub cwd: String,
    /// On which branch.
    pub branch: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// What was done in version control.
    pub enum VcsChange {
        /// A commit.
        Commit = "commit",
        /// A push.
        Push = "push",
        /// A merge.
        Merge = "merge",
        /// A rebase.
        Rebase = "rebase",
    }
}

/// `shell_cwd`: the shell's working directory changed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ShellCwd {
    /// The directory.
    pub cwd: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `dev_intent`: what is being developed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct DevIntent {
    /// `ios_app` or `android_app`.
    pub kind: String,
    /// What shows the intent, such as `xcode_project`.
    pub trigger: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// A resource that an MCP tool points to.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpResourceLink {
    /// The resource's address.
    pub uri: String,
    /// The resource's name.
    pub name: String,
    /// The resource's title.
    pub title: Option<String>,
    /// The description of the resource.
    pub description: Option<String>,
    /// The resource's media type.
    pub mime_type: Option<String>,
    /// The resource's size in bytes.
    pub size: Option<f64>,
    /// The server's annotations of the resource.
    pub annotations: Option<RawJson>,
}
