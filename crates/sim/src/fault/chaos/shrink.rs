//! From a schedule that breaks a test to the least that does.

use super::run::{CaseRunner, CaseVerdict, FailedCase};
use crate::fault::{At, Effect, Fault, Schedule};

/// Gives the shrunk schedule, how it fails, and how many were tried.
pub(super) fn shrink(
    runner: &CaseRunner,
    schedule: Schedule,
    failed: FailedCase,
    most: usize,
) -> (Schedule, FailedCase, usize) {
    let mut shrinking = Shrinking {
        runner,
        schedule,
        failed,
        tried: 0,
        most,
    };
    shrinking.fewer();
    while shrinking.smaller() && shrinking.tried < most {
        shrinking.fewer();
    }
    (shrinking.schedule, shrinking.failed, shrinking.tried)
}

struct Shrinking<'r> {
    runner: &'r CaseRunner,
    schedule: Schedule,
    failed: FailedCase,
    tried: usize,
    most: usize,
}

impl Shrinking<'_> {
    /// Takes the candidate if it fails the same way.
    fn try_out(&mut self, faults: Vec<Fault>) -> bool {
        if self.tried >= self.most || faults.is_empty() {
            return false;
        }
        self.tried += 1;
        let candidate = Schedule {
            seed: self.schedule.seed,
            faults,
        };
        match self.runner.run(&candidate) {
            CaseVerdict::Failed(failed) if failed.cause.is_like(&self.failed.cause) => {
                self.schedule = candidate;
                self.failed = failed;
                true
            }
            _ => false,
        }
    }

    /// Leaves out as many faults as it can: halves, then quarters, down to single ones.
    fn fewer(&mut self) {
        let mut size = self.schedule.faults.len().div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < self.schedule.faults.len() {
                let mut faults = self.schedule.faults.clone();
                let to = (from + size).min(faults.len());
                faults.drain(from..to);
                if !self.try_out(faults) {
                    from += size;
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
    }

    /// Makes one fault simpler, if it can.
    fn smaller(&mut self) -> bool {
        for n in 0..self.schedule.faults.len() {
            let struck: Vec<u64> = self
                .failed
                .strikes
                .iter()
                .filter(|strike| strike.fault == n)
                .map(|strike| strike.frame)
                .collect();
            for simpler in simpler(&self.schedule.faults[n], &struck) {
                let mut faults = self.schedule.faults.clone();
                faults[n] = simpler;
                if self.try_out(faults) {
                    return true;
                }
            }
        }
        false
    }
}

/// How many single frames are tried instead of all that were struck.
const SINGLE: usize = 30;

/// Simpler faults, the simplest first. Each is smaller by a measure that cannot grow for ever: fewer things said of where it strikes,
/// fewer strikes, smaller numbers.
fn simpler(fault: &Fault, struck: &[u64]) -> Vec<Fault> {
    let mut simpler: Vec<Fault> = Vec::new();
    let at = &fault.at;
    let mut place = |at: At| simpler.push(Fault::new(fault.effect.clone(), at));
    let bare = |nth| At {
        direction: at.direction,
        behind: at.behind,
        nth: Some(nth),
        ..At::default()
    };
    // One frame of those that were struck instead of what was said of all of them.
    if at.probability.is_some() || (at.nth.is_none() && struck.len() > 1) {
        struck.iter().take(SINGLE).for_each(|frame| place(bare(*frame)));
    }
    if at.probability.is_some() {
        place(At {
            probability: None,
            ..at.clone()
        });
    }
    if at.behind {
        place(At {
            behind: false,
            ..at.clone()
        });
    }
    if at.times.is_some_and(|times| times > 1) {
        place(At {
            times: Some(1),
            ..at.clone()
        });
    }
    for nth in smaller(at.nth, 1) {
        place(At {
            nth: Some(nth),
            ..at.clone()
        });
    }
    for bytes in smaller(at.after_bytes, 0) {
        place(At {
            after_bytes: Some(bytes),
            ..at.clone()
        });
    }
    simpler.extend(
        effects(&fault.effect)
            .into_iter()
            .map(|effect| Fault::new(effect, at.clone())),
    );
    simpler
}

/// Smaller numbers: the least, halves of the way, and one less.
fn smaller(number: Option<u64>, least: u64) -> Vec<u64> {
    let Some(number) = number.filter(|number| *number > least) else {
        return Vec::new();
    };
    let mut smaller = vec![
        least,
        least + (number - least) / 2,
        number - (number - least) / 4,
        number - 1,
    ];
    smaller.retain(|candidate| *candidate < number);
    smaller.dedup();
    smaller
}

/// The same effect with smaller numbers.
fn effects(effect: &Effect) -> Vec<Effect> {
    let json = serde_json::to_value(effect).unwrap_or_default();
    let numbers = ["ms", "bytes", "frames", "times", "by"];
    let Some(name) = numbers.into_iter().find(|name| json[name].is_number()) else {
        return Vec::new();
    };
    let least = if json["fault"] == "truncate" { 0 } else { 1 };
    let changed = smaller(json[name].as_u64(), least).into_iter().map(|number| {
        let mut json = json.clone();
        json[name] = number.into();
        serde_json::from_value(json)
    });
    changed.flatten().collect()
}
