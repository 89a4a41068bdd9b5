//! The editor as a client: its capabilities, and the messages to it.

mod account;
pub(crate) mod gate;

use std::path::Path;
use std::sync::Arc;

use agent_client_protocol as sdk;
use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v2::schema as draft;
use agent_client_protocol::{Error, JsonRpcNotification, v1, v2};
use futures_util::future::BoxFuture;
use serde::Serialize;

pub(crate) use self::account::KnownAccount;
use self::gate::WriteGate;
use crate::error;
use crate::event::Event;
use crate::meta::SdkMessage;
use crate::wire::v2::convert;
use crate::wire::{Encoder, PermissionCall, Update};

/// A request to the editor: resolves to the answer. Dropping it cancels the request.
pub(crate) type EditorReply<T> = BoxFuture<'static, Result<T, Error>>;

/// The editor. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Client {
    connection: Connection,
    gate: Arc<WriteGate>,
    capabilities: Arc<acp::ClientCapabilities>,
    known_auth: Arc<KnownAccount>,
}

/// The connection, in the editor's version of the protocol.
#[derive(Clone)]
pub(crate) enum Connection {
    V1(v1::ConnectionTo<sdk::Client>),
    V2(v2::ConnectionTo<sdk::Client>),
}

impl From<v2::ConnectionTo<sdk::Client>> for Connection {
    fn from(connection: v2::ConnectionTo<sdk::Client>) -> Self {
        Self::V2(connection)
    }
}

impl From<v1::ConnectionTo<sdk::Client>> for Connection {
    fn from(connection: v1::ConnectionTo<sdk::Client>) -> Self {
        Self::V1(connection)
    }
}

impl Client {
    pub(crate) fn new(
        connection: Connection,
        gate: Arc<WriteGate>,
        capabilities: Arc<acp::ClientCapabilities>,
        known_auth: Arc<KnownAccount>,
    ) -> Self {
        Self {
            connection,
            gate,
            capabilities,
            known_auth,
        }
    }

    pub(crate) fn capabilities(&self) -> &acp::ClientCapabilities {
        &self.capabilities
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn has_forms(&self) -> bool {
        let elicitation = self.capabilities.elicitation.as_ref();
        elicitation.is_some_and(|elicitation| elicitation.form.is_some())
    }

    /// Whether the editor can open URLs for the user.
    pub(crate) fn opens_urls(&self) -> bool {
        let elicitation = self.capabilities.elicitation.as_ref();
        elicitation.is_some_and(|elicitation| elicitation.url.is_some())
    }

    /// Whether the editor has boolean options besides lists. Every editor of the draft has them.
    pub(crate) fn has_switches(&self) -> bool {
        let options = self.capabilities.session.as_ref();
        let options = options.and_then(|session| session.config_options.as_ref());
        let can = options.is_some_and(|options| options.boolean.is_some());
        can || matches!(self.connection, Connection::V2(_))
    }

    /// Whether the editor shows subagents as sessions of their own.
    pub(crate) fn shows_children(&self) -> bool {
        match self.connection {
            Connection::V1(_) => self.capabilities.subagents.is_some(),
            // The draft leaves it to the agent.
            Connection::V2(_) => false,
        }
    }

    /// The encoder for one session.
    pub(crate) fn encoder(&self) -> Encoder {
        match &self.connection {
            Connection::V1(_) => Encoder::v1(&self.capabilities),
            Connection::V2(_) => Encoder::v2(&self.capabilities),
        }
    }

    /// Stores the account, and sends it to the editor if it is new there.
    pub(crate) fn learned_auth(&self, status: acp::AuthStatusResponse) {
        if self.known_auth.learned(&status) {
            self.send_auth(status);
        }
    }

    fn send_auth(&self, status: acp::AuthStatusResponse) {
        let sent = match &self.connection {
            Connection::V1(connection) => {
                let news = acp::AuthStatusUpdateNotification::new(status.state).accounts(status.accounts);
                connection.send_notification(news)
            }
            Connection::V2(connection) => {
                let status = convert::auth_status(status);
                let news = draft::AuthStatusUpdateNotification::new(status.state).accounts(status.accounts);
                connection.send_notification(news)
            }
        };
        if let Err(error) = sent {
            // The connection has ended, as its own task reports.
            tracing::debug!(%error, "the account could not be sent");
        }
    }

    /// Sends the title of a session.
    pub(crate) fn send_title(&self, session: &acp::SessionId, title: &str) {
        for update in self.encoder().encode(Event::Title(title.to_owned())) {
            self.update(session, update);
        }
    }

    /// Sends an update of a session, behind all earlier ones.
    pub(crate) fn update(&self, session: &acp::SessionId, update: Update) {
        match (&self.connection, update) {
            (Connection::V1(connection), Update::V1(update)) => {
                let update = acp::SessionNotification::new(session.clone(), *update);
                self.notify(update, |update| connection.send_notification(update));
            }
            (Connection::V2(connection), Update::V2(update)) => {
                let update = draft::UpdateSessionNotification::new(of(session), *update);
                self.notify(update, |update| connection.send_notification(update));
            }
            (Connection::V1(_), Update::V2(_)) | (Connection::V2(_), Update::V1(_)) => {
                tracing::error!("an update was written for another version of the protocol");
            }
        }
    }

    /// Sends a message of the CLI as raw JSON.
    pub(crate) fn sdk_message(&self, session: &acp::SessionId, message: serde_json::Value) {
        let message = SdkMessage {
            session_id: session.clone(),
            message,
        };
        match &self.connection {
            Connection::V1(connection) => {
                self.notify(message, |message| connection.send_notification(message));
            }
            Connection::V2(connection) => {
                self.notify(message, |message| connection.send_notification(message));
            }
        }
    }

    fn notify<N: JsonRpcNotification + Serialize>(
        &self,
        update: N,
        send: impl FnOnce(N) -> Result<(), Error>,
    ) {
        self.gate.sent(gate::size(&update));
        if let Err(error) = send(update) {
            self.gate.written();
            // The connection has ended, as its own task reports.
            tracing::debug!(%error, "an update was not sent");
        }
    }

    /// Asks whether a call may run.
    pub(crate) fn ask_permission(
        &self,
        session: &acp::SessionId,
        shown: PermissionCall,
        options: Vec<acp::PermissionOption>,
    ) -> EditorReply<acp::RequestPermissionResponse> {
        match (&self.connection, shown) {
            (Connection::V1(connection), PermissionCall::V1(call)) => {
                let question = acp::RequestPermissionRequest::new(session.clone(), *call, options);
                let sent = connection.send_request(question);
                Box::pin(async move { sent.block_task().await })
            }
            (Connection::V2(connection), PermissionCall::V2 { title, call }) => {
                let options = convert::permission_options(options);
                let question = draft::RequestPermissionRequest::new(of(session), title, options)
                    .subject(draft::RequestPermissionSubject::from(*call));
                let sent = connection.send_request(question);
                Box::pin(async move { Ok(convert::permission(sent.block_task().await?)) })
            }
            (Connection::V1(_), PermissionCall::V2 { .. }) | (Connection::V2(_), PermissionCall::V1(_)) => {
                let error = error::internal("a question was written for another version of the protocol");
                Box::pin(std::future::ready(Err(error)))
            }
        }
    }

    /// Asks for the editor's text of a file. `None` if the protocol has no such request.
    pub(crate) fn read_text_file(
        &self,
        session: &acp::SessionId,
        path: &Path,
    ) -> Option<EditorReply<acp::ReadTextFileResponse>> {
        match &self.connection {
            Connection::V1(connection) => {
                let sent = connection.send_request(acp::ReadTextFileRequest::new(session.clone(), path));
                Some(Box::pin(async move { sent.block_task().await }))
            }
            Connection::V2(_) => None,
        }
    }

    /// Asks the editor to write a file. `None` if the protocol has no such request.
    pub(crate) fn write_text_file(
        &self,
        session: &acp::SessionId,
        path: &Path,
        text: String,
    ) -> Option<EditorReply<()>> {
        match &self.connection {
            Connection::V1(connection) => {
                let request = acp::WriteTextFileRequest::new(session.clone(), path, text);
                // Editors reply `null`, too, which is no `WriteTextFileResponse`.
                let request = sdk::UntypedMessage::new("fs/write_text_file", request);
                let sent = request.map(|request| connection.send_request(request));
                Some(Box::pin(async move { sent?.block_task().await.map(drop) }))
            }
            Connection::V2(_) => None,
        }
    }

    /// Asks the user to fill in a form or to open a URL.
    pub(crate) fn elicit(
        &self,
        question: acp::CreateElicitationRequest,
    ) -> EditorReply<acp::CreateElicitationResponse> {
        match &self.connection {
            Connection::V1(connection) => {
                let sent = connection.send_request(question);
                Box::pin(async move { sent.block_task().await })
            }
            Connection::V2(connection) => match convert::elicitation(&question) {
                Ok(question) => {
                    let sent = connection.send_request(question);
                    Box::pin(async move { convert::elicited(&sent.block_task().await?) })
                }
                Err(error) => Box::pin(std::future::ready(Err(error))),
            },
        }
    }

    /// Sends a request to an MCP server in the editor. Dropping the returned future cancels it.
    pub(crate) fn mcp(&self, request: acp::MessageMcpRequest) -> EditorReply<acp::MessageMcpResponse> {
        match &self.connection {
            Connection::V1(connection) => {
                let sent = connection.send_request(request);
                Box::pin(async move { sent.block_task().await })
            }
            Connection::V2(connection) => {
                let sent = connection.send_request(convert::mcp_request(request));
                Box::pin(async move { convert::mcp_response(&sent.block_task().await?) })
            }
        }
    }

    pub(crate) fn gate(&self) -> &WriteGate {
        &self.gate
    }
}

fn of(session: &acp::SessionId) -> draft::SessionId {
    draft::SessionId::new(Arc::clone(&session.0))
}
