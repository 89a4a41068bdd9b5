//! What a front needs of a host.

use std::time::{Duration, SystemTime};

use outrigger_json::RawJson;
use serde::Deserialize;
use tokio::sync::{broadcast, watch};

use crate::token::{Actor, Scope};

/// Keeps the events of sessions.
///
/// A front asks it with the id that the client wrote in the path; a host answers [`HostError::UnknownSession`] for what is none.
pub trait Host: Send + Sync + 'static {
    /// Subscribes to a session.
    fn subscribe(&self, session: &str) -> impl Future<Output = Result<Subscription, HostError>> + Send;

    /// The durable events after `after`, oldest first, at most `limit`. Empty only when there are none.
    fn events(
        &self,
        session: &str,
        after: u64,
        limit: usize,
    ) -> impl Future<Output = Result<Page, HostError>> + Send;

    /// Makes what a client sent durable, all of it or nothing, in its order. It is durable when this returns.
    ///
    /// A payload whose [`key`](Payload::key) the session has already is not stored again: the result has the first event, and
    /// [`Effect::Repeated`].
    fn accept(
        &self,
        session: &str,
        actor: &Actor,
        payloads: Vec<Payload>,
    ) -> impl Future<Output = Result<Vec<Accepted>, HostError>> + Send;
}

/// What a stream of a session reads beside the log.
#[derive(Debug)]
#[non_exhaustive]
pub struct Subscription {
    /// The sequence number of the last durable event. It is sent after the event is durable. When the sender is dropped, the
    /// stream ends.
    pub head: watch::Receiver<u64>,
    /// Events that are not durable. A stream that falls behind what the channel keeps is disconnected.
    pub ephemeral: broadcast::Receiver<Ephemeral>,
}

impl Subscription {
    /// A subscription of these channels.
    pub fn new(head: watch::Receiver<u64>, ephemeral: broadcast::Receiver<Ephemeral>) -> Self {
        Self { head, ephemeral }
    }
}

/// A part of a session's log.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Page {
    /// The events, with dense sequence numbers.
    pub events: Vec<Event>,
    /// The sequence number of the oldest event that is kept. 1, unless the log was trimmed.
    pub first: u64,
    /// The sequence number of the last durable event. 0 when there is none.
    pub head: u64,
}

impl Page {
    /// A page of a log that goes from `first` to `head`.
    pub fn new(events: Vec<Event>, first: u64, head: u64) -> Self {
        Self { events, first, head }
    }
}

/// A durable event of a session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Event {
    /// The sequence number: dense from 1 in each session.
    pub seq: u64,
    /// The id of the event.
    pub id: String,
    /// When it became durable.
    pub at: SystemTime,
    /// Who wrote it.
    pub source: Source,
    /// The label of the token with which it was sent; `None` for what no client sent.
    pub actor: Option<String>,
    /// The frame, as it came.
    pub payload: RawJson,
}

impl Event {
    /// An event of the worker or the host, which no client sent.
    pub fn new(seq: u64, id: impl Into<String>, at: SystemTime, source: Source, payload: RawJson) -> Self {
        Self {
            seq,
            id: id.into(),
            at,
            source,
            actor: None,
            payload,
        }
    }
}

/// Who wrote an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// A client.
    Client,
    /// The process of the CLI.
    Worker,
    /// The host itself.
    Host,
}

/// An event that is not durable.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Ephemeral {
    /// A frame that a later, durable one supersedes, such as `stream_event`.
    Frame(RawJson),
    /// How far the worker is with what a client sent.
    Delivery {
        /// The id of the durable event.
        event_id: String,
        /// How far the worker is with it.
        status: DeliveryStatus,
    },
}

/// How far the worker is with what a client sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeliveryStatus {
    /// The worker has it.
    Received,
    /// Its turn has begun.
    Processing,
    /// Its turn has ended.
    Processed,
}

/// What a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PayloadKind {
    /// A prompt: `user`.
    Prompt,
    /// An SDK request: `control_request`.
    Request,
    /// A decision, which is the reply to a CLI request: `control_response`.
    Decision,
    /// The withdrawal of an SDK request: `control_cancel_request`.
    Withdrawal,
}

impl PayloadKind {
    /// The scope that a token needs to send it.
    pub fn scope(self) -> Scope {
        match self {
            Self::Decision => Scope::Approve,
            Self::Prompt | Self::Request | Self::Withdrawal => Scope::Send,
        }
    }
}

/// A frame that a client sent, which has an id that tells repetitions.
#[derive(Debug, Clone)]
pub struct Payload {
    kind: PayloadKind,
    id: String,
    json: RawJson,
}

/// Why a frame is none that clients may send.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPayload {
    /// The frame is no object with a `type`.
    #[error("the payload is no frame: {0}")]
    NoFrame(String),
    /// Clients do not send frames of this type.
    #[error(
        "clients send `user`, `control_request`, `control_response` and `control_cancel_request`, not `{0}`"
    )]
    Type(String),
    /// The frame lacks the id that tells repetitions.
    #[error("the frame has no `{0}`, by which a repetition would be known")]
    NoId(&'static str),
}

impl Payload {
    /// Reads the type and the id of a frame.
    ///
    /// # Errors
    /// When clients do not send such frames, or the frame has no id.
    pub fn read(json: RawJson) -> Result<Self, InvalidPayload> {
        #[derive(Deserialize)]
        struct Head {
            r#type: String,
            uuid: Option<String>,
            request_id: Option<String>,
            response: Option<Response>,
        }
        #[derive(Deserialize)]
        struct Response {
            request_id: Option<String>,
        }
        let head: Head = json
            .decode()
            .map_err(|error| InvalidPayload::NoFrame(error.to_string()))?;
        let (kind, id, field) = match head.r#type.as_str() {
            "user" => (PayloadKind::Prompt, head.uuid, "uuid"),
            "control_request" => (PayloadKind::Request, head.request_id, "request_id"),
            "control_response" => {
                let id = head.response.and_then(|response| response.request_id);
                (PayloadKind::Decision, id, "response.request_id")
            }
            "control_cancel_request" => (PayloadKind::Withdrawal, head.request_id, "request_id"),
            _ => return Err(InvalidPayload::Type(head.r#type)),
        };
        let id = id
            .filter(|id| !id.is_empty())
            .ok_or(InvalidPayload::NoId(field))?;
        Ok(Self { kind, id, json })
    }

    /// What it is.
    pub fn kind(&self) -> PayloadKind {
        self.kind
    }

    /// What tells a repetition within a session: the kind with the `uuid` of a prompt, or the `request_id` of the rest.
    pub fn key(&self) -> (PayloadKind, &str) {
        (self.kind, &self.id)
    }

    /// The frame, as the client sent it.
    pub fn json(&self) -> &RawJson {
        &self.json
    }
}

/// What became of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accepted {
    /// The id of the event.
    pub event_id: String,
    /// Its sequence number.
    pub seq: u64,
    /// What the payload does.
    pub effect: Effect,
}

impl Accepted {
    /// A payload that is the event `event_id`.
    pub fn new(event_id: impl Into<String>, seq: u64, effect: Effect) -> Self {
        Self {
            event_id: event_id.into(),
            seq,
            effect,
        }
    }
}

/// What a payload does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// It is a new event.
    Stored,
    /// The session had it already.
    Repeated,
    /// It is a decision, and somebody else decided first. The event is the first decision. This is no error, because clients of
    /// the official wire replay a request and answer it again.
    Decided {
        /// The label of the token that decided.
        by: Option<String>,
    },
}

/// Why a host does not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// There is no such session.
    #[error("there is no such session")]
    UnknownSession,
    /// The host does not allow it. The text goes to the client.
    #[error("not allowed: {0}")]
    Forbidden(String),
    /// The host cannot do it now, for example because its queue is full.
    #[error("not now; try again in {} s", .0.as_secs())]
    Unavailable(Duration),
    /// The host failed, and nothing is durable. The text goes to the log of the program, not to the client.
    #[error("the host failed: {0}")]
    Failed(String),
}
