//! Content blocks of the Messages API, as prompts, answers and tool results carry them.

use serde::{Deserialize, Serialize};

use super::citation::*;
use super::server_tool::*;
use super::source::*;
use super::text_or::TextOr;
use crate::RawJson;
use crate::open_enum;
use crate::wire_enum;

/// The content of a message: plain text, or blocks.
pub type MessageContent = TextOr<ContentBlock>;

wire_enum! {
    /// One piece of a message. Answers and prompts use the same union, because each may carry most of the kinds.
    pub enum ContentBlock by "type" {
        /// A block of text.
        "text" => Text(TextBlock),
        /// Reasoning of the model.
        "thinking" => Thinking(ThinkingBlock),
        /// Reasoning that only the API can read.
        "redacted_thinking" => RedactedThinking(RedactedThinkingBlock),
        /// A call of a tool on our side.
        "tool_use" => ToolUse(ToolUseBlock),
        /// What a tool on our side gave back.
        "tool_result" => ToolResult(ToolResultBlock),
        /// A picture.
        "image" => Image(ImageBlock),
        /// A document.
        "document" => Document(DocumentBlock),
        /// A search hit that may be cited.
        "search_result" => SearchResult(SearchResultBlock),
        /// A call of a tool that the API runs itself.
        "server_tool_use" => ServerToolUse(ServerToolUseBlock),
        /// What a web search on the API's side found.
        "web_search_tool_result" => WebSearchToolResult(WebSearchToolResultBlock),
        /// A page fetched on the API's side.
        "web_fetch_tool_result" => WebFetchToolResult(WebFetchToolResultBlock),
        /// Outcome of code run on the API's side.
        "code_execution_tool_result" => CodeExecutionToolResult(CodeExecutionToolResultBlock),
        /// Outcome of a shell command run on the API's side.
        "bash_code_execution_tool_result" => BashCodeExecutionToolResult(BashCodeExecutionToolResultBlock),
        /// Outcome of a file edit on the API's side.
        "text_editor_code_execution_tool_result" => TextEditorCodeExecutionToolResult(TextEditorToolResultBlock),
        /// Tools found by the API's tool search.
        "tool_search_tool_result" => ToolSearchToolResult(ToolSearchToolResultBlock),
        /// Answer of the API's advisor model.
        "advisor_tool_result" => AdvisorToolResult(AdvisorToolResultBlock),
        /// A call of an MCP tool that the API makes itself.
        "mcp_tool_use" => McpToolUse(McpToolUseBlock),
        /// Outcome of an MCP tool call made by the API.
        "mcp_tool_result" => McpToolResult(McpToolResultBlock),
        /// Tools of an MCP server that the API is connected to.
        "mcp_tool_listing" => McpToolListing(McpToolListingBlock),
        /// A file put into the API's container.
        "container_upload" => ContainerUpload(ContainerUploadBlock),
        /// A tool by name; part of tool results.
        "tool_reference" => ToolReference(ToolReferenceBlock),
        /// The summary that replaced earlier messages.
        "compaction" => Compaction(CompactionBlock),
        /// From here on another model answered.
        "fallback" => Fallback(FallbackBlock),
        /// Tools that became available in mid-conversation.
        "tool_addition" => ToolAddition(ToolChangeBlock),
        /// Tools that went away in mid-conversation.
        "tool_removal" => ToolRemoval(ToolChangeBlock),
        /// Open tabs of a browser toolset; part of tool results.
        "browser_state" => BrowserState(BrowserStateBlock),
        /// A system message in the middle of a conversation.
        "mid_conv_system" => MidConvSystem(MidConvSystemBlock),
    }
}

/// `text`: text.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TextBlock {
    /// The text.
    pub text: String,
    /// What the text refers to; null when there is nothing.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub citations: Option<Vec<Citation>>,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

/// `thinking`: reasoning of the model. Send it back unchanged: the signature covers it.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ThinkingBlock {
    /// The reasoning or its summary; may be empty.
    pub thinking: String,
    /// Seal over the reasoning; empty while streaming.
    #[serde(default)]
    pub signature: String,
}

/// `redacted_thinking`: reasoning that only the API can read.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RedactedThinkingBlock {
    /// The encrypted reasoning.
    pub data: String,
}

/// `tool_use`: a call of a tool on our side.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ToolUseBlock {
    /// The call's id, which its result and all frames about the call have.
    pub id: String,
    /// The tool's name; `mcp__SERVER__TOOL` for MCP tools.
    pub name: String,
    /// The arguments. While a message streams, this is an empty object.
    pub input: RawJson,
    /// Who made the call.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub caller: Option<ToolCaller>,
    /// The toolset that the tool is a member of.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub toolset_name: Option<String>,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

/// Who made a tool call.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ToolCaller {
    /// The model itself, or code that the API runs for the model.
    #[serde(rename = "type")]
    pub kind: ToolCallerKind,
    /// The code execution call that the call came from.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub tool_id: Option<String>,
}

open_enum! {
    /// The kinds of [`ToolCaller`].
    pub enum ToolCallerKind {
        /// The model.
        Direct = "direct",
        /// Code run by the tool of that version.
        CodeExecution20250825 = "code_execution_20250825",
        /// Code run by the tool of that version.
        CodeExecution20260120 = "code_execution_20260120",
    }
}

/// `tool_result`: what a tool gave back. The `user` line that carries it also has `tool_use_result`, the same in the
/// tool's own structure.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ToolResultBlock {
    /// The call that this is the result of.
    pub tool_use_id: String,
    /// The result; absent when the tool gave nothing.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub content: Option<MessageContent>,
    /// Whether the tool failed; absent means no.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub is_error: Option<bool>,
    /// The toolset that the tool is a member of.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub toolset_name: Option<String>,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

/// `tool_reference`: a tool by name.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ToolReferenceBlock {
    /// The tool's name.
    pub tool_name: String,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

/// `image`: a picture.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ImageBlock {
    /// Where the bytes are.
    pub source: ImageSource,
    /// Where a cached prefix ends.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
    /// What the API may do to the picture.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub transformations: Option<ImageTransformations>,
}

/// What the API may do to a picture.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ImageTransformations {
    /// `downsize` or `error`, for one that is too large.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub oversized_image: Option<String>,
}

/// `document`: a document.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct DocumentBlock {
    /// Where the content is.
    pub source: DocumentSource,
    /// The document's title.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
    /// Remarks on the document that are not cited.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub context: Option<String>,
    /// Whether the answer should cite the document.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub citations: Option<CitationsConfig>,
    /// Where a cached prefix ends.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

/// `search_result`: a search hit that may be cited.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SearchResultBlock {
    /// Where the result comes from, usually a URL.
    pub source: String,
    /// The result's title.
    pub title: String,
    /// The result's text, as text blocks.
    pub content: Vec<ContentBlock>,
    /// Whether the answer should cite the result.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub citations: Option<CitationsConfig>,
    /// Where a cached prefix ends.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

/// Whether citations are wanted.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CitationsConfig {
    /// Whether the answer should have citations; absent means no.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub enabled: Option<bool>,
}

/// Marks the end of a prefix that the API should cache.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CacheControl {
    /// Always `ephemeral` so far.
    #[serde(rename = "type")]
    pub kind: String,
    /// `5m` or `1h`; absent means five minutes.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub ttl: Option<String>,
}

/// `container_upload`: a file put into the API's container.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContainerUploadBlock {
    /// The file.
    pub file_id: String,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

/// `compaction`: the summary that replaced earlier messages, made by the API.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CompactionBlock {
    /// The summary; null when it failed or is encrypted.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub content: Option<String>,
    /// The encrypted summary.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub encrypted_content: Option<String>,
    /// Seal over the summary.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub signature: Option<String>,
    /// Changes of the tool set that the summary keeps, as `tool_addition` and `tool_removal` blocks.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub tool_changes: Option<Vec<ContentBlock>>,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

/// `fallback`: the rest of the message is by another model.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FallbackBlock {
    /// The model that gave up.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub from: Option<FallbackModel>,
    /// The model that went on.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub to: Option<FallbackModel>,
    /// The cause of the fallback.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub trigger: Option<FallbackTrigger>,
}

/// A model named in a [`FallbackBlock`].
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FallbackModel {
    /// The model's name.
    pub model: String,
}

/// Why another model took over.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FallbackTrigger {
    /// `refusal` so far.
    #[serde(rename = "type")]
    pub kind: String,
    /// The policy area of the refusal.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub category: Option<RefusalCategory>,
}

open_enum! {
    /// The policy area that a refusal is about.
    pub enum RefusalCategory {
        /// Attacks on computer systems.
        Cyber = "cyber",
        /// Biological harm.
        Bio = "bio",
        /// Help with building competing large models.
        FrontierLlm = "frontier_llm",
        /// Getting at hidden reasoning.
        ReasoningExtraction = "reasoning_extraction",
        /// Any other harm.
        GeneralHarms = "general_harms",
    }
}

/// `tool_addition` and `tool_removal`: the tool set changed in mid-conversation.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ToolChangeBlock {
    /// The tool, by reference or by definition.
    pub tool: RawJson,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

/// `browser_state`: open tabs of a browser toolset.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct BrowserStateBlock {
    /// The open tabs.
    pub tabs: Vec<BrowserTab>,
    /// What changed since the last state.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub state_changes: Option<Vec<BrowserStateChange>>,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

/// One open tab.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct BrowserTab {
    /// The tab's id.
    pub tab_id: String,
    /// The page's title.
    pub title: String,
    /// The page's address.
    pub url: String,
    /// Whether the tab is in front.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub active: Option<bool>,
}

/// One change in a browser.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct BrowserStateChange {
    /// `tab_opened`, `download_started`, `download_completed` or `download_failed`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The tab that opened.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub tab_id: Option<String>,
    /// The download.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub download_id: Option<String>,
    /// What is downloaded.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub url: Option<String>,
    /// The file that the download was saved to.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub path: Option<String>,
    /// The download's size in bytes.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub size_bytes: Option<u64>,
    /// Why the download failed.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub error: Option<String>,
}

/// `mid_conv_system`: a system message in the middle of a conversation. Its fields are not declared anywhere.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MidConvSystemBlock {
    /// The message.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub content: Option<MessageContent>,
    /// The message, as text.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub text: Option<String>,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}
