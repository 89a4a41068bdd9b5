//! How long visitors waited.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::gate_core::Waiter;

/// How a visitor's wait at a gate ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GateWait {
    /// How long the wait was.
    pub waited: Duration,
    /// The model that the visitor named.
    pub model: Option<String>,
    /// The priority that the visitor came with.
    pub priority: i32,
    /// How the wait ended.
    pub end: WaitEnd,
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitEnd {
    /// The visitor got in.
    Entered,
    /// Too many waited already: [`GateError::Full`](super::GateError::Full).
    Full,
    /// The visitor's patience was over: [`GateError::Patience`](super::GateError::Patience).
    Patience,
    /// The store failed: [`GateError::Store`](super::GateError::Store).
    Store,
    /// The visitor went away: its future was dropped.
    Left,
}

impl WaitEnd {
    /// The variant in `snake_case`, for metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Entered => "entered",
            Self::Full => "full",
            Self::Patience => "patience",
            Self::Store => "store",
            Self::Left => "left",
        }
    }
}

type Watcher = Arc<dyn Fn(&GateWait) -> bool + Send + Sync>;

/// Who is told.
#[derive(Default)]
pub(super) struct Watchers(Mutex<Vec<Watcher>>);

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watchers")
    }
}

impl Watchers {
    pub(super) fn add(&self, told: impl Fn(&GateWait) -> bool + Send + Sync + 'static) {
        let mut watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.push(Arc::new(told));
    }

    fn notify(&self, wait: &GateWait) {
        // Nobody is called under the lock.
        let watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let gone: Vec<Watcher> = watchers.into_iter().filter(|told| !told(wait)).collect();
        if !gone.is_empty() {
            let mut watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            watchers.retain(|told| !gone.iter().any(|gone| Arc::ptr_eq(told, gone)));
        }
    }
}

/// A wait that is measured. One that is dropped has ended because its visitor left.
pub(super) struct Measured {
    watchers: Arc<Watchers>,
    began: Instant,
    wait: GateWait,
}

impl Measured {
    pub(super) fn begin(watchers: &Arc<Watchers>, waiter: &Waiter) -> Self {
        Self {
            watchers: Arc::clone(watchers),
            began: Instant::now(),
            wait: GateWait {
                waited: Duration::ZERO,
                model: waiter.model.clone(),
                priority: waiter.priority,
                end: WaitEnd::Left,
            },
        }
    }

    pub(super) fn end(mut self, end: WaitEnd) {
        self.wait.end = end;
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        self.wait.waited = self.began.elapsed();
        self.watchers.notify(&self.wait);
    }
}
