//! A program with one script and either CLI: `outrigger-sim play` and `outrigger-sim conform`.
//!
//! [`Scene`] puts one of two players in the place of `claude`: the simulated CLI, or the real one with a scripted Messages API behind it.
//! [`Play`] runs a program of any language with it. All processes of a run play one script together, and what the script expects is
//! judged once, at the end. What went through the pipes of each process is recorded, whichever the player is.
//!
//! ```text
//! program ─► bin/claude ─► outrigger-sim --in-run: becomes the player, with a recorder in each pipe
//!                                                  └─► run/0001.ndjson, run/0002.ndjson, …
//! ```

mod project;
mod recorded;
mod runner;
mod scene;
mod stage;

pub use recorded::{PlayedProcess, note_end};
pub use runner::{Play, PlayError, PlayedRun, Player};
pub use scene::{Scene, Setting};
pub(crate) use stage::PlayerStage;
pub use stage::{RecorderNotice, become_player, hand_over_stdout, record};

/// The variable with the file in which the processes of a run keep how far their script is.
pub const PROGRESS: &str = "OUTRIGGER_SIM_PROGRESS";

/// The variable with the file in which the frames of this process are recorded.
pub const FRAMES: &str = "OUTRIGGER_SIM_FRAMES";
