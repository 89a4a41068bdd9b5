//! Lines of a process as they are, byte for byte, in a file that is text.

use outrigger_protocol::framer::LineFramer;

/// Stands for a byte of invalid UTF-8: the character at this place plus the byte. No text uses these characters; if one
/// does, its own bytes are written in the same way.
const STAND_IN: u32 = 0x10_FF00;

/// The first stand-in. Bytes below are always UTF-8.
const FIRST: char = '\u{10FF80}';

/// The first byte of each stand-in in UTF-8.
const LEAD: u8 = 0xF4;

/// A line as a text that keeps every byte.
pub(super) fn to_text(line: &[u8]) -> String {
    if memchr::memchr(LEAD, line).is_none()
        && let Ok(text) = std::str::from_utf8(line)
    {
        return text.to_owned();
    }
    let mut text = String::with_capacity(line.len());
    let byte = |text: &mut String, byte: &u8| text.extend(char::from_u32(STAND_IN + u32::from(*byte)));
    for chunk in line.utf8_chunks() {
        for char in chunk.valid().chars() {
            if char < FIRST {
                text.push(char);
            } else {
                let mut bytes = [0; 4];
                char.encode_utf8(&mut bytes);
                bytes.iter().for_each(|one| byte(&mut text, one));
            }
        }
        chunk.invalid().iter().for_each(|one| byte(&mut text, one));
    }
    text
}

/// The bytes that a text stands for.
pub(super) fn to_bytes(text: &str) -> Vec<u8> {
    if memchr::memchr(LEAD, text.as_bytes()).is_none() {
        return text.as_bytes().to_vec();
    }
    let mut bytes = Vec::with_capacity(text.len());
    for char in text.chars() {
        match u8::try_from(u32::from(char).wrapping_sub(STAND_IN)) {
            Ok(byte) if char >= FIRST => bytes.push(byte),
            _ => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// Cuts what passes into lines at `\n`, blank ones too. One that is longer than the CLI's clients read is cut short.
#[derive(Debug, Default)]
pub(super) struct Lines {
    partial: Vec<u8>,
    /// How long the line is so far, in bytes.
    length: u64,
}

impl Lines {
    /// Takes the next bytes and hands on each line that ends in them.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut emit: impl FnMut(String)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.hold(&bytes[..end]);
            emit(self.take());
            bytes = &bytes[end + 1..];
        }
        self.hold(bytes);
    }

    /// A last line without an end, if there is one.
    pub(super) fn finish(&mut self) -> Option<String> {
        (self.length > 0).then(|| self.take())
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = LineFramer::DEFAULT_CAP.saturating_sub(self.partial.len());
        self.partial.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.length += bytes.len() as u64;
    }

    fn take(&mut self) -> String {
        let length = std::mem::take(&mut self.length);
        let line = std::mem::take(&mut self.partial);
        if length > line.len() as u64 {
            let head = &line[..LineFramer::KEPT];
            return format!("{} … ({length} bytes)", String::from_utf8_lossy(head));
        }
        to_text(&line)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_byte_comes_back(line in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xF4), Just(0x8F), Just(0xBE), Just(0x80)], 0..40)) {
            prop_assert_eq!(to_bytes(&to_text(&line)), line);
        }
    }

    #[test]
    fn what_looks_like_a_stand_in_comes_back_too() {
        for text in ["\u{10FF80}", "a\u{10FFFF}b", "\u{10FF7F}", "\u{10FFFE}\u{FFFD}ü"] {
            assert_eq!(to_bytes(&to_text(text.as_bytes())), text.as_bytes());
        }
        assert_eq!(to_text("plain ü".as_bytes()), "plain ü");
        assert_eq!(to_text(b"\xFF"), "\u{10FFFF}");
    }

    #[test]
    fn blank_lines_are_lines() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for piece in [&b"\na"[..], b"b\n\n \nc"] {
            lines.feed(piece, |line| seen.push(line));
        }
        seen.extend(lines.finish());
        assert_eq!(seen, ["", "ab", "", " ", "c"]);
        assert_eq!(lines.finish(), None);
    }
}
