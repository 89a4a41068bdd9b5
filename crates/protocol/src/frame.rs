//! One line, routed but not decoded.

mod head;
mod parse;
mod skim;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use self::head::{Head, Read, Span, mend, read_head};
use crate::framer::Framed;
use crate::inbound::Message;

/// One JSON object that the CLI wrote, with the line it came in.
///
/// Making one reads the few fields that routing needs (type, subtype, ids); the payload is decoded by
/// [`decode`](Self::decode), when somebody wants it. Cloning shares the line.
#[derive(Clone)]
pub struct Frame(Arc<Body>);

struct Body {
    line: Arc<[u8]>,
    /// This frame's part of the line: all of it, unless several objects share the line.
    start: usize,
    end: usize,
    head: Head,
    flaw: Option<Box<Misfit>>,
}

/// Why a frame could not be decoded.
///
/// The bytes stay reachable from the [`Frame`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Misfit {
    /// What kind of failure it is.
    pub kind: MisfitKind,
    /// The reason, with line and column where there is one.
    pub reason: String,
}

/// The kinds of failure to decode a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MisfitKind {
    /// The line is not JSON.
    NotJson,
    /// The line is JSON, but no object, or an object without a `type`.
    NoType,
    /// The line was longer than the cap and only its beginning is kept; its length in bytes.
    Oversized(u64),
    /// A known type whose body does not have the expected shape.
    Shape,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            MisfitKind::NotJson => write!(f, "not JSON: {}", self.reason),
            MisfitKind::NoType => write!(f, "no protocol frame: {}", self.reason),
            MisfitKind::Oversized(length) => {
                write!(f, "line of {length} bytes is over the cap: {}", self.reason)
            }
            MisfitKind::Shape => write!(f, "unexpected shape: {}", self.reason),
        }
    }
}

impl std::error::Error for Misfit {}

impl Misfit {
    fn boxed(kind: MisfitKind, reason: String) -> Option<Box<Self>> {
        Some(Box::new(Self { kind, reason }))
    }
}

/// Text that JSON readers refuse but people would call JSON: mends a copy and reads that. `reason` is why it was refused.
fn read_mended(text: &[u8], reason: String) -> (Head, Option<Box<Misfit>>) {
    if let Some(mended) = mend(text) {
        let mut head = Head::default();
        if let Ok(read) = read_head(mended.as_bytes(), &mut head) {
            head.own(mended.as_bytes());
            return (head, read.flaw);
        }
    }
    (Head::default(), Misfit::boxed(MisfitKind::NotJson, reason))
}

impl Frame {
    fn of(body: Body) -> Self {
        Self(Arc::new(body))
    }

    /// Reads what the framer found; one frame for each object on the line, at least one.
    pub fn read(framed: Framed) -> Vec<Self> {
        let mut frames = Vec::with_capacity(1);
        Self::read_into(framed, &mut frames);
        frames
    }

    /// Like [`read`](Self::read), adding the frames to those in `into`: a reader of many lines needs no list for each.
    pub fn read_into(framed: Framed, into: &mut Vec<Self>) {
        match framed {
            Framed::Line(line) => Self::read_line(line, into),
            Framed::Oversized { head, length } => {
                let mut spans = Head::default();
                // The beginning of an object: it ends in an error, and keeps what was read until then.
                let _ = read_head(&head, &mut spans);
                let reason = format!(
                    "the first {} bytes are kept; raise the cap to receive such lines",
                    head.len()
                );
                into.push(Self::of(Body {
                    start: 0,
                    end: head.len(),
                    line: head,
                    head: spans,
                    flaw: Misfit::boxed(MisfitKind::Oversized(length), reason),
                }));
            }
        }
    }

    /// How many objects on one line are told apart. A frame takes some hundred bytes besides its line, so a line of tiny
    /// objects would otherwise take many times its length; what follows is one frame that is no JSON.
    pub const MOST_ON_A_LINE: usize = 65_536;

    /// Reads one line (without its line ending); one frame for each object on it, at least one.
    pub fn from_line(line: impl Into<Arc<[u8]>>) -> Vec<Self> {
        let mut frames = Vec::with_capacity(1);
        Self::read_line(line.into(), &mut frames);
        frames
    }

    fn read_line(line: Arc<[u8]>, into: &mut Vec<Self>) {
        let before = into.len();
        let mut start = 0;
        loop {
            let mut head = Head::default();
            if into.len() - before == Self::MOST_ON_A_LINE {
                let reason = format!("more than {} objects on one line", Self::MOST_ON_A_LINE);
                into.push(Self::of(Body {
                    start,
                    end: line.len(),
                    line,
                    head,
                    flaw: Misfit::boxed(MisfitKind::NotJson, reason),
                }));
                return;
            }
            let (end, flaw) = match read_head(&line[start..], &mut head) {
                Ok(Read { length, flaw }) => {
                    head.rebase(&line, start);
                    (start + length, flaw)
                }
                Err(reason) => {
                    let (mended, flaw) = read_mended(&line[start..], reason);
                    head = mended;
                    (line.len(), flaw)
                }
            };
            let gap = line[end..].iter().take_while(|byte| byte.is_ascii_whitespace());
            let next = end + gap.count();
            if next >= line.len() {
                into.push(Self::of(Body {
                    line,
                    start,
                    end,
                    head,
                    flaw,
                }));
                return;
            }
            into.push(Self::of(Body {
                line: Arc::clone(&line),
                start,
                end,
                head,
                flaw,
            }));
            start = next;
        }
    }

    /// The whole line, byte for byte, as it came, without its line ending.
    pub fn line(&self) -> &[u8] {
        &self.0.line
    }

    /// This frame's own bytes: the whole line, unless several objects share it.
    pub fn bytes(&self) -> &[u8] {
        &self.0.line[self.0.start..self.0.end]
    }

    /// This frame's text, with invalid UTF-8 replaced by U+FFFD.
    pub fn text(&self) -> Cow<'_, str> {
        // What is valid, as nearly everything is, is found to be so much faster this way.
        match std::str::from_utf8(self.bytes()) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(self.bytes()),
        }
    }

    /// The `type` field; empty if there is none.
    pub fn kind(&self) -> &str {
        self.span(&self.0.head.kind).unwrap_or_default()
    }

    /// The `subtype`, of the frame or of the control request or response inside it.
    pub fn subtype(&self) -> Option<&str> {
        self.span(&self.0.head.subtype)
    }

    /// The `uuid` of the frame itself.
    pub fn uuid(&self) -> Option<&str> {
        self.span(&self.0.head.uuid)
    }

    /// The `session_id`.
    pub fn session_id(&self) -> Option<&str> {
        self.span(&self.0.head.session_id)
    }

    /// The `request_id`, of a control request, a response or a cancellation.
    pub fn request_id(&self) -> Option<&str> {
        self.span(&self.0.head.request_id)
    }

    /// The tool call under whose subagent this frame was made.
    pub fn parent_tool_use_id(&self) -> Option<&str> {
        self.span(&self.0.head.parent_tool_use_id)
    }

    /// The prompt (by its uuid) that a `command_lifecycle` frame is about.
    pub fn command_uuid(&self) -> Option<&str> {
        self.span(&self.0.head.command_uuid)
    }

    /// The `state` of `command_lifecycle` and `session_state_changed`.
    pub fn state(&self) -> Option<&str> {
        self.span(&self.0.head.state)
    }

    /// The `type` of the API's event inside a `stream_event`.
    pub fn event_type(&self) -> Option<&str> {
        self.span(&self.0.head.event_type)
    }

    /// The `kind` of the `origin`.
    pub fn origin_kind(&self) -> Option<&str> {
        self.span(&self.0.head.origin_kind)
    }

    /// The prompts that this frame answers: `user_message_uuids`, or `user_message_uuid` alone.
    pub fn user_message_uuids(&self) -> impl Iterator<Item = &str> {
        let one = self
            .0
            .head
            .user_message_uuids
            .is_empty()
            .then_some(&self.0.head.user_message_uuid);
        self.0
            .head
            .user_message_uuids
            .iter()
            .chain(one)
            .filter_map(|span| self.span(span))
    }

    /// Whether `isReplay` is true.
    pub fn is_replay(&self) -> bool {
        self.0.head.is_replay
    }

    /// Why this frame is no well-formed frame at all; `None` for one that is, whatever its payload.
    pub fn flaw(&self) -> Option<&Misfit> {
        self.0.flaw.as_deref()
    }

    /// Decodes the payload.
    ///
    /// A type or subtype that this build does not know is no error: it is an `Unknown` of its enum. Lone surrogates and
    /// invalid UTF-8 are read as U+FFFD; [`bytes`](Self::bytes) has what really came.
    ///
    /// # Errors
    /// When the line is no frame, or a known type does not have the shape that this build expects.
    pub fn decode(&self) -> Result<Message, Misfit> {
        if let Some(flaw) = &self.0.flaw {
            return Err(Misfit::clone(flaw));
        }
        let text = self.text();
        let first = match Message::from_text(self.kind(), &text) {
            Ok(message) => return Ok(message),
            Err(error) => error,
        };
        crate::repair::lone_surrogates(&text)
            .ok_or(first)
            .and_then(|mended| Message::from_text(self.kind(), &mended))
            .map_err(|error| Misfit {
                kind: MisfitKind::Shape,
                reason: error.to_string(),
            })
    }

    fn span<'a>(&'a self, span: &'a Span) -> Option<&'a str> {
        span.get(&self.0.line)
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame")
            .field("kind", &self.kind())
            .field("subtype", &self.subtype())
            .field("bytes", &self.bytes().len())
            .field("flaw", &self.0.flaw)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
