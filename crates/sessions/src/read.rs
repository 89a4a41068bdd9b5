//! Reads sessions: lists, metadata, and messages.

mod chain;
mod cost;
mod index;
mod info;
pub(crate) mod list;
pub(crate) mod lite;
mod message;
mod messages;
pub(crate) mod prompt;
mod subagents;
mod tally;
#[cfg(test)]
mod tests;

pub use cost::{Cost, ModelCost};
pub use info::SessionInfo;
pub use list::ListOptions;
pub use message::{MessageKind, SessionMessage, ToolDenialUnanswered, ToolResultMeta};
pub use messages::{MessageOptions, Messages};
pub use subagents::Subagent;
pub use tally::Tally;
