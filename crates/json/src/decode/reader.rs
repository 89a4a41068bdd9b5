//! The JSON reader: it walks over long strings by blocks, as [`crate::scan`] does.
//!
//! It reads what serde_json reads, with two differences: it never makes a struct of an array, and it leaves the error for text that is
//! not JSON to serde_json.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, StrDeserializer, U64Deserializer};
use serde::de::{
    DeserializeSeed, Deserializer, Error, Expected, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use super::{HANDOVER, Handover, UNION};
use crate::raw::RawJson;
use crate::scan;
use crate::walk::{self, Walk};

/// How deep it reads, as serde_json.
const DEEPEST: u8 = 127;

/// The name by which serde_json's raw values ask for their text.
const RAW: &str = "$serde_json::private::RawValue";

/// Why something could not be read. Where is known to the reader, which stays there.
#[doc(hidden)]
#[derive(Debug)]
pub struct Failed(Box<str>);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

impl Error for Failed {
    #[cold]
    #[inline(never)]
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string().into())
    }

    // The same as serde's own, but not made anew for each field.
    #[cold]
    #[inline(never)]
    fn missing_field(field: &'static str) -> Self {
        Self(format!("missing field `{field}`").into())
    }

    #[cold]
    #[inline(never)]
    fn duplicate_field(field: &'static str) -> Self {
        Self(format!("duplicate field `{field}`").into())
    }
}

/// What a reader hands on to that of a part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level {
    depth: u8,
    /// Unions look at all of their keys first. What is read again is read like this, such that nothing is read again within it.
    careful: bool,
}

/// Reads a value from its beginning.
#[doc(hidden)]
pub struct Reader<'de> {
    text: &'de str,
    at: usize,
    level: Level,
    /// A key that has escapes.
    key: String,
    /// The tag of the union that is read, the depth of its fields, and how often it was seen there.
    tag: &'static str,
    tag_depth: u8,
    tags: u8,
}

impl<'de> Reader<'de> {
    pub(super) fn at(text: &'de str, level: Level) -> Self {
        Self {
            text,
            at: 0,
            level,
            key: String::new(),
            tag: "",
            tag_depth: 0,
            tags: 0,
        }
    }

    pub(super) fn of(text: &'de str) -> Self {
        let (depth, careful) = (0, false);
        Self::at(text, Level { depth, careful })
    }

    /// Reads the union again, of another text, as deep as it is: the stack has only so much room.
    pub(super) fn careful<'t>(&self, text: &'t str) -> Reader<'t> {
        let (depth, careful) = (self.tag_depth.saturating_sub(1), true);
        Reader::at(text, Level { depth, careful })
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Whether nothing is behind the value.
    #[inline(never)]
    pub(super) fn end(&mut self) -> Result<(), serde_json::Error> {
        match self.token() {
            None => Ok(()),
            Some(_) => Err(self.error_for(&Failed::custom("trailing characters"))),
        }
    }

    /// Why the text could not be read. What is no JSON is for serde_json to say; it takes the place of others out of their text.
    #[cold]
    #[inline(never)]
    pub(super) fn error_for(&self, failed: &Failed) -> serde_json::Error {
        match serde_json::from_str::<IgnoredAny>(self.text) {
            Ok(_) => serde_json::Error::custom(self.reason(failed)),
            Err(error) => error,
        }
    }

    /// The reason with its place.
    #[cold]
    pub(super) fn reason(&self, failed: &Failed) -> String {
        let read = self.text.as_bytes().get(..self.at).unwrap_or_default();
        let line = read.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = read.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        format!("{failed} at line {line} column {column}")
    }

    #[cold]
    #[inline(never)]
    fn fail<T>(&self, why: &str) -> Result<T, Failed> {
        Err(Failed(why.into()))
    }

    /// The next byte that is no space.
    fn token(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at).copied() {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                other => return other,
            }
        }
    }

    #[inline(never)]
    fn expect(&mut self, byte: u8) -> Result<(), Failed> {
        match self.token() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            _ => self.fail("not JSON"),
        }
    }

    fn part(&self, from: usize, to: usize) -> Result<&'de str, Failed> {
        match self.text.get(from..to) {
            Some(part) => Ok(part),
            None => self.fail("not JSON"),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), Failed> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return self.fail("not JSON");
        }
        self.at += word.len();
        Ok(())
    }

    /// Whether the value here is null; if so, it is read.
    #[inline(never)]
    fn null(&mut self) -> Result<bool, Failed> {
        match self.token() {
            Some(b'n') => self.word("null").map(|()| true),
            _ => Ok(false),
        }
    }

    #[inline(never)]
    fn flag(&mut self, expected: &dyn Expected) -> Result<bool, Failed> {
        match self.token() {
            Some(b't') => self.word("true").map(|()| true),
            Some(b'f') => self.word("false").map(|()| false),
            _ => Err(self.unexpected(expected)),
        }
    }

    /// The text between quotes, of which the first one was seen; and whether it has escapes.
    fn quoted(&mut self) -> Result<(&'de str, bool), Failed> {
        let from = self.at + 1;
        let Some(end) = scan::string_end(self.text.as_bytes(), from) else {
            return self.fail("not JSON");
        };
        self.at = end.at;
        Ok((self.part(from, end.at - 1)?, end.escaped))
    }

    #[inline(never)]
    fn string(&mut self, expected: &dyn Expected) -> Result<Cow<'de, str>, Failed> {
        if self.token() != Some(b'"') {
            return Err(self.unexpected(expected));
        }
        match self.quoted()? {
            (text, false) => Ok(Cow::Borrowed(text)),
            (text, true) => match scan::unescape(text) {
                Some(text) => Ok(text),
                None => self.fail("lone surrogate in a string"),
            },
        }
    }

    #[inline(never)]
    fn number(&mut self, expected: &dyn Expected) -> Result<Number, Failed> {
        if !matches!(self.token(), Some(b'-' | b'0'..=b'9')) {
            return Err(self.unexpected(expected));
        }
        let from = self.at;
        self.skip()?;
        let text = self.part(from, self.at)?;
        let is_float = text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
        if !is_float && let Ok(number) = text.parse() {
            return Ok(Number::Unsigned(number));
        }
        // A negative zero is a float.
        if !is_float
            && text != "-0"
            && let Ok(number) = text.parse()
        {
            return Ok(Number::Signed(number));
        }
        match text.parse() {
            Ok(number) if f64::is_finite(number) => Ok(Number::Float(number)),
            _ => self.fail("number out of range"),
        }
    }

    /// Goes over the value here.
    #[inline(never)]
    fn skip(&mut self) -> Result<(), Failed> {
        self.token();
        let mut walk = Walk::new(self.text.as_bytes(), self.at);
        match walk.value() {
            Some(()) => {
                self.at = walk.at();
                Ok(())
            }
            None => self.fail("not JSON"),
        }
    }

    /// The error for a value that is not what was expected; it is read as far as it takes to tell what it is.
    #[cold]
    #[inline(never)]
    fn unexpected(&mut self, expected: &dyn Expected) -> Failed {
        let found = match self.token() {
            Some(b'"') => match self.string(expected) {
                Ok(text) => return Failed::invalid_type(Unexpected::Str(&text), expected),
                Err(failed) => return failed,
            },
            Some(b'-' | b'0'..=b'9') => match self.number(expected) {
                Ok(number) => number.unexpected(),
                Err(failed) => return failed,
            },
            Some(b't') => Unexpected::Bool(true),
            Some(b'f') => Unexpected::Bool(false),
            Some(b'n') => Unexpected::Other("null"),
            Some(b'{') => Unexpected::Map,
            Some(b'[') => Unexpected::Seq,
            _ => return Failed("not JSON".into()),
        };
        Failed::invalid_type(found, expected)
    }

    /// Goes into what begins with `bracket`.
    #[inline(never)]
    fn open(&mut self, bracket: u8, expected: &dyn Expected) -> Result<Elements<'_, 'de>, Failed> {
        if self.token() != Some(bracket) {
            return Err(self.unexpected(expected));
        }
        if self.level.depth == DEEPEST {
            return self.fail("recursion limit exceeded");
        }
        self.at += 1;
        self.level.depth += 1;
        Ok(Elements {
            reader: self,
            close: bracket + 2,
            is_first: true,
        })
    }

    /// Leaves what ends with `bracket`.
    #[inline(never)]
    fn close(&mut self, bracket: u8) -> Result<(), Failed> {
        self.level.depth -= 1;
        match self.token() {
            Some(found) if found == bracket => {
                self.at += 1;
                Ok(())
            }
            _ => self.fail("trailing characters"),
        }
    }

    /// Leaves an object whose last key was read, so that its bracket is next.
    #[inline(never)]
    fn leave(&mut self) {
        self.level.depth -= 1;
        self.at += 1;
    }

    /// The tag of the union that is all of the text. Nothing is read yet.
    #[inline(never)]
    pub(super) fn tag(&mut self, union: &'static str, key: &'static str) -> Result<Cow<'de, str>, Failed> {
        (self.tag, self.tag_depth, self.tags) = (key, self.level.depth + 1, 0);
        if !self.level.careful
            && let Some(tag) = self.first_tag(key)
        {
            self.at = 0;
            return Ok(Cow::Borrowed(tag));
        }
        self.at = 0;
        let raw = self.whole()?;
        self.at = 0;
        self.last_tag(&raw, union, key).map(Cow::Owned)
    }

    /// The first tag, if there is nothing unusual before it.
    fn first_tag(&mut self, key: &str) -> Option<&'de str> {
        if self.token()? != b'{' {
            return None;
        }
        self.at += 1;
        loop {
            if self.token()? != b'"' {
                return None;
            }
            let (name, escaped) = self.quoted().ok()?;
            self.expect(b':').ok()?;
            if name == key || escaped {
                let is_plain = !escaped && self.token()? == b'"';
                let (tag, escaped) = is_plain.then(|| self.quoted().ok())??;
                return (!escaped).then_some(tag);
            }
            self.skip().ok()?;
            self.expect(b',').ok()?;
        }
    }

    /// Which tag counts: the last one.
    #[cold]
    pub(super) fn last_tag(&self, raw: &RawJson, union: &str, key: &str) -> Result<String, Failed> {
        walk::string_at(raw.get(), key)
            .ok_or_else(|| Failed(format!("{union} without a string `{key}`").into()))
    }

    /// The whole union.
    #[cold]
    pub(super) fn whole(&mut self) -> Result<RawJson, Failed> {
        self.at = 0;
        self.skip()?;
        RawJson::from_text(self.part(0, self.at)?).map_err(Failed::custom)
    }

    /// Whether the union has its tag twice.
    pub(super) fn has_other_tags(&self) -> bool {
        self.tags > 1
    }
}

#[derive(Debug, Clone, Copy)]
enum Number {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

impl Number {
    fn unexpected(self) -> Unexpected<'static> {
        match self {
            Self::Unsigned(number) => Unexpected::Unsigned(number),
            Self::Signed(number) => Unexpected::Signed(number),
            Self::Float(number) => Unexpected::Float(number),
        }
    }

    fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match self {
            Self::Unsigned(number) => visitor.visit_u64(number),
            Self::Signed(number) => visitor.visit_i64(number),
            Self::Float(number) => visitor.visit_f64(number),
        }
    }
}

macro_rules! numbers {
    ($($method:ident)+) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
                self.number(&visitor)?.visit(visitor)
            }
        )+
    };
}

/// Methods that read what another method reads, and ignore their other arguments.
macro_rules! forward {
    ($($method:ident($($told:ty),*) to $other:ident;)+) => {
        $(
            fn $method<V: Visitor<'de>>(self, $(_: $told,)* visitor: V) -> Result<V::Value, Failed> {
                self.$other(visitor)
            }
        )+
    };
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Failed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match self.token() {
            Some(b'"') => self.deserialize_str(visitor),
            Some(b'{') => self.deserialize_map(visitor),
            Some(b'[') => self.deserialize_seq(visitor),
            Some(b'n') => self.deserialize_unit(visitor),
            Some(b't' | b'f') => self.deserialize_bool(visitor),
            _ => self.number(&visitor)?.visit(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let flag = self.flag(&visitor)?;
        visitor.visit_bool(flag)
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match self.string(&visitor)? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match self.null()? {
            true => visitor.visit_unit(),
            false => Err(self.unexpected(&visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match self.null()? {
            true => visitor.visit_none(),
            false => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let elements = self.open(b'[', &visitor)?;
        let value = visitor.visit_seq(elements)?;
        self.close(b']')?;
        Ok(value)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let elements = self.open(b'{', &visitor)?;
        let value = visitor.visit_map(elements)?;
        self.close(b'}')?;
        Ok(value)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        let elements = self.open(b'{', &Struct(name))?;
        let read = visitor.visit_map(Fields {
            elements,
            names,
            next: 0,
        });
        if read.is_ok() {
            self.leave();
        }
        read
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failed> {
        match name {
            RAW => {
                self.token();
                let from = self.at;
                self.skip()?;
                visitor.visit_map(Raw(Some(self.part(from, self.at)?)))
            }
            UNION => {
                self.token();
                let text = self.part(self.at, self.text.len())?;
                HANDOVER.set(Handover::Given(self.level));
                let read = visitor.visit_borrowed_str(text);
                if let Handover::Read(length) = HANDOVER.replace(Handover::Nothing) {
                    self.at += length;
                }
                read
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.skip()?;
        visitor.visit_unit()
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        let text = self.string(&visitor)?;
        visitor.visit_enum(StrDeserializer::new(&text))
    }

    forward_to_deserialize_any! {
        bytes byte_buf
    }

    forward! {
        deserialize_char() to deserialize_str;
        deserialize_string() to deserialize_str;
        deserialize_identifier() to deserialize_str;
        deserialize_unit_struct(&'static str) to deserialize_unit;
        deserialize_tuple(usize) to deserialize_seq;
        deserialize_tuple_struct(&'static str, usize) to deserialize_seq;
    }
}

/// What is within brackets.
struct Elements<'r, 'de> {
    reader: &'r mut Reader<'de>,
    close: u8,
    is_first: bool,
}

impl<'de> Elements<'_, 'de> {
    /// Whether another one follows; its first byte is next.
    #[inline(never)]
    fn go_on(&mut self) -> Result<bool, Failed> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        match self.reader.token() {
            Some(byte) if byte == self.close => Ok(false),
            Some(_) if is_first => Ok(true),
            Some(b',') => {
                self.reader.at += 1;
                match self.reader.token() {
                    Some(byte) if byte != self.close => Ok(true),
                    _ => self.reader.fail("not JSON"),
                }
            }
            _ => self.reader.fail("not JSON"),
        }
    }

    /// The next key.
    #[inline(never)]
    fn key(&mut self) -> Result<Option<&str>, Failed> {
        if !self.go_on()? {
            return Ok(None);
        }
        let reader = &mut *self.reader;
        if reader.token() != Some(b'"') {
            return reader.fail("not JSON");
        }
        let (text, escaped) = reader.quoted()?;
        let key = if escaped {
            match scan::unescape(text) {
                Some(text) => reader.key = text.into_owned(),
                None => return reader.fail("lone surrogate in a key"),
            }
            reader.key.as_str()
        } else {
            text
        };
        if reader.level.depth == reader.tag_depth && key == reader.tag {
            reader.tags = reader.tags.saturating_add(1);
        }
        Ok(Some(key))
    }
}

impl<'de> SeqAccess<'de> for Elements<'_, 'de> {
    type Error = Failed;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failed> {
        match self.go_on()? {
            true => seed.deserialize(&mut *self.reader).map(Some),
            false => Ok(None),
        }
    }
}

impl<'de> MapAccess<'de> for Elements<'_, 'de> {
    type Error = Failed;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failed> {
        match self.key()? {
            Some(key) => seed.deserialize(Text(key)).map(Some),
            None => Ok(None),
        }
    }

    #[inline(never)]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failed> {
        self.reader.expect(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

/// What serde's derived visitors say that they expect.
struct Struct(&'static str);

impl Expected for Struct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "struct {}", self.0)
    }
}

/// The fields of a struct. Its visitor asks for keys until there are no more, and gets the numbers of the fields instead of their
/// names, so it has no code to compare names. That is right as long as no field has an alias, since serde lists these among the names.
struct Fields<'r, 'de> {
    elements: Elements<'r, 'de>,
    names: &'static [&'static str],
    /// The field that comes next if all are there in order.
    next: usize,
}

impl Fields<'_, '_> {
    /// The number of the next field; that behind the last one for a key that is no field.
    #[inline(never)]
    fn number(&mut self) -> Result<Option<u64>, Failed> {
        let names = self.names;
        let next = self.next;
        let Some(key) = self.elements.key()? else {
            return Ok(None);
        };
        let (before, behind) = names.split_at(next.min(names.len()));
        let number = match behind.iter().position(|name| *name == key) {
            Some(further) => next + further,
            None => before.iter().position(|name| *name == key).unwrap_or(names.len()),
        };
        if number < names.len() {
            self.next = number + 1;
        }
        Ok(Some(number as u64))
    }
}

impl<'de> MapAccess<'de> for Fields<'_, 'de> {
    type Error = Failed;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failed> {
        match self.number()? {
            Some(number) => seed.deserialize(U64Deserializer::new(number)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failed> {
        self.elements.next_value_seed(seed)
    }
}

/// A key.
struct Text<'t>(&'t str);

impl<'de> Deserializer<'de> for Text<'_> {
    type Error = Failed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        visitor.visit_str(self.0)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failed> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        visitor.visit_enum(StrDeserializer::new(self.0))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// The text of a value, as serde_json's raw values take it.
struct Raw<'de>(Option<&'de str>);

impl<'de> MapAccess<'de> for Raw<'de> {
    type Error = Failed;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failed> {
        match self.0 {
            Some(_) => seed.deserialize(BorrowedStrDeserializer::new(RAW)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failed> {
        let raw = self.0.take().ok_or_else(|| Failed("no raw value".into()))?;
        seed.deserialize(BorrowedStrDeserializer::new(raw))
    }
}
