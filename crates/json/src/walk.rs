//! Walks over JSON text without decoding it, for those who want a small part of a long text.
//!
//! The walk accepts what serde_json accepts, however it is written: any space, escapes, and any depth. It does not check the UTF-8
//! inside of strings that it passes over.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use crate::{repair, scan};

/// Calls `each` with the key and the text of the value of each field of the object that `text` is, in order. A key that stands
/// twice comes twice. `None` if `text` is no object, perhaps after some calls.
pub fn fields<'t>(text: &'t str, mut each: impl FnMut(Cow<'t, str>, &'t str)) -> Option<()> {
    let mut walk = Walk::of(text.as_bytes());
    walk.fields(|walk, key| {
        let key = match key {
            Cow::Borrowed(key) => Cow::Borrowed(std::str::from_utf8(key).ok()?),
            Cow::Owned(key) => Cow::Owned(String::from_utf8(key).ok()?),
        };
        let from = walk.at;
        walk.value()?;
        each(key, text.get(from..walk.at)?);
        Some(())
    })?;
    walk.end()
}

/// Calls `each` with the text of each element of the array that `text` is, in order. `None` if `text` is no array, perhaps after
/// some calls.
pub fn elements<'t>(text: &'t str, mut each: impl FnMut(&'t str)) -> Option<()> {
    let mut walk = Walk::of(text.as_bytes());
    walk.elements(|walk| {
        let from = walk.at;
        walk.value()?;
        each(text.get(from..walk.at)?);
        Some(())
    })?;
    walk.end()
}

/// The string that `text` is, with a lone surrogate as U+FFFD; `None` for any other value.
pub fn string(text: &str) -> Option<Cow<'_, str>> {
    let mut walk = Walk::new(text.as_bytes(), 0);
    let (quoted, escaped) = walk.quoted()?;
    walk.end()?;
    match escaped {
        true => Some(Cow::Owned(unescaped(quoted))),
        false => text.get(1..=quoted.len()).map(Cow::Borrowed),
    }
}

/// The string at key `key` of the object that `text` is. Of a key that stands twice the last one counts, as in JavaScript.
pub fn string_at(text: &str, key: &str) -> Option<String> {
    let mut found = None;
    fields(text, |name, value| {
        if name == key {
            found = string(value).map(Cow::into_owned);
        }
    })?;
    found
}

/// What stands between quotes, by bytes that were walked over. Lone surrogates and what is no UTF-8 become U+FFFD.
#[cold]
pub fn unescaped(quoted: &[u8]) -> String {
    let text = String::from_utf8_lossy(quoted);
    if let Some(said) = scan::unescape(&text) {
        return said.into_owned();
    }
    let mended = repair::lone_surrogates(&text).unwrap_or_default();
    scan::unescape(&mended).unwrap_or_default().into_owned()
}

/// A place in JSON text. All methods return `None` where the text is not JSON, or not what they read.
#[derive(Debug)]
pub struct Walk<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Walk<'t> {
    /// Begins at `at`.
    #[inline]
    pub fn new(text: &'t [u8], at: usize) -> Self {
        Self { text, at }
    }

    /// Begins at the first byte that is no space.
    #[inline]
    pub fn of(text: &'t [u8]) -> Self {
        let mut walk = Self::new(text, 0);
        walk.space();
        walk
    }

    /// How far the walk has come.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The bytes that were walked over since it was at `from`.
    #[inline]
    pub fn since(&self, from: usize) -> &'t [u8] {
        self.text.get(from..self.at).unwrap_or_default()
    }

    /// The next byte.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Passes over space.
    #[inline]
    pub fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Passes over space, up to the end of the text.
    pub fn end(&mut self) -> Option<()> {
        self.space();
        (self.at == self.text.len()).then_some(())
    }

    #[inline]
    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Walks over an object. `field` gets each key, unescaped, and walks over the value.
    #[inline]
    pub fn fields(&mut self, mut field: impl FnMut(&mut Self, Cow<'t, [u8]>) -> Option<()>) -> Option<()> {
        self.take(b'{')?;
        self.space();
        if self.take(b'}').is_some() {
            return Some(());
        }
        loop {
            let key = match self.quoted()? {
                (key, false) => Cow::Borrowed(key),
                (key, true) => Cow::Owned(unescaped(key).into_bytes()),
            };
            self.colon()?;
            field(self, key)?;
            if self.is_last(b'}')? {
                return Some(());
            }
        }
    }

    /// Walks over an array. `element` walks over each element.
    #[inline]
    pub fn elements(&mut self, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.take(b'[')?;
        self.space();
        if self.take(b']').is_some() {
            return Some(());
        }
        loop {
            element(self)?;
            if self.is_last(b']')? {
                return Some(());
            }
        }
    }

    /// Passes over what is behind a part: a comma, or the closing bracket.
    #[inline]
    fn is_last(&mut self, close: u8) -> Option<bool> {
        self.space();
        let is_last = self.peek()? == close;
        if !is_last {
            self.take(b',')?;
            self.space();
        } else {
            self.at += 1;
        }
        Some(is_last)
    }

    #[inline]
    fn colon(&mut self) -> Option<()> {
        self.space();
        self.take(b':')?;
        self.space();
        Some(())
    }

    /// Walks over a string. What stands between its quotes, and whether there are escapes in it.
    #[inline]
    pub fn quoted(&mut self) -> Option<(&'t [u8], bool)> {
        self.take(b'"')?;
        let from = self.at;
        let end = scan::string_end(self.text, from)?;
        self.at = end.at;
        Some((self.text.get(from..end.at - 1)?, end.escaped))
    }

    /// Walks over a value of any kind.
    pub fn value(&mut self) -> Option<()> {
        let from = self.at;
        // One bit for each level of nesting: whether it is an object.
        let mut objects = 0_u64;
        let mut depth = 0;
        loop {
            match self.peek()? {
                b'"' => {
                    self.quoted()?;
                }
                open @ (b'{' | b'[') => {
                    if depth == u64::BITS {
                        self.at = deep_end(self.text, from)?;
                        return Some(());
                    }
                    depth += 1;
                    objects = objects << 1 | u64::from(open == b'{');
                    self.at += 1;
                    self.space();
                    // An empty one is closed below.
                    match (self.peek()?, open) {
                        (b'}', b'{') | (b']', b'[') => {}
                        (_, b'{') => {
                            self.quoted()?;
                            self.colon()?;
                            continue;
                        }
                        _ => continue,
                    }
                }
                b't' => self.word(b"true")?,
                b'f' => self.word(b"false")?,
                b'n' => self.word(b"null")?,
                _ => self.number()?,
            }
            loop {
                if depth == 0 {
                    return Some(());
                }
                self.space();
                let in_object = objects & 1 == 1;
                match self.peek()? {
                    b',' => {
                        self.at += 1;
                        self.space();
                        if in_object {
                            self.quoted()?;
                            self.colon()?;
                        }
                        break;
                    }
                    b'}' if in_object => {}
                    b']' if !in_object => {}
                    _ => return None,
                }
                self.at += 1;
                depth -= 1;
                objects >>= 1;
            }
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.text[self.at..]
            .starts_with(word)
            .then(|| self.at += word.len())
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.take(b'-');
        match self.take(b'0') {
            // JSON has no leading zeros. Where the number is the whole line, no later check would find one.
            Some(()) if matches!(self.peek(), Some(b'0'..=b'9')) => return None,
            Some(()) => {}
            None => self.digits()?,
        }
        if self.take(b'.').is_some() {
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        (self.at > from).then_some(())
    }
}

/// Where a value ends that is nested deeper than a word has bits: serde_json goes as deep as there is memory.
#[cold]
fn deep_end(text: &[u8], at: usize) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_slice(text.get(at..)?).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    Some(at + values.byte_offset())
}
