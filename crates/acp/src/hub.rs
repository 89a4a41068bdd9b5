//! What the sessions and handlers of a connection share.

mod openings;
mod spare_slot;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema as acp;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use self::openings::OpeningSession;
use self::openings::Openings;
pub(crate) use self::spare_slot::{SpareRequest, SpareSlot, WarmSpare};
use crate::client::gate::WriteGate;
use crate::client::{Client, Connection, KnownAccount};
use crate::config::Config;
use crate::response_sender::ResponseSender;
use crate::session::{Handle, SessionCommand};
use crate::{children, error, mcp};

/// How many sessions may be open at once. Each has a process of about 200 MB.
const MOST: usize = 64;

/// What the sessions and handlers of a connection share.
pub(crate) struct Hub {
    pub(crate) config: Config,
    /// Routes notifications of MCP servers in the editor.
    pub(crate) routes: mcp::Routes,
    gate: Arc<WriteGate>,
    capabilities: Mutex<Arc<acp::ClientCapabilities>>,
    known_auth: Arc<KnownAccount>,
    /// The sessions that have not ended.
    sessions: Mutex<HashMap<String, Handle>>,
    /// The locks of the sessions that requests open or end now.
    locks: Mutex<HashMap<String, Weak<AsyncMutex<()>>>>,
    openings: Openings,
    spare: SpareSlot,
    tasks: TaskTracker,
    stop: CancellationToken,
    handled: CancellationToken,
}

impl Hub {
    pub(crate) fn new(config: Config, gate: Arc<WriteGate>, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            config,
            routes: mcp::Routes::default(),
            gate,
            capabilities: Mutex::default(),
            known_auth: Arc::default(),
            sessions: Mutex::default(),
            locks: Mutex::default(),
            openings: Openings::default(),
            spare: SpareSlot::default(),
            tasks: TaskTracker::new(),
            stop,
            handled: CancellationToken::new(),
        })
    }

    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Fires behind [`stop`](Self::stop), when no message of the editor is left to be handled.
    pub(crate) fn handled(&self) -> &CancellationToken {
        &self.handled
    }

    pub(crate) fn spare(&self) -> &SpareSlot {
        &self.spare
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, HashMap<String, Handle>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the editor's capabilities.
    pub(crate) fn set_capabilities(&self, client: acp::ClientCapabilities) {
        *self.capabilities.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(client);
    }

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

    /// Spawns a task whose end the end of the connection waits for.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// The tasks whose end the end of the connection waits for.
    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Waits for all tasks, after the connection has ended.
    pub(crate) async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Answers a request from a task, unless the editor cancels it or the connection ends first.
    pub(crate) fn answer<T, F>(self: &Arc<Self>, answer: ResponseSender<T>, work: F)
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

    /// The open session with this id.
    pub(crate) fn session(&self, id: &acp::SessionId) -> Result<Handle, Error> {
        let name = id.0.as_ref();
        let known = self.sessions().get(name).cloned();
        let open = known.filter(|session| !session.is_closed());
        open.ok_or_else(|| match self.child(id) {
            Some(_) => error::bad(
                "sessionId",
                "the session of a subagent can be cancelled, and nothing else",
            ),
            None => error::no_session(name),
        })
    }

    /// Passes a command to its session, once it is open if a request opens it now.
    pub(crate) fn command(&self, id: &acp::SessionId, command: SessionCommand) {
        let Some(command) = self.openings.keep(id, command) else {
            return;
        };
        match self.session(id) {
            Ok(session) => session.command(command),
            Err(error) => command.refuse(error),
        }
    }

    /// Cancels the prompts of a session, or the work of a subagent of one. The session may be about to end, and what it leaves on a host
    /// not.
    pub(crate) fn cancel(&self, id: &acp::SessionId) {
        self.openings.cancel(id);
        let session = self.sessions().get(id.0.as_ref()).cloned();
        let child = || self.child(id).map(|(session, agent)| (session, Some(agent)));
        match session.map(|session| (session, None)).or_else(child) {
            Some((session, agent)) => session.cancel(agent),
            // Notifications have no answer.
            None => tracing::debug!(session = %id.0, "a cancel for a session that is not open"),
        }
    }

    /// The session that the session of a subagent belongs to, and the subagent.
    fn child(&self, id: &acp::SessionId) -> Option<(Handle, String)> {
        let (root, agent) = children::split(&id.0)?;
        let session = self.sessions().get(root).cloned()?;
        Some((session, agent.to_owned()))
    }

    /// Waits until no other request opens or ends the session with this id. None does before the guard is dropped.
    pub(crate) async fn lock_of(&self, id: &acp::SessionId) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| lock.strong_count() > 0);
            let lock = locks
                .get(id.0.as_ref())
                .and_then(Weak::upgrade)
                .unwrap_or_default();
            locks.insert(id.0.to_string(), Arc::downgrade(&lock));
            lock
        };
        lock.lock_owned().await
    }

    /// Closes the session with this id, if it has not ended. It then ends by itself, whether or not the caller waits.
    pub(crate) fn close(&self, id: &acp::SessionId) -> Option<Handle> {
        let session = self.sessions().get(id.0.as_ref()).cloned()?;
        session.close();
        Some(session)
    }

    /// Closes the session with this id, and waits for its end. Returns whether there was one.
    pub(crate) async fn ended_of(&self, id: &acp::SessionId) -> bool {
        let Some(session) = self.close(id) else {
            return false;
        };
        session.ended().await;
        true
    }

    /// Registers an open session.
    ///
    /// # Errors
    /// When too many sessions are open.
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

    /// Removes a session that ended, unless another has its id by now.
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
