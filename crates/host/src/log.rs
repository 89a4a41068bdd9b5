//! The log: what is durable of all sessions.
//!
//! An event is published after its transaction is committed, never before: what a reader has seen, no crash can take back.

mod hub;
mod schema;
mod sqlite;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use outrigger::SessionUsage;
use outrigger::protocol::RawJson;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(crate) use self::hub::Live;
pub use self::hub::{Hint, Hints, Hub};
pub use self::sqlite::{Check, SqliteLog};
use crate::approval::{Approval, ApprovalState};
use crate::event::{Accepted, Delivery, LogEvent, SessionRecord, SessionState, Source};
use crate::schedule::Schedule;

/// A future behind a trait.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An event that has no number yet.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NewEvent {
    /// See [`LogEvent::event_id`].
    pub event_id: Uuid,
    /// See [`LogEvent::source`].
    pub source: Source,
    /// See [`LogEvent::actor`].
    pub actor: Option<String>,
    /// See [`LogEvent::kind`].
    pub kind: String,
    /// See [`LogEvent::payload`].
    pub payload: RawJson,
}

impl NewEvent {
    /// An event with a random id.
    pub fn new(source: Source, kind: impl Into<String>, payload: RawJson) -> Self {
        Self {
            event_id: Uuid::new_v4(),
            source,
            actor: None,
            kind: kind.into(),
            payload,
        }
    }

    /// An event of the host itself.
    pub(crate) fn host(kind: &str, payload: impl Into<RawJson>) -> Self {
        Self::new(Source::Host, kind, payload.into())
    }
}

/// One step of a transaction about one session. All steps of a transaction are done, or none.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Write {
    /// Creates the session. If it is there already, that is an error, unless the request was the same.
    Create {
        /// The session.
        record: Box<SessionRecord>,
        /// What was asked for, as text.
        request: String,
    },
    /// Appends an event.
    Append(NewEvent),
    /// Appends a client's event that is known by its id, unless the log has it. It waits for the owner of the session.
    Accept(NewEvent),
    /// Sets how far an accepted event got. For a prompt, it appends a `delivery_update`.
    Mark(Uuid, Delivery),
    /// Sets the state, and appends a `session_state_changed` of the host if it is another one.
    Enter(SessionState),
    /// A process is about to start: the next epoch.
    NextEpoch,
    /// The CLI has stored a turn.
    HasHistory,
    /// What the process said when it started: its commands, models, and account (the reply to `initialize`).
    Initialized(RawJson),
    /// Sets what clients may change, and appends a `session_updated`.
    Update(Update),
    /// Adds to what the session has used.
    Spend(SessionUsage),
    /// Opens an approval. An earlier one about the same call is linked.
    Open(Box<Approval>),
    /// Decides about a pending approval.
    Decide {
        /// The approval.
        id: Uuid,
        /// The new state.
        state: ApprovalState,
        /// Who decides.
        actor: Option<String>,
        /// What the CLI gets.
        decision: Option<RawJson>,
        /// Whether it is an error that the approval is not pending any more. If not, the receipt has who decided.
        must_be_first: bool,
    },
    /// The CLI has got the decision.
    Applied(Uuid),
    /// The CLI withdrew the request of this id.
    Withdraw(String),
    /// No pending approval can be decided any more, except those that are [deferred](Approval::deferred).
    SupersedeAll,
    /// A deferred approval is never carried out. If it is pending, it is superseded; if it was decided and the CLI has not got the decision, an event
    /// (`decision_not_applied`) says why it does not get it.
    GiveUp {
        /// The approval.
        id: Uuid,
        /// The reason, for the event.
        reason: String,
    },
    /// No deferred approval of the session is ever carried out; see [`GiveUp`](Self::GiveUp).
    GiveUpAll {
        /// The reason, for the events.
        reason: String,
    },
    /// Adds a schedule of the session.
    Schedule(Box<Schedule>),
    /// Sets when a schedule is due next, or fails if it is not due at `due` any more.
    Reschedule {
        /// The schedule.
        id: Uuid,
        /// When the schedule was due until now.
        due: Option<u64>,
        /// See [`Schedule::next_at`].
        next_at: Option<u64>,
        /// See [`Schedule::enabled`].
        enabled: bool,
    },
    /// Removes a schedule of the session.
    Unschedule(Uuid),
    /// Removes the events up to this `seq`; approvals and prompts stay.
    Trim(u64),
    /// Removes the session with all that belongs to it.
    Delete,
}

/// What a transaction wrote.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Receipt {
    /// The events, in order.
    pub events: Vec<Arc<LogEvent>>,
    /// What became of each [`Write::Accept`] and [`Write::Decide`], in order.
    pub accepted: Vec<Accepted>,
}

/// What clients may change of a session. `None` leaves a value as it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Update {
    /// The title; `Some(None)` removes it.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub title: Option<Option<String>>,
    /// The model; `Some(None)` is the policy's.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub model: Option<Option<String>>,
    /// The permission mode; `Some(None)` is the policy's.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub permission_mode: Option<Option<String>>,
}

/// Tells `null` from a value that is not there.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// A page of events.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Page {
    /// The events, in the order of `seq`.
    pub events: Vec<Arc<LogEvent>>,
    /// The newest `seq` of the session when the page was read.
    pub head_seq: u64,
    /// Events up to this `seq` were removed by retention.
    pub trimmed_seq: u64,
}

/// How much a log has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// The sessions in each state in which there are some.
    pub sessions: Vec<(SessionState, u64)>,
    /// The approvals that are pending.
    pub pending_approvals: u64,
    /// Prompts that no process has got.
    pub waiting_prompts: u64,
}

/// What waits for the process of a session.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PendingWork {
    /// What clients sent and the owner has not begun with, in order.
    pub received: Vec<Received>,
    /// Prompts whose turn has not ended, and requests that have no response.
    pub processing: Vec<Received>,
    /// Approvals that were decided, and the CLI has not got it: of the newest process, and deferred ones.
    pub decided: Vec<Approval>,
    /// Deferred approvals that are pending.
    pub deferred: Vec<Approval>,
    /// Whether the session was archived.
    pub is_ended: bool,
}

/// An event of a client that waits for the owner of the session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Received {
    /// The event.
    pub id: Uuid,
    /// The number of the event.
    pub seq: u64,
    /// The `type` of the event.
    pub kind: String,
    /// The frame, as the client sent it.
    pub payload: RawJson,
}
