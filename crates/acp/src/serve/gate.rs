//! How far the editor is behind.
//!
//! The connection's own queue has no end, and what waits in it can't be taken back or merged. So nothing is put there while more
//! than [`MOST`] updates have not been written; what the CLI says meanwhile waits with the SDK, in bounded memory and then on disk.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How many updates may wait to be written before nothing more is sent.
const MOST: usize = 64;

/// Counts the updates that were sent against those that were written.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    waiting: AtomicUsize,
    opened: Notify,
    /// Fires when the first line was written.
    spoken: CancellationToken,
}

impl Gate {
    /// An update goes to the connection's queue.
    pub(crate) fn sent(&self) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
    }

    /// One was written, or was let go.
    pub(crate) fn written(&self) {
        let less_one = |waiting: usize| waiting.checked_sub(1);
        let before = self
            .waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, less_one);
        if before == Ok(MOST) {
            self.opened.notify_waiters();
        }
    }

    /// A line was written, of whatever kind.
    pub(super) fn speaks(&self) {
        self.spoken.cancel();
    }

    /// Waits until the first line was written.
    pub(crate) async fn spoken(&self) {
        self.spoken.cancelled().await;
    }

    /// Whether another may be sent.
    pub(crate) fn is_open(&self) -> bool {
        self.waiting.load(Ordering::Acquire) < MOST
    }

    /// Waits until another may be sent.
    pub(crate) async fn opened(&self) {
        loop {
            let opened = self.opened.notified();
            tokio::pin!(opened);
            opened.as_mut().enable();
            if self.is_open() {
                return;
            }
            opened.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_closes_at_the_bound_and_opens_below_it() {
        let gate = Gate::default();
        for _ in 0..MOST - 1 {
            gate.sent();
        }
        assert!(gate.is_open());
        gate.sent();
        assert!(!gate.is_open());
        let (opened, ()) = tokio::join!(gate.opened(), async { gate.written() });
        let () = opened;
        assert!(gate.is_open());
    }

    #[test]
    fn what_was_not_counted_as_sent_is_not_counted_as_written() {
        let gate = Gate::default();
        gate.written();
        assert!(gate.is_open());
    }
}
