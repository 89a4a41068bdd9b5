//! The events of a recorded session.

use std::time::Duration;

use outrigger_protocol::Frame;
use outrigger_sim::cassette::{Cassette, Said, What};

use crate::event_reader::EventReader;
use crate::streams::AmbientEvent;

/// What happened in a recorded session, and where the cassette has it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Recorded {
    /// The line of the file, from 1. What one frame brings has the same line.
    pub line: usize,
    /// When, since the recording began.
    pub at: Duration,
    /// What happened.
    pub event: AmbientEvent,
}

/// The events of a recorded session, and how its turns ended, as an [`EventReader`] makes them: what the CLI wrote, and the prompts. With the
/// feature `serde` each can be written as an `EventLine`, the form of `outrigger run --json=events`.
///
/// ```no_run
/// use outrigger::AmbientEvent;
/// use outrigger::testing::recorded_events;
/// use outrigger::testing::sim::cassette::Cassette;
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let cassette = Cassette::read("tests/cassettes/hello.ndjson")?;
/// for recorded in recorded_events(&cassette) {
///     if let AmbientEvent::TurnEnded(outcome) = &recorded.event {
///         println!("line {}: {}", recorded.line, outcome.verdict());
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub fn recorded_events(cassette: &Cassette) -> impl Iterator<Item = Recorded> + '_ {
    let mut reader = EventReader::new();
    // The header is the first line.
    let lines = (2..).zip(&cassette.events);
    lines.flat_map(move |(line, event)| {
        let told = match &event.what {
            What::Out(said, _) if !said.text().trim().is_empty() => read(&mut reader, said, |_| true),
            // Of what the client says, prompts are of the conversation, and an interrupt explains how a turn ended.
            What::In(said) => read(&mut reader, said, |frame| {
                matches!(frame.kind(), "user" | "control_request")
            }),
            What::StdoutClosed | What::Exit { .. } => reader.end(),
            _ => Vec::new(),
        };
        let at = event.at;
        told.into_iter().map(move |event| Recorded { line, at, event })
    })
}

fn read(reader: &mut EventReader, said: &Said, counts: impl Fn(&Frame) -> bool) -> Vec<AmbientEvent> {
    let frames = Frame::from_line(said.bytes());
    frames
        .iter()
        .filter(|frame| counts(frame))
        .flat_map(|frame| reader.push(frame))
        .collect()
}
