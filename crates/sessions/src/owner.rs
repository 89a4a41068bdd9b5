//! Who drives a session, and with which claim.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::now;
use crate::id::SessionId;

/// The number of a lease on a session. Of two leases on one session the later one has the greater number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(pub u64);

impl Fence {
    /// The number of the next lease.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Who has a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Owner {
    /// The owner's name for itself.
    pub name: String,
    /// The owner's process.
    pub pid: u32,
    /// The owner's machine.
    pub host: String,
    /// Since when, as ISO 8601.
    pub since: String,
}

impl Owner {
    /// An owner in this process.
    pub fn here(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            pid: std::process::id(),
            host: host(),
            since: now(),
        }
    }

    /// Whether the owner is this process.
    pub(crate) fn is_here(&self) -> bool {
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

/// Another process drives the session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Busy {
    /// The session.
    pub id: SessionId,
    /// Who has the session.
    pub owner: Owner,
    /// The number of the owner's claim; `None` where the owner made none, like the CLI itself.
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
pub(crate) fn host() -> String {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let name = read("/proc/sys/kernel/hostname").or_else(|| std::env::var("COMPUTERNAME").ok());
    let name = name
        .or_else(|| std::env::var("HOSTNAME").ok())
        .or_else(|| read("/etc/hostname"));
    name.map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}
