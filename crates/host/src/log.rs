//! The log: what is durable of all sessions.
//!
//! An event is published after its transaction is committed, never before: what a reader has seen, no crash can take back.

mod hub;
mod schema;
mod sqlite;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use outrigger::protocol::RawJson;
use outrigger::{SessionId, SessionUsage};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(crate) use self::hub::Live;
pub use self::hub::{Hint, Hints, Hub};
pub use self::sqlite::{Check, SqliteLog};
use crate::approval::{Approval, ApprovalState};
use crate::audit::AuditEntry;
use crate::error::Result;
use crate::event::{Accepted, Delivery, LogEvent, SessionRecord, SessionState, Source, Worktree};
use crate::schedule::Schedule;
use crate::webhook::{Webhook, WebhookWrite};

/// A future of a log.
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

/// Where a host keeps what is durable. [`SqliteLog`] is one.
///
/// # Cancel safety
/// A transaction whose future was dropped may be done or not. A client repeats an accepted event with the same id.
pub trait Log: Send + Sync + 'static {
    /// Does a transaction, and publishes its events when it is on disk.
    ///
    /// # Errors
    /// When the log fails, the session is missing, or a step is refused. Then nothing was written.
    fn write<'a>(&'a self, session: &'a SessionId, steps: Vec<Write>) -> BoxFuture<'a, Result<Receipt>>;

    /// Up to `limit` events after a `seq`; fewer if they are long, and at least one if there is one.
    ///
    /// # Errors
    /// When the log fails or the session is missing.
    fn events<'a>(&'a self, session: &'a SessionId, after: u64, limit: usize) -> BoxFuture<'a, Result<Page>>;

    /// A session.
    ///
    /// # Errors
    /// When the log fails or the session is missing.
    fn session<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<SessionRecord>>;

    /// Up to `limit` sessions with an id after `after`, in the order of their ids.
    ///
    /// # Errors
    /// When the log fails.
    fn sessions<'a>(
        &'a self,
        after: Option<&'a SessionId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionRecord>>>;

    /// How much there is.
    ///
    /// # Errors
    /// When the log fails.
    fn counts(&self) -> BoxFuture<'_, Result<Counts>>;

    /// The sessions that were in the middle of something, or have prompts that wait: what a host that starts has to look at.
    ///
    /// # Errors
    /// When the log fails.
    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<SessionId>>>;

    /// What waits for the process of a session. Of what clients sent, only that with a `seq` after `after`, so that nothing long is read again and again.
    ///
    /// # Errors
    /// When the log fails.
    fn waiting<'a>(&'a self, session: &'a SessionId, after: u64) -> BoxFuture<'a, Result<PendingWork>>;

    /// Up to `limit` approvals, the oldest first, from behind the [number](Approval::number) `after` on: of one session or of all, in one state or in any.
    ///
    /// # Errors
    /// When the log fails.
    fn approvals<'a>(
        &'a self,
        session: Option<&'a SessionId>,
        state: Option<ApprovalState>,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Approval>>>;

    /// How many other sessions that are not archived have this worktree.
    ///
    /// # Errors
    /// When the log fails.
    fn others_in<'a>(&'a self, worktree: &'a str, session: &'a SessionId) -> BoxFuture<'a, Result<u64>>;

    /// The worktrees of all sessions that are not archived, made or not yet made, each once.
    ///
    /// # Errors
    /// When the log fails.
    fn worktrees(&self) -> BoxFuture<'_, Result<Vec<Worktree>>>;

    /// What a session has used, or all sessions together, those that were deleted included.
    ///
    /// # Errors
    /// When the log fails.
    fn usage<'a>(&'a self, session: Option<&'a SessionId>) -> BoxFuture<'a, Result<SessionUsage>>;

    /// An approval.
    ///
    /// # Errors
    /// When the log fails or there is no such approval.
    fn approval(&self, id: Uuid) -> BoxFuture<'_, Result<Approval>>;

    /// The newest approval of a session that is about this request of the CLI.
    ///
    /// # Errors
    /// When the log fails.
    fn approval_of<'a>(
        &'a self,
        session: &'a SessionId,
        request: &'a str,
    ) -> BoxFuture<'a, Result<Option<Approval>>>;

    /// What the newest process of a session said when it started.
    ///
    /// # Errors
    /// When the log fails.
    fn initialized<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<RawJson>>>;

    /// All records of a kind with their ids, in the order of the ids. Records are what is durable and belongs to no session, such as tokens.
    ///
    /// # Errors
    /// When the log fails.
    fn records<'a>(&'a self, kind: &'a str) -> BoxFuture<'a, Result<Vec<(String, RawJson)>>>;

    /// The record of a kind with this id.
    ///
    /// # Errors
    /// When the log fails.
    fn record<'a>(&'a self, kind: &'a str, id: &'a str) -> BoxFuture<'a, Result<Option<RawJson>>> {
        Box::pin(async move {
            let records = self.records(kind).await?;
            Ok(records
                .into_iter()
                .find_map(|(known, value)| (known == id).then_some(value)))
        })
    }

    /// Sets a record, or removes it.
    ///
    /// # Errors
    /// When the log fails. Then nothing was written.
    fn put_record<'a>(
        &'a self,
        kind: &'a str,
        id: &'a str,
        value: Option<RawJson>,
    ) -> BoxFuture<'a, Result<()>>;

    /// Adds an entry to the audit. Of more than a million, the oldest are removed.
    ///
    /// # Errors
    /// When the log fails.
    fn audit(&self, entry: AuditEntry) -> BoxFuture<'_, Result<()>>;

    /// Up to `limit` entries of the audit, the newest first, from before the number `before` on.
    ///
    /// # Errors
    /// When the log fails.
    fn audited(&self, before: Option<u64>, limit: usize) -> BoxFuture<'_, Result<Vec<AuditEntry>>>;

    /// The webhooks, the oldest first.
    ///
    /// # Errors
    /// When the log fails.
    fn webhooks(&self) -> BoxFuture<'_, Result<Vec<Webhook>>>;

    /// Changes the webhooks.
    ///
    /// # Errors
    /// When the log fails, or the webhook is missing.
    fn write_webhook(&self, write: WebhookWrite) -> BoxFuture<'_, Result<()>>;

    /// The last event of a session that a webhook has got, or did not want; 0 before the first.
    ///
    /// # Errors
    /// When the log fails.
    fn webhook_cursor<'a>(&'a self, webhook: Uuid, session: &'a SessionId) -> BoxFuture<'a, Result<u64>>;

    /// Up to `limit` sessions with an id after `after` that have events after the cursor of a webhook, in the order of their ids.
    ///
    /// # Errors
    /// When the log fails.
    fn behind<'a>(
        &'a self,
        webhook: Uuid,
        after: Option<&'a SessionId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionId>>>;

    /// The schedules, the oldest first.
    ///
    /// # Errors
    /// When the log fails.
    fn schedules(&self) -> BoxFuture<'_, Result<Vec<Schedule>>>;

    /// Where committed events are published.
    fn hub(&self) -> &Arc<Hub>;
}
