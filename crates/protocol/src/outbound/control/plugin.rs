//! Plugins, skills and output styles.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/plugin.toml: change that instead.

use serde::{Deserialize, Serialize};

crate::outbound::control::request! {
    /// Loads the plugins again.
    pub struct ReloadPlugins {
        optional {
            /// Does not do it if the API would have to read the conversation anew; the answer then says `held`.
            hold_on_cache_impact: "hold_on_cache_impact" => bool,
            /// Adds plugins.
            add_plugins: "add_plugins" => Vec<crate::shared::PluginConfig>,
            /// Fails with `reload_plugins_busy` while a turn runs.
            refuse_if_busy: "refuse_if_busy" => bool,
        }
    }
}

/// What there is after loading the plugins again.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ReloadPluginsReply {
    /// The slash commands.
    pub commands: Vec<crate::inbound::system::SlashCommand>,
    /// The subagents.
    pub agents: Vec<crate::outbound::initialize::AgentInfo>,
    /// The plugins.
    pub plugins: Vec<LoadedPlugin>,
    /// The MCP servers.
    pub mcp_servers: Vec<crate::shared::McpServerStatus>,
    /// How many plugins failed.
    #[serde(rename = "error_count")]
    pub error_count: u64,
    /// Whether nothing was done.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub held: Option<bool>,
    /// Why the API would have to read the conversation anew.
    #[serde(rename = "cache_impact", skip_serializing_if = "crate::whole::unset")]
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
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub source: Option<String>,
    /// The plugin's version.
    #[serde(skip_serializing_if = "crate::whole::unset")]
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
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub lsp_tool_change: Option<LspToolChange>,
}

crate::open_enum! {
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

crate::outbound::control::request! {
    /// Loads the skills again.
    pub struct ReloadSkills {}
}

/// What there is after loading the skills again.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReloadSkillsReply {
    /// The skills.
    pub skills: Vec<crate::inbound::system::SlashCommand>,
}

crate::outbound::control::request! {
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
