//! Elicitations of MCP servers: forms to fill in, and URLs to open.

use std::collections::BTreeMap;

use agent_client_protocol::v1::schema as acp;
use outrigger::protocol::RawJson;
use outrigger::protocol::shared::JsonObject;
use outrigger::{ElicitationRequest, ElicitationResult};

use super::asker::Asker;
use super::{CliResponder, elicit};
use crate::client::Client;

/// Sends the forms of one session to the editor. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Forms {
    asker: Asker,
    session: acp::SessionId,
    client: Client,
}

/// The request of a server.
#[derive(Debug)]
pub(crate) struct Form {
    /// The message to the user.
    pub(crate) message: String,
    /// The URL to open instead of a form, and its id.
    pub(crate) url: Option<(String, String)>,
    /// The fields, as a JSON schema.
    pub(crate) schema: Option<RawJson>,
}

/// The answer of the user.
#[derive(Debug, PartialEq)]
pub(crate) enum Filled {
    /// The fields; none for a URL.
    Accepted(Option<BTreeMap<String, acp::ElicitationContentValue>>),
    /// Declined, or the editor can't show it, or failed.
    Declined,
    /// Closed without an answer.
    Cancelled,
}

impl Forms {
    /// Asks the user. An editor that can't show the form, or fails, declines it. Dropping the future cancels it.
    pub(crate) async fn ask(&self, form: Form) -> Filled {
        let Some(question) = self.question(form) else {
            return Filled::Declined;
        };
        match elicit(&self.asker, question, None).await {
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
        // Servers and the protocol use the same schema.
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

impl CliResponder {
    /// The channel for forms that do not come from the CLI.
    pub(crate) fn forms(&self) -> Forms {
        Forms {
            asker: self.asker.clone(),
            session: self.session.clone(),
            client: self.client.clone(),
        }
    }

    /// Handles an elicitation of the CLI.
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
            // A URL has no fields.
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
