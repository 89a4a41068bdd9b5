//! The servers that options name, and how they are introduced.

use std::collections::BTreeMap;
use std::time::Duration;

use super::server::SdkMcpServer;

/// How long prompts wait for MCP servers unless told otherwise: the CLI itself gives a server 30 s to connect.
const WAIT: Duration = Duration::from_secs(30);

/// What of the options is about MCP servers and lives in this program.
#[derive(Clone)]
pub(crate) struct McpHosting {
    pub(crate) servers: Vec<(String, SdkMcpServer)>,
    pub(crate) manifests: bool,
    pub(crate) wait: Option<Duration>,
}

impl Default for McpHosting {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            manifests: true,
            wait: Some(WAIT),
        }
    }
}

impl McpHosting {
    pub(crate) fn servers(&self) -> BTreeMap<String, SdkMcpServer> {
        self.servers.iter().cloned().collect()
    }
}
