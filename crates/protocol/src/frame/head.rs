//! The few fields of a frame that routing needs, read without the rest.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use serde_json::value::RawValue;

use super::{Misfit, MisfitKind};
use crate::lenient::Each;

/// Where one of the routing strings is.
#[derive(Debug, Clone, Default)]
pub(super) enum Span {
    #[default]
    None,
    /// In the line, which saves an allocation.
    Line { start: u32, length: u32 },
    /// Written with escapes, or numeric, or in mended text.
    Own(Box<str>),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Head {
    pub(super) kind: Span,
    pub(super) subtype: Span,
    pub(super) uuid: Span,
    pub(super) session_id: Span,
    pub(super) request_id: Span,
    pub(super) parent_tool_use_id: Span,
    pub(super) user_message_uuid: Span,
    pub(super) user_message_uuids: Vec<Span>,
    pub(super) command_uuid: Span,
    pub(super) state: Span,
    pub(super) origin_kind: Span,
    pub(super) is_replay: bool,
    pub(super) flaw: Option<Misfit>,
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

    pub(super) fn rebase(&mut self, by: usize) {
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
    pub(super) fn own(&mut self, text: &[u8]) {
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
pub(super) fn read_head(text: &[u8], head: &mut Head) -> Result<usize, String> {
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

pub(super) fn mend(bytes: &[u8]) -> Option<String> {
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
