//! Whose a session is: one process at a time drives it, and whoever lost it stops.
//!
//! With [`Options::lease`] a session's id is claimed before the CLI is started, and the claim is kept up while it lives: on disk,
//! beside the CLI's own files, or in the session store if that has leases. `claim.rs` makes the claim, `own.rs` has it.

mod claim;
mod on_disk;
mod own;

use std::fmt;
use std::time::Duration;

use outrigger_sessions::lease::{Busy, OnBusy};
use outrigger_sessions::store;

pub(crate) use self::claim::claim;
pub(crate) use self::own::Ownership;
use crate::options::{Isolation, Options, OptionsError};

/// How long a lease in a store lasts unless it is renewed.
const TTL: Duration = Duration::from_secs(60);

/// The shortest that makes sense: a renewal is a call of a database.
const LEAST_TTL: Duration = Duration::from_millis(100);

/// How long a holder is asked for the session before it is taken.
const PATIENCE: Duration = Duration::from_secs(5);

/// How a session is kept from being driven by two at once; see [`Options::lease`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseOptions {
    /// What is done where somebody else has the session that is to be gone on with; the start fails unless set.
    pub on_busy: OnBusy,
    /// What this program calls itself, for those who find the session busy; the name of this library unless set. Process, machine
    /// and time are added.
    pub owner: Option<String>,
    /// How long a lease in a store lasts unless it is renewed, which happens three times as often; a minute unless set, and at
    /// least 100 ms. When this program dies, others wait that long; when the store is out of reach for five sixths of it, the
    /// session ends. A lease on disk needs none: it goes with the process.
    pub ttl: Duration,
    /// With [`OnBusy::TakeOver`] on disk: how long the holder is asked to let the session go before it is fenced off, and then once
    /// more how long its CLI may take to end; 5 s unless set. The CLI of a holder that hangs is then ended from here, where it is
    /// certain that it is the holder's ([`Claim::take`](outrigger_sessions::lease::Claim::take) says where); where it is not, the
    /// holder is not fenced off, and keeps the session. Holders in a store are not asked: they are refused.
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

    fn name(&self) -> &str {
        self.owner.as_deref().unwrap_or(env!("CARGO_PKG_NAME"))
    }
}

/// Who has a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// What it calls itself, with its process, its machine and since when, as far as it says.
    pub who: String,
    /// The number of its claim; `None` where it made none, as a CLI that a person started, or where the store does not tell.
    pub fence: Option<u64>,
    /// When its lease runs out unless it is renewed, in milliseconds since 1970 by the store's clock; `None` on disk.
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

impl From<store::Lease> for Holder {
    fn from(lease: store::Lease) -> Self {
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
    /// Somebody else has it. Nothing was started.
    Held {
        /// The session.
        session: String,
        /// Who.
        by: Holder,
    },
    /// Somebody else has taken it over while it ran here; its process was killed.
    TakenOver {
        /// The session.
        session: String,
        /// The number of the claim that was lost; `None` for a conversation that had just begun here and was not claimed yet.
        fence: Option<u64>,
        /// Who, where that could be told.
        by: Option<Holder>,
    },
    /// Somebody else asked for it, and got it: its process was ended by SIGTERM.
    HandedOver {
        /// The session.
        session: String,
        /// To whom.
        to: Holder,
    },
    /// The claim could not be kept up, so somebody else may have the session by now; its process was killed.
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

    /// Who has it, where that is known.
    pub fn holder(&self) -> Option<&Holder> {
        match self {
            Self::Held { by, .. } | Self::HandedOver { to: by, .. } => Some(by),
            Self::TakenOver { by, .. } => by.as_ref(),
            Self::NotRenewed { .. } => None,
        }
    }

    /// Whether the process may write down what it has before it ends.
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

/// Whose sessions are.
impl Options {
    /// Drives the session alone: claims its id before the CLI is started, keeps the claim up while it lives, and gives it back when
    /// it ends. [`OnBusy`] alone will do: `.lease(OnBusy::Fork)`.
    ///
    /// * **Where**: in the session store, if there is one [with leases](crate::sessions::store::SessionStore::leases), for all
    ///   machines that use it; else on disk, in `outrigger/leases` of the CLI's config directory, for all processes that use that.
    ///   On disk a CLI counts too that somebody started by hand and that lists itself as running.
    /// * **Who comes second** gets what [`LeaseOptions::on_busy`] says: an error that names the holder
    ///   ([`Error::as_lease_problem`](crate::Error::as_lease_problem)); a fork, made by the CLI, with an id of its own
    ///   ([`Session::forked_from`](crate::Session::forked_from)); or the session, which its holder then loses.
    /// * **Who loses it** stops: the process is ended, and everybody who waits gets an error that says who took it, since when.
    ///   Entries that come too late are refused by the store, and told by `mirror_error`.
    /// * **When it ends**, also by being dropped, the session is free at once. When this program is killed, a session on disk is
    ///   free as soon as its CLI has ended; one in a store when [`LeaseOptions::ttl`] is over.
    ///
    /// A new session gets an id from here for that (`--session-id`); what `/clear` begins is claimed as it is seen.
    ///
    /// Off unless set, because it costs something and can refuse what worked before: a small file for each session that ever had a
    /// lease, which stays since its number must not be used again, and a look at it every second; in a store, a call before the
    /// start and one for each third of `ttl`. It is advisory: it binds those who claim.
    pub fn lease(mut self, lease: impl Into<LeaseOptions>) -> Self {
        self.hosting.lease = Some(lease.into());
        self
    }

    /// What can't go together with a lease.
    pub(crate) fn check_lease(&self, is_spare: bool, is_far: bool) -> Result<(), OptionsError> {
        let Some(lease) = &self.hosting.lease else {
            return Ok(());
        };
        if lease.ttl < LEAST_TTL {
            return Err(OptionsError::invalid(
                "lease",
                format!("ttl: {:?}", lease.ttl),
                "has to last 100 ms at least, since renewing it takes time",
            ));
        }
        if self.persist_session == Some(false) {
            return Err(OptionsError::Conflict {
                options: ["lease", "persist_session"],
                advice: "a session that is not kept can't be driven by anybody else",
            });
        }
        if is_spare {
            return Err(OptionsError::Conflict {
                options: ["lease", "prewarm"],
                advice: "a spare has no session yet that could be claimed: start it directly",
            });
        }
        let keeping = self.hosting.store.keeping();
        let in_store = keeping.is_some_and(|keeping| keeping.store.leases().is_some());
        if is_far && !in_store {
            return Err(OptionsError::Requires {
                option: "lease",
                needs: "session_store",
                advice: "the CLI's files are on another machine, where nothing can be claimed from here: keep the \
                         sessions in a store that has leases",
            });
        }
        if self.continue_conversation && !self.hosting.store.is_set() {
            return Err(OptionsError::Conflict {
                options: ["lease", "continue_conversation"],
                advice: "only the CLI knows which session that is, and it has to be claimed before: name it with `resume`",
            });
        }
        let by_title = |resume: &String| outrigger_sessions::SessionId::new(resume).is_err();
        if self.resume.as_ref().is_some_and(by_title) {
            return Err(OptionsError::Conflict {
                options: ["lease", "resume"],
                advice: "only the CLI knows which session a title is, and it has to be claimed before: name its id",
            });
        }
        Ok(())
    }

    /// Whether nobody else can find the session's files.
    fn is_private(&self) -> bool {
        self.isolation == Isolation::Hermetic && self.hermetic_home.is_none()
    }
}

#[cfg(test)]
mod tests;
