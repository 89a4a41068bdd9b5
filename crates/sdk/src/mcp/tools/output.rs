//! The results of tools.

use std::borrow::Cow;
use std::fmt;

use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Serialize;

use super::schema;

/// The output types of tools.
///
/// | type | the result |
/// |---|---|
/// | `String`, `&'static str`, `Cow<'static, str>` | text |
/// | `()` | no content |
/// | [`Json<T>`] | structured content, and the same as text |
/// | [`ContentBlock`], `Vec<ContentBlock>` | text, images, audio, resource links, embedded resources |
/// | [`CallToolResult`] | all of MCP's tool result, as it is |
/// | `Result<T, E>` | `T`, or a result with `isError` that has the error's message |
///
/// The model sees the message of an error and can act on it: return an error when a call fails.
pub trait IntoToolResult {
    /// Converts the value into a tool result.
    fn into_tool_result(self) -> CallToolResult;

    /// The JSON schema of structured content, if there is any.
    fn output_schema() -> Option<schemars::Schema> {
        None
    }
}

/// Structured content: a value of any type, whose JSON schema is part of the tool's definition. It must serialize to an object.
///
/// The CLI shows the model the structured content instead of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Json<T>(pub T);

impl<T: Serialize + JsonSchema> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> CallToolResult {
        match serde_json::to_value(self.0) {
            Ok(value) if value.is_object() => CallToolResult::structured(value),
            Ok(_) => failed("the tool's structured result is no JSON object, which MCP wants it to be"),
            Err(error) => failed(format!("the tool's result could not be written as JSON: {error}")),
        }
    }

    fn output_schema() -> Option<schemars::Schema> {
        Some(schema::written::<T>())
    }
}

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> CallToolResult {
        self
    }
}

impl IntoToolResult for Vec<ContentBlock> {
    fn into_tool_result(self) -> CallToolResult {
        CallToolResult::success(self)
    }
}

impl IntoToolResult for ContentBlock {
    fn into_tool_result(self) -> CallToolResult {
        CallToolResult::success(vec![self])
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> CallToolResult {
        CallToolResult::success(Vec::new())
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> CallToolResult {
        CallToolResult::success(vec![ContentBlock::text(self)])
    }
}

impl IntoToolResult for &'static str {
    fn into_tool_result(self) -> CallToolResult {
        self.to_owned().into_tool_result()
    }
}

impl IntoToolResult for Cow<'static, str> {
    fn into_tool_result(self) -> CallToolResult {
        self.into_owned().into_tool_result()
    }
}

impl<T: IntoToolResult, E: fmt::Display> IntoToolResult for Result<T, E> {
    fn into_tool_result(self) -> CallToolResult {
        match self {
            Ok(value) => value.into_tool_result(),
            // Errors that have a chain show it this way.
            Err(error) => failed(format!("{error:#}")),
        }
    }

    fn output_schema() -> Option<schemars::Schema> {
        T::output_schema()
    }
}

/// A result with an error for the model.
pub(super) fn failed(message: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message)])
}
