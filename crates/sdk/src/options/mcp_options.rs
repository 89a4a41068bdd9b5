//! What options say of MCP servers, beside what the CLI gets to read.

use std::time::Duration;

use super::{Options, OptionsError};
use crate::mcp::{McpHosting, SdkMcpServer, check_server_name};

impl McpHosting {
    /// Finds what is wrong with the servers in this program.
    pub(crate) fn check(&self, options: &Options) -> Result<(), OptionsError> {
        for (index, (name, server)) in self.servers.iter().enumerate() {
            check_server_name(name)
                .map_err(|problem| OptionsError::invalid("sdk_mcp_server", name, problem))?;
            if self.servers.iter().take(index).any(|(other, _)| other == name) {
                let problem = "stands for two servers";
                return Err(OptionsError::invalid("sdk_mcp_server", name, problem));
            }
            if options.mcp_servers.contains_key(name) {
                let problem = "is the name of one of `mcp_servers`, too: give them different names";
                return Err(OptionsError::invalid("sdk_mcp_server", name, problem));
            }
            server.check().map_err(|problem| OptionsError::McpServer {
                name: name.clone(),
                problem: problem.to_string(),
            })?;
        }
        let own = ["sdkMcpServers", "sdkMcpServerConfigs", "sdkMcpServerManifests"];
        let set = own
            .iter()
            .find(|name| options.initialize_fields.contains_key(**name));
        match set {
            Some(name) if !self.servers.is_empty() => Err(OptionsError::InitializeField {
                name: (*name).to_owned(),
                problem: "is a field that an option has set already",
            }),
            _ => Ok(()),
        }
    }
}

/// MCP servers in this program.
impl Options {
    /// Adds an MCP server that lives in this program. The model sees its tools as `mcp__NAME__TOOL`; each session has a server
    /// of its own. `initialize.sdkMcpServers`.
    ///
    /// Its tools are asked about like any other: allow them by rule (`mcp__NAME`), or decide in the permission handler.
    ///
    /// The name is 1 to 64 of `A-Z a-z 0-9 _ -`, without two underscores in a row. A name that is given twice, and a server
    /// that is [invalid](SdkMcpServer::check), are refused by [`check`](Self::check).
    pub fn sdk_mcp_server(mut self, name: impl Into<String>, server: SdkMcpServer) -> Self {
        self.hosting.mcp.servers.push((name.into(), server));
        self
    }

    /// Whether the CLI is told ahead what the servers in this program would say of themselves and their tools; yes unless
    /// set. It spares three round trips for each server before the first turn. Servers that take longer than 250 ms
    /// together are asked by the CLI. `initialize.sdkMcpServerManifests`.
    pub fn sdk_mcp_manifests(mut self, tell: bool) -> Self {
        self.hosting.mcp.manifests = tell;
        self
    }

    /// How long prompts are held back until the MCP servers of [`mcp_servers`](Self#structfield.mcp_servers) have connected,
    /// or have failed to; 30 s unless set, `None` for not at all.
    ///
    /// The CLI connects its servers in the background, and would begin the first turn without the tools of those that are
    /// slow. When the time is over the prompts are sent all the same: [`Session::mcp_startup`](crate::Session::mcp_startup)
    /// tells what was missing, and a warning is logged. For servers in this program the CLI waits by itself.
    pub fn wait_for_mcp(mut self, wait: impl Into<Option<Duration>>) -> Self {
        self.hosting.mcp.wait = wait.into();
        self
    }
}
