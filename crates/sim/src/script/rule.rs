//! Which prompt is answered how.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::place::Placed;
use super::short::{self, short_form};
use super::step::Step;
use super::text::TextMatch;

/// The prompts that a rule matches, and the reply.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Rule {
    /// The pattern of the prompt; any prompt unless given. Named groups of a `regex` are variables in the steps.
    #[serde(deserialize_with = "short::given")]
    pub prompt: Option<TextMatch>,
    /// The requested model; any unless given.
    #[serde(deserialize_with = "short::given")]
    pub model: Option<TextMatch>,
    /// Whose prompt it is for; the main agent's unless given.
    pub from: Asker,
    /// A tool that the model may call.
    #[serde(deserialize_with = "short::given")]
    pub has_tool: Option<String>,
    /// The result of one of the tools that were called last. Such a rule is for a request in the middle of a turn: its steps
    /// take the place of those that are left. It has no place in the order of rules.
    #[serde(deserialize_with = "short::given")]
    pub tool_result: Option<TextMatch>,
    /// How many prompts it is for: a number, or `any`. One unless given.
    pub times: Times,
    /// Whether the rule is for a prompt at any time. Unless it is, rules are used in their order.
    pub anytime: bool,
    /// The reply.
    pub steps: Vec<Placed<Step>>,
}

/// Who calls the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Asker {
    /// The main agent.
    #[default]
    Main,
    /// A subagent, unless a `subagent` step has its steps.
    Subagent,
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
        Ok(<Number as Deserialize>::deserialize(deserializer)?.times)
    }
}

/// As it is written.
#[derive(Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
struct Number {
    #[serde(skip)]
    times: Times,
}

impl Number {
    fn of(times: i128) -> Result<Self, String> {
        match u32::try_from(times) {
            Ok(times @ 1..) => Ok(Self {
                times: Times::Exactly(times),
            }),
            _ => Err(format!(
                "`{times}` is no number of prompts: write 1 or more, or `any`"
            )),
        }
    }
}

short_form!(Number, "a number of prompts, from 1, or `any`",
YamlValue::Whole(times) => Number::of(times),
YamlValue::Text(text) => match text.as_str() {
    "any" => Ok(Number { times: Times::Any }),
    _ => Err(format!("`{text}` is no number of prompts: write 1 or more, or `any`")),
});

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
