//! What fills the context.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/context.toml: change that instead.

use serde::{Deserialize, Serialize};

crate::outbound::control::request! {
    /// Tells what fills the context.
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
    /// What there is, by kind.
    pub categories: Vec<ContextUsageCategory>,
    /// How much is used.
    pub total_tokens: i64,
    /// How much may be used before compaction.
    pub max_tokens: i64,
    /// How much the model takes.
    pub raw_max_tokens: i64,
    /// The used part, in percent.
    pub percentage: f64,
    /// The same as rows of squares, for drawing.
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
    /// When compaction begins.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub auto_compact_threshold: Option<i64>,
    /// Where that comes from.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub autocompact_source: Option<String>,
    /// Whether compaction begins by itself.
    pub is_auto_compact_enabled: bool,
    /// What the messages consist of.
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
    /// Which kind.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub id: Option<ContextCategoryId>,
    /// What to call it.
    pub name: String,
    /// How much there is.
    pub tokens: i64,
    /// What colour the terminal gives it.
    pub color: String,
    /// Whether it comes only on demand.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub is_deferred: Option<bool>,
    /// Whether it takes room.
    pub kind: crate::inbound::ContextCategoryKind,
}

crate::open_enum! {
    /// The kinds of content.
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
    /// Whether it is used.
    pub is_filled: bool,
    /// What it stands for.
    pub category_name: String,
    /// How much of that there is.
    pub tokens: i64,
    /// How much of that there is, in percent of all.
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
    /// Whose instructions.
    #[serde(rename = "type")]
    pub kind: String,
    /// How much it takes.
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
    /// How much it takes.
    pub tokens: i64,
    /// Whether the model has it already.
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
    /// How much they take.
    pub tokens: i64,
}

/// A tool of the CLI that comes on demand.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextDeferredTool {
    /// The tool.
    pub name: String,
    /// How much it takes.
    pub tokens: i64,
    /// Whether the model has it already.
    pub is_loaded: bool,
}

/// Something with a name and a size.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContextItem {
    /// The name of the item.
    pub name: String,
    /// How much it takes.
    pub tokens: i64,
}

/// A subagent.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextSubagent {
    /// The subagent's name.
    pub agent_type: String,
    /// Where it comes from.
    pub source: String,
    /// The plugin that brought it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub plugin_id: Option<String>,
    /// The subagent's file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub path: Option<String>,
    /// How much it takes.
    pub tokens: i64,
}

/// Slash commands.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextCommands {
    /// How many there are.
    pub total_commands: u64,
    /// How many the model knows of.
    pub included_commands: u64,
    /// How much they take.
    pub tokens: i64,
}

/// Skills.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextSkills {
    /// How many there are.
    pub total_skills: u64,
    /// How many the model knows of.
    pub included_skills: u64,
    /// How much they take.
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
    /// Where it comes from.
    pub source: String,
    /// The plugin that brought it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub plugin_name: Option<String>,
    /// The same by id.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub plugin_id: Option<String>,
    /// The skill's file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub path: Option<String>,
    /// How much it takes.
    pub tokens: i64,
}

/// What the messages consist of.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct MessageBreakdown {
    /// Calls of tools.
    pub tool_call_tokens: i64,
    /// Results of tools.
    pub tool_result_tokens: i64,
    /// What the CLI attached.
    pub attachment_tokens: i64,
    /// What the model said.
    pub assistant_message_tokens: i64,
    /// Prompts.
    pub user_message_tokens: i64,
    /// What was moved elsewhere.
    pub redirected_context_tokens: i64,
    /// What belongs to nothing of that.
    pub unattributed_tokens: i64,
    /// Tools.
    pub tool_calls_by_type: Vec<ToolCallTokens>,
    /// What the CLI attached.
    pub attachments_by_type: Vec<ContextItem>,
}

/// What a tool takes.
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

/// What the API counted.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContextApiUsage {
    /// Read for the first time.
    pub input_tokens: u64,
    /// Written.
    pub output_tokens: u64,
    /// Remembered for later.
    pub cache_creation_input_tokens: u64,
    /// Remembered from before.
    pub cache_read_input_tokens: u64,
}
