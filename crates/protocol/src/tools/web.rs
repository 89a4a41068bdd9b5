//! `WebFetch` and `WebSearch`.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/web.toml: change that instead.

use serde::{Deserialize, Serialize};

use super::read::ArtifactVersion;
use crate::RawJson;

/// Input of `WebFetch`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WebFetchInput {
    /// The page.
    pub url: String,
    /// What to find out from the page.
    pub prompt: String,
    /// Where in the page's text to begin, in characters.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub offset: Option<u64>,
}

impl WebFetchInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(url: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prompt: prompt.into(),
            offset: None,
        }
    }
}

/// Output of `WebFetch`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct WebFetchOutput {
    /// Size of the page, in bytes.
    pub bytes: u64,
    /// The HTTP status.
    pub code: u64,
    /// The HTTP status in words.
    pub code_text: String,
    /// The answer to the prompt.
    pub result: String,
    /// How long the request took, in milliseconds.
    pub duration_ms: f64,
    /// The page that was fetched.
    pub url: String,
    /// Which version of an artifact now counts as seen, when the page is one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub artifact_read: Option<ArtifactVersion>,
    /// Whether the model may cite the result.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub citable: Option<bool>,
    /// Whether the result has the text of the page.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub page_text: Option<bool>,
}

/// Input of `WebSearch`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WebSearchInput {
    /// What to search for.
    pub query: String,
    /// Only results from these.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub allowed_domains: Option<Vec<String>>,
    /// No results from these.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub blocked_domains: Option<Vec<String>>,
}

impl WebSearchInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            allowed_domains: None,
            blocked_domains: None,
        }
    }
}

/// Output of `WebSearch`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct WebSearchOutput {
    /// What was searched for.
    pub query: String,
    /// What was found, with the searching model's remarks in between.
    pub results: Vec<WebSearchResult>,
    /// How long the search took, in seconds.
    pub duration_seconds: f64,
    /// How many searches were made.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub search_count: Option<u64>,
}

/// The pages that one search found.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WebSearchHits {
    /// The id of that search.
    pub tool_use_id: String,
    /// The pages.
    pub content: Vec<WebSearchHit>,
}

/// A page that was found.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WebSearchHit {
    /// The page's title.
    pub title: String,
    /// The page's address.
    pub url: String,
    /// Some of the page's text. Hooks get the text; `tool_use_result` does not have it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub snippet: Option<String>,
}

/// One entry of the results of a search.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WebSearchResult {
    /// Pages that were found.
    Hits(WebSearchHits),
    /// A remark of the model that searched.
    Text(String),
    /// Anything else, as it came.
    Unknown(RawJson),
}

crate::shape::by_shape!(WebSearchResult {
    Object => Hits,
    String => Text,
});
