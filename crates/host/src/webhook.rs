//! Who is told of events by a POST.

use std::fmt;

use outrigger::SessionId;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::approval::named;

named! {
    /// What a webhook can be told of.
    WebhookEvent {
        /// A session has another [state](crate::SessionState).
        SessionStateChanged = "session_state_changed",
        /// A session asks a person.
        ApprovalOpened = "approval_opened",
        /// A person decided.
        ApprovalDecided = "approval_decided",
        /// The process that asked has ended, or it withdrew the question.
        ApprovalSuperseded = "approval_superseded",
        /// Nobody decided in time.
        ApprovalExpired = "approval_expired",
        /// A turn has ended with a result.
        TurnResult = "turn_result",
    }
}

impl WebhookEvent {
    /// All events that a webhook can want.
    pub const ALL: [Self; 6] = [
        Self::SessionStateChanged,
        Self::ApprovalOpened,
        Self::ApprovalDecided,
        Self::ApprovalSuperseded,
        Self::ApprovalExpired,
        Self::TurnResult,
    ];
}

/// The key that the messages of a webhook are signed with. Neither `Debug` nor `Serialize` of a [`Webhook`] has it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(String);

impl WebhookSecret {
    /// A secret of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

/// A subscription to events of all sessions, which are sent to an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Webhook {
    /// The id.
    pub id: Uuid,
    /// Where the events are sent.
    pub url: String,
    /// The key of the signatures.
    #[serde(skip)]
    pub secret: WebhookSecret,
    /// The events that are sent.
    #[serde(serialize_with = "names")]
    #[schemars(with = "Vec<WebhookEvent>")]
    pub events: Vec<WebhookEvent>,
    /// Whether the events are sent with their payload, which may have parts of the conversation. Without it they have ids and states.
    pub content: bool,
    /// When the webhook was created, in milliseconds since 1970. Events of before are not sent.
    pub created_at: u64,
    /// Who created the webhook.
    pub created_by: Option<String>,
    /// Since when no attempt has succeeded, in milliseconds since 1970. `None` if the last one did.
    pub failing_since: Option<u64>,
    /// Why the last attempt failed, or which events could not be sent because the log has them no more as they were.
    pub last_error: Option<String>,
    /// When the webhook was disabled because its address did not answer, in milliseconds since 1970. Then nothing is sent.
    pub disabled_at: Option<u64>,
}

fn names<S: Serializer>(events: &[WebhookEvent], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(events.iter().map(|event| event.as_str()))
}

impl Webhook {
    /// A webhook with a random id that is not failing.
    pub fn new(url: impl Into<String>, secret: WebhookSecret, events: Vec<WebhookEvent>) -> Self {
        Self {
            id: Uuid::new_v4(),
            url: url.into(),
            secret,
            events,
            content: false,
            created_at: crate::clock::now(),
            created_by: None,
            failing_since: None,
            last_error: None,
            disabled_at: None,
        }
    }
}

/// One change of the webhooks of a log.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WebhookWrite {
    /// Adds a webhook. Its cursor in each session that is there is the newest event.
    Add(Box<Webhook>),
    /// Removes the webhook with its cursors.
    Remove(Uuid),
    /// Sets the webhook's cursor in a session: it has got, or did not want, the events up to this `seq`.
    Cursor {
        /// The webhook.
        webhook: Uuid,
        /// The session.
        session: SessionId,
        /// The last event.
        seq: u64,
    },
    /// The webhook's address does not answer as it should; `None` if it does again.
    Failing {
        /// The webhook.
        webhook: Uuid,
        /// See [`Webhook::failing_since`], with [`Webhook::last_error`].
        failing: Option<(u64, String)>,
    },
    /// Events of a session can't be sent, whatever the address does.
    Unsendable {
        /// The webhook.
        webhook: Uuid,
        /// See [`Webhook::last_error`].
        error: String,
    },
    /// Disables a webhook.
    Disable {
        /// The webhook.
        webhook: Uuid,
        /// See [`Webhook::disabled_at`].
        at: u64,
        /// See [`Webhook::last_error`].
        reason: String,
    },
    /// Enables the webhook. It gets what it missed, as far as the log still has it.
    Enable(Uuid),
}
