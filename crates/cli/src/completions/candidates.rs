//! What a shell is offered that only the disk knows. Each reads little, and whatever is missing or wrong there is offered as nothing.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use outrigger::protocol::tools::AgentModel;

use super::{shows_help, typed, words};
use crate::sessions::Offered;
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

/// The ids that begin so, with the time of the last word and the title as their help.
fn ids(begin: &OsStr, dir: Option<PathBuf>) -> Vec<CompletionCandidate> {
    let Some(begin) = begin.to_str() else {
        return Vec::new();
    };
    let found = sessions::offered(begin, dir.as_deref(), shows_help());
    let candidate = |session: Offered| {
        let written = session.written.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut help = i64::try_from(written.as_millis()).map(ago).unwrap_or_default();
        if let Some(title) = session.title {
            help = format!("{help}, {title}");
        }
        CompletionCandidate::new(session.id).help(Some(help.into()))
    };
    found.into_iter().map(candidate).collect()
}

/// The ids of the subagents of the session whose id was typed, with what each was to do as its help.
pub(crate) fn subagents() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let own = typed("--agent");
        let words = words().into_iter().filter(|word| Some(word) != own.as_ref());
        let words: Vec<String> = words.filter_map(|word| word.into_string().ok()).collect();
        let found = sessions::offered_agents(&words, typed("--dir").map(PathBuf::from));
        let candidate =
            |(id, task): (String, Option<String>)| CompletionCandidate::new(id).help(task.map(Into::into));
        found.into_iter().map(candidate).collect()
    })
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
