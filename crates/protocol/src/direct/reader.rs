//! A JSON reader for what the CLI usually writes: it walks over long strings by blocks, as [`crate::scan`] does.
//!
//! It gives up on whatever it would have to think about (a key with escapes, a number that is no short integer where it can be
//! anything, deep nesting) and on everything that is not JSON; serde_json then reads the text, and says what is wrong with it.
//! What it does read, it reads as serde_json would.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::{MODE, Mode};
use crate::frame::value_end;
use crate::scan;

/// How deep it reads; serde_json's own limit is 128.
const DEEPEST: u8 = 100;

/// The name by which serde_json's raw values ask for their text.
const RAW: &str = "$serde_json::private::RawValue";

/// Reads one value, and nothing behind it.
pub(super) fn read<'de, T: serde::Deserialize<'de>>(text: &'de str) -> Result<T, GivenUp> {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
    };
    let value = T::deserialize(&mut reader)?;
    match reader.token() {
        None => Ok(value),
        Some(_) => Err(reader.give_up()),
    }
}

/// Why does not matter: the text is read again.
#[derive(Debug)]
pub(super) struct GivenUp;

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not read straight through")
    }
}

impl std::error::Error for GivenUp {}

impl serde::de::Error for GivenUp {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

struct Reader<'de> {
    text: &'de str,
    at: usize,
    depth: u8,
}

impl<'de> Reader<'de> {
    /// An error of this reader's own. Some visitors take an error for an answer, so it is kept in mind.
    fn give_up(&self) -> GivenUp {
        MODE.set(Mode::GivenUp);
        GivenUp
    }

    /// The next byte that is no space.
    fn token(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let space = rest
            .iter()
            .position(|byte| !matches!(byte, b' ' | b'\n' | b'\t' | b'\r'));
        self.at += space.unwrap_or(rest.len());
        self.text.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), GivenUp> {
        match self.token() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.give_up()),
        }
    }

    fn part(&self, from: usize, to: usize) -> Result<&'de str, GivenUp> {
        self.text.get(from..to).ok_or_else(|| self.give_up())
    }

    fn word<T>(&mut self, word: &str, value: T) -> Result<T, GivenUp> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.give_up());
        }
        self.at += word.len();
        Ok(value)
    }

    /// The text between quotes, of which the first one was seen; and whether it has escapes.
    fn quoted(&mut self) -> Result<(&'de str, bool), GivenUp> {
        let from = self.at + 1;
        let end = scan::string_end(self.text.as_bytes(), from).ok_or_else(|| self.give_up())?;
        self.at = end.at;
        Ok((self.part(from, end.at - 1)?, end.escaped))
    }

    fn string<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, GivenUp> {
        let (text, escaped) = self.quoted()?;
        if !escaped {
            return visitor.visit_borrowed_str(text);
        }
        match scan::unescape(text).ok_or_else(|| self.give_up())? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    /// The text of a number.
    fn number(&mut self) -> Result<&'de str, GivenUp> {
        let from = self.at;
        self.skip()?;
        self.part(from, self.at)
    }

    fn integer<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, GivenUp> {
        let number = self.number()?;
        let digits = number.strip_prefix('-').unwrap_or(number);
        // Fewer digits than overflow; and a negative zero is a float.
        let is_short = digits.len() <= 18 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_short || number.starts_with("-0") {
            return Err(self.give_up());
        }
        match number.parse() {
            Ok(positive @ 0..=i64::MAX) => visitor.visit_u64(positive.cast_unsigned()),
            Ok(negative) => visitor.visit_i64(negative),
            Err(_) => Err(self.give_up()),
        }
    }

    fn float<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, GivenUp> {
        let from = self.at;
        let number = self.number()?;
        if number.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
            let float = serde_json::from_str(number).map_err(|_| self.give_up())?;
            return visitor.visit_f64(float);
        }
        self.at = from;
        self.integer(visitor)
    }

    /// Goes over the value here.
    fn skip(&mut self) -> Result<(), GivenUp> {
        self.at = value_end(self.text.as_bytes(), self.at).ok_or_else(|| self.give_up())?;
        Ok(())
    }

    /// Reads what is within brackets, of which the first was seen.
    fn within<T>(
        &mut self,
        close: u8,
        read: impl FnOnce(&mut Self) -> Result<T, GivenUp>,
    ) -> Result<T, GivenUp> {
        if self.depth == DEEPEST {
            return Err(self.give_up());
        }
        self.at += 1;
        self.depth += 1;
        let value = read(self)?;
        self.depth -= 1;
        self.expect(close)?;
        Ok(value)
    }
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = GivenUp;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivenUp> {
        match self.token() {
            Some(b'"') => self.string(visitor),
            Some(b'{') => self.within(b'}', |reader| visitor.visit_map(Elements::of(reader, b'}'))),
            Some(b'[') => self.within(b']', |reader| visitor.visit_seq(Elements::of(reader, b']'))),
            Some(b'n') => self.word("null", ()).and_then(|()| visitor.visit_unit()),
            Some(b't') => self.word("true", true).and_then(|flag| visitor.visit_bool(flag)),
            Some(b'f') => self
                .word("false", false)
                .and_then(|flag| visitor.visit_bool(flag)),
            Some(b'-' | b'0'..=b'9') => self.integer(visitor),
            _ => Err(self.give_up()),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivenUp> {
        match self.token() {
            Some(b'-' | b'0'..=b'9') => self.float(visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivenUp> {
        match self.token() {
            Some(b'n') => self.word("null", ()).and_then(|()| visitor.visit_none()),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, GivenUp> {
        if name != RAW {
            return visitor.visit_newtype_struct(self);
        }
        self.token();
        let from = self.at;
        self.skip()?;
        let raw = self.part(from, self.at)?;
        visitor.visit_map(Raw(Some(raw)))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivenUp> {
        self.token();
        self.skip()?;
        visitor.visit_unit()
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, GivenUp> {
        if self.token() != Some(b'"') {
            return Err(self.give_up());
        }
        match self.quoted()? {
            (text, false) => BorrowedStrDeserializer::new(text).deserialize_enum(name, variants, visitor),
            _ => Err(self.give_up()),
        }
    }

    // They may be made of numbers or strings, which is for serde_json to say.
    fn deserialize_bytes<V: Visitor<'de>>(self, _: V) -> Result<V::Value, GivenUp> {
        Err(self.give_up())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, _: V) -> Result<V::Value, GivenUp> {
        Err(self.give_up())
    }

    fn deserialize_f32<V: Visitor<'de>>(self, _: V) -> Result<V::Value, GivenUp> {
        Err(self.give_up())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 char str string unit unit_struct seq tuple tuple_struct map struct
        identifier
    }
}

/// What is within brackets.
struct Elements<'r, 'de> {
    reader: &'r mut Reader<'de>,
    close: u8,
    is_first: bool,
}

impl<'r, 'de> Elements<'r, 'de> {
    fn of(reader: &'r mut Reader<'de>, close: u8) -> Self {
        Self {
            reader,
            close,
            is_first: true,
        }
    }

    /// Whether another one follows; its first byte is next.
    fn go_on(&mut self) -> Result<bool, GivenUp> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        match self.reader.token() {
            Some(byte) if byte == self.close => Ok(false),
            Some(_) if is_first => Ok(true),
            Some(b',') => {
                self.reader.at += 1;
                match self.reader.token() {
                    Some(byte) if byte != self.close => Ok(true),
                    _ => Err(self.reader.give_up()),
                }
            }
            _ => Err(self.reader.give_up()),
        }
    }
}

impl<'de> SeqAccess<'de> for Elements<'_, 'de> {
    type Error = GivenUp;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, GivenUp> {
        match self.go_on()? {
            true => seed.deserialize(&mut *self.reader).map(Some),
            false => Ok(None),
        }
    }
}

impl<'de> MapAccess<'de> for Elements<'_, 'de> {
    type Error = GivenUp;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, GivenUp> {
        if !self.go_on()? {
            return Ok(None);
        }
        if self.reader.token() != Some(b'"') {
            return Err(self.reader.give_up());
        }
        match self.reader.quoted()? {
            (key, false) => seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some),
            _ => Err(self.reader.give_up()),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, GivenUp> {
        self.reader.expect(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

/// The text of a value, as serde_json's raw values take it.
struct Raw<'de>(Option<&'de str>);

impl<'de> MapAccess<'de> for Raw<'de> {
    type Error = GivenUp;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, GivenUp> {
        match self.0 {
            Some(_) => seed.deserialize(BorrowedStrDeserializer::new(RAW)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, GivenUp> {
        let raw = self.0.take().ok_or(GivenUp)?;
        seed.deserialize(BorrowedStrDeserializer::new(raw))
    }
}
