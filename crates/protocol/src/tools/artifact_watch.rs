//! Watching an artifact for changes.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/artifact_watch.toml: change that instead.

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// What came of watching an artifact.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactWatch {
    /// The state of the watch.
    pub watch: ArtifactWatchState,
}

/// Whether and how an artifact is watched.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactWatchState {
    /// The artifact's address.
    pub url: String,
    /// Whether the artifact is watched.
    pub watching: bool,
    /// What came of the request.
    pub outcome: String,
    /// The reason.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub reason: Option<String>,
    /// Why the artifact is not watched beyond this session.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub durable_skip_reason: Option<String>,
    /// The id of the task that watches.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub task_id: Option<String>,
    /// Since when, as a time since 1970.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub since: Option<f64>,
    /// When the access for the watch ends, as a time since 1970.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub token_expires_at: Option<f64>,
    /// The means by which the artifact is watched.
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
    /// Whether the artifact was watched before.
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
    /// The connections behind the watches.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub arms: Option<Vec<ArtifactArm>>,
}

/// One watch. `rail` says which fields are there.
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
    /// Whether somebody requested the watch.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub explicit: Option<bool>,
    /// Whether the watch is connected.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub connected: Option<bool>,
    /// Whether the watch is about to be connected.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub connecting: Option<bool>,
    /// When the access for the watch ends, as a time since 1970.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub token_expires_at: Option<f64>,
    /// What set the watch up.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub armed_via: Option<String>,
    /// The trigger behind the watch.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub trigger_id: Option<String>,
    /// Which events are watched for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub events: Option<Vec<String>>,
    /// Whether the watch comes from an earlier session.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub restored: Option<bool>,
    /// How the watch ended.
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
    /// The state of the connection.
    pub state: String,
    /// Whether the connection will be made again.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub reconnect: Option<bool>,
    /// How often the connection failed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub failures: Option<u64>,
    /// How often the connection may fail.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub max_failures: Option<u64>,
    /// When the next attempt is made, in seconds from now.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub next_in_s: Option<f64>,
    /// The last failure.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub last_failure: Option<String>,
    /// The reason for the state.
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
