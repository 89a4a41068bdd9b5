//! How a message gets to its address.

mod http;

use std::time::Duration;

use outrigger_host::log::BoxFuture;

pub(crate) use self::http::target;
pub use self::http::{HttpDeliver, HttpError};

/// A signed message of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Where the message goes.
    pub url: String,
    /// The header `webhook-id`: the same one whenever this event is sent.
    pub id: String,
    /// The header `webhook-timestamp`: when this attempt began, in seconds since 1970.
    pub timestamp: i64,
    /// The header `webhook-signature`.
    pub signature: String,
    /// The body, JSON.
    pub body: String,
}

impl Message {
    /// A message of these parts.
    pub fn new(
        url: impl Into<String>,
        id: impl Into<String>,
        timestamp: i64,
        signature: impl Into<String>,
        body: impl Into<String>,
    ) -> Self {
        Self {
            url: url.into(),
            id: id.into(),
            timestamp,
            signature: signature.into(),
            body: body.into(),
        }
    }
}

/// Why a message was not delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
#[non_exhaustive]
pub struct DeliveryError {
    /// What went wrong.
    pub reason: String,
    /// How long the address asks to be left alone (`Retry-After`).
    pub retry_after: Option<Duration>,
    /// Whether the address says that it wants nothing any more (410): its webhook is disabled.
    pub is_gone: bool,
}

impl DeliveryError {
    /// A failure that the next attempt may not have.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            retry_after: None,
            is_gone: false,
        }
    }
}

/// Sends messages. [`HttpDeliver`] does it by HTTP.
pub trait Deliver: Send + Sync + 'static {
    /// Sends a message. It is delivered when the address has said so.
    ///
    /// # Cancel safety
    /// It is dropped at the deadline of an attempt; the message may have been delivered, and is sent again.
    ///
    /// # Errors
    /// When the address did not say that it has the message.
    fn deliver(&self, message: Message) -> BoxFuture<'_, Result<(), DeliveryError>>;
}
