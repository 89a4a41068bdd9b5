//! The effects of faults.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::grandchild::Grandchild;

/// The effect of a [`Fault`](super::Fault).
///
/// "Frame" is a line with its end. In files, an effect is a word with its parameters beside it:
/// `{"fault": "split", "bytes": 3}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "fault", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Effect {
    /// The frame is dropped.
    Drop {},
    /// The frame comes this much later, and so do those behind it.
    Delay {
        /// How much, in milliseconds.
        ms: u64,
    },
    /// The frame comes in two pieces, the first of this many bytes. A reader sees the cut, because it gets them in two reads.
    Split {
        /// Where the frame is cut.
        bytes: u64,
    },
    /// The frame comes in pieces of this many bytes.
    Chop {
        /// How many bytes a piece has; at least one.
        bytes: u64,
    },
    /// The frame and those behind it come in one read, as far as that is large enough.
    Merge {
        /// How many frames behind it are waited for.
        frames: u64,
    },
    /// The frame comes without its line end, so that the next one stands on the same line.
    Glue {},
    /// Bytes of the frame are changed, at random places to random values; its line end is not, and none is added.
    Corrupt {
        /// How many.
        bytes: u64,
    },
    /// Of the frame come only its first bytes, and its line end.
    Truncate {
        /// How many.
        bytes: u64,
    },
    /// The frame comes again and again.
    Duplicate {
        /// How many times more the frame comes.
        times: u64,
    },
    /// The frame comes behind frames that were written after it.
    Reorder {
        /// Behind how many. Where none follow, it comes after a while all the same.
        by: u64,
    },
    /// Nothing more comes, and the process lives. On the way to the CLI: it reads nothing more, and the pipe fills.
    Stall {
        /// For how long, in milliseconds; without it, until the process is ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ms: Option<u64>,
    },
    /// From here on bytes come no faster than this; on the way to the CLI: a slow reader.
    Slow {
        /// How many a second; at least one.
        bytes_per_second: u64,
    },
    /// The stream ends. On the way to the CLI: its stdin is closed, and writing to it fails.
    End {},
    /// The process ends with an exit code; what was written before arrives.
    Exit {
        /// The code.
        #[schemars(range(min = 0, max = 255))]
        code: i32,
    },
    /// The process ends by a signal; what was written before arrives.
    Signal {
        /// The number of the signal.
        #[schemars(range(min = 1, max = 31))]
        signal: i32,
    },
    /// From here on SIGTERM is ignored.
    IgnoreTerm {},
    /// The process starts a process of its own, which lives on.
    Grandchild(Grandchild),
    /// A frame comes that was never written.
    Insert {
        /// The frame; without it, one of a type that nobody has heard of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frame: Option<Value>,
    },
    /// The frame gets fields.
    AddFields {
        /// The fields; without any, one of a name that nobody has heard of.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        fields: Map<String, Value>,
    },
    /// A value in the frame becomes another, if it is there.
    SetValue {
        /// Where, as a JSON pointer: `/message/stop_reason`.
        pointer: String,
        /// The value; without it, a string that nobody has heard of.
        #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
    },
    /// A line comes that is no frame.
    Noise {
        /// The line.
        #[serde(default = "noise")]
        text: String,
    },
    /// This much is written to stderr, in lines, and nothing more to stdout until it was read.
    Stderr {
        /// How much.
        bytes: u64,
    },
}

fn noise() -> String {
    "[SandboxDebug] not a frame".to_owned()
}

/// Whether a signal has this number. Those without a name are none that a process is ended by.
pub(crate) fn is_signal(number: i32) -> bool {
    (1..=31).contains(&number)
}

/// What numbers signals have.
pub(crate) const SIGNALS: &str =
    "`signal` is the number of a signal, from 1 to 31: 9 is SIGKILL, 15 is SIGTERM";

/// Null is a value, too.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Effect {
    /// The word for the effect in files.
    pub fn name(&self) -> String {
        let json = serde_json::to_value(self).unwrap_or_default();
        json["fault"].as_str().unwrap_or_default().to_owned()
    }

    /// The stage that the effect needs at least, and why.
    pub(super) fn needs(&self) -> (super::Stage, &'static str) {
        use super::Stage;
        match self {
            Self::Exit { .. } | Self::Signal { .. } | Self::IgnoreTerm {} => (
                Stage::Transport,
                "two byte streams have no process that could end",
            ),
            Self::Stderr { .. } => (Stage::Transport, "two byte streams have no stderr"),
            Self::Grandchild(_) => (
                Stage::Process,
                "only a real process can start one: use `outrigger-sim` or `outrigger-sim-faulty`",
            ),
            _ => (Stage::Streams, ""),
        }
    }

    /// The problem of the effect's parameters.
    pub(super) fn flaw(&self) -> Option<&'static str> {
        match self {
            Self::Chop { bytes: 0 } => Some("`bytes` must be at least 1"),
            Self::Slow { bytes_per_second: 0 } => {
                Some("`bytes_per_second` must be at least 1; for nothing at all there is `stall`")
            }
            Self::Corrupt { bytes: 0 } => Some("`bytes` must be at least 1"),
            Self::Duplicate { times: 0 } => Some("`times` must be at least 1"),
            Self::Duplicate { times: 1_000_001.. } => Some("`times` must be at most 1,000,000"),
            Self::Reorder { by: 0 } => Some("`by` must be at least 1"),
            Self::Merge { frames: 0 } => Some("`frames` must be at least 1"),
            Self::Exit { code } if u8::try_from(*code).is_err() => Some("`code` goes from 0 to 255"),
            Self::Signal { signal } if !is_signal(*signal) => Some(SIGNALS),
            Self::Insert { frame: Some(frame) } if !frame.is_object() => Some("`frame` must be an object"),
            Self::SetValue { pointer, .. } if !pointer.starts_with('/') => {
                Some("`pointer` must be a JSON pointer, such as `/message/stop_reason`")
            }
            Self::Noise { text } if text.contains('\n') => Some("`text` must be one line"),
            _ => None,
        }
    }
}
