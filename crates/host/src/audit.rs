//! Who did what, beside what is in the events of sessions.

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

/// Something that the holder of a token did or was refused, such as creating a session, deciding by its approval, or issuing another token. It never
/// has a body or a secret. What was sent to a session is in its events, with the actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct AuditEntry {
    /// The number of the entry, from 1 on; the log sets it.
    pub number: u64,
    /// When, in milliseconds since 1970; the log sets it.
    pub at: u64,
    /// The id of the token. Two tokens may have one label.
    pub token_id: Uuid,
    /// The label of the token.
    pub actor: String,
    /// The method of the request.
    pub method: String,
    /// The route, as the OpenAPI document has it.
    pub route: String,
    /// The id of what it was about, or of what was made.
    pub object: Option<String>,
    /// The status of the answer.
    pub status: u16,
}

impl AuditEntry {
    /// An entry that has no number yet.
    pub fn new(
        token_id: Uuid,
        actor: impl Into<String>,
        method: impl Into<String>,
        route: impl Into<String>,
        status: u16,
    ) -> Self {
        Self {
            number: 0,
            at: 0,
            token_id,
            actor: actor.into(),
            method: method.into(),
            route: route.into(),
            object: None,
            status,
        }
    }
}
