//! The options for MCP servers in this program.

use std::time::Duration;

use super::{Options, OptionsError, invalid};
use crate::mcp::{McpHosting, SdkMcpServer, check_server_name};

impl McpHosting {
    /// Checks the servers in this program.
    pub(crate) fn check(&self, options: &Options) -> Result<(), OptionsError> {
        for (index, (name, server)) in self.servers.iter().enumerate() {
            check_server_name(name).map_err(|problem| invalid("sdk_mcp_server", name, problem))?;
            if self.servers.iter().take(index).any(|(other, _)| other == name) {
                let problem = "stands for two servers";
                return Err(invalid("sdk_mcp_server", name, problem));
            }
            if options.mcp_servers.contains_key(name) {
                let problem = "is the name of one of `mcp_servers`, too: give them different names";
                return Err(invalid("sdk_mcp_server", name, problem));
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
    /// Adds an MCP server in this program. The model sees its tools as `mcp__NAME__TOOL`; each session has its own connection.
    /// `initialize.sdkMcpServers`.
    ///
    /// Its tools need permission like any other: allow them by a rule (`mcp__NAME`), or decide in the permission handler.
    ///
    /// The name is 1 to 64 of `A-Z a-z 0-9 _ -`, without two underscores in a row. [`check`](Self::check) rejects a repeated name,
    /// and a server that is [invalid](SdkMcpServer::check).
    pub fn sdk_mcp_server(mut self, name: impl Into<String>, server: SdkMcpServer) -> Self {
        self.hosting.mcp.servers.push((name.into(), server));
        self
    }

    /// Whether `initialize` already has the tools of the servers in this program; true unless set. It saves three round trips for
    /// each server before the first turn. If the servers take longer than 250 ms together, the CLI requests the tools itself.
    /// `initialize.sdkMcpServerManifests`.
    pub fn sdk_mcp_manifests(mut self, tell: bool) -> Self {
        self.hosting.mcp.manifests = tell;
        self
    }

    /// How long prompts are held back until the MCP servers of [`mcp_servers`](Self#structfield.mcp_servers) have connected,
    /// or failed; 30 s unless set, `None` to send them at once.
    ///
    /// The CLI connects its servers in the background, and would begin the first turn without the tools of slow servers. When the
    /// time is over, the prompts are sent all the same: [`Session::mcp_startup`](crate::Session::mcp_startup) reports the missing
    /// servers, and a warning is logged. For servers in this program the CLI waits by itself.
    pub fn wait_for_mcp(mut self, wait: impl Into<Option<Duration>>) -> Self {
        self.hosting.mcp.wait = wait.into();
        self
    }
}
