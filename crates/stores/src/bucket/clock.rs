//! What time it is for the bucket.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Clocks that differ by less count as equal: the server's times are in whole seconds, and requests take a while.
const TOLERANCE: i64 = 3000;

/// How long a comparison is good for.
const GOOD_FOR: Duration = Duration::from_secs(600);

/// This machine's clock, corrected by the server's if the two differ, so that leases mean the same on all machines.
#[derive(Debug, Default)]
pub(super) struct Clock(Mutex<Compared>);

#[derive(Debug, Default)]
struct Compared {
    /// How much the server's clock is ahead, in milliseconds.
    ahead: i64,
    at: Option<Instant>,
}

impl Clock {
    /// Milliseconds since 1970.
    pub(super) fn now(&self) -> u64 {
        let ahead = self.0.lock().unwrap_or_else(PoisonError::into_inner).ahead;
        crate::now_ms().saturating_add_signed(ahead)
    }

    /// Whether it should be compared again.
    pub(super) fn is_old(&self) -> bool {
        let compared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        compared.at.is_none_or(|at| at.elapsed() > GOOD_FOR)
    }

    /// Something was written at `there` by the server's clock, which shows whole seconds at least, and between `before` and `after` by this
    /// machine's.
    pub(super) fn compare(&self, before: u64, there: u64, after: u64) {
        let middle = (before + (after.saturating_sub(before)) / 2) as i64;
        let ahead = there as i64 + 500 - middle;
        let tolerance = TOLERANCE + after.saturating_sub(before) as i64;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Compared {
            ahead: if ahead.abs() > tolerance { ahead } else { 0 },
            at: Some(Instant::now()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_that_is_really_wrong_is_put_right() {
        let clock = Clock::default();
        assert!(clock.is_old());
        let now = crate::now_ms();
        clock.compare(now, now - 1999, now + 10);
        assert!(!clock.is_old());
        assert!(clock.now().abs_diff(crate::now_ms()) < 100);
        clock.compare(now, now + 60_000, now + 10);
        assert!(clock.now().abs_diff(crate::now_ms() + 60_500) < 100);
        clock.compare(now, now - 60_000, now + 10);
        assert!(clock.now().abs_diff(crate::now_ms() - 59_500) < 100);
    }
}
