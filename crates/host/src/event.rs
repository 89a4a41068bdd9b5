//! What the log holds.

use outrigger::SessionId;
use outrigger::protocol::RawJson;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::approval::named;

named! {
    /// Who wrote an event.
    Source {
        /// The CLI: the payload is its frame, byte for byte.
        Worker = "worker",
        /// A client: the payload is what it sent.
        Client = "client",
        /// The host itself.
        Host = "host",
    }
}

named! {
    /// What a session does.
    SessionState {
        /// A process is being started.
        Starting = "starting",
        /// The session waits for a prompt, with a process or without one.
        Idle = "idle",
        /// A turn runs.
        Running = "running",
        /// A turn waits for a person.
        RequiresAction = "requires_action",
        /// The last turn was cut off: its process, or the host, ended.
        Interrupted = "interrupted",
        /// The session was archived: it takes no prompts.
        Ended = "ended",
        /// The session's process could not be started; the log has why. The next prompt tries again.
        Failed = "failed",
    }
}

named! {
    /// How far a prompt got.
    Delivery {
        /// The event is durable, and no process has got it.
        Received = "received",
        /// A process is about to get it, or has got it.
        Processing = "processing",
        /// The event's turn has ended.
        Processed = "processed",
        /// The process or the host ended during its turn. The host does not send it again, because tools may have run.
        Interrupted = "interrupted",
        /// The session was archived before a process got it. No process ever does.
        NotBegun = "not_begun",
    }
}

/// A durable event of a session.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct LogEvent {
    /// The session.
    pub session_id: SessionId,
    /// The number in the session: 1, 2, 3, … without gaps. It is the cursor of readers.
    pub seq: u64,
    /// The process that was the newest, counted from 1; 0 before the first.
    pub epoch: u64,
    /// Unique in the session. For a client's event the `uuid` that the client chose.
    pub event_id: Uuid,
    /// When the event was stored, in milliseconds since 1970. The clock may be set back; `seq` is the order.
    pub at: u64,
    /// Who wrote the event.
    pub source: Source,
    /// The person or program that a client's event came from.
    pub actor: Option<String>,
    /// The `type` of the payload.
    #[serde(rename = "type")]
    pub kind: String,
    /// The event itself.
    pub payload: RawJson,
}

impl LogEvent {
    /// The frame, if it is of the conversation or explains it: what the CLI wrote, prompts, and what clients asked the CLI for. An
    /// [`EventReader`](outrigger::EventReader) makes the events of a session of these frames.
    pub fn conversation(&self) -> Option<&RawJson> {
        let counts = match self.source {
            Source::Worker => true,
            Source::Client => matches!(self.kind.as_str(), "user" | "control_request"),
            _ => false,
        };
        counts.then_some(&self.payload)
    }
}

/// A git worktree that the host made for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Worktree {
    /// Where the worktree is.
    pub path: String,
    /// The repository that the worktree is of.
    pub repository: String,
    /// The branch that was made for it.
    pub branch: String,
    /// The commit that the branch began at.
    pub base: String,
}

/// A session as the log knows it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Session")]
#[non_exhaustive]
pub struct SessionRecord {
    /// The id, which is the CLI's id, too.
    #[schemars(with = "Uuid")]
    pub id: SessionId,
    /// What the session does.
    pub state: SessionState,
    /// The working directory.
    pub cwd: String,
    /// The git worktree that the working directory is in, if the host made one. It is made before the first process starts.
    pub worktree: Option<Worktree>,
    /// Whether the CLI had the session before the host. The events of before are in no log; the transcript has the conversation.
    pub adopted: bool,
    /// The session that this one began as a copy of. The events of before are in that session.
    #[schemars(with = "Option<Uuid>")]
    pub forked_from: Option<SessionId>,
    /// The title.
    pub title: Option<String>,
    /// The model that a client asked for; the policy's if unset.
    pub model: Option<String>,
    /// The permission mode that a client asked for; the policy's if unset.
    pub permission_mode: Option<String>,
    /// The newest process, counted from 1.
    pub epoch: u64,
    /// The `seq` of the newest event.
    pub head_seq: u64,
    /// Events up to this `seq` were removed by retention.
    pub trimmed_seq: u64,
    /// Whether the CLI has stored a turn of it, so that it has to be resumed.
    pub has_history: bool,
    /// Approvals that are pending.
    pub pending_approvals: u64,
    /// When the session was created, in milliseconds since 1970.
    pub created_at: u64,
    /// Who created the session.
    pub created_by: Option<String>,
}

/// What became of something that a client sent. It is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Accepted {
    /// The id of the event.
    pub event_id: Uuid,
    /// The number of the event.
    pub seq: u64,
    /// What the request did.
    pub effect: Effect,
}

/// What something that a client sent did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// The log stored a new event.
    Stored,
    /// The log had the event already.
    Repeated,
    /// It is a decision, and the approval was not pending any more. The event is what ended the approval.
    Decided {
        /// Who decided; `None` if nobody did.
        by: Option<String>,
    },
}
