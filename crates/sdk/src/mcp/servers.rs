//! Changing a session's MCP servers while it runs.

use std::collections::BTreeMap;

use outrigger_protocol::outbound::SdkMcpServerSettings;
use outrigger_protocol::outbound::control::{McpSetServers, McpSetServersReply};
use outrigger_protocol::shared::{McpSdkServerConfig, McpServerConfig};

use super::server::{SdkMcpServer, check_server_name};
use crate::error::{Error, Result};
use crate::session::Session;

/// The MCP servers that a session is to have besides those of settings files: for
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
    /// None.
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

    /// The servers as the CLI is to be told, and those that are here.
    fn split(self) -> Result<(BTreeMap<String, McpServerConfig>, BTreeMap<String, SdkMcpServer>)> {
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
                    let config = config(&name, &server).ok_or_else(|| {
                        wrong(&name, "has settings that can only be told when a session starts")
                    })?;
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

/// What the CLI is told of a server here; `None` if that can't be all of its settings.
fn config(name: &str, server: &SdkMcpServer) -> Option<McpServerConfig> {
    let settings = server.registration();
    let mut told = SdkMcpServerSettings::default();
    told.timeout = settings.timeout;
    told.tools.clone_from(&settings.tools);
    if told != *settings {
        return None;
    }
    let mut config = McpSdkServerConfig::new(name);
    config.timeout = settings.timeout;
    config.tools.clone_from(&settings.tools);
    Some(McpServerConfig::Sdk(config))
}

impl From<BTreeMap<String, McpServerConfig>> for McpServers {
    fn from(servers: BTreeMap<String, McpServerConfig>) -> Self {
        servers
            .into_iter()
            .fold(Self::new(), |all, (name, config)| all.server(name, config))
    }
}

impl Session {
    /// Replaces the MCP servers that were set at run time, and those in this program, by these: what is not among them is
    /// disconnected, and ends here if it is a server in this program. Servers of settings files stay. A server that fails is
    /// in `errors`, and may be in `added` too; those in this program connect after the answer:
    /// [`mcp_ready`](Self::mcp_ready) waits for them.
    ///
    /// A server in this program that has the name of another one takes its place. The CLI keeps what it knows by name, so it is
    /// told to let the old ones go first: such a name is in both `removed` and `added`.
    ///
    /// Sends `mcp_set_servers`, twice if a server takes another's place.
    ///
    /// # Cancel safety
    /// As [`request`](Self::request). Dropped before the answer, the new servers in this program are there for the CLI
    /// to connect to, and the old ones have not ended.
    ///
    /// # Errors
    /// When two servers have one name or one is invalid; nothing was sent then. As [`request`](Self::request) besides; no server
    /// in this program has ended then.
    pub async fn mcp_set_servers(&self, servers: impl Into<McpServers>) -> Result<McpSetServersReply> {
        let (told, here) = servers.into().split()?;
        let bridge = self.bridge();
        let _alone = bridge.setting.lock().await;
        let before = bridge.recipes();
        let other = |name: &String| match (here.get(name), before.get(name)) {
            (Some(now), Some(before)) => !now.is_same(before),
            _ => false,
        };
        bridge.add(&here);
        let mut released = None;
        if here.keys().any(other) {
            let rest = told.iter().filter(|(name, _)| !other(name));
            let rest: BTreeMap<_, _> = rest
                .map(|(name, config)| (name.clone(), config.clone()))
                .collect();
            released = Some(self.request(&McpSetServers::new(rest)).await?);
        }
        let mut reply = self.request(&McpSetServers::new(told)).await?;
        bridge.replace(here);
        if let Some(released) = released {
            reply.added.splice(0..0, released.added);
            reply.removed.splice(0..0, released.removed);
        }
        Ok(reply)
    }
}
