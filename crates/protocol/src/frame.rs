//! One line, routed but not decoded.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::framer::Framed;
use crate::inbound::Message;
use crate::lenient::Each;

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
    flaw: Option<Misfit>,
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

impl Frame {
    fn of(body: Body) -> Self {
        Self(Arc::new(body))
    }

    /// Reads what the framer found; one frame for each object on the line, at least one.
    pub fn read(framed: Framed) -> Vec<Self> {
        match framed {
            Framed::Line(line) => Self::from_line(line),
            Framed::Oversized { head, length } => {
                let mut spans = Head::default();
                // The beginning of an object: it ends in an error, and keeps what was read until then.
                let _ = read_head(&head, &mut spans);
                let flaw = Misfit {
                    kind: MisfitKind::Oversized(length),
                    reason: format!(
                        "the first {} bytes are kept; raise the cap to receive such lines",
                        head.len()
                    ),
                };
                vec![Self::of(Body {
                    start: 0,
                    end: head.len(),
                    line: head,
                    head: spans,
                    flaw: Some(flaw),
                })]
            }
        }
    }

    /// Reads one line (without its line ending); one frame for each object on it, at least one.
    pub fn from_line(line: impl Into<Arc<[u8]>>) -> Vec<Self> {
        let line = line.into();
        let mut frames = Vec::with_capacity(1);
        let mut start = 0;
        loop {
            let mut head = Head::default();
            let rest = &line[start..];
            match read_head(rest, &mut head) {
                Ok(length) => {
                    let end = start + length;
                    let flaw = head.flaw.take();
                    head.rebase(start);
                    frames.push(Self::of(Body {
                        line: Arc::clone(&line),
                        start,
                        end,
                        head,
                        flaw,
                    }));
                    let gap = line[end..]
                        .iter()
                        .take_while(|byte| byte.is_ascii_whitespace())
                        .count();
                    start = end + gap;
                    if start >= line.len() {
                        return frames;
                    }
                }
                Err(reason) => {
                    // Text that JSON readers refuse but people would call JSON: mend a copy and read that.
                    let mended = mend(rest);
                    let mut head = Head::default();
                    let flaw = match mended
                        .as_deref()
                        .map(|text| read_head(text.as_bytes(), &mut head))
                    {
                        Some(Ok(_)) => {
                            head.own(mended.as_deref().unwrap_or_default().as_bytes());
                            head.flaw.take()
                        }
                        _ => Some(Misfit {
                            kind: MisfitKind::NotJson,
                            reason,
                        }),
                    };
                    frames.push(Self::of(Body {
                        start,
                        end: line.len(),
                        line,
                        head,
                        flaw,
                    }));
                    return frames;
                }
            }
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
        String::from_utf8_lossy(self.bytes())
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
        self.0.flaw.as_ref()
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
            return Err(flaw.clone());
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
        match span {
            Span::None => None,
            Span::Line { start, length } => {
                std::str::from_utf8(self.0.line.get(*start as usize..(*start + *length) as usize)?).ok()
            }
            Span::Own(text) => Some(text),
        }
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

/// Where one of the routing strings is.
#[derive(Debug, Clone, Default)]
enum Span {
    #[default]
    None,
    /// In the line, which saves an allocation.
    Line { start: u32, length: u32 },
    /// Written with escapes, or numeric, or in mended text.
    Own(Box<str>),
}

#[derive(Debug, Clone, Default)]
struct Head {
    kind: Span,
    subtype: Span,
    uuid: Span,
    session_id: Span,
    request_id: Span,
    parent_tool_use_id: Span,
    user_message_uuid: Span,
    user_message_uuids: Vec<Span>,
    command_uuid: Span,
    state: Span,
    origin_kind: Span,
    is_replay: bool,
    flaw: Option<Misfit>,
}

impl Head {
    fn spans(&mut self) -> impl Iterator<Item = &mut Span> {
        [
            &mut self.kind,
            &mut self.subtype,
            &mut self.uuid,
            &mut self.session_id,
            &mut self.request_id,
            &mut self.parent_tool_use_id,
            &mut self.user_message_uuid,
            &mut self.command_uuid,
            &mut self.state,
            &mut self.origin_kind,
        ]
        .into_iter()
        .chain(&mut self.user_message_uuids)
    }

    fn rebase(&mut self, by: usize) {
        if by == 0 {
            return;
        }
        for span in self.spans() {
            if let Span::Line { start, .. } = span {
                *start += by as u32;
            }
        }
    }

    /// Copies the strings out of `text`, which will not be kept.
    fn own(&mut self, text: &[u8]) {
        for span in self.spans() {
            if let Span::Line { start, length } = *span {
                let part = text
                    .get(start as usize..(start + length) as usize)
                    .unwrap_or_default();
                *span = Span::Own(String::from_utf8_lossy(part).into());
            }
        }
    }
}

/// Reads the first value of `text`, which is an object if all is well, and returns how many bytes it takes.
fn read_head(text: &[u8], head: &mut Head) -> Result<usize, String> {
    let mut values = serde_json::Deserializer::from_slice(text);
    let kind = Object {
        text,
        head: &mut *head,
        level: Level::Frame,
    }
    .deserialize(&mut values);
    match kind {
        Ok(true) if !matches!(head.kind, Span::None) => {}
        Ok(is_object) => {
            let what = if is_object {
                "an object without a string `type`"
            } else {
                "a JSON value that is no object"
            };
            head.flaw = Some(Misfit {
                kind: MisfitKind::NoType,
                reason: what.to_owned(),
            });
        }
        Err(error) => return Err(error.to_string()),
    }
    // `byte_offset` is only public on the stream deserializer, which starts at the next value.
    let mut rest = values.into_iter::<IgnoredAny>();
    let _ = &mut rest;
    Ok(rest.byte_offset().min(text.len()))
}

fn mend(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    match crate::repair::lone_surrogates(&text) {
        Some(mended) => Some(mended),
        None if matches!(text, Cow::Owned(_)) => Some(text.into_owned()),
        None => None,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Frame,
    /// Inside `request` or `response`.
    Control,
    /// Inside `origin`.
    Origin,
}

/// Reads the routing fields of an object and skips the rest; `false` for a value that is no object.
struct Object<'t, 'h> {
    text: &'t [u8],
    head: &'h mut Head,
    level: Level,
}

impl<'de> DeserializeSeed<'de> for Object<'_, '_> {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Object<'_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let Self { text, head, level } = self;
        while let Some(key) = map.next_key::<Key<'de>>()? {
            let span = match (level, &*key.0) {
                (Level::Frame, "type") => &mut head.kind,
                (Level::Frame | Level::Control, "subtype") => &mut head.subtype,
                (Level::Frame, "uuid") => &mut head.uuid,
                (Level::Frame, "session_id") => &mut head.session_id,
                (Level::Frame | Level::Control, "request_id") => &mut head.request_id,
                (Level::Frame, "parent_tool_use_id") => &mut head.parent_tool_use_id,
                (Level::Frame, "user_message_uuid") => &mut head.user_message_uuid,
                (Level::Frame, "command_uuid") => &mut head.command_uuid,
                (Level::Frame, "state") => &mut head.state,
                (Level::Origin, "kind") => &mut head.origin_kind,
                (Level::Frame, "user_message_uuids") => {
                    head.user_message_uuids.clear();
                    map.next_value_seed(Strings {
                        text,
                        into: &mut head.user_message_uuids,
                    })?;
                    continue;
                }
                (Level::Frame, "isReplay") => {
                    head.is_replay = map.next_value_seed(Flag)?;
                    continue;
                }
                (Level::Frame, "request" | "response") => {
                    map.next_value_seed(Object {
                        text,
                        head,
                        level: Level::Control,
                    })?;
                    continue;
                }
                (Level::Frame, "origin") => {
                    map.next_value_seed(Object {
                        text,
                        head,
                        level: Level::Origin,
                    })?;
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if let Some(found) = map.next_value_seed(Str { text })? {
                *span = found;
            }
        }
        Ok(true)
    }

    fn visit_str<E>(self, _: &str) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(false)
    }
}

struct Key<'de>(Cow<'de, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }
            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// A string as a span of `text`; numbers are taken as their text (the CLI echoes numeric ids), all else is skipped.
struct Str<'t> {
    text: &'t [u8],
}

impl<'de> DeserializeSeed<'de> for Str<'_> {
    type Value = Option<Span>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // Taken as text first: no number is too large for it, and a cargo feature of serde_json that makes numbers
        // look like objects does not matter.
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        Ok(match raw.as_bytes().first() {
            Some(b'"') => self.string(raw),
            Some(b'-' | b'0'..=b'9') => integer(raw).map(Span::Own),
            _ => None,
        })
    }
}

impl Str<'_> {
    fn string(&self, raw: &str) -> Option<Span> {
        let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
        if inner.contains('\\') {
            let own: Option<Box<str>> = serde_json::from_str(raw).ok();
            let mended = || serde_json::from_str(&crate::repair::lone_surrogates(raw)?).ok();
            return own.or_else(mended).map(Span::Own);
        }
        let start = (inner.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let inside = start
            .checked_add(inner.len())
            .is_some_and(|end| end <= self.text.len());
        Some(match (u32::try_from(start), u32::try_from(inner.len())) {
            (Ok(start), Ok(length)) if inside => Span::Line { start, length },
            _ => Span::Own(inner.into()),
        })
    }
}

fn integer(raw: &str) -> Option<Box<str>> {
    let signed = raw.parse::<i64>().map(|number| number.to_string());
    let unsigned = || raw.parse::<u64>().map(|number| number.to_string());
    signed.or_else(|_| unsigned()).ok().map(Into::into)
}

struct Flag;

impl<'de> DeserializeSeed<'de> for Flag {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        struct FlagVisitor;
        impl<'de> Visitor<'de> for FlagVisitor {
            type Value = bool;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_bool<E>(self, flag: bool) -> Result<bool, E> {
                Ok(flag)
            }
            fn visit_str<E>(self, _: &str) -> Result<bool, E> {
                Ok(false)
            }
            fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
                Ok(false)
            }
            fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
                Ok(false)
            }
            fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
                Ok(false)
            }
            fn visit_unit<E>(self) -> Result<bool, E> {
                Ok(false)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<bool, A::Error> {
                Each(|_: &str| ()).visit_seq(seq).map(|_| false)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<bool, A::Error> {
                Each(|_: &str| ()).visit_map(map).map(|_| false)
            }
        }
        deserializer.deserialize_any(FlagVisitor)
    }
}

/// A list of strings; other elements are skipped, another value than a list is an empty one.
struct Strings<'t, 'v> {
    text: &'t [u8],
    into: &'v mut Vec<Span>,
}

impl<'de> DeserializeSeed<'de> for Strings<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strings<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(found) = seq.next_element_seed(Str { text: self.text })? {
            self.into.extend(found);
        }
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        Each(|_: &str| ()).visit_map(map).map(|_| ())
    }
}

#[cfg(test)]
mod tests;
