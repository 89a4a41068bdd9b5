//! Watching an artifact for changes.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/artifact_watch.toml: change that instead.

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// What came of watching an artifact.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactWatch {
    /// How it is.
    pub watch: ArtifactWatchState,
}

/// Whether and how an artifact is watched.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactWatchState {
    /// The artifact's address.
    pub url: String,
    /// Whether it is watched.
    pub watching: bool,
    /// What came of the request.
    pub outcome: String,
    /// The reason.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub reason: Option<String>,
    /// Why it is not watched beyond this session.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub durable_skip_reason: Option<String>,
    /// The id of the task that watches.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub task_id: Option<String>,
    /// Since when, as a time since 1970.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub since: Option<f64>,
    /// Until when the access for it lasts, as a time since 1970.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub token_expires_at: Option<f64>,
    /// By what means it is watched.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub rail: Option<String>,
    /// The trigger that watches beyond this session.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub trigger_id: Option<String>,
    /// Since when that is.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub durable_since: Option<String>,
    /// An HTTP status.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub status: Option<u64>,
    /// Details of the state.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub detail: Option<String>,
    /// A note.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub note: Option<String>,
    /// Which events are watched for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub events: Option<Vec<String>>,
}

/// An artifact that is no longer watched.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactUnwatch {
    /// The artifact.
    pub unwatch: ArtifactUnwatched,
}

/// Which artifact is no longer watched.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactUnwatched {
    /// The artifact's address.
    pub url: String,
    /// Whether it was watched before.
    pub was_watching: bool,
}

/// Which artifacts are watched.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactWatches {
    /// The watches.
    pub watches: Vec<ArtifactWatcher>,
    /// The only address that was asked about.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub filter_url: Option<String>,
    /// The connections behind them.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub arms: Option<Vec<ArtifactArm>>,
}

/// One watch. Which fields are there depends on its `rail`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactWatcher {
    /// The artifact's address.
    pub url: String,
    /// By what means: absent for a live one, `durable_wake`, or `live_stopped`.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub rail: Option<String>,
    /// The id of the task that watches.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub task_id: Option<String>,
    /// Since when: a number for a live one, text for a durable one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub since: Option<RawJson>,
    /// Whether it was asked for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub explicit: Option<bool>,
    /// Whether it is connected.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub connected: Option<bool>,
    /// Whether it is about to be.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub connecting: Option<bool>,
    /// Until when the access for it lasts, as a time since 1970.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub token_expires_at: Option<f64>,
    /// What set it up.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub armed_via: Option<String>,
    /// The trigger behind it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub trigger_id: Option<String>,
    /// Which events are watched for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub events: Option<Vec<String>>,
    /// Whether it was taken over from an earlier session.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub restored: Option<bool>,
    /// How it ended.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub stop_kind: Option<String>,
}

/// A connection behind watches.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactArm {
    /// The artifact's address.
    pub url: String,
    /// By what means.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub rail: Option<String>,
    /// How it is.
    pub state: String,
    /// Whether it will be made again.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub reconnect: Option<bool>,
    /// How often it failed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub failures: Option<u64>,
    /// How often it may fail.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub max_failures: Option<u64>,
    /// When it is tried again, in seconds from now.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub next_in_s: Option<f64>,
    /// How it failed last.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub last_failure: Option<String>,
    /// Why it is so.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub reason: Option<String>,
    /// Details.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub detail: Option<String>,
    /// What the server said.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub server_message: Option<String>,
    /// When that was, as a time since 1970.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub at: Option<f64>,
}
