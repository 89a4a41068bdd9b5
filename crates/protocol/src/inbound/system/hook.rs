//! Hook commands from settings, as they run (`--include-hook-events`).

use serde::{Deserialize, Serialize};

use crate::open_enum;

/// `hook_started`: a hook command runs.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct HookStarted {
    /// This run.
    pub hook_id: String,
    /// The event with the value that the hook matched, such as `PreToolUse:Bash`.
    pub hook_name: String,
    /// The event.
    pub hook_event: String,
    /// Where the hook is configured.
    pub origin: Option<String>,
    /// The hook's name for people.
    pub label: Option<String>,
    /// The plugin that the hook comes from.
    pub plugin_name: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `hook_progress`: a hook command says something.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct HookProgress {
    /// The run.
    pub hook_id: String,
    /// The event with the value that the hook matched.
    pub hook_name: String,
    /// The event.
    pub hook_event: String,
    /// The hook's standard output so far.
    pub stdout: String,
    /// The hook's standard error so far.
    pub stderr: String,
    /// Both.
    pub output: String,
    /// True if the CLI no longer waits for the hook.
    pub backgrounded: Option<bool>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `hook_response`: a hook command has ended.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct HookResponse {
    /// The run.
    pub hook_id: String,
    /// The event with the value that the hook matched.
    pub hook_name: String,
    /// The event.
    pub hook_event: String,
    /// Standard output and error.
    pub output: String,
    /// The hook's standard output.
    pub stdout: String,
    /// The hook's standard error.
    pub stderr: String,
    /// The hook's exit code.
    pub exit_code: Option<i64>,
    /// How the hook ended.
    pub outcome: HookOutcome,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// How a hook command ended.
    pub enum HookOutcome {
        /// Well.
        Success = "success",
        /// With an error.
        Error = "error",
        /// The hook was stopped.
        Cancelled = "cancelled",
    }
}

/// `stop_hook_summary`: what the Stop hooks did.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct StopHookSummary {
    /// How many ran.
    pub hook_count: u64,
    /// What each of the hooks did.
    #[serde(default)]
    pub hook_infos: Vec<HookInfo>,
    /// The errors of the hooks.
    #[serde(default)]
    pub hook_errors: Vec<String>,
    /// The context that the hooks added for the model.
    pub hook_additional_context: Option<Vec<String>>,
    /// Whether one ended the turn.
    pub prevented_continuation: bool,
    /// The reason for the stop.
    pub stop_reason: Option<String>,
    /// Whether there is something to show.
    pub has_output: bool,
    /// How important the summary is.
    pub level: super::NoticeLevel,
    /// The tool call concerned.
    pub tool_use_id: Option<String>,
    /// A name for people.
    pub hook_label: Option<String>,
    /// How long all took, in milliseconds.
    pub total_duration_ms: Option<f64>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// One hook that ran.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct HookInfo {
    /// The hook's command.
    pub command: String,
    /// The hook's prompt.
    pub prompt_text: Option<String>,
    /// How long the hook took, in milliseconds.
    pub duration_ms: Option<f64>,
}
