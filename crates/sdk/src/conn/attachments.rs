//! The seams to what higher layers attach to a connection: the mirror into a store, and the lease.

use std::fmt;
use std::sync::Arc;

use outrigger_protocol::Frame;
use outrigger_sessions::SessionId;

use super::Conn;
use crate::ownership::LeaseProblem;
use crate::peer::BoxFuture;
use crate::stats::StoreLag;

/// Copies the conversation into a store.
pub(crate) trait Mirroring: fmt::Debug + Send + Sync + 'static {
    /// Takes a frame for the store, without waiting.
    fn offer(&self, frame: &Frame);

    /// Requests that the store gets all frames so far.
    fn want(&self);

    /// Whether the store has all requested frames, or the session is over.
    fn is_flushed(&self) -> bool;

    /// Whether an outcome may be emitted: the store has all requested frames, or is known to be behind.
    fn is_told(&self) -> bool;

    /// Waits until then.
    fn finished(&self) -> BoxFuture<'_, ()>;

    /// The task of the mirror. It ends when no more frames come, or is dropped with its runtime.
    fn run(self: Arc<Self>, conn: Arc<Conn>) -> BoxFuture<'static, ()>;

    /// No more frames come: waits until the store has the rest, or for the grace of the end.
    ///
    /// `cut_off` is true if the CLI did not end normally. The CLI reports a line some time after it has written it, so the
    /// transcripts may have lines that were never reported: they stay for the next start.
    fn finish<'a>(&'a self, conn: &'a Arc<Conn>, cut_off: bool) -> BoxFuture<'a, ()>;

    fn counts(&self) -> Counts;
}

/// Counts for [`Stats`](crate::Stats).
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    pub(crate) entries: u64,
    pub(crate) errors: u64,
    pub(crate) waiting_bytes: usize,
    pub(crate) lag: Option<StoreLag>,
}

/// The lease of the session.
pub(crate) trait Claimed: Send + Sync + 'static {
    /// How the lease was lost, if it was. Called when the process has ended.
    fn problem_at_end(&self) -> Option<LeaseProblem>;

    /// The number of the lease, if it has one.
    fn fence(&self) -> Option<u64>;

    /// The session of which this one is a fork, if another holder had it.
    fn fork_of(&self) -> Option<SessionId>;

    /// Releases the lease.
    fn release(&self) -> BoxFuture<'_, ()>;

    /// The same without waiting, for `Drop`.
    fn abandon(&self);
}
