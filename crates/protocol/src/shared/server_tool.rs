//! Calls and results of the tools that the API runs itself.

use serde::{Deserialize, Serialize};

use super::content::{CacheControl, ContentBlock, ToolCaller};
use super::text_or::{ListOr, TextOr};
use crate::RawJson;
use crate::open_enum;
use crate::wire_enum;

/// `server_tool_use`: a call of a tool that the API runs itself.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ServerToolUseBlock {
    /// The call's id.
    pub id: String,
    /// The tool: `web_search`, `web_fetch`, `code_execution`, `bash_code_execution`, `text_editor_code_execution`,
    /// `tool_search_tool_regex`, `tool_search_tool_bm25`, `advisor` or one that came later.
    pub name: String,
    /// The arguments.
    pub input: RawJson,
    /// Who made the call.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub caller: Option<ToolCaller>,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

/// `web_search_tool_result`: what a web search found.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WebSearchToolResultBlock {
    /// The call.
    pub tool_use_id: String,
    /// The hits, or why there are none.
    pub content: ListOr<WebSearchResultBlock, ServerToolError>,
    /// Who made the call.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub caller: Option<ToolCaller>,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

/// `web_search_result`: one hit.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WebSearchResultBlock {
    /// Always `web_search_result`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The page's address.
    pub url: String,
    /// The page's title.
    pub title: String,
    /// The page's content; goes back to the API unchanged.
    pub encrypted_content: String,
    /// How old the page is, in words.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub page_age: Option<String>,
}

/// Why a tool run by the API failed. Told apart from results by its `type`, which ends in `_error`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ServerToolError {
    /// `<tool>_tool_result_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The cause.
    pub error_code: ServerToolErrorCode,
    /// The cause in words; some tools only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub error_message: Option<String>,
}

open_enum! {
    /// Causes of failures of the tools that the API runs itself.
    pub enum ServerToolErrorCode {
        /// The arguments are wrong.
        InvalidToolInput = "invalid_tool_input",
        /// The tool does not work at the moment.
        Unavailable = "unavailable",
        /// The tool was called more often than the request allows.
        MaxUsesExceeded = "max_uses_exceeded",
        /// Rate limited.
        TooManyRequests = "too_many_requests",
        /// The search query is too long.
        QueryTooLong = "query_too_long",
        /// The request is too large.
        RequestTooLarge = "request_too_large",
        /// The call took too long.
        ExecutionTimeExceeded = "execution_time_exceeded",
        /// A file that was made is too large.
        OutputFileTooLarge = "output_file_too_large",
        /// There is no such file.
        FileNotFound = "file_not_found",
        /// The address is too long.
        UrlTooLong = "url_too_long",
        /// The address is not allowed.
        UrlNotAllowed = "url_not_allowed",
        /// The address did not appear in the conversation before.
        UrlNotInPriorContext = "url_not_in_prior_context",
        /// The address could not be fetched.
        UrlNotAccessible = "url_not_accessible",
        /// The page is of a kind that cannot be read.
        UnsupportedContentType = "unsupported_content_type",
        /// The page is too large.
        ContentTooLarge = "content_too_large",
        /// The conversation is too long for the advisor.
        PromptTooLong = "prompt_too_long",
        /// The advisor's model is overloaded.
        Overloaded = "overloaded",
        /// There is no such advisor model.
        ModelNotFound = "model_not_found",
    }
}

/// `web_fetch_tool_result`: a page fetched by the API.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WebFetchToolResultBlock {
    /// The call.
    pub tool_use_id: String,
    /// The page, or why there is none.
    pub content: WebFetchContent,
    /// Who made the call.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub caller: Option<ToolCaller>,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

wire_enum! {
    /// The outcome of a fetch.
    pub enum WebFetchContent by "type" {
        /// The page.
        "web_fetch_result" => Result(WebFetchResult),
        /// Why there is none.
        "web_fetch_tool_result_error" => Error(ServerToolFailure),
    }
}

/// `web_fetch_result`: a page.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WebFetchResult {
    /// The page's address.
    pub url: String,
    /// The page as a `document` block.
    pub content: Box<ContentBlock>,
    /// When the page was fetched, as ISO 8601.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub retrieved_at: Option<String>,
}

/// Why a tool run by the API failed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ServerToolFailure {
    /// The cause.
    pub error_code: ServerToolErrorCode,
    /// The cause in words; some tools only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub error_message: Option<String>,
}

/// `code_execution_tool_result`: outcome of code run by the API.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CodeExecutionToolResultBlock {
    /// The call.
    pub tool_use_id: String,
    /// The outcome.
    pub content: CodeExecutionContent,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

wire_enum! {
    /// The outcome of code run by the API.
    pub enum CodeExecutionContent by "type" {
        /// The code ran.
        "code_execution_result" => Result(ExecutionResult),
        /// The code ran, and only the API can read its output.
        "encrypted_code_execution_result" => EncryptedResult(EncryptedExecutionResult),
        /// The code did not run.
        "code_execution_tool_result_error" => Error(ServerToolFailure),
    }
}

/// Output of code or a command run by the API.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ExecutionResult {
    /// The program's standard output.
    pub stdout: String,
    /// The program's standard error.
    pub stderr: String,
    /// The program's exit code.
    pub return_code: i64,
    /// The files that the code made.
    pub content: Vec<ExecutionFile>,
}

/// `encrypted_code_execution_result`: output that only the API may read.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct EncryptedExecutionResult {
    /// The program's standard output, encrypted.
    pub encrypted_stdout: String,
    /// The program's standard error.
    pub stderr: String,
    /// The program's exit code.
    pub return_code: i64,
    /// The files that the code made.
    pub content: Vec<ExecutionFile>,
}

/// A file made by code that the API ran.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ExecutionFile {
    /// `code_execution_output` or `bash_code_execution_output`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The file, among the files of the API.
    pub file_id: String,
}

/// `bash_code_execution_tool_result`: outcome of a shell command run by the API.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct BashCodeExecutionToolResultBlock {
    /// The call.
    pub tool_use_id: String,
    /// The outcome.
    pub content: BashCodeExecutionContent,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

wire_enum! {
    /// The outcome of a shell command run by the API.
    pub enum BashCodeExecutionContent by "type" {
        /// The command ran.
        "bash_code_execution_result" => Result(ExecutionResult),
        /// The command did not run.
        "bash_code_execution_tool_result_error" => Error(ServerToolFailure),
    }
}

/// `text_editor_code_execution_tool_result`: outcome of a file operation in the API's container.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TextEditorToolResultBlock {
    /// The call.
    pub tool_use_id: String,
    /// The outcome.
    pub content: TextEditorContent,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

wire_enum! {
    /// The outcome of a file operation in the API's container.
    pub enum TextEditorContent by "type" {
        /// A file was read.
        "text_editor_code_execution_view_result" => View(TextEditorView),
        /// A file was written.
        "text_editor_code_execution_create_result" => Create(TextEditorCreate),
        /// A file was edited.
        "text_editor_code_execution_str_replace_result" => StrReplace(TextEditorStrReplace),
        /// The command failed.
        "text_editor_code_execution_tool_result_error" => Error(ServerToolFailure),
    }
}

/// A file that was read.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TextEditorView {
    /// The file's content.
    pub content: String,
    /// `text`, `image` or `pdf`.
    pub file_type: String,
    /// How many lines were read.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub num_lines: Option<u64>,
    /// The first of the lines, from 1.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub start_line: Option<u64>,
    /// How many lines the file has.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub total_lines: Option<u64>,
}

/// A file that was written.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TextEditorCreate {
    /// Whether the file existed before.
    pub is_file_update: bool,
}

/// A file that was edited.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TextEditorStrReplace {
    /// The lines of the difference.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub lines: Option<Vec<String>>,
    /// First new line, from 1.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub new_start: Option<u64>,
    /// How many new lines.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub new_lines: Option<u64>,
    /// First old line, from 1.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub old_start: Option<u64>,
    /// How many old lines.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub old_lines: Option<u64>,
}

/// `tool_search_tool_result`: tools found by the API's tool search.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ToolSearchToolResultBlock {
    /// The call.
    pub tool_use_id: String,
    /// The outcome.
    pub content: ToolSearchContent,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

wire_enum! {
    /// The outcome of a tool search.
    pub enum ToolSearchContent by "type" {
        /// What was found.
        "tool_search_tool_search_result" => Result(ToolSearchResult),
        /// Why nothing was.
        "tool_search_tool_result_error" => Error(ServerToolFailure),
    }
}

/// Tools that were found.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ToolSearchResult {
    /// The tools, as `tool_reference` blocks.
    pub tool_references: Vec<ContentBlock>,
}

/// `advisor_tool_result`: what the advisor model said.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AdvisorToolResultBlock {
    /// The call.
    pub tool_use_id: String,
    /// The advisor's answer.
    pub content: AdvisorContent,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

wire_enum! {
    /// The answer of the advisor model.
    pub enum AdvisorContent by "type" {
        /// The text of the answer.
        "advisor_result" => Result(AdvisorResult),
        /// Text that only the API can read.
        "advisor_redacted_result" => Redacted(AdvisorRedactedResult),
        /// Why there is none.
        "advisor_tool_result_error" => Error(ServerToolFailure),
    }
}

/// `advisor_result`: what the advisor said.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AdvisorResult {
    /// The answer's text.
    pub text: String,
    /// Why the advisor stopped.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub stop_reason: Option<String>,
}

/// `advisor_redacted_result`: what the advisor said, encrypted.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AdvisorRedactedResult {
    /// The answer's text, encrypted.
    pub encrypted_content: String,
    /// Why the advisor stopped.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub stop_reason: Option<String>,
}

/// `mcp_tool_use`: a call of an MCP tool that the API makes itself. MCP tools of the CLI are called by `tool_use`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpToolUseBlock {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The tool's server.
    pub server_name: String,
    /// The arguments.
    pub input: RawJson,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

/// `mcp_tool_result`: outcome of an MCP tool call made by the API.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpToolResultBlock {
    /// The call.
    pub tool_use_id: String,
    /// The result.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub content: Option<TextOr<ContentBlock>>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub is_error: Option<bool>,
    /// Where a cached prefix ends; prompts only.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cache_control: Option<CacheControl>,
}

/// `mcp_tool_listing`: tools of an MCP server that the API is connected to.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpToolListingBlock {
    /// The server.
    pub mcp_server_name: String,
    /// The server's tools.
    pub tools: Vec<McpListedTool>,
}

/// One tool in a listing.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpListedTool {
    /// The tool's name.
    pub name: String,
    /// What the tool does.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub description: Option<String>,
    /// The JSON Schema of the tool's arguments.
    pub input_schema: RawJson,
}
