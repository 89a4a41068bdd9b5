//! What the CLI tells a hook.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub tool_input: RawJson,
    /// The call. The first CLIs of version 2.0 leave it out.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub tool_input: RawJson,
    /// What it gave, in the tool's own shape.
    pub tool_response: RawJson,
    /// The call. The first CLIs of version 2.0 leave it out.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub tool_use_id: Option<String>,
    /// How long it ran, in milliseconds, without the time somebody was asked.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub tool_input: RawJson,
    /// The call.
    pub tool_use_id: String,
    /// The error of the tool.
    pub error: String,
    /// Whether it was interrupted.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub is_interrupt: Option<bool>,
    /// How long it ran, in milliseconds, without the time somebody was asked.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub duration_ms: Option<f64>,
    /// The MCP server that the tool belongs to.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mcp_server: Option<crate::shared::McpServerProvenance>,
}

/// All tools that one answer of the model called have run.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PostToolBatchInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The text.
    pub message: String,
    /// Its title.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
    /// What kind of notification it is. The first CLIs of version 2.0 leave it out.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub notification_type: Option<String>,
}

/// A prompt was sent.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UserPromptSubmitInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The prompt.
    pub prompt: String,
    /// Who sent it.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Which of the two.
    pub expansion_type: ExpansionType,
    /// The command or prompt.
    pub command_name: String,
    /// What was given to it.
    pub command_args: String,
    /// Where it comes from.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub command_source: Option<String>,
    /// What it became.
    pub prompt: String,
}

/// A session begins.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SessionStartInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
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
    /// Whether the API has probably forgotten the conversation by now.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_cache_likely_expired: Option<bool>,
    /// What it will cost to make the API remember it again.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub estimated_cache_write_usd: Option<f64>,
}

/// A session ends.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SessionEndInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Whether the turn goes on only because a hook made it so. Blocking again without end is the hook's to avoid.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// What kind of error, as in an `assistant` message.
    pub error: crate::shared::AssistantError,
    /// More about it.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Whether it goes on only because a hook made it so.
    pub stop_hook_active: bool,
    /// Its transcript on disk. The first CLIs of version 2.0 leave it out.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_transcript_path: Option<String>,
    /// What it said last.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Who wants it.
    pub trigger: CompactTrigger,
    /// What to keep in mind when summarizing.
    pub custom_instructions: Option<String>,
}

/// The conversation has been compacted.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PostCompactInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Who wanted it.
    pub trigger: CompactTrigger,
    /// The summary.
    pub compact_summary: String,
}

/// The model is about to be changed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PreModelSwitchInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The model until now.
    pub from_model: String,
    /// The model to come.
    pub to_model: String,
    /// What was asked for, as it was written; `None` for the default.
    pub requested_model: Option<String>,
    /// Who changes the model.
    pub source: ModelSwitchSource,
    /// How many tokens the conversation takes.
    pub context_tokens: u64,
    /// Whether the API remembers the conversation for the old model.
    pub prompt_cache_warm: bool,
    /// How long the API would remember it for the new one.
    pub cache_ttl: CacheTtl,
    /// What making it remember will cost.
    pub estimated_cache_write_usd: f64,
    /// Where the price comes from.
    pub pricing: ModelPricing,
}

/// The model has been changed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PostModelSwitchInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The model until now.
    pub from_model: String,
    /// The new model.
    pub to_model: String,
    /// What was asked for, as it was written; `None` for the default.
    pub requested_model: Option<String>,
    /// Who changes the model.
    pub source: ModelSwitchSource,
    /// How many tokens the conversation takes.
    pub context_tokens: u64,
    /// Whether the API remembered the conversation for the old model.
    pub prompt_cache_warm: bool,
    /// How long the API remembers it for the new one.
    pub cache_ttl: CacheTtl,
    /// What making it remember will cost.
    pub estimated_cache_write_usd: f64,
    /// Where the price comes from.
    pub pricing: ModelPricing,
}

/// Somebody is about to be asked for permission.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PermissionRequestInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub tool_input: RawJson,
    /// Changes of permissions that would spare the question next time.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_suggestions: Option<Vec<crate::shared::PermissionUpdate>>,
    /// The MCP server that the tool belongs to.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mcp_server: Option<crate::shared::McpServerProvenance>,
    /// What kind of tool asks, if it is not an ordinary one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub tool_kind: Option<String>,
    /// The skill of an MCP server that asks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mcp_skill: Option<RawJson>,
}

/// A tool call was refused.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PermissionDeniedInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub tool_input: RawJson,
    /// The call.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Which of the two.
    pub trigger: SetupTrigger,
}

/// A teammate is about to be idle.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TeammateIdleInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The task.
    pub task_id: String,
    /// What it is about.
    pub task_subject: String,
    /// What is to be done.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub task_description: Option<String>,
    /// Whose it is.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The server.
    pub mcp_server_name: String,
    /// What it asks.
    pub message: String,
    /// By form or by page.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mode: Option<crate::shared::ElicitationMode>,
    /// The page.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub url: Option<String>,
    /// The question's id, for a page.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The server.
    pub mcp_server_name: String,
    /// The question's id, for a page.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub elicitation_id: Option<String>,
    /// By form or by page.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mode: Option<crate::shared::ElicitationMode>,
    /// What was decided: `accept`, `decline` or `cancel`.
    pub action: String,
    /// What was filled in.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub content: Option<RawJson>,
}

/// A settings file changed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ConfigChangeInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Its name.
    pub name: String,
}

/// A worktree is to be removed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WorktreeRemoveInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// Where it is.
    pub worktree_path: String,
}

/// A file of instructions was loaded.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct InstructionsLoadedInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The file.
    pub file_path: String,
    /// Whose instructions these are.
    pub memory_type: InstructionsKind,
    /// Why it was loaded.
    pub load_reason: InstructionsLoadReason,
    /// The patterns that it is for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub globs: Option<Vec<String>>,
    /// The file that made it load.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub trigger_file_path: Option<String>,
    /// The file that includes it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub parent_file_path: Option<String>,
}

/// The working directory changed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CwdChangedInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The directory until now.
    pub old_cwd: String,
    /// The new one.
    pub new_cwd: String,
}

/// A watched file changed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FileChangedInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The file.
    pub file_path: String,
    /// What happened to it.
    pub event: FileEvent,
}

/// A working directory was added.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct DirectoryAddedInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The directory.
    pub directory: String,
    /// Who added it.
    pub source: DirectoryAddedSource,
}

/// A shell command in the text of a skill or of a command is about to run.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PreSkillShellCommandInput {
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The shell tool that runs it: `Bash` or `PowerShell`.
    pub tool_name: String,
    /// The input of that tool.
    pub tool_input: SkillShellCommand,
    /// The id of this run. No tool call of the conversation has it.
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
    /// The session.
    pub session_id: String,
    /// Its transcript on disk.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// The prompt that is being answered.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt_id: Option<String>,
    /// How tool calls are decided at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<crate::shared::ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_id: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<HookEffort>,
    /// The turn.
    pub turn_id: String,
    /// The message.
    pub message_id: String,
    /// Which piece of the message this is, from 0.
    pub index: u64,
    /// Whether it is the last piece.
    #[serde(rename = "final")]
    pub r#final: bool,
    /// The text.
    pub delta: String,
}

/// How hard the model thinks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct HookEffort {
    /// The level.
    pub level: String,
}

/// A shell command in the text of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SkillShellCommand {
    /// The command as it would run, with arguments filled in.
    pub command: String,
}

/// One call of a batch.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct HookToolCall {
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub tool_input: RawJson,
    /// The call.
    pub tool_use_id: String,
    /// What the model reads of its result: a text or content blocks ([`MessageContent`](crate::shared::MessageContent)). Hooks of
    /// one call get the tool's own structure.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub tool_response: Option<RawJson>,
}

/// Something that runs in the background.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct BackgroundTaskSummary {
    /// Its id.
    pub id: String,
    /// What it is: `shell`, `subagent`, …
    #[serde(rename = "type")]
    pub r#type: String,
    /// How it fares.
    pub status: String,
    /// What it does.
    pub description: String,
    /// The command, of a shell.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub command: Option<String>,
    /// The type, of an agent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// The server, of an MCP task.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub server: Option<String>,
    /// The tool, of an MCP task.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub tool: Option<String>,
    /// The name, of a workflow.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub name: Option<String>,
}

/// Something that the session will start by itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SessionCronSummary {
    /// Its id.
    pub id: String,
    /// When, as a cron expression.
    pub schedule: String,
    /// Whether more than once.
    pub recurring: bool,
    /// What is sent to the model.
    pub prompt: String,
}
