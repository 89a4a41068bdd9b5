//! How fast a token may ask.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::limits::Limits;

/// With so many tokens, those that have not asked for a while are forgotten.
const REMEMBERED: usize = 1024;

/// A bucket for each token: a request takes one of its drops, and it fills again by and by.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<HashMap<Uuid, Bucket>>);

#[derive(Debug, Clone, Copy)]
struct Bucket {
    drops: f64,
    at: Instant,
}

impl Bucket {
    fn full(limits: &Limits, now: Instant) -> Self {
        Self {
            drops: f64::from(limits.burst.max(1)),
            at: now,
        }
    }

    /// Lets the time pass up to now.
    fn fill(&mut self, limits: &Limits, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.drops = (self.drops + passed * rate(limits)).min(f64::from(limits.burst.max(1)));
        self.at = now;
    }
}

fn rate(limits: &Limits) -> f64 {
    f64::from(limits.requests_per_second.max(1))
}

impl Rates {
    /// Takes a request in, or says how long the token has to wait.
    pub(crate) fn take(&self, token: Uuid, limits: &Limits, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= REMEMBERED && !buckets.contains_key(&token) {
            buckets.retain(|_, bucket| {
                bucket.fill(limits, now);
                bucket.drops < f64::from(limits.burst.max(1))
            });
        }
        let bucket = buckets.entry(token).or_insert_with(|| Bucket::full(limits, now));
        bucket.fill(limits, now);
        if bucket.drops < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.drops) / rate(limits)));
        }
        bucket.drops -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits(burst: u32, requests_per_second: u32) -> Limits {
        Limits {
            burst,
            requests_per_second,
            ..Limits::default()
        }
    }

    #[test]
    fn a_token_that_waits_as_it_was_told_may_ask_again_and_another_one_at_once() {
        let (rates, limits, start) = (Rates::default(), limits(3, 2), Instant::now());
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        for _ in 0..3 {
            assert_eq!(rates.take(one, &limits, start), Ok(()));
        }
        let wait = rates.take(one, &limits, start);
        assert_eq!(wait, Err(Duration::from_millis(500)));
        assert_eq!(rates.take(other, &limits, start), Ok(()));
        let later = start + Duration::from_millis(500);
        assert_eq!(rates.take(one, &limits, later), Ok(()));
        assert_eq!(rates.take(one, &limits, later), Err(Duration::from_millis(500)));
    }

    proptest! {
        #[test]
        fn no_token_gets_more_than_its_burst_and_its_rate(
            burst in 1_u32..20, rate in 1_u32..20, pauses in proptest::collection::vec(0_u64..2000, 1..100),
        ) {
            let (rates, limits, start) = (Rates::default(), limits(burst, rate), Instant::now());
            let (mut now, mut taken) = (start, 0_u32);
            for pause in pauses {
                now += Duration::from_millis(pause);
                if rates.take(Uuid::nil(), &limits, now).is_ok() {
                    taken += 1;
                }
            }
            let most = f64::from(burst) + (now - start).as_secs_f64() * f64::from(rate);
            prop_assert!(f64::from(taken) <= most + 0.001);
        }
    }
}
