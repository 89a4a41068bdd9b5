//! The holder of a session, the options of a lease, and how a lease is lost.

use std::fmt;
use std::time::Duration;

use outrigger_sessions::lease::{Busy, OnBusy};
use outrigger_sessions::store;

/// How long a lease in a store lasts unless it is renewed.
const TTL: Duration = Duration::from_secs(60);

/// How long a takeover waits for the holder to release the session.
const PATIENCE: Duration = Duration::from_secs(5);

/// How a session is kept from being driven by two at once; see [`Options::lease`](crate::Options::lease).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseOptions {
    /// What to do if another holder has the session to resume; the start fails unless set.
    pub on_busy: OnBusy,
    /// The name of this program, which others see as the holder; the name of this library unless set. Process, machine
    /// and time are added.
    pub owner: Option<String>,
    /// How long a lease in a store lasts unless it is renewed, which happens three times as often; a minute unless set, and at
    /// least 100 ms. When this program dies, others wait that long; when the store is out of reach for five sixths of it, the
    /// session ends. A lease on disk needs none: it goes with the process.
    pub ttl: Duration,
    /// With [`OnBusy::TakeOver`] on disk: how long the holder is asked to let the session go before it is fenced off, and then once
    /// more how long its CLI may take to end; 5 s unless set. The CLI of a holder that hangs is then ended from here, where it is
    /// certain that it is the holder's ([`LeaseClaim::take`](outrigger_sessions::lease::LeaseClaim::take) says where); where it is not, the
    /// holder is not fenced off, and keeps the session. Holders in a store are not asked: their writes are rejected.
    pub patience: Duration,
}

impl Default for LeaseOptions {
    fn default() -> Self {
        Self {
            on_busy: OnBusy::Fail,
            owner: None,
            ttl: TTL,
            patience: PATIENCE,
        }
    }
}

impl From<OnBusy> for LeaseOptions {
    fn from(on_busy: OnBusy) -> Self {
        Self::default().on_busy(on_busy)
    }
}

impl LeaseOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`on_busy`](Self#structfield.on_busy).
    pub fn on_busy(mut self, on_busy: OnBusy) -> Self {
        self.on_busy = on_busy;
        self
    }

    /// Sets [`owner`](Self#structfield.owner).
    pub fn owner(mut self, name: impl Into<String>) -> Self {
        self.owner = Some(name.into());
        self
    }

    /// Sets [`ttl`](Self#structfield.ttl).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets [`patience`](Self#structfield.patience).
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    pub(crate) fn name(&self) -> &str {
        self.owner.as_deref().unwrap_or(env!("CARGO_PKG_NAME"))
    }
}

/// The holder of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The holder's name, with process, machine and start time, as far as the store reports them.
    pub who: String,
    /// The number of the holder's lease; `None` if there is none, as with a CLI that a person started, or if the store does not report it.
    pub fence: Option<u64>,
    /// When the holder's lease ends unless it is renewed, in milliseconds since 1970 by the store's clock; `None` on disk.
    pub until: Option<u64>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.who)?;
        match self.fence {
            Some(fence) => write!(f, ", with fence {fence}"),
            None => Ok(()),
        }
    }
}

impl From<&Busy> for Holder {
    fn from(busy: &Busy) -> Self {
        Self {
            who: busy.owner.to_string(),
            fence: busy.fence.map(|fence| fence.0),
            until: None,
        }
    }
}

impl From<store::StoreLease> for Holder {
    fn from(lease: store::StoreLease) -> Self {
        Self {
            who: lease.owner,
            fence: Some(lease.fence),
            until: Some(lease.expires_at),
        }
    }
}

/// Why a session could not be had, or was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseProblem {
    /// Another holder has the session. Nothing was started.
    Held {
        /// The session.
        session: String,
        /// Who.
        by: Holder,
    },
    /// Another holder took the session over while it ran here; its process was killed.
    TakenOver {
        /// The session.
        session: String,
        /// The number of the claim that was lost; `None` for a conversation that had just begun here and was not claimed yet.
        fence: Option<u64>,
        /// The holder, if known.
        by: Option<Holder>,
    },
    /// Another program requested the session and got it: its process was ended by SIGTERM.
    HandedOver {
        /// The session.
        session: String,
        /// To whom.
        to: Holder,
    },
    /// The lease could not be renewed, so another holder may have the session by now; its process was killed.
    NotRenewed {
        /// The session.
        session: String,
        /// For how long that was tried.
        within: Duration,
        /// What failed last.
        why: String,
    },
}

impl LeaseProblem {
    /// The session.
    pub fn session(&self) -> &str {
        match self {
            Self::Held { session, .. }
            | Self::TakenOver { session, .. }
            | Self::HandedOver { session, .. }
            | Self::NotRenewed { session, .. } => session,
        }
    }

    /// The holder, if known.
    pub fn holder(&self) -> Option<&Holder> {
        match self {
            Self::Held { by, .. } | Self::HandedOver { to: by, .. } => Some(by),
            Self::TakenOver { by, .. } => by.as_ref(),
            Self::NotRenewed { .. } => None,
        }
    }

    /// Whether the process may write its transcript before it ends.
    pub(crate) fn leaves_time(&self) -> bool {
        matches!(self, Self::HandedOver { .. })
    }

    pub(crate) fn advice(&self) -> &'static str {
        match self {
            Self::Held { .. } => {
                "wait until it is let go, or start with `OnBusy::Fork` to go on beside it, or with `OnBusy::TakeOver`"
            }
            Self::TakenOver { .. } | Self::HandedOver { .. } => {
                "leave the conversation to whoever has it now; what was not written down by then is lost"
            }
            Self::NotRenewed { .. } => {
                "see to the session store, then resume the session; a longer `ttl` bears longer failures"
            }
        }
    }
}

impl std::error::Error for LeaseProblem {}

impl fmt::Display for LeaseProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { session, by } => {
                write!(f, "session {session} is driven by {by}; nothing was started")
            }
            Self::TakenOver { session, fence, by } => {
                write!(f, "session {session} was taken over by ")?;
                match by {
                    Some(by) => by.fmt(f)?,
                    None => f.write_str("somebody whom the session store does not name")?,
                }
                match fence {
                    Some(fence) => write!(f, "; it was ours with fence {fence}"),
                    None => Ok(()),
                }
            }
            Self::HandedOver { session, to } => {
                write!(f, "session {session} was handed over to {to}, who asked for it")
            }
            Self::NotRenewed { session, within, why } => write!(
                f,
                "the lease of session {session} could not be renewed for {within:?}, so somebody else may have it: {why}"
            ),
        }
    }
}
