//! Permissions that were decided without asking, and late answers.

use serde::{Deserialize, Serialize};

use crate::open_enum;

/// `permission_denied`: a tool call was refused without asking.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PermissionDenied {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_use_id: String,
    /// The subagent that made the call.
    pub agent_id: Option<String>,
    /// The kind of reason, such as `rule`, `mode` or `classifier`.
    pub decision_reason_type: Option<String>,
    /// The reason as a code, such as `auto_mode_no_check_in_session`.
    pub decision_reason_code: Option<String>,
    /// The reason in words.
    pub decision_reason: Option<String>,
    /// The text that the model received.
    pub message: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `permission_check_status`: a tool call is being checked.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PermissionCheckStatus {
    /// The call.
    pub tool_use_id: String,
    /// The subagent that made the call.
    pub agent_id: Option<String>,
    /// Whether the check goes on.
    pub status: CheckStatus,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// How far a check is.
    pub enum CheckStatus {
        /// The check runs.
        Checking = "checking",
        /// The check is done.
        Done = "done",
    }
}

/// `permission_retry`: commands were allowed after all.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PermissionRetry {
    /// Text to show.
    pub content: String,
    /// The commands.
    #[serde(default)]
    pub commands: Vec<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `inherited_asks_settled`: permission requests of an earlier process were settled.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct InheritedAsksSettled {
    /// Those that are still open.
    #[serde(default)]
    pub kept_request_ids: Vec<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `late_allow_not_run`: a permission came too late to have an effect.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct LateAllowNotRun {
    /// The request that was answered.
    pub request_id: String,
    /// The call.
    pub tool_use_id: String,
    /// Why nothing was run.
    pub reason: LateAllowReason,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// Why a late permission had no effect.
    pub enum LateAllowReason {
        /// A turn is running.
        TurnRunning = "turn_running",
        /// Another question is open.
        CardOpen = "card_open",
        /// The call is gone.
        CallGone = "call_gone",
        /// The answer is wrong.
        InvalidAnswer = "invalid_answer",
        /// Too many.
        Limited = "limited",
        /// The turn was stopped.
        Stopped = "stopped",
        /// The permission was declined.
        Declined = "declined",
        /// The permission was requested again.
        AskedAgain = "asked_again",
        /// The request was withdrawn.
        Withdrawn = "withdrawn",
        /// The permission is too old.
        Expired = "expired",
        /// No reason given.
        NotRun = "not_run",
    }
}

/// `elicitation_complete`: what an MCP server asked for at an address is done.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ElicitationComplete {
    /// The server.
    pub mcp_server_name: String,
    /// The id of the question.
    pub elicitation_id: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}
