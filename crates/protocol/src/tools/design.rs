//! `ClaudeDesign`: operations of a design service.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/design.toml: change that instead.

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// Input of `ClaudeDesign`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ClaudeDesignInput {
    /// The operation; `list` tells which there are.
    pub operation: String,
    /// The call's arguments, an object.
    pub arguments: RawJson,
}

impl ClaudeDesignInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(operation: impl Into<String>, arguments: RawJson) -> Self {
        Self {
            operation: operation.into(),
            arguments,
        }
    }
}

/// Output of `ClaudeDesign`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ClaudeDesignOutput {
    /// The operation.
    pub operation: String,
    /// Content blocks.
    pub content: Vec<RawJson>,
    /// Whether the tool failed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub is_error: Option<bool>,
}
