//! The inputs of hooks: what the CLI sends with an event.
// Written by `cargo xtask types` from what upstream declares and upstream/hooks/input.toml: change that instead.

use serde::{Deserialize, Serialize};

use super::cause::{
    CacheTtl, CompactTrigger, ConfigChangeSource, DirectoryAddedSource, ExitReason, ExpansionType, FileEvent,
    InstructionsKind, InstructionsLoadReason, ModelPricing, ModelSwitchSource, PromptSource,
    SessionStartSource, SetupTrigger, SkillInvoker,
};
use crate::RawJson;

/// A tool is about to run.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PreToolUseInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The name of the tool.
    pub tool_name: String,
    /// The input of the tool.
    pub tool_input: RawJson,
    /// The id of the call. The first CLIs of version 2.0 do not send the id.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub tool_use_id: Option<String>,
    /// The MCP server that the tool belongs to.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mcp_server: Option<crate::shared::McpServerProvenance>,
}

/// A tool has run.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PostToolUseInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The name of the tool.
    pub tool_name: String,
    /// The input of the tool.
    pub tool_input: RawJson,
    /// The result of the tool, in the tool's own structure.
    pub tool_response: RawJson,
    /// The id of the call. The first CLIs of version 2.0 do not send the id.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub tool_use_id: Option<String>,
    /// How long the tool ran, in milliseconds, without the time of permission requests.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub duration_ms: Option<f64>,
    /// The MCP server that the tool belongs to.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mcp_server: Option<crate::shared::McpServerProvenance>,
}

/// A tool has failed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PostToolUseFailureInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The name of the tool.
    pub tool_name: String,
    /// The input of the tool.
    pub tool_input: RawJson,
    /// The id of the call.
    pub tool_use_id: String,
    /// The error of the tool.
    pub error: String,
    /// Whether the tool was interrupted.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub is_interrupt: Option<bool>,
    /// How long the tool ran, in milliseconds, without the time of permission requests.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub duration_ms: Option<f64>,
    /// The MCP server that the tool belongs to.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mcp_server: Option<crate::shared::McpServerProvenance>,
}

/// All tools that one message of the model called have run.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PostToolBatchInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The calls.
    pub tool_calls: Vec<HookToolCall>,
}

/// The CLI has something to tell the user.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct NotificationInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The text of the notification.
    pub message: String,
    /// The title of the notification.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
    /// The kind of the notification. The first CLIs of version 2.0 do not send the kind.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub notification_type: Option<String>,
}

/// A prompt was sent.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UserPromptSubmitInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The text of the prompt.
    pub prompt: String,
    /// Who sent the prompt.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub source: Option<PromptSource>,
    /// The session's title.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub session_title: Option<String>,
}

/// A slash command or an MCP prompt became a prompt.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UserPromptExpansionInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Whether this is a slash command or an MCP prompt.
    pub expansion_type: ExpansionType,
    /// The name of the command or prompt.
    pub command_name: String,
    /// The arguments of the command or prompt.
    pub command_args: String,
    /// Where the command or prompt comes from.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub command_source: Option<String>,
    /// The prompt that the model will read.
    pub prompt: String,
}

/// A session begins.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SessionStartInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Why the session begins.
    pub source: SessionStartSource,
    /// The model.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub model: Option<String>,
    /// The session's title.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub session_title: Option<String>,
    /// How long ago the model last answered, for a resumed session.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub seconds_since_last_response: Option<f64>,
    /// How many tokens the conversation takes.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub context_tokens: Option<u64>,
    /// Whether the API's cache of the conversation has probably expired.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_cache_likely_expired: Option<bool>,
    /// What it will cost, in dollars, to write the conversation to the cache again.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub estimated_cache_write_usd: Option<f64>,
}

/// A session ends.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SessionEndInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Why the session ends.
    pub reason: ExitReason,
}

/// A turn is about to end.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct StopInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Whether a hook has made this turn go on before. A hook that blocks each time has to end this itself.
    pub stop_hook_active: bool,
    /// What the model said last.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub last_assistant_message: Option<String>,
    /// What still runs in the background.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub background_tasks: Option<Vec<BackgroundTaskSummary>>,
    /// What the session will start by itself.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub session_crons: Option<Vec<SessionCronSummary>>,
}

/// A turn ended because of an API error.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct StopFailureInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The kind of the error, as in an `assistant` message.
    pub error: crate::shared::AssistantError,
    /// Details of the error.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub error_details: Option<String>,
    /// What the model said last, or the error as text.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub last_assistant_message: Option<String>,
}

/// A subagent begins. `agent_id` and `agent_type` are always there.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SubagentStartInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
}

/// A subagent is about to end. `agent_id` and `agent_type` are always there.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SubagentStopInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Whether a hook has made this subagent go on before.
    pub stop_hook_active: bool,
    /// The file with the subagent's transcript. The first CLIs of version 2.0 do not send the file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_transcript_path: Option<String>,
    /// What the subagent said last.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub last_assistant_message: Option<String>,
    /// What still runs in the background.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub background_tasks: Option<Vec<BackgroundTaskSummary>>,
    /// What the session will start by itself.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub session_crons: Option<Vec<SessionCronSummary>>,
}

/// The conversation is about to be compacted.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PreCompactInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Who wants the compaction.
    pub trigger: CompactTrigger,
    /// Instructions for the summary.
    pub custom_instructions: Option<String>,
}

/// The conversation has been compacted.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PostCompactInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Who wanted the compaction.
    pub trigger: CompactTrigger,
    /// The summary.
    pub compact_summary: String,
}

/// The model is about to be changed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PreModelSwitchInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The model until now.
    pub from_model: String,
    /// The model to come.
    pub to_model: String,
    /// The requested model, as the request named it; `None` for the default.
    pub requested_model: Option<String>,
    /// Who changes the model.
    pub source: ModelSwitchSource,
    /// How many tokens the conversation takes.
    pub context_tokens: u64,
    /// Whether the API has the conversation in its cache for the old model.
    pub prompt_cache_warm: bool,
    /// How long the API would keep the conversation in its cache for the new model.
    pub cache_ttl: CacheTtl,
    /// What it will cost, in dollars, to write the conversation to the cache.
    pub estimated_cache_write_usd: f64,
    /// Where the price comes from.
    pub pricing: ModelPricing,
}

/// The model has been changed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PostModelSwitchInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The model until now.
    pub from_model: String,
    /// The new model.
    pub to_model: String,
    /// The requested model, as the request named it; `None` for the default.
    pub requested_model: Option<String>,
    /// Who changes the model.
    pub source: ModelSwitchSource,
    /// How many tokens the conversation takes.
    pub context_tokens: u64,
    /// Whether the API had the conversation in its cache for the old model.
    pub prompt_cache_warm: bool,
    /// How long the API keeps the conversation in its cache for the new model.
    pub cache_ttl: CacheTtl,
    /// What it will cost, in dollars, to write the conversation to the cache.
    pub estimated_cache_write_usd: f64,
    /// Where the price comes from.
    pub pricing: ModelPricing,
}

/// The CLI is about to request permission for a tool call.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PermissionRequestInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The name of the tool.
    pub tool_name: String,
    /// The input of the tool.
    pub tool_input: RawJson,
    /// Changes of permissions with which the next such call needs no request.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_suggestions: Option<Vec<crate::shared::PermissionUpdate>>,
    /// The MCP server that the tool belongs to.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mcp_server: Option<crate::shared::McpServerProvenance>,
    /// The kind of the tool, if it is not an ordinary one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub tool_kind: Option<String>,
    /// The skill of an MCP server that the request is for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mcp_skill: Option<RawJson>,
}

/// A tool call was refused.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PermissionDeniedInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The name of the tool.
    pub tool_name: String,
    /// The input of the tool.
    pub tool_input: RawJson,
    /// The id of the call.
    pub tool_use_id: String,
    /// Why the call was denied.
    pub reason: String,
    /// The MCP server that the tool belongs to.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mcp_server: Option<crate::shared::McpServerProvenance>,
}

/// The CLI was run to set up or maintain a project.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SetupInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Whether the CLI sets the project up or maintains it.
    pub trigger: SetupTrigger,
}

/// A teammate is about to be idle.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TeammateIdleInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The teammate.
    pub teammate_name: String,
    /// The team.
    pub team_name: String,
}

/// A task of a team was created or completed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The id of the task.
    pub task_id: String,
    /// The subject of the task.
    pub task_subject: String,
    /// What is to be done.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub task_description: Option<String>,
    /// The teammate who has the task.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub teammate_name: Option<String>,
    /// The team.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub team_name: Option<String>,
}

/// An MCP server asks the user something.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ElicitationInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The server.
    pub mcp_server_name: String,
    /// The question of the server.
    pub message: String,
    /// Whether the user answers in a form or on a page.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mode: Option<crate::shared::ElicitationMode>,
    /// The address of the page.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub url: Option<String>,
    /// The id of the question, for a page.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub elicitation_id: Option<String>,
    /// The form, as JSON Schema.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub requested_schema: Option<RawJson>,
}

/// The user answered an MCP server.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ElicitationResultInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The server.
    pub mcp_server_name: String,
    /// The id of the question, for a page.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub elicitation_id: Option<String>,
    /// Whether the user answers in a form or on a page.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mode: Option<crate::shared::ElicitationMode>,
    /// The user's decision: `accept`, `decline` or `cancel`.
    pub action: String,
    /// What the user filled in.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub content: Option<RawJson>,
}

/// A settings file changed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ConfigChangeInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Which settings changed.
    pub source: ConfigChangeSource,
    /// The file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub file_path: Option<String>,
}

/// A worktree is to be made.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WorktreeCreateInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The name of the worktree.
    pub name: String,
}

/// A worktree is to be removed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WorktreeRemoveInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The directory of the worktree.
    pub worktree_path: String,
}

/// A file of instructions was loaded.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct InstructionsLoadedInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The file.
    pub file_path: String,
    /// Whose instructions these are.
    pub memory_type: InstructionsKind,
    /// Why the file was loaded.
    pub load_reason: InstructionsLoadReason,
    /// The patterns of files that these instructions are for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub globs: Option<Vec<String>>,
    /// The file whose use made the CLI load the instructions.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub trigger_file_path: Option<String>,
    /// The file that includes this file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub parent_file_path: Option<String>,
}

/// The working directory changed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CwdChangedInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The directory until now.
    pub old_cwd: String,
    /// The new directory.
    pub new_cwd: String,
}

/// A watched file changed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FileChangedInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The file.
    pub file_path: String,
    /// What happened to the file.
    pub event: FileEvent,
}

/// A working directory was added.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct DirectoryAddedInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The directory.
    pub directory: String,
    /// Who added the directory.
    pub source: DirectoryAddedSource,
}

/// A shell command in the text of a skill or of a command is about to run.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PreSkillShellCommandInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The shell tool that runs it: `Bash` or `PowerShell`.
    pub tool_name: String,
    /// The input of that tool.
    pub tool_input: SkillShellCommand,
    /// The id of this run. No tool call of the conversation has this id.
    pub tool_use_id: String,
    /// The skill or command.
    pub command_name: String,
    /// The origin of the skill or command.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub command_source: Option<String>,
    /// Who started the skill or command.
    pub invoked_by: SkillInvoker,
}

/// Text of the model is about to be shown.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MessageDisplayInput {
    /// The id of the session.
    pub session_id: String,
    /// The file with the session's transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The id of the prompt that the turn answers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// The permission mode at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The id of the subagent, if the event happens in one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// The type of that subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The id of the turn.
    pub turn_id: String,
    /// The id of the message.
    pub message_id: String,
    /// Which piece of the message this is, from 0.
    pub index: u64,
    /// Whether this is the last piece.
    #[serde(rename = "final")]
    pub r#final: bool,
    /// The text of the piece.
    pub delta: String,
}

/// How hard the model thinks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct HookEffort {
    /// The effort, as in `low` or `high`.
    pub level: String,
}

/// A shell command in the text of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SkillShellCommand {
    /// The command that will run, with the arguments filled in.
    pub command: String,
}

/// One call of a batch.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct HookToolCall {
    /// The name of the tool.
    pub tool_name: String,
    /// The input of the tool.
    pub tool_input: RawJson,
    /// The id of the call.
    pub tool_use_id: String,
    /// What the model reads of the tool's result: a text or content blocks ([`MessageContent`](crate::shared::MessageContent)).
    /// Hooks of one call get the tool's own structure.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub tool_response: Option<RawJson>,
}

/// Something that runs in the background.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct BackgroundTaskSummary {
    /// The id of the task.
    pub id: String,
    /// The kind of the task: `shell`, `subagent`, …
    #[serde(rename = "type")]
    pub r#type: String,
    /// The state of the task.
    pub status: String,
    /// What the task does.
    pub description: String,
    /// The command, if the task is a shell.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub command: Option<String>,
    /// The type, if the task is an agent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// The server, if the task is a call of an MCP tool.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub server: Option<String>,
    /// The tool, if the task is a call of an MCP tool.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub tool: Option<String>,
    /// The name, if the task is a workflow.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub name: Option<String>,
}

/// Something that the session will start by itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SessionCronSummary {
    /// The id of the schedule.
    pub id: String,
    /// The times, as a cron expression.
    pub schedule: String,
    /// Whether it happens more than once.
    pub recurring: bool,
    /// What is sent to the model.
    pub prompt: String,
}
