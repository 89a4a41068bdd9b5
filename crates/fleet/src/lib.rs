//! Many sessions of the Claude Code CLI at once.
//!
//! The [`gate`] is for sessions that share an account: it limits how many turns run, and when the API refuses one session's
//! requests for want of capacity, no other session begins a turn before the API accepts requests again.
//!
//! A [`budget`] is for turns that share money: its cap is enforced before a turn begins, and while it runs.
//!
//! A [`batch`] runs many prompts, and goes on after its program was killed. A [supervised](supervise) session outlives its processes.
//! [`approvals`] outlive them, too: any process decides about a tool call, and any process has the decision carried out.
//!
//! ```no_run
//! use outrigger::Agent;
//! use outrigger_fleet::GuardedTurn;
//! use outrigger_fleet::budget::{Amount, Budget, Cap, Usd};
//! use outrigger_fleet::gate::{Gate, GateLimits, Visitor};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut limits = GateLimits::default();
//! limits.max_running = 8;
//! let gate = Gate::new(limits);
//! let budget = Budget::new("reviews", Cap::usd(Usd::from_dollars(20.0)?).per_day());
//!
//! let session = Agent::builder().start().await?;
//! let reservation = budget.reserve(Amount::usd(Usd::from_cents(50)))?;
//! let pass = gate.enter(Visitor::new("review 17")).await?;
//! let turn = session.prompt("Review the last commit.").await?;
//! let mut turn = GuardedTurn::new(turn).pass(pass).reservation(reservation);
//! println!("{}", turn.answer().await?.text());
//! # Ok(())
//! # }
//! ```

pub mod approvals;
pub mod batch;
pub mod budget;
pub mod gate;
mod guarded;
mod lasting;
mod session_watch;
pub mod supervise;
mod tool_watch;

pub use guarded::GuardedTurn;
pub use session_watch::{OnStarted, SessionWatch, StartReason, Starting};

/// The examples of the page on many sessions, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/many-sessions.md")]
struct ManySessions;
