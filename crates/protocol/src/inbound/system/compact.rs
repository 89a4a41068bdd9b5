//! Status and compaction.

use serde::{Deserialize, Serialize};

use crate::open_enum;
use crate::shared::ReportedPermissionMode;

/// `status`: what the CLI is busy with. Also written, with a null status, when the permission mode changes.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// What the session is doing; null for nothing in particular.
    pub status: Option<StatusKind>,
    /// The permission mode, if it changed.
    #[serde(rename = "permissionMode")]
    pub permission_mode: Option<ReportedPermissionMode>,
    /// How the compaction ended.
    pub compact_result: Option<CompactResult>,
    /// Why the compaction failed, such as `too_few_groups`.
    pub compact_error: Option<String>,
    /// How long the summary has become, in characters.
    pub compact_output_chars: Option<u64>,
    /// True if going on waits for a plan.
    pub resume_held_for_plan: Option<bool>,
    /// The prompts of the turn, while the model is asked.
    pub user_message_uuids: Option<Vec<String>>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// What the CLI is busy with.
    pub enum StatusKind {
        /// The CLI compacts the conversation.
        Compacting = "compacting",
        /// The CLI waits for the API.
        Requesting = "requesting",
    }
}

open_enum! {
    /// How a compaction ended.
    pub enum CompactResult {
        /// The summary is there.
        Success = "success",
        /// There is none.
        Failed = "failed",
    }
}

/// `compact_boundary`: earlier messages were replaced by a summary, which comes next as a synthetic `user` line.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CompactBoundary {
    /// The facts.
    pub compact_metadata: CompactMetadata,
    /// The last message before the compaction.
    pub logical_parent_uuid: Option<String>,
    /// True if the message is replayed history.
    pub historical: Option<bool>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// The facts of a compaction.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CompactMetadata {
    /// Who wanted the compaction.
    pub trigger: CompactTrigger,
    /// Tokens before.
    pub pre_tokens: u64,
    /// Tokens after.
    pub post_tokens: Option<u64>,
    /// Tokens dropped by all compactions of the session.
    pub cumulative_dropped_tokens: Option<u64>,
    /// How long the compaction took, in milliseconds.
    pub duration_ms: Option<f64>,
    /// What the user asked to keep.
    pub user_context: Option<String>,
    /// How many messages were replaced.
    pub messages_summarized: Option<u64>,
    /// Whether the summary had been made in advance.
    pub precomputed: Option<bool>,
    /// Tools that had been found by search.
    pub pre_compact_discovered_tools: Option<Vec<String>>,
    /// Artifacts that had been read.
    pub pre_compact_artifact_read_versions: Option<Vec<ReadArtifact>>,
    /// The messages that were kept, by their ends.
    pub preserved_segment: Option<PreservedSegment>,
    /// The messages that were kept, one by one.
    pub preserved_messages: Option<PreservedMessages>,
}

open_enum! {
    /// Who asked for a compaction.
    pub enum CompactTrigger {
        /// The user, by `/compact`.
        Manual = "manual",
        /// The CLI.
        Auto = "auto",
    }
}

/// A version of an artifact.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReadArtifact {
    /// The artifact.
    pub slug: String,
    /// The version.
    pub ver: String,
}

/// A row of messages that was kept.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PreservedSegment {
    /// The first.
    pub head_uuid: String,
    /// The message that the segment now follows.
    pub anchor_uuid: String,
    /// The last.
    pub tail_uuid: String,
}

/// Messages that were kept.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PreservedMessages {
    /// The message that these messages now follow.
    pub anchor_uuid: String,
    /// The messages, in order.
    #[serde(default)]
    pub uuids: Vec<String>,
    /// The ids of these messages, and of those among them that are not part of the conversation.
    pub all_uuids: Option<Vec<String>>,
}
