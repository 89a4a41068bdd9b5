//! `assistant`: what the model said.

use serde::{Deserialize, Serialize};

use super::api::ApiMessage;
use super::api_error::*;
use super::context_usage::{ContextUsage, UsageReport};
use crate::RawJson;
use crate::open_enum;
pub use crate::shared::AssistantError;

/// `assistant`: one finished content block of an answer, or an answer that the CLI made up (API errors, local
/// commands).
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AssistantMessage {
    /// The API's message. While streaming, one line comes for each block, all with the same `message.id`.
    pub message: ApiMessage,
    /// The tool call under whose subagent it was said; null in the main conversation.
    pub parent_tool_use_id: Option<String>,
    /// This line's id; the id in the session file too.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
    /// Set when this is an API error in place of an answer.
    pub error: Option<AssistantError>,
    /// The API's id of the request.
    pub request_id: Option<String>,
    /// The last prompt that the message answers.
    pub user_message_uuid: Option<String>,
    /// The prompts that the message answers.
    pub user_message_uuids: Option<Vec<String>>,
    /// Why the turn was taken up again.
    pub resume_reason: Option<String>,
    /// True if the turn was taken up in the middle of thinking.
    pub resumed_from_incomplete_thinking: Option<bool>,
    /// Ids of earlier lines that this one replaces.
    pub supersedes: Option<Vec<String>>,
    /// True if the answer was cut off by an interrupt.
    pub aborted: Option<bool>,
    /// The id of the subagent, which is also the id of its task.
    pub agent_id: Option<String>,
    /// The kind of subagent.
    pub subagent_type: Option<String>,
    /// What the subagent was asked to do.
    pub task_description: Option<String>,
    /// When, as ISO 8601.
    pub timestamp: Option<String>,
    /// The answer of `/context` as data.
    pub context_usage: Option<ContextUsage>,
    /// The answer of `/usage` as data.
    pub usage_report: Option<UsageReport>,
    /// How to show the tool calls in the message.
    pub tool_use_meta: Option<Vec<ToolUseMeta>>,
    /// Which blocks are narration.
    pub narration_block_indexes: Option<Vec<u64>>,
    /// How to show narration.
    pub narration_hint: Option<NarrationHint>,
    /// How long the model thought, in milliseconds.
    pub thinking_duration_ms: Option<f64>,
    /// How thinking is shown.
    pub thinking_display: Option<ReportedThinkingDisplay>,
    /// True if the message is not meant to be shown.
    pub is_meta: Option<bool>,
    /// True if the message is shown but not sent to the model.
    pub is_virtual: Option<bool>,
    /// True if the message is replayed history.
    pub historical: Option<bool>,
    /// The API message that was refused and that this replaces.
    pub refused_message_id: Option<String>,
    /// The local command that the message answers.
    pub local_command_source: Option<String>,
    /// The local command and its arguments.
    pub local_command_run: Option<LocalCommandRun>,
    /// Why a local command did nothing.
    pub local_command_outcome: Option<LocalCommandOutcome>,
    /// The other tool calls of the batch.
    pub batch_tool_uses: Option<Vec<BatchToolUse>>,
    /// Tool inputs as the model wrote them, by call id, where the CLI changed them.
    pub wire_tool_inputs: Option<RawJson>,
    /// Bookkeeping of sessions that run elsewhere.
    pub wire_ingest_context: Option<RawJson>,
    /// True for an API error in place of an answer.
    pub is_api_error_message: Option<bool>,
    /// The error's HTTP status.
    pub api_error_status: Option<u64>,
    /// The kind of the API error, in the CLI's words.
    pub api_error: Option<ApiErrorKind>,
    /// Facts for the error text.
    pub api_error_params: Option<ApiErrorParams>,
    /// The API's code for the error.
    pub api_error_code: Option<String>,
    /// The API's type for the error, such as `overloaded_error`.
    pub api_error_type: Option<String>,
    /// `first_party` if Anthropic's own API said so.
    pub api_error_origin: Option<String>,
    /// More on the error, in words.
    pub error_details: Option<String>,
    /// The advisor model that had a say.
    pub advisor_model: Option<String>,
    /// The agent that the answer is counted under.
    pub attribution_agent: Option<String>,
    /// The skill that the message is counted under.
    pub attribution_skill: Option<String>,
    /// The plugin that the message is counted under.
    pub attribution_plugin: Option<String>,
    /// The MCP server that the message is counted under.
    pub attribution_mcp_server: Option<String>,
    /// The MCP tool that the message is counted under.
    pub attribution_mcp_tool: Option<String>,
}

open_enum! {
    /// How narration is to be shown.
    pub enum NarrationHint {
        /// Narration is hidden.
        Hidden = "hidden",
        /// Faintly.
        Faint = "faint",
    }
}

open_enum! {
    /// How thinking is shown.
    pub enum ReportedThinkingDisplay {
        /// As a summary.
        Summarized = "summarized",
        /// Thinking is omitted.
        Omitted = "omitted",
        /// As highlights.
        Highlights = "highlights",
        /// As short updates.
        Updates = "updates",
    }
}

/// How to show one tool call.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ToolUseMeta {
    /// The call.
    pub id: String,
    /// The tool's name for people.
    pub display_name: String,
    /// The MCP server's name for people.
    pub server_display_name: Option<String>,
    /// An icon.
    pub icon_url: Option<String>,
    /// The MCP server's id.
    pub server_id: Option<String>,
    /// A seal over that id.
    pub server_id_stamp: Option<String>,
    /// The tool's name on the MCP server.
    pub tool_name: Option<String>,
    /// True if the call publishes an artifact.
    pub artifact_publish: Option<bool>,
}

/// A slash command that the CLI ran itself.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct LocalCommandRun {
    /// The command's name without the slash.
    pub command: String,
    /// The command's arguments; may be empty.
    pub args: String,
    /// The plugin that the command comes from.
    pub plugin: Option<String>,
}

/// Why a slash command did nothing.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct LocalCommandOutcome {
    /// The cause.
    pub kind: LocalCommandOutcomeKind,
    /// What to use instead.
    pub suggestion: Option<String>,
}

open_enum! {
    /// Why a slash command did nothing.
    pub enum LocalCommandOutcomeKind {
        /// The command needs a terminal.
        UnavailableHeadless = "unavailable_headless",
        /// There is no such command.
        Unknown = "unknown",
        /// The command failed.
        Failed = "failed",
        /// The command takes effect after a restart.
        RestartRequired = "restart_required",
    }
}

/// A tool call of the same batch.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct BatchToolUse {
    /// The call.
    pub id: String,
    /// The tool.
    pub name: String,
}
