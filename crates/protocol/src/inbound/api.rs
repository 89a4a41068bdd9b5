//! The API's own message, as `assistant` lines and `message_start` events carry it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::RawJson;
use crate::drift::{self, DriftKind};
use crate::open_enum;
use crate::shared::{ContentBlock, RefusalCategory, Usage};

/// A message of the Messages API.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ApiMessage {
    /// The API's id. While streaming, each finished block comes in an `assistant` line of its own, all with the same
    /// id.
    pub id: Option<String>,
    /// Always `message`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Always `assistant`; empty where a gateway in place of the API leaves it out.
    #[serde(default, deserialize_with = "fitting")]
    pub role: String,
    /// The model that wrote the message; `<synthetic>` when the CLI wrote the message itself. Empty where a gateway leaves it out.
    #[serde(default, deserialize_with = "fitting")]
    pub model: String,
    /// The blocks.
    #[serde(default, deserialize_with = "or_none")]
    pub content: Vec<ContentBlock>,
    /// Why the model stopped; null until the message is complete.
    pub stop_reason: Option<StopReason>,
    /// The stop sequence that was met.
    pub stop_sequence: Option<String>,
    /// More on a refusal.
    #[serde(default, deserialize_with = "fitting")]
    pub stop_details: Option<StopDetails>,
    /// Tokens; provisional until the message is complete.
    #[serde(default, deserialize_with = "fitting")]
    pub usage: Option<Usage>,
    /// The container in which the API runs code.
    #[serde(default, deserialize_with = "fitting")]
    pub container: Option<Container>,
    /// What the API removed from the context.
    #[serde(default, deserialize_with = "fitting")]
    pub context_management: Option<ContextManagement>,
    /// Why the cache was missed.
    #[serde(default, deserialize_with = "fitting")]
    pub diagnostics: Option<Diagnostics>,
    /// What the API changed in the request.
    #[serde(default, deserialize_with = "fitting")]
    pub input_transformations: Option<Vec<InputTransformation>>,
}

/// Reads what stands beside the content of a message. The CLI passes on what the API or a gateway in its place writes there. What does
/// not fit is left out and noted, since an odd count must not hide what the model said. The frame has it all.
pub(super) fn fitting<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + DeserializeOwned,
    D: Deserializer<'de>,
{
    let raw = RawJson::deserialize(deserializer)?;
    Ok(raw.read().unwrap_or_else(|error| {
        let name = std::any::type_name::<T>();
        let name = name.rsplit("::").next().unwrap_or(name).trim_end_matches('>');
        drift::note("ApiMessage", name, DriftKind::Misfit(error.to_string()));
        T::default()
    }))
}

/// Reads a list, or null in place of one.
fn or_none<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

open_enum! {
    /// Why the model stopped.
    pub enum StopReason {
        /// The model finished its answer.
        EndTurn = "end_turn",
        /// The limit of output tokens.
        MaxTokens = "max_tokens",
        /// A stop sequence.
        StopSequence = "stop_sequence",
        /// The model calls tools.
        ToolUse = "tool_use",
        /// The API paused a long turn.
        PauseTurn = "pause_turn",
        /// The API compacted the context.
        Compaction = "compaction",
        /// The API refused the answer.
        Refusal = "refusal",
        /// The context is full.
        ModelContextWindowExceeded = "model_context_window_exceeded",
    }
}

/// More on a refusal.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct StopDetails {
    /// `refusal`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The policy area.
    pub category: Option<RefusalCategory>,
    /// The explanation, for people.
    pub explanation: Option<String>,
    /// A token that makes a retry on another model cheaper.
    pub fallback_credit_token: Option<String>,
    /// Whether the retry may continue the refused answer.
    pub fallback_has_prefill_claim: Option<bool>,
    /// The model to try instead.
    pub recommended_model: Option<String>,
}

/// A container in which the API runs code.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Container {
    /// The container's id.
    pub id: String,
    /// When the container is deleted, as ISO 8601.
    pub expires_at: String,
    /// The skills in the container.
    pub skills: Option<Vec<ContainerSkill>>,
}

/// A skill loaded into a container.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContainerSkill {
    /// `anthropic` or `custom`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The skill's id.
    pub skill_id: String,
    /// The skill's version.
    pub version: Option<String>,
}

/// What the API removed from the context.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContextManagement {
    /// The edits.
    #[serde(default)]
    pub applied_edits: Vec<AppliedEdit>,
}

/// One edit of the context.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AppliedEdit {
    /// `clear_tool_uses_20250919`, `clear_thinking_20251015` or one that came later.
    #[serde(rename = "type")]
    pub kind: String,
    /// Input tokens removed.
    pub cleared_input_tokens: Option<u64>,
    /// Tool calls removed.
    pub cleared_tool_uses: Option<u64>,
    /// Turns whose thinking was removed.
    pub cleared_thinking_turns: Option<u64>,
}

/// Remarks of the API on a request.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Why the cache was missed.
    pub cache_miss_reason: Option<CacheMissReason>,
}

/// Why the cache was missed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CacheMissReason {
    /// `model_changed`, `system_changed`, `tools_changed`, `messages_changed`, `previous_message_not_found` or
    /// `unavailable`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Input tokens that could have come from the cache.
    pub cache_missed_input_tokens: Option<u64>,
}

/// Something that the API changed in the request.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct InputTransformation {
    /// `thinking_dropped` or `thinking_mismatch_allowed`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where in the request.
    pub path: String,
    /// The reason for the change.
    pub reason: String,
}
