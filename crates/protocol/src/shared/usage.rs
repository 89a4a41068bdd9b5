//! Tokens and money: the API's own accounting and the CLI's sums per model.

use serde::{Deserialize, Deserializer, Serialize};

use crate::RawJson;
use crate::drift::{self, DriftKind};
use crate::open_enum;

/// Tokens of one API request, or of a turn. The API's own structure.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Usage {
    /// Input tokens that came from no cache.
    #[serde(default, deserialize_with = "count")]
    pub input_tokens: u64,
    /// Output tokens, thinking included. Provisional in `assistant` lines.
    #[serde(default, deserialize_with = "count")]
    pub output_tokens: u64,
    /// Input tokens written to the cache.
    #[serde(
        default,
        deserialize_with = "some_count",
        skip_serializing_if = "crate::whole::unset"
    )]
    pub cache_creation_input_tokens: Option<u64>,
    /// Input tokens read from the cache.
    #[serde(
        default,
        deserialize_with = "some_count",
        skip_serializing_if = "crate::whole::unset"
    )]
    pub cache_read_input_tokens: Option<u64>,
    /// The tokens written to the cache by their lifetime.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_creation: Option<CacheCreation>,
    /// How often tools ran on the API's side.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub server_tool_use: Option<ServerToolUsage>,
    /// `standard`, `priority` or `batch`.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub service_tier: Option<String>,
    /// Where the request was computed; may be empty.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub inference_geo: Option<String>,
    /// `standard` or `fast`.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub speed: Option<String>,
    /// The parts of a request that ran the model more than once.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub iterations: Option<Vec<UsageIteration>>,
    /// What the output consists of.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub output_tokens_details: Option<OutputTokensDetails>,
    /// What became of a credit for a refused request.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub fallback_credit: Option<FallbackCredit>,
}

/// Tokens written to the cache, by lifetime.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CacheCreation {
    /// Kept for an hour.
    #[serde(default, deserialize_with = "count")]
    pub ephemeral_1h_input_tokens: u64,
    /// Kept for five minutes.
    #[serde(default, deserialize_with = "count")]
    pub ephemeral_5m_input_tokens: u64,
}

/// How often tools ran on the API's side.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ServerToolUsage {
    /// Web searches.
    #[serde(default, deserialize_with = "count")]
    pub web_search_requests: u64,
    /// Web fetches.
    #[serde(default, deserialize_with = "count")]
    pub web_fetch_requests: u64,
}

/// What the output tokens consist of.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct OutputTokensDetails {
    /// Those spent on thinking.
    #[serde(
        default,
        deserialize_with = "some_count",
        skip_serializing_if = "crate::whole::unset"
    )]
    pub thinking_tokens: Option<u64>,
}

/// One run of a model within a request.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageIteration {
    /// `message`, `compaction`, `advisor_message` or `fallback_message`.
    #[serde(rename = "type", default, skip_serializing_if = "crate::whole::unset")]
    pub kind: Option<String>,
    /// The model, if not the request's own.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub model: Option<String>,
    /// Input tokens that came from no cache.
    #[serde(default, deserialize_with = "count")]
    pub input_tokens: u64,
    /// Output tokens.
    #[serde(default, deserialize_with = "count")]
    pub output_tokens: u64,
    /// Input tokens written to the cache.
    #[serde(
        default,
        deserialize_with = "some_count",
        skip_serializing_if = "crate::whole::unset"
    )]
    pub cache_creation_input_tokens: Option<u64>,
    /// Input tokens read from the cache.
    #[serde(
        default,
        deserialize_with = "some_count",
        skip_serializing_if = "crate::whole::unset"
    )]
    pub cache_read_input_tokens: Option<u64>,
    /// The tokens written to the cache by their lifetime.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_creation: Option<CacheCreation>,
}

/// What became of the credit token that a request presented.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FallbackCredit {
    /// The outcome.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub status: Option<FallbackCreditStatus>,
}

/// The outcome of presenting a credit token.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FallbackCreditStatus {
    /// `redeemed` or `not_applied`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Why the credit was not applied.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub reason: Option<String>,
    /// Request fields that stand in the way.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub remove_to_redeem: Option<Vec<String>>,
}

/// What one model used; in `modelUsage` since the session began, restored on resume. An estimate, no bill.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelUsage {
    /// Input tokens that came from no cache.
    #[serde(default, deserialize_with = "count")]
    pub input_tokens: u64,
    /// Output tokens.
    #[serde(default, deserialize_with = "count")]
    pub output_tokens: u64,
    /// Those of the output tokens that were spent on thinking.
    #[serde(
        default,
        deserialize_with = "some_count",
        skip_serializing_if = "crate::whole::unset"
    )]
    pub thinking_tokens: Option<u64>,
    /// Input tokens read from the cache.
    #[serde(default, deserialize_with = "count")]
    pub cache_read_input_tokens: u64,
    /// Input tokens written to the cache.
    #[serde(default, deserialize_with = "count")]
    pub cache_creation_input_tokens: u64,
    /// Those written for five minutes.
    #[serde(
        rename = "cacheCreationEphemeral5mInputTokens",
        default,
        deserialize_with = "some_count",
        skip_serializing_if = "crate::whole::unset"
    )]
    pub cache_creation_ephemeral_5m_input_tokens: Option<u64>,
    /// Those written for an hour.
    #[serde(
        rename = "cacheCreationEphemeral1hInputTokens",
        default,
        deserialize_with = "some_count",
        skip_serializing_if = "crate::whole::unset"
    )]
    pub cache_creation_ephemeral_1h_input_tokens: Option<u64>,
    /// Web searches.
    #[serde(default, deserialize_with = "count")]
    pub web_search_requests: u64,
    /// Money in US dollars.
    #[serde(rename = "costUSD", deserialize_with = "amount")]
    pub cost_usd: f64,
    /// How many tokens fit into the model's context.
    #[serde(default, deserialize_with = "count")]
    pub context_window: u64,
    /// How many tokens one answer may have.
    #[serde(default, deserialize_with = "count")]
    pub max_output_tokens: u64,
    /// The model's own name, without alias or date.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub canonical_model: Option<String>,
    /// Who served the model, such as `firstParty` or `bedrock`.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub provider: Option<String>,
    /// What the cost is computed from.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cost_basis: Option<CostBasis>,
}

open_enum! {
    /// What a cost is computed from.
    pub enum CostBasis {
        /// List prices.
        List = "list",
        /// Prices set by the organisation.
        Managed = "managed",
        /// The model's price is not known.
        Unknown = "unknown",
    }
}

/// Reads a count. A gateway in place of the API may count in fractions, and the CLI adds such counts up. One of them must not hide all
/// others: it is rounded, what is no number is 0, and both are noted.
#[doc(hidden)]
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    RawJson::deserialize(deserializer).map(|raw| whole(&raw))
}

/// The same, or nothing.
#[doc(hidden)]
pub fn some_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let raw = Option::<RawJson>::deserialize(deserializer)?;
    Ok(raw.filter(|raw| !raw.is_null()).map(|raw| whole(&raw)))
}

/// Reads an amount of money. The CLI writes null for a sum with a count that it did not get.
#[doc(hidden)]
pub fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    RawJson::deserialize(deserializer).map(|raw| noted(&raw).unwrap_or_default())
}

fn whole(raw: &RawJson) -> u64 {
    // As a cast rounds: below 0 it is 0.
    noted(raw).unwrap_or_else(|| raw.decode().map_or(0, |count: f64| count.round() as u64))
}

fn noted<T: serde::de::DeserializeOwned>(raw: &RawJson) -> Option<T> {
    let misfit = |error: serde_json::Error| {
        drift::note("Count", raw.get(), DriftKind::Misfit(error.to_string()));
    };
    raw.decode().map_err(misfit).ok()
}
