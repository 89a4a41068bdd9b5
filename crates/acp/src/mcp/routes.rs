//! Notifications of the editor's MCP servers, on their way to the request that they are about.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema as acp;
use tokio::sync::mpsc;

/// How many notifications may wait for one request; more are left out.
const WAITING: usize = 256;

/// The requests that are open at MCP servers of an editor, by their ids. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routes(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Ids are never used again: those of another session, or of a request that was given up, are about something else.
    next: AtomicU64,
    open: Mutex<HashMap<Arc<str>, Open>>,
}

#[derive(Debug)]
struct Open {
    server: acp::McpServerAcpId,
    told: mpsc::Sender<acp::MessageMcpNotification>,
}

/// One request, until it is dropped.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) id: acp::McpRequestId,
    pub(super) told: mpsc::Receiver<acp::MessageMcpNotification>,
    shared: Arc<Shared>,
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, HashMap<Arc<str>, Open>> {
        // Valid after every line, and nothing that could panic runs while it is held.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Routes {
    /// A request at a server, with an id of its own.
    pub(super) fn open(&self, server: &acp::McpServerAcpId) -> Route {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let id = acp::McpRequestId::new(format!("outrigger-{number}"));
        let (tell, told) = mpsc::channel(WAITING);
        let open = Open {
            server: server.clone(),
            told: tell,
        };
        self.0.open().insert(Arc::clone(&id.0), open);
        Route {
            id,
            told,
            shared: Arc::clone(&self.0),
        }
    }

    /// Hands a notification to the request that it is about. What is about none is late, and let go.
    pub(crate) fn tell(&self, notification: acp::MessageMcpNotification) {
        let open = self.0.open();
        let Some(request) = open.get(&notification.request_id.0) else {
            tracing::debug!(id = %notification.request_id, "an MCP server tells something about a request that has ended");
            return;
        };
        if request.server != notification.server_id {
            tracing::warn!(server = %notification.server_id, "an MCP server tells something about another one's request");
            return;
        }
        if let Err(error) = request.told.try_send(notification) {
            tracing::warn!(%error, "an MCP server tells more than Claude Code takes; a notification was left out");
        }
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.shared.open().remove(&self.id.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(server: &'static str, id: &acp::McpRequestId) -> acp::MessageMcpNotification {
        acp::MessageMcpNotification::new(server, id.clone(), "notifications/progress")
    }

    #[test]
    fn a_notification_reaches_its_request_while_that_is_open() {
        let routes = Routes::default();
        let server = acp::McpServerAcpId::new("s");
        let (mut one, mut other) = (routes.open(&server), routes.open(&server));
        assert_ne!(one.id, other.id);
        routes.tell(told("s", &one.id));
        assert!(one.told.try_recv().is_ok());
        // Another server's, and another request's.
        routes.tell(told("t", &one.id));
        routes.tell(told("s", &acp::McpRequestId::new("nothing")));
        assert!(one.told.try_recv().is_err() && other.told.try_recv().is_err());
        // More than anybody takes.
        for _ in 0..WAITING + 10 {
            routes.tell(told("s", &other.id));
        }
        assert_eq!(other.told.len(), WAITING);
        let id = one.id.clone();
        drop(one);
        routes.tell(told("s", &id));
        assert_eq!(routes.0.open().len(), 1);
    }
}
