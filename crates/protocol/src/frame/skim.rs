//! The routing fields by a walk over the line's structure, which costs little more than finding the ends of its strings.
//!
//! It gives up, for [`parse`](super::parse) to read the line, on whatever it would have to think about: an escape or a
//! character beyond ASCII in what it looks at, a number in its place, a control character, deep nesting, and on everything
//! that is not JSON. So what it accepts is JSON to the last byte, except that it does not look at the UTF-8 within strings
//! that it passes over, as the other mostly does not.

use super::head::{Head, Span};

/// Reads the object at the beginning of `text`; how many bytes it takes, `None` when it gave up. The head is to be empty,
/// and has no meaning afterwards when it gave up.
pub(super) fn object(text: &[u8], head: &mut Head) -> Option<usize> {
    let mut skim = Skim { text, at: 0 };
    skim.space();
    skim.frame(head)?;
    // Within strings they are errors, and between tokens JSON.stringify has none. The shape of this loop is one that
    // compilers make vector instructions of.
    let least = text[..skim.at]
        .iter()
        .fold(u8::MAX, |least, byte| least.min(*byte));
    (least >= b' ').then_some(skim.at)
}

struct Skim<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Skim<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Other kinds of space are control characters.
    fn space(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn frame(&mut self, head: &mut Head) -> Option<()> {
        self.fields(|skim, key| {
            let span = match key {
                b"type" => &mut head.kind,
                b"subtype" => &mut head.subtype,
                b"uuid" => &mut head.uuid,
                b"session_id" => &mut head.session_id,
                b"request_id" => &mut head.request_id,
                b"parent_tool_use_id" => &mut head.parent_tool_use_id,
                b"user_message_uuid" => &mut head.user_message_uuid,
                b"command_uuid" => &mut head.command_uuid,
                b"state" => &mut head.state,
                b"event" => {
                    return skim.inner(|skim, key| match key {
                        b"type" => skim.text(&mut head.event_type),
                        _ => skim.value(),
                    });
                }
                b"request" | b"response" => {
                    return skim.inner(|skim, key| match key {
                        b"subtype" => skim.text(&mut head.subtype),
                        b"request_id" => skim.text(&mut head.request_id),
                        _ => skim.value(),
                    });
                }
                b"origin" => {
                    return skim.inner(|skim, key| match key {
                        b"kind" => skim.text(&mut head.origin_kind),
                        _ => skim.value(),
                    });
                }
                b"user_message_uuids" => return skim.texts(&mut head.user_message_uuids),
                b"isReplay" => {
                    head.is_replay = skim.peek()? == b't';
                    return skim.value();
                }
                _ => return skim.value(),
            };
            skim.text(span)
        })?;
        // An object without a type is for the other to tell.
        (!matches!(head.kind, Span::None)).then_some(())
    }

    /// The object here, whose values `field` reads; anything else than an object is a value without fields.
    fn inner(&mut self, field: impl FnMut(&mut Self, &[u8]) -> Option<()>) -> Option<()> {
        match self.peek()? {
            b'{' => self.fields(field),
            _ => self.value(),
        }
    }

    fn fields(&mut self, mut field: impl FnMut(&mut Self, &[u8]) -> Option<()>) -> Option<()> {
        self.take(b'{')?;
        self.space();
        if self.take(b'}').is_some() {
            return Some(());
        }
        loop {
            let key = self.plain()?;
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
    fn plain(&mut self) -> Option<&'t [u8]> {
        let from = self.at + 1;
        let escaped = self.string()?;
        let text = self.text.get(from..self.at - 1)?;
        (!escaped && text.is_ascii()).then_some(text)
    }

    /// A routing string; any other value leaves what was there.
    fn text(&mut self, into: &mut Span) -> Option<()> {
        match self.peek()? {
            b'"' => *into = self.part()?,
            b'-' | b'0'..=b'9' => return None,
            _ => self.value()?,
        }
        Some(())
    }

    fn part(&mut self) -> Option<Span> {
        let from = self.at + 1;
        let text = std::str::from_utf8(self.plain()?).ok()?;
        Some(Span::part(from, text))
    }

    /// A list of routing strings.
    fn texts(&mut self, into: &mut Vec<Span>) -> Option<()> {
        into.clear();
        self.take(b'[')?;
        self.space();
        if self.take(b']').is_some() {
            return Some(());
        }
        loop {
            into.push(self.part()?);
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

    /// Goes over a value of any kind.
    fn value(&mut self) -> Option<()> {
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
        let mut escaped = false;
        loop {
            self.at += end_or_escape(&self.text[self.at..])?;
            if self.text[self.at] == b'"' {
                self.at += 1;
                return Some(escaped);
            }
            escaped = true;
            match self.text.get(self.at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
                b'u' => {
                    let digits = self.text.get(self.at + 2..self.at + 6)?;
                    if !digits.iter().all(u8::is_ascii_hexdigit) {
                        return None;
                    }
                    self.at += 6;
                }
                _ => return None,
            }
        }
    }
}

/// Where the next quote or backslash is. Most strings are short, and a call of memchr costs as much as they do.
pub(super) fn end_or_escape(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    const QUOTES: u64 = ONES * b'"' as u64;
    const SLASHES: u64 = ONES * b'\\' as u64;
    /// The lowest bit that is set shows the first zero byte.
    fn zeros(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word & HIGHS
    }
    const WORDS: usize = 6;
    let (words, _) = text.as_chunks::<8>();
    for (index, word) in words.iter().take(WORDS).enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = zeros(word ^ QUOTES) | zeros(word ^ SLASHES);
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let done = words.len().min(WORDS) * 8;
    memchr::memchr2(b'"', b'\\', &text[done..]).map(|at| done + at)
}
