//! Finding the CLI, and telling why it was not found.
//!
//! In this order: the path that the program gives, `OUTRIGGER_CLAUDE`, `CLAUDE_CODE_EXECUTABLE`, the absolute entries of the
//! `PATH`, the places where installers put it. The current directory is never searched, and a batch file is never run.

mod binary;
mod doctor;
mod install_paths;
#[cfg(test)]
mod tests;
mod version_request;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub(crate) use binary::is_module;
pub use binary::{Binary, Format, Libc, Unusable};
pub use doctor::{
    AuthSource, Candidate, Directory, Doctor, DoctorReport, Machine, Problem, Severity, VersionCheck, doctor,
};
pub(crate) use version_request::{Command, VersionAnswer};

use crate::cause::Cause;
use crate::env::Surroundings;
use crate::error::debug_for_people;

/// The variables that name the CLI, first come first served.
pub const VARIABLES: &[&str] = &["OUTRIGGER_CLAUDE", "CLAUDE_CODE_EXECUTABLE"];

/// How a path came to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FoundBy {
    /// [`Options::cli_path`](crate::options::Options::cli_path).
    Given,
    /// A variable of the environment; one of [`VARIABLES`].
    Variable(String),
    /// A directory on the `PATH`.
    Path,
    /// A place where installers put it.
    Installer,
}

impl fmt::Display for FoundBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given => f.write_str("the given path"),
            Self::Variable(name) => f.write_str(name),
            Self::Path => f.write_str("PATH"),
            Self::Installer => f.write_str("an installer's place"),
        }
    }
}

/// The CLI, found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveredCli {
    /// The absolute path of the CLI. Symbolic links are left as they are: the installer moves them when it updates.
    pub path: PathBuf,
    /// How the CLI was found.
    pub origin: FoundBy,
    /// What kind of program it is.
    pub binary: Binary,
}

/// The CLI was not found, or what was named cannot be run.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindError {
    /// A path that was named explicitly cannot be run. Nothing else is tried then: another installation than the one that
    /// was asked for would be a surprise.
    Unusable {
        /// The path.
        path: PathBuf,
        /// What named the path.
        origin: FoundBy,
        /// The problem.
        why: Unusable,
    },
    /// Nothing usable lies where the CLI usually is.
    NotFound {
        /// The files that are there but cannot be run, with the reason.
        refused: Vec<(PathBuf, Unusable)>,
        /// The paths that were tried and do not exist.
        tried: Vec<PathBuf>,
    },
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable { path, origin, why } => {
                write!(f, "cannot run {} ({origin}): {why}", path.display())
            }
            Self::NotFound { refused, tried } => {
                write!(f, "claude is in none of {} places", refused.len() + tried.len())?;
                for (path, why) in refused {
                    write!(
                        f,
                        "; {} was passed over: {why} ({})",
                        path.display(),
                        why.advice()
                    )?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for FindError {}

debug_for_people!(FindError);

impl FindError {
    pub(crate) fn cause(&self) -> Cause {
        match self {
            Self::Unusable { why, .. } => why.cause(),
            Self::NotFound { .. } => Cause::BinaryMissing,
        }
    }

    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Unusable { why, .. } => why.advice(),
            Self::NotFound { .. } => {
                "install Claude Code (https://code.claude.com/docs/en/setup), or name the program with `cli_path` or \
                 OUTRIGGER_CLAUDE; `outrigger doctor` shows what is found"
            }
        }
    }
}

/// Finds the CLI. `given` outranks everything else; a relative path with a directory in it is taken from the current
/// directory of `surroundings`. Only reads files, starts nothing.
///
/// # Errors
///
/// [`FindError::Unusable`] if a path that was named cannot be run, [`FindError::NotFound`] if none was named and none found.
pub fn find(given: Option<&Path>, surroundings: &Surroundings) -> Result<DiscoveredCli, FindError> {
    let (mut refused, mut tried) = (Vec::new(), Vec::new());
    for (path, origin) in candidates(given, surroundings) {
        let named = matches!(origin, FoundBy::Given | FoundBy::Variable(_));
        let inspected = if path.is_absolute() {
            binary::inspect(&path, surroundings)
        } else {
            Err(Unusable::NotAbsolute)
        };
        match inspected {
            Ok(binary) => return Ok(DiscoveredCli { path, origin, binary }),
            Err(why) if named => return Err(FindError::Unusable { path, origin, why }),
            Err(Unusable::Missing) => tried.push(path),
            Err(why) => refused.push((path, why)),
        }
    }
    Err(FindError::NotFound { refused, tried })
}

/// Every path worth a look, best first, without repetitions.
pub(crate) fn candidates(given: Option<&Path>, surroundings: &Surroundings) -> Vec<(PathBuf, FoundBy)> {
    let mut all: Vec<(PathBuf, FoundBy)> = Vec::new();
    let mut add = |path: PathBuf, origin: FoundBy| {
        if all.iter().all(|(known, _)| *known != path) {
            all.push((path, origin));
        }
    };
    if let Some(given) = given {
        add(absolute(given, surroundings), FoundBy::Given);
    }
    for variable in VARIABLES {
        if let Some(path) = surroundings.var(variable) {
            add(PathBuf::from(path), FoundBy::Variable((*variable).to_owned()));
        }
    }
    for directory in path_directories(surroundings) {
        add(directory.join(install_paths::PROGRAM), FoundBy::Path);
    }
    for place in install_paths::places(surroundings) {
        add(place, FoundBy::Installer);
    }
    all
}

/// A bare name stays as it is and is refused later: it would mean "somewhere", and `PATH` is searched anyway.
fn absolute(given: &Path, surroundings: &Surroundings) -> PathBuf {
    match &surroundings.cwd {
        Some(cwd) if given.components().count() > 1 => cwd.join(given),
        _ => given.to_owned(),
    }
}

/// A program on the `PATH`, by its name as the system has it.
pub(crate) fn on_path(name: &str, surroundings: &Surroundings) -> Option<PathBuf> {
    path_directories(surroundings)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

/// The `PATH` without its empty and relative entries, which mean the current directory or lie below it.
fn path_directories(surroundings: &Surroundings) -> impl Iterator<Item = PathBuf> + use<> {
    let path = surroundings
        .var("PATH")
        .map(ToOwned::to_owned)
        .unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .collect::<Vec<_>>()
        .into_iter()
}
