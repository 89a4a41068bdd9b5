//! A CLI that misbehaves on command: a real process with all the faults that a program which drives one has to survive.
//!
//! [`FaultyScript`] is a script of steps that run one after the other. The steps are plain
//! data, so that a script travels as JSON to the executable `outrigger-sim-faulty`, which [`executable`] finds (in a
//! workspace it lets cargo build it, if it is missing or of another build than its caller).
//!
//! | variable | meaning |
//! |---|---|
//! | [`SCRIPT`] | the file with the script, as JSON |
//! | [`LOG`] | the file to which a [`Note`] a line is appended; optional |
//!
//! It waits for lines of its client, never for times. It reads its stdin only in the steps that wait, so that
//! its output never depends on reading. After its last step it reads to the end of its input and exits with 0.
//!
//! ```
//! use outrigger_sim::peer::faulty::{Death, FaultyScript};
//!
//! // Answers, begins a turn, says something, and is killed in the middle of a line.
//! let script = FaultyScript::new()
//!     .initialize()
//!     .prompt()
//!     .say("so far so good")
//!     .raw("{\"type\":\"assis")
//!     .die(Death::Signal(9));
//! assert!(script.to_json().contains("so far so good"));
//! ```

mod faulty_play;
mod faulty_step;
pub mod frames;
mod locate;
#[cfg(unix)]
mod program;
mod script;

pub use faulty_step::{Death, FaultyStep, Note, Piece};
pub use locate::{Missing, executable, fingerprint};
#[cfg(unix)]
pub use program::main;
pub use script::FaultyScript;

pub use crate::inject::Grandchild;
#[cfg(unix)]
pub use crate::inject::be_grandchild;

/// Names the file with the script.
pub const SCRIPT: &str = "OUTRIGGER_FAULTY_SCRIPT";

/// Names the file that is written to, a [`Note`] a line.
pub const LOG: &str = "OUTRIGGER_FAULTY_LOG";
