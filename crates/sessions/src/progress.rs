//! Progress of long operations, and cancelling them.
//!
//! Operations on whole sessions report how many bytes are done, and stop if the observer returns `Break`: the functions
//! whose names end in `_observed`.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use outrigger_sessions::{Error, Sessions};
//!
//! # fn main() -> outrigger_sessions::Result<()> {
//! # let is_wanted = || true;
//! let imported = Sessions::from_env()?.import_observed("login.session", ".", |progress| {
//!     eprint!("\r{} of {} bytes", progress.done, progress.total);
//!     if is_wanted() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
//! });
//! match imported {
//!     Err(Error::Stopped) => eprintln!("nothing was imported"),
//!     imported => println!("{}", imported?.file.id),
//! }
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::io::{ErrorKind, Read};
use std::ops::ControlFlow;
use std::path::Path;

use crate::error::{Error, Result};

/// How much is done between two reports at least, in bytes.
const STEP: u64 = 256 * 1024;

/// How much is copied at a time.
const CHUNK: usize = 256 * 1024;

/// The progress of a long operation.
///
/// The first report has nothing done, the last one all. In between `done` never decreases, and never exceeds `total`, which is
/// counted once at the beginning: bytes that are appended meanwhile do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// How many bytes are done.
    pub done: u64,
    /// How many there are in all: of a session those of its transcript and of what belongs to it, of an import those of its file.
    pub total: u64,
}

impl Progress {
    /// Adds to the bytes done; `since` counts bytes that were not reported yet. Returns whether a report is due.
    pub(crate) fn add(&mut self, bytes: u64, since: &mut u64) -> bool {
        self.done = self.done.saturating_add(bytes);
        *since = since.saturating_add(bytes);
        let is_worth_it = *since >= STEP;
        if is_worth_it {
            *since = 0;
        }
        is_worth_it
    }

    /// The report before the end: only the last report has all bytes done.
    pub(crate) fn before_end(self) -> Self {
        let done = self.done.min(self.total.saturating_sub(1));
        Self { done, ..self }
    }
}

/// An operation that may have an observer.
pub(crate) struct Meter<'o> {
    observe: Option<&'o mut dyn FnMut(Progress) -> ControlFlow<()>>,
    at: Progress,
    since: u64,
}

impl fmt::Debug for Meter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl<'o> Meter<'o> {
    /// Progress that nobody listens to.
    pub(crate) fn unheard() -> Self {
        Self {
            observe: None,
            at: Progress::default(),
            since: 0,
        }
    }

    /// Reports everything to `observe`.
    pub(crate) fn of(observe: &'o mut dyn FnMut(Progress) -> ControlFlow<()>) -> Self {
        Self {
            observe: Some(observe),
            ..Self::unheard()
        }
    }

    /// Whether the total needs to be known.
    pub(crate) fn is_heard(&self) -> bool {
        self.observe.is_some()
    }

    /// Reports the total.
    pub(crate) fn begin(&mut self, total: u64) -> Result<()> {
        self.at = Progress { done: 0, total };
        self.since = 0;
        self.observe(self.at)
    }

    /// So much more is done.
    pub(crate) fn add(&mut self, bytes: u64) -> Result<()> {
        if self.at.add(bytes, &mut self.since) {
            return self.ask_observer();
        }
        Ok(())
    }

    /// Everything is done, and cannot be stopped any more.
    pub(crate) fn end(&mut self) {
        let done = self.at.total;
        let _ = self.observe(Progress { done, ..self.at });
    }

    /// Asks the observer whether to continue; the last time is when all is copied and nothing of it is visible yet.
    pub(crate) fn ask_observer(&mut self) -> Result<()> {
        self.observe(self.at.before_end())
    }

    fn observe(&mut self, progress: Progress) -> Result<()> {
        let Some(observe) = &mut self.observe else {
            return Ok(());
        };
        match observe(progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Stopped),
        }
    }

    /// Copies the rest of `from`, which is a part of `source`, and returns its length.
    pub(crate) fn copy(
        &mut self,
        from: &mut impl Read,
        source: &Path,
        mut write: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<u64> {
        let mut buffer = vec![0; CHUNK];
        let mut copied = 0;
        loop {
            let read = match from.read(&mut buffer) {
                Ok(0) => return Ok(copied),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::io("read", source)(error)),
            };
            write(&buffer[..read])?;
            copied += read as u64;
            self.add(read as u64)?;
        }
    }
}

#[cfg(test)]
mod tests;
