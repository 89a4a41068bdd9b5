//! How many turns may run, and how long the gate stays closed.

use std::collections::BTreeMap;
use std::time::Duration;

use super::gate_core::LONGEST_CLOSED;

/// How many turns run at once, and how the gate behaves when the API refuses requests.
///
/// Change the fields of [`GateLimits::default`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GateLimits {
    /// Turns that run at once. No limit by default.
    pub max_running: usize,
    /// Turns of one model that run at once, by the name that [`Visitor::model`](super::Visitor::model) gets. No limits by default.
    pub by_model: BTreeMap<String, usize>,
    /// Visitors that may wait; one more is refused with [`GateError::Full`](super::GateError::Full). 10,000 by default.
    pub max_waiting: usize,
    /// Turns that may begin after the gate was closed, before the API has answered one of them. 1 by default; 0 counts as 1.
    pub probes: usize,
    /// How long the gate is closed the first time, if the API gave no time. It doubles with each closing until the API answers
    /// again, and a random part of up to a half is taken off. 1 second by default.
    pub backoff: Duration,
    /// The longest time that the gate chooses itself. A time that the API gave may be longer. 5 minutes by default.
    pub max_backoff: Duration,
    /// The shortest time that the gate is closed, also when the API gave a shorter one. 100 milliseconds by default.
    pub min_closed: Duration,
    /// A visitor's priority grows by one each time it has waited this long, so that nobody starves. 30 seconds by default.
    pub aging: Duration,
    /// How long the places of a process are kept that is not heard of any more, and how long a visitor waits while the store does not
    /// answer. Only for [`Gate::over`](super::Gate::over). 30 seconds by default; less than 100 milliseconds counts as that.
    pub lease: Duration,
    /// How often a process looks whether others made place, while somebody waits in it. Only for
    /// [`Gate::over`](super::Gate::over). 250 milliseconds by default; less than a millisecond counts as that.
    pub poll: Duration,
}

impl Default for GateLimits {
    fn default() -> Self {
        Self {
            max_running: usize::MAX,
            by_model: BTreeMap::new(),
            max_waiting: 10_000,
            probes: 1,
            backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(5 * 60),
            min_closed: Duration::from_millis(100),
            aging: Duration::from_secs(30),
            lease: Duration::from_secs(30),
            poll: Duration::from_millis(250),
        }
    }
}

impl GateLimits {
    /// Whether a limit of zero makes them useless: nobody would ever get in.
    pub(super) fn normalized(mut self) -> Self {
        self.probes = self.probes.max(1);
        self.max_running = self.max_running.max(1);
        self.lease = self.lease.max(Duration::from_millis(100));
        self.poll = self.poll.max(Duration::from_millis(1));
        for most in self.by_model.values_mut() {
            *most = (*most).max(1);
        }
        self
    }

    pub(super) fn of_model(&self, model: &str) -> Option<usize> {
        self.by_model.get(model).copied()
    }

    /// How long the gate is closed the `closing`-th time in a row, from 1.
    pub(super) fn backoff(&self, closing: u32, jitter: f64) -> Duration {
        let doubled = 2u32.saturating_pow(closing.saturating_sub(1).min(31));
        let whole = self.backoff.saturating_mul(doubled).min(self.max_backoff);
        let whole = whole.min(LONGEST_CLOSED);
        whole.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backoff_doubles_up_to_its_limit() {
        let limits = GateLimits::default();
        let seconds = [1, 2, 3, 9, 10, u32::MAX].map(|closing| limits.backoff(closing, 0.0).as_secs());
        assert_eq!(seconds, [1, 2, 4, 256, 300, 300]);
        assert_eq!(limits.backoff(1, 1.0), Duration::from_millis(500));
        let endless = GateLimits {
            backoff: Duration::MAX,
            max_backoff: Duration::MAX,
            ..limits
        };
        assert_eq!(endless.backoff(1, 0.0), LONGEST_CLOSED);
    }
}
