//! Reads the routing fields in a walk over the line's structure, which costs little more than finding the ends of its strings.

use outrigger_json::walk::{self, Walk};

use super::delta::{DeltaPiece, PieceKind};
use super::head::{Field, FrameHead, RoutingString, Span};

/// Reads the first value of `text`: how many bytes it takes, and whether it is an object. `None` if it is not JSON; the head then
/// has what was read until there. The head is to be empty.
pub(super) fn value(text: &[u8], head: &mut FrameHead) -> Option<(usize, bool)> {
    let mut walk = Walk::of(text);
    let is_object = walk.peek()? == b'{';
    if is_object {
        let plain = Plain::default();
        Skim { head, plain }.frame(&mut walk)?;
    } else {
        walk.value()?;
    }
    Some((walk.at(), is_object))
}

/// The head that is read, and what was seen of a piece.
struct Skim<'h> {
    head: &'h mut FrameHead,
    plain: Plain,
}

/// Whether the frame is a piece of a block and nothing else: each of the fields that it has to have once, those that it may have
/// at most once, all of their type, and no others.
#[derive(Debug, Default)]
struct Plain {
    /// Which fields were seen, one bit each.
    seen: u8,
    is_not: bool,
    piece: Option<DeltaPiece>,
}

impl Plain {
    const TYPE: u8 = 1;
    const EVENT: u8 = 2;
    const SESSION_ID: u8 = 4;
    const UUID: u8 = 8;
    const PARENT: u8 = 16;
    const API_MESSAGE_ID: u8 = 32;
    const NEEDED: u8 = Self::TYPE | Self::EVENT | Self::SESSION_ID | Self::UUID;

    /// A field is seen: it has to be the first time, and of the right type.
    fn see(&mut self, field: u8, is_right: bool) {
        self.is_not |= self.seen & field != 0 || !is_right;
        self.seen |= field;
    }

    fn piece(&mut self) -> Option<DeltaPiece> {
        let is_plain = !self.is_not && self.seen & Self::NEEDED == Self::NEEDED;
        self.piece.take().filter(|_| is_plain)
    }
}

impl Skim<'_> {
    fn frame(&mut self, walk: &mut Walk<'_>) -> Option<()> {
        walk.fields(|walk, key| {
            let is_string = walk.peek()? == b'"';
            let is_optional = is_string || walk.peek()? == b'n';
            let (field, bit, is_right) = match &*key {
                b"type" => (Field::Kind, Plain::TYPE, is_string),
                b"uuid" => (Field::Uuid, Plain::UUID, is_string),
                b"session_id" => (Field::SessionId, Plain::SESSION_ID, is_string),
                b"parent_tool_use_id" => (Field::ParentToolUseId, Plain::PARENT, is_optional),
                b"event" => {
                    self.plain.see(Plain::EVENT, true);
                    return self.event(walk);
                }
                b"api_message_id" => {
                    self.plain.see(Plain::API_MESSAGE_ID, is_optional);
                    return walk.value();
                }
                key => {
                    self.plain.is_not = true;
                    return self.rarer(walk, key);
                }
            };
            self.plain.see(bit, is_right);
            self.text(walk, field)
        })?;
        self.head.piece = self.plain.piece();
        Some(())
    }

    fn rarer(&mut self, walk: &mut Walk<'_>, key: &[u8]) -> Option<()> {
        let field = match key {
            b"subtype" => Field::Subtype,
            b"request_id" => {
                self.head.is_own_id = walk.peek()? == b'"';
                Field::RequestId
            }
            b"user_message_uuid" => Field::UserMessageUuid,
            b"command_uuid" => Field::CommandUuid,
            b"state" => Field::State,
            b"request" | b"response" => {
                return inner(walk, |walk, key| match key {
                    b"subtype" => self.text(walk, Field::Subtype),
                    b"request_id" => {
                        self.head.is_own_id = false;
                        self.text(walk, Field::RequestId)
                    }
                    _ => walk.value(),
                });
            }
            b"origin" => {
                return inner(walk, |walk, key| match key {
                    b"kind" => self.text(walk, Field::OriginKind),
                    _ => walk.value(),
                });
            }
            b"user_message_uuids" => {
                self.head.clear_prompts();
                if walk.peek()? != b'[' {
                    return walk.value();
                }
                return walk.elements(|walk| {
                    let found = string(walk)?;
                    found.into_iter().for_each(|found| self.head.add_prompt(found));
                    Some(())
                });
            }
            b"isReplay" => {
                self.head.is_replay = walk.peek()? == b't';
                return walk.value();
            }
            _ => return walk.value(),
        };
        self.text(walk, field)
    }

    /// The event of a `stream_event`, and the piece in it.
    fn event(&mut self, walk: &mut Walk<'_>) -> Option<()> {
        let (mut seen, mut index, mut delta) = (0_u8, None, None);
        let mut is_delta = false;
        inner(walk, |walk, key| match key {
            b"type" => {
                seen = seen.saturating_add(1);
                let from = walk.at();
                self.text(walk, Field::EventType)?;
                is_delta = walk.since(from) == br#""content_block_delta""#;
                Some(())
            }
            b"index" => {
                seen = seen.saturating_add(1);
                let from = walk.at();
                walk.value()?;
                index = small(walk.since(from));
                Some(())
            }
            b"delta" => {
                seen = seen.saturating_add(1);
                delta = piece(walk)?;
                Some(())
            }
            _ => {
                // A field that a plain piece of text does not have.
                seen = u8::MAX;
                walk.value()
            }
        })?;
        // A plain piece has three fields: each was found, and no other.
        self.plain.piece = match (seen, is_delta, index, delta) {
            (3, true, Some(index), Some((kind, text))) => Some(DeltaPiece { index, kind, text }),
            _ => None,
        };
        Some(())
    }

    /// A routing string; any other value leaves what was there.
    fn text(&mut self, walk: &mut Walk<'_>, field: Field) -> Option<()> {
        if let Some(found) = string(walk)? {
            self.head.set(field, found);
        }
        Some(())
    }
}

/// What is added to a block, if it is nothing but a kind and a string.
fn piece(walk: &mut Walk<'_>) -> Option<Option<(PieceKind, Span)>> {
    let (mut seen, mut kind, mut piece) = (0_u8, None, None);
    inner(walk, |walk, key| {
        seen = seen.saturating_add(1);
        let from = walk.at();
        walk.value()?;
        let value = walk.since(from);
        match key {
            b"type" => {
                kind = match value {
                    br#""text_delta""# => Some(PieceKind::Text),
                    br#""thinking_delta""# => Some(PieceKind::Thinking),
                    br#""input_json_delta""# => Some(PieceKind::InputJson),
                    _ => None,
                };
            }
            _ if value.first() == Some(&b'"') => {
                let of = match key {
                    b"text" => PieceKind::Text,
                    b"thinking" => PieceKind::Thinking,
                    b"partial_json" => PieceKind::InputJson,
                    _ => return Some(()),
                };
                piece = Span::part(from + 1, value.len() - 2).map(|span| (of, span));
            }
            _ => {}
        }
        Some(())
    })?;
    Some(match (seen, kind, piece) {
        (2, Some(kind), Some((of, span))) if kind == of => Some((kind, span)),
        _ => None,
    })
}

/// Walks over the object here, whose values `field` reads. Any other value has no fields.
#[inline]
fn inner<'t>(walk: &mut Walk<'t>, mut field: impl FnMut(&mut Walk<'t>, &[u8]) -> Option<()>) -> Option<()> {
    match walk.peek()? {
        b'{' => walk.fields(|walk, key| field(walk, &key)),
        _ => walk.value(),
    }
}

/// A string, or an integer as its text: the CLI repeats numeric ids. Nothing for any other value.
#[inline]
fn string(walk: &mut Walk<'_>) -> Option<Option<RoutingString>> {
    let from = walk.at();
    match walk.peek()? {
        b'"' => {
            let (quoted, escaped) = walk.quoted()?;
            let is_plain = !escaped && quoted.is_ascii();
            let span = Span::part(from + 1, quoted.len()).filter(|_| is_plain);
            Some(Some(span.map_or_else(|| own(quoted), RoutingString::Part)))
        }
        b'-' | b'0'..=b'9' => {
            walk.value()?;
            Some(integer(walk.since(from)).map(RoutingString::Own))
        }
        _ => walk.value().map(|()| None),
    }
}

#[cold]
fn own(quoted: &[u8]) -> RoutingString {
    RoutingString::Own(walk::unescaped(quoted).into())
}

fn integer(number: &[u8]) -> Option<Box<str>> {
    let number = std::str::from_utf8(number).ok()?;
    let signed = number.parse::<i64>().map(|number| number.to_string());
    let unsigned = || number.parse::<u64>().map(|number| number.to_string());
    signed.or_else(|_| unsigned()).ok().map(Into::into)
}

/// A number of a few digits and nothing else.
fn small(number: &[u8]) -> Option<u32> {
    let is_small = number.len() < 10 && number.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(number)
        .ok()
        .filter(|_| is_small)?
        .parse()
        .ok()
}
