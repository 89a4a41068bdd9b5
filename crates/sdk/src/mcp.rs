//! MCP servers: those that live in this program, and how all of a session's fare.
//!
//! [`SdkMcpServer`] is a server in this program. With the feature `tools` it is made of `Tool`s, which are async functions, or of
//! any handler written with the crate `rmcp`; always, of code that
//! [reads and writes JSON-RPC itself](SdkMcpServer::from_raw).
//! [`Options::sdk_mcp_server`](crate::Options::sdk_mcp_server) gives it to sessions,
//! [`Session::mcp_set_servers`](crate::Session::mcp_set_servers) to one that runs.

mod bridge;
mod connection;
mod hosted;
mod jsonrpc;
mod manifest;
mod panics;
mod raw;
mod ready;
mod server;
mod server_messages;
mod set_servers;
#[cfg(feature = "tools")]
mod tools;

#[cfg(feature = "tools")]
pub use rmcp;
#[cfg(feature = "tools")]
pub use rmcp::model::{CallToolResult, ContentBlock};

pub(crate) use self::bridge::Bridge;
pub(crate) use self::hosted::McpHosting;
pub use self::raw::{RawConnection, RawMessage, RawSender};
pub use self::ready::{McpNotReady, McpStartup};
pub(crate) use self::ready::{hold_prompts, settle};
pub(crate) use self::server::check_server_name;
pub use self::server::{InvalidServer, SdkMcpServer};
pub use self::set_servers::McpServers;
#[cfg(feature = "tools")]
pub use self::tools::{IntoToolResult, Json, Tool, ToolContext, ToolSet};
