//! One object of a line: its routing fields are read, its payload is not decoded.

mod delta;
mod head;
mod lines;
mod reader;
mod shape;
mod skim;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use outrigger_json::{RawJson, repair, scan, walk};
use serde::de::DeserializeOwned;

pub use self::delta::{Delta, PieceKind};
use self::head::{Field, FrameHead, HeadRead, Span, read_head};
use self::lines::{Body, LineText, Lines};
pub use self::reader::FrameReader;
use crate::framer::Framed;
use crate::inbound::Message;
use crate::shared::RequestId;

/// One JSON object that the CLI wrote, with the line it came in.
///
/// Reading a frame reads the few fields that routing needs (type, subtype, ids); [`decode`](Self::decode) decodes the payload on
/// demand. A clone shares the memory of the line with the other objects on it. Up to 16 short partial messages share their memory,
/// too ([`FrameReader`]): it is freed with the last of them.
#[derive(Clone)]
pub struct Frame {
    lines: Arc<Lines>,
    /// The place of this frame in `lines`.
    at: u32,
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
    /// A misfit that was observed elsewhere, such as one that was written down.
    pub fn new(kind: MisfitKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            reason: reason.into(),
        }
    }

    fn boxed(kind: MisfitKind, reason: String) -> Option<Box<Self>> {
        Some(Box::new(Self { kind, reason }))
    }
}

impl Frame {
    /// Reads a line from the framer: one frame for each object on it, at least one.
    pub fn read(framed: Framed) -> Vec<Self> {
        let mut frames = Vec::with_capacity(1);
        match framed {
            Framed::Line(line) => {
                let mut head = FrameHead::default();
                let read = read_head(&line, &mut head);
                Self::go_on(LineText::from(line), head, read, &mut frames);
            }
            Framed::Oversized { head, length } => frames.push(Self::oversized(&head, length)),
        }
        frames
    }

    /// How many objects on one line become frames of their own. A frame takes some hundred bytes besides its line, so a line of tiny
    /// objects would otherwise take many times its length. The rest of the line is one more frame, which is not JSON.
    pub const MOST_ON_A_LINE: usize = 65_536;

    /// Reads a line without its line ending: one frame for each object on it, at least one.
    pub fn from_line(line: impl AsRef<[u8]>) -> Vec<Self> {
        let mut frames = Vec::with_capacity(1);
        let (line, mut head) = (line.as_ref(), FrameHead::default());
        let read = read_head(line, &mut head);
        Self::go_on(LineText::of(line), head, read, &mut frames);
        frames
    }

    /// The beginning of a line that was too long to be kept.
    fn oversized(text: &[u8], length: u64) -> Self {
        let mut head = FrameHead::default();
        // The beginning of an object: it ends in an error, and keeps what was read until then.
        let _ = read_head(text, &mut head);
        let reason = format!(
            "the first {} bytes are kept; raise the cap to receive such lines",
            text.len()
        );
        let flaw = Misfit::boxed(MisfitKind::Oversized(length), reason);
        Self::alone(
            LineText::of(text),
            Body::of(0..text.len(), 0..text.len(), head, flaw),
        )
    }

    /// Bytes that are known to be no frame.
    #[doc(hidden)]
    pub fn flawed(bytes: &[u8], flaw: Misfit) -> Self {
        let all = 0..bytes.len();
        let body = Body::of(all.clone(), all, FrameHead::default(), Some(Box::new(flaw)));
        Self::alone(LineText::of(bytes), body)
    }

    fn alone(text: LineText, body: Body) -> Self {
        let rest = Box::default();
        let first = body;
        Self {
            lines: Arc::new(Lines { text, first, rest }),
            at: 0,
        }
    }

    /// Reads a line whose first object was read.
    fn go_on(text: LineText, mut head: FrameHead, mut read: Result<HeadRead, String>, into: &mut Vec<Self>) {
        let line = text.bytes();
        let (mut start, mut told) = (0, 0);
        loop {
            let (end, flaw) = match read {
                Ok(HeadRead { length, flaw }) => (start + length, flaw),
                Err(reason) => {
                    head = FrameHead::default();
                    (line.len(), Misfit::boxed(MisfitKind::NotJson, reason))
                }
            };
            let gap = line[end..].iter().take_while(|byte| byte.is_ascii_whitespace());
            let next = end + gap.count();
            let body = Body::of(0..line.len(), start..end, head, flaw);
            if next >= line.len() {
                into.push(Self::alone(text, body));
                return;
            }
            into.push(Self::alone(text.clone(), body));
            (start, told) = (next, told + 1);
            head = FrameHead::default();
            if told == Self::MOST_ON_A_LINE {
                let reason = format!("more than {} objects on one line", Self::MOST_ON_A_LINE);
                let flaw = Misfit::boxed(MisfitKind::NotJson, reason);
                let body = Body::of(0..line.len(), start..line.len(), head, flaw);
                into.push(Self::alone(text, body));
                return;
            }
            read = read_head(&line[start..], &mut head);
        }
    }

    fn body(&self) -> &Body {
        self.lines.body(self.at)
    }

    /// The whole line, byte for byte, as it came, without its line ending.
    pub fn line(&self) -> &[u8] {
        &self.lines.text.bytes()[self.body().line.clone()]
    }

    /// This frame's own bytes: the whole line, unless several objects share it.
    pub fn bytes(&self) -> &[u8] {
        &self.lines.text.bytes()[self.body().own.clone()]
    }

    /// This frame's text, with invalid UTF-8 replaced by U+FFFD.
    pub fn text(&self) -> Cow<'_, str> {
        let own = &self.body().own;
        match self.lines.text.part(own.start, own.end) {
            Some(text) => Cow::Borrowed(text),
            None => String::from_utf8_lossy(self.bytes()),
        }
    }

    /// The `type` field; empty if there is none.
    pub fn kind(&self) -> &str {
        self.body()
            .head
            .known
            .or_else(|| self.field(Field::Kind))
            .unwrap_or_default()
    }

    /// The `subtype`, of the frame or of the control request or response inside it.
    pub fn subtype(&self) -> Option<&str> {
        self.field(Field::Subtype)
    }

    /// The `uuid` of the frame itself.
    pub fn uuid(&self) -> Option<&str> {
        self.field(Field::Uuid)
    }

    /// The `session_id`.
    pub fn session_id(&self) -> Option<&str> {
        self.field(Field::SessionId)
    }

    /// The `request_id`, of a control request, a response or a cancellation.
    pub fn request_id(&self) -> Option<&str> {
        self.field(Field::RequestId)
    }

    /// The `request_id` of the frame itself as it was written, so that an answer can repeat it; numbers stay numbers. `None` if
    /// there is none, or the frame is not even JSON.
    pub fn written_request_id(&self) -> Option<RequestId> {
        if self.body().head.is_own_id {
            return self.request_id().map(RequestId::from);
        }
        let (text, mut id) = (self.text(), None);
        walk::fields(&text, |key, value| {
            if key == "request_id" {
                id = Some(value);
            }
        })?;
        RawJson::from_text(id?).ok()?.read().ok()
    }

    /// The tool call under whose subagent this frame was made.
    pub fn parent_tool_use_id(&self) -> Option<&str> {
        self.field(Field::ParentToolUseId)
    }

    /// The prompt (by its uuid) that a `command_lifecycle` frame is about.
    pub fn command_uuid(&self) -> Option<&str> {
        self.field(Field::CommandUuid)
    }

    /// The `state` of `command_lifecycle` and `session_state_changed`.
    pub fn state(&self) -> Option<&str> {
        self.field(Field::State)
    }

    /// The `type` of the API's event inside a `stream_event`.
    pub fn event_type(&self) -> Option<&str> {
        self.field(Field::EventType)
    }

    /// The `kind` of the `origin`.
    pub fn origin_kind(&self) -> Option<&str> {
        self.field(Field::OriginKind)
    }

    /// The prompts that this frame answers: `user_message_uuids`, or `user_message_uuid` alone.
    pub fn user_message_uuids(&self) -> impl Iterator<Item = &str> {
        let head = &self.body().head;
        let one = head
            .prompts()
            .is_empty()
            .then_some(head.span(Field::UserMessageUuid));
        let spans = head.prompts().iter().copied().chain(one);
        spans.filter_map(|span| self.span(span))
    }

    /// Whether `isReplay` is true.
    pub fn is_replay(&self) -> bool {
        self.body().head.is_replay
    }

    /// Why this frame is malformed; `None` for a well-formed one, whatever its payload.
    pub fn flaw(&self) -> Option<&Misfit> {
        self.body().flaw.as_deref()
    }

    /// Decodes the payload.
    ///
    /// A type or subtype that this build does not know is no error: it is an `Unknown` of its enum. Lone surrogates and
    /// invalid UTF-8 are read as U+FFFD; [`bytes`](Self::bytes) has the original.
    ///
    /// # Errors
    /// When the line is no frame, or a known type does not have the shape that this build expects.
    pub fn decode(&self) -> Result<Message, Misfit> {
        self.decode_by(Message::from_text)
    }

    /// Like [`decode`](Self::decode), for a frame that neither asks nor answers: of a `control_request`, `control_response` or
    /// `control_cancel_request` it makes an `Unknown`. A program that does not decode these otherwise has no code for it.
    #[doc(hidden)]
    pub fn decode_told(&self) -> Result<Message, Misfit> {
        self.decode_by(Message::told_from_text)
    }

    /// Decodes the frame into the type of its kind, which the caller has looked at.
    #[doc(hidden)]
    pub fn decode_as<T: DeserializeOwned>(&self) -> Result<T, Misfit> {
        self.decode_by(|_, text| outrigger_json::decode::decode(text))
    }

    fn decode_by<T>(
        &self,
        decode: fn(kind: &str, text: &str) -> Result<T, serde_json::Error>,
    ) -> Result<T, Misfit> {
        if let Some(flaw) = &self.body().flaw {
            return Err(Misfit::clone(flaw));
        }
        let text = self.text();
        let first = match decode(self.kind(), &text) {
            Ok(message) => return Ok(message),
            Err(error) => error,
        };
        repair::lone_surrogates(&text)
            .ok_or(first)
            .and_then(|mended| decode(self.kind(), &mended))
            .map_err(|error| Misfit {
                kind: MisfitKind::Shape,
                reason: error.to_string(),
            })
    }

    /// The addition to a block of the answer, if the frame is a plain `content_block_delta` of text, thinking or a tool's input. It
    /// agrees with [`decode`](Self::decode) and costs much less. An unusual delta gives `None`, too: decode such a frame.
    pub fn delta(&self) -> Option<Delta<'_>> {
        let head = &self.body().head;
        let piece = head.piece.filter(|_| head.known == Some("stream_event"))?;
        Some(Delta {
            index: piece.index.into(),
            kind: piece.kind,
            text: scan::unescape(self.span(piece.text)?)?,
        })
    }

    fn field(&self, field: Field) -> Option<&str> {
        self.span(self.body().head.span(field))
    }

    fn span(&self, span: Span) -> Option<&str> {
        let Body { own, head, .. } = self.body();
        head.get(span, |start, end| {
            self.lines.text.part(own.start + start, own.start + end)
        })
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame")
            .field("kind", &self.kind())
            .field("subtype", &self.subtype())
            .field("bytes", &self.bytes().len())
            .field("flaw", &self.body().flaw)
            .finish_non_exhaustive()
    }
}
