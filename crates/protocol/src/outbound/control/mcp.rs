//! MCP servers.

use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;

use super::request;
use crate::RawJson;
use crate::open_enum;
use crate::shared::{JsonObject, McpServerConfig, McpServerStatus};

request! {
    /// Tells how MCP servers fare.
    pub struct McpStatus {
        optional {
            /// Sends the answer only to those who look on at the moment, and stores it nowhere. For cloud sessions.
            live_reply: "liveReply" => bool,
        }
    }
}

/// How MCP servers fare.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpStatusReply {
    /// The servers.
    pub mcp_servers: Vec<McpServerStatus>,
}

request! {
    /// Replaces the MCP servers that were added at run time. Servers from settings stay.
    pub struct McpSetServers {
        required {
            /// The servers, all of them, by name.
            servers: "servers" => BTreeMap<String, McpServerConfig>,
        }
        optional {
            /// What the change is for.
            hint: "hint" => String,
            /// Tools that may not be used.
            denied_tools: "denied_tools" => Vec<String>,
        }
    }
}

/// What became of the servers. One that failed is among the added *and* has an error.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpSetServersReply {
    /// Servers that were added. Those in our own program are connected only after this answer.
    pub added: Vec<String>,
    /// Servers that went away.
    pub removed: Vec<String>,
    /// Why servers failed, by name.
    pub errors: BTreeMap<String, String>,
}

request! {
    /// Hands a message of one of our MCP servers to the CLI. Acknowledged even for a server that the CLI does not know.
    pub struct McpMessage {
        required {
            /// The server.
            server_name: "server_name" => String,
            /// The JSON-RPC message.
            message: "message" => RawJson,
        }
    }
}

/// Usually empty: the answer to a JSON-RPC request comes as a request of the CLI's own.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpMessageReply {
    /// The JSON-RPC answer.
    pub mcp_response: Option<RawJson>,
}

request! {
    /// Connects an MCP server again.
    pub struct McpReconnect {
        required {
            /// The server.
            server_name: "serverName" => String,
        }
    }
}

request! {
    /// Switches an MCP server on or off.
    pub struct McpToggle {
        required {
            /// The server.
            server_name: "serverName" => String,
            /// Whether the server is to be on.
            enabled: "enabled" => bool,
        }
    }
}

request! {
    /// Calls a tool of an MCP server without the model. Servers in our own program are refused. Can be taken back.
    pub struct McpCall {
        required {
            /// The tool's full name, `mcp__server__tool`.
            tool: "tool" => String,
        }
        optional {
            /// What to give to it.
            arguments: "arguments" => JsonObject,
            /// When the call is no longer wanted, as ISO 8601.
            expires_at: "expires_at" => String,
            /// How long it may take, in milliseconds.
            timeout_ms: "timeout_ms" => u64,
            /// Leaves the result as it is instead of making it fit for a model.
            result_not_for_model: "result_not_for_model" => bool,
            /// Asks for a failed tool's own result: the request then succeeds, with [`McpCallReply::is_error`]. A CLI that heeds it
            /// says `mcp_call_soft_error_result_v1`. From CLI 2.1.331 on.
            soft_error_result: "soft_error_result" => bool,
            /// Applies the permission rules; without it the call is not asked.
            check_permissions: "check_permissions" => bool,
            /// Files to put in place before, at most 64.
            input_files: "input_files" => Vec<McpCallInputFile>,
            /// Files to fetch afterwards, at most 64.
            output_files: "output_files" => Vec<McpCallOutputFile>,
        }
    }
}

/// A file to put in place before an MCP call.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct McpCallInputFile {
    /// The name by which arguments refer to it, as `{{in:NAME}}`.
    pub name: String,
    /// Where it comes from.
    pub lane_path: String,
}

/// A file to fetch after an MCP call.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct McpCallOutputFile {
    /// The name by which arguments refer to it, as `{{out:NAME}}`.
    pub name: String,
    /// Where it goes.
    pub lane_path: String,
    /// The version that it may replace.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub if_match: Option<String>,
}

/// The result of an MCP tool. A tool that fails makes the request fail, except with [`McpCall::soft_error_result`].
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpCallReply {
    /// The content of the result, as MCP has it: usually a list of blocks.
    pub content: RawJson,
    /// The result's structured content.
    #[serde(rename = "structuredContent")]
    pub structured_content: Option<RawJson>,
    /// What the server attached.
    #[serde(rename = "_meta")]
    pub meta: Option<RawJson>,
    /// True if the tool failed and [`McpCall::soft_error_result`] was set.
    #[serde(rename = "isError")]
    pub is_error: Option<bool>,
    /// What became of the files.
    pub staging: Option<McpCallStaging>,
}

/// What became of the files of an MCP call.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpCallStaging {
    /// Whether all went well; decides which of the other fields are there.
    pub ok: bool,
    /// The files fetched.
    pub outputs: Option<Vec<McpCallFetched>>,
    /// The files put in place.
    pub inputs_used: Option<Vec<McpCallUsed>>,
    /// The error.
    pub error_code: Option<StagingError>,
    /// What went wrong, in words.
    pub detail: Option<String>,
    /// Whether it makes sense to try again.
    pub retryable: Option<bool>,
    /// Whether too many calls were refused.
    pub refusal_limit: Option<bool>,
}

/// A file that was fetched.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpCallFetched {
    /// Where it went.
    pub lane_path: String,
    /// The file's version.
    pub etag: String,
    /// The file's size.
    pub bytes: u64,
}

/// A file that was put in place.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpCallUsed {
    /// Where it came from.
    pub lane_path: String,
    /// The file's version.
    pub etag: String,
}

open_enum! {
    /// What went wrong with the files of an MCP call.
    pub enum StagingError {
        /// The files came too late.
        Expired = "expired",
        /// A file to put in place is not there.
        InputMissing = "input_missing",
        /// A file to fetch is too large.
        OutputTooLarge = "output_too_large",
        /// A file to replace has changed.
        OutputConflict = "output_conflict",
        /// The transfer took too long.
        Timeout = "timeout",
        /// The tool failed.
        ToolError = "tool_error",
    }
}

request! {
    /// Reads a resource of an MCP server.
    pub struct McpReadResource {
        required {
            /// The server, as `mcp_status` names it.
            server_name: "serverName" => String,
            /// The resource; only `ui://` ones.
            uri: "uri" => String,
        }
    }
}

/// A resource.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpReadResourceReply {
    /// The resource's contents.
    pub contents: Vec<McpResourceContents>,
}

/// The contents of a resource.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpResourceContents {
    /// The resource.
    pub uri: String,
    /// The content's type.
    pub mime_type: Option<String>,
    /// The contents, if they are text.
    pub text: Option<String>,
    /// The contents in base64, if they are not.
    pub blob: Option<String>,
    /// What the server attached.
    #[serde(rename = "_meta")]
    pub meta: Option<RawJson>,
}

request! {
    /// Begins to sign in to an MCP server.
    pub struct McpAuthenticate {
        required {
            /// The server.
            server_name: "serverName" => String,
        }
        optional {
            /// Where the browser is to come back to; the CLI's own port if unset.
            redirect_uri: "redirectUri" => String,
            /// Fails rather than use the CLI's own port.
            redirect_uri_only: "redirectUriOnly" => bool,
            /// Sends the answer only to those who look on at the moment.
            live_reply: "liveReply" => bool,
        }
    }
}

/// How to go on signing in.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpAuthenticateReply {
    /// The page to open.
    pub auth_url: Option<String>,
    /// Whether somebody has to do something.
    pub requires_user_action: bool,
    /// Whether `mcp_oauth_callback_url` is to follow, or a visit to the CLI's own port.
    pub callback_expected: Option<bool>,
    /// Whether the browser comes back to us (`custom`) or to the CLI's own port (`localhost`).
    pub redirect_scheme: Option<String>,
    /// The attempt, as the page will name it.
    pub state: Option<String>,
    /// The CLI's own port.
    pub callback_port: Option<u64>,
}

request! {
    /// Forgets the sign-in to an MCP server.
    pub struct McpClearAuth {
        required {
            /// The server.
            server_name: "serverName" => String,
        }
    }
}

request! {
    /// Ends the sign-in to an MCP server. Answered when the server is connected or has refused.
    pub struct McpOauthCallbackUrl {
        required {
            /// The server.
            server_name: "serverName" => String,
            /// The whole address that the browser came back to.
            callback_url: "callbackUrl" => String,
        }
    }
}

request! {
    /// Lets an MCP server of a plugin send prompts.
    pub struct ChannelEnable {
        required {
            /// The server.
            server_name: "serverName" => String,
        }
    }
}

request! {
    /// Reads the account's connectors again. `mcp_status` then reports them.
    pub struct ReloadConnectors {}
}
