//! Claude Code's sessions at rest: the transcripts that the CLI keeps below its config directory, found, listed and read without
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
//! Everything here is plain synchronous file work without a runtime: whoever is asynchronous calls it where blocking is allowed
//! (`tokio::task::spawn_blocking`).
//!
//! What to rely on:
//! * **Nothing is lost.** A [`Record`](record::Record) keeps the bytes of its line, whatever its type; a line that is none is a
//!   [`Damage`](record::Damage) with its position, and reading goes on behind it.
//! * **Nothing is held that is not asked for.** Lines are read one at a time and are bounded; a transcript may be larger than the
//!   memory.
//! * **An id is an id.** [`SessionId`] is the CLI's own, checked when it is made, so that no other text gets into a path.
//!
//! Features, both on by default: `search` (`Sessions::search`) and `conformance` (`store::conformance`). The SDK, which has this crate as
//! `outrigger::sessions`, leaves them out unless it is asked for its feature `search`.

// On docs.rs, what needs a feature says so.
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
    Cost, ListOptions, MessageKind, MessageOptions, Messages, SessionInfo, SessionMessage, Subagent,
    ToolDenialUnanswered, ToolResultMeta,
};
