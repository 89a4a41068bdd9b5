//! Where in a session a fault occurs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which way frames go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FrameDirection {
    /// From the CLI to its client: the CLI's stdout.
    #[default]
    Output,
    /// From the client to the CLI: the CLI's stdin.
    Input,
}

impl FrameDirection {
    pub(super) fn index(self) -> usize {
        match self {
            Self::Output => 0,
            Self::Input => 1,
        }
    }
}

impl fmt::Display for FrameDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Output => "from the CLI",
            Self::Input => "to the CLI",
        })
    }
}

/// A moment of a conversation, determined by the CLI's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// Before the first control response, which answers `initialize`.
    Initialize,
    /// Before the first frame of a turn.
    TurnStart,
    /// In the middle of a message: behind the first piece of a streamed block, or behind the first message of the turn.
    MidStream,
    /// Before the result of a turn.
    Result,
}

/// The place of a fault: the frames that match all fields. Without a field, every frame of the CLI.
///
/// ```
/// use outrigger_sim::fault::At;
///
/// // The third piece of text, and any one in ten of what comes behind the first 64 KiB.
/// let piece = At::kind("stream_event/content_block_delta").nth(3);
/// let behind = At::anywhere().after_bytes(64 * 1024).probability(0.1);
/// # let _ = (piece, behind);
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct At {
    /// Which way the frames go.
    #[serde(skip_serializing_if = "is_default")]
    pub direction: FrameDirection,
    /// The `type` of the frames, or `type/subtype`, see [`Line::kind`](crate::peer::Line::kind). A line that is no frame is `?`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Behind this many bytes of the stream. What strikes between bytes strikes exactly there, even in the middle of a frame, and
    /// once, but for lines that come in between, which come behind that frame; what strikes frames strikes those that begin there
    /// or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_bytes: Option<u64>,
    /// Only the nth of all those, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
    /// Each of those only with this probability, by the schedule's seed: 0 is never, 1 is always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// At most this often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Strikes behind the frame instead of before it, if it is something that strikes between frames.
    #[serde(skip_serializing_if = "is_default")]
    pub behind: bool,
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl At {
    /// Every frame of the CLI.
    pub fn anywhere() -> Self {
        Self::default()
    }

    /// Frames of a kind: a `type` or `type/subtype`.
    pub fn kind(kind: impl Into<String>) -> Self {
        Self {
            kind: Some(kind.into()),
            ..Self::default()
        }
    }

    /// A moment of a conversation.
    pub fn phase(phase: Phase) -> Self {
        Self {
            phase: Some(phase),
            ..Self::default()
        }
    }

    pub(super) fn flaw(&self) -> Option<&'static str> {
        if self.nth == Some(0) {
            return Some("`nth` counts from 1");
        }
        if let Some(probability) = self.probability
            && !(0.0..=1.0).contains(&probability)
        {
            return Some("`probability` must be between 0 and 1");
        }
        if self.phase.is_some() && self.direction == FrameDirection::Input {
            return Some("a `phase` depends on the CLI's output, so faults on its input can't have one");
        }
        None
    }
}

setters! { At:
    /// On the way to the CLI instead.
    input() => direction = FrameDirection::Input;

    /// See [`nth`](Self#structfield.nth).
    nth(nth: u64) = Some(nth);

    /// See [`after_bytes`](Self#structfield.after_bytes).
    after_bytes(bytes: u64) = Some(bytes);

    /// See [`probability`](Self#structfield.probability).
    probability(probability: f64) = Some(probability);

    /// See [`times`](Self#structfield.times).
    times(times: u64) = Some(times);

    /// See [`behind`](Self#structfield.behind).
    behind() = true;
}
