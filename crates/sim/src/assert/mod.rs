//! Assertions on the frames of a conversation.
//!
//! A [`Trace`] is a conversation from any source: a simulator's [`Report`], a cassette, a session of the real CLI that
//! `outrigger::testing::Traced` records.
//! A failed assertion reads well in the output of `unwrap`: it has the reason, and the lines around it.
//!
//! ```
//! use outrigger_sim::assert::{Trace, question, tool};
//! use outrigger_sim::peer::Agent;
//! use serde_json::json;
//! use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let (mut client, agent) = Agent::builder().directives().allowed_tools(["Read"]).spawn_in_memory();
//! client.stdin.write_all(b"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"%tool Read {\\\"file_path\\\": \\\"/a\\\"}\\n%say done\"}}\n").await?;
//! drop(client.stdin);
//! client.stdout.read_to_end(&mut Vec::new()).await?;
//! let trace = Trace::from(&agent.join().await);
//!
//! trace.called([tool("Read").input(json!({"file_path": "/a"}))]).unwrap();
//! trace.asked::<[outrigger_sim::assert::Question; 0]>([]).unwrap();
//! trace.cost_below(0.01).unwrap();
//! trace.turns_below(3).unwrap();
//! trace.all_answered().unwrap();
//! trace.nothing_unknown().unwrap();
//!
//! let wrong = trace.called([tool("Bash")]).unwrap_err();
//! assert!(wrong.to_string().contains("tool call 1: expected Bash"), "{wrong}");
//! # let _ = question("Bash").denied();
//! # Ok(())
//! # }
//! ```
//!
//! [`Report`]: crate::peer::Report

mod asked;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(test)]
mod tests;
mod tool_calls;
mod trace;

pub use asked::{Answer, CliRequest, Question, question};
#[cfg(target_os = "linux")]
pub use processes::{living_of, no_process_left};
pub use tool_calls::{Tool, ToolCall, tool};
pub use trace::{Trace, Violation};
