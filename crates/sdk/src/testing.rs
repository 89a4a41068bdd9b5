//! Peers that are not there, for the tests of programs that use this crate.
//!
//! Needs the cargo feature `testing`, which belongs into `[dev-dependencies]`:
//!
//! ```toml
//! [dev-dependencies]
//! outrigger = { version = "0.1", features = ["testing"] }
//! ```
//!
//! * [`Simulated`] is a transport to a simulated CLI in memory: turns, tools, permissions, hooks, and a scripted model. With a
//!   paused clock (`#[tokio::test(start_paused = true)]`) a test takes no time.
//! * `RealCli` is the real CLI with the same doors, behind a scripted API; it needs the feature `testing-real`.
//! * [`cassette`] returns options that play a recording of the real CLI, or record it if a variable is set. It is made of
//!   [`Recording`], a transport around another one, and [`Replay`], one that plays what that wrote.
//! * [`recorded_events`] are the events of a cassette.
//! * [`snapshot`] makes values of frames that are the same in each run.
//! * [`Faulty`] is a transport around another one, with a schedule of faults;
//!   [`chaos`](mod@sim::fault::chaos) tries many schedules, and finds the shortest that breaks a test.
//!
//! * [`assert`](mod@assert) asks of what went through, wherever it was recorded: which tools ran, what was asked and answered, what it
//!   cost. [`Traced`] is a transport around another that keeps it, for sessions of the real CLI too.
//!
//! What plays the CLI is the crate `outrigger-sim`, which knows nothing of this one; it is here as [`sim`].

mod faulty;
mod once;
#[cfg(feature = "testing-real")]
mod real_cli;
mod recorded;
mod recording;
mod replay;
mod simulated;
mod snapshot;
mod traced;

use std::path::{Path, PathBuf};

pub use faulty::Faulty;
pub use once::{OnceError, RECORD, cassette};
pub use outrigger_sim as sim;
pub use outrigger_sim::assert;
#[cfg(feature = "testing-real")]
pub use real_cli::{RealCli, RealCliError};
pub use recorded::{Recorded, recorded_events};
pub use recording::Recording;
pub use replay::Replay;
pub use simulated::Simulated;
pub use snapshot::{snapshot, snapshot_all};
pub use traced::Traced;

/// The file of this session of a cassette, counted from 1: `it.ndjson`, `it.2.ndjson`, …
fn numbered(path: &Path, number: usize) -> PathBuf {
    if number < 2 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(format!(".{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}
