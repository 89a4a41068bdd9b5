//! How fast a token, or somebody without one, may ask.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// With so many, those that have not asked for a while are forgotten.
const REMEMBERED: usize = 1024;

/// How much somebody may ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    /// Requests at once. At least 1.
    pub(crate) burst: u32,
    /// Requests in a second, on average. At least 1.
    pub(crate) per_second: u32,
}

/// A bucket for each key: a request takes one of its drops, and it fills again by and by.
#[derive(Debug)]
pub(crate) struct Rates<K> {
    buckets: Mutex<HashMap<Option<K>, Bucket>>,
    /// The most buckets. What has no place shares one, under `None`.
    most: usize,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    drops: f64,
    at: Instant,
}

impl Bucket {
    fn full(rate: Rate, now: Instant) -> Self {
        Self {
            drops: f64::from(rate.burst.max(1)),
            at: now,
        }
    }

    /// Lets the time pass up to now.
    fn fill(&mut self, rate: Rate, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.drops = (self.drops + passed * per_second(rate)).min(f64::from(rate.burst.max(1)));
        self.at = now;
    }
}

fn per_second(rate: Rate) -> f64 {
    f64::from(rate.per_second.max(1))
}

impl<K: Eq + Hash> Rates<K> {
    /// For at most so many keys at once.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            buckets: Mutex::default(),
            most,
        }
    }

    /// Takes a request in, or says how long its sender has to wait.
    pub(crate) fn take(&self, key: K, rate: Rate, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = Some(key);
        if buckets.len() >= REMEMBERED.min(self.most) && !buckets.contains_key(&key) {
            buckets.retain(|_, bucket| {
                bucket.fill(rate, now);
                bucket.drops < f64::from(rate.burst.max(1))
            });
            if buckets.len() >= self.most {
                key = None;
            }
        }
        let bucket = buckets.entry(key).or_insert_with(|| Bucket::full(rate, now));
        bucket.fill(rate, now);
        if bucket.drops < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.drops) / per_second(rate)));
        }
        bucket.drops -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rate(burst: u32, per_second: u32) -> Rate {
        Rate { burst, per_second }
    }

    #[test]
    fn a_sender_that_waits_as_it_was_told_may_ask_again_and_another_one_at_once() {
        let (rates, rate, start) = (Rates::new(10), rate(3, 2), Instant::now());
        for _ in 0..3 {
            assert_eq!(rates.take("one", rate, start), Ok(()));
        }
        let wait = rates.take("one", rate, start);
        assert_eq!(wait, Err(Duration::from_millis(500)));
        assert_eq!(rates.take("other", rate, start), Ok(()));
        let later = start + Duration::from_millis(500);
        assert_eq!(rates.take("one", rate, later), Ok(()));
        assert_eq!(rates.take("one", rate, later), Err(Duration::from_millis(500)));
    }

    #[test]
    fn the_table_does_not_grow_and_who_has_no_place_in_it_shares_one() {
        let (rates, rate, start) = (Rates::new(2), rate(1, 1), Instant::now());
        for key in [1, 2, 3] {
            assert_eq!(rates.take(key, rate, start), Ok(()));
        }
        rates.take(4, rate, start).unwrap_err();
        assert_eq!(rates.buckets.lock().unwrap().len(), 3);
        // Who has a place keeps it, and after a while there are places again.
        rates.take(1, rate, start).unwrap_err();
        assert_eq!(rates.take(4, rate, start + Duration::from_secs(1)), Ok(()));
        assert_eq!(rates.buckets.lock().unwrap().len(), 1);
    }

    proptest! {
        #[test]
        fn nobody_gets_more_than_the_burst_and_the_rate(
            burst in 1_u32..20, per_second in 1_u32..20, pauses in proptest::collection::vec(0_u64..2000, 1..100),
        ) {
            let (rates, start) = (Rates::new(10), Instant::now());
            let (mut now, mut taken) = (start, 0_u32);
            for pause in pauses {
                now += Duration::from_millis(pause);
                if rates.take((), rate(burst, per_second), now).is_ok() {
                    taken += 1;
                }
            }
            let most = f64::from(burst) + (now - start).as_secs_f64() * f64::from(per_second);
            prop_assert!(f64::from(taken) <= most + 0.001);
        }
    }
}
