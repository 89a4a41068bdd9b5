//! A CLI that misbehaves on command: a real process that does wrong whatever a program that drives one has to survive.
//!
//! [`Faulty`] is a script: steps that are done one after the other, each of which can be read on its own. The steps are plain
//! data, so that a script travels as JSON to the executable `outrigger-sim-faulty`, which [`executable`] finds (and has
//! cargo build, in a workspace, when it is not there or of another build than its caller).
//!
//! | variable | meaning |
//! |---|---|
//! | [`SCRIPT`] | the file with the script, as JSON |
//! | [`LOG`] | the file to which a [`Note`] a line is appended; optional |
//!
//! What it waits for are lines of its client, never times. It reads its stdin in the steps that wait, and in no other, so that
//! whatever it writes, it writes without reading. After its last step it reads to the end of its input and exits with 0.
//!
//! ```
//! use outrigger_sim::peer::faulty::{Death, Faulty};
//!
//! // Answers, begins a turn, says something, and is killed in the middle of a line.
//! let script = Faulty::new()
//!     .initialize()
//!     .prompt()
//!     .say("so far so good")
//!     .raw("{\"type\":\"assis")
//!     .die(Death::Signal(9));
//! assert!(script.to_json().contains("so far so good"));
//! ```

pub mod frames;
mod locate;
mod play;
#[cfg(unix)]
mod process;
mod script;
mod step;

pub use locate::{Missing, executable, fingerprint};
#[cfg(unix)]
pub use process::main;
pub use script::Faulty;
pub use step::{Death, Note, Piece, Step};

pub use crate::inject::Grandchild;
#[cfg(unix)]
pub use crate::inject::be_grandchild;

/// Names the file with the script.
pub const SCRIPT: &str = "OUTRIGGER_FAULTY_SCRIPT";

/// Names the file that is written to, a [`Note`] a line.
pub const LOG: &str = "OUTRIGGER_FAULTY_LOG";
