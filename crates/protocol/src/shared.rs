//! What goes both ways.

pub mod agent;
mod assistant_error;
mod citation;
pub(crate) mod closed_enum;
mod content;
pub mod effort;
mod elicitation;
pub mod hook;
pub mod mcp;
pub mod object;
mod origin;
pub mod output_format;
pub mod permission;
pub mod plugin;
mod request_id;
mod server_tool;
pub mod setting_source;
mod source;
pub mod system_prompt;
mod text_or;
pub mod thinking;
mod usage;

pub use agent::{AgentDefinition, AgentEffort, AgentMcpServer, AgentMemory, InvalidAgent};
pub use assistant_error::AssistantError;
pub use citation::*;
pub use content::*;
pub use effort::Effort;
pub use elicitation::ElicitationMode;
pub use hook::{AnyHookOutput, HookEvent, HookInput, HookKind, HookOutput};
pub use mcp::{
    McpClaudeAiProxyServerConfig, McpOrgMaxPermission, McpPermissionPolicy, McpRemoteServerConfig,
    McpSdkServerConfig, McpServerConfig, McpServerInfo, McpServerProvenance, McpServerState, McpServerStatus,
    McpServerStatusConfig, McpServerTool, McpServerToolPolicy, McpStdioServerConfig, McpToolAnnotations,
};
pub use object::{JsonObject, NotAnObject};
pub use origin::*;
pub use output_format::OutputFormat;
pub use permission::{
    DirectoriesUpdate, ModeUpdate, PermissionAllow, PermissionBehavior, PermissionDecisionClassification,
    PermissionDeny, PermissionMode, PermissionResult, PermissionRuleValue, PermissionUpdate,
    PermissionUpdateDestination, ReportedPermissionMode, RulesUpdate,
};
pub use plugin::{PluginConfig, PluginKind};
pub use request_id::RequestId;
pub use server_tool::*;
pub use setting_source::SettingSource;
pub use source::*;
pub use system_prompt::SystemPrompt;
pub use text_or::{ListOr, TextOr};
pub use thinking::{ThinkingConfig, ThinkingDisplay};
pub use usage::*;
