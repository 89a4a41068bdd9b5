//! The extension `_session/steering`: adds a prompt to the running turn. The TypeScript adapter has it as well.

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Error, JsonRpcRequest, JsonRpcResponse};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::bad;

/// Adds a prompt to the running turn.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/steering", response = Steered)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Steer {
    pub(crate) session_id: acp::SessionId,
    pub(crate) prompt: Vec<acp::ContentBlock>,
    #[serde(rename = "_meta", default)]
    pub(crate) meta: Option<acp::Meta>,
}

/// The reply. The model's answer comes as updates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonRpcResponse)]
pub(crate) struct Steered {
    pub(crate) outcome: Outcome,
    /// Why the prompt was not accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Outcome {
    /// The prompt is part of the running turn.
    Injected,
    /// No turn ran, and the prompt began one.
    StartedNewTurn,
    /// No turn runs, and the editor will send `session/prompt`.
    PromptRequired,
}

impl Steer {
    /// Whether the prompt begins a turn if none runs: `_meta.steering.idleBehavior`.
    ///
    /// # Errors
    /// When the behaviour is unknown.
    pub(crate) fn begins_a_turn(&self) -> Result<bool, Error> {
        let wanted = self
            .meta
            .as_ref()
            .and_then(|meta| meta.get("steering")?.get("idleBehavior"));
        match wanted.map(Value::as_str) {
            None => Ok(true),
            Some(Some("promptRequired")) => Ok(false),
            Some(_) => Err(bad("_meta.steering.idleBehavior", "it is not \"promptRequired\"")),
        }
    }

    /// The request as a prompt.
    pub(crate) fn into_prompt(self) -> acp::PromptRequest {
        let delivery = json!({ "delivery": "steer" });
        let mut meta = acp::Meta::new();
        meta.insert("claudeCode".to_owned(), delivery);
        acp::PromptRequest::new(self.session_id, self.prompt).meta(meta)
    }
}
