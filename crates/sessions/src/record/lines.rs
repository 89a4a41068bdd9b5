//! Bytes in, lines with their positions out.

use std::io::{self, Read};

use super::Position;

/// How much is read at a time.
const CHUNK: usize = 256 * 1024;

/// How much is kept of a line that is too long.
const KEPT: usize = 4096;

/// Cuts a file into lines at `\n`, with the position of each, in memory bounded by the longest line.
///
/// Only `\n` ends a line. Blank lines are returned too, since they have a position. A line longer than the cap is returned as its
/// beginning and its length.
#[derive(Debug)]
pub struct Lines<R> {
    source: R,
    cap: usize,
    buffer: Vec<u8>,
    /// The start of the bytes that were not returned yet.
    start: usize,
    /// How many bytes of the buffer are known to have no line ending.
    seen: usize,
    next: Position,
    at_end: bool,
}

/// One line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line<'l> {
    /// Where the line is.
    pub position: Position,
    /// The line without its `\n`; its beginning if it is longer than the cap.
    pub bytes: &'l [u8],
    /// The length of the line in bytes, without its `\n`.
    pub length: u64,
    /// Whether the line ends in a `\n`; the last line of a file may not.
    pub is_ended: bool,
}

impl Line<'_> {
    /// Whether `bytes` is only its beginning.
    pub fn is_cut(&self) -> bool {
        self.bytes.len() as u64 != self.length
    }

    /// Whether there is nothing in it.
    pub fn is_blank(&self) -> bool {
        !self.is_cut() && self.bytes.iter().all(u8::is_ascii_whitespace)
    }
}

impl<R: Read> Lines<R> {
    /// The default limit of a line: 256 MiB.
    pub const DEFAULT_CAP: usize = 256 * 1024 * 1024;

    /// Reads `source` from where it stands, which counts as the beginning.
    pub fn new(source: R) -> Self {
        Self::from_offset(source, 0)
    }

    /// Reads `source` from where it stands, which is at `offset`.
    pub fn from_offset(source: R, offset: u64) -> Self {
        Self {
            source,
            cap: Self::DEFAULT_CAP,
            buffer: Vec::new(),
            start: 0,
            seen: 0,
            next: Position { offset, line: 1 },
            at_end: false,
        }
    }

    /// Sets how many bytes a line may have.
    pub fn cap(mut self, bytes: usize) -> Self {
        self.cap = bytes;
        self
    }

    /// How long a line may be.
    pub(crate) fn cap_of(&self) -> usize {
        self.cap
    }

    /// The next line; `None` at the end of the file.
    ///
    /// # Errors
    /// When the source cannot be read.
    // It lends, so it cannot be an iterator.
    #[expect(
        clippy::should_implement_trait,
        reason = "each line lives until the next one is asked for"
    )]
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[self.seen..]) {
                let end = self.seen + length;
                if end - self.start > self.cap {
                    return self.skip();
                }
                return Ok(Some(self.line_until(end, true)));
            }
            self.seen = self.buffer.len();
            if self.seen - self.start > self.cap {
                return self.skip();
            }
            if self.at_end {
                let end = self.buffer.len();
                return Ok((end > self.start).then(|| self.line_until(end, false)));
            }
            self.fill()?;
        }
    }

    /// Returns the line that ends at `end` of the buffer.
    fn line_until(&mut self, end: usize, is_ended: bool) -> Line<'_> {
        let position = self.next;
        let start = self.start;
        let length = (end - start) as u64;
        self.start = end + usize::from(is_ended);
        self.seen = self.start;
        self.next = Position {
            offset: position.offset + length + u64::from(is_ended),
            line: position.line + 1,
        };
        Line {
            position,
            bytes: &self.buffer[start..end],
            length,
            is_ended,
        }
    }

    /// Goes over a line that is too long, and keeps its beginning.
    fn skip(&mut self) -> io::Result<Option<Line<'_>>> {
        let position = self.next;
        let mut kept = self.buffer[self.start..].to_vec();
        kept.truncate(KEPT.min(self.cap));
        let mut length = 0;
        let is_ended = loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[self.start..]) {
                length += found as u64;
                self.start += found + 1;
                break true;
            }
            length += (self.buffer.len() - self.start) as u64;
            self.start = self.buffer.len();
            if self.at_end {
                break false;
            }
            self.fill()?;
        };
        // Frees the rest of a line that was too long.
        self.buffer.drain(..self.start);
        self.buffer.splice(..0, kept.iter().copied());
        self.buffer.shrink_to(CHUNK);
        self.start = kept.len();
        self.seen = self.start;
        self.next = Position {
            offset: position.offset + length + u64::from(is_ended),
            line: position.line + 1,
        };
        Ok(Some(Line {
            position,
            bytes: &self.buffer[..kept.len()],
            length,
            is_ended,
        }))
    }

    /// Reads more behind the bytes that were not returned yet.
    fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.seen = self.seen.saturating_sub(self.start);
            self.start = 0;
        }
        let held = self.buffer.len();
        // A long line is read in chunks that grow with it.
        let chunk = CHUNK.max(held.min(16 * CHUNK));
        self.buffer.resize(held + chunk, 0);
        let read = loop {
            match self.source.read(&mut self.buffer[held..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer.truncate(held + *read.as_ref().unwrap_or(&0));
        self.at_end = read? == 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A source that gives a few bytes at a time.
    struct Drip<'s>(&'s [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(into.len());
            into[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    type LineFacts = (u64, u64, Vec<u8>, u64, bool);

    fn told(text: &[u8], step: usize, cap: usize) -> Vec<LineFacts> {
        let mut lines = Lines::new(Drip(text, step)).cap(cap);
        let mut told = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            let Position { offset, line: number } = line.position;
            told.push((offset, number, line.bytes.to_vec(), line.length, line.is_ended));
        }
        told
    }

    proptest! {
        #[test]
        fn lines_are_what_splitting_says(text in proptest::collection::vec(prop_oneof![3 => Just(b'\n'), 9 => any::<u8>()], 0..200), step in 1_usize..50, cap in 0_usize..40) {
            let mut expected = Vec::new();
            let mut offset = 0;
            for (number, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
                let is_ended = line.ends_with(b"\n");
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                let kept = if line.len() > cap { &line[..cap.min(KEPT)] } else { line };
                expected.push((offset, number as u64 + 1, kept.to_vec(), line.len() as u64, is_ended));
                offset += line.len() as u64 + u64::from(is_ended);
            }
            prop_assert_eq!(told(&text, step, cap), expected);
        }
    }

    #[test]
    fn a_line_that_is_too_long_leaves_its_neighbours_and_no_memory() {
        let long = vec![b'x'; 3 * CHUNK];
        let text = [b"a\n", &long[..], b"\nb"].concat();
        let mut lines = Lines::new(&text[..]).cap(CHUNK);
        assert_eq!(lines.next().unwrap().unwrap().bytes, b"a");
        let line = lines.next().unwrap().unwrap();
        assert!(line.is_cut() && line.is_ended);
        assert_eq!((line.bytes.len(), line.length), (KEPT, long.len() as u64));
        assert!(
            lines.buffer.capacity() <= 2 * CHUNK,
            "{}",
            lines.buffer.capacity()
        );
        let line = lines.next().unwrap().unwrap();
        assert_eq!(
            (line.bytes, line.position.offset, line.is_ended),
            (&b"b"[..], long.len() as u64 + 3, false)
        );
        assert_eq!(lines.next().unwrap(), None);
    }
}
