//! Questions of MCP servers to the user: forms to be filled in, and addresses to be opened.

use std::collections::BTreeMap;

use agent_client_protocol::v1::schema as acp;
use outrigger::protocol::RawJson;
use outrigger::protocol::shared::JsonObject;
use outrigger::{ElicitationRequest, ElicitationResult};
use tokio::sync::mpsc;

use super::{Ask, Desk, elicit};
use crate::client::Client;

/// Puts forms to the user of the editor, for one session. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Forms {
    asks: mpsc::Sender<Ask>,
    session: acp::SessionId,
    client: Client,
}

/// What a server wants to know.
#[derive(Debug)]
pub(crate) struct Form {
    /// What for.
    pub(crate) message: String,
    /// An address to be opened instead of a form, and the id of that.
    pub(crate) url: Option<(String, String)>,
    /// The fields, as a JSON schema.
    pub(crate) schema: Option<RawJson>,
}

/// What the user said.
#[derive(Debug, PartialEq)]
pub(crate) enum Filled {
    /// The fields; none for an address.
    Accepted(Option<BTreeMap<String, acp::ElicitationContentValue>>),
    /// No; or the editor can't show it, or failed at it.
    Declined,
    /// Nothing: it was closed.
    Cancelled,
}

impl Forms {
    /// Puts a form to the user. What the editor can't show is declined, and so is what it fails at. Dropping it takes it back.
    pub(crate) async fn ask(&self, form: Form) -> Filled {
        let Some(question) = self.question(form) else {
            return Filled::Declined;
        };
        match elicit(&self.asks, question).await {
            Ok(response) => match response.action {
                acp::ElicitationAction::Accept(accepted) => Filled::Accepted(accepted.content),
                acp::ElicitationAction::Decline => Filled::Declined,
                _ => Filled::Cancelled,
            },
            Err(error) => {
                tracing::warn!(%error, "the editor did not answer an MCP server; it is declined");
                Filled::Declined
            }
        }
    }

    fn question(&self, form: Form) -> Option<acp::CreateElicitationRequest> {
        let scope = acp::ElicitationSessionScope::new(self.session.clone());
        if let Some((url, id)) = form.url {
            if !self.client.opens_urls() {
                tracing::warn!(
                    url,
                    "the editor can't open an address for an MCP server; it is declined"
                );
                return None;
            }
            let mode = acp::ElicitationUrlMode::new(scope, id, url);
            return Some(acp::CreateElicitationRequest::new(mode, form.message));
        }
        if !self.client.has_forms() {
            tracing::warn!("the editor can't show the form of an MCP server; it is declined");
            return None;
        }
        // The server's own schema has the form that the protocol's has.
        match form.schema?.decode::<acp::ElicitationSchema>() {
            Ok(schema) => {
                let mode = acp::ElicitationFormMode::new(scope, schema);
                Some(acp::CreateElicitationRequest::new(mode, form.message))
            }
            Err(error) => {
                tracing::warn!(%error, "the form of an MCP server can't be shown; it is declined");
                None
            }
        }
    }
}

impl Desk {
    /// What puts forms to the user, for others than the CLI.
    pub(crate) fn forms(&self) -> Forms {
        Forms {
            asks: self.asks.clone(),
            session: self.session.clone(),
            client: self.client.clone(),
        }
    }

    /// Puts the question of a server of the CLI's to the user.
    pub(super) async fn elicitation_of_server(&self, request: &ElicitationRequest) -> ElicitationResult {
        let id = || request.context.request_id().to_string();
        let schema = request.requested_schema.as_ref();
        let form = Form {
            message: request.message.clone(),
            url: request
                .url
                .clone()
                .map(|url| (url, request.elicitation_id.clone().unwrap_or_else(id))),
            schema: schema.and_then(|schema| RawJson::encode(schema).ok()),
        };
        match self.forms().ask(form).await {
            // An address has no fields.
            Filled::Accepted(None) if request.url.is_some() => ElicitationResult::Accept { content: None },
            Filled::Accepted(content) => match JsonObject::encode(&content.unwrap_or_default()) {
                Ok(content) => ElicitationResult::Accept {
                    content: Some(content),
                },
                Err(_) => ElicitationResult::Decline,
            },
            Filled::Declined => ElicitationResult::Decline,
            Filled::Cancelled => ElicitationResult::Cancel,
        }
    }
}
