//! A conversation as people read it at a terminal.

use std::io::{self, Write};

use outrigger::sessions::{MessageKind, SessionMessage};

use super::find::line;
use super::message_pieces::{Calls, MessagePiece, pieces};
use crate::exit::Failure;
use crate::paint::Paint;
use crate::plain::plain;
use crate::screen::target;
use crate::time::minute;

/// How many lines of a tool's result are shown.
const RESULT_SHOWN: usize = 8;

/// Whether a message is shown to people.
pub(super) fn is_for_people(message: &SessionMessage) -> bool {
    !message.is_meta || message.is_compact_summary
}

/// Who says something; a tool's result is nobody's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Model,
    Tool,
    Note,
}

impl Speaker {
    pub(super) fn of(message: &SessionMessage, pieces: &[MessagePiece]) -> Self {
        let is_result = |piece: &MessagePiece| matches!(piece, MessagePiece::Result { .. });
        match message.kind {
            MessageKind::User if !pieces.is_empty() && pieces.iter().all(is_result) => Self::Tool,
            MessageKind::User => Self::User,
            MessageKind::Assistant => Self::Model,
            _ => Self::Note,
        }
    }

    /// The heading above what it says, if it has one.
    pub(super) fn heading(self, message: &SessionMessage) -> Option<&'static str> {
        match self {
            Self::User if message.is_compact_summary => Some("Summary of what was said before"),
            Self::User => Some("You"),
            Self::Model => Some("Claude"),
            Self::Tool | Self::Note => None,
        }
    }
}

/// A conversation on its way to people.
pub(super) struct Talk<'o> {
    out: &'o mut dyn Write,
    paint: Paint,
    full: bool,
    /// Who spoke last.
    speaker: Option<Speaker>,
    calls: Calls,
    /// The call that was written last, if nothing was written since.
    last: Option<String>,
}

impl<'o> Talk<'o> {
    /// Nobody has spoken yet. With `full` all of results and thoughts is written, and what is not meant to be shown.
    pub(super) fn new(out: &'o mut dyn Write, paint: Paint, full: bool) -> Self {
        Self {
            out,
            paint,
            full,
            speaker: None,
            calls: Calls::default(),
            last: None,
        }
    }

    /// Where the conversation is written to, for what nobody said.
    pub(super) fn out(&mut self) -> &mut dyn Write {
        self.out
    }

    /// Writes a message, under the name of its speaker if that is another one than before.
    pub(super) fn message(&mut self, message: &SessionMessage) -> Result<(), Failure> {
        if !self.full && !is_for_people(message) {
            return Ok(());
        }
        let pieces = pieces(message);
        let speaker = Speaker::of(message, &pieces);
        if let Some(heading) = speaker.heading(message)
            && (speaker == Speaker::User || self.speaker != Some(speaker))
        {
            let at = message.timestamp.as_deref().map(minute).unwrap_or_default();
            let (heading, at) = (self.paint.bold(heading), self.paint.dim(line(&at, 40)));
            writeln!(self.out, "\n{heading}  {at}")?;
            self.last = None;
        }
        // Results stand below their calls, and the model goes on behind them.
        if speaker != Speaker::Tool {
            self.speaker = Some(speaker);
        }
        pieces.iter().try_for_each(|piece| self.piece(piece))
    }

    fn piece(&mut self, piece: &MessagePiece) -> Result<(), Failure> {
        let paint = self.paint;
        let last = match piece {
            MessagePiece::Thinking(text) if text.trim().is_empty() => return Ok(()),
            _ => self.last.take(),
        };
        match piece {
            MessagePiece::Text(text) => writeln!(self.out, "{}", plain(text.trim_end()))?,
            MessagePiece::Thinking(text) if self.full => {
                writeln!(self.out, "{}", paint.dim(plain(text.trim_end())))?;
            }
            MessagePiece::Thinking(text) => writeln!(
                self.out,
                "{}",
                paint.dim(format!("(thought: {})", line(text, 80)))
            )?,
            MessagePiece::Call { id, tool, input } => {
                let mark = self.calls.begin(id, tool, input);
                let tool = paint.yellow(line(tool, 200));
                let input = if self.full {
                    plain(input.get())
                } else {
                    plain(&target(input))
                };
                writeln!(self.out, "> {tool} {input}{mark}")?;
                self.last = Some(id.clone());
            }
            MessagePiece::Result { of, text, is_error } => {
                let name = self.calls.end(of);
                // Right below its call it is clear whose it is.
                if last.as_ref() != Some(of) {
                    let name = name.unwrap_or_else(|| "a call that is not shown".to_owned());
                    writeln!(self.out, "{}", paint.dim(format!("< {name}")))?;
                }
                self.result(&plain(text.trim_end()), *is_error)?;
            }
            MessagePiece::Other(what) => {
                writeln!(self.out, "{}", paint.dim(format!("[{}]", line(what, 200))))?
            }
        }
        Ok(())
    }

    fn result(&mut self, text: &str, is_error: bool) -> io::Result<()> {
        let most = if self.full { usize::MAX } else { RESULT_SHOWN };
        for line in text.lines().take(most) {
            let line = if is_error {
                self.paint.red(line)
            } else {
                self.paint.dim(line)
            };
            writeln!(self.out, "  {line}")?;
        }
        match text.lines().count().saturating_sub(most) {
            0 => Ok(()),
            more => writeln!(self.out, "  {}", self.paint.dim(format!("(+{more} lines)"))),
        }
    }
}
