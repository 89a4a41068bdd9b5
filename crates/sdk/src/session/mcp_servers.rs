//! The MCP servers of a running session: waiting for them, replacing them, and the session that their tools see.

use std::collections::BTreeMap;
use std::time::Duration;

use outrigger_protocol::outbound::control::{McpSetServers, McpSetServersReply};
use outrigger_protocol::shared::McpServerStatus;

use super::Session;
use crate::error::{Error, Result};
#[cfg(feature = "tools")]
use crate::mcp::ToolContext;
use crate::mcp::{McpServers, McpStartup, settle};

impl Session {
    /// Waits until MCP servers have connected, those in this program and those of the CLI: the named ones, or all of the CLI's
    /// when no name is given. Sends `mcp_status` until no server is connecting any more, or the deadline passes.
    ///
    /// # Cancel safety
    /// Dropping the future only stops the waiting.
    ///
    /// # Errors
    /// When a server failed, is switched off, needs a sign-in, or is not connected in time: [`Error::as_mcp_not_ready`] names
    /// them. Also as [`request`](Self::request).
    pub async fn mcp_ready<S: Into<String>>(
        &self,
        names: impl IntoIterator<Item = S>,
        deadline: Duration,
    ) -> Result<Vec<McpServerStatus>> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let standing = settle(self.conn(), &names, deadline).await?;
        standing.result(deadline).map_err(Error::of)
    }

    /// The result of waiting for MCP servers before the first prompt; see
    /// [`Options::wait_for_mcp`](crate::Options::wait_for_mcp).
    pub fn mcp_startup(&self) -> McpStartup {
        self.startup_of_mcp().borrow().clone()
    }
}

impl Session {
    /// Replaces the MCP servers that were set at run time, and those in this program. The CLI disconnects the others; a server in
    /// this program ends. Servers of settings files stay. A server that fails is in `errors`, and may be in `added`, too. Servers
    /// in this program connect after the reply: [`mcp_ready`](Self::mcp_ready) waits for them.
    ///
    /// A server in this program replaces another one of its name. The CLI caches by name, so the SDK removes the old server first:
    /// such a name is in both `removed` and `added`.
    ///
    /// Sends `mcp_set_servers`, twice if a server replaces another.
    ///
    /// # Cancel safety
    /// As [`request`](Self::request). Dropped before the answer, the new servers in this program are there for the CLI
    /// to connect to, and the old ones have not ended.
    ///
    /// # Errors
    /// When two servers have one name or a server is invalid; then nothing was sent. Also as [`request`](Self::request); then no
    /// server in this program has ended.
    pub async fn mcp_set_servers(&self, servers: impl Into<McpServers>) -> Result<McpSetServersReply> {
        let (told, here) = servers.into().split()?;
        let bridge = self.bridge();
        let _alone = bridge.setting.lock().await;
        let others = bridge.others(&here);
        bridge.add(&here);
        let mut released = None;
        if !others.is_empty() {
            let rest = told.iter().filter(|(name, _)| !others.contains(*name));
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

#[cfg(feature = "tools")]
impl ToolContext {
    /// The session. A tool may call its control methods. A tool must not wait for a prompt: the turn waits for the tool.
    ///
    /// `None` once the last handle was dropped. The handle keeps the session from ending.
    pub fn session(&self) -> Option<Session> {
        self.request()?.session()
    }
}
