//! Files of JSON lines that are only appended to.

use std::fs::File;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// A file that gets a line at a time. A line is written whole before the next one begins.
#[derive(Debug)]
pub(super) struct Appender {
    inner: Mutex<NdjsonInner>,
}

#[derive(Debug)]
struct NdjsonInner {
    file: File,
    /// Why lines are missing, from the first that could not be written.
    failed: Option<String>,
}

impl Appender {
    pub(super) fn new(file: File) -> Self {
        Self {
            inner: Mutex::new(NdjsonInner { file, failed: None }),
        }
    }

    /// Appends a line. The first error is kept.
    pub(super) fn write<T: Serialize>(&self, line: &T) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let written = serde_json::to_vec(line)
            .map_err(std::io::Error::from)
            .and_then(|mut line| {
                line.push(b'\n');
                inner.file.write_all(&line)
            });
        if let Err(error) = written {
            tracing::error!(%error, "a line is lost that could not be written");
            inner.failed.get_or_insert_with(|| error.to_string());
        }
    }

    /// Why lines are missing, if any are.
    pub(super) fn failed(&self) -> Option<String> {
        self.inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .failed
            .clone()
    }
}
