//! The steps of a stand-in.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::inject::Grandchild;

/// One step.
///
/// Frames and texts of a script may have names for values that are known only when it runs:
///
/// | name | value |
/// |---|---|
/// | `$prompt`, `$prompt.N` | the uuid of the last prompt that was taken, or of the Nth, from 0 |
/// | `$request`, `$request.N` | the same for the ids of control requests |
/// | `$uuid` | a uuid that was not used before |
/// | `$i` | inside a [`Repeat`](Self::Repeat), the number of the round; also within longer strings |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FaultyStep {
    /// Waits for a line of the client that has at least this in it, and takes it. Lines that it passes over wait for their own
    /// steps. At the end of the input the stand-in exits with 98.
    Await(Value),
    /// Takes that many such lines.
    Gather {
        /// How many.
        times: usize,
        /// The parts that these lines have.
        like: Value,
    },
    /// Waits for the end of the input.
    AwaitEnd,
    /// Writes a frame, on a line.
    Line(Value),
    /// Writes bytes. No line end is added.
    Raw(Vec<Piece>),
    /// Writes bytes a few at a time, and waits after each write until the client has taken it: it sees these cuts and no others.
    Cut {
        /// The bytes.
        pieces: Vec<Piece>,
        /// How many bytes at a time.
        every: usize,
    },
    /// Writes to stderr.
    Stderr(Vec<Piece>),
    /// Does steps again and again.
    Repeat {
        /// How often.
        times: usize,
        /// What.
        steps: Vec<FaultyStep>,
    },
    /// Ends at once. Written bytes stay in the pipes.
    Die(Death),
    /// Closes stdout and lives on.
    CloseStdout,
    /// Closes stdin and lives on.
    CloseStdin,
    /// From here on ignores SIGTERM, SIGINT and SIGHUP.
    Survive,
    /// Starts a process of its own and waits until it runs.
    Grandchild(Grandchild),
    /// Does nothing more: reads nothing, writes nothing, does not end.
    Hold,
}

/// How to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Death {
    /// With an exit code.
    Code(i32),
    /// By a signal of this number, which the stand-in sends itself.
    Signal(i32),
}

/// Bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// A text.
    Text(String),
    /// A text, repeated this many times.
    Times(String, usize),
    /// Bytes, which need not be text.
    Bytes(Vec<u8>),
}

/// Something that happened to a stand-in, for its log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The stand-in began; its process id.
    Began(u32),
    /// The stand-in took a line off its input; a string if it is not JSON.
    Received(Value),
    /// The stand-in's input ended.
    EndOfInput,
    /// The stand-in started a process of this id.
    Grandchild(u32),
    /// The other end of stdout is closed.
    NobodyReads,
    /// A step waited for a line and the input ended.
    InVain(Value),
}

impl From<&str> for Piece {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Piece {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Piece {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}
