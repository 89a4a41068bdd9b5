//! Questions of MCP servers to the user.

use std::collections::BTreeMap;

use agent_client_protocol::v1::schema as acp;
use outrigger::protocol::RawJson;
use outrigger::protocol::shared::JsonObject;
use outrigger::{ElicitationRequest, ElicitationResult};

use super::Desk;

impl Desk {
    /// Puts the question of a server to the user. What the editor can't show is declined, and so is what it fails at.
    pub(super) async fn elicitation_of_server(&self, request: &ElicitationRequest) -> ElicitationResult {
        let Some(question) = self.question_of_server(request) else {
            return ElicitationResult::Decline;
        };
        match self.elicit(question).await {
            Ok(response) => match response.action {
                acp::ElicitationAction::Accept(accepted) => accept(accepted.content),
                acp::ElicitationAction::Decline => ElicitationResult::Decline,
                _ => ElicitationResult::Cancel,
            },
            Err(error) => {
                tracing::warn!(%error, "the editor did not answer an MCP server; it is declined");
                ElicitationResult::Decline
            }
        }
    }

    fn question_of_server(&self, request: &ElicitationRequest) -> Option<acp::CreateElicitationRequest> {
        let scope = acp::ElicitationSessionScope::new(self.session.clone());
        let message = request.message.clone();
        if let Some(url) = &request.url {
            if !self.client.opens_urls() {
                return None;
            }
            let id = request.elicitation_id.clone();
            let id = id.unwrap_or_else(|| request.context.request_id().to_string());
            let mode = acp::ElicitationUrlMode::new(scope, id, url.clone());
            return Some(acp::CreateElicitationRequest::new(mode, message));
        }
        if !self.client.has_forms() {
            return None;
        }
        // The server's own schema has the form that the protocol's has.
        let schema = request.requested_schema.as_ref()?;
        let schema = RawJson::encode(schema).ok()?.decode::<acp::ElicitationSchema>();
        match schema {
            Ok(schema) => {
                let mode = acp::ElicitationFormMode::new(scope, schema);
                Some(acp::CreateElicitationRequest::new(mode, message))
            }
            Err(error) => {
                tracing::warn!(%error, "the form of an MCP server can't be shown; it is declined");
                None
            }
        }
    }
}

fn accept(content: Option<BTreeMap<String, acp::ElicitationContentValue>>) -> ElicitationResult {
    match JsonObject::encode(&content.unwrap_or_default()) {
        Ok(content) => ElicitationResult::Accept {
            content: Some(content),
        },
        Err(_) => ElicitationResult::Decline,
    }
}
