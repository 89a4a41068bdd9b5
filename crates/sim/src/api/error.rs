//! What can go wrong on the test's side of the scripted API.

use std::io;
use std::time::Duration;

/// The server could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error("cannot listen on a loopback port for the scripted Messages API")]
pub struct StartError {
    /// The error of the operating system.
    #[source]
    pub cause: io::Error,
}

/// Something that a test waited for did not happen in time.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
#[error("waited {within:?} for {what}; {seen}")]
pub struct WaitError {
    /// The condition that did not come true.
    pub what: String,
    /// How long.
    pub within: Duration,
    /// The requests up to then.
    pub seen: String,
}
