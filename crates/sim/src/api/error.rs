//! What can go wrong on the test's side of the scripted API.

use std::io;

/// The server could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error("cannot listen on a loopback port for the scripted Messages API")]
pub struct StartError {
    /// The error of the operating system.
    #[source]
    pub cause: io::Error,
}
