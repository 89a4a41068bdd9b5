//! Ends the process of a session whose runtime may never run again.

use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::watch;

use super::Closing;
use crate::deadline::AGES;
use crate::error::Error;
use crate::peer::{Signal, Signaller};

/// The interval of checks whether the process is gone.
const LOOK: Duration = Duration::from_millis(20);

/// Ends the process if the runtime does not: a single-threaded runtime runs only inside `block_on`, and a blocking wrapper calls
/// that no more once it has dropped its session.
pub(super) struct Undriven {
    signaller: Box<dyn Signaller>,
    ended: watch::Receiver<Option<Error>>,
    closing: Closing,
}

impl Undriven {
    /// `None` if the runtime has its own threads, or the process cannot be signalled from another thread.
    pub(super) fn of(
        signaller: Option<Box<dyn Signaller>>,
        ended: watch::Receiver<Option<Error>>,
        closing: Closing,
    ) -> Option<Self> {
        if Handle::current().runtime_flavor() != RuntimeFlavor::CurrentThread {
            return None;
        }
        Some(Self {
            signaller: signaller?,
            ended,
            closing,
        })
    }

    /// Ends the process from a separate thread, in the order and the times of an ordinary end.
    pub(super) fn see_to_it(self) {
        if self.is_over() {
            return;
        }
        let thread = std::thread::Builder::new().name("outrigger-end".to_owned());
        // Without a thread, the end of the runtime kills the process.
        let _ = thread.spawn(move || {
            for (grace, signal) in [
                (self.closing.grace, Signal::Terminate),
                (self.closing.term_grace, Signal::Kill),
            ] {
                // The supervisor, if it runs, goes first.
                if self.is_over_within(grace.saturating_add(LOOK)) {
                    return;
                }
                if let Err(error) = self.signaller.signal(signal) {
                    tracing::warn!(%error, ?signal, "could not signal the process");
                }
            }
        });
    }

    fn is_over(&self) -> bool {
        self.signaller.is_gone() || self.ended.borrow().is_some()
    }

    fn is_over_within(&self, time: Duration) -> bool {
        let until = Instant::now() + time.min(AGES);
        loop {
            if self.is_over() {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(LOOK);
        }
    }
}
