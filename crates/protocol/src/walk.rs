//! Over the parts of JSON text without decoding them, for those who want one small part of a long text.
//!
//! It gives up on what it would have to think about, such as escapes in a key, other space than blanks, or deep nesting, and on
//! everything that is not JSON. Whoever asks then reads the text with serde_json, which says what is wrong with it if anything is.

use crate::scan;

/// Tells `each` the key and the text of the value of each field of the object that `text` is, in order; a key that stands twice
/// comes twice. `None` when it gave up, perhaps after it told some.
pub fn fields<'t>(text: &'t str, mut each: impl FnMut(&'t str, &'t str)) -> Option<()> {
    let mut walk = Walk::of(text);
    walk.fields(|walk, key| {
        let from = walk.at;
        walk.value()?;
        each(std::str::from_utf8(key).ok()?, text.get(from..walk.at)?);
        Some(())
    })?;
    walk.end()
}

/// Tells `each` the text of each element of the array that `text` is, in order. `None` when it gave up, perhaps after it told some.
pub fn elements<'t>(text: &'t str, mut each: impl FnMut(&'t str)) -> Option<()> {
    let mut walk = Walk::of(text);
    walk.take(b'[')?;
    walk.space();
    if walk.take(b']').is_some() {
        return walk.end();
    }
    loop {
        let from = walk.at;
        walk.value()?;
        each(text.get(from..walk.at)?);
        walk.space();
        if walk.take(b']').is_some() {
            return walk.end();
        }
        walk.take(b',')?;
        walk.space();
    }
}

/// Goes over the value at `at`; where it ends, or `None` when it gave up.
pub(crate) fn value_end(text: &[u8], at: usize) -> Option<usize> {
    let mut walk = Walk::new(text, at, ());
    walk.value()?;
    Some(walk.at)
}

/// What a string says, by its text with the quotes, if it has no escapes.
pub fn plain_string(text: &str) -> Option<&str> {
    let said = text.strip_prefix('"')?.strip_suffix('"')?;
    memchr::memchr2(b'\\', b'"', said.as_bytes())
        .is_none()
        .then_some(said)
}

/// A walk over JSON text, with what the walker notes on the way.
pub(crate) struct Walk<'t, S> {
    pub(crate) text: &'t [u8],
    pub(crate) at: usize,
    pub(crate) seen: S,
}

impl<'t> Walk<'t, ()> {
    fn of(text: &'t str) -> Self {
        let mut walk = Self::new(text.as_bytes(), 0, ());
        walk.space();
        walk
    }

    /// Nothing but space is left.
    fn end(&mut self) -> Option<()> {
        self.space();
        (self.at == self.text.len()).then_some(())
    }
}

impl<'t, S> Walk<'t, S> {
    pub(crate) fn new(text: &'t [u8], at: usize, seen: S) -> Self {
        Self { text, at, seen }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Other kinds of space are control characters.
    pub(crate) fn space(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    pub(crate) fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    #[inline]
    pub(crate) fn fields(&mut self, mut field: impl FnMut(&mut Self, &'t [u8]) -> Option<()>) -> Option<()> {
        self.take(b'{')?;
        self.space();
        if self.take(b'}').is_some() {
            return Some(());
        }
        loop {
            let key = self.ascii()?;
            self.colon()?;
            field(self, key)?;
            self.space();
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
            self.space();
        }
    }

    fn colon(&mut self) -> Option<()> {
        self.space();
        self.take(b':')?;
        self.space();
        Some(())
    }

    /// A string of ASCII without escapes.
    #[inline]
    pub(crate) fn ascii(&mut self) -> Option<&'t [u8]> {
        let from = self.at + 1;
        let escaped = self.string()?;
        let text = self.text.get(from..self.at - 1)?;
        (!escaped && text.is_ascii()).then_some(text)
    }

    /// Goes over a value of any kind.
    pub(crate) fn value(&mut self) -> Option<()> {
        // One bit for each level of nesting: whether it is an object.
        let mut objects = 0_u64;
        let mut depth = 0;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                open @ (b'{' | b'[') => {
                    if depth == u64::BITS {
                        return None;
                    }
                    depth += 1;
                    objects = objects << 1 | u64::from(open == b'{');
                    self.at += 1;
                    self.space();
                    // An empty one is closed below.
                    match (self.peek()?, open) {
                        (b'}', b'{') | (b']', b'[') => {}
                        (_, b'{') => {
                            self.string()?;
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
                            self.string()?;
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
        if self.take(b'0').is_none() {
            self.digits()?;
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

    /// Goes over a string; whether it has escapes.
    fn string(&mut self) -> Option<bool> {
        self.take(b'"')?;
        let end = scan::string_end(self.text, self.at)?;
        self.at = end.at;
        Some(end.escaped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_in_order_or_it_gives_up() {
        let told = |text| {
            let mut told = Vec::new();
            let whole = fields(text, |key, value| told.push((key, value)));
            (whole.is_some(), told)
        };
        let text = r#" {"a": [1, {"b":"\"}"}], "c" :null,"a":"é" } "#;
        let all = vec![("a", r#"[1, {"b":"\"}"}]"#), ("c", "null"), ("a", "\"é\"")];
        assert_eq!(told(text), (true, all));
        assert_eq!(told("{}"), (true, Vec::new()));
        for text in [
            r#"{"a":1} x"#,
            r#"{"a":1,}"#,
            r#"{"a":1"#,
            "[1]",
            "",
            r#"{"\u0061":1}"#,
        ] {
            assert!(!told(text).0, "{text}");
        }
        let told = |text| {
            let mut told = Vec::new();
            elements(text, |element| told.push(element)).map(|()| told)
        };
        assert_eq!(told(r#"[1 , "]", [2] ]"#), Some(vec!["1", r#""]""#, "[2]"]));
        assert_eq!(told("[ ]"), Some(Vec::new()));
        for text in ["[1,]", "[1", "[1] 2", "{}", ""] {
            assert_eq!(told(text), None, "{text}");
        }
        assert_eq!(plain_string(r#""é""#), Some("é"));
        for text in ["\"", r#""a\n""#, "1", ""] {
            assert_eq!(plain_string(text), None, "{text}");
        }
    }
}
