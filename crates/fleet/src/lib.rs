//! Many sessions of the Claude Code CLI at once.
//!
//! The [`gate`] is for sessions that share an account: it limits how many turns run, and when the API refuses one session's
//! requests for want of capacity, no other session begins a turn before the API accepts requests again.
//!
//! ```no_run
//! use outrigger::Agent;
//! use outrigger_fleet::gate::{Gate, Limits, Visitor};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut limits = Limits::default();
//! limits.max_running = 8;
//! let gate = Gate::new(limits);
//!
//! let session = Agent::builder().start().await?;
//! let pass = gate.enter(Visitor::new("review 17")).await?;
//! let turn = session.prompt("Review the last commit.").await?;
//! let answer = pass.guard(turn).answer().await?;
//! println!("{}", answer.text());
//! # Ok(())
//! # }
//! ```

pub mod gate;

/// The examples of the page on many sessions, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/many-sessions.md")]
struct ManySessions;
