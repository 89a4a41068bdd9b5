//! Prompts that are sent at times.

use outrigger::SessionId;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::approval::named;

named! {
    /// What becomes of times that passed while the host was down.
    MissedRuns {
        /// Missed times are reported, and nothing is sent.
        Skip = "skip",
        /// Missed times are reported, and the prompt is sent once, for the latest of them.
        Latest = "latest",
    }
}

/// A prompt that is sent to a session at times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Schedule {
    /// The id.
    pub id: Uuid,
    /// The session.
    #[schemars(with = "Uuid")]
    pub session_id: SessionId,
    /// The times, as a cron expression.
    pub cron: String,
    /// The IANA name of the time zone of the times, such as `Europe/Berlin`.
    pub time_zone: String,
    /// The text of the prompt.
    pub prompt: String,
    /// What becomes of times that passed while the host was down.
    pub missed: MissedRuns,
    /// When the schedule is due next, in milliseconds since 1970. `None` if there is no such time.
    pub next_at: Option<u64>,
    /// Whether the schedule runs.
    pub enabled: bool,
    /// When the schedule was created, in milliseconds since 1970.
    pub created_at: u64,
    /// Who created the schedule. Prompts have the actor `schedule:` and the id.
    pub created_by: Option<String>,
}

impl Schedule {
    /// An enabled schedule with a random id, due at `next_at`, that skips missed times.
    pub fn new(
        session_id: SessionId,
        cron: impl Into<String>,
        time_zone: impl Into<String>,
        prompt: impl Into<String>,
        next_at: Option<u64>,
    ) -> Self {
        Self {
            id: Uuid::new_v4(),
            session_id,
            cron: cron.into(),
            time_zone: time_zone.into(),
            prompt: prompt.into(),
            missed: MissedRuns::Skip,
            next_at,
            enabled: true,
            created_at: crate::clock::now(),
            created_by: None,
        }
    }

    /// The `uuid` of the prompt for a time: always the same one, so that no time is ever run twice.
    pub fn prompt_id(&self, due: u64) -> Uuid {
        Uuid::new_v5(&self.id, &due.to_be_bytes())
    }
}

/// What is done about times of a schedule that have come.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DueRun {
    /// The time that the prompt is sent for. `None` if none is sent.
    pub run: Option<u64>,
    /// Times that passed: the first, the last, and how many. They are reported by an event `schedule_missed` of the session.
    pub missed: Option<(u64, u64, u64)>,
    /// When the schedule is due after that.
    pub next_at: Option<u64>,
}

impl DueRun {
    /// Sends nothing and reports nothing; the schedule is due at `next_at`.
    pub fn new(next_at: Option<u64>) -> Self {
        Self {
            run: None,
            missed: None,
            next_at,
        }
    }
}
