//! Which prompt is answered how.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::place::Placed;
use super::step::Step;
use super::text::TextMatch;

/// Which prompts a rule is for, and what they are answered.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rule {
    /// What the prompt must be like; any prompt unless given.
    #[serde(default)]
    pub prompt: Option<TextMatch>,
    /// How many prompts it is for: a number, or `any`. One unless given.
    #[serde(default)]
    pub times: Times,
    /// Whether it is for a prompt at any time. Unless it is, rules are used in their order.
    #[serde(default)]
    pub anytime: bool,
    /// The reply.
    #[serde(default)]
    pub steps: Vec<Placed<Step>>,
}

/// How many prompts a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Times {
    /// So many.
    Exactly(u32),
    /// Any number, none too.
    Any,
}

impl Default for Times {
    fn default() -> Self {
        Self::Exactly(1)
    }
}

impl Times {
    /// How many there may be.
    pub(super) fn most(self) -> u32 {
        match self {
            Self::Exactly(times) => times,
            Self::Any => u32::MAX,
        }
    }

    /// How many there must be.
    pub(super) fn least(self) -> u32 {
        match self {
            Self::Exactly(times) => times,
            Self::Any => 0,
        }
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl serde::de::Visitor<'_> for Number {
            type Value = Times;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number of prompts, from 1, or `any`")
            }
            fn visit_u64<E: serde::de::Error>(self, times: u64) -> Result<Times, E> {
                let number = u32::try_from(times).ok().filter(|times| *times > 0);
                number
                    .map(Times::Exactly)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Unsigned(times), &self))
            }
            fn visit_i64<E: serde::de::Error>(self, times: i64) -> Result<Times, E> {
                match u64::try_from(times) {
                    Ok(times) => self.visit_u64(times),
                    Err(_) => Err(E::invalid_value(serde::de::Unexpected::Signed(times), &self)),
                }
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Times, E> {
                match text {
                    "any" => Ok(Times::Any),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Number)
    }
}

impl JsonSchema for Times {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Times".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "any"}]})
    }
}
