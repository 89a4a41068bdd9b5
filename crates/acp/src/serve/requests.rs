//! The requests of editors, whatever the version of the protocol: each is handled here or passed to its session.

use std::sync::Arc;

use agent_client_protocol as sdk;
use agent_client_protocol::Error;
use agent_client_protocol::v1::schema as acp;
use tokio::sync::{OwnedMutexGuard, oneshot};

use crate::client::Connection;
use crate::hub::Hub;
use crate::open_session::{self, Opened, Wanted};
use crate::replay::{HistoryPage, ReadHistory};
use crate::response_sender::ResponseSender;
use crate::rewind::{Rewind, Rewound};
use crate::session::SessionCommand;
use crate::session::mcp_servers::{McpResponse, Wish};
use crate::steer::{Steer, Steered};
use crate::wire::Update;
use crate::{auth, error, stored};

impl Hub {
    /// Stores the editor's capabilities.
    pub(super) fn initialized(&self, client: acp::ClientCapabilities) {
        self.set_capabilities(client);
        // The spare was started with the capabilities before.
        self.spare().clear();
    }

    pub(super) fn open(
        self: &Arc<Self>,
        wanted: Result<Wanted, Error>,
        connection: impl Into<Connection>,
        answer: ResponseSender<Opened>,
    ) {
        match wanted {
            Ok(wanted) => open_session::open(self, wanted, self.client(connection), answer),
            Err(error) => answer.refuse(error),
        }
    }

    pub(super) fn rewind(self: &Arc<Self>, request: Rewind, answer: ResponseSender<Rewound>) {
        if self.config.host.is_some() {
            return answer.refuse(error::not_on_host("a rewind"));
        }
        let rewound = self.session(&request.session_id);
        let rewound = rewound.map(|session| session.rewind(request));
        self.answer(answer, async move { rewound?.await });
    }

    pub(super) fn read_history(
        self: &Arc<Self>,
        request: ReadHistory,
        connection: impl Into<Connection>,
        answer: ResponseSender<HistoryPage>,
    ) {
        if self.config.host.is_some() {
            return answer.refuse(error::not_on_host("a part of the history"));
        }
        let options = self.config.options.clone();
        let mut encoder = self.client(connection).encoder();
        self.answer(answer, async move {
            request.check()?;
            let (id, before) = (&request.session_id, request.before.as_deref());
            let page = stored::last(&options, id, &request.cwd, before, request.limit).await?;
            let updates = page.events.into_iter().flat_map(|event| encoder.encode(event));
            let updates = updates.map(|update| match update {
                Update::V1(update) => serde_json::to_value(update),
                Update::V2(update) => serde_json::to_value(update),
            });
            let updates = updates.collect::<Result<_, _>>().map_err(error::internal)?;
            let before = page.before;
            Ok(HistoryPage { updates, before })
        });
    }

    pub(super) fn steer(self: &Arc<Self>, request: Steer, answer: ResponseSender<Steered>) {
        if self.config.host.is_some() {
            return answer.refuse(error::not_on_host("steering"));
        }
        let steered = self.session(&request.session_id);
        let steered = steered.map(|session| session.steer(request));
        self.answer(answer, async move { steered?.await });
    }

    pub(super) fn list_sessions(
        self: &Arc<Self>,
        request: acp::ListSessionsRequest,
        answer: ResponseSender<acp::ListSessionsResponse>,
    ) {
        if let Some(host) = self.config.host.clone() {
            return self.answer(answer, async move { host.list(request).await });
        }
        let options = self.config.options.clone();
        self.answer(answer, async move { stored::list(&options, request).await });
    }

    pub(super) fn delete_session(
        self: &Arc<Self>,
        request: acp::DeleteSessionRequest,
        answer: ResponseSender<acp::DeleteSessionResponse>,
    ) {
        let hub = Arc::clone(self);
        let ended = self.end(&request.session_id);
        self.answer(answer, async move {
            let (was_open, _lock) = ended.await;
            if let Some(host) = &hub.config.host {
                host.delete(&request.session_id).await?;
                return Ok(acp::DeleteSessionResponse::new());
            }
            match stored::delete(&hub.config.options, &request.session_id).await {
                // A session without prompts has no file.
                Err(error) if was_open && error.code == sdk::ErrorCode::RESOURCE_NOT_FOUND => {}
                deleted => deleted?,
            }
            Ok(acp::DeleteSessionResponse::new())
        });
    }

    pub(super) fn set_title(
        self: &Arc<Self>,
        request: acp::SetSessionTitleRequest,
        answer: ResponseSender<acp::SetSessionTitleResponse>,
        connection: impl Into<Connection> + Send + 'static,
    ) {
        let hub = Arc::clone(self);
        let title = match stored::title(&request.title) {
            Ok(title) => title,
            Err(error) => return answer.refuse(error),
        };
        let open = match &self.config.host {
            None => self.session(&request.session_id).ok(),
            Some(_) => None,
        };
        let taken = open.map(|open| open.set_title(title.clone()));
        self.answer(answer, async move {
            let id = &request.session_id;
            if let Some(host) = &hub.config.host {
                host.set_title(id, &title).await?;
                hub.client(connection).send_title(id, &title);
                return Ok(acp::SetSessionTitleResponse::new(title));
            }
            let has_cli = match taken {
                Some(taken) => taken.await?,
                None => false,
            };
            // The CLI reports its new title itself.
            if !has_cli {
                stored::set_title(&hub.config.options, id, &title).await?;
                hub.client(connection).send_title(id, &title);
            }
            Ok(acp::SetSessionTitleResponse::new(title))
        });
    }

    pub(super) fn archive(
        self: &Arc<Self>,
        request: acp::ArchiveSessionRequest,
        answer: ResponseSender<acp::ArchiveSessionResponse>,
    ) {
        if self.config.host.is_some() {
            return answer.refuse(error::not_on_host("the archive"));
        }
        let options = self.config.options.clone();
        let ended = self.end(&request.session_id);
        self.answer(answer, async move {
            let (was_open, _lock) = ended.await;
            match stored::archive(&options, &request.session_id, true).await {
                // A session without prompts has no file.
                Err(error) if was_open && error.code == sdk::ErrorCode::RESOURCE_NOT_FOUND => {}
                archived => archived?,
            }
            Ok(acp::ArchiveSessionResponse::new())
        });
    }

    pub(super) fn unarchive(
        self: &Arc<Self>,
        request: acp::UnarchiveSessionRequest,
        answer: ResponseSender<acp::UnarchiveSessionResponse>,
    ) {
        if self.config.host.is_some() {
            return answer.refuse(error::not_on_host("the archive"));
        }
        let options = self.config.options.clone();
        self.answer(answer, async move {
            stored::archive(&options, &request.session_id, false).await?;
            Ok(acp::UnarchiveSessionResponse::new())
        });
    }

    pub(super) fn status(
        self: &Arc<Self>,
        request: acp::SessionStatusRequest,
        answer: ResponseSender<acp::SessionStatusResponse>,
    ) {
        let is_open = self.session(&request.session_id).is_ok();
        let (options, host) = (self.config.options.clone(), self.config.host.clone());
        self.answer(answer, async move {
            if is_open {
                return Ok(acp::SessionStatusResponse::new(acp::SessionStatus::Open));
            }
            if let Some(host) = host {
                host.find(&request.session_id).await?;
                return Ok(acp::SessionStatusResponse::new(acp::SessionStatus::Saved));
            }
            stored::find(&options, &request.session_id).await?;
            Ok(acp::SessionStatusResponse::new(acp::SessionStatus::Saved))
        });
    }

    pub(super) fn auth_status(self: &Arc<Self>, answer: ResponseSender<acp::AuthStatusResponse>) {
        if self.config.host.is_some() {
            return answer.refuse(error::not_on_host("an account"));
        }
        let hub = Arc::clone(self);
        self.answer(answer, async move {
            let is_open = !hub.sessions().is_empty();
            Ok(auth::answer(hub.known_auth(), &hub.config.options, is_open).await)
        });
    }

    pub(super) fn authenticate(
        self: &Arc<Self>,
        request: acp::AuthenticateRequest,
        connection: impl Into<Connection>,
        answer: ResponseSender<acp::AuthenticateResponse>,
    ) {
        if self.config.host.is_some() {
            return answer.refuse(error::not_on_host("a sign-in"));
        }
        let options = self.config.options.clone();
        // The spare was started with the account before.
        self.spare().clear();
        let client = self.client(connection);
        self.answer(answer, async move {
            auth::authenticate(&request.method_id.0, &options, &client).await?;
            Ok(acp::AuthenticateResponse::new())
        });
    }

    pub(super) fn logout(
        self: &Arc<Self>,
        connection: impl Into<Connection>,
        answer: ResponseSender<acp::LogoutResponse>,
    ) {
        if self.config.host.is_some() {
            return answer.refuse(error::not_on_host("a sign-in"));
        }
        let options = self.config.options.clone();
        // The spare was started with the account before.
        self.spare().clear();
        let client = self.client(connection);
        self.answer(answer, async move {
            auth::logout(&options).await?;
            client.learned_auth(auth::nobody());
            Ok(acp::LogoutResponse::new())
        });
    }

    pub(super) fn mcp(
        self: &Arc<Self>,
        session: &acp::SessionId,
        wish: Result<Wish, Error>,
        answer: ResponseSender<McpResponse>,
    ) {
        if self.config.host.is_some() {
            return answer.refuse(error::not_on_host("a choice of MCP servers"));
        }
        let (reply, told) = oneshot::channel();
        let ordered = wish.and_then(|wish| {
            let session = self.session(session)?;
            session.command(SessionCommand::Mcp { wish, reply });
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
        must_be_open: bool,
        answer: ResponseSender<acp::CloseSessionResponse>,
    ) {
        let id = request.session_id.clone();
        let ended = self.end(&id);
        self.answer(answer, async move {
            let (was_open, _lock) = ended.await;
            if must_be_open && !was_open {
                return Err(error::no_session(&id.0));
            }
            Ok(acp::CloseSessionResponse::new())
        });
    }

    /// Closes a session, now if it is open, or once it is if a request opens it. Resolves when the session has ended, to whether there
    /// was one, and the guard that keeps others from opening it.
    fn end(
        self: &Arc<Self>,
        id: &acp::SessionId,
    ) -> impl Future<Output = (bool, OwnedMutexGuard<()>)> + Send + use<> {
        let (hub, id) = (Arc::clone(self), id.clone());
        let was_open = self.close(&id).is_some();
        async move {
            let lock = hub.lock_of(&id).await;
            let is_ended = hub.ended_of(&id).await;
            (was_open || is_ended, lock)
        }
    }
}
