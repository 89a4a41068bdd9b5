//! Why the pinned `claude` could not be had.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::CACHE_VARIABLE;
use crate::Platform;

/// The pinned `claude` could not be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot get Claude Code {version} for {platform}")]
#[non_exhaustive]
pub struct FetchError {
    /// The pinned version.
    pub version: String,
    /// The platform that the CLI was wanted for.
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
        /// The missing program.
        npm: OsString,
    },
    /// npm failed.
    #[error("`{command}` failed ({status}): {said}")]
    NpmFailed {
        /// The command.
        command: String,
        /// How the program ended.
        status: String,
        /// The end of the program's output.
        said: String,
    },
    /// The download took too long.
    #[error("it took longer than {0:?}")]
    TimedOut(Duration),
    /// The download was stopped.
    #[error("it was stopped")]
    Stopped,
    /// The download differs from the pin.
    #[error("{package} has the checksum {found} and not the pinned {expected}; nothing of it was kept")]
    IntegrityMismatch {
        /// The package.
        package: String,
        /// The pinned checksum.
        expected: String,
        /// The checksum of the download.
        found: String,
    },
    /// The tarball holds no such executable, or one of another length.
    #[error("the tarball has no usable {0}")]
    NoExecutable(String),
    /// A file could not be read or written.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// The operation.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The thread that was fetching ended early.
    #[error("the fetching thread panicked")]
    Panicked,
}
