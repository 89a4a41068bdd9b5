//! The MCP servers that the editor brings along, as the CLI takes them.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema as acp;
use outrigger::protocol::shared::{McpRemoteServerConfig, McpServerConfig, McpStdioServerConfig};

use crate::error::bad;

/// The servers by name.
///
/// # Errors
/// When two have the same name, or one is of a kind that is not known.
pub(crate) fn servers(servers: &[acp::McpServer]) -> Result<Vec<(String, McpServerConfig)>, Error> {
    let mut taken: Vec<(String, McpServerConfig)> = Vec::new();
    for (position, server) in servers.iter().enumerate() {
        let parameter = format!("mcpServers[{position}]");
        let (name, config) = match server {
            acp::McpServer::Stdio(server) => {
                let Some(command) = server.command.to_str() else {
                    return Err(bad(&parameter, "the command is not UTF-8"));
                };
                let config = McpStdioServerConfig::new(command, server.args.clone());
                let config = server
                    .env
                    .iter()
                    .fold(config, |config, pair| config.env(&pair.name, &pair.value));
                (&server.name, McpServerConfig::Stdio(config))
            }
            acp::McpServer::Http(server) => (
                &server.name,
                McpServerConfig::Http(remote(&server.url, &server.headers)),
            ),
            acp::McpServer::Sse(server) => (
                &server.name,
                McpServerConfig::Sse(remote(&server.url, &server.headers)),
            ),
            _ => return Err(bad(&parameter, "servers of this kind can't be reached")),
        };
        if taken.iter().any(|(known, _)| known == name) {
            return Err(bad(&parameter, format!("there is another server {name:?}")));
        }
        taken.push((name.clone(), config));
    }
    Ok(taken)
}

fn remote(url: &str, headers: &[acp::HttpHeader]) -> McpRemoteServerConfig {
    let config = McpRemoteServerConfig::new(url);
    headers
        .iter()
        .fold(config, |config, pair| config.header(&pair.name, &pair.value))
}
