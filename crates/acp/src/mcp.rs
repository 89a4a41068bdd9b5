//! The editor's MCP servers.

mod names;
mod over_acp;
mod routes;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema as acp;
use outrigger::Options;
use outrigger::mcp::McpServers;
use outrigger::protocol::shared::{McpRemoteServerConfig, McpServerConfig, McpStdioServerConfig};

pub(crate) use self::over_acp::ServerMaker;
pub(crate) use self::routes::Routes;
use crate::error::bad;

/// The servers of a session, with their names in the CLI.
#[derive(Debug, Clone, Default)]
pub(crate) struct Servers(Vec<(String, Server)>);

#[derive(Debug, Clone)]
enum Server {
    /// The CLI starts the server or connects to it.
    Elsewhere(McpServerConfig),
    /// The server is in the editor.
    OverAcp(acp::McpServerAcpId),
}

impl Servers {
    /// Reads `mcpServers` of a request.
    ///
    /// # Errors
    /// When Claude Code would reject a name, when tools of two servers could have one name, or when the kind of a server is unknown.
    pub(crate) fn of(servers: &[acp::McpServer]) -> Result<Self, Error> {
        let mut taken: Vec<(String, Server)> = Vec::new();
        for (position, server) in servers.iter().enumerate() {
            let parameter = format!("mcpServers[{position}]");
            let name_is_bad = |why: String| bad(&format!("{parameter}.name"), why);
            let (name, server) = match server {
                acp::McpServer::Stdio(server) => (server.name.clone(), program(&parameter, server)?),
                acp::McpServer::Http(server) => {
                    let config = remote(&parameter, &server.url, &server.headers)?;
                    (server.name.clone(), McpServerConfig::Http(config).into())
                }
                acp::McpServer::Sse(server) => {
                    let config = remote(&parameter, &server.url, &server.headers)?;
                    (server.name.clone(), McpServerConfig::Sse(config).into())
                }
                acp::McpServer::Acp(server) => {
                    let is_it =
                        |known: &Server| matches!(known, Server::OverAcp(id) if *id == server.server_id);
                    if taken.iter().any(|(_, known)| is_it(known)) {
                        let id = &server.server_id;
                        let why = format!("there is another server with the id {:?}", id.0);
                        return Err(bad(&format!("{parameter}.serverId"), why));
                    }
                    let name = names::registered(&server.name).map_err(name_is_bad)?;
                    (name, Server::OverAcp(server.server_id.clone()))
                }
                _ => return Err(bad(&parameter, "servers of this kind can't be reached")),
            };
            names::check(&name, taken.iter().map(|(known, _)| known.as_str())).map_err(name_is_bad)?;
            taken.push((name, server));
        }
        Ok(Self(taken))
    }

    /// Adds the servers to the options of a new session.
    pub(crate) fn add_to(&self, options: Options, host: &ServerMaker) -> Options {
        self.0
            .iter()
            .fold(options, |options, (name, server)| match server {
                Server::Elsewhere(config) => options.mcp_servers(name.clone(), config.clone()),
                Server::OverAcp(id) => options.sdk_mcp_server(name.clone(), host.server(name, id)),
            })
    }

    /// The servers for a running session.
    pub(crate) fn for_session(&self, host: &ServerMaker) -> McpServers {
        self.0
            .iter()
            .fold(McpServers::new(), |servers, (name, server)| match server {
                Server::Elsewhere(config) => servers.server(name.clone(), config.clone()),
                Server::OverAcp(id) => servers.sdk(name.clone(), host.server(name, id)),
            })
    }
}

impl Servers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// The names of the servers in the editor.
    pub(crate) fn in_editor(&self) -> Vec<String> {
        let servers = self.0.iter();
        let here = servers.filter(|(_, server)| matches!(server, Server::OverAcp(_)));
        here.map(|(name, _)| name.clone()).collect()
    }

    /// The servers whose names `others` lacks, without those in the editor.
    pub(crate) fn without(&self, others: &Self) -> Self {
        let mut left = self.clone();
        left.0
            .retain(|(name, server)| matches!(server, Server::Elsewhere(_)) && !others.has(name));
        left
    }

    /// The union with servers of other names.
    pub(crate) fn and(&self, others: &Self) -> Self {
        Self(self.0.iter().chain(&others.0).cloned().collect())
    }
}

impl From<McpServerConfig> for Server {
    fn from(config: McpServerConfig) -> Self {
        Self::Elsewhere(config)
    }
}

fn program(parameter: &str, server: &acp::McpServerStdio) -> Result<Server, Error> {
    let Some(command) = server.command.to_str().filter(|command| !command.is_empty()) else {
        return Err(bad(parameter, "the command is empty or not UTF-8"));
    };
    let config = McpStdioServerConfig::new(command, server.args.clone());
    let config = server
        .env
        .iter()
        .fold(config, |config, pair| config.env(&pair.name, &pair.value));
    Ok(McpServerConfig::Stdio(config).into())
}

fn remote(parameter: &str, url: &str, headers: &[acp::HttpHeader]) -> Result<McpRemoteServerConfig, Error> {
    let scheme = url
        .split_once("://")
        .map(|(scheme, _)| scheme.to_ascii_lowercase());
    if !matches!(scheme.as_deref(), Some("http" | "https")) {
        return Err(bad(
            &format!("{parameter}.url"),
            "it begins with neither http:// nor https://",
        ));
    }
    let config = McpRemoteServerConfig::new(url);
    Ok(headers
        .iter()
        .fold(config, |config, pair| config.header(&pair.name, &pair.value)))
}
