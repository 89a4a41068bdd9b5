//! What the CLI tells a hook.

use serde::{Deserialize, Serialize};

use super::cause::*;
use crate::RawJson;
use crate::shared::{
    AssistantError, ElicitationMode, McpServerProvenance, PermissionUpdate, ReportedPermissionMode,
};
use crate::tools::ToolInput;

/// What is told about every event.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HookBase<'a> {
    /// The session.
    pub session_id: &'a str,
    /// Its transcript on disk.
    pub transcript_path: &'a str,
    /// The working directory.
    pub cwd: &'a str,
    /// The prompt that is being answered.
    pub prompt_id: Option<&'a str>,
    /// How tool calls are decided at the moment.
    pub permission_mode: Option<&'a ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    pub agent_id: Option<&'a str>,
    /// Its type.
    pub agent_type: Option<&'a str>,
    /// How hard the model thinks.
    pub effort: Option<&'a str>,
}

/// How hard the model thinks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct HookEffort {
    /// The level.
    pub level: String,
}

macro_rules! tools {
    ($($name:ident)+) => { $(
        impl $name {
            /// The input by the tool's own type; a tool or an input that this build does not know stays as it came.
            pub fn tool(&self) -> ToolInput {
                ToolInput::read(&self.tool_name, &self.tool_input)
            }
        }
    )+ };
}

tools! { PreToolUseInput PostToolUseInput PostToolUseFailureInput PermissionRequestInput }

/// Generates the inputs: the fields that each event has, and its own.
macro_rules! hook_inputs {
    ($( $(#[$m:meta])* pub struct $name:ident { $( $(#[$fm:meta])* pub $field:ident: $ty:ty, )* } )+) => { $(
        $(#[$m])*
        #[derive(Debug, Clone, Deserialize, Serialize)]
        #[non_exhaustive]
        pub struct $name {
            /// The session.
            pub session_id: String,
            /// Its transcript on disk.
            pub transcript_path: String,
            /// The working directory.
            pub cwd: String,
            /// The prompt that is being answered.
            pub prompt_id: Option<String>,
            /// How tool calls are decided at the moment.
            pub permission_mode: Option<ReportedPermissionMode>,
            /// The subagent, if one is concerned.
            pub agent_id: Option<String>,
            /// Its type.
            pub agent_type: Option<String>,
            /// How hard the model thinks.
            pub effort: Option<HookEffort>,
            $( $(#[$fm])* pub $field: $ty, )*
        }
    )+ };
}

hook_inputs! {
    /// A tool is about to run.
    pub struct PreToolUseInput {
        /// The tool.
        pub tool_name: String,
        /// Its input.
        pub tool_input: RawJson,
        /// The call. The first CLIs of version 2.0 leave it out.
        pub tool_use_id: Option<String>,
        /// The MCP server that the tool belongs to.
        pub mcp_server: Option<McpServerProvenance>,
    }
    /// A tool has run.
    pub struct PostToolUseInput {
        /// The tool.
        pub tool_name: String,
        /// Its input.
        pub tool_input: RawJson,
        /// What it gave, in the tool's own shape.
        pub tool_response: RawJson,
        /// The call. The first CLIs of version 2.0 leave it out.
        pub tool_use_id: Option<String>,
        /// How long it ran, in milliseconds, without the time somebody was asked.
        pub duration_ms: Option<f64>,
        /// The MCP server that the tool belongs to.
        pub mcp_server: Option<McpServerProvenance>,
    }
    /// A tool has failed.
    pub struct PostToolUseFailureInput {
        /// The tool.
        pub tool_name: String,
        /// Its input.
        pub tool_input: RawJson,
        /// The call.
        pub tool_use_id: String,
        /// The error of the tool.
        pub error: String,
        /// Whether it was interrupted.
        pub is_interrupt: Option<bool>,
        /// How long it ran, in milliseconds, without the time somebody was asked.
        pub duration_ms: Option<f64>,
        /// The MCP server that the tool belongs to.
        pub mcp_server: Option<McpServerProvenance>,
    }
    /// All tools that one answer of the model called have run.
    pub struct PostToolBatchInput {
        /// The calls.
        pub tool_calls: Vec<HookToolCall>,
    }
    /// The CLI has something to tell the user.
    pub struct NotificationInput {
        /// The text.
        pub message: String,
        /// Its title.
        pub title: Option<String>,
        /// What kind of notification it is. The first CLIs of version 2.0 leave it out.
        pub notification_type: Option<String>,
    }
    /// A prompt was sent.
    pub struct UserPromptSubmitInput {
        /// The prompt.
        pub prompt: String,
        /// Who sent it.
        pub source: Option<PromptSource>,
        /// The session's title.
        pub session_title: Option<String>,
    }
    /// A slash command or an MCP prompt became a prompt.
    pub struct UserPromptExpansionInput {
        /// Which of the two.
        pub expansion_type: ExpansionType,
        /// The command or prompt.
        pub command_name: String,
        /// What was given to it.
        pub command_args: String,
        /// Where it comes from.
        pub command_source: Option<String>,
        /// What it became.
        pub prompt: String,
    }
    /// A session begins.
    pub struct SessionStartInput {
        /// Why the session begins.
        pub source: SessionStartSource,
        /// The model.
        pub model: Option<String>,
        /// The session's title.
        pub session_title: Option<String>,
        /// How long ago the model last answered, for a resumed session.
        pub seconds_since_last_response: Option<f64>,
        /// How many tokens the conversation takes.
        pub context_tokens: Option<u64>,
        /// Whether the API has probably forgotten the conversation by now.
        pub prompt_cache_likely_expired: Option<bool>,
        /// What it will cost to make the API remember it again.
        pub estimated_cache_write_usd: Option<f64>,
    }
    /// A session ends.
    pub struct SessionEndInput {
        /// Why the session ends.
        pub reason: ExitReason,
    }
    /// A turn is about to end.
    pub struct StopInput {
        /// Whether the turn goes on only because a hook made it so. Blocking again without end is the hook's to avoid.
        pub stop_hook_active: bool,
        /// What the model said last.
        pub last_assistant_message: Option<String>,
        /// What still runs in the background.
        pub background_tasks: Option<Vec<BackgroundTaskSummary>>,
        /// What the session will start by itself.
        pub session_crons: Option<Vec<SessionCronSummary>>,
    }
    /// A turn ended because of an API error.
    pub struct StopFailureInput {
        /// What kind of error, as in an `assistant` message.
        pub error: AssistantError,
        /// More about it.
        pub error_details: Option<String>,
        /// What the model said last, or the error as text.
        pub last_assistant_message: Option<String>,
    }
    /// A subagent begins. `agent_id` and `agent_type` are always there.
    pub struct SubagentStartInput {}
    /// A subagent is about to end. `agent_id` and `agent_type` are always there.
    pub struct SubagentStopInput {
        /// Whether it goes on only because a hook made it so.
        pub stop_hook_active: bool,
        /// Its transcript on disk. The first CLIs of version 2.0 leave it out.
        pub agent_transcript_path: Option<String>,
        /// What it said last.
        pub last_assistant_message: Option<String>,
        /// What still runs in the background.
        pub background_tasks: Option<Vec<BackgroundTaskSummary>>,
        /// What the session will start by itself.
        pub session_crons: Option<Vec<SessionCronSummary>>,
    }
    /// The conversation is about to be compacted.
    pub struct PreCompactInput {
        /// Who wants it.
        pub trigger: CompactTrigger,
        /// What to keep in mind when summarizing.
        pub custom_instructions: Option<String>,
    }
    /// The conversation has been compacted.
    pub struct PostCompactInput {
        /// Who wanted it.
        pub trigger: CompactTrigger,
        /// The summary.
        pub compact_summary: String,
    }
    /// The model is about to be changed.
    pub struct PreModelSwitchInput {
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
    pub struct PostModelSwitchInput {
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
    pub struct PermissionRequestInput {
        /// The tool.
        pub tool_name: String,
        /// Its input.
        pub tool_input: RawJson,
        /// Changes of permissions that would spare the question next time.
        pub permission_suggestions: Option<Vec<PermissionUpdate>>,
        /// The MCP server that the tool belongs to.
        pub mcp_server: Option<McpServerProvenance>,
        /// What kind of tool asks, if it is not an ordinary one.
        pub tool_kind: Option<String>,
        /// The skill of an MCP server that asks.
        pub mcp_skill: Option<RawJson>,
    }
    /// A tool call was refused.
    pub struct PermissionDeniedInput {
        /// The tool.
        pub tool_name: String,
        /// Its input.
        pub tool_input: RawJson,
        /// The call.
        pub tool_use_id: String,
        /// Why the call was denied.
        pub reason: String,
        /// The MCP server that the tool belongs to.
        pub mcp_server: Option<McpServerProvenance>,
    }
    /// The CLI was run to set up or maintain a project.
    pub struct SetupInput {
        /// Which of the two.
        pub trigger: SetupTrigger,
    }
    /// A teammate is about to be idle.
    pub struct TeammateIdleInput {
        /// The teammate.
        pub teammate_name: String,
        /// The team.
        pub team_name: String,
    }
    /// A task of a team was created or completed.
    pub struct TaskInput {
        /// The task.
        pub task_id: String,
        /// What it is about.
        pub task_subject: String,
        /// What is to be done.
        pub task_description: Option<String>,
        /// Whose it is.
        pub teammate_name: Option<String>,
        /// The team.
        pub team_name: Option<String>,
    }
    /// An MCP server asks the user something.
    pub struct ElicitationInput {
        /// The server.
        pub mcp_server_name: String,
        /// What it asks.
        pub message: String,
        /// By form or by page.
        pub mode: Option<ElicitationMode>,
        /// The page.
        pub url: Option<String>,
        /// The question's id, for a page.
        pub elicitation_id: Option<String>,
        /// The form, as JSON Schema.
        pub requested_schema: Option<RawJson>,
    }
    /// The user answered an MCP server.
    pub struct ElicitationResultInput {
        /// The server.
        pub mcp_server_name: String,
        /// The question's id, for a page.
        pub elicitation_id: Option<String>,
        /// By form or by page.
        pub mode: Option<ElicitationMode>,
        /// What was decided: `accept`, `decline` or `cancel`.
        pub action: String,
        /// What was filled in.
        pub content: Option<RawJson>,
    }
    /// A settings file changed.
    pub struct ConfigChangeInput {
        /// Which settings changed.
        pub source: ConfigChangeSource,
        /// The file.
        pub file_path: Option<String>,
    }
    /// A worktree is to be made.
    pub struct WorktreeCreateInput {
        /// Its name.
        pub name: String,
    }
    /// A worktree is to be removed.
    pub struct WorktreeRemoveInput {
        /// Where it is.
        pub worktree_path: String,
    }
    /// A file of instructions was loaded.
    pub struct InstructionsLoadedInput {
        /// The file.
        pub file_path: String,
        /// Whose instructions these are.
        pub memory_type: InstructionsKind,
        /// Why it was loaded.
        pub load_reason: InstructionsLoadReason,
        /// The patterns that it is for.
        pub globs: Option<Vec<String>>,
        /// The file that made it load.
        pub trigger_file_path: Option<String>,
        /// The file that includes it.
        pub parent_file_path: Option<String>,
    }
    /// The working directory changed.
    pub struct CwdChangedInput {
        /// The directory until now.
        pub old_cwd: String,
        /// The new one.
        pub new_cwd: String,
    }
    /// A watched file changed.
    pub struct FileChangedInput {
        /// The file.
        pub file_path: String,
        /// What happened to it.
        pub event: FileEvent,
    }
    /// A working directory was added.
    pub struct DirectoryAddedInput {
        /// The directory.
        pub directory: String,
        /// Who added it.
        pub source: DirectoryAddedSource,
    }
    /// A shell command in the text of a skill or of a command is about to run.
    pub struct PreSkillShellCommandInput {
        /// The shell tool that runs it: `Bash` or `PowerShell`.
        pub tool_name: String,
        /// The input of that tool.
        pub tool_input: SkillShellCommand,
        /// The id of this run. No tool call of the conversation has it.
        pub tool_use_id: String,
        /// The skill or command.
        pub command_name: String,
        /// The origin of the skill or command.
        pub command_source: Option<String>,
        /// Who started the skill or command.
        pub invoked_by: SkillInvoker,
    }
    /// Text of the model is about to be shown.
    pub struct MessageDisplayInput {
        /// The turn.
        pub turn_id: String,
        /// The message.
        pub message_id: String,
        /// Which piece of the message this is, from 0.
        pub index: u64,
        /// Whether it is the last piece.
        pub r#final: bool,
        /// The text.
        pub delta: String,
    }
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
    /// What the model reads of its result: a text or content blocks ([`MessageContent`](crate::shared::MessageContent)). Hooks
    /// of one call get the tool's own structure.
    pub tool_response: Option<RawJson>,
}

/// Something that runs in the background.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct BackgroundTaskSummary {
    /// Its id.
    pub id: String,
    /// What it is: `shell`, `subagent`, …
    pub r#type: String,
    /// How it fares.
    pub status: String,
    /// What it does.
    pub description: String,
    /// The command, of a shell.
    pub command: Option<String>,
    /// The type, of an agent.
    pub agent_type: Option<String>,
    /// The server, of an MCP task.
    pub server: Option<String>,
    /// The tool, of an MCP task.
    pub tool: Option<String>,
    /// The name, of a workflow.
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
