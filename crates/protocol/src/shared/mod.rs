//! What goes both ways.

pub mod agent;
mod closed_enum;
pub mod effort;
pub mod mcp;
pub mod object;
pub mod output_format;
pub mod permission;
pub mod plugin;
pub mod setting_source;
pub mod system_prompt;
pub mod thinking;

pub use agent::{AgentDefinition, AgentEffort, AgentMcpServer, AgentMemory, InvalidAgent};
pub use effort::Effort;
pub use mcp::{
    McpClaudeAiProxyServerConfig, McpOrgMaxPermission, McpPermissionPolicy, McpRemoteServerConfig,
    McpSdkServerConfig, McpServerConfig, McpServerInfo, McpServerProvenance, McpServerState, McpServerStatus,
    McpServerStatusConfig, McpServerTool, McpServerToolPolicy, McpStdioServerConfig, McpToolAnnotations,
};
pub use object::{JsonObject, NotAnObject};
pub use output_format::OutputFormat;
pub use permission::{
    DirectoriesUpdate, ModeUpdate, PermissionAllow, PermissionBehavior, PermissionDecisionClassification,
    PermissionDeny, PermissionMode, PermissionResult, PermissionRuleValue, PermissionUpdate,
    PermissionUpdateDestination, ReportedPermissionMode, RulesUpdate,
};
pub use plugin::{PluginConfig, PluginKind};
pub use setting_source::SettingSource;
pub use system_prompt::SystemPrompt;
pub use thinking::{ThinkingConfig, ThinkingDisplay};

#[cfg(test)]
mod tests;
