//! The routing fields by a walk over the line's structure, which costs little more than finding the ends of its strings.
//!
//! It gives up, for [`parse`](super::parse) to read the line, on whatever it would have to think about: an escape or a
//! character beyond ASCII in what it looks at, a number in its place, a control character, deep nesting, and on everything
//! that is not JSON. So what it accepts is JSON to the last byte, except that it does not look at the UTF-8 within strings
//! that it passes over, as the other mostly does not.

use super::delta::{Piece, PieceKind};
use super::head::{Field, Found, Head, Span};
use crate::walk::Walk;

/// Reads the object at the beginning of `text`; how many bytes it takes, `None` when it gave up. The head is to be empty,
/// and has no meaning afterwards when it gave up.
pub(super) fn object(text: &[u8], head: &mut Head) -> Option<usize> {
    let mut skim = Skim::new(text, 0, Plain::default());
    skim.space();
    skim.frame(head)?;
    Some(skim.at)
}

/// The walk, and what it has seen of a piece.
type Skim<'t> = Walk<'t, Plain>;

/// Whether the frame is a piece of a block and nothing else: each of the fields that it has to have once, those that it may have
/// at most once, all of their type, and no others.
#[derive(Debug, Default)]
struct Plain {
    /// Which fields were seen, one bit each.
    seen: u8,
    is_not: bool,
    piece: Option<Piece>,
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

    fn piece(self) -> Option<Piece> {
        let is_plain = !self.is_not && self.seen & Self::NEEDED == Self::NEEDED;
        self.piece.filter(|_| is_plain)
    }
}

impl<'t> Skim<'t> {
    fn frame(&mut self, head: &mut Head) -> Option<()> {
        self.fields(|skim, key| {
            let is_string = skim.peek()? == b'"';
            let is_optional = is_string || skim.peek()? == b'n';
            let (field, bit, is_right) = match key {
                b"type" => (Field::Kind, Plain::TYPE, is_string),
                b"uuid" => (Field::Uuid, Plain::UUID, is_string),
                b"session_id" => (Field::SessionId, Plain::SESSION_ID, is_string),
                b"parent_tool_use_id" => (Field::ParentToolUseId, Plain::PARENT, is_optional),
                b"event" => {
                    skim.seen.see(Plain::EVENT, true);
                    return skim.event(head);
                }
                b"api_message_id" => {
                    skim.seen.see(Plain::API_MESSAGE_ID, is_optional);
                    return skim.value();
                }
                _ => {
                    skim.seen.is_not = true;
                    return skim.rarer(key, head);
                }
            };
            skim.seen.see(bit, is_right);
            skim.text(field, head)
        })?;
        head.piece = std::mem::take(&mut self.seen).piece();
        // An object without a type is for the other to tell.
        (!head.span(Field::Kind).is_none()).then_some(())
    }

    fn rarer(&mut self, key: &[u8], head: &mut Head) -> Option<()> {
        let field = match key {
            b"subtype" => Field::Subtype,
            b"request_id" => {
                head.is_own_id = self.peek()? == b'"';
                Field::RequestId
            }
            b"user_message_uuid" => Field::UserMessageUuid,
            b"command_uuid" => Field::CommandUuid,
            b"state" => Field::State,
            b"request" | b"response" => {
                return self.inner(|skim, key| match key {
                    b"subtype" => skim.text(Field::Subtype, head),
                    b"request_id" => {
                        head.is_own_id = false;
                        skim.text(Field::RequestId, head)
                    }
                    _ => skim.value(),
                });
            }
            b"origin" => {
                return self.inner(|skim, key| match key {
                    b"kind" => skim.text(Field::OriginKind, head),
                    _ => skim.value(),
                });
            }
            b"user_message_uuids" => return self.prompts(head),
            b"isReplay" => {
                head.is_replay = self.peek()? == b't';
                return self.value();
            }
            _ => return self.value(),
        };
        self.text(field, head)
    }

    /// The event of a `stream_event`, and the piece in it.
    fn event(&mut self, head: &mut Head) -> Option<()> {
        let (mut seen, mut index, mut delta) = (0_u8, None, None);
        let mut is_delta = false;
        self.inner(|skim, key| match key {
            b"type" => {
                seen = seen.saturating_add(1);
                let from = skim.at;
                skim.text(Field::EventType, head)?;
                is_delta = skim.text.get(from..skim.at)? == br#""content_block_delta""#;
                Some(())
            }
            b"index" => {
                seen = seen.saturating_add(1);
                let from = skim.at;
                skim.value()?;
                index = small(skim.text.get(from..skim.at)?);
                Some(())
            }
            b"delta" => {
                seen = seen.saturating_add(1);
                delta = skim.delta()?;
                Some(())
            }
            _ => {
                // Something more than a piece.
                seen = u8::MAX;
                skim.value()
            }
        })?;
        // Three fields, and all three of them.
        self.seen.piece = match (seen, is_delta, index, delta) {
            (3, true, Some(index), Some((kind, text))) => Some(Piece { index, kind, text }),
            _ => None,
        };
        Some(())
    }

    /// What is added to a block, if it is nothing but a kind and a string.
    fn delta(&mut self) -> Option<Option<(PieceKind, Span)>> {
        let (mut seen, mut kind, mut piece) = (0_u8, None, None);
        self.inner(|skim, key| {
            seen = seen.saturating_add(1);
            let from = skim.at;
            skim.value()?;
            let value = skim.text.get(from..skim.at)?;
            match key {
                b"type" => {
                    kind = match value {
                        br#""text_delta""# => Some((PieceKind::Text, "text")),
                        br#""thinking_delta""# => Some((PieceKind::Thinking, "thinking")),
                        br#""input_json_delta""# => Some((PieceKind::InputJson, "partial_json")),
                        _ => None,
                    }
                }
                _ if value.first() == Some(&b'"') => {
                    piece = Span::part(from + 1, value.len() - 2).map(|span| (key, span));
                }
                _ => {}
            }
            Some(())
        })?;
        Some(match (seen, kind, piece) {
            (2, Some((kind, name)), Some((key, span))) if name.as_bytes() == key => Some((kind, span)),
            _ => None,
        })
    }

    /// The object here, whose values `field` reads; anything else than an object is a value without fields.
    fn inner(&mut self, field: impl FnMut(&mut Self, &'t [u8]) -> Option<()>) -> Option<()> {
        match self.peek()? {
            b'{' => self.fields(field),
            _ => self.value(),
        }
    }

    /// A routing string; any other value leaves what was there.
    fn text(&mut self, field: Field, head: &mut Head) -> Option<()> {
        match self.peek()? {
            b'"' => head.set(field, self.part()?),
            b'-' | b'0'..=b'9' => return None,
            _ => self.value()?,
        }
        Some(())
    }

    fn part(&mut self) -> Option<Found> {
        let from = self.at + 1;
        let length = self.ascii()?.len();
        Span::part(from, length).map(Found::Part)
    }

    /// A list of routing strings.
    fn prompts(&mut self, head: &mut Head) -> Option<()> {
        head.clear_prompts();
        self.take(b'[')?;
        self.space();
        if self.take(b']').is_some() {
            return Some(());
        }
        loop {
            head.add_prompt(self.part()?);
            self.space();
            match self.peek()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
            self.space();
        }
    }
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
