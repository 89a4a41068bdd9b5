//! The routing fields by a JSON reader: exact in every corner, and slower than [`skim`](super::skim).

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use serde_json::value::RawValue;

use super::head::{Field, Found, Head, Span};
use crate::lenient::Each;

/// Reads the first value of `text`: how many bytes it takes, and whether it is an object.
pub(super) fn object(text: &[u8], head: &mut Head) -> Result<(usize, bool), String> {
    let mut values = serde_json::Deserializer::from_slice(text);
    let is_object = Object {
        text,
        head,
        level: Level::Frame,
    }
    .deserialize(&mut values)
    .map_err(|error| error.to_string())?;
    // `byte_offset` is only public on the stream deserializer, which starts at the next value.
    let rest = values.into_iter::<IgnoredAny>();
    Ok((rest.byte_offset().min(text.len()), is_object))
}

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Frame,
    /// Inside `request` or `response`.
    Control,
    /// Inside `origin`.
    Origin,
    /// Inside `event`.
    Event,
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
            let field = match (level, &*key.0) {
                (Level::Frame, "type") => Field::Kind,
                (Level::Frame | Level::Control, "subtype") => Field::Subtype,
                (Level::Frame, "uuid") => Field::Uuid,
                (Level::Frame, "session_id") => Field::SessionId,
                (Level::Frame | Level::Control, "request_id") => Field::RequestId,
                (Level::Frame, "parent_tool_use_id") => Field::ParentToolUseId,
                (Level::Frame, "user_message_uuid") => Field::UserMessageUuid,
                (Level::Frame, "command_uuid") => Field::CommandUuid,
                (Level::Frame, "state") => Field::State,
                (Level::Origin, "kind") => Field::OriginKind,
                (Level::Event, "type") => Field::EventType,
                (Level::Frame, "user_message_uuids") => {
                    head.clear_prompts();
                    map.next_value_seed(Strings { text, head })?;
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
                (Level::Frame, "event") => {
                    map.next_value_seed(Object {
                        text,
                        head,
                        level: Level::Event,
                    })?;
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if let Some(found) = map.next_value_seed(Str { text })? {
                head.set(field, found);
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
    type Value = Option<Found>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // Taken as text first: no number is too large for it, and a cargo feature of serde_json that makes numbers
        // look like objects does not matter.
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        Ok(match raw.as_bytes().first() {
            Some(b'"') => self.string(raw),
            Some(b'-' | b'0'..=b'9') => integer(raw).map(Found::Own),
            _ => None,
        })
    }
}

impl Str<'_> {
    fn string(&self, raw: &str) -> Option<Found> {
        let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
        if inner.contains('\\') {
            let own: Option<Box<str>> = serde_json::from_str(raw).ok();
            let mended = || serde_json::from_str(&crate::repair::lone_surrogates(raw)?).ok();
            return own.or_else(mended).map(Found::Own);
        }
        let start = (inner.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let inside = start
            .checked_add(inner.len())
            .is_some_and(|end| end <= self.text.len());
        let part = Span::part(start, inner.len()).filter(|_| inside);
        Some(part.map_or_else(|| Found::Own(inner.into()), Found::Part))
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
struct Strings<'t, 'h> {
    text: &'t [u8],
    head: &'h mut Head,
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
            found.into_iter().for_each(|found| self.head.add_prompt(found));
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
