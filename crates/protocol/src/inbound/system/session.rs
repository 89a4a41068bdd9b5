//! The session and its turns.

use serde::{Deserialize, Serialize};

use crate::RawJson;
use crate::open_enum;

/// `session_state_changed`: idle, running, or waiting for an answer. Only when asked for by environment variable.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SessionStateChanged {
    /// The state.
    pub state: SessionState,
    /// True if `CLAUDE_CODE_SDK_READS_SESSION_STATE` is why it comes: meant for SDKs, not for their callers.
    pub sdk_host_only: Option<bool>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// What a session is doing.
    pub enum SessionState {
        /// Nothing. Comes after the `result`; background shells may still run.
        Idle = "idle",
        /// A turn.
        Running = "running",
        /// The session waits for an answer, such as a permission.
        RequiresAction = "requires_action",
    }
}

/// `session_title_changed`: the session has a new name.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SessionTitleChanged {
    /// The name, at most 200 characters.
    pub title: String,
    /// `user` or `other`; only in bridge sessions.
    pub given_by: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `session_metadata`: facts about the session that changed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SessionMetadata {
    /// What changed.
    pub metadata: Metadata,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// Facts about a session.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Metadata {
    /// All published artifacts.
    pub artifacts: Option<Vec<Artifact>>,
}

/// A published artifact.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Artifact {
    /// The artifact's address.
    pub url: String,
    /// The artifact's title.
    pub title: Option<String>,
    /// The artifact's icon.
    pub favicon: Option<String>,
    /// Always `frame`.
    pub kind: String,
    /// When the artifact was published last, as ISO 8601.
    pub updated_at: String,
}

/// `session_writes_lost`: the disk is full and something was not written.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SessionWritesLost {
    /// `ENOSPC` or `EDQUOT`.
    pub error_code: String,
    /// What was not written: `transcript`, `global_config`.
    #[serde(default)]
    pub lost: Vec<String>,
    /// The sessions concerned.
    pub transcript_session_ids: Option<Vec<String>>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `worker_shutting_down`: the process is about to end.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WorkerShuttingDown {
    /// The reason for the shutdown.
    pub reason: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `mirror_error`: a session store did not take what it was given. Made by SDKs, not by the CLI.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MirrorError {
    /// The error.
    pub error: String,
    /// The place of the records in the store.
    pub key: MirrorKey,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `mirror_lag`: a session store does not take what it is given, or has taken all of it again. Made by Outrigger, not by the CLI.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MirrorLag {
    /// Whether the store lacks records; otherwise the store has all.
    pub behind: bool,
    /// How many bytes the store lacks.
    pub bytes: u64,
    /// Since when, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// The last error of the store, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of the records; empty before the session is known.
    pub session_id: String,
}

/// A place in a session store.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MirrorKey {
    /// The project.
    pub project_key: String,
    /// The session.
    pub session_id: String,
    /// The part of the session, such as a subagent's.
    pub subpath: Option<String>,
}

/// `turn_handoff_available`: a turn can be handed over by another process.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TurnHandoffAvailable {
    /// Version of this frame, 1.
    pub v: u64,
    /// The tools that may have been called.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Which process of the session this is.
    pub worker_epoch: f64,
    /// True if staged files are taken.
    pub staged_files: Option<bool>,
    /// True if a turn without a request is taken.
    pub no_query_first: Option<bool>,
    /// True if message ids are shared.
    pub shared_message_id: Option<bool>,
    /// True if a mark is taken.
    pub relay_marker: Option<bool>,
    /// True if files of the home directory are taken.
    pub home_files: Option<bool>,
    /// True if names of files are taken.
    pub file_names: Option<bool>,
    /// True if writes are taken.
    pub carried_writes: Option<bool>,
    /// True if carried lines are completed.
    pub hydrates_carried_lines: Option<bool>,
    /// True if a rewind has to name its request.
    pub requires_rewind_request_id: Option<bool>,
    /// True if a fork for comparison can be asked for.
    pub comparison_fork: Option<bool>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `turn_preempted`: a turn gave way to another prompt.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TurnPreempted {
    /// The reason for the preemption.
    pub reason: String,
    /// The prompt that the turn gave way to.
    pub preempted_by_uuid: String,
    /// The prompts that gave way.
    #[serde(default)]
    pub preempted_message_uuids: Vec<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `turn_duration`: how long a turn took.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TurnDuration {
    /// In milliseconds.
    pub duration_ms: f64,
    /// Tokens used of the budget.
    pub budget_tokens: Option<u64>,
    /// The budget in tokens.
    pub budget_limit: Option<u64>,
    /// How often the model was reminded of the budget.
    pub budget_nudges: Option<u64>,
    /// Messages of the turn.
    pub message_count: Option<u64>,
    /// Subagents that still run.
    pub pending_background_agent_count: Option<u64>,
    /// Workflows that still run.
    pub pending_workflow_count: Option<u64>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `post_turn_summary`: what a turn did, in a line.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PostTurnSummary {
    /// The `assistant` line that is summarized.
    pub summarizes_uuid: String,
    /// The kind of state that the work is in.
    pub status_category: String,
    /// The line.
    pub status_detail: String,
    /// What the user has to do; may be empty.
    pub needs_action: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `per_turn_effort_changed`: whether effort is set by turn.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PerTurnEffortChanged {
    /// Whether an effort for single turns is active.
    pub per_turn_effort_active: bool,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `peer_message_hold`: a message of another session was held back.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PeerMessageHold {
    /// What became of the message.
    pub state: HoldState,
    /// The message.
    pub message_uuid: Option<String>,
    /// How the message came: `bridge`, `stdin` or `socket`.
    pub lane: String,
    /// The sender.
    pub from: String,
    /// The sender's name.
    pub from_name: Option<String>,
    /// Why the message was held, such as `managed-setting` or `mode-mismatch`.
    pub cause: Option<String>,
    /// Why it was dropped: `expired`, `refused`, `dropped`, `discarded` or `denied`.
    pub outcome: Option<String>,
    /// What was wrong with the message, such as `rate-limited` or `hop-loop`.
    pub reason: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// What became of a message that was held back.
    pub enum HoldState {
        /// The message is held.
        Held = "held",
        /// The message was released.
        Released = "released",
        /// The message was dropped.
        Dropped = "dropped",
    }
}

/// `cloud_session_delta`: the state of a cloud session.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CloudSessionDelta {
    /// Counts these frames, from 1.
    pub seq: u64,
    /// The fields that changed.
    #[serde(default)]
    pub changed: Vec<String>,
    /// The whole state.
    pub cloud_session: CloudSession,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// A session that runs in the cloud.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CloudSession {
    /// The session's id.
    pub id: String,
    /// The page that shows the session.
    pub view_url: String,
    /// The computer it is bound to: `status` `bound` (`device_id`, `display_name`) or `unbound` (`reason`,
    /// `message`).
    pub device: RawJson,
    /// How the directory is kept in step.
    pub directory_sync: DirectorySync,
    /// Version of this structure, 1.
    pub client_version: u64,
    /// Settings that were not taken over.
    pub not_applied: Option<Vec<NotApplied>>,
    /// The host that the session runs on.
    pub host: Option<CloudHost>,
    /// Whether the computer serves its tools.
    pub serving: Option<CloudServing>,
    /// `connecting`, `live` or `reconnecting`.
    pub connection: Option<String>,
    /// How often the session was rewound.
    pub rewinds: Option<u64>,
    /// Tool calls served by the computer.
    pub calls: Option<CloudCalls>,
    /// Text for the user.
    pub notices: Option<Vec<CloudNotice>>,
}

/// How a directory is kept in step with a cloud session.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct DirectorySync {
    /// `off`, `seeding`, `armed` or `stopped`.
    pub state: String,
    /// The reason for the state.
    pub reason: Option<String>,
    /// The reason, for people.
    pub message: Option<String>,
    /// How the first upload went.
    pub first_upload: Option<String>,
    /// Files kept in step.
    pub synced_files: Option<u64>,
    /// Whether another window synchronizes the directory.
    pub other_window: Option<bool>,
    /// Whether notices are muted.
    pub muted: Option<bool>,
    /// Whether the session began with an upload.
    pub started_from_upload: Option<bool>,
    /// `two_way` or `upload_only`.
    pub direction: Option<String>,
    /// `container_sync`, `device_tools` or `unspecified`.
    pub file_mode: String,
    /// `stored`.
    pub file_mode_source: String,
}

/// A setting that was not taken over.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct NotApplied {
    /// The setting's name.
    pub name: String,
    /// `lost`, `kept` or `preference`.
    pub kind: String,
}

/// The host of a cloud session.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CloudHost {
    /// The host's name.
    pub handle: String,
    /// The host's working directory.
    pub working_dir: String,
    /// The host's platform.
    pub platform: String,
    /// The version of the host's CLI.
    pub cli_version: Option<String>,
}

/// Whether the computer serves its tools.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CloudServing {
    /// `on`, `off`, `pending` or `revoked`.
    pub state: String,
    /// The reason for the state.
    pub reason: Option<String>,
    /// `parity` or `interim`.
    pub policy: Option<String>,
    /// `session` or `bridge_only`.
    pub channel: Option<String>,
}

/// Tool calls served by the computer.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CloudCalls {
    /// Those that run.
    #[serde(default)]
    pub live: Vec<CloudCall>,
    /// Those that have ended.
    #[serde(default)]
    pub recent: Vec<CloudCallEnded>,
}

/// A tool call that runs.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CloudCall {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// `running` or `asked`.
    pub state: String,
    /// Since when, in milliseconds since 1970.
    pub since: f64,
    /// The question that is open.
    pub ask_id: Option<String>,
    /// When the call lapses, in milliseconds since 1970.
    pub lapses_at: Option<f64>,
    /// Whether a classifier may decide.
    pub classifier_eligible: Option<bool>,
}

/// A tool call that has ended.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CloudCallEnded {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// `completed`, `denied`, `withdrawn`, `refused` or `failed`.
    pub ended: String,
    /// The code of the reason.
    pub code: Option<String>,
    /// When, in milliseconds since 1970.
    pub at: f64,
}

/// A message for the user.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CloudNotice {
    /// Tells notices apart.
    pub key: String,
    /// The text.
    pub text: String,
}

/// `upgrade_relay_marker`: a mark left by a handed over turn.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UpgradeRelayMarker {
    /// The marker's text.
    pub content: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: Option<String>,
}
