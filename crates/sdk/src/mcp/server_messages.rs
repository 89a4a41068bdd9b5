//! What servers say to the CLI on their own account: notifications, and requests of theirs.

use std::io;
use std::sync::{Arc, OnceLock, Weak};

use outrigger_protocol::RawJson;
use outrigger_protocol::outbound::control::McpMessage;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::conn::Conn;
use crate::conn::encode_request;

/// How many messages of all servers of a session may be on their way to the CLI at once; more wait.
const MAX_UNDERWAY: usize = 64;

pub(super) struct ServerMessages {
    conn: OnceLock<Weak<Conn>>,
    /// Whether the CLI knows the servers: what they say before would reach nobody.
    open: watch::Sender<bool>,
    underway: Semaphore,
    /// Fires at the session's end, which may come before the CLI knows the servers.
    end: CancellationToken,
}

impl ServerMessages {
    pub(super) fn new(end: CancellationToken) -> Self {
        Self {
            conn: OnceLock::new(),
            open: watch::Sender::new(false),
            underway: Semaphore::new(MAX_UNDERWAY),
            end,
        }
    }

    /// Says where the CLI is.
    pub(super) fn attach(&self, conn: &Arc<Conn>) {
        // There is one connection in the life of this.
        let _ = self.conn.set(Arc::downgrade(conn));
    }

    /// Lets through what servers say.
    pub(super) fn open(&self) {
        self.open.send_replace(true);
    }

    /// Hands a JSON-RPC message of a server to the CLI, and returns once that has it.
    pub(super) async fn send(&self, server: &str, message: RawJson) -> io::Result<()> {
        let ended = || io::Error::other("the session has ended");
        let mut open = self.open.subscribe();
        let place = async {
            open.wait_for(|open| *open).await.map_err(io::Error::other)?;
            self.underway.acquire().await.map_err(io::Error::other)
        };
        let _place = self.end.run_until_cancelled(place).await.ok_or_else(ended)??;
        let conn = self.conn.get().and_then(Weak::upgrade);
        let conn = conn.ok_or_else(ended)?;
        let request = McpMessage::new(server, message);
        let request = encode_request("mcp_message", &request).map_err(io::Error::other)?;
        let deadline = conn.limits.control_deadline;
        let acknowledged = conn.request("mcp_message", request, Some(deadline)).await;
        acknowledged.map(drop).map_err(io::Error::other)
    }
}
