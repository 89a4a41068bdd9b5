//! `user`: what goes to the model: tool results, echoed prompts, texts of the CLI.

use serde::{Deserialize, Serialize};

use super::system::McpResourceLink;
use crate::RawJson;
use crate::open_enum;
use crate::shared::{MessageContent, Origin, ReportedPermissionMode};

/// `user`: a tool result, a replayed prompt, or a text that the CLI put into the conversation.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UserMessage {
    /// What goes to the model.
    pub message: UserContent,
    /// The tool call whose subagent this is from; null in the main conversation.
    pub parent_tool_use_id: Option<String>,
    /// The id of this line; in a replay, that of the prompt itself.
    pub uuid: Option<String>,
    /// The session of this frame.
    pub session_id: Option<String>,
    /// True if this is a prompt, echoed (`--replay-user-messages`).
    #[serde(rename = "isReplay")]
    pub is_replay: Option<bool>,
    /// True if the CLI wrote the message.
    #[serde(rename = "isSynthetic")]
    pub is_synthetic: Option<bool>,
    /// The result in the tool's own structure: a string, an object or a list, by tool.
    pub tool_use_result: Option<RawJson>,
    /// Why each of the calls ran or did not.
    pub tool_result_meta: Option<Vec<ToolResultMeta>>,
    /// When, as ISO 8601.
    pub timestamp: Option<String>,
    /// The id of the subagent, which is also the id of its task.
    pub agent_id: Option<String>,
    /// The kind of subagent.
    pub subagent_type: Option<String>,
    /// What the subagent was asked to do.
    pub task_description: Option<String>,
    /// Where the prompt came from.
    pub origin: Option<Origin>,
    /// `now`, `next` or `later`, as the prompt was sent.
    pub priority: Option<String>,
    /// False if the prompt was not to be answered.
    #[serde(rename = "shouldQuery")]
    pub should_query: Option<bool>,
    /// True if a program composed the prompt: no commands, no file mentions.
    pub client_composed: Option<bool>,
    /// Pasted texts, each a string or a list of blocks.
    pub pasted_content: Option<RawJson>,
    /// Pasted texts within the prompt.
    pub inline_pastes: Option<Vec<String>>,
    /// Files attached to the prompt.
    pub file_attachments: Option<RawJson>,
    /// States of tools attached to the prompt.
    pub tool_states: Option<RawJson>,
    /// Whether the prompt asks for more effort.
    pub ultrathink_typed: Option<bool>,
    /// True if nobody typed the text.
    pub text_not_typed: Option<bool>,
    /// Who began the turn; `user` if absent.
    pub initiator: Option<String>,
    /// What the client runs on.
    pub client_platform: Option<String>,
    /// How wide the client shows text, in columns.
    pub client_content_width: Option<f64>,
    /// The request whose id lives on.
    pub keeps_request_id: Option<String>,
    /// Where the sender got the message from.
    pub inbound_origin: Option<String>,
    /// When the server received the message, in milliseconds since 1970.
    pub server_received_wall_ms: Option<f64>,
    /// The prompt is queued again when interrupted within that many milliseconds.
    pub requeue_if_interrupted_within_ms: Option<f64>,
    /// True if the message is replayed history.
    pub historical: Option<bool>,
    /// True if the message is not meant to be shown.
    pub is_meta: Option<bool>,
    /// True if the session began with the message.
    pub seeded_summon: Option<bool>,
    /// True if only the transcript view shows the message.
    pub is_visible_in_transcript_only: Option<bool>,
    /// True if the message is shown but not sent to the model.
    pub is_virtual: Option<bool>,
    /// True if the message is the summary that replaced earlier messages.
    pub is_compact_summary: Option<bool>,
    /// What that summary replaced.
    pub summarize_metadata: Option<SummarizeMetadata>,
    /// What an MCP tool returned besides content.
    pub mcp_meta: Option<McpMeta>,
    /// The tool call that caused the message.
    pub source_tool_use_id: Option<String>,
    /// The `assistant` line of that call.
    pub source_tool_assistant_uuid: Option<String>,
    /// Numbers of the pasted images.
    pub image_paste_ids: Option<Vec<u64>>,
    /// The plan that was approved.
    pub plan_content: Option<String>,
    /// The permission mode the prompt was sent in.
    pub permission_mode: Option<ReportedPermissionMode>,
    /// The API message that was interrupted.
    pub interrupted_message_id: Option<String>,
    /// The API message that was refused.
    pub refused_message_id: Option<String>,
    /// True if the CLI asks the model for another answer after a refusal.
    pub refusal_retry: Option<bool>,
    /// Lines that this one takes back.
    pub retracted_message_uuids: Option<Vec<String>>,
    /// The prompt of a plugin that the message stands for.
    pub plugin_prompt: Option<PluginPrompt>,
}

/// What goes to the model.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UserContent {
    /// Always `user`.
    pub role: String,
    /// Text or blocks.
    pub content: MessageContent,
}

/// Why a tool call ran or did not.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ToolResultMeta {
    /// The call.
    pub id: String,
    /// Why the tool did not run.
    pub non_execution_kind: Option<NonExecutionKind>,
    /// What the user said on refusing.
    pub user_feedback: Option<String>,
    /// What would make the tool work.
    pub remedy: Option<Remedy>,
    /// Who decided what.
    pub permission_decision: Option<PermissionOutcome>,
    /// The built-in tool that ran.
    pub built_in_tool: Option<String>,
    /// The input that the tool ran with.
    pub run_input: Option<String>,
}

open_enum! {
    /// Why a tool call did not run.
    pub enum NonExecutionKind {
        /// The user, or the permission callback, refused.
        UserRejected = "user-rejected",
        /// A rule refused.
        PermissionRule = "permission-rule",
        /// Auto mode's check refused.
        AutomodeBlocked = "automode-blocked",
        /// Auto mode's check did not work.
        AutomodeUnavailable = "automode-unavailable",
        /// Auto mode's check could not be understood.
        AutomodeParsingError = "automode-parsing-error",
        /// The turn was interrupted.
        Interrupted = "interrupted",
        /// The call was withdrawn.
        Cancelled = "cancelled",
    }
}

/// Who decided what about a tool call.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PermissionOutcome {
    /// The decision.
    pub decision: PermissionVerdict,
    /// Who decided, such as `config`, `hook`, `user_temporary` or `user_reject`.
    pub source: String,
    /// The kind of reason; see `decision_reason_type` of `can_use_tool`.
    pub reason_type: Option<String>,
    /// `applied` or `refused`: what became of a plugin's approval.
    pub plugin_approval: Option<String>,
    /// The rule of auto mode that applied.
    pub auto_mode_rule: Option<AutoModeRule>,
}

open_enum! {
    /// What was decided about a tool call.
    pub enum PermissionVerdict {
        /// The call may run.
        Accept = "accept",
        /// The call may not run.
        Reject = "reject",
        /// Nobody decided.
        Cancelled = "cancelled",
    }
}

/// A rule of auto mode.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AutoModeRule {
    /// `allow` or `soft_deny`.
    pub list: String,
    /// The rule's name.
    pub name: String,
}

/// What would make a refused call work.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Remedy {
    /// The remedy, such as `mcp_needs_auth`, `auth_expired`, `feature_disabled` or `policy_denied`.
    pub kind: String,
    /// The MCP servers concerned.
    pub servers: Option<Vec<String>>,
    /// Whose login: `claude_ai` or `claude_design`.
    pub provider: Option<String>,
    /// The path concerned.
    pub path: Option<String>,
    /// Whether managed settings are the cause.
    pub managed: Option<bool>,
    /// The feature that is off: `workflows` or `artifacts`.
    pub feature: Option<String>,
    /// Why the tool is off.
    pub cause: Option<String>,
    /// The organisation's verdict: `org_denied` or `latched`.
    pub policy_kind: Option<String>,
}

/// What a summary replaced.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SummarizeMetadata {
    /// How many messages.
    pub messages_summarized: u64,
    /// What the user asked to keep.
    pub user_context: Option<String>,
    /// `from` or `up_to`: which side of the chosen message.
    pub direction: Option<String>,
}

/// What an MCP tool returned besides content.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpMeta {
    /// The `_meta` of the result.
    #[serde(rename = "_meta")]
    pub meta: Option<RawJson>,
    /// The `structuredContent` of the result.
    pub structured_content: Option<RawJson>,
    /// Resources that the result points to.
    pub resource_links: Option<Vec<McpResourceLink>>,
}

/// A prompt of a plugin.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PluginPrompt {
    /// The prompt's name.
    pub name: String,
    /// The prompt's text.
    pub text: String,
}
