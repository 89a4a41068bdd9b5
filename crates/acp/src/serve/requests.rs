//! What editors ask for, in either version of the protocol, and who does it.

use std::sync::Arc;

use agent_client_protocol as sdk;
use agent_client_protocol::Error;
use agent_client_protocol::v1::schema as acp;
use tokio::sync::oneshot;

use crate::answer::Answer;
use crate::client::Connection;
use crate::hub::Hub;
use crate::open::{self, Opened, Wanted};
use crate::rewind::{Rewind, Rewound};
use crate::session::Order;
use crate::session::owed::Owed;
use crate::session::servers::{Told, Wish};
use crate::steer::{Steer, Steered};
use crate::{auth, error, rest};

impl Hub {
    /// The editor said what it can.
    pub(super) fn met(&self, client: acp::ClientCapabilities) {
        self.introduced(client);
        // It knows what the editor said before.
        self.spare().clear();
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

    pub(super) fn steer(self: &Arc<Self>, request: Steer, answer: Answer<Steered>) {
        let session = match self.session(&request.session_id) {
            Ok(session) => session,
            Err(error) => return answer.refuse(error),
        };
        self.answer(answer, async move { session.steer(request).await });
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
            Ok(auth::answer(hub.known_auth(), &hub.config.options, is_open).await)
        });
    }

    pub(super) fn authenticate(
        self: &Arc<Self>,
        request: acp::AuthenticateRequest,
        connection: impl Into<Connection>,
        answer: Answer<acp::AuthenticateResponse>,
    ) {
        let options = self.config.options.clone();
        // It knows who was signed in before.
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
        answer: Answer<acp::LogoutResponse>,
    ) {
        let options = self.config.options.clone();
        // It knows who was signed in.
        self.spare().clear();
        let client = self.client(connection);
        self.answer(answer, async move {
            auth::logout(&options).await?;
            client.learned_auth(auth::nobody());
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
}
