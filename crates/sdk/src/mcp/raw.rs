//! Servers that read and write JSON-RPC themselves.

use std::fmt;
use std::io;
use std::sync::Arc;

use outrigger_protocol::RawJson;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::connection::{ConnectionInner, ServerLink};
use super::jsonrpc::MessageHead;
use super::panics::caught;
use super::server_messages::ServerMessages;
use crate::conn::Context;
use crate::peer::BoxFuture;

/// How many messages of a server may wait for the CLI.
const MAX_SENDING: usize = 1024;

/// The function that serves one connection, and stops when the token fires.
pub(super) type Serve = Arc<dyn Fn(RawConnection, CancellationToken) -> BoxFuture<'static, ()> + Send + Sync>;

/// A connection of the CLI to a server that [reads and writes JSON-RPC itself](super::SdkMcpServer::from_raw).
///
/// It begins with the CLI's `initialize`, and ends when the CLI connects anew or the session ends.
pub struct RawConnection {
    pub(super) link: ServerLink,
}

/// A JSON-RPC message of the CLI for a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RawMessage {
    /// The message: a request, a notification, or an answer to a request of the server's. Its `method` is a text and its `id` a
    /// string or a whole number, where it has them.
    pub message: RawJson,
    /// The context of the CLI request with this message; it reports when the CLI withdraws the request. `None` for requests of the
    /// SDK itself before the start, for [manifests](crate::Options::sdk_mcp_manifests).
    pub context: Option<Context>,
}

impl RawConnection {
    pub(super) fn new(link: ServerLink) -> Self {
        Self { link }
    }

    #[cfg(feature = "tools")]
    pub(super) fn server_name(&self) -> Arc<str> {
        Arc::clone(&self.link.sender.name)
    }

    /// The next message of the CLI; `None` once the connection has ended. Up to 4,096 messages wait here; requests beyond that get
    /// a JSON-RPC error.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<RawMessage> {
        self.link.next().await
    }

    /// The sender to the CLI.
    pub fn sender(&self) -> RawSender {
        self.link.sender.clone()
    }
}

impl fmt::Debug for RawConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawConnection")
            .field("server", &self.link.sender.name)
            .finish_non_exhaustive()
    }
}

/// Sends messages of a server to the CLI. It is cheap to clone.
#[derive(Clone)]
pub struct RawSender {
    pub(super) name: Arc<str>,
    pub(super) shared: Arc<ConnectionInner>,
    outlet: Arc<ServerMessages>,
    /// Counts the messages that wait for the CLI.
    sending: Arc<Semaphore>,
}

impl RawSender {
    pub(super) fn new(name: &str, shared: Arc<ConnectionInner>, outlet: Arc<ServerMessages>) -> Self {
        Self {
            name: Arc::from(name),
            shared,
            outlet,
            sending: Arc::new(Semaphore::new(MAX_SENDING)),
        }
    }

    /// Sends a JSON-RPC message to the CLI. A response goes at once to the request of its id; without an open request it is
    /// dropped. A notification or a request waits until the session has started and the CLI has accepted the message; the response
    /// to a request comes as a [message](RawConnection::next).
    ///
    /// # Cancel safety
    /// The message may have been sent or not.
    ///
    /// # Errors
    /// `InvalidInput` if it is not a JSON-RPC message; another kind when the session has ended, or 1,024 messages wait already.
    pub async fn send(&self, message: RawJson) -> io::Result<()> {
        let is_object = message.get().trim_start().starts_with('{');
        let head = message.decode::<MessageHead>().ok().filter(|_| is_object);
        let invalid = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        match head {
            None => invalid("it is no JSON object with a text as its method"),
            Some(MessageHead {
                method: Some(method), ..
            }) => {
                self.send_unanswered(message, method == "notifications/tools/list_changed")
                    .await
            }
            Some(head) => match head.id() {
                Some(id) => {
                    self.shared.answer(&id, message);
                    Ok(())
                }
                None => invalid("it has neither a method nor the id of a request"),
            },
        }
    }

    /// Sends a notification or a request.
    pub(super) async fn send_unanswered(&self, message: RawJson, is_change_of_tools: bool) -> io::Result<()> {
        let Ok(_place) = self.sending.try_acquire() else {
            let why = "too many messages of this server wait for the CLI";
            return Err(io::Error::other(why));
        };
        if is_change_of_tools {
            self.shared.tools_changed();
        }
        self.outlet.send(&self.name, message).await
    }
}

impl fmt::Debug for RawSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawSender")
            .field("server", &self.name)
            .finish_non_exhaustive()
    }
}

/// Runs a server on its connection until one of the two ends.
pub(super) async fn run(serve: Serve, link: ServerLink, end: CancellationToken) {
    let name = Arc::clone(&link.sender.name);
    match caught(|| serve(RawConnection::new(link), end)).await {
        Ok(()) => tracing::debug!(server = %name, "an MCP server ended"),
        Err(panic) => tracing::error!(server = %name, panic, "an MCP server panicked"),
    }
}
