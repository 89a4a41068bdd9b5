//! Simulated processes in place of the Claude Code CLI.
//!
//! * [`Steps`] follows its steps, line by line, and rejects everything else: for special cases.
//! * [`Agent`] plays the CLI, with turns, permissions, queueing and control requests: for everything else.
//! * [`faulty`] is a real process that misbehaves on command: for faults that only a process can have.
//!
//! `Steps` and `Agent` use any reader and writer. In memory, with a paused clock, a test of a client takes no time at all:
//!
//! ```
//! use outrigger_sim::peer::{Agent, Exit};
//! use tokio::io::AsyncWriteExt as _;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let (mut client, agent) = Agent::builder().directives().spawn_in_memory();
//! client.stdin.write_all(b"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"%say hi\"}}\n").await?;
//! drop(client.stdin);
//! assert_eq!(agent.exit().await, Exit::Code(0));
//! assert_eq!(agent.report().sent_kinds(), ["system/init", "assistant", "result/success"]);
//! # Ok(())
//! # }
//! ```

pub mod agent;
mod command_line;
pub mod faulty;
mod io;
mod steps;

pub use agent::{Agent, Brain};
pub use command_line::{CommandLine, Refusal, Surroundings};
#[cfg(feature = "claude")]
pub(crate) use io::LineReader;
pub(crate) use io::{NoLine, Pipes};
pub use steps::{ReceivedLines, Steps};

pub use crate::matcher::Match;
pub use crate::script::Reply;

pub use crate::running::{ClientIo, Exit, Line, Mismatch, Report, Running, Signal};
