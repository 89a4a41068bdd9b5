//! MCP servers.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/mcp.toml: change that instead.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::RawJson;

crate::outbound::control::request! {
    /// Reports the state of the MCP servers.
    pub struct McpStatus {
        optional {
            /// Sends the reply only to clients that are connected at the moment, and stores the reply nowhere. For sessions in
            /// the cloud.
            live_reply: "liveReply" => bool,
        }
    }
}

/// The state of the MCP servers.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct McpStatusReply {
    /// The servers.
    pub mcp_servers: Vec<crate::shared::McpServerStatus>,
}

crate::outbound::control::request! {
    /// Replaces the MCP servers that were added at run time. Servers from settings stay.
    pub struct McpSetServers {
        required {
            /// All servers that are to be there, by name.
            servers: "servers" => BTreeMap<String, crate::shared::McpServerConfig>,
        }
        optional {
            /// What the change is for.
            hint: "hint" => String,
            /// Tools that may not be used.
            denied_tools: "denied_tools" => Vec<String>,
        }
    }
}

/// What became of the servers. A server that failed is in `added` *and* in `errors`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpSetServersReply {
    /// Servers that were added. Servers of the driving program are connected only after this reply.
    pub added: Vec<String>,
    /// Servers that were removed.
    pub removed: Vec<String>,
    /// Why servers failed, by name.
    pub errors: BTreeMap<String, String>,
}

crate::outbound::control::request! {
    /// Hands a message of an MCP server of the driving program to the CLI. The request succeeds even if the CLI does not know the
    /// server.
    pub struct McpMessage {
        required {
            /// The server.
            server_name: "server_name" => String,
            /// The JSON-RPC message.
            message: "message" => RawJson,
        }
    }
}

/// Usually empty: the CLI sends the response to a JSON-RPC request in a request of its own.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpMessageReply {
    /// The JSON-RPC response.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mcp_response: Option<RawJson>,
}

crate::outbound::control::request! {
    /// Connects an MCP server again.
    pub struct McpReconnect {
        required {
            /// The server.
            server_name: "serverName" => String,
        }
    }
}

crate::outbound::control::request! {
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

crate::outbound::control::request! {
    /// Calls a tool of an MCP server without the model. The CLI refuses servers of the driving program. The request can be
    /// withdrawn.
    pub struct McpCall {
        required {
            /// The tool's full name, `mcp__server__tool`.
            tool: "tool" => String,
        }
        optional {
            /// The arguments of the tool.
            arguments: "arguments" => crate::shared::JsonObject,
            /// The time after which the call must not run any more, as ISO 8601.
            expires_at: "expires_at" => String,
            /// How long the call may take, in milliseconds.
            timeout_ms: "timeout_ms" => u64,
            /// Leaves the result as it is instead of making it fit for a model.
            result_not_for_model: "result_not_for_model" => bool,
            /// Requests the result of a tool that failed: the request then succeeds, with [`McpCallReply::is_error`]. A CLI with
            /// the capability `mcp_call_soft_error_result_v1` does so, from CLI 2.1.331 on.
            soft_error_result: "soft_error_result" => bool,
            /// Applies the permission rules. Otherwise the call runs without permission.
            check_permissions: "check_permissions" => bool,
            /// Files to fetch before the call, at most 64.
            input_files: "input_files" => Vec<McpCallInputFile>,
            /// Files to store after the call, at most 64.
            output_files: "output_files" => Vec<McpCallOutputFile>,
        }
    }
}

/// A file to put in place before an MCP call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpCallInputFile {
    /// The name by which arguments refer to it, as `{{in:NAME}}`.
    pub name: String,
    /// Where it comes from.
    pub lane_path: String,
}

impl McpCallInputFile {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(name: impl Into<String>, lane_path: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            lane_path: lane_path.into(),
        }
    }
}

/// A file to fetch after an MCP call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpCallOutputFile {
    /// The name by which arguments refer to it, as `{{out:NAME}}`.
    pub name: String,
    /// Where it goes.
    pub lane_path: String,
    /// The version that it may replace.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub if_match: Option<String>,
}

impl McpCallOutputFile {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(name: impl Into<String>, lane_path: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            lane_path: lane_path.into(),
            if_match: None,
        }
    }
}

/// The result of an MCP tool. A tool that fails makes the request fail, except with [`McpCall::soft_error_result`].
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct McpCallReply {
    /// The content of the result, as MCP has it: usually a list of blocks.
    pub content: RawJson,
    /// The result's structured content.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub structured_content: Option<RawJson>,
    /// What the server attached to the result, as `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "crate::whole::unset")]
    pub meta: Option<RawJson>,
    /// True if the tool failed and [`McpCall::soft_error_result`] was set.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub is_error: Option<bool>,
    /// What became of the files.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub staging: Option<McpCallStaging>,
}

/// What became of the files of an MCP call.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpCallStaging {
    /// Whether all files were transferred. The other fields depend on this.
    pub ok: bool,
    /// The files fetched.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub outputs: Option<Vec<McpCallFetched>>,
    /// The files put in place.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub inputs_used: Option<Vec<McpCallUsed>>,
    /// The error.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub error_code: Option<StagingError>,
    /// What went wrong, in words.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub detail: Option<String>,
    /// Whether another attempt may succeed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub retryable: Option<bool>,
    /// Whether so many calls were refused that the CLI refuses all.
    #[serde(skip_serializing_if = "crate::whole::unset")]
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

crate::open_enum! {
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

crate::outbound::control::request! {
    /// Reads a resource of an MCP server.
    pub struct McpReadResource {
        required {
            /// The server, as `mcp_status` names it.
            server_name: "serverName" => String,
            /// The resource. Only `ui://` resources can be read.
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
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct McpResourceContents {
    /// The resource.
    pub uri: String,
    /// The content's type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mime_type: Option<String>,
    /// The contents, if they are text.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub text: Option<String>,
    /// The contents in base64, if they are not.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub blob: Option<String>,
    /// What the server attached to the result, as `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "crate::whole::unset")]
    pub meta: Option<RawJson>,
}

crate::outbound::control::request! {
    /// Begins to sign in to an MCP server.
    pub struct McpAuthenticate {
        required {
            /// The server.
            server_name: "serverName" => String,
        }
        optional {
            /// The address that the browser returns to; a port of the CLI if unset.
            redirect_uri: "redirectUri" => String,
            /// Fails where the CLI would use a port of its own.
            redirect_uri_only: "redirectUriOnly" => bool,
            /// Sends the reply only to clients that are connected at the moment.
            live_reply: "liveReply" => bool,
        }
    }
}

/// How to continue the sign-in.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct McpAuthenticateReply {
    /// The page to open.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub auth_url: Option<String>,
    /// Whether a person has to do something.
    pub requires_user_action: bool,
    /// Whether the sign-in ends with `mcp_oauth_callback_url`, or with a visit to the CLI's port.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub callback_expected: Option<bool>,
    /// Whether the browser returns to the driving program (`custom`) or to the CLI's port (`localhost`).
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub redirect_scheme: Option<String>,
    /// The `state` of this sign-in, which the page returns.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub state: Option<String>,
    /// The CLI's port.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub callback_port: Option<u64>,
}

crate::outbound::control::request! {
    /// Forgets the sign-in to an MCP server.
    pub struct McpClearAuth {
        required {
            /// The server.
            server_name: "serverName" => String,
        }
    }
}

crate::outbound::control::request! {
    /// Ends the sign-in to an MCP server. The reply comes when the server is connected or has refused.
    pub struct McpOauthCallbackUrl {
        required {
            /// The server.
            server_name: "serverName" => String,
            /// The whole address that the browser returned to.
            callback_url: "callbackUrl" => String,
        }
    }
}

crate::outbound::control::request! {
    /// Lets an MCP server of a plugin send prompts.
    pub struct ChannelEnable {
        required {
            /// The server.
            server_name: "serverName" => String,
        }
    }
}

crate::outbound::control::request! {
    /// Reads the account's connectors again. `mcp_status` then reports them.
    pub struct ReloadConnectors {}
}
