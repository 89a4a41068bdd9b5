//! Plugins, skills and output styles.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/plugin.toml: change that instead.

use serde::{Deserialize, Serialize};

crate::outbound::control::request! {
    /// Loads the plugins again.
    pub struct ReloadPlugins {
        optional {
            /// Loads nothing if the API would then have to read the conversation anew. The reply has `held` then.
            hold_on_cache_impact: "hold_on_cache_impact" => bool,
            /// Plugins to add.
            add_plugins: "add_plugins" => Vec<crate::shared::PluginConfig>,
            /// Makes the request fail with `reload_plugins_busy` while a turn runs.
            refuse_if_busy: "refuse_if_busy" => bool,
        }
    }
}

/// What the session has after plugins were loaded again.
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
    /// Whether nothing was loaded.
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
    /// Where the plugin comes from.
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
    /// MCP servers that would be added.
    pub mcp_servers_added: Vec<String>,
    /// MCP servers that would be removed.
    pub mcp_servers_removed: Vec<String>,
    /// Whether the tool for language servers would be added or removed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub lsp_tool_change: Option<LspToolChange>,
}

crate::open_enum! {
    /// Whether the tool for language servers would be added or removed.
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
