//! The wall clock, as a value that tests replace.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

/// Where the wall time comes from.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that a program has made itself, for its tests.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// Milliseconds since 1970.
    pub(crate) fn millis(&self) -> u64 {
        u64::try_from(self.now().as_millisecond()).unwrap_or(0)
    }
}

impl Default for Clock {
    /// The clock of the system.
    fn default() -> Self {
        Self::new(Timestamp::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
