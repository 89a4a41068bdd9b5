//! What goes along with a connection and is made above it: what brings the conversation to a store, and the claim on the session.

use std::fmt;
use std::sync::Arc;

use outrigger_protocol::Frame;
use outrigger_sessions::SessionId;

use super::Conn;
use crate::ownership::LeaseProblem;
use crate::peer::BoxFuture;
use crate::stats::StoreLag;

/// What brings the conversation to a store.
pub(crate) trait Mirroring: fmt::Debug + Send + Sync + 'static {
    /// Takes a frame for the store, and waits for nothing.
    fn offer(&self, frame: &Frame);

    /// Wants all that came so far in the store.
    fn want(&self);

    /// Whether all that was wanted is stored, or the session is over.
    fn is_flushed(&self) -> bool;

    /// Whether an outcome may be told: all that was wanted is stored, or is known to be late.
    fn is_told(&self) -> bool;

    /// Waits for that.
    fn told(&self) -> BoxFuture<'_, ()>;

    /// Its task. Ends when nothing more comes, or when it is dropped with its runtime.
    fn run(self: Arc<Self>, conn: Arc<Conn>) -> BoxFuture<'static, ()>;

    /// Nothing more comes: waits until the rest is stored, or for as long as the end may take.
    ///
    /// `cut_off` says that the CLI did not end well. The CLI reports a line some time after it wrote the line, so the transcripts may
    /// have lines that the store will not get from here: the transcripts stay for the next start.
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

/// The claim on the session.
pub(crate) trait Claimed: Send + Sync + 'static {
    /// How the session was lost, if it was; asked when the process has ended.
    fn problem_at_end(&self) -> Option<LeaseProblem>;

    /// The number of the claim, if it has one.
    fn fence(&self) -> Option<u64>;

    /// The session of which this one is a fork, if somebody else had that.
    fn fork_of(&self) -> Option<SessionId>;

    /// Gives the claim back.
    fn release(&self) -> BoxFuture<'_, ()>;

    /// The same without waiting, when nobody is there to wait.
    fn abandon(&self);
}
