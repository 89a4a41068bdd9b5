//! What of a connection is shared: the sessions, what the editor can, and the CLI that was started ahead.

mod spare_slot;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema as acp;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use self::spare_slot::{SpareRequest, SpareSlot, WarmSpare};
use crate::answer::Answer;
use crate::client::gate::Gate;
use crate::client::{Client, Connection, KnownAccount};
use crate::config::Config;
use crate::session::Handle;
use crate::{error, mcp};

/// The most sessions that may be open at once: each is a process of some 200 MB.
const MOST: usize = 64;

/// What of a connection is shared.
pub(crate) struct Hub {
    pub(crate) config: Config,
    /// What MCP servers that live in the editor tell, on its way.
    pub(crate) routes: mcp::Routes,
    gate: Arc<Gate>,
    capabilities: Mutex<Arc<acp::ClientCapabilities>>,
    known_auth: Arc<KnownAccount>,
    sessions: Mutex<HashMap<String, Handle>>,
    spare: SpareSlot,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Hub {
    pub(crate) fn new(config: Config, gate: Arc<Gate>, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            config,
            routes: mcp::Routes::default(),
            gate,
            capabilities: Mutex::default(),
            known_auth: Arc::default(),
            sessions: Mutex::default(),
            spare: SpareSlot::default(),
            tasks: TaskTracker::new(),
            stop,
        })
    }

    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Where the CLI is that was started ahead.
    pub(crate) fn spare(&self) -> &SpareSlot {
        &self.spare
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, HashMap<String, Handle>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The editor said what it can.
    pub(crate) fn introduced(&self, client: acp::ClientCapabilities) {
        *self.capabilities.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(client);
    }

    /// Who is signed in, as far as it is known.
    pub(crate) fn known_auth(&self) -> &KnownAccount {
        &self.known_auth
    }

    pub(crate) fn client(&self, connection: impl Into<Connection>) -> Client {
        let capabilities = self.capabilities.lock().unwrap_or_else(PoisonError::into_inner);
        Client::new(
            connection.into(),
            Arc::clone(&self.gate),
            Arc::clone(&capabilities),
            Arc::clone(&self.known_auth),
        )
    }

    /// Runs something of the connection's, which is ended with it.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Waits for all that runs, once the connection has ended.
    pub(crate) async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Answers a request from a task, unless the editor takes it back or goes away first.
    pub(crate) fn answer<T, F>(self: &Arc<Self>, answer: Answer<T>, work: F)
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let stop = self.stop.clone();
        self.spawn(async move {
            let cancellation = answer.cancellation();
            let work = cancellation.run_until_cancelled(work);
            tokio::select! {
                told = work => answer.give(told),
                () = stop.cancelled() => {}
            }
        });
    }

    /// The session of an id.
    pub(crate) fn session(&self, id: &acp::SessionId) -> Result<Handle, Error> {
        let id = id.0.as_ref();
        self.sessions()
            .get(id)
            .cloned()
            .ok_or_else(|| error::no_session(id))
    }

    /// Enters a session.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn enter(&self, id: &acp::SessionId, session: Handle) -> Result<(), Error> {
        let mut sessions = self.sessions();
        if sessions.len() >= MOST {
            return Err(error::internal(format!(
                "{MOST} sessions are open already; close one of them"
            )));
        }
        sessions.insert(id.0.to_string(), session);
        Ok(())
    }

    /// Forgets a session that ended by itself, unless another has taken its place.
    pub(crate) fn leave(&self, id: &acp::SessionId, session: &Handle) {
        let mut sessions = self.sessions();
        if sessions
            .get(id.0.as_ref())
            .is_some_and(|entered| entered.is(session))
        {
            sessions.remove(id.0.as_ref());
        }
    }
}
