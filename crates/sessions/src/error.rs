//! What can go wrong.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::id::{AgentId, InvalidId, SessionId};
use crate::owner::Busy;

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something could not be done with sessions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is neither `CLAUDE_CONFIG_DIR` nor a home directory.
    #[error("the config directory is unknown: set CLAUDE_CONFIG_DIR, or HOME, or name it with Sessions::at")]
    NoConfigDir,
    /// `CLAUDE_CODE_PROJECT_DIR_NAME`, or the name that was given in its place, is none that the CLI accepts.
    #[error("{0:?} is no name for the directory of a project: 1 to 64 of A-Z, a-z, 0-9, `_` and `-` are")]
    ProjectDirName(String),
    /// A text is no id.
    #[error(transparent)]
    Id(#[from] InvalidId),
    /// There is no such session where it was looked for.
    #[error("{0}")]
    NotFound(Box<NotFound>),
    /// An argument cannot be used.
    #[error("{what} cannot be used: {why}")]
    Invalid {
        /// The argument.
        what: &'static str,
        /// The reason.
        why: String,
    },
    /// There is something already where something new was to be, and it was left as it is.
    #[error("{} exists already; it was left as it is", .0.display())]
    Exists(PathBuf),
    /// A file has changed since it was read.
    #[error("{} was written to meanwhile; nothing was changed", .0.display())]
    Changed(PathBuf),
    /// The observer [of the progress](crate::progress) stopped the operation, or [`LeaseClaim::stop`](crate::lease::LeaseClaim::stop) a claim.
    #[error("it was stopped; nothing was changed")]
    Stopped,
    /// A session cannot be resumed where it ran.
    #[error("session {id} ({}) {}; it can be moved to another directory", file.display(), match dir {
        Some(dir) => format!("ran in {}, which is no directory here", dir.display()),
        None => "does not say where it ran".to_owned(),
    })]
    NoDirectory {
        /// The session.
        id: SessionId,
        /// The directory in which it ran, if it is recorded.
        dir: Option<PathBuf>,
        /// The transcript of the session.
        file: PathBuf,
    },
    /// Another process drives the session.
    #[error("{0}; wait for its end, fork it, or take it over")]
    Busy(Box<Busy>),
    /// A session has no such subagent.
    #[error("session {session} has no subagent {agent} in {}", searched.display())]
    NoSubagent {
        /// The session.
        session: SessionId,
        /// The missing subagent.
        agent: AgentId,
        /// Where the session's transcript was looked for.
        searched: PathBuf,
    },
    /// Another process has taken the session over.
    #[error("{0}; its former holder must stop")]
    Fenced(Box<Busy>),
    /// A transcript was repaired, and what another process appended to it meanwhile is not in it.
    #[error("{} is repaired, and records that were appended meanwhile are at the end of {} alone: {source}", file.display(), backup.display())]
    NotCarriedOver {
        /// The transcript.
        file: PathBuf,
        /// The old transcript, with these records at its end.
        backup: PathBuf,
        /// Why they could not be carried over.
        source: Box<Error>,
    },
    /// A file or directory could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation, such as `read`.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn invalid(what: &'static str, why: impl Into<String>) -> Self {
        let why = why.into();
        Self::Invalid { what, why }
    }

    /// Makes the function that names the file in an error of the system, for `map_err`.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    /// A file that was just written does not exist any more.
    pub(crate) fn gone(path: &Path) -> Self {
        Self::io("find", path)(io::ErrorKind::NotFound.into())
    }
}

/// Where a session was looked for in vain, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotFound {
    /// The missing session.
    pub id: SessionId,
    /// The directories in which there is no file of it, or an empty one.
    pub searched: Vec<PathBuf>,
    /// Files of this session in other projects: what `dir` kept out of the search.
    pub elsewhere: Vec<PathBuf>,
}

impl From<NotFound> for Error {
    fn from(not_found: NotFound) -> Self {
        Self::NotFound(Box::new(not_found))
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST_NAMED: usize = 5;
        let list = |f: &mut fmt::Formatter<'_>, paths: &[PathBuf]| {
            for (nth, path) in paths.iter().take(MOST_NAMED).enumerate() {
                write!(f, "{}{}", if nth == 0 { "" } else { ", " }, path.display())?;
            }
            match paths.len().saturating_sub(MOST_NAMED) {
                0 => Ok(()),
                more => write!(f, " and {more} more"),
            }
        };
        write!(f, "no session {}", self.id)?;
        if !self.searched.is_empty() {
            f.write_str(" in ")?;
            list(f, &self.searched)?;
        }
        if self.elsewhere.is_empty() {
            f.write_str(", nor in any other project")
        } else {
            f.write_str("; it is in ")?;
            list(f, &self.elsewhere)?;
            f.write_str(" (ask with that project's directory, or with none)")
        }
    }
}

impl std::error::Error for NotFound {}
