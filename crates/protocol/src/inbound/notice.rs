//! Small frames that stand alone.

use serde::{Deserialize, Serialize};

/// `keep_alive`: a sign of life, one every 30 s while a control request of ours is in progress. Needs no answer.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct KeepAlive {
    /// Where start-up has got to; only when asked for by `CLAUDE_CODE_SDK_READS_STARTUP_MARKS`.
    pub startup_mark: Option<String>,
}

/// `prompt_suggestion`: what the user might ask next. Comes after the `result`, when asked for in `initialize`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PromptSuggestion {
    /// The suggested prompt.
    pub suggestion: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `tool_progress`: a tool is still running. One every 30 s.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ToolProgress {
    /// The call. For heartbeats the call's id with `-heartbeat-N` appended; the call itself is then in
    /// `parent_tool_use_id`.
    pub tool_use_id: String,
    /// The tool.
    pub tool_name: String,
    /// The call of the agent that the tool runs in. In a heartbeat, the call itself.
    pub parent_tool_use_id: Option<String>,
    /// How long the tool has been running, in seconds.
    pub elapsed_time_seconds: f64,
    /// True for a plain sign of life.
    pub heartbeat: Option<bool>,
    /// The background task that the tool belongs to.
    pub task_id: Option<String>,
    /// The kind of subagent.
    pub subagent_type: Option<String>,
    /// The subagent waits for the API.
    pub subagent_retry: Option<SubagentRetry>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// A subagent's API request failed and is tried again.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SubagentRetry {
    /// The subagent.
    pub agent_id: String,
    /// Which attempt, from 1.
    pub attempt: u64,
    /// How many there will be.
    pub max_retries: u64,
    /// How long until the next one, in milliseconds.
    pub retry_delay_ms: f64,
    /// HTTP status; null without an answer.
    pub error_status: Option<u64>,
    /// The kind of error.
    pub error_category: String,
}

/// `tool_use_summary`: what a row of tool calls did, in a line.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ToolUseSummary {
    /// The line.
    pub summary: String,
    /// The calls.
    #[serde(default)]
    pub preceding_tool_use_ids: Vec<String>,
    /// When, as ISO 8601.
    pub timestamp: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `auth_status`: how a login is going.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AuthStatus {
    /// Whether the sign-in goes on.
    #[serde(rename = "isAuthenticating")]
    pub is_authenticating: bool,
    /// What to show.
    #[serde(default)]
    pub output: Vec<String>,
    /// Why the sign-in failed.
    pub error: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}
