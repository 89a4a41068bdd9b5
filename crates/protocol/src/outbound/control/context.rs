//! What fills the context.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/context.toml: change that instead.

use serde::{Deserialize, Serialize};

crate::outbound::control::request! {
    /// Reports what fills the context.
    pub struct GetContextUsage {
        optional {
            /// How much to report; everything by default.
            detail: "detail" => ContextDetail,
        }
    }
}

crate::shared::closed_enum::closed_enum! {
    /// How much to report about the context.
    #[non_exhaustive]
    pub enum ContextDetail {
        /// The sums, without asking the API to count.
        Summary = "summary",
        /// Everything.
        Full = "full",
    }
}

/// What fills the context. All sizes are tokens and estimates.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetContextUsageReply {
    /// The content by kind.
    pub categories: Vec<ContextUsageCategory>,
    /// The tokens in use.
    pub total_tokens: i64,
    /// The tokens that may be in use before the conversation is compacted.
    pub max_tokens: i64,
    /// The tokens of the model's context window.
    pub raw_max_tokens: i64,
    /// The used part, in percent.
    pub percentage: f64,
    /// The same as rows of squares, for a drawing.
    pub grid_rows: Vec<Vec<ContextGridSquare>>,
    /// The model.
    pub model: String,
    /// Files of instructions.
    pub memory_files: Vec<ContextFile>,
    /// Tools of MCP servers.
    pub mcp_tools: Vec<ContextTool>,
    /// Instructions of MCP servers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mcp_instructions: Option<Vec<ContextServer>>,
    /// Tools of the CLI that are offered on demand.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub deferred_builtin_tools: Option<Vec<ContextDeferredTool>>,
    /// Tools of the CLI.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub system_tools: Option<Vec<ContextItem>>,
    /// Parts of the system prompt.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub system_prompt_sections: Option<Vec<ContextItem>>,
    /// Subagents.
    pub agents: Vec<ContextSubagent>,
    /// Slash commands.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub slash_commands: Option<ContextCommands>,
    /// Skills.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub skills: Option<ContextSkills>,
    /// The tokens in use at which compaction begins by itself.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub auto_compact_threshold: Option<i64>,
    /// What `auto_compact_threshold` comes from.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub autocompact_source: Option<String>,
    /// Whether compaction begins by itself.
    pub is_auto_compact_enabled: bool,
    /// What the messages of the conversation consist of.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub message_breakdown: Option<MessageBreakdown>,
    /// What the API counted last; `None` before the first call.
    pub api_usage: Option<ContextApiUsage>,
}

/// One kind of content.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextUsageCategory {
    /// The kind of the content.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub id: Option<ContextCategoryId>,
    /// The kind, in words for people.
    pub name: String,
    /// The tokens of this content.
    pub tokens: i64,
    /// The colour that the terminal gives this content.
    pub color: String,
    /// Whether the content comes only on demand.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub is_deferred: Option<bool>,
    /// Whether the content takes room in the context.
    pub kind: crate::inbound::ContextCategoryKind,
}

crate::open_enum! {
    /// Which kind of content.
    pub enum ContextCategoryId {
        /// The system prompt.
        SystemPrompt = "system_prompt",
        /// Tools of the CLI.
        SystemTools = "system_tools",
        /// Tools of MCP servers.
        McpTools = "mcp_tools",
        /// Instructions of MCP servers.
        McpInstructions = "mcp_instructions",
        /// Tools of MCP servers that come on demand.
        McpToolsDeferred = "mcp_tools_deferred",
        /// Tools of the CLI that come on demand.
        SystemToolsDeferred = "system_tools_deferred",
        /// Subagents.
        CustomAgents = "custom_agents",
        /// Files of instructions.
        MemoryFiles = "memory_files",
        /// Skills.
        Skills = "skills",
        /// The conversation.
        Messages = "messages",
        /// Room kept for compaction that begins by itself.
        AutocompactBuffer = "autocompact_buffer",
        /// Room kept for compaction.
        CompactBuffer = "compact_buffer",
        /// Free room.
        FreeSpace = "free_space",
    }
}

/// One square of the drawing.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextGridSquare {
    /// The square's colour.
    pub color: String,
    /// Whether the square stands for content.
    pub is_filled: bool,
    /// The kind of content that the square stands for.
    pub category_name: String,
    /// The tokens of this kind of content.
    pub tokens: i64,
    /// The tokens of this kind of content, in percent of the context window.
    pub percentage: f64,
    /// How full this square is, from 0 to 1.
    pub square_fullness: f64,
}

/// A file of instructions.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContextFile {
    /// The file.
    pub path: String,
    /// Whose instructions these are.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its tokens.
    pub tokens: i64,
}

/// A tool of an MCP server.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextTool {
    /// The tool.
    pub name: String,
    /// The server.
    pub server_name: String,
    /// Its tokens.
    pub tokens: i64,
    /// Whether the tool's description is in the context already.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub is_loaded: Option<bool>,
}

/// The instructions of an MCP server.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextServer {
    /// The server.
    pub server_name: String,
    /// Their tokens.
    pub tokens: i64,
}

/// A tool of the CLI that comes on demand.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextDeferredTool {
    /// The tool.
    pub name: String,
    /// Its tokens.
    pub tokens: i64,
    /// Whether the tool's description is in the context already.
    pub is_loaded: bool,
}

/// A part of the context with a name.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContextItem {
    /// The name of the item.
    pub name: String,
    /// Its tokens.
    pub tokens: i64,
}

/// A subagent.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextSubagent {
    /// The subagent's name.
    pub agent_type: String,
    /// Where the subagent comes from.
    pub source: String,
    /// The id of the plugin that the subagent comes from.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub plugin_id: Option<String>,
    /// The subagent's file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub path: Option<String>,
    /// Its tokens.
    pub tokens: i64,
}

/// Slash commands.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextCommands {
    /// How many slash commands there are.
    pub total_commands: u64,
    /// How many of them the context describes.
    pub included_commands: u64,
    /// Their tokens.
    pub tokens: i64,
}

/// Skills.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextSkills {
    /// How many skills there are.
    pub total_skills: u64,
    /// How many of them the context describes.
    pub included_skills: u64,
    /// Their tokens.
    pub tokens: i64,
    /// The skills.
    pub skill_frontmatter: Vec<ContextSkillFile>,
}

/// A skill.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextSkillFile {
    /// The skill's name.
    pub name: String,
    /// Where the skill comes from.
    pub source: String,
    /// The plugin that the skill comes from.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub plugin_name: Option<String>,
    /// The id of that plugin.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub plugin_id: Option<String>,
    /// The skill's file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub path: Option<String>,
    /// Its tokens.
    pub tokens: i64,
}

/// What the messages of the conversation consist of.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct MessageBreakdown {
    /// Tokens of calls of tools.
    pub tool_call_tokens: i64,
    /// Tokens of results of tools.
    pub tool_result_tokens: i64,
    /// Tokens of what the CLI attached.
    pub attachment_tokens: i64,
    /// Tokens of what the model said.
    pub assistant_message_tokens: i64,
    /// Tokens of prompts.
    pub user_message_tokens: i64,
    /// Tokens of what was moved out of the context.
    pub redirected_context_tokens: i64,
    /// Tokens that belong to nothing of these.
    pub unattributed_tokens: i64,
    /// The tokens of each tool.
    pub tool_calls_by_type: Vec<ToolCallTokens>,
    /// The tokens of each kind of attachment.
    pub attachments_by_type: Vec<ContextItem>,
}

/// The tokens of the calls of a tool.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ToolCallTokens {
    /// The tool.
    pub name: String,
    /// Tokens of the calls.
    pub call_tokens: i64,
    /// Tokens of the results.
    pub result_tokens: i64,
}

/// The tokens that the API counted.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContextApiUsage {
    /// Input tokens that were not cached.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens that were written to the cache.
    pub cache_creation_input_tokens: u64,
    /// Input tokens that were read from the cache.
    pub cache_read_input_tokens: u64,
}
