//! Structured output.

use super::object::JsonObject;

/// The form that the final answer must have.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputFormat {
    /// JSON that fits a schema; arrives as `structured_output` in the result.
    ///
    /// Given on the command line a bad schema is refused; given in `initialize` alone it silently turns structured output
    /// off.
    JsonSchema {
        /// The JSON Schema.
        schema: JsonObject,
    },
}
