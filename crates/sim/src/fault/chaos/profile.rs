//! Which faults are tried: from a seed to a schedule.

use serde_json::{Value, json};

use crate::fault::{At, Effect, Fault, FrameDirection, Phase, Schedule, Stage};
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
    effects: Vec<(&'static str, FrameDirection)>,
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
        let outward = both
            .iter()
            .chain(output)
            .map(|name| (*name, FrameDirection::Output));
        let inward = both.iter().map(|name| (*name, FrameDirection::Input));
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
            .retain(|(_, direction)| *direction == FrameDirection::Output);
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

fn place(direction: FrameDirection, random: &mut Random) -> At {
    let mut at = match (direction, random.below(6)) {
        (FrameDirection::Output, 0) => At::phase(match random.below(4) {
            0 => Phase::Initialize,
            1 => Phase::TurnStart,
            2 => Phase::MidStream,
            _ => Phase::Result,
        }),
        (FrameDirection::Output, 1 | 2) => {
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
    let mut effect = json!({"fault": name});
    // Of most effects one number counts: how it is called, the least, and how many there are.
    let number = match name {
        "delay" => Some(("ms", 1, 2000)),
        "split" => Some(("bytes", 1, 200)),
        "chop" => Some(("bytes", 1, 16)),
        "merge" => Some(("frames", 1, 8)),
        "corrupt" => Some(("bytes", 1, 4)),
        "truncate" => Some(("bytes", 0, 300)),
        "duplicate" => Some(("times", 1, 3)),
        "reorder" => Some(("by", 1, 5)),
        "stall" => (random.below(2) == 1).then_some(("ms", 1, 100_000)),
        "slow" => Some(("bytes_per_second", 2000, 100_000)),
        "exit" => Some(("code", 0, 4)),
        "stderr" => Some(("bytes", 1, 300_000)),
        _ => None,
    };
    if let Some((field, least, many)) = number {
        effect[field] = (least + random.below(many)).into();
    }
    match name {
        "signal" => effect["signal"] = if random.below(2) == 0 { 9 } else { 15 }.into(),
        "set_value" => {
            effect["pointer"] = (*random.pick(POINTERS)?).into();
            match random.below(3) {
                0 => {}
                1 => effect["value"] = Value::Null,
                _ => effect["value"] = random.below(10).into(),
            }
        }
        _ => {}
    }
    serde_json::from_value(effect).ok()
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
