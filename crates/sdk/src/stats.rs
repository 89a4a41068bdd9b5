//! Counters of a session.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::event::Lag;

/// The counters of a session at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Frames read so far.
    pub frames: u64,
    /// How many bytes those frames have.
    pub bytes: u64,
    /// Frames that readers have not read yet, in memory and on disk; a frame for two readers counts twice.
    pub lagging_frames: u64,
    /// How many bytes the frames take in memory; at most [`buffer_bytes`](crate::Options::buffer_bytes), and a piece of a quarter MiB or one
    /// frame for each reader whose frames come back from disk.
    pub held_bytes: usize,
    /// How many bytes the frames take on disk; see [`SlowReader`](crate::SlowReader).
    pub spilled_bytes: u64,
    /// Frames that were dropped because neither memory nor disk had room. Each reader got their number in their place.
    pub left_out: Lag,
    /// Prompts that wait or run.
    pub open_prompts: usize,
    /// Bytes of prompts that wait to be sent.
    pub held_prompt_bytes: usize,
    /// SDK requests without a reply.
    pub unanswered_by_cli: usize,
    /// CLI requests without a reply.
    pub unanswered_by_us: usize,
    /// Replies that matched no open SDK request.
    pub unmatched_responses: u64,
    /// CLI requests that were repeated while they were open; each was answered once.
    pub duplicate_requests: u64,
    /// Entries that the [session store](crate::Options::session_store) accepted.
    pub mirrored_entries: u64,
    /// How often entries could not be stored for good; a `mirror_error` frame reported each.
    pub mirror_errors: u64,
    /// Bytes that wait for the store, in memory and on disk.
    pub mirror_waiting_bytes: usize,
    /// How far the store is behind, while it does not accept entries; `None` otherwise.
    pub store_lag: Option<StoreLag>,
    /// Lines that were no frames, and misfits.
    pub misfits: u64,
    /// Frames, fields and values without a type, with their number. At most 256 kinds are counted separately. Together with
    /// [`Session::cli_version`](crate::Session::cli_version) this is what a bug report needs.
    pub unknown: BTreeMap<String, u64>,
}

/// How far a [session store](crate::Options::session_store) is behind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreLag {
    /// Since when entries wait.
    pub since: SystemTime,
    /// How many bytes wait.
    pub bytes: usize,
    /// Whether that is longer than [`session_store_patience`](crate::Options::session_store_patience), so that no outcome waits for
    /// it.
    pub is_behind: bool,
    /// The last error of the store, if it failed.
    pub error: Option<String>,
}
