//! Leases: one process at a time may drive a session.
//!
//! The CLI lets two processes write one transcript, and then neither has the other's messages. Programs use a lease
//! instead: a program claims a session before it drives it.
//!
//! Each lease has a [`Fence`], a number that only grows. A holder with a greater number has taken the session over, and writes from
//! holders of lesser numbers are to be rejected.
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
//! # Files
//!
//! In `outrigger/leases` of the config directory, for each session: `<id>.json` has the owner and the fence; a lock of the
//! operating system on `<id>.<fence>.held` shows that the holder is alive, without a heartbeat: the lock goes with the process, however
//! it ends. Changes are made one at a time, under a lock on `<id>.lock`.
//!
//! Leases are advisory: they bind only programs that use them. Of other CLIs, this module sees those that the CLI itself lists as running
//! ([`driven_by_cli`]). Whether machines that share a config directory over a network see each other's locks depends on the file
//! system; if they don't, keep the sessions in a store with leases ([`store`](crate::store)).

mod claim;
mod cli;
mod disk;

pub use claim::{Lease, LeaseClaim};
pub use cli::{CliProcess, cli_processes, cli_runs_in, driven_by_cli};

pub use crate::owner::{Busy, Fence, Owner};

/// What happens if another process has the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnBusy {
    /// The claim fails with [`Error::Busy`](crate::Error::Busy), which has the owner.
    #[default]
    Fail,
    /// The session is forked, and the fork is claimed in its place.
    Fork,
    /// The session is taken over: its holder is requested to release it, and fenced if it does not.
    TakeOver,
}
