//! What an error says, as data.

use std::error::Error as _;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use crate::cause::Cause;
use crate::error::Error;
use crate::outcome::Outcome;
use crate::peer::Exit;

/// What an [`Error`] says, as data that can be written and read: the message, the causes, and what its methods return.
///
/// An error holds errors of other crates, so an error that was read back is this, and no `Error`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
#[serde(default)]
pub struct ErrorReport {
    /// What kind of error it is: `invalid`, `spawn`, `timeout`, `stalled`, `refusal`, `store`, `files`, `unsupported`, `misfit`,
    /// `ended`, `closed`, `busy`, `not_open`, `turn_failed`, `output`, `lease` or `other`.
    pub kind: String,
    /// The message, by `Display`.
    pub message: String,
    /// The messages of the errors that led to it, the nearest first.
    pub sources: Vec<String>,
    /// See [`Error::cause`].
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "known_cause")]
    pub cause: Option<Cause>,
    /// See [`Error::hint`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// See [`Error::is_transient`].
    pub is_transient: bool,
    /// See [`Error::retry_after`], in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The phase that stalled, by its [name](crate::Phase::name); see [`Error::stalled`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalled: Option<String>,
    /// See [`Error::outcome`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The exit code of the process, if the error is about its end; see [`Error::exit`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_signal: Option<i32>,
    /// See [`Error::stderr_tail`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_tail: Option<String>,
}

/// A cause that this build does not know does not make the rest unreadable.
fn known_cause<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Cause>, D::Error> {
    let json = Option::<outrigger_protocol::RawJson>::deserialize(deserializer)?;
    Ok(json.and_then(|json| json.decode().ok()))
}

impl ErrorReport {
    /// How long to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after_ms.map(Duration::from_millis)
    }
}

impl Error {
    /// What this error says, as data that can be written and read.
    pub fn report(&self) -> ErrorReport {
        let mut sources = Vec::new();
        let mut source = self.source();
        while let Some(error) = source {
            sources.push(error.to_string());
            source = error.source();
        }
        let Exit { code, signal } = self.exit().unwrap_or_default();
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        ErrorReport {
            kind: self.kind_name().to_owned(),
            message: self.to_string(),
            sources,
            cause: self.cause(),
            hint: self.hint().map(str::to_owned),
            is_transient: self.is_transient(),
            retry_after_ms: self.retry_after().map(ms),
            stalled: self.stalled().map(|phase| phase.name().to_owned()),
            outcome: self.outcome().cloned(),
            exit_code: code,
            exit_signal: signal,
            stderr_tail: self.stderr_tail().map(str::to_owned),
        }
    }
}

/// Writes the error's [report](Error::report).
impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.report().serialize(serializer)
    }
}
