//! What a session can tell about itself.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::event::Lag;

/// Counts of a session at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Frames read so far.
    pub frames: u64,
    /// Bytes of those frames.
    pub bytes: u64,
    /// Frames that readers have not taken yet, in memory and on disk; a frame that two readers will get counts twice.
    pub lagging_frames: u64,
    /// Bytes of them in memory; at most [`buffer_bytes`](crate::Options::buffer_bytes), and a piece of a quarter MiB or one
    /// frame for each reader whose frames come back from disk.
    pub held_bytes: usize,
    /// Bytes of them on disk; see [`SlowReader`](crate::SlowReader).
    pub spilled_bytes: u64,
    /// What readers did not get because neither memory nor disk had room. Each was told so in place.
    pub left_out: Lag,
    /// Prompts that wait or run.
    pub open_prompts: usize,
    /// Bytes of prompts that wait to be sent.
    pub held_prompt_bytes: usize,
    /// Control requests of ours that the CLI has not answered.
    pub unanswered_by_cli: usize,
    /// Requests of the CLI that are not answered yet.
    pub unanswered_by_us: usize,
    /// Responses that matched no open request of ours.
    pub unmatched_responses: u64,
    /// Requests that came again while they were open; they were answered once.
    pub duplicate_requests: u64,
    /// Entries that the [session store](crate::Options::session_store) took.
    pub mirrored_entries: u64,
    /// How often something could not be stored there for good; each was told by a `mirror_error` frame.
    pub mirror_errors: u64,
    /// Bytes that wait to be stored there, in memory and on disk.
    pub mirror_waiting_bytes: usize,
    /// How far the store is behind, while it does not take what it is given; `None` while all is well.
    pub store_lag: Option<StoreLag>,
    /// Lines that were no frames, and frames that did not fit their type.
    pub misfits: u64,
    /// What this build has no type for, and how often it came. At most 256 kinds are told apart. Together with
    /// [`Session::cli_version`](crate::Session::cli_version) this is what a bug report needs.
    pub unknown: BTreeMap<String, u64>,
}

/// How far a [session store](crate::Options::session_store) is behind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreLag {
    /// Since when something waits that it was to take at once.
    pub since: SystemTime,
    /// How many bytes wait in all.
    pub bytes: usize,
    /// Whether that is longer than [`session_store_patience`](crate::Options::session_store_patience), so that no outcome waits for
    /// it.
    pub is_behind: bool,
    /// What it said last, if it failed.
    pub error: Option<String>,
}
