//! Lines that cannot be read.

use std::fmt;

use super::Position;

/// How much of a damaged line is shown, in bytes.
const SHOWN: usize = 160;

/// A line that is no record. Reading continues after it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {} (byte {}, {length} bytes): {reason}: {excerpt:?}", .position.line, .position.offset)]
#[non_exhaustive]
pub struct Damage {
    /// Where the line is.
    pub position: Position,
    /// The length of the line in bytes, without its `\n`.
    pub length: u64,
    /// The reason.
    pub reason: DamageReason,
    /// The beginning of the line, with U+FFFD for invalid UTF-8.
    pub excerpt: String,
}

/// Why a line is no record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageReason {
    /// The line is not JSON; with the parser's message.
    NotJson(String),
    /// The line is JSON, but no object.
    NotAnObject,
    /// The line has NUL bytes, as a file has where a machine stopped before its data was on the disk.
    Nuls,
    /// The last line, without a `\n`, and the beginning of a record: its writer did not finish, or is about to.
    Torn,
    /// The line is longer than the reader's limit, which is this many bytes.
    Oversized(usize),
}

impl Damage {
    pub(crate) fn of(position: Position, bytes: &[u8], length: u64, reason: DamageReason) -> Self {
        let reason = match reason {
            DamageReason::NotJson(_) if memchr::memchr(0, bytes).is_some() => DamageReason::Nuls,
            reason => reason,
        };
        let shown = &bytes[..bytes.len().min(SHOWN)];
        Self {
            position,
            length,
            reason,
            excerpt: String::from_utf8_lossy(shown).into_owned(),
        }
    }
}

impl fmt::Display for DamageReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson(why) => write!(f, "not JSON: {why}"),
            Self::NotAnObject => f.write_str("JSON, but no object"),
            Self::Nuls => f.write_str("NUL bytes, as after a crash of the machine"),
            Self::Torn => f.write_str("an unfinished last line"),
            Self::Oversized(cap) => write!(f, "longer than the {cap} bytes that are read of a line"),
        }
    }
}
