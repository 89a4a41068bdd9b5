//! Drive the Claude Code CLI from Rust.

pub mod discover;
pub mod env;
pub mod options;

mod assemble;
mod child;
mod conn;
mod control;
mod error;
mod event;
mod ledger;
mod outcome;
pub mod permissions;
mod prompt;
mod query;
mod session;
mod start;
mod stats;
pub mod transport;
mod turn;
mod usage;

pub use assemble::{Assembler, PartialBlock, PartialContent};
pub use child::Local;
pub use error::{End, Error, Refusal, Result};
pub use event::{Event, Lag, SubagentEvent, ToolResult, ToolUse};
pub use ledger::{Task, TaskState, TaskUsage, Tasks};
pub use options::Options;
pub use outcome::{Outcome, Verdict};
pub use outrigger_protocol as protocol;
pub use permissions::Policy;
pub use prompt::Prompt;
pub use query::{Answer, Query};
pub use session::{Ambient, AmbientEvent, Frames, Interrupted, Session, SessionState};
pub use start::Agent;
pub use stats::Stats;
pub use turn::{OutcomeWatch, Turn};
pub use usage::{SessionUsage, Tokens, TurnUsage};
