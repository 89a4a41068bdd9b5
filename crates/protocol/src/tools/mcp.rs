//! Tools of MCP servers, and tools about MCP servers.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/mcp.toml: change that instead.

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// Input of `ListMcpResourcesTool`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ListMcpResourcesInput {
    /// Only this server's resources.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub server: Option<String>,
}

/// A resource that an MCP server offers.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct McpResource {
    /// The resource's address.
    pub uri: String,
    /// The resource's name.
    pub name: String,
    /// The resource's media type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mime_type: Option<String>,
    /// The description of the resource.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub description: Option<String>,
    /// The server that has the resource.
    pub server: String,
    /// The title of the resource, for people.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
    /// How long the resource is, in bytes.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub size: Option<f64>,
    /// What the server says of the resource, in the words of MCP.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub annotations: Option<RawJson>,
    /// Icons of the resource, in the words of MCP.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub icons: Option<RawJson>,
    /// What the server attached to the resource.
    #[serde(rename = "_meta", skip_serializing_if = "crate::whole::unset")]
    pub meta: Option<RawJson>,
}

/// Input of `ReadMcpResourceTool`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReadMcpResourceInput {
    /// The server.
    pub server: String,
    /// The resource's address.
    pub uri: String,
}

impl ReadMcpResourceInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(server: impl Into<String>, uri: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            uri: uri.into(),
        }
    }
}

/// Output of `ReadMcpResourceTool`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReadMcpResourceOutput {
    /// The parts of the resource.
    pub contents: Vec<McpResourceContent>,
    /// Why the server did not return the resource.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub error: Option<String>,
}

/// A part of a resource.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct McpResourceContent {
    /// The resource's address.
    pub uri: String,
    /// The resource's media type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mime_type: Option<String>,
    /// The text of the resource, if it is text.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub text: Option<String>,
    /// The file that the resource was saved to, if it is not text.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub blob_saved_to: Option<String>,
}

/// Input of `ReadMcpResourceDirTool`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReadMcpResourceDirInput {
    /// The server.
    pub server: String,
    /// The address of the directory.
    pub uri: String,
}

impl ReadMcpResourceDirInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(server: impl Into<String>, uri: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            uri: uri.into(),
        }
    }
}

/// Output of `ReadMcpResourceDirTool`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReadMcpResourceDirOutput {
    /// What is directly in the directory.
    pub resources: Vec<McpDirEntry>,
    /// Why the server did not list its resources.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub error: Option<String>,
}

/// A resource in a directory.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct McpDirEntry {
    /// The entry's address.
    pub uri: String,
    /// The entry's name.
    pub name: String,
    /// The media type of the entry; `inode/directory` for a directory.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mime_type: Option<String>,
}

/// Input of `RefreshMcpTools`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RefreshMcpToolsInput {
    /// The server; all connected ones if absent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub server: Option<String>,
}

/// What came of requesting the tools of one server again.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct McpRefresh {
    /// The server.
    pub server: String,
    /// Whether the server sent its tools.
    pub status: McpRefreshStatus,
    /// How many tools the server has now.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub tool_count: Option<u64>,
    /// Tools that are new.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub added: Option<Vec<String>>,
    /// Tools that are gone.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub removed: Option<Vec<String>>,
    /// Why the request failed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub error: Option<String>,
}

crate::open_enum! {
    /// Whether a server sent its tools.
    pub enum McpRefreshStatus {
        /// The new list is in use.
        Refreshed = "refreshed",
        /// The refresh failed; the old list stays in use.
        Error = "error",
        /// The server is not connected.
        NotConnected = "not_connected",
    }
}

/// Output of an `mcp__…` tool.
///
/// A text is also what a failed call has in this place; the `is_error` of its tool result tells them apart.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum McpOutput {
    /// A text.
    Text(String),
    /// Content blocks, as the server sent them.
    Blocks(Vec<RawJson>),
    /// An object; that of a tool with structured output has `content` and `structuredContent`.
    Object(RawJson),
    /// Anything else, as it came.
    Unknown(RawJson),
}

crate::shape::by_shape!(McpOutput {
    String => Text,
    Array => Blocks,
    Object => Object,
});
