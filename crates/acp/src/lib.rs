//! Claude Code in every editor: an agent for the Agent Client Protocol (ACP), on top of [`outrigger`].
//!
//! ```text
//! editor ⇄ ACP on stdio ⇄ serve ⇄ session (one task each) ⇄ outrigger ⇄ claude
//!                                    │
//!             frames → reduce → events → wire::v1 or wire::v2 → updates
//! ```
//!
//! With the feature `host`, the sessions can live on a host of sessions (`Config::host`): then a link of the module `host` is in the place of
//! `claude`.

mod ask;
mod auth;
mod buffers;
mod capabilities;
mod children;
mod choices;
mod client;
mod coalesce;
mod config;
mod error;
mod event;
mod history;
mod host;
mod hub;
mod lineage;
mod mcp;
mod meta;
mod open_session;
mod outcome;
mod private_dir;
mod program;
mod prompt;
mod reduce;
mod replay;
mod response_sender;
mod review;
mod rewind;
mod sdk_error;
mod serve;
mod session;
mod spare;
mod steer;
mod stored;
mod timestamp;
mod tool;
mod wire;

pub use config::{Config, IdleCompaction, Protocol};
pub use program::run;
#[cfg(feature = "host")]
pub use program::run_on;
pub use serve::serve;
