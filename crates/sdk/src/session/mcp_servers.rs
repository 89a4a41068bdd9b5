//! The MCP servers of a session that runs: waiting for them, changing them, and the session as their tools see it.

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
    /// Waits until MCP servers have connected, those in this program and those of the CLI: the named ones, or all that the CLI
    /// has when no name is given. Asks for `mcp_status` until none is being connected, but not for longer than the deadline.
    ///
    /// # Cancel safety
    /// Dropping the future stops nothing but the waiting.
    ///
    /// # Errors
    /// When one of them failed, is switched off or wants somebody to sign in, or is not connected in time:
    /// [`Error::as_mcp_not_ready`] names them. As [`request`](Self::request) besides.
    pub async fn mcp_ready<S: Into<String>>(
        &self,
        names: impl IntoIterator<Item = S>,
        deadline: Duration,
    ) -> Result<Vec<McpServerStatus>> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let standing = settle(self.conn(), &names, deadline).await?;
        standing.result(deadline).map_err(Error::of)
    }

    /// What became of the MCP servers that the first prompt waits for; see
    /// [`Options::wait_for_mcp`](crate::Options::wait_for_mcp).
    pub fn mcp_startup(&self) -> McpStartup {
        self.startup_of_mcp().borrow().clone()
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

#[cfg(feature = "tools")]
impl ToolContext {
    /// The session. Its control methods may be called from within a tool; a prompt that is waited for here would wait for the
    /// turn that waits for this tool.
    ///
    /// `None` once its last handle was dropped. Holding it keeps the session from ending.
    pub fn session(&self) -> Option<Session> {
        self.request()?.session()
    }
}
