//! Assertions on the client while a script plays.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::short;
use super::text::TextMatch;

/// What must be true where it stands. Everything that is given must hold.
///
/// Patterns name what an object must hold at least; lists must have the same length.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Assert {
    /// How the client answered the last question about a tool.
    #[serde(deserialize_with = "short::given")]
    pub permission: Option<Permitted>,
    /// A pattern for the input that this answer put in place of the tool's.
    #[serde(deserialize_with = "short::given")]
    pub updated_input: Option<Value>,
    /// The message of the reply, if it is a denial.
    #[serde(deserialize_with = "short::given")]
    pub message: Option<TextMatch>,
    /// A pattern for the last reply of the client's hook.
    #[serde(deserialize_with = "short::given")]
    pub hook: Option<Value>,
    /// A pattern for the last JSON-RPC answer of an MCP server inside the client.
    #[serde(deserialize_with = "short::given")]
    pub mcp: Option<Value>,
    /// A pattern for the payload of the client's last reply to any request.
    #[serde(deserialize_with = "short::given")]
    pub answer: Option<Value>,
    /// The last tool result that the model read.
    #[serde(deserialize_with = "short::given")]
    pub result: Option<TextMatch>,
    /// Whether that was a failure.
    #[serde(deserialize_with = "short::given")]
    pub is_error: Option<bool>,
    /// How many control requests of each subtype the client has sent so far.
    pub requests: BTreeMap<String, usize>,
    /// How many prompts it has sent so far.
    #[serde(deserialize_with = "short::given")]
    pub prompts: Option<usize>,
    /// A pattern that some line of the client must fit.
    #[serde(deserialize_with = "short::given")]
    pub received: Option<Value>,
}

/// How a question about a tool was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Permitted {
    /// The call is allowed.
    Allowed,
    /// The call is denied.
    Denied,
    /// The client did not decide: it sent an error, or something that the CLI does not understand, such as an `allow` whose
    /// `updatedInput` is no object, or a `deny` without a `message`.
    Failed,
}
