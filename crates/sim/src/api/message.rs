//! What one request is answered: a message, an error, or nothing.

use std::sync::Arc;
use std::time::Duration;

use crate::script::{ApiError, Assert, ResponsePace, Usage};

/// One answer of the API.
#[derive(Debug, Default)]
pub(super) struct ApiAnswer {
    pub(super) before: Vec<MessageWait>,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    Message(ApiMessage),
    Fault(ApiFault),
    /// The connection closes before anything was sent.
    Dropped,
}

impl Default for Body {
    fn default() -> Self {
        Self::Message(ApiMessage::default())
    }
}

/// A message, in parts. A request without streaming gets it whole, after the waits.
#[derive(Debug, Clone, Default)]
pub(super) struct ApiMessage {
    pub(super) parts: Vec<MessagePart>,
    pub(super) usage: Usage,
    pub(super) stop_reason: Option<String>,
    pub(super) stop_sequence: Option<String>,
    /// Three deltas a block unless given.
    pub(super) pace: Option<ResponsePace>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) content_type: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) enum MessagePart {
    Text(String),
    /// Continues the block before it.
    MoreText(String),
    Thinking(String),
    ToolUse {
        /// The id, which no other call of this server has, unless given.
        id: Option<String>,
        name: String,
        /// JSON text, sent as it is.
        input: String,
    },
    /// A whole content block as JSON text.
    Block(String),
    Wait(MessageWait),
    /// Sent in the stream as it is.
    Raw(String),
    Cut,
    /// The body ends, and the connection is fine.
    Truncated,
    StreamError(String),
}

#[derive(Debug, Clone)]
pub(super) enum MessageWait {
    Gate(String),
    Pause(Duration),
    Forever,
    /// Until the client hangs up. If it does not in time, that is a flaw at this place.
    HangUp {
        patience: Duration,
        place: String,
    },
    /// No wait: here an assertion is judged.
    Judge(Arc<DueAssert>),
}

/// An assertion of a script in an answer.
#[derive(Debug)]
pub(super) struct DueAssert {
    pub(super) place: String,
    /// The session whose frames are judged.
    pub(super) session: String,
    /// What is wrong with the tool result that the model read last.
    pub(super) wrong: Option<String>,
    pub(super) assert: Box<Assert>,
}

/// An error response: an HTTP status with the API's error object. A status that HTTP does not know is sent as 500.
#[derive(Debug, Clone)]
pub(super) struct ApiFault {
    pub(super) status: u16,
    pub(super) kind: String,
    pub(super) text: String,
    pub(super) headers: Vec<(String, String)>,
}

impl ApiFault {
    /// An error of this status, with the error type that the API uses for it.
    pub(super) fn new(status: u16) -> Self {
        Self::from(ApiError::new(status))
    }

    /// Sets the error's text.
    pub(super) fn message(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }
}

impl From<ApiError> for ApiFault {
    fn from(error: ApiError) -> Self {
        let (kind, text) = ApiError::usual(error.status);
        let seconds = error.retry_after.map(|seconds| seconds.to_string());
        let retry = seconds.map(|seconds| ("retry-after".to_owned(), seconds));
        Self {
            status: error.status,
            kind: error.kind.unwrap_or_else(|| kind.to_owned()),
            text: error.message.unwrap_or_else(|| text.to_owned()),
            headers: retry.into_iter().chain(error.headers).collect(),
        }
    }
}

impl From<ApiFault> for ApiAnswer {
    fn from(fault: ApiFault) -> Self {
        Self {
            before: Vec::new(),
            body: Body::Fault(fault),
        }
    }
}
