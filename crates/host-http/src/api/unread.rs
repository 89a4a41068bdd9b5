//! What a reply has for a token without the scope `read`.
//!
//! Who may send or decide is told what became of that, and nothing of what is in a session. What a handler answers about a session goes through
//! [`reply`].

use axum::Json;
use outrigger::protocol::RawJson;
use outrigger_host::{Approval, ApprovalKind, ApprovalState, SessionRecord};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::token::{Scope, TokenRecord};

/// A document of a session.
pub(super) trait Document {
    /// What is left of it without the scope `read`.
    type Unread: From<Self>
    where
        Self: Sized;
}

/// A document, or what is left of it.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(super) enum ScopedDocument<T, R> {
    Whole(T),
    Rest(R),
}

pub(super) type ScopedReply<T> = Json<ScopedDocument<T, <T as Document>::Unread>>;

/// What the holder of this token is told.
pub(super) fn reply<T: Document>(token: &TokenRecord, document: T) -> ScopedReply<T> {
    Json(if token.scopes.contains(&Scope::Read) {
        ScopedDocument::Whole(document)
    } else {
        ScopedDocument::Rest(document.into())
    })
}

/// A session, for a token without the scope `read`.
#[derive(Serialize, JsonSchema)]
pub(super) struct UnreadSession {
    /// The id.
    #[schemars(with = "uuid::Uuid")]
    id: String,
}

impl From<SessionRecord> for UnreadSession {
    fn from(session: SessionRecord) -> Self {
        Self {
            id: session.id.to_string(),
        }
    }
}

impl Document for SessionRecord {
    type Unread = UnreadSession;
}

/// An approval, for a token without the scope `read`.
#[derive(Serialize, JsonSchema)]
pub(super) struct UnreadApproval {
    /// The host's id.
    id: uuid::Uuid,
    /// The session that asks.
    #[schemars(with = "uuid::Uuid")]
    session_id: String,
    /// What the approval is for.
    kind: ApprovalKind,
    /// Where the approval stands.
    state: ApprovalState,
    /// Who decided.
    decided_by: Option<String>,
    /// When the approval left `pending`, in milliseconds since 1970.
    decided_at: Option<u64>,
}

impl From<Approval> for UnreadApproval {
    fn from(approval: Approval) -> Self {
        Self {
            id: approval.id,
            session_id: approval.session_id.to_string(),
            kind: approval.kind,
            state: approval.state,
            decided_by: approval.decided_by,
            decided_at: approval.decided_at,
        }
    }
}

impl Document for Approval {
    type Unread = UnreadApproval;
}

/// What the CLI says of a rewind: it names files.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub(super) struct Rewound(#[schemars(with = "Map<String, Value>")] pub(super) RawJson);

/// A rewind, for a token without the scope `read`.
#[derive(Serialize, JsonSchema)]
pub(super) struct UnreadRewind {
    /// Whether the files can be brought back, or were.
    #[serde(rename = "canRewind")]
    can_rewind: bool,
}

impl From<Rewound> for UnreadRewind {
    fn from(Rewound(answer): Rewound) -> Self {
        let answer: Map<String, Value> = answer.decode().unwrap_or_default();
        Self {
            can_rewind: answer.get("canRewind") == Some(&Value::Bool(true)),
        }
    }
}

impl Document for Rewound {
    type Unread = UnreadRewind;
}
