//! Transcripts, block by block: only the lines that may hold something are looked at.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use super::needle::Sieve;
use crate::record::{Lines, Position};

/// How much is read at a time.
const BLOCK: usize = 512 * 1024;

/// Room for one transcript after the other.
#[derive(Debug)]
pub(super) struct Scanner {
    buffer: Vec<u8>,
    /// How many bytes a line may have.
    cap: usize,
}

/// A line that may hold something.
#[derive(Debug, Clone, Copy)]
pub(super) enum ScannedLine<'b> {
    /// The line, without its `\n`.
    Line(Position, &'b [u8]),
    /// A line that is too long to be read.
    Oversized,
}

impl Scanner {
    pub(super) fn new() -> Self {
        Self {
            buffer: Vec::new(),
            cap: Lines::<&[u8]>::DEFAULT_CAP,
        }
    }

    #[cfg(test)]
    pub(super) fn cap(mut self, bytes: usize) -> Self {
        self.cap = bytes;
        self
    }

    /// Passes on the lines that the sieve finds, until `each` has enough or returns `Break`.
    pub(super) fn scan(
        &mut self,
        source: &mut impl Read,
        sieve: &Sieve,
        stop: &AtomicBool,
        mut each: impl FnMut(ScannedLine<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let mut at = Position { offset: 0, line: 1 };
        let mut held = 0;
        // Whether the beginning of the line was dropped because it is too long.
        let mut is_cut = false;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if self.buffer.len() < held + BLOCK {
                self.buffer.resize((2 * held).max(held + BLOCK), 0);
            }
            let read = match source.read(&mut self.buffer[held..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let is_end = read == 0;
            let filled = held + read;
            let whole = match memchr::memrchr(b'\n', &self.buffer[held..filled]) {
                _ if is_end => filled,
                Some(last) => held + last + 1,
                None => 0,
            };
            let mut region = &self.buffer[..whole];
            if is_cut && whole > 0 {
                let end = memchr::memchr(b'\n', region).map_or(whole, |end| end + 1);
                region = &region[end..];
                at = behind(at, &self.buffer[..end]);
                is_cut = false;
            }
            let mut from = 0;
            let mut told = 0;
            while let Some(found) = sieve.find(region, from) {
                let start = memchr::memrchr(b'\n', &region[..found]).map_or(0, |before| before + 1);
                let end = memchr::memchr(b'\n', &region[found..]).map_or(region.len(), |end| found + end);
                at = behind(at, &region[told..start]);
                told = start;
                let line = &region[start..end];
                let found = if line.len() > self.cap {
                    ScannedLine::Oversized
                } else {
                    ScannedLine::Line(at, line)
                };
                if !line.is_empty() && each(found).is_break() {
                    return Ok(());
                }
                from = end + 1;
                if from >= region.len() {
                    break;
                }
            }
            at = behind(at, &region[told..]);
            if is_end {
                break;
            }
            self.buffer.copy_within(whole..filled, 0);
            held = filled - whole;
            if held > self.cap || is_cut {
                if !is_cut && each(ScannedLine::Oversized).is_break() {
                    return Ok(());
                }
                is_cut = true;
                at.offset += held as u64;
                held = 0;
            }
        }
        // Frees the memory of a very long line.
        self.buffer.truncate(4 * BLOCK);
        self.buffer.shrink_to(4 * BLOCK);
        Ok(())
    }
}

/// Where the text ends that begins at `at`.
fn behind(at: Position, text: &[u8]) -> Position {
    Position {
        offset: at.offset + text.len() as u64,
        line: at.line + memchr::memchr_iter(b'\n', text).count() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::super::needle::Needle;
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

    fn told(text: &[u8], needle: &str, step: usize, cap: usize) -> (Vec<(u64, u64, Vec<u8>)>, usize) {
        let sieve = Sieve::new(&Needle::new(needle, false));
        let (mut lines, mut oversized) = (Vec::new(), 0);
        let each = |found: ScannedLine<'_>| {
            match found {
                ScannedLine::Line(at, line) => lines.push((at.offset, at.line, line.to_vec())),
                ScannedLine::Oversized => oversized += 1,
            }
            ControlFlow::Continue(())
        };
        let mut scanner = Scanner::new().cap(cap);
        let stop = AtomicBool::new(false);
        scanner.scan(&mut Drip(text, step), &sieve, &stop, each).unwrap();
        (lines, oversized)
    }

    proptest! {
        #[test]
        fn the_lines_with_the_needle_are_told_with_their_places(text in "[abcxy\n]{0,80}", step in 1_usize..30) {
            let mut expected = Vec::new();
            let mut offset = 0;
            for (nth, line) in text.split('\n').enumerate() {
                if line.contains("ab") {
                    expected.push((offset, nth as u64 + 1, line.as_bytes().to_vec()));
                }
                offset += line.len() as u64 + 1;
            }
            prop_assert_eq!(told(text.as_bytes(), "ab", step, 1000).0, expected);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_told_and_leaves_its_neighbours() {
        for step in [1, 3, 7, 100] {
            let text = b"ab\nabxxxxxxxxxxxxxxxxxxxxx\nab\n\nab";
            let (lines, oversized) = told(text, "ab", step, 9);
            let expected = [(0, 1), (27, 3), (31, 5)].map(|(at, nth)| (at, nth, b"ab".to_vec()));
            assert_eq!((lines, oversized), (expected.to_vec(), 1), "{step}");
        }
    }
}
