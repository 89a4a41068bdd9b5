//! The phases of a session with a deadline for the CLI's silence.

use std::fmt;
use std::time::Duration;

/// A phase of a session that has a deadline of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// The transport starts the CLI: [`start_deadline`](crate::Options::start_deadline).
    Start,
    /// The CLI gets ready and answers `initialize`: [`initialize_deadline`](crate::Options::initialize_deadline).
    Initialize,
    /// A turn waits for the model to begin to answer, at its beginning and after each round of tools:
    /// [`first_token_deadline`](crate::Options::first_token_deadline).
    FirstToken,
    /// The model is answering, in partial messages: [`between_events_deadline`](crate::Options::between_events_deadline).
    BetweenEvents,
    /// A turn, from its prompt to its result: [`turn_deadline`](crate::Options::turn_deadline).
    Turn,
    /// The session in all: [`run_deadline`](crate::Options::run_deadline).
    Run,
}

impl Phase {
    /// The variant in `snake_case`, for logs and metrics: `first_token`, `between_events`, …
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Initialize => "initialize",
            Self::FirstToken => "first_token",
            Self::BetweenEvents => "between_events",
            Self::Turn => "turn",
            Self::Run => "run",
        }
    }
}

impl Phase {
    /// Whether the deadline of this phase is for work in all, and not for silence.
    pub(crate) fn is_in_all(self) -> bool {
        matches!(self, Self::Turn | Self::Run)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "starting the CLI",
            Self::Initialize => "the answer to `initialize`",
            Self::FirstToken => "the model's first token",
            Self::BetweenEvents => "the next event of the model's answer",
            Self::Turn => "the turn",
            Self::Run => "the run",
        })
    }
}

/// A phase whose deadline passed, with its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stall {
    pub(crate) phase: Phase,
    pub(crate) after: Duration,
}
