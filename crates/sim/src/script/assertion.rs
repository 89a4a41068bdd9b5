//! What a script demands of the client while it plays.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::text::TextMatch;

/// What must be true where it stands. Everything that is given must hold.
///
/// Patterns name what an object must hold at least; lists must have the same length.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Assert {
    /// How the client answered the last question about a tool.
    pub permission: Option<Permitted>,
    /// A pattern for the input that this answer put in place of the tool's.
    pub updated_input: Option<Value>,
    /// What this answer says, if it is a denial.
    pub message: Option<TextMatch>,
    /// A pattern for what the client's hook last answered.
    pub hook: Option<Value>,
    /// A pattern for the last JSON-RPC answer of an MCP server inside the client.
    pub mcp: Option<Value>,
    /// A pattern for the payload of the client's last answer, whatever was asked.
    pub answer: Option<Value>,
    /// What the model last got to read of a tool.
    pub result: Option<TextMatch>,
    /// Whether that was a failure.
    pub is_error: Option<bool>,
    /// How many control requests of each subtype the client has sent so far.
    pub requests: BTreeMap<String, usize>,
    /// How many prompts it has sent so far.
    pub prompts: Option<usize>,
    /// A pattern that some line of the client must fit.
    pub received: Option<Value>,
}

/// How a question about a tool was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Permitted {
    /// It may run.
    Allowed,
    /// It may not run.
    Denied,
    /// The client did not decide: it sent an error, or something that is no answer.
    Failed,
}
