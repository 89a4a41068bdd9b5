//! Schedules: prompts at times.

mod times;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use outrigger::SessionId;
use outrigger_host::log::Write;
use outrigger_host::{HostError, MissedRuns, Result, Schedule, SessionHost, SessionState};
use tokio::sync::watch;
use uuid::Uuid;

pub(crate) use self::times::Times;
use crate::clock::Clock;

/// The most schedules of a host.
const SCHEDULES: usize = 1000;

/// The longest text of a prompt, in bytes.
const PROMPT: usize = 64 << 10;

/// How long the wall clock is left alone: it may be set, and a machine may sleep.
const LOOK: Duration = Duration::from_secs(30);

/// How long a failed reading of the log pauses the schedules.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// When a schedule is tried again whose session has no room for its prompt, or cannot be read, in milliseconds.
const TRY_AGAIN: u64 = 30_000;

/// What a new schedule is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NewSchedule {
    /// The session that gets the prompt.
    pub session_id: SessionId,
    /// The times, as a cron expression: minute, hour, day of the month, month, day of the week (`0 3 * * MON-FRI`), or a nickname such as `@daily`.
    pub cron: String,
    /// The IANA name of the time zone, such as `Europe/Berlin`.
    pub time_zone: String,
    /// The text of the prompt.
    pub prompt: String,
    /// What becomes of times that passed while the host was down. They are skipped by default.
    pub missed: MissedRuns,
}

impl NewSchedule {
    /// A schedule that skips missed times.
    pub fn new(
        session_id: SessionId,
        cron: impl Into<String>,
        time_zone: impl Into<String>,
        prompt: impl Into<String>,
    ) -> Self {
        Self {
            session_id,
            cron: cron.into(),
            time_zone: time_zone.into(),
            prompt: prompt.into(),
            missed: MissedRuns::Skip,
        }
    }
}

/// The schedules of a host. Cheap to clone. Nothing is sent unless [`run`](Self::run) runs.
///
/// A time that a change of the clock skips (the hour before summer) is run at the first moment after it, and a time that comes twice (the hour
/// after summer) is run the first time; an expression with `*` or `/` in its minutes or hours goes on every so many minutes of real time.
#[derive(Debug, Clone)]
pub struct Schedules {
    host: SessionHost,
    clock: Clock,
    /// Tells `run` that the list is another one.
    changed: Arc<watch::Sender<()>>,
}

impl Schedules {
    /// The schedules of a host.
    pub fn new(host: &SessionHost) -> Self {
        Self::with_clock(host, Clock::default())
    }

    /// Like [`new`](Self::new), with a clock of the program.
    pub fn with_clock(host: &SessionHost, clock: Clock) -> Self {
        Self {
            host: host.clone(),
            clock,
            changed: Arc::new(watch::Sender::new(())),
        }
    }

    /// Adds a schedule.
    ///
    /// # Cancel safety
    /// Dropped, it may have added the schedule or not.
    ///
    /// # Errors
    /// When the expression, the time zone or the prompt is not valid, when no time will ever come, when the session is missing or archived, when
    /// there are too many schedules, and when the log fails.
    pub async fn add(&self, new: NewSchedule, actor: impl Into<String>) -> Result<Schedule> {
        let times = Times::parse(&new.cron, &new.time_zone).map_err(HostError::Invalid)?;
        if new.prompt.trim().is_empty() || new.prompt.len() > PROMPT {
            return Err(HostError::Invalid(format!(
                "a prompt has text, and at most {PROMPT} bytes"
            )));
        }
        let Some(next_at) = times.after(self.clock.millis()) else {
            return Err(HostError::Invalid(format!("`{}` is never due", new.cron)));
        };
        if self.host.session(&new.session_id).await?.state == SessionState::Ended {
            return Err(HostError::Archived(new.session_id));
        }
        let known = self.list().await?.len();
        if known >= SCHEDULES {
            return Err(HostError::Invalid(format!(
                "there are {known} schedules already; remove one first"
            )));
        }
        let mut schedule = Schedule::new(new.session_id, new.cron, new.time_zone, new.prompt, Some(next_at));
        schedule.missed = new.missed;
        schedule.created_at = self.clock.millis();
        schedule.created_by = Some(actor.into());
        let steps = vec![Write::Schedule(Box::new(schedule.clone()))];
        self.write(&schedule.session_id, steps).await?;
        Ok(schedule)
    }

    /// All schedules, the oldest first.
    ///
    /// # Errors
    /// When the log can't be read.
    pub async fn list(&self) -> Result<Vec<Schedule>> {
        self.host.event_log().schedules().await
    }

    /// Removes a schedule. A prompt that it has sent stays.
    ///
    /// # Errors
    /// When there is none of this id, or the log fails.
    pub async fn remove(&self, id: Uuid) -> Result<()> {
        let schedules = self.list().await?;
        let Some(schedule) = schedules.into_iter().find(|schedule| schedule.id == id) else {
            return Err(HostError::NoSchedule(id));
        };
        self.write(&schedule.session_id, vec![Write::Unschedule(id)])
            .await
    }

    async fn write(&self, session: &SessionId, steps: Vec<Write>) -> Result<()> {
        self.host.event_log().write(session, steps).await?;
        self.changed.send_replace(());
        Ok(())
    }

    /// Sends prompts when they are due, for as long as it is polled.
    ///
    /// # Cancel safety
    /// Dropped, it stops. What is due then is done by the next one; no time is run twice.
    pub async fn run(&self) -> Infallible {
        let mut changed = self.changed.subscribe();
        let mut before = None;
        loop {
            changed.borrow_and_update();
            let wait = match self.tick(&mut before).await {
                Ok(wait) => wait,
                Err(error) => {
                    tracing::error!(%error, "the schedules pause because the log failed");
                    AFTER_FAILURE
                }
            };
            tokio::select! {
                _ = changed.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Does what is due, and returns how long nothing more is due. `before` is the time of the last tick; none at the start.
    async fn tick(&self, before: &mut Option<u64>) -> Result<Duration> {
        let now = self.clock.millis();
        let was_ahead = before.is_none_or(|before| now < before);
        let mut wait = LOOK;
        for schedule in self.list().await? {
            let next_at = match self.attend(&schedule, now, was_ahead).await {
                Ok(next_at) => next_at,
                Err(error @ (HostError::Log(_) | HostError::Closed)) => return Err(error),
                // The others do not wait for it.
                Err(error) => {
                    tracing::warn!(schedule = %schedule.id, session = %schedule.session_id, %error, "a schedule waits");
                    Some(now.saturating_add(TRY_AGAIN))
                }
            };
            if let Some(next_at) = next_at {
                wait = wait.min(Duration::from_millis(next_at.saturating_sub(now)));
            }
        }
        *before = Some(now);
        Ok(wait)
    }

    /// Does what is due of a schedule, and returns when it is due next.
    async fn attend(&self, schedule: &Schedule, now: u64, was_ahead: bool) -> Result<Option<u64>> {
        let Some(mut due) = schedule.next_at.filter(|_| schedule.enabled) else {
            return Ok(None);
        };
        if due > now && was_ahead {
            due = self.bring_forward(schedule, due, now).await?;
        }
        match due > now {
            true => Ok(Some(due)),
            false => self.carry_out(schedule, due, now).await,
        }
    }

    /// When a schedule is due, for a `due` that may have been computed while the clock was ahead, perhaps by a year: the next time after `now`, if that is
    /// earlier. A time that comes again sends nothing twice, since its prompt has the same id.
    async fn bring_forward(&self, schedule: &Schedule, due: u64, now: u64) -> Result<u64> {
        let times = Times::parse(&schedule.cron, &schedule.time_zone);
        let next = times.ok().and_then(|times| times.after(now));
        let Some(next) = next.filter(|next| *next < due) else {
            return Ok(due);
        };
        tracing::warn!(schedule = %schedule.id, session = %schedule.session_id, "the clock was set back, and the schedule with it");
        let set = Write::Reschedule {
            id: schedule.id,
            due: Some(due),
            next_at: Some(next),
            enabled: true,
        };
        let log = self.host.event_log();
        match log.write(&schedule.session_id, vec![set]).await {
            Ok(_) => Ok(next),
            // It is gone, or another one than it was.
            Err(HostError::NoSchedule(_) | HostError::NoSession(_)) => Ok(due),
            Err(error) => Err(error),
        }
    }

    async fn carry_out(&self, schedule: &Schedule, due: u64, now: u64) -> Result<Option<u64>> {
        let times = match Times::parse(&schedule.cron, &schedule.time_zone) {
            Ok(times) => times,
            // The time zone is one that this machine does not have.
            Err(error) => {
                self.disable(schedule, &error).await?;
                return Ok(None);
            }
        };
        let plan = times.plan(due, now, schedule.missed);
        let next_at = plan.next_at;
        match self.host.run_schedule(schedule, plan).await {
            Ok(true) => Ok(next_at),
            // It was done before, maybe for an earlier now by a runner that was dropped: the log has when it is due.
            Ok(false) => Ok(Some(now)),
            Err(error @ (HostError::Archived(_) | HostError::Reused(_))) => {
                self.disable(schedule, &error.to_string()).await?;
                Ok(None)
            }
            Err(HostError::NoSession(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn disable(&self, schedule: &Schedule, reason: &str) -> Result<()> {
        tracing::warn!(schedule = %schedule.id, session = %schedule.session_id, reason, "a schedule was disabled");
        let disable = Write::Reschedule {
            id: schedule.id,
            due: schedule.next_at,
            next_at: schedule.next_at,
            enabled: false,
        };
        let event = outrigger_host::log::NewEvent::new(
            outrigger_host::Source::Host,
            "schedule_disabled",
            serde_json::json!({"type": "schedule_disabled", "schedule_id": schedule.id, "reason": reason})
                .into(),
        );
        let steps = vec![disable, Write::Append(event)];
        match self.host.event_log().write(&schedule.session_id, steps).await {
            Ok(_) | Err(HostError::NoSchedule(_) | HostError::NoSession(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
