//! What a session can tell about itself.

use std::collections::BTreeMap;

/// Counts of a session at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Frames read so far.
    pub frames: u64,
    /// Bytes of those frames.
    pub bytes: u64,
    /// Bytes that wait in memory for consumers.
    pub held_bytes: usize,
    /// Control requests of ours that the CLI has not answered.
    pub unanswered_by_cli: usize,
    /// Requests of the CLI that are not answered yet.
    pub unanswered_by_us: usize,
    /// Responses that matched no open request of ours.
    pub unmatched_responses: u64,
    /// Requests that came again while they were open; they were answered once.
    pub duplicate_requests: u64,
    /// Lines that were no frames, and frames that did not fit their type.
    pub misfits: u64,
    /// What this build has no type for, and how often it came. At most 256 kinds are told apart.
    pub unknown: BTreeMap<String, u64>,
}
