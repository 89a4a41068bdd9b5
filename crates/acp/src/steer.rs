//! Saying something to the model while it works: `_session/steering`, an extension that the TypeScript adapter has as well.

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Error, JsonRpcRequest, JsonRpcResponse};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::bad;

/// Folds a prompt into the turn that runs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/steering", response = Steered)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Steer {
    pub(crate) session_id: acp::SessionId,
    pub(crate) prompt: Vec<acp::ContentBlock>,
    #[serde(rename = "_meta", default)]
    pub(crate) meta: Option<acp::Meta>,
}

/// What became of it. What the model says to it comes as updates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonRpcResponse)]
pub(crate) struct Steered {
    pub(crate) outcome: Outcome,
    /// Why it was not taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// See [`Steered`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Outcome {
    /// It is part of the turn that runs.
    Injected,
    /// None ran, and it has begun one.
    StartedNewTurn,
    /// None runs, and the editor wants to begin it by `session/prompt`.
    PromptRequired,
}

impl Steer {
    /// Whether it is to begin a turn if none runs: `_meta.steering.idleBehavior`.
    ///
    /// # Errors
    /// When another behaviour is wanted than there is.
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

    /// The same as a prompt.
    pub(crate) fn into_prompt(self) -> acp::PromptRequest {
        let delivery = json!({ "delivery": "steer" });
        let mut meta = acp::Meta::new();
        meta.insert("claudeCode".to_owned(), delivery);
        acp::PromptRequest::new(self.session_id, self.prompt).meta(meta)
    }
}
