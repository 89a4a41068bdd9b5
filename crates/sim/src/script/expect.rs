//! What must have happened in the end.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::place::Placed;
use super::short::{self, or_text, short_form, unquoted};
use super::text::TextMatch;

/// What must have happened in the end: when the process ends, or when the scripted API is asked for its verdict.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Expect {
    /// Whether every rule must have been used as often as its `times`, and every assertion in it judged; true unless set.
    pub every_rule_used: bool,
    /// Whether every prompt must have had a rule; true unless set.
    pub no_unmatched: bool,
    /// Whether the client must have answered every request that was not withdrawn; true unless set.
    pub no_unanswered_request: bool,
    /// Tools that must have been called.
    pub tools: Vec<Placed<ToolCalled>>,
    /// How many control requests of each subtype the client must have sent.
    pub requests: BTreeMap<String, usize>,
    /// How many prompts it must have sent.
    #[serde(deserialize_with = "short::given")]
    pub prompts: Option<usize>,
    /// Tool results that the model must have read.
    pub tool_results: Vec<TextMatch>,
    /// How many requests for a message there must have been, faults and retries included.
    #[serde(deserialize_with = "short::given")]
    pub api_requests: Option<u64>,
    /// How many sessions must have sent requests.
    #[serde(deserialize_with = "short::given")]
    pub sessions: Option<usize>,
    /// How many subagents must have sent requests.
    #[serde(deserialize_with = "short::given")]
    pub subagents: Option<usize>,
}

impl Default for Expect {
    fn default() -> Self {
        Self {
            every_rule_used: true,
            no_unmatched: true,
            no_unanswered_request: true,
            tools: Vec::new(),
            requests: BTreeMap::new(),
            prompts: None,
            tool_results: Vec::new(),
            api_requests: None,
            sessions: None,
            subagents: None,
        }
    }
}

/// A tool that must have been called. In YAML it may be its name alone.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
#[schemars(transform = or_text)]
#[non_exhaustive]
pub struct ToolCalled {
    /// The tool's name.
    pub tool: String,
    /// A pattern for the input of the call.
    #[serde(default, deserialize_with = "short::given")]
    pub input: Option<Value>,
    /// How many such calls there were; at least one unless given.
    #[serde(default, deserialize_with = "short::given")]
    pub times: Option<usize>,
    /// Whether the call's result was a failure; either unless given.
    #[serde(default, deserialize_with = "short::given")]
    pub is_error: Option<bool>,
}

short_form!(ToolCalled, "a tool's name, or a mapping with `tool`, `input`, `times` and `is_error`",
    YamlValue::Text(tool) => Ok(ToolCalled { tool, ..ToolCalled::default() }),
    plain @ (YamlValue::Bool(_) | YamlValue::Whole(_) | YamlValue::Fraction(_)) => Err(unquoted(&plain)));
