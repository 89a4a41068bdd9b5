//! Replaces a session's MCP servers while it runs.

use std::collections::BTreeMap;

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::{McpSdkServerConfig, McpServerConfig};

use super::server::{SdkMcpServer, check_server_name};
use crate::error::{Error, Result};

/// The MCP servers of a session, without those of settings files, for
/// [`Session::mcp_set_servers`](crate::Session::mcp_set_servers).
///
/// ```
/// use outrigger::mcp::{McpServers, SdkMcpServer};
/// use outrigger::options::{McpServerConfig, McpStdioServerConfig};
///
/// let servers = McpServers::new()
///     .sdk("calc", SdkMcpServer::new("calc"))
///     .server("files", McpServerConfig::Stdio(McpStdioServerConfig::new("mcp-files", ["."])));
/// # let _ = servers;
/// ```
#[derive(Debug, Clone, Default)]
pub struct McpServers {
    servers: Vec<(String, Server)>,
}

#[derive(Debug, Clone)]
enum Server {
    Sdk(Box<SdkMcpServer>),
    Other(Box<McpServerConfig>),
}

impl McpServers {
    /// No servers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a server in this program.
    pub fn sdk(mut self, name: impl Into<String>, server: SdkMcpServer) -> Self {
        self.servers.push((name.into(), Server::Sdk(Box::new(server))));
        self
    }

    /// Adds a server that the CLI starts or connects to.
    pub fn server(mut self, name: impl Into<String>, config: McpServerConfig) -> Self {
        self.servers.push((name.into(), Server::Other(Box::new(config))));
        self
    }

    /// The servers for the request, and those in this program.
    pub(crate) fn split(self) -> Result<(BTreeMap<String, McpServerConfig>, BTreeMap<String, SdkMcpServer>)> {
        let wrong = |name: &str, problem: &str| Error::invalid(format!("MCP server {name:?}: {problem}"));
        let (mut told, mut here) = (BTreeMap::new(), BTreeMap::new());
        for (name, server) in self.servers {
            let config = match server {
                Server::Sdk(server) => {
                    check_server_name(&name)
                        .map_err(|problem| wrong(&name, &format!("its name {problem}")))?;
                    server
                        .check()
                        .map_err(|problem| wrong(&name, &problem.to_string()))?;
                    let config = config(&name, &server)
                        .map_err(|error| wrong(&name, &format!("its settings are no JSON: {error}")))?;
                    here.insert(name.clone(), *server);
                    config
                }
                Server::Other(config) => {
                    if matches!(*config, McpServerConfig::Sdk(_)) {
                        return Err(wrong(&name, "lives in this program: add it by `sdk`"));
                    }
                    *config
                }
            };
            if told.insert(name.clone(), config).is_some() {
                return Err(wrong(&name, "there are two of this name"));
            }
        }
        Ok((told, here))
    }
}

/// The registration of a server in this program: its settings, as in `initialize`.
fn config(name: &str, server: &SdkMcpServer) -> serde_json::Result<McpServerConfig> {
    let settings = server.registration();
    let mut config = McpSdkServerConfig::new(name);
    config.timeout = settings.timeout;
    config.tools.clone_from(&settings.tools);
    config.extra = RawJson::encode(settings)?.decode()?;
    config
        .extra
        .retain(|key, _| !matches!(key.as_str(), "timeout" | "tools"));
    Ok(McpServerConfig::Sdk(config))
}

impl From<BTreeMap<String, McpServerConfig>> for McpServers {
    fn from(servers: BTreeMap<String, McpServerConfig>) -> Self {
        servers
            .into_iter()
            .fold(Self::new(), |all, (name, config)| all.server(name, config))
    }
}
