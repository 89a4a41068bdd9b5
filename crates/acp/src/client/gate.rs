//! How far the editor is behind.
//!
//! The queue of the connection is unbounded, and updates in it can't be merged. So no update goes there while more than [`MOST`]
//! updates, or [`MOST_BYTES`] of them, are unwritten. Meanwhile frames wait in the SDK, in bounded memory and then on disk.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::Notify;

/// How many updates may be unwritten.
const MOST: usize = 64;

/// How many bytes the unwritten updates may have. A larger update goes alone.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Counts the updates that are sent and not written.
#[derive(Debug, Default)]
pub(crate) struct WriteGate {
    waiting: Mutex<UnwrittenUpdates>,
    opened: Notify,
}

#[derive(Debug, Default)]
struct UnwrittenUpdates {
    sizes: VecDeque<usize>,
    bytes: usize,
}

impl UnwrittenUpdates {
    fn is_few(&self) -> bool {
        self.sizes.len() < MOST && self.bytes < MOST_BYTES
    }
}

impl WriteGate {
    fn waiting(&self) -> MutexGuard<'_, UnwrittenUpdates> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An update of this size enters the queue.
    pub(crate) fn sent(&self, bytes: usize) {
        let mut waiting = self.waiting();
        waiting.sizes.push_back(bytes);
        waiting.bytes = waiting.bytes.saturating_add(bytes);
    }

    /// The first update of the queue was written or dropped.
    pub(crate) fn written(&self) {
        let mut waiting = self.waiting();
        let was_few = waiting.is_few();
        let Some(bytes) = waiting.sizes.pop_front() else {
            return;
        };
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        if !was_few && waiting.is_few() {
            drop(waiting);
            self.opened.notify_waiters();
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.waiting().is_few()
    }

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

/// The size of a value as JSON.
pub(super) fn size(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A value that can't be encoded is not sent.
    let written = serde_json::to_writer(&mut count, value);
    written.map_or(0, |()| count.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_closes_at_the_bound_and_opens_below_it() {
        let gate = WriteGate::default();
        for _ in 0..MOST - 1 {
            gate.sent(1);
        }
        assert!(gate.is_open());
        gate.sent(1);
        assert!(!gate.is_open());
        let (opened, ()) = tokio::join!(gate.opened(), async { gate.written() });
        let () = opened;
        assert!(gate.is_open());
    }

    #[tokio::test]
    async fn few_that_are_long_close_it_too() {
        let gate = WriteGate::default();
        gate.sent(10);
        // It may go although it is longer than all together may be.
        assert!(gate.is_open());
        gate.sent(2 * MOST_BYTES);
        gate.sent(10);
        assert!(!gate.is_open());
        gate.written();
        assert!(!gate.is_open(), "the long one waits still");
        let (opened, ()) = tokio::join!(gate.opened(), async { gate.written() });
        let () = opened;
        assert!(gate.is_open());
        gate.written();
        assert_eq!(gate.waiting().bytes, 0);
    }

    #[test]
    fn what_was_not_counted_as_sent_is_not_counted_as_written() {
        let gate = WriteGate::default();
        gate.written();
        assert!(gate.is_open());
    }

    #[test]
    fn a_size_is_that_of_the_line() {
        let value = serde_json::json!({"text": "é\n", "list": [1, null]});
        assert_eq!(size(&value), value.to_string().len());
    }
}
