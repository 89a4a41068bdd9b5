//! How much of a stored session is replayed, and the extension `_session/history`: what is earlier than a replay.

use std::path::PathBuf;

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Error, JsonRpcRequest, JsonRpcResponse};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::bad;

/// The highest limit of `_session/history`, whose reply is one line.
const MOST: usize = 1000;

/// The limit of `_session/history`, if the request has none.
const DEFAULT: usize = 100;

/// The limit of a replay: `_meta.claudeCode.replay.limit`. `None` without one.
///
/// # Errors
/// When it is not a positive integer.
pub(crate) fn limit(told: Option<&Value>) -> Result<Option<usize>, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Replay {
        limit: usize,
    }
    let told = match told {
        None | Some(Value::Null) => return Ok(None),
        Some(told) => told,
    };
    match Replay::deserialize(told) {
        Ok(Replay { limit: 0 }) => Err(bad("_meta.claudeCode.replay.limit", "it is 0")),
        Ok(Replay { limit }) => Ok(Some(limit)),
        Err(error) => Err(bad("_meta.claudeCode.replay", error)),
    }
}

/// Adds to the answer where the replay began: `_meta.claudeCode.replay.before`.
pub(crate) fn add_to(meta: &mut acp::Meta, before: Option<String>) {
    let own = meta.entry("claudeCode").or_insert_with(|| json!({}));
    if let Some(own) = own.as_object_mut() {
        own.insert("replay".to_owned(), json!({ "before": before }));
    }
}

/// Reads a part of a stored session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/history", response = HistoryPage)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReadHistory {
    pub(crate) session_id: acp::SessionId,
    /// The directory of the session.
    pub(crate) cwd: PathBuf,
    /// The uuid of the prompt before which the part ends. The whole session if missing.
    #[serde(default)]
    pub(crate) before: Option<String>,
    #[serde(default = "default_limit")]
    pub(crate) limit: usize,
}

fn default_limit() -> usize {
    DEFAULT
}

impl ReadHistory {
    /// # Errors
    /// When a field is invalid; with its name.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !self.cwd.is_absolute() {
            return Err(bad("cwd", format!("{} is not absolute", self.cwd.display())));
        }
        match self.limit {
            1..=MOST => Ok(()),
            limit => Err(bad("limit", format!("{limit} is not between 1 and {MOST}"))),
        }
    }
}

/// The reply.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcResponse)]
pub(crate) struct HistoryPage {
    /// The updates of a replay, in the version of the protocol of the connection.
    pub(crate) updates: Vec<Value>,
    /// The uuid of the first prompt in it, if there are earlier messages.
    pub(crate) before: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_positive_integer() {
        assert_eq!(limit(None).unwrap(), None);
        assert_eq!(limit(Some(&Value::Null)).unwrap(), None);
        assert_eq!(limit(Some(&json!({"limit": 20}))).unwrap(), Some(20));
        for wrong in [
            json!({"limit": 0}),
            json!({"limit": -1}),
            json!({"limit": "20"}),
            json!({"last": 20}),
            json!({}),
            json!(20),
        ] {
            let error = limit(Some(&wrong)).unwrap_err();
            assert!(
                error.message.contains("_meta.claudeCode.replay"),
                "{wrong}: {error:?}"
            );
        }
    }
}
