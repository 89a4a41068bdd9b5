//! Plugins to load.

use serde::{Deserialize, Serialize};

use super::closed_enum::closed_enum;

/// One plugin to load.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PluginConfig {
    /// Where plugins of this kind come from.
    pub r#type: PluginKind,
    /// The plugin's directory.
    pub path: String,
    /// Leaves the plugin's MCP servers alone.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub skip_mcp_discovery: Option<bool>,
    /// Marks a plugin that the organization demands. The CLI declares it nowhere but reads it.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub required_by_organization: Option<bool>,
}

closed_enum! {
    /// Where a plugin comes from.
    #[non_exhaustive]
    pub enum PluginKind {
        /// A directory on this machine.
        Local = "local",
    }
}

impl PluginConfig {
    /// The plugin in a directory.
    pub fn local(path: impl Into<String>) -> Self {
        Self {
            r#type: PluginKind::Local,
            path: path.into(),
            skip_mcp_discovery: None,
            required_by_organization: None,
        }
    }

    /// Leaves the plugin's MCP servers alone.
    pub fn skip_mcp_discovery(mut self) -> Self {
        self.skip_mcp_discovery = Some(true);
        self
    }
}
