//! Claude Code in every editor: an agent for the Agent Client Protocol (ACP), on top of [`outrigger`].
//!
//! ```text
//! editor ⇄ ACP on stdio ⇄ serve ⇄ session (one task each) ⇄ outrigger ⇄ claude
//!                                    │
//!             frames → reduce → events → wire::v1 or wire::v2 → updates
//! ```

mod answer;
mod ask;
mod auth;
mod buffers;
mod capabilities;
mod choices;
mod client;
mod coalesce;
mod config;
mod error;
mod event;
mod given;
mod history;
mod hub;
mod lineage;
mod mcp;
mod open;
mod outcome;
mod program;
mod prompt;
mod reduce;
mod rest;
mod rewind;
mod serve;
mod session;
mod spare;
mod steer;
mod tool;
mod wire;
mod words;

pub use config::{Config, Protocol};
pub use program::run;
pub use serve::serve;
