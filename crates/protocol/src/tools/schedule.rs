//! `CronCreate`, `CronDelete`, `CronList`, `ScheduleWakeup`, `RemoteTrigger`: work at a later time.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/schedule.toml: change that instead.

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// Input of `CronCreate`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CronCreateInput {
    /// When, as a cron expression of five fields in local time.
    pub cron: String,
    /// What to do then.
    pub prompt: String,
    /// Whether the job runs each time, or only once; true if absent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub recurring: Option<bool>,
    /// Whether the job outlives the session; false if absent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub durable: Option<bool>,
}

impl CronCreateInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(cron: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            cron: cron.into(),
            prompt: prompt.into(),
            recurring: None,
            durable: None,
        }
    }
}

/// Output of `CronCreate`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct CronCreateOutput {
    /// The job's id.
    pub id: String,
    /// When the job runs, in words.
    pub human_schedule: String,
    /// Whether the job runs each time.
    pub recurring: bool,
    /// Whether the job outlives the session.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub durable: Option<bool>,
    /// When the job runs next, in milliseconds since 1970.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub next_fire_at: Option<f64>,
    /// At what age a recurring job ends, in milliseconds; 0 for never.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub max_age_ms: Option<u64>,
    /// The session's other jobs that have yet to run once.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub other_one_shots: Option<Vec<OneShot>>,
}

/// A job that has yet to run once.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct OneShot {
    /// The job's id.
    pub id: String,
    /// When the job runs, in words.
    pub human_schedule: String,
    /// The prompt of the job.
    pub prompt: String,
}

/// Input of `CronDelete`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CronDeleteInput {
    /// The job's id.
    pub id: String,
}

impl CronDeleteInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into() }
    }
}

/// Output of `CronDelete`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct CronDeleteOutput {
    /// The job's id.
    pub id: String,
    /// Whether this ended a loop's wake-up.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub ended_loop_wakeup: Option<bool>,
}

/// Input of `CronList`: nothing.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CronListInput {}

/// Output of `CronList`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CronListOutput {
    /// The jobs.
    pub jobs: Vec<CronJob>,
}

/// A job.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct CronJob {
    /// The job's id.
    pub id: String,
    /// When the job runs, as a cron expression.
    pub cron: String,
    /// When the job runs, in words.
    pub human_schedule: String,
    /// The prompt of the job.
    pub prompt: String,
    /// Whether the job runs each time.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub recurring: Option<bool>,
    /// Whether the job outlives the session.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub durable: Option<bool>,
    /// When the job runs next, in milliseconds since 1970.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub next_fire_at: Option<f64>,
}

/// Input of `ScheduleWakeup`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ScheduleWakeupInput {
    /// How long to wait, in seconds; the CLI makes it at least 60 and at most 3600.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub delay_seconds: Option<f64>,
    /// Why so long.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub reason: Option<String>,
    /// What to do then.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt: Option<String>,
    /// Whether to end the loop instead.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub stop: Option<bool>,
    /// Whether there was nothing to report this time.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub noop: Option<bool>,
}

/// Output of `ScheduleWakeup`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ScheduleWakeupOutput {
    /// When the session wakes up, in milliseconds since 1970.
    pub scheduled_for: f64,
    /// How long the session waits, in seconds.
    pub clamped_delay_seconds: f64,
    /// Whether that is not what was asked for.
    pub was_clamped: bool,
    /// Whether the loop was ended.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub stopped: Option<bool>,
    /// How many wake-ups were called off.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub cancelled_wakeups: Option<u64>,
}

/// Input of `RemoteTrigger`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RemoteTriggerInput {
    /// What to do.
    pub action: RemoteTriggerAction,
    /// The trigger.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub trigger_id: Option<String>,
    /// The session of a run whose log is wanted.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub session_id: Option<String>,
    /// Where to go on in a list, from the page before.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub cursor: Option<String>,
    /// What the trigger is to be.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub body: Option<RawJson>,
}

impl RemoteTriggerInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(action: RemoteTriggerAction) -> Self {
        Self {
            action,
            trigger_id: None,
            session_id: None,
            cursor: None,
            body: None,
        }
    }
}

/// Output of `RemoteTrigger`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RemoteTriggerOutput {
    /// The HTTP status.
    pub status: u64,
    /// The answer, as JSON text.
    pub json: String,
    /// The answer in words.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub summary: Option<String>,
}

crate::open_enum! {
    /// What to do with triggers in the cloud.
    pub enum RemoteTriggerAction {
        /// List the triggers.
        List = "list",
        /// Show one.
        Get = "get",
        /// Make one.
        Create = "create",
        /// Change one.
        Update = "update",
        /// Run one now.
        Run = "run",
        /// Make one that a webhook sets off.
        CreateWebhookTrigger = "create_webhook_trigger",
        /// List the runs of one.
        ListRuns = "list_runs",
        /// Show the log of a run.
        GetRunLog = "get_run_log",
    }
}
