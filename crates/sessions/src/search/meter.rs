//! Reports on work that several threads do.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use crate::progress::Progress;

/// Who hears of work that several threads do.
pub(super) type Observer = Box<dyn FnMut(Progress) -> ControlFlow<()> + Send>;

/// The progress of an operation of several threads.
pub(super) struct SharedMeter(Mutex<MeterInner>);

struct MeterInner {
    observe: Observer,
    at: Progress,
    since: u64,
}

impl SharedMeter {
    pub(super) fn new(total: u64, observe: Observer) -> Self {
        let at = Progress { done: 0, total };
        Self(Mutex::new(MeterInner {
            observe,
            at,
            since: 0,
        }))
    }

    /// Reports the total.
    pub(super) fn begin(&self) -> ControlFlow<()> {
        self.with(|shared| (shared.observe)(shared.at))
    }

    /// So much more is done.
    pub(super) fn add(&self, bytes: u64) -> ControlFlow<()> {
        self.with(|shared| {
            if shared.at.add(bytes, &mut shared.since) {
                return (shared.observe)(shared.at.before_end());
            }
            ControlFlow::Continue(())
        })
    }

    /// Everything is done.
    pub(super) fn end(&self) {
        self.with(|shared| {
            let done = shared.at.total;
            let _ = (shared.observe)(Progress { done, ..shared.at });
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut MeterInner) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
