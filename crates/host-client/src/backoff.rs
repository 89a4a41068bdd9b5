//! How long to wait before the next try.

use std::time::Duration;

/// What a host says of itself counts up to here, so that no host puts a client to sleep for days.
const MOST: Duration = Duration::from_secs(600);

/// Delays that double from try to try.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    pub(crate) least: Duration,
    pub(crate) most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            least: Duration::from_millis(250),
            most: Duration::from_secs(15),
        }
    }
}

impl Backoff {
    /// The delay after so many failed tries, counted from 0, or what the host asks for if that is longer. `share` is between 0 and 1: clients that
    /// lost their host at the same moment come back at different ones.
    pub(crate) fn delay(self, tries: u32, asked: Option<Duration>, share: f64) -> Duration {
        let doubled = self.least.saturating_mul(2_u32.saturating_pow(tries.min(16)));
        let delay = doubled.min(self.most).mul_f64(0.5 + share.clamp(0.0, 1.0) / 2.0);
        delay.max(asked.unwrap_or_default().min(MOST))
    }

    /// The same, by chance.
    pub(crate) fn drawn(self, tries: u32, asked: Option<Duration>) -> Duration {
        self.delay(tries, asked, fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_delay_is_bounded_grows_and_is_never_shorter_than_what_the_host_asks(
            tries in 0_u32..100, share in 0.0..1.0_f64, asked in proptest::option::of(0_u64..10_000),
        ) {
            let backoff = Backoff::default();
            let asked = asked.map(Duration::from_secs);
            let delay = backoff.delay(tries, asked, share);
            prop_assert!(delay >= backoff.least / 2);
            prop_assert!(delay <= backoff.most.max(MOST));
            prop_assert!(delay >= asked.unwrap_or_default().min(MOST));
            prop_assert!(backoff.delay(tries + 1, asked, share) >= delay);
        }
    }
}
