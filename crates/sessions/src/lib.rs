//! Stored sessions of Claude Code: finds, lists and reads the transcripts that the CLI keeps below its config directory, without
//! starting a process.
//!
//! ```no_run
//! use outrigger_sessions::{ListOptions, MessageOptions, Sessions};
//!
//! # fn main() -> outrigger_sessions::Result<()> {
//! let sessions = Sessions::from_env()?;
//! for info in sessions.list(&ListOptions::new().dir(".").limit(10))? {
//!     println!("{}  {}", info.session_id, info.summary);
//!     for message in sessions.messages(&info.session_id, &MessageOptions::new())? {
//!         println!("{:?}", message?.decode());
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! All of it is plain synchronous file I/O without a runtime: async code calls it where blocking is allowed
//! (`tokio::task::spawn_blocking`).
//!
//! Guarantees:
//! * **Nothing is lost.** A [`Record`](record::Record) keeps the bytes of its line, whatever its type; a line that is no record is a
//!   [`Damage`](record::Damage) with its position, and reading continues after it.
//! * **Memory is bounded.** Lines are read one at a time and are bounded; a transcript may be larger than the
//!   memory.
//! * **Ids are checked.** A [`SessionId`] is the CLI's own id, checked when it is made, so that no other text gets into a path.
//!
//! Features, both on by default: `search` (`Sessions::search`) and `conformance` (`store::conformance`). The SDK, which has this crate as
//! `outrigger::sessions`, enables neither unless its own feature `search` is on.

// On docs.rs, items that need a feature show it.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
mod draft;
mod error;
mod file;
mod id;
pub mod lease;
mod owner;
pub mod place;
pub mod progress;
pub mod read;
pub mod record;
pub mod relocate;
pub mod repair;
#[cfg(feature = "search")]
pub mod search;
pub mod store;
pub mod watch;
pub mod write;

pub use error::{Error, Result};
pub use id::{AgentId, InvalidId, MessageId, SessionId};
pub use place::{SessionFile, Sessions};
pub use progress::Progress;
pub use read::{
    Cost, ListOptions, MessageKind, MessageOptions, Messages, SessionInfo, SessionMessage, Subagent, Tally,
    ToolDenialUnanswered, ToolResultMeta,
};
