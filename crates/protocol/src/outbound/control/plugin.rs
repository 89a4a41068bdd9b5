//! Plugins, skills and output styles.

use serde::{Deserialize, Serialize};

use super::request;
use crate::inbound::system::SlashCommand;
use crate::open_enum;
use crate::outbound::initialize::AgentInfo;
use crate::shared::{McpServerStatus, PluginConfig};

request! {
    /// Loads the plugins again.
    pub struct ReloadPlugins {
        optional {
            /// Does not do it if the API would have to read the conversation anew; the answer then says `held`.
            hold_on_cache_impact: "hold_on_cache_impact" => bool,
            /// Adds plugins.
            add_plugins: "add_plugins" => Vec<PluginConfig>,
            /// Fails with `reload_plugins_busy` while a turn runs.
            refuse_if_busy: "refuse_if_busy" => bool,
        }
    }
}

/// What there is after loading the plugins again.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReloadPluginsReply {
    /// The slash commands.
    pub commands: Vec<SlashCommand>,
    /// The subagents.
    pub agents: Vec<AgentInfo>,
    /// The plugins.
    pub plugins: Vec<LoadedPlugin>,
    /// The MCP servers.
    #[serde(rename = "mcpServers")]
    pub mcp_servers: Vec<McpServerStatus>,
    /// How many plugins failed.
    pub error_count: u64,
    /// Whether nothing was done.
    pub held: Option<bool>,
    /// Why the API would have to read the conversation anew.
    pub cache_impact: Option<CacheImpact>,
}

/// A plugin.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct LoadedPlugin {
    /// The plugin's name.
    pub name: String,
    /// The plugin's directory; `builtin` for the CLI's own.
    pub path: String,
    /// Where it comes from.
    pub source: Option<String>,
    /// The plugin's version.
    pub version: Option<String>,
}

/// Why the API would have to read the conversation anew.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CacheImpact {
    /// MCP servers that would come.
    pub mcp_servers_added: Vec<String>,
    /// MCP servers that would go.
    pub mcp_servers_removed: Vec<String>,
    /// What would become of the tool for language servers.
    pub lsp_tool_change: Option<LspToolChange>,
}

open_enum! {
    /// What would become of the tool for language servers.
    pub enum LspToolChange {
        /// The tool would be added.
        Adds = "adds",
        /// The tool might be added.
        MayAdd = "may-add",
        /// The tool would be removed.
        Removes = "removes",
        /// The tool might be removed.
        MayRemove = "may-remove",
    }
}

request! {
    /// Loads the skills again.
    pub struct ReloadSkills {}
}

/// What there is after loading the skills again.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReloadSkillsReply {
    /// The skills.
    pub skills: Vec<SlashCommand>,
}

request! {
    /// Loads the output styles again.
    pub struct ReloadOutputStyles {}
}

/// What there is after loading the output styles again.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReloadOutputStylesReply {
    /// The output styles.
    pub available_output_styles: Vec<String>,
}
