//! The frames on the pipes of a process.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

/// Everything that went through the pipes of one process.
///
/// The newest 20,000 entries are kept. Clones are the same transcript.
#[derive(Clone)]
pub struct Transcript {
    started: Instant,
    entries: Arc<Mutex<VecDeque<Entry>>>,
}

const KEPT: usize = 20_000;

/// One line of a transcript; as JSON a line of a recorded conversation.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Entry {
    /// Seconds since the process was started.
    #[serde(rename = "t")]
    pub time: f64,
    /// Which way it went.
    #[serde(rename = "dir")]
    pub direction: Direction,
    /// The frame; a line that is no JSON is `{"raw": "…"}`.
    #[serde(rename = "msg")]
    pub message: Value,
}

/// Which way something went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Direction {
    /// To the process's stdin.
    In,
    /// From its stdout.
    Out,
    /// From its stderr.
    Err,
    /// About the process: how it was started, and how it ended.
    Meta,
}

impl Transcript {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            entries: Arc::default(),
        }
    }

    pub(super) fn add(&self, direction: Direction, message: Value) -> Duration {
        let at = self.started.elapsed();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() == KEPT {
            entries.pop_front();
        }
        entries.push_back(Entry {
            time: at.as_secs_f64(),
            direction,
            message,
        });
        at
    }

    /// The entries that are kept, oldest first.
    pub fn entries(&self) -> Vec<Entry> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().cloned().collect()
    }
}

impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcript")
            .field("entries", &self.entries().len())
            .finish_non_exhaustive()
    }
}

/// The newest entries, each cut to fit on a line, for the evidence in a failure.
impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries();
        let skipped = entries.len().saturating_sub(40);
        if skipped > 0 {
            writeln!(f, "(earlier lines are left out)")?;
        }
        for entry in entries.iter().skip(skipped) {
            let sign = match entry.direction {
                Direction::In => '>',
                Direction::Out => '<',
                Direction::Err => '!',
                Direction::Meta => '#',
            };
            let text = entry.message.to_string();
            let short: String = text.chars().take(240).collect();
            let more = if short.len() < text.len() { "…" } else { "" };
            writeln!(f, "{:9.4} {sign} {short}{more}", entry.time)?;
        }
        Ok(())
    }
}
