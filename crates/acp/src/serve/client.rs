//! The editor, as sessions see it.

use std::sync::Arc;

use agent_client_protocol as sdk;
use agent_client_protocol::JsonRpcRequest;
use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v1::{ConnectionTo, SentRequest};

use super::gate::Gate;

/// The editor: what it can, and the way to it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Client {
    connection: ConnectionTo<sdk::Client>,
    gate: Arc<Gate>,
    capabilities: Arc<acp::ClientCapabilities>,
}

impl Client {
    pub(super) fn new(
        connection: ConnectionTo<sdk::Client>,
        gate: Arc<Gate>,
        capabilities: Arc<acp::ClientCapabilities>,
    ) -> Self {
        Self {
            connection,
            gate,
            capabilities,
        }
    }

    /// What it said that it can.
    pub(crate) fn capabilities(&self) -> &acp::ClientCapabilities {
        &self.capabilities
    }

    /// Whether it can show forms.
    pub(crate) fn has_forms(&self) -> bool {
        let elicitation = self.capabilities.elicitation.as_ref();
        elicitation.is_some_and(|elicitation| elicitation.form.is_some())
    }

    /// Whether it can open addresses for the user.
    pub(crate) fn opens_urls(&self) -> bool {
        let elicitation = self.capabilities.elicitation.as_ref();
        elicitation.is_some_and(|elicitation| elicitation.url.is_some())
    }

    /// Sends an update of a session, behind all that was sent before.
    pub(crate) fn update(&self, session: &acp::SessionId, update: acp::SessionUpdate) {
        self.notify_update(acp::SessionNotification::new(session.clone(), update));
    }

    /// The same, for one that is ready.
    pub(crate) fn notify_update(&self, update: acp::SessionNotification) {
        self.gate.sent();
        if let Err(error) = self.connection.send_notification(update) {
            self.gate.written();
            // The connection has ended, and whoever drives it knows.
            tracing::debug!(%error, "an update was not sent");
        }
    }

    /// Asks something. Dropping what is returned tells the editor that the answer is not wanted any more.
    pub(crate) fn request<R: JsonRpcRequest>(&self, request: R) -> SentRequest<R::Response> {
        self.connection.send_request(request)
    }

    /// Whether another update may be sent now.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }
}
