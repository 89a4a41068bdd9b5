//! Who may drive a session: one process at a time.
//!
//! The CLI lets two processes write one transcript, and then each of them overwrites what the other believes. A lease is what
//! programs agree on instead: whoever drives a session claims it first.
//!
//! Each claim has a [`Fence`], a number that only grows. Whoever holds a greater one has taken the session over, and what comes from
//! holders of lesser ones is to be refused.
//!
//! ```no_run
//! use outrigger_sessions::lease::OnBusy;
//!
//! # fn main() -> outrigger_sessions::Result<()> {
//! # let sessions = outrigger_sessions::Sessions::from_env()?;
//! # let id = "550e8400-e29b-41d4-a716-446655440000".parse()?;
//! let lease = sessions.claim(&id).owner("worker 3").on_busy(OnBusy::TakeOver).take()?;
//! // … start the CLI, which resumes `lease.id()` …
//! lease.check()?; // before each prompt: is it still ours?
//! lease.release()?; // or drop it
//! # Ok(())
//! # }
//! ```
//!
//! # How it is kept
//!
//! In `outrigger/leases` of the config directory, for each session: `<id>.json` says who has it, with which fence; a lock of the
//! operating system on `<id>.<fence>.held` says that the holder lives, which needs no heartbeat: it goes with the process, however
//! that ends. Changes are made one at a time, under a lock on `<id>.lock`.
//!
//! It is advisory: it binds those who claim. Of CLIs that nobody claimed for, it knows those that the CLI itself lists as running
//! ([`driven_by_cli`]). Whether machines that share a config directory over a network see each other's locks depends on the file
//! system; where they don't, keep the sessions in a store with leases ([`store`](crate::store)).

mod claim;
mod cli;
mod disk;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::now;
use crate::id::SessionId;

pub use claim::{Claim, Lease};
pub use cli::{cli_runs_in, driven_by_cli};

/// The number of a claim on a session. Of two claims on one session the later one has the greater number, whoever made them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(pub u64);

impl Fence {
    /// That of the claim after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What is to be done where somebody else has the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnBusy {
    /// Nothing: the claim fails with [`Error::Busy`](crate::Error::Busy), which says who has it.
    #[default]
    Fail,
    /// The session is forked, and the fork is claimed in its place.
    Fork,
    /// The session is taken: its holder is asked to let it go, and fenced off if it does not.
    TakeOver,
}

/// Who has a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Owner {
    /// What it calls itself.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// Since when, as ISO 8601.
    pub since: String,
}

impl Owner {
    /// This process, from now on.
    pub fn here(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            pid: std::process::id(),
            host: host(),
            since: now(),
        }
    }

    /// Whether it is this process.
    fn is_here(&self) -> bool {
        self.pid == std::process::id() && self.host == host()
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            pid,
            host,
            since,
        } = self;
        write!(f, "{name} (process {pid} on {host}, since {since})")
    }
}

/// Somebody else has the session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Busy {
    /// The session.
    pub id: SessionId,
    /// Who has it.
    pub owner: Owner,
    /// The number of its claim; `None` where it made none, as the CLI itself.
    pub fence: Option<Fence>,
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {} is driven by {}", self.id, self.owner)?;
        match self.fence {
            Some(fence) => write!(f, ", with fence {fence}"),
            None => f.write_str(", without a lease"),
        }
    }
}

impl std::error::Error for Busy {}

/// The name of this machine, as far as it has one.
fn host() -> String {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let name = read("/proc/sys/kernel/hostname").or_else(|| std::env::var("COMPUTERNAME").ok());
    let name = name
        .or_else(|| std::env::var("HOSTNAME").ok())
        .or_else(|| read("/etc/hostname"));
    name.map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}
