//! What a shell is offered that only the disk knows. Each reads little, and whatever is missing or wrong there is offered as nothing.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use outrigger::protocol::tools::AgentModel;

use super::typed;
use crate::time::ago;
use crate::{config, sessions};

/// The ids of sessions: those of the project at `--dir`; without that those of the project here, or if it has none that begin so, those
/// of all projects.
pub(crate) fn sessions() -> ArgValueCompleter {
    ArgValueCompleter::new(|begin: &OsStr| ids(begin, typed("--dir").map(PathBuf::from)))
}

/// The ids of sessions that the CLI finds where it is to work: those of the project at `--cwd`, or here.
pub(crate) fn resumable() -> ArgValueCompleter {
    ArgValueCompleter::new(|begin: &OsStr| {
        let cwd = typed("--cwd").unwrap_or_else(|| ".".into());
        ids(begin, Some(PathBuf::from(cwd)))
    })
}

/// With the time of the last word as their help.
fn ids(begin: &OsStr, dir: Option<PathBuf>) -> Vec<CompletionCandidate> {
    let Some(begin) = begin.to_str() else {
        return Vec::new();
    };
    let found = sessions::offered(begin, dir.as_deref());
    let candidate = |(id, written): (String, SystemTime)| {
        let written = written.duration_since(UNIX_EPOCH).unwrap_or_default();
        let written = i64::try_from(written.as_millis()).map(ago).unwrap_or_default();
        CompletionCandidate::new(id).help(Some(written.into()))
    };
    found.into_iter().map(candidate).collect()
}

/// The profiles of the configuration file: that of `--config`, or the usual one.
pub(crate) fn profiles() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let names = config::profiles(typed("--config").map(PathBuf::from)).into_iter();
        // What a shell would not take for one word is left to be typed.
        let is_plain = |name: &String| name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
        names.filter(is_plain).map(CompletionCandidate::new).collect()
    })
}

/// The families of models, which are aliases of their newest ones.
pub(crate) fn models() -> ArgValueCandidates {
    ArgValueCandidates::new(|| AgentModel::KNOWN.iter().map(CompletionCandidate::new).collect())
}
