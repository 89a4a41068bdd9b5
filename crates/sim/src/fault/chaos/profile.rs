//! Which faults are tried: from a seed to a schedule.

use serde_json::Map;

use crate::fault::{At, Direction, Effect, Fault, Phase, Schedule, Stage};
use crate::inject::random::Random;

/// What every correct client goes through unharmed, in either direction.
const HARMLESS: &[&str] = &["delay", "split", "chop", "merge", "slow"];

/// The same, from the CLI only.
const HARMLESS_OUTPUT: &[&str] = &["insert", "add_fields", "noise", "stderr"];

/// What loses or spoils something, in either direction.
const HARMFUL: &[&str] = &["drop", "corrupt", "truncate", "glue", "stall", "end"];

/// The same, from the CLI only.
const HARMFUL_OUTPUT: &[&str] = &[
    "duplicate",
    "reorder",
    "set_value",
    "exit",
    "signal",
    "ignore_term",
];

/// Kinds of frames at which faults are tried.
const KINDS: &[&str] = &[
    "control_response",
    "control_request",
    "system/init",
    "system",
    "command_lifecycle",
    "command_lifecycle/started",
    "command_lifecycle/completed",
    "stream_event",
    "assistant",
    "user",
    "result",
];

/// Values that may become others.
const POINTERS: &[&str] = &[
    "/type",
    "/subtype",
    "/state",
    "/uuid",
    "/session_id",
    "/message/role",
    "/message/stop_reason",
    "/message/content",
    "/request_id",
    "/response/request_id",
    "/response/subtype",
    "/request/subtype",
    "/user_message_uuid",
    "/user_message_uuids",
    "/is_error",
];

/// The faults that [chaos](super::Chaos) tries, and how many at once.
#[derive(Debug, Clone)]
#[must_use]
pub struct Profile {
    effects: Vec<(&'static str, Direction)>,
    most: u64,
}

impl Profile {
    /// What loses nothing: cuts, joins, delays, slowness, noise, frames and fields that nobody has heard of, floods on stderr.
    /// Under these a client must come to the same end as without.
    pub fn harmless() -> Self {
        Self::of(HARMLESS, HARMLESS_OUTPUT)
    }

    /// What loses, spoils, doubles or ends something. Under these a client must come to some end.
    pub fn harmful() -> Self {
        Self::of(HARMFUL, HARMFUL_OUTPUT)
    }

    /// Both at once.
    pub fn everything() -> Self {
        let mut all = Self::harmless();
        all.effects.extend(Self::harmful().effects);
        all
    }

    fn of(both: &[&'static str], output: &[&'static str]) -> Self {
        let outward = both.iter().chain(output).map(|name| (*name, Direction::Output));
        let inward = both.iter().map(|name| (*name, Direction::Input));
        Self {
            effects: outward.chain(inward).collect(),
            most: 4,
        }
    }

    /// At most this many faults in a schedule; 4 unless set. There is always one.
    pub fn at_most(mut self, faults: u64) -> Self {
        self.most = faults.max(1);
        self
    }

    /// Without the effects of this word, see [`Effect::name`].
    pub fn without(mut self, name: &str) -> Self {
        self.effects.retain(|(effect, _)| *effect != name);
        self
    }

    /// Only frames of the CLI are struck.
    pub fn output_only(mut self) -> Self {
        self.effects
            .retain(|(_, direction)| *direction == Direction::Output);
        self
    }

    /// Only what can be done there.
    pub fn on(mut self, stage: Stage) -> Self {
        self.effects.retain(|(name, _)| {
            effect(name, &mut Random::new(0))
                .is_some_and(|effect| Fault::new(effect, At::anywhere()).check(stage).is_ok())
        });
        self
    }

    /// The schedule of a seed. The same seed gives the same schedule, as long as the profile is the same.
    pub fn schedule(&self, seed: u64) -> Schedule {
        let mut random = Random::new(seed);
        let mut schedule = Schedule::new(seed);
        for _ in 0..=random.below(self.most) {
            let Some((name, direction)) = random.pick(&self.effects).copied() else {
                break;
            };
            if let Some(effect) = effect(name, &mut random) {
                schedule
                    .faults
                    .push(Fault::new(effect, place(direction, &mut random)));
            }
        }
        schedule
    }
}

fn place(direction: Direction, random: &mut Random) -> At {
    let mut at = match (direction, random.below(6)) {
        (Direction::Output, 0) => At::phase(match random.below(4) {
            0 => Phase::Initialize,
            1 => Phase::TurnStart,
            2 => Phase::MidStream,
            _ => Phase::Result,
        }),
        (Direction::Output, 1 | 2) => {
            At::kind(random.pick(KINDS).copied().unwrap_or("result")).nth(1 + random.below(4))
        }
        // Short conversations and long ones alike.
        (_, 3) => {
            let most = 1 << random.below(16);
            At::anywhere().after_bytes(random.below(most))
        }
        (_, 4) => At::anywhere().probability((1 + random.below(30)) as f64 / 100.0),
        _ => {
            let most = 1 << random.below(6);
            At::anywhere().nth(1 + random.below(most))
        }
    };
    at.direction = direction;
    at.behind = random.below(4) == 0;
    at
}

/// An effect with parameters of this mood.
fn effect(name: &str, random: &mut Random) -> Option<Effect> {
    Some(match name {
        "drop" => Effect::Drop {},
        "delay" => Effect::Delay {
            ms: 1 + random.below(2000),
        },
        "split" => Effect::Split {
            bytes: 1 + random.below(200),
        },
        "chop" => Effect::Chop {
            bytes: 1 + random.below(16),
        },
        "merge" => Effect::Merge {
            frames: 1 + random.below(8),
        },
        "glue" => Effect::Glue {},
        "corrupt" => Effect::Corrupt {
            bytes: 1 + random.below(4),
        },
        "truncate" => Effect::Truncate {
            bytes: random.below(300),
        },
        "duplicate" => Effect::Duplicate {
            times: 1 + random.below(3),
        },
        "reorder" => Effect::Reorder {
            by: 1 + random.below(5),
        },
        "stall" => Effect::Stall {
            ms: match random.below(2) {
                0 => None,
                _ => Some(1 + random.below(100_000)),
            },
        },
        "slow" => Effect::Slow {
            bytes_per_second: 2000 + random.below(100_000),
        },
        "end" => Effect::End {},
        "exit" => Effect::Exit {
            code: random.below(4) as i32,
        },
        "signal" => Effect::Signal {
            signal: if random.below(2) == 0 { 9 } else { 15 },
        },
        "ignore_term" => Effect::IgnoreTerm {},
        "insert" => Effect::Insert { frame: None },
        "add_fields" => Effect::AddFields { fields: Map::new() },
        "set_value" => Effect::SetValue {
            pointer: random.pick(POINTERS)?.to_string(),
            value: match random.below(3) {
                0 => None,
                1 => Some(serde_json::Value::Null),
                _ => Some(random.below(10).into()),
            },
        },
        "noise" => Effect::Noise {
            text: "[SandboxDebug] not a frame".to_owned(),
        },
        "stderr" => Effect::Stderr {
            bytes: 1 + random.below(300_000),
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_schedule_and_all_effects_come_up() {
        let profile = Profile::everything();
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..500 {
            let schedule = profile.schedule(seed);
            assert_eq!(schedule, profile.schedule(seed));
            assert!((1..=4).contains(&schedule.faults.len()));
            schedule.check(Stage::Transport).unwrap();
            seen.extend(schedule.faults.iter().map(|fault| fault.effect.name()));
        }
        let lists = [HARMLESS, HARMLESS_OUTPUT, HARMFUL, HARMFUL_OUTPUT];
        assert_eq!(
            seen.len(),
            lists.iter().map(|list| list.len()).sum::<usize>(),
            "{seen:?}"
        );
        let streams = Profile::everything().on(Stage::Streams);
        assert!((0..500).all(|seed| streams.schedule(seed).check(Stage::Streams).is_ok()));
    }
}
