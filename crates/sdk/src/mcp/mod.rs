//! MCP servers: those that live in this program, and how all of a session's fare.
//!
//! [`SdkMcpServer`] is a server in this program: of [`Tool`]s made of async functions, of any handler written with [`rmcp`], or
//! one that [reads and writes JSON-RPC itself](SdkMcpServer::from_raw).
//! [`Options::sdk_mcp_server`](crate::Options::sdk_mcp_server) gives it to sessions,
//! [`Session::mcp_set_servers`](crate::Session::mcp_set_servers) to one that runs.

mod bridge;
mod connection;
mod context;
mod guard;
mod manifest;
mod options;
mod outlet;
mod output;
mod raw;
mod ready;
mod schema;
mod server;
mod servers;
mod tool;
mod toolbox;

pub use rmcp;
pub use rmcp::model::{CallToolResult, ContentBlock};

pub(crate) use self::bridge::Bridge;
pub use self::context::ToolContext;
pub(crate) use self::options::McpHosting;
pub use self::output::{IntoToolResult, Json};
pub use self::raw::{RawConnection, RawMessage, RawSender};
pub(crate) use self::ready::hold_prompts;
pub use self::ready::{McpNotReady, McpStartup};
pub use self::server::{InvalidServer, SdkMcpServer};
pub use self::servers::McpServers;
pub use self::tool::Tool;
pub use self::toolbox::Tools;
