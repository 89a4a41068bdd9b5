//! Routes notifications of the editor's MCP servers to the requests that they belong to.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema as acp;
use tokio::sync::mpsc;

/// How many notifications may wait for one request. More are dropped.
const WAITING: usize = 256;

/// The open requests to MCP servers of an editor, by id. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routes(Arc<RoutesInner>);

#[derive(Debug, Default)]
struct RoutesInner {
    /// Ids are never reused: a late notification must not reach another request.
    next: AtomicU64,
    open: Mutex<HashMap<Arc<str>, OpenRoute>>,
}

#[derive(Debug)]
struct OpenRoute {
    server: acp::McpServerAcpId,
    notifications: mpsc::Sender<acp::MessageMcpNotification>,
}

/// An open request.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) id: acp::McpRequestId,
    pub(super) notifications: mpsc::Receiver<acp::MessageMcpNotification>,
    shared: Arc<RoutesInner>,
}

impl RoutesInner {
    fn open(&self) -> MutexGuard<'_, HashMap<Arc<str>, OpenRoute>> {
        // The map is valid after every line, and no code that could panic runs under the lock.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Routes {
    /// Opens a request with a new id.
    pub(super) fn open(&self, server: &acp::McpServerAcpId) -> Route {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let id = acp::McpRequestId::new(format!("outrigger-{number}"));
        let (sender, notifications) = mpsc::channel(WAITING);
        let open = OpenRoute {
            server: server.clone(),
            notifications: sender,
        };
        self.0.open().insert(Arc::clone(&id.0), open);
        Route {
            id,
            notifications,
            shared: Arc::clone(&self.0),
        }
    }

    /// Passes a notification to its request. Without an open request it is late, and dropped.
    pub(crate) fn pass_on(&self, notification: acp::MessageMcpNotification) {
        let open = self.0.open();
        let Some(request) = open.get(&notification.request_id.0) else {
            tracing::debug!(id = %notification.request_id, "an MCP server tells something about a request that has ended");
            return;
        };
        if request.server != notification.server_id {
            tracing::warn!(server = %notification.server_id, "an MCP server tells something about another one's request");
            return;
        }
        if let Err(error) = request.notifications.try_send(notification) {
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

    fn progress(server: &'static str, id: &acp::McpRequestId) -> acp::MessageMcpNotification {
        acp::MessageMcpNotification::new(server, id.clone(), "notifications/progress")
    }

    #[test]
    fn a_notification_reaches_its_request_while_that_is_open() {
        let routes = Routes::default();
        let server = acp::McpServerAcpId::new("s");
        let (mut one, mut other) = (routes.open(&server), routes.open(&server));
        assert_ne!(one.id, other.id);
        routes.pass_on(progress("s", &one.id));
        assert!(one.notifications.try_recv().is_ok());
        // For another server, and for another request.
        routes.pass_on(progress("t", &one.id));
        routes.pass_on(progress("s", &acp::McpRequestId::new("nothing")));
        assert!(one.notifications.try_recv().is_err() && other.notifications.try_recv().is_err());
        // More than the queue takes.
        for _ in 0..WAITING + 10 {
            routes.pass_on(progress("s", &other.id));
        }
        assert_eq!(other.notifications.len(), WAITING);
        let id = one.id.clone();
        drop(one);
        routes.pass_on(progress("s", &id));
        assert_eq!(routes.0.open().len(), 1);
    }
}
