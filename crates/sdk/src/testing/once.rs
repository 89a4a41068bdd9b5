//! Cassettes in one line of a test: recorded if a variable is set, else played.

use std::path::{Path, PathBuf};

use outrigger_sim::cassette::CassetteError;

use super::{Recording, Replay};
use crate::child::Local;
use crate::options::{Auth, Options};
use crate::start::Agent;

/// The variable that says whether cassettes are recorded: `1` or `all` records every cassette that a test asks for, `new` those
/// that are missing. Unset, empty or `0`: cassettes are played, and no process is started.
pub const RECORD: &str = "OUTRIGGER_RECORD";

/// Why there are no options for a cassette.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnceError {
    /// There is none yet.
    #[error(
        "there is no cassette {}: run the test once with {RECORD}=new to record it with the real CLI, and commit the file",
        .0.display()
    )]
    Missing(PathBuf),
    /// The variable has a value that means nothing.
    #[error(
        "{RECORD} is {0:?}: it may be 1 or all (record every cassette), new (record those that are missing), or 0 (record none)"
    )]
    Variable(String),
    /// The file is no cassette, or one that can't be read.
    #[error("{}: {error}", path.display())]
    Cassette {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        error: CassetteError,
    },
}

/// Options that play a cassette, or record it with the CLI on this machine if the variable [`RECORD`] is set.
///
/// A relative path is taken from the directory of the package whose test runs (`CARGO_MANIFEST_DIR`), or else from the working
/// directory. What the options get beside it (the model, a policy, tools) has to be the same each time; the account that pays
/// counts only when it is recorded: set it with [`Options::auth`], or leave it to the sign-in of the CLI.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let options = outrigger::testing::cassette("tests/cassettes/hello.ndjson")?;
/// let session = options.model("sonnet").start().await?;
/// let answer = session.prompt("Say hello.").await?.answer().await?;
/// assert!(answer.text().contains("ello"));
/// session.close().await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the cassette to play is missing or invalid, or when the variable has an invalid value.
pub fn cassette(path: impl AsRef<Path>) -> Result<Options, OnceError> {
    match once(path.as_ref(), std::env::var(RECORD).ok().as_deref())? {
        Once::Record(path) => Ok(Agent::builder()
            .auth(Auth::Inherit)
            .transport(Recording::new(Local::new(), path))),
        Once::Play(replay) => Ok(replay.options()),
    }
}

#[derive(Debug)]
enum Once {
    Record(PathBuf),
    Play(Replay),
}

fn once(path: &Path, variable: Option<&str>) -> Result<Once, OnceError> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let path = package.unwrap_or_default().join(path);
    let record = match variable {
        None | Some("" | "0") => false,
        Some("1" | "all") => true,
        Some("new") => !path.exists(),
        Some(other) => return Err(OnceError::Variable(other.to_owned())),
    };
    if record {
        return Ok(Once::Record(path));
    }
    if !path.exists() {
        return Err(OnceError::Missing(path));
    }
    let replay = Replay::open(&path).map_err(|error| OnceError::Cassette { path, error })?;
    Ok(Once::Play(replay))
}

#[cfg(test)]
#[path = "once_tests.rs"]
mod tests;
