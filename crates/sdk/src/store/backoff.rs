//! The delays between retries of a store.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// The longest first delay. The limit doubles with each further one.
const FIRST: Duration = Duration::from_millis(200);

/// The longest delay.
const LONGEST: Duration = Duration::from_secs(30);

/// The longest delay at the end of the session, for which the program waits.
const LONGEST_AT_THE_END: Duration = Duration::from_secs(1);

/// The number of consecutive failures.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The delay after another failure: a random time between half of the limit and the limit, so that many sessions do not return
    /// to a store at once.
    pub(super) fn pause(&mut self, is_ending: bool) -> Duration {
        let longest = if is_ending { LONGEST_AT_THE_END } else { LONGEST };
        let whole = FIRST.saturating_mul(1 << self.failures.min(16)).min(longest);
        self.failures += 1;
        // What hash maps draw is chance enough.
        let chance = RandomState::new().hash_one(()) % 1024;
        let part = u32::try_from(chance).unwrap_or_default();
        whole / 2 + whole * part / 2048
    }

    /// The store accepted an append.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_differ() {
        let mut backoff = Backoff::default();
        let pauses: Vec<_> = (0..40).map(|_| backoff.pause(false)).collect();
        for (nth, pause) in pauses.iter().enumerate() {
            let whole = Duration::from_millis(200 << nth.min(10)).min(LONGEST);
            assert!(*pause >= whole / 2 && *pause <= whole, "{nth}: {pause:?}");
        }
        assert!(pauses[20..].windows(2).any(|pair| pair[0] != pair[1]));
        assert!(backoff.pause(true) <= LONGEST_AT_THE_END);
        backoff.reset();
        assert!(backoff.pause(false) <= FIRST);
        backoff.failures = u32::MAX - 1;
        assert!(backoff.pause(false) <= LONGEST);
    }
}
