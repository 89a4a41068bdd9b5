//! Strings of JSON text, many bytes at a time: where they end, and how they read without escapes.

#[cfg(target_arch = "x86_64")]
mod wide;

use std::borrow::Cow;

/// The end of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Where the text goes on behind the closing quote.
    pub at: usize,
    /// Whether there are escapes in it.
    pub escaped: bool,
}

/// Finds the end of the string whose first character (behind the opening quote) is at `at`. `None` for a string that does not end,
/// or that JSON does not allow: with a control character, or with an escape that is none.
#[inline]
pub fn string_end(text: &[u8], mut at: usize) -> Option<End> {
    // Most strings are short.
    for _ in 0..2 {
        let Some(block) = text.get(at..)?.first_chunk() else {
            break;
        };
        match specials_of_16(block) {
            0 => at += 16,
            found => {
                let quote = found.trailing_zeros() as usize;
                if block[quote] == b'"' {
                    let (at, escaped) = (at + quote + 1, false);
                    return Some(End { at, escaped });
                }
                break;
            }
        }
    }
    long_string_end(text, at)
}

#[inline(never)]
fn long_string_end(text: &[u8], mut at: usize) -> Option<End> {
    let mut escaped;
    match walk(text, at) {
        StringProgress::End(end) => return Some(end),
        StringProgress::Bad => return None,
        StringProgress::Left {
            at: left,
            escaped: seen,
        } => (at, escaped) = (left, seen),
    }
    // The text ends soon.
    loop {
        at += plain(text.get(at..)?);
        match *text.get(at)? {
            b'"' => return Some(End { at: at + 1, escaped }),
            b'\\' => {
                escaped = true;
                at += escape(text, at)?;
            }
            _ => return None,
        }
    }
}

/// How far going over a string in blocks has come.
#[derive(Debug, PartialEq, Eq)]
enum StringProgress {
    End(End),
    /// The string is none.
    Bad,
    /// Too little is left for a block; whether there were escapes.
    Left {
        at: usize,
        escaped: bool,
    },
}

#[cfg(target_arch = "x86_64")]
fn walk(text: &[u8], at: usize) -> StringProgress {
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, which is all that the function needs.
        unsafe { wide::walk(text, at) }
    } else {
        walk_by_escapes(text, at)
    }
}

#[cfg(not(target_arch = "x86_64"))]
use walk_by_escapes as walk;

/// Goes from each quote, backslash or control character to the next.
fn walk_by_escapes(text: &[u8], mut at: usize) -> StringProgress {
    let mut escaped = false;
    while let Some(block) = text.get(at..).and_then(<[u8]>::first_chunk) {
        let mut specials = specials_of_64(block);
        let mut next = 64;
        while specials != 0 {
            let here = specials.trailing_zeros() as usize;
            match block[here] {
                b'"' => {
                    let at = at + here + 1;
                    return StringProgress::End(End { at, escaped });
                }
                b'\\' => {
                    escaped = true;
                    let Some(length) = escape(text, at + here) else {
                        return StringProgress::Bad;
                    };
                    let behind = here + length;
                    if behind >= 64 {
                        next = behind;
                        break;
                    }
                    specials &= u64::MAX << behind;
                }
                _ => return StringProgress::Bad,
            }
        }
        at += next;
    }
    StringProgress::Left { at, escaped }
}

/// How many bytes are nothing special.
fn plain(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(block) = text[at..].first_chunk() {
        match specials_of_16(block) {
            0 => at += 16,
            found => return at + found.trailing_zeros() as usize,
        }
    }
    let is_special = |byte: &u8| matches!(*byte, b'"' | b'\\' | 0..b' ');
    let tail = text[at..].iter().position(is_special);
    tail.map_or(text.len(), |tail| at + tail)
}

/// How many bytes the escape at `at` has.
#[inline]
fn escape(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at + 1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => {
            let digits = text.get(at + 2..at + 6)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(6)
        }
        _ => None,
    }
}

/// A string without its escapes, by the text between its quotes, whose end [`string_end`] found. `None` for surrogates that are no
/// pair.
pub fn unescape(text: &str) -> Option<Cow<'_, str>> {
    let Some(first) = memchr::memchr(b'\\', text.as_bytes()) else {
        return Some(Cow::Borrowed(text));
    };
    let mut said = String::with_capacity(text.len());
    let (mut rest, mut next) = (text, first);
    loop {
        let (plain, escape) = rest.split_at_checked(next)?;
        said.push_str(plain);
        let mut bytes = escape.bytes();
        if bytes.next().is_none() {
            return Some(Cow::Owned(said));
        }
        let length = match bytes.next()? {
            b'n' => push(&mut said, '\n'),
            b't' => push(&mut said, '\t'),
            byte @ (b'"' | b'\\' | b'/') => push(&mut said, char::from(byte)),
            b'r' => push(&mut said, '\r'),
            b'b' => push(&mut said, '\u{8}'),
            b'f' => push(&mut said, '\u{c}'),
            b'u' => {
                let (char, length) = unicode(escape)?;
                said.push(char);
                length
            }
            _ => return None,
        };
        rest = escape.get(length..)?;
        next = next_escape(rest.as_bytes());
    }
}

fn push(said: &mut String, char: char) -> usize {
    said.push(char);
    2
}

/// The character of a `\uXXXX`, or of two that are a surrogate pair; and how long that is.
fn unicode(escape: &str) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = escape.get(at..at + 6)?.strip_prefix("\\u")?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    };
    let first = unit(0)?;
    if let Some(char) = char::from_u32(first) {
        return Some((char, 6));
    }
    let second = unit(6).filter(|second| (0xDC00..0xE000).contains(second) && first < 0xDC00)?;
    let char = char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))?;
    Some((char, 12))
}

/// Where the next backslash is, or the end.
fn next_escape(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(block) = text[at..].first_chunk() {
        match equal_of_16(block, b'\\') {
            0 => at += 16,
            found => return at + found.trailing_zeros() as usize,
        }
    }
    let tail = text[at..].iter().position(|byte| *byte == b'\\');
    tail.map_or(text.len(), |tail| at + tail)
}

/// Which bytes are quotes, backslashes or control characters, one bit each.
fn specials_of_64(block: &[u8; 64]) -> u64 {
    let (parts, _) = block.as_chunks::<16>();
    parts
        .iter()
        .rev()
        .fold(0, |bits, part| bits << 16 | u64::from(specials_of_16(part)))
}

#[cfg(target_arch = "x86_64")]
mod bytes {
    use std::arch::x86_64::*;

    #[inline]
    pub(super) fn specials_of_16(block: &[u8; 16]) -> u32 {
        // SAFETY: every x86-64 processor has SSE2, which is all that the function needs.
        unsafe { specials(block) }
    }

    #[inline]
    pub(super) fn equal_of_16(block: &[u8; 16], byte: u8) -> u32 {
        // SAFETY: as above.
        unsafe { equal(block, byte) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn specials(block: &[u8; 16]) -> u32 {
        let block = load(block);
        let quotes = _mm_cmpeq_epi8(block, splat(b'"'));
        let escapes = _mm_cmpeq_epi8(block, splat(b'\\'));
        let controls = _mm_cmpeq_epi8(_mm_min_epu8(block, splat(b' ' - 1)), block);
        bits(_mm_or_si128(_mm_or_si128(quotes, escapes), controls))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn equal(block: &[u8; 16], byte: u8) -> u32 {
        bits(_mm_cmpeq_epi8(load(block), splat(byte)))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn load(block: &[u8; 16]) -> __m128i {
        let ([low, high], _) = block.as_chunks::<8>() else {
            return _mm_setzero_si128();
        };
        _mm_set_epi64x(i64::from_le_bytes(*high), i64::from_le_bytes(*low))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn splat(byte: u8) -> __m128i {
        _mm_set1_epi8(i8::from_ne_bytes([byte]))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn bits(mask: __m128i) -> u32 {
        _mm_movemask_epi8(mask).cast_unsigned()
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod bytes {
    pub(super) use super::portable::{equal_of_16, specials_of_16};
}

/// The same eight bytes at a time, in plain arithmetic.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;

    pub(super) fn specials_of_16(block: &[u8; 16]) -> u32 {
        each_half(block, |word| {
            zeros(word ^ splat(b'"')) | zeros(word ^ splat(b'\\')) | zeros(word & splat(!(b' ' - 1)))
        })
    }

    pub(super) fn equal_of_16(block: &[u8; 16], byte: u8) -> u32 {
        each_half(block, |word| zeros(word ^ splat(byte)))
    }

    fn splat(byte: u8) -> u64 {
        ONES * u64::from(byte)
    }

    /// The highest bit of each byte that is zero.
    fn zeros(word: u64) -> u64 {
        !((word & !HIGHS).wrapping_add(!HIGHS) | word) & HIGHS
    }

    fn each_half(block: &[u8; 16], find: impl Fn(u64) -> u64) -> u32 {
        let (halves, _) = block.as_chunks::<8>();
        // The multiplication moves the eight bits together.
        let bits =
            |half: &[u8; 8]| (find(u64::from_le_bytes(*half)) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        halves
            .iter()
            .rev()
            .fold(0, |all, half| all << 8 | bits(half) as u32)
    }
}

use bytes::{equal_of_16, specials_of_16};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same, a byte at a time.
    fn end_by_bytes(text: &[u8]) -> Option<End> {
        let (mut at, mut escaped) = (0, false);
        loop {
            match *text.get(at)? {
                b'"' => return Some(End { at: at + 1, escaped }),
                b'\\' => {
                    escaped = true;
                    at += escape(text, at)?;
                }
                0..b' ' => return None,
                _ => at += 1,
            }
        }
    }

    /// The same by blocks, and the rest a byte at a time.
    fn end_by_walking(text: &[u8], walk: impl Fn(&[u8], usize) -> StringProgress) -> Option<End> {
        match walk(text, 0) {
            StringProgress::End(end) => Some(end),
            StringProgress::Bad => None,
            StringProgress::Left { at, escaped } => end_by_bytes(&text[at..]).map(|end| End {
                at: at + end.at,
                escaped: escaped | end.escaped,
            }),
        }
    }

    #[test]
    fn the_portable_way_finds_the_same() {
        for byte in 0..=u8::MAX {
            for at in 0..16 {
                let mut block = *b"plain \x7f\x80\xff texts!";
                block[at] = byte;
                assert_eq!(
                    specials_of_16(&block),
                    portable::specials_of_16(&block),
                    "{block:?}"
                );
                let found = portable::equal_of_16(&block, byte);
                assert_eq!(equal_of_16(&block, byte), found);
                assert_ne!(found >> at & 1, 0);
            }
        }
    }

    proptest! {
        #[test]
        fn ends_are_found(text in r#"([ -~é]{0,40}|[ab]{15,65}|\\[\\"/bfnrtx]|\\u[0-9a-g]{4}|[\x00-\x1f"]){0,8}"?"#) {
            prop_assert_eq!(string_end(text.as_bytes(), 0), end_by_bytes(text.as_bytes()));
            prop_assert_eq!(end_by_walking(text.as_bytes(), walk_by_escapes), end_by_bytes(text.as_bytes()));
            prop_assert_eq!(end_by_walking(text.as_bytes(), walk), end_by_bytes(text.as_bytes()));
        }

        #[test]
        fn what_is_said_is_what_serde_reads(text in r#"([ -!#-\[\]-~é]{0,40}|\\[\\"/bfnrtx]|\\u[0-9a-g]{4}|\\ud83d|\\ude00|\\ud83d\\ude00){0,12}"#) {
            let quoted = format!("\"{text}\"");
            let expected = serde_json::from_str::<String>(&quoted).ok();
            prop_assert_eq!(unescape(&text).map(Cow::into_owned), expected);
        }
    }

    #[test]
    fn at_the_end_of_the_text() {
        for length in 0..150 {
            let mut text = "x".repeat(length).into_bytes();
            assert_eq!(string_end(&text, 0), None);
            text.push(b'\\');
            assert_eq!(string_end(&text, 0), None);
            text.push(b'n');
            assert_eq!(string_end(&text, 0), None);
            text.push(b'"');
            let (at, escaped) = (length + 3, true);
            assert_eq!(string_end(&text, 0), Some(End { at, escaped }));
        }
        assert_eq!(string_end(b"x", 2), None);
    }
}
