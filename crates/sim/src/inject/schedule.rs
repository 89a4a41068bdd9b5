//! Faults, and lists of them.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::at::{At, is_default};
use super::effect::Effect;
use super::words::explain;

/// One thing that goes wrong, and where.
///
/// In a file it is one object: the effect's word and parameters, and `at`, if it is not everywhere.
///
/// ```
/// use outrigger_sim::fault::{At, Effect, Fault};
///
/// let fault: Fault = serde_json::from_str(r#"{"fault": "split", "bytes": 3, "at": {"kind": "result", "nth": 1}}"#)?;
/// assert_eq!(fault, Fault::new(Effect::Split { bytes: 3 }, At::kind("result").nth(1)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Fault {
    /// The effect.
    #[serde(flatten)]
    pub effect: Effect,
    /// Where the fault strikes.
    #[serde(skip_serializing_if = "is_default")]
    pub at: At,
}

impl Fault {
    /// A fault with this effect at these places.
    pub fn new(effect: Effect, at: At) -> Self {
        Self { effect, at }
    }

    /// Whether the fault can be done there.
    ///
    /// # Errors
    /// When it needs more than there is, or a parameter makes no sense.
    pub fn check(&self, stage: Stage) -> Result<(), Unfit> {
        let unfit = |why| Err(Unfit(format!("the fault {self}: {why}")));
        if let Some(flaw) = self.effect.flaw().or_else(|| self.at.flaw()) {
            return unfit(flaw);
        }
        let (needed, why) = self.effect.needs();
        if stage < needed {
            return unfit(why);
        }
        Ok(())
    }
}

/// The fault as it is written in a file, on one line.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match serde_json::to_string(self) {
            Ok(json) => f.write_str(&json),
            Err(_) => f.write_str(&self.effect.name()),
        }
    }
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let mut fields = serde_json::Map::deserialize(deserializer)?;
        let of_at = fields.get("at").and_then(Value::as_object);
        let blank = fields.iter().chain(of_at.into_iter().flatten());
        // Null is a value that a frame may get.
        let mut blank = blank.filter(|(name, value)| value.is_null() && *name != "value");
        if let Some((name, _)) = blank.next() {
            let what = format!("`{name}` is left blank: here goes a value, not nothing");
            return Err(D::Error::custom(what));
        }
        let at = match fields.remove("at") {
            None => At::default(),
            Some(at) => serde_json::from_value(at)
                .map_err(|error| D::Error::custom(format!("`at`: {}", explain(&error, "word", &[]))))?,
        };
        let effect = serde_json::from_value(Value::Object(fields));
        let effect = effect.map_err(|error| D::Error::custom(explain(&error, "fault", &["at"])))?;
        let fault = Self { effect, at };
        if let Some(flaw) = fault.effect.flaw().or_else(|| fault.at.flaw()) {
            return Err(D::Error::custom(flaw));
        }
        Ok(fault)
    }
}

/// The effect with its parameters, and `at` beside them.
impl JsonSchema for Fault {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Fault".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let at = generator.subschema_for::<At>();
        let mut schema = Effect::json_schema(generator);
        let variants = schema.get_mut("oneOf").and_then(Value::as_array_mut);
        for variant in variants.into_iter().flatten() {
            variant["properties"]["at"] = at.clone().into();
        }
        schema
    }
}

/// Faults, and the seed of their random numbers. The same schedule does the same to the same bytes.
///
/// ```
/// use outrigger_sim::fault::{At, Effect, Schedule};
///
/// let schedule = Schedule::new(7)
///     .with(Effect::Chop { bytes: 1 }, At::anywhere())
///     .with(Effect::End {}, At::anywhere().after_bytes(65_536));
/// // What is printed can be read again.
/// assert_eq!(schedule.to_string().parse::<Schedule>()?, schedule);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Schedule {
    /// The seed.
    #[serde(default)]
    pub seed: u64,
    /// The faults. Where several strike the same frame, they do so in this order.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

impl Schedule {
    /// No faults yet.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            faults: Vec::new(),
        }
    }

    /// Whether all of them can be done there.
    ///
    /// # Errors
    /// The first that cannot, and why.
    pub fn check(&self, stage: Stage) -> Result<(), Unfit> {
        self.faults.iter().try_for_each(|fault| fault.check(stage))
    }
}

setters! { Schedule:
    /// One fault more.
    with(effect: Effect, at: At) => faults.push(Fault::new(effect, at));
}

impl From<Fault> for Schedule {
    fn from(fault: Fault) -> Self {
        Self {
            seed: 0,
            faults: vec![fault],
        }
    }
}

/// JSON, a fault a line, which YAML reads too.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{\"seed\": {}, \"faults\": [", self.seed)?;
        for (n, fault) in self.faults.iter().enumerate() {
            let comma = if n + 1 < self.faults.len() { "," } else { "\n" };
            write!(f, "{}  {fault}{comma}", if n == 0 { "\n" } else { "" })?;
            if comma == "," {
                writeln!(f)?;
            }
        }
        f.write_str("]}")
    }
}

impl std::str::FromStr for Schedule {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}

/// What there is to do faults to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Stage {
    /// Byte streams in both directions.
    Streams,
    /// Besides, a stderr and a life that can be ended: a transport of the SDK, a simulated CLI in memory.
    Transport,
    /// A process that does all this to itself.
    Process,
}

/// A fault that cannot be done there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(String);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{FrameDirection, Phase};
    use super::*;
    use crate::inject::Grandchild;

    fn every_effect() -> Vec<Effect> {
        vec![
            Effect::Drop {},
            Effect::Delay { ms: 5 },
            Effect::Split { bytes: 3 },
            Effect::Chop { bytes: 1 },
            Effect::Merge { frames: 2 },
            Effect::Glue {},
            Effect::Corrupt { bytes: 2 },
            Effect::Truncate { bytes: 10 },
            Effect::Duplicate { times: 1 },
            Effect::Reorder { by: 2 },
            Effect::Stall { ms: None },
            Effect::Stall { ms: Some(3) },
            Effect::Slow {
                bytes_per_second: 100,
            },
            Effect::End {},
            Effect::Exit { code: 1 },
            Effect::Signal { signal: 9 },
            Effect::IgnoreTerm {},
            Effect::Grandchild(Grandchild {
                survives: true,
                ..Grandchild::default()
            }),
            Effect::Insert { frame: None },
            Effect::Insert {
                frame: Some(json!({"type": "x"})),
            },
            Effect::AddFields {
                fields: serde_json::Map::new(),
            },
            Effect::SetValue {
                pointer: "/subtype".into(),
                value: Some(json!(null)),
            },
            Effect::Noise { text: "hm".into() },
            Effect::Stderr { bytes: 1000 },
        ]
    }

    #[test]
    fn every_fault_survives_being_written_and_read() {
        let places = [
            At::anywhere(),
            At::kind("result").nth(2).behind(),
            At::phase(Phase::MidStream).times(3),
            At::anywhere().input().after_bytes(9).probability(0.25),
        ];
        for effect in every_effect() {
            for at in &places {
                let fault = Fault::new(effect.clone(), at.clone());
                let text = fault.to_string();
                assert!(text.contains(&effect.name()), "{text}");
                let read: Fault = serde_json::from_str(&text).unwrap();
                assert_eq!(read, fault, "{text}");
            }
        }
        let schedule = Schedule {
            seed: u64::MAX,
            faults: every_effect()
                .into_iter()
                .map(|effect| Fault::new(effect, At::anywhere()))
                .collect(),
        };
        assert_eq!(schedule.to_string().parse::<Schedule>().unwrap(), schedule);
        assert_eq!(
            Schedule::new(3).to_string().parse::<Schedule>().unwrap(),
            Schedule::new(3)
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused_when_it_is_read() {
        for (text, why) in [
            (r#"{"fault": "drop", "ms": 3}"#, "unknown field `ms`"),
            (r#"{"fault": "delay"}"#, "the field `ms` is missing"),
            (
                r#"{"fault": "delay", "mss": 3}"#,
                "unknown field `mss`, did you mean `ms`?",
            ),
            (
                r#"{"fault": "explode"}"#,
                "unknown fault `explode`; known here: drop, delay",
            ),
            (
                r#"{"fault": "stal"}"#,
                "unknown fault `stal`, did you mean `stall`?",
            ),
            (r#"{"ms": 3}"#, "the field `fault` is missing"),
            (
                r#"{"fault": "grandchild", "survivs": true}"#,
                "unknown field `survivs`, did you mean `survives`?",
            ),
            (r#"{"fault": "delay", "ms": "long"}"#, "invalid type"),
            (r#"{"fault": "chop", "bytes": 0}"#, "at least 1"),
            (r#"{"fault": "drop", "at": {"nth": 0}}"#, "counts from 1"),
            (
                r#"{"fault": "drop", "at": {"kond": "x"}}"#,
                "`at`: unknown field `kond`, did you mean `kind`?",
            ),
            (
                r#"{"fault": "drop", "at": {"probability": 2}}"#,
                "between 0 and 1",
            ),
            (
                r#"{"fault": "drop", "at": {"phase": "result", "direction": "input"}}"#,
                "phase",
            ),
            (r#"{"fault": "noise", "text": "a\nb"}"#, "one line"),
            (r#"{"fault": "drop", "at": null}"#, "`at` is left blank"),
            (r#"{"fault": "stall", "ms": null}"#, "`ms` is left blank"),
            (r#"{"fault": "insert", "frame": null}"#, "`frame` is left blank"),
            (
                r#"{"fault": "drop", "at": {"kind": null}}"#,
                "`kind` is left blank",
            ),
            (r#"{"fault": "drop", "at": {"nth": null}}"#, "`nth` is left blank"),
        ] {
            let error = serde_json::from_str::<Fault>(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let at: At = serde_json::from_str(r#"{"direction": "input"}"#).unwrap();
        assert_eq!(at.direction, FrameDirection::Input);
    }

    #[test]
    fn the_schema_takes_what_can_be_read_and_nothing_else() {
        let schema = schemars::schema_for!(Schedule).to_value();
        let valid = jsonschema::validator_for(&schema).unwrap();
        for effect in every_effect() {
            for at in [At::anywhere(), At::kind("result").nth(2)] {
                let schedule = Schedule::new(1).with(effect.clone(), at);
                let json = serde_json::to_value(&schedule).unwrap();
                assert!(valid.is_valid(&json), "{json}");
            }
        }
        for fault in [
            json!({"fault": "drop", "ms": 3}),
            json!({"fault": "delay"}),
            json!({"fault": "explode"}),
            json!({"fault": "drop", "at": {"kond": "x"}}),
            json!({"fault": "grandchild", "survivs": true}),
        ] {
            assert!(!valid.is_valid(&json!({"faults": [fault]})), "{fault}");
        }
    }

    #[test]
    fn what_a_stage_cannot_do_it_refuses() {
        let fits = |stage| {
            let effects = every_effect().into_iter();
            effects
                .filter(|effect| Fault::new(effect.clone(), At::anywhere()).check(stage).is_err())
                .map(|effect| effect.name())
                .collect::<Vec<_>>()
        };
        assert_eq!(fits(Stage::Process), Vec::<&str>::new());
        assert_eq!(fits(Stage::Transport), ["grandchild"]);
        assert_eq!(
            fits(Stage::Streams),
            ["exit", "signal", "ignore_term", "grandchild", "stderr"]
        );
    }
}
