//! `stream_event`: the API's stream, event by event (`--include-partial-messages`).

use serde::{Deserialize, Serialize};

use super::api::{
    ApiMessage, Container, ContextManagement, InputTransformation, StopDetails, StopReason, fitting,
};
use super::assistant::ReportedThinkingDisplay;
use crate::RawJson;
use crate::shared::{
    CacheCreation, Citation, ContentBlock, FallbackCredit, OutputTokensDetails, ServerToolUsage,
    UsageIteration, some_count,
};
use crate::wire_enum;

/// `stream_event`: one event of the API's stream. The `assistant` line of a block comes before that block's
/// `content_block_stop`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct StreamEvent {
    /// The API's event.
    pub event: ApiStreamEvent,
    /// The tool call whose subagent this is from; null so far.
    pub parent_tool_use_id: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
    /// From the request to the first token, in milliseconds; on `message_start`.
    pub ttft_ms: Option<f64>,
    /// How thinking is shown.
    pub thinking_display: Option<ReportedThinkingDisplay>,
    /// The API message that the event is part of.
    pub api_message_id: Option<String>,
    /// Set on the `message_stop` that the CLI wrote because of an interrupt.
    pub abandoned_blocks: Option<AbandonedBlocks>,
    /// True if several pieces of text were joined into one event.
    pub text_runs_joined: Option<bool>,
    /// The last prompt that the turn answers.
    pub user_message_uuid: Option<String>,
    /// The prompts that the turn answers.
    pub user_message_uuids: Option<Vec<String>>,
    /// Why the turn was taken up again.
    pub resume_reason: Option<String>,
    /// Lines that are still to come.
    pub owed_rows: Option<Vec<String>>,
}

/// Blocks that were begun and will not be completed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AbandonedBlocks {
    /// The message of the blocks.
    pub api_message_id: String,
    /// The index of the first of these blocks.
    pub from_block_index: u64,
}

wire_enum! {
    /// An event of the API's stream.
    pub enum ApiStreamEvent by "type" {
        /// A message begins.
        "message_start" => MessageStart(Box<MessageStart>),
        /// A block begins.
        "content_block_start" => ContentBlockStart(Box<ContentBlockStart>),
        /// A block grows.
        "content_block_delta" => ContentBlockDelta(ContentBlockDelta),
        /// A block is complete.
        "content_block_stop" => ContentBlockStop(ContentBlockStop),
        /// The message's last facts.
        "message_delta" => MessageDelta(Box<MessageDelta>),
        /// The message is complete.
        "message_stop" => MessageStop(NoFields),
        /// A sign of life in a silent stream.
        "ping" => Ping(NoFields),
        /// The stream broke.
        "error" => Error(StreamError),
    }
}

/// An event that has no fields.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct NoFields {}

/// `message_start`: a message begins.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MessageStart {
    /// The message, without content.
    pub message: ApiMessage,
}

/// `content_block_start`: a block begins.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContentBlockStart {
    /// The block's place in the message.
    pub index: u64,
    /// The block, usually still empty.
    pub content_block: ContentBlock,
}

/// `content_block_delta`: a block grows.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContentBlockDelta {
    /// The block's place in the message.
    pub index: u64,
    /// What is added.
    pub delta: BlockDelta,
}

wire_enum! {
    /// What is added to a block.
    pub enum BlockDelta by "type" {
        /// Text of the answer.
        "text_delta" => Text(TextDelta),
        /// A piece of a tool call's arguments.
        "input_json_delta" => InputJson(InputJsonDelta),
        /// Reasoning.
        "thinking_delta" => Thinking(ThinkingDelta),
        /// The seal of the reasoning.
        "signature_delta" => Signature(SignatureDelta),
        /// A reference.
        "citations_delta" => Citations(CitationsDelta),
        /// A summary.
        "compaction_delta" => Compaction(CompactionDelta),
    }
}

/// `text_delta`: text.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TextDelta {
    /// The text to append.
    pub text: String,
}

/// `input_json_delta`: a piece of a tool call's arguments.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct InputJsonDelta {
    /// JSON text to append; valid only once the block is complete.
    pub partial_json: String,
}

/// `thinking_delta`: reasoning.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ThinkingDelta {
    /// The text to append.
    pub thinking: String,
    /// The estimated tokens of the thinking.
    pub estimated_tokens: Option<u64>,
}

/// `signature_delta`: the seal of the reasoning.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SignatureDelta {
    /// The seal.
    pub signature: String,
}

/// `citations_delta`: a reference of the text.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CitationsDelta {
    /// The reference.
    pub citation: Citation,
}

/// `compaction_delta`: a summary of earlier messages.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CompactionDelta {
    /// The summary.
    pub content: Option<String>,
    /// The summary, encrypted.
    pub encrypted_content: Option<String>,
}

/// `content_block_stop`: a block is complete.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContentBlockStop {
    /// The block's place in the message.
    pub index: u64,
}

/// `message_delta`: the message's last facts.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MessageDelta {
    /// Why it ends.
    pub delta: MessageDeltaBody,
    /// Tokens of the message in total.
    #[serde(default, deserialize_with = "fitting")]
    pub usage: Option<MessageDeltaUsage>,
    /// What the API removed from the context.
    #[serde(default, deserialize_with = "fitting")]
    pub context_management: Option<ContextManagement>,
    /// What the API changed in the request.
    #[serde(default, deserialize_with = "fitting")]
    pub input_transformations: Option<Vec<InputTransformation>>,
}

/// Why a message ends.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MessageDeltaBody {
    /// The reason.
    pub stop_reason: Option<StopReason>,
    /// The stop sequence that was met.
    pub stop_sequence: Option<String>,
    /// More on a refusal.
    #[serde(default, deserialize_with = "fitting")]
    pub stop_details: Option<StopDetails>,
    /// The container in which the API runs code.
    #[serde(default, deserialize_with = "fitting")]
    pub container: Option<Container>,
}

/// Tokens of a message in total.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MessageDeltaUsage {
    /// Input tokens that came from no cache.
    #[serde(default, deserialize_with = "some_count")]
    pub input_tokens: Option<u64>,
    /// Output tokens.
    #[serde(default, deserialize_with = "some_count")]
    pub output_tokens: Option<u64>,
    /// Input tokens written to the cache.
    #[serde(default, deserialize_with = "some_count")]
    pub cache_creation_input_tokens: Option<u64>,
    /// Input tokens read from the cache.
    #[serde(default, deserialize_with = "some_count")]
    pub cache_read_input_tokens: Option<u64>,
    /// The tokens written to the cache by their lifetime.
    pub cache_creation: Option<CacheCreation>,
    /// How often tools ran on the API's side.
    pub server_tool_use: Option<ServerToolUsage>,
    /// The parts of a request that ran the model more than once.
    pub iterations: Option<Vec<UsageIteration>>,
    /// What the output consists of.
    pub output_tokens_details: Option<OutputTokensDetails>,
    /// What became of a credit for a refused request.
    pub fallback_credit: Option<FallbackCredit>,
    /// `standard`, `priority` or `batch`.
    pub service_tier: Option<String>,
    /// Where the request was computed.
    pub inference_geo: Option<String>,
    /// `standard` or `fast`.
    pub speed: Option<String>,
}

/// `error`: the stream broke.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct StreamError {
    /// The error.
    pub error: ApiErrorBody,
    /// The API's id of the request.
    pub request_id: Option<String>,
}

/// An error of the API.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ApiErrorBody {
    /// The error's kind, such as `overloaded_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text of the error.
    pub message: String,
    /// Details of the error.
    pub details: Option<RawJson>,
}
