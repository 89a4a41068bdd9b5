//! Where a client left the recording.

use std::fmt;
use std::time::Duration;

use super::file::{Cassette, Event, Said, What};
use super::matching::{FrameDifference, short};

/// How many events are shown before and behind.
const AROUND: usize = 4;

/// The client sent something else than the recorded line, or nothing. Shows the expected line, the actual one, their differences, and
/// the recorded lines around that place.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Divergence {
    /// The name of the cassette.
    pub cassette: String,
    /// The line of the file whose turn it was; one more than there are at the end of the recording. 1 is the command line.
    pub line: usize,
    /// The expected line.
    pub expected: String,
    /// What came instead.
    pub received: String,
    /// Where the two differ; nothing if they are of different kinds.
    pub differences: Vec<FrameDifference>,
    /// The recorded lines before and after that line.
    pub around: (Vec<String>, Vec<String>),
}

/// What came when a line of the client was expected.
#[derive(Debug)]
pub(super) enum Received {
    Line(Said),
    End,
    Nothing(Duration),
}

impl Divergence {
    pub(super) fn new(
        name: &str,
        cassette: &Cassette,
        at: usize,
        received: Received,
        differences: Vec<FrameDifference>,
    ) -> Self {
        let events = &cassette.events;
        let expected = match events.get(at) {
            None => "nothing: the recording ends here".to_owned(),
            Some(event) => match &event.what {
                What::StdinClosed => "the end of the input".to_owned(),
                What::In(said) => format!("{}  {}", said.kind(), short(said.text())),
                _ => shown(at, event),
            },
        };
        let (received, kind) = match received {
            Received::Line(said) => (
                format!("{}  {}", said.kind(), short(said.text())),
                Some(said.kind()),
            ),
            Received::End => ("the end of the input".to_owned(), None),
            Received::Nothing(time) => (format!("nothing within {time:?}"), None),
        };
        let same_kind = matches!(events.get(at).map(|event| &event.what), Some(What::In(said)) if Some(said.kind()) == kind);
        let list = |from: usize, to: usize| {
            let to = to.min(events.len());
            let range = from.min(to)..to;
            events[range.clone()]
                .iter()
                .zip(range)
                .map(|(event, at)| shown(at, event))
                .collect()
        };
        Self {
            cassette: name.to_owned(),
            line: at + 2,
            expected,
            received,
            differences: if same_kind { differences } else { Vec::new() },
            around: (list(at.saturating_sub(AROUND), at), list(at + 1, at + 1 + AROUND)),
        }
    }
}

impl Divergence {
    /// The command line differs from the recorded one.
    pub(super) fn of_command_line(
        name: &str,
        cassette: &Cassette,
        then: &Said,
        now: &Said,
        differences: Vec<FrameDifference>,
    ) -> Self {
        let behind = cassette.events.iter().enumerate().take(AROUND);
        Self {
            cassette: name.to_owned(),
            line: 1,
            expected: format!("the command line  {}", short(then.text())),
            received: format!("the command line  {}", short(now.text())),
            differences,
            around: (Vec::new(), behind.map(|(at, event)| shown(at, event)).collect()),
        }
    }
}

/// An event as a line.
fn shown(at: usize, event: &Event) -> String {
    let what = match &event.what {
        What::In(said) => format!("> {}  {}", said.kind(), short(said.text())),
        What::Out(said, _) => format!("< {}  {}", said.kind(), short(said.text())),
        What::Err(text) => format!("! {}", short(text)),
        What::StdinClosed => "> (the end of the input)".to_owned(),
        What::StdoutClosed => "< (the end of the output)".to_owned(),
        What::Signal(name) => format!("> ({name})"),
        What::Exit { code, signal } => match (code, signal) {
            (Some(code), _) => format!("< (exit code {code})"),
            (None, Some(signal)) => format!("< (signal {signal})"),
            (None, None) => "< (the end)".to_owned(),
        },
        What::Note(note) => format!("# {}", short(note.get())),
    };
    // The header is line 1.
    format!("{:>5} {what}", at + 2)
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "the client left the recording at line {} of {}",
            self.line, self.cassette
        )?;
        for line in &self.around.0 {
            writeln!(f, "    {line}")?;
        }
        writeln!(
            f,
            "    ----- here (> the client, < the CLI; if the client is right, record again)"
        )?;
        for line in &self.around.1 {
            writeln!(f, "    {line}")?;
        }
        // Last, since of a long stderr the end is shown.
        writeln!(f, "  EXPECTED {}", self.expected)?;
        write!(f, "  RECEIVED {}", self.received)?;
        for difference in &self.differences {
            write!(f, "\n  BUT      {difference}")?;
        }
        Ok(())
    }
}

/// Reads well in the output of `unwrap`.
impl fmt::Debug for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for Divergence {}
