//! What of a connection is shared: the sessions, and what the editor can.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol as sdk;
use agent_client_protocol::Error;
use agent_client_protocol::v1::schema as acp;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::Answer;
use super::client::{Client, Connection};
use super::gate::Gate;
use crate::config::Config;
use crate::open::{self, Opened, Wanted};
use crate::rewind::{Rewind, Rewound};
use crate::session::owed::Owed;
use crate::session::servers::{Told, Wish};
use crate::session::{Handle, Order};
use crate::{auth, error, mcp, rest, spare};

/// The most sessions that may be open at once: each is a process of some 200 MB.
const MOST: usize = 64;

/// What of a connection is shared.
pub(crate) struct Hub {
    pub(crate) config: Config,
    /// What MCP servers that live in the editor tell, on its way.
    pub(crate) routes: mcp::Routes,
    gate: Arc<Gate>,
    capabilities: Mutex<Arc<acp::ClientCapabilities>>,
    known_auth: Arc<auth::Known>,
    sessions: Mutex<HashMap<String, Handle>>,
    spare: spare::Place,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Hub {
    pub(super) fn new(config: Config, gate: Arc<Gate>, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            config,
            routes: mcp::Routes::default(),
            gate,
            capabilities: Mutex::default(),
            known_auth: Arc::default(),
            sessions: Mutex::default(),
            spare: spare::Place::default(),
            tasks: TaskTracker::new(),
            stop,
        })
    }

    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Where the CLI is that was started ahead.
    pub(crate) fn spare(&self) -> &spare::Place {
        &self.spare
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, HashMap<String, Handle>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub(super) async fn ended(&self) {
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

    // ---- Requests -------------------------------------------------------------------------------------------------

    /// The editor said what it can, and is answered.
    pub(super) fn met(self: &Arc<Self>, client: acp::ClientCapabilities, connection: impl Into<Connection>) {
        *self.capabilities.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(client);
        spare::warm(self, self.client(connection), spare::When::Introduced);
    }

    /// Opens a session.
    pub(super) fn open(
        self: &Arc<Self>,
        wanted: Wanted,
        connection: impl Into<Connection>,
        answer: Answer<Opened>,
    ) {
        open::open(self, wanted, self.client(connection), answer);
    }

    pub(super) fn rewind(self: &Arc<Self>, request: Rewind, answer: Answer<Rewound>) {
        let session = match self.session(&request.session_id) {
            Ok(session) => session,
            Err(error) => return answer.refuse(error),
        };
        self.answer(answer, async move { session.rewind(request).await });
    }

    pub(super) fn list_sessions(
        self: &Arc<Self>,
        request: acp::ListSessionsRequest,
        answer: Answer<acp::ListSessionsResponse>,
    ) {
        let options = self.config.options.clone();
        self.answer(answer, async move { rest::list(&options, request).await });
    }

    pub(super) fn delete_session(
        self: &Arc<Self>,
        request: acp::DeleteSessionRequest,
        answer: Answer<acp::DeleteSessionResponse>,
    ) {
        let options = self.config.options.clone();
        let open = self.sessions().remove(request.session_id.0.as_ref());
        self.answer(answer, async move {
            let was_open = open.is_some();
            if let Some(open) = open {
                open.close().await;
            }
            match rest::delete(&options, &request.session_id).await {
                // One in which nothing was said has left nothing.
                Err(error) if was_open && error.code == sdk::ErrorCode::RESOURCE_NOT_FOUND => {}
                deleted => deleted?,
            }
            Ok(acp::DeleteSessionResponse::new())
        });
    }

    pub(super) fn set_title(
        self: &Arc<Self>,
        request: acp::SetSessionTitleRequest,
        answer: Answer<acp::SetSessionTitleResponse>,
        connection: impl Into<Connection> + Send + 'static,
    ) {
        let hub = Arc::clone(self);
        self.answer(answer, async move {
            let id = &request.session_id;
            let title = rest::title(&request.title)?;
            let has_cli = match hub.session(id) {
                Ok(open) => open.set_title(title.clone()).await?,
                Err(_) => false,
            };
            // The CLI tells it itself.
            if !has_cli {
                rest::set_title(&hub.config.options, id, &title).await?;
                hub.client(connection).tell_title(id, &title);
            }
            Ok(acp::SetSessionTitleResponse::new(title))
        });
    }

    pub(super) fn archive(
        self: &Arc<Self>,
        request: acp::ArchiveSessionRequest,
        answer: Answer<acp::ArchiveSessionResponse>,
    ) {
        let options = self.config.options.clone();
        let open = self.sessions().remove(request.session_id.0.as_ref());
        self.answer(answer, async move {
            if let Some(open) = open {
                open.close().await;
            }
            rest::archive(&options, &request.session_id, true).await?;
            Ok(acp::ArchiveSessionResponse::new())
        });
    }

    pub(super) fn unarchive(
        self: &Arc<Self>,
        request: acp::UnarchiveSessionRequest,
        answer: Answer<acp::UnarchiveSessionResponse>,
    ) {
        let options = self.config.options.clone();
        self.answer(answer, async move {
            rest::archive(&options, &request.session_id, false).await?;
            Ok(acp::UnarchiveSessionResponse::new())
        });
    }

    pub(super) fn status(
        self: &Arc<Self>,
        request: acp::SessionStatusRequest,
        answer: Answer<acp::SessionStatusResponse>,
    ) {
        let is_open = self.session(&request.session_id).is_ok();
        let options = self.config.options.clone();
        self.answer(answer, async move {
            if is_open {
                return Ok(acp::SessionStatusResponse::new(acp::SessionStatus::Open));
            }
            rest::find(&options, &request.session_id).await?;
            Ok(acp::SessionStatusResponse::new(acp::SessionStatus::Saved))
        });
    }

    pub(super) fn auth_status(self: &Arc<Self>, answer: Answer<acp::AuthStatusResponse>) {
        let hub = Arc::clone(self);
        self.answer(answer, async move {
            let is_open = !hub.sessions().is_empty();
            Ok(hub.known_auth.answer(&hub.config.options, is_open).await)
        });
    }

    pub(super) fn logout(
        self: &Arc<Self>,
        connection: impl Into<Connection>,
        answer: Answer<acp::LogoutResponse>,
    ) {
        let options = self.config.options.clone();
        // It knows who was signed in.
        self.spare.clear();
        let client = self.client(connection);
        self.answer(answer, async move {
            auth::logout(&options).await?;
            client.known_auth().learned(&client, auth::nobody());
            Ok(acp::LogoutResponse::new())
        });
    }

    pub(super) fn prompt(&self, request: acp::PromptRequest, answer: Owed) {
        match self.session(&request.session_id) {
            Ok(session) => session.order(Order::Prompt { request, answer }),
            Err(error) => answer.refuse(error),
        }
    }

    pub(super) fn cancel(&self, notification: &acp::CancelNotification) {
        match self.session(&notification.session_id) {
            Ok(session) => session.order(Order::Cancel),
            // Notifications have no answer.
            Err(_) => {
                tracing::debug!(session = %notification.session_id.0, "a cancel for a session that is not open")
            }
        }
    }

    pub(super) fn set_mode(
        &self,
        request: acp::SetSessionModeRequest,
        answer: Answer<acp::SetSessionModeResponse>,
    ) {
        match self.session(&request.session_id) {
            Ok(session) => session.order(Order::SetMode { request, answer }),
            Err(error) => answer.refuse(error),
        }
    }

    pub(super) fn set_option(
        &self,
        request: acp::SetSessionConfigOptionRequest,
        answer: Answer<acp::SetSessionConfigOptionResponse>,
    ) {
        match self.session(&request.session_id) {
            Ok(session) => session.order(Order::SetOption { request, answer }),
            Err(error) => answer.refuse(error),
        }
    }

    /// Does something about the MCP servers of a session.
    pub(super) fn mcp(
        self: &Arc<Self>,
        session: &acp::SessionId,
        wish: Result<Wish, Error>,
        answer: Answer<Told>,
    ) {
        let (reply, told) = oneshot::channel();
        let ordered = wish.and_then(|wish| {
            let session = self.session(session)?;
            session.order(Order::Mcp { wish, reply });
            Ok(())
        });
        self.answer(answer, async move {
            ordered?;
            let closed = |_| error::internal("the session was closed");
            told.await.map_err(closed)?
        });
    }

    pub(super) fn close_session(
        self: &Arc<Self>,
        request: &acp::CloseSessionRequest,
        answer: Answer<acp::CloseSessionResponse>,
    ) {
        let id = request.session_id.0.as_ref();
        let Some(session) = self.sessions().remove(id) else {
            return answer.refuse(error::no_session(id));
        };
        self.answer(answer, async move {
            session.close().await;
            Ok(acp::CloseSessionResponse::new())
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

/// A directory that a session can work in.
///
/// # Errors
/// When it is not absolute, or there is no such directory.
pub(crate) async fn directory(parameter: &str, path: &Path) -> Result<PathBuf, Error> {
    if !path.is_absolute() {
        return Err(error::bad(
            parameter,
            format!("{} is not absolute", path.display()),
        ));
    }
    match tokio::fs::metadata(path).await {
        Ok(found) if found.is_dir() => Ok(path.to_owned()),
        Ok(_) => Err(error::bad(
            parameter,
            format!("{} is no directory", path.display()),
        )),
        Err(why) => Err(error::bad(parameter, format!("{}: {why}", path.display()))),
    }
}
