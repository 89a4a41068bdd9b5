//! How an address is doing: a state machine without a clock.

use std::time::Duration;

use super::WebhookLimits;

/// The longest pause that an address may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(24 * 3600);

/// So many attempts have to fail before a webhook is disabled: the wall clock may have been set, or the machine may have slept.
const LEAST_FAILURES: u32 = 10;

/// The address of a webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Health {
    /// The first failure since the last success, in milliseconds since 1970.
    since: Option<u64>,
    /// Failures since then, of this process.
    failures: u32,
}

/// What follows from a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterFailure {
    /// Nothing is sent for this long.
    Pause(Duration),
    /// Nothing is sent any more.
    Disable,
}

impl Health {
    pub(super) fn new(since: Option<u64>) -> Self {
        Self { since, failures: 0 }
    }

    pub(super) fn is_failing(&self) -> bool {
        self.since.is_some()
    }

    /// Whether it was failing until now.
    pub(super) fn succeed(&mut self) -> bool {
        std::mem::take(self).is_failing()
    }

    /// Another attempt failed at `now`, in milliseconds since 1970. `random` is from 0 to 1.
    pub(super) fn fail(
        &mut self,
        now: u64,
        asked: Option<Duration>,
        random: f64,
        limits: &WebhookLimits,
    ) -> AfterFailure {
        // A clock that was set back begins anew, so that nothing is disabled too early.
        let since = self.since.filter(|since| *since <= now).unwrap_or(now);
        self.since = Some(since);
        let is_long = u128::from(now - since) >= limits.give_up.as_millis();
        if is_long && self.failures + 1 >= LEAST_FAILURES {
            return AfterFailure::Disable;
        }
        let doubled = limits
            .first_pause
            .saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = (self.failures + 1).min(31);
        let pause = doubled
            .min(limits.longest_pause)
            .mul_f64(1.0 - 0.5 * random.clamp(0.0, 1.0));
        AfterFailure::Pause(pause.max(asked.unwrap_or_default().min(LONGEST_ASKED)))
    }

    pub(super) fn since(&self) -> Option<u64> {
        self.since
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_a_success_begins_anew() {
        let limits = WebhookLimits::default();
        let mut health = Health::default();
        let mut pauses = Vec::new();
        for _ in 0..12 {
            pauses.push(match health.fail(1000, None, 0.0, &limits) {
                AfterFailure::Pause(pause) => pause.as_secs(),
                AfterFailure::Disable => 0,
            });
        }
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]);
        assert!(health.succeed());
        assert!(!health.succeed());
        assert_eq!(
            health.fail(1000, None, 1.0, &limits),
            AfterFailure::Pause(Duration::from_millis(2500))
        );
        let asked = Some(Duration::from_secs(9000));
        assert_eq!(
            health.fail(1000, asked, 1.0, &limits),
            AfterFailure::Pause(Duration::from_secs(9000))
        );
        assert_eq!(
            health.fail(1000, Some(Duration::MAX), 1.0, &limits),
            AfterFailure::Pause(LONGEST_ASKED)
        );
    }

    #[test]
    fn a_clock_that_is_set_forward_disables_nothing_by_itself() {
        let limits = WebhookLimits::default();
        let late = u64::try_from(limits.give_up.as_millis()).unwrap_or(u64::MAX);
        let mut health = Health::default();
        health.fail(0, None, 0.0, &limits);
        for _ in 0..8 {
            let next = health.fail(late, None, 0.0, &limits);
            assert!(matches!(next, AfterFailure::Pause(_)));
        }
        assert_eq!(health.fail(late, None, 0.0, &limits), AfterFailure::Disable);
    }

    proptest! {
        #[test]
        fn every_pause_is_bounded_and_only_time_with_failures_disables(
            attempts in proptest::collection::vec((0_u64..400_000_000, any::<Option<u32>>(), 0.0_f64..=1.0, any::<bool>()), 1..60),
        ) {
            let limits = WebhookLimits::default();
            let mut health = Health::default();
            let mut since = None;
            let mut failures = 0;
            for (now, asked, random, has_success) in attempts {
                if has_success {
                    health.succeed();
                    since = None;
                    failures = 0;
                }
                failures += 1;
                let first = *since.get_or_insert(now);
                if first > now {
                    since = Some(now);
                }
                let asked = asked.map(|seconds| Duration::from_secs(seconds.into()));
                let next = health.fail(now, asked, random, &limits);
                let failing_for = Duration::from_millis(now - since.unwrap_or(now));
                match next {
                    AfterFailure::Disable => prop_assert!(failing_for >= limits.give_up && failures >= LEAST_FAILURES),
                    AfterFailure::Pause(pause) => {
                        prop_assert!(failing_for < limits.give_up || failures < LEAST_FAILURES);
                        prop_assert!(pause >= limits.first_pause / 2);
                        prop_assert!(pause >= asked.unwrap_or_default().min(LONGEST_ASKED));
                        prop_assert!(pause <= limits.longest_pause.max(LONGEST_ASKED));
                    }
                }
            }
        }
    }
}
