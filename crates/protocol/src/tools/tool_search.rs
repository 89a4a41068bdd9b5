//! `ToolSearch`: loads the definitions of tools that were left out of the prompt.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/tool_search.toml: change that instead.

use serde::{Deserialize, Serialize};

/// Input of `ToolSearch`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ToolSearchInput {
    /// Which tools: `select:` and their names, or words to search for.
    pub query: String,
    /// How many to load at most; 5 if absent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub max_results: Option<u64>,
}

impl ToolSearchInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            max_results: None,
        }
    }
}

/// Output of `ToolSearch`. Seen on the wire; the official schemas do not have it.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ToolSearchOutput {
    /// Names of the tools that were loaded.
    pub matches: Vec<String>,
    /// What was searched for.
    pub query: String,
    /// How many tools were left out of the prompt.
    pub total_deferred_tools: u64,
}
