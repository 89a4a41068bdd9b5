//! The stored session behind a session.

use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::error::{Error, Result};
use crate::exchange::next_bytes;

/// The transcript of a session on its way here: lines of JSON, in pieces of any length.
#[derive(Debug)]
pub struct Transcript {
    body: Incoming,
    silence: Duration,
}

impl Transcript {
    pub(crate) fn new(body: Incoming, silence: Duration) -> Self {
        Self { body, silence }
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    ///
    /// # Errors
    /// When the connection breaks, or nothing comes for the time in which a stream may be silent. What came is a part of the transcript.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        match timeout(self.silence, next_bytes(&mut self.body)).await {
            Ok(read) => read,
            Err(_) => Err(Error::TimedOut(self.silence)),
        }
    }
}
