//! Why the pinned `claude` could not be had.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::CACHE_VARIABLE;
use crate::claude::Platform;

/// The pinned `claude` could not be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot get Claude Code {version} for {platform}")]
#[non_exhaustive]
pub struct FetchError {
    /// The pinned version.
    pub version: String,
    /// The platform it was wanted for.
    pub platform: Platform,
    /// What went wrong.
    #[source]
    pub failure: Box<FetchFailure>,
}

/// What can go wrong when `claude` is fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchFailure {
    /// There is no package for this platform.
    #[error("there is no package for this platform")]
    UnsupportedPlatform,
    /// The environment names no directory for the cache.
    #[error("no directory for the cache: set HOME, XDG_CACHE_HOME or {CACHE_VARIABLE}")]
    NoCacheDirectory,
    /// The `npm` client is not installed.
    #[error("the npm client is needed to download it, and {npm:?} was not found; install Node.js with npm")]
    NpmMissing {
        /// What was looked for.
        npm: OsString,
    },
    /// npm failed.
    #[error("`{command}` failed ({status}): {said}")]
    NpmFailed {
        /// What was run.
        command: String,
        /// How it ended.
        status: String,
        /// The last of what it wrote.
        said: String,
    },
    /// It took too long.
    #[error("it took longer than {0:?}")]
    TimedOut(Duration),
    /// It was told to stop.
    #[error("it was stopped")]
    Stopped,
    /// The download is not what the pin says.
    #[error("{package} has the checksum {found} and not the pinned {expected}; nothing of it was kept")]
    IntegrityMismatch {
        /// The package.
        package: String,
        /// What the pin says.
        expected: String,
        /// What came.
        found: String,
    },
    /// The tarball holds no such executable, or one of another length.
    #[error("the tarball has no usable {0}")]
    NoExecutable(String),
    /// A file could not be read or written.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was to be done.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The thread that was fetching ended early.
    #[error("the fetching thread panicked")]
    Panicked,
}
