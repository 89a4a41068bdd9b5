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

pub use claim::{Claim, Lease};
pub use cli::{cli_runs_in, driven_by_cli};

pub use crate::owner::{Busy, Fence, Owner};

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
