//! Cuts a stream of bytes into lines, in both directions.

/// A line, or the beginning of one that was too long.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framed {
    /// One line without its line ending. Never blank.
    Line(Vec<u8>),
    /// A line longer than the cap. The framer skipped it up to its end and kept its beginning.
    Oversized {
        /// The first bytes of the line, [`LineFramer::KEPT`] at most.
        head: Vec<u8>,
        /// How long the line was, in bytes, without its line ending.
        length: u64,
    },
}

/// A line before it is copied.
pub(crate) enum FoundLine<'l> {
    /// A line that is in the chunk as a whole, from `at` on.
    Line {
        line: &'l [u8],
        at: usize,
    },
    /// A line that came in several chunks. The caller may take its memory.
    Gathered {
        line: &'l mut Vec<u8>,
    },
    Oversized {
        head: &'l [u8],
        length: u64,
    },
}

impl FoundLine<'_> {
    fn framed(self) -> Framed {
        match self {
            Self::Line { line, .. } => Framed::Line(line.to_vec()),
            Self::Gathered { line } => Framed::Line(line.to_vec()),
            Self::Oversized { head, length } => Framed::Oversized {
                head: head.to_vec(),
                length,
            },
        }
    }
}

/// Cuts a byte stream into lines at `\n`, whatever the sizes of the chunks it is fed.
///
/// Only `\n` ends a line (U+2028 does not), a `\r` before it is dropped, blank lines are skipped, and a last line
/// without `\n` counts once [`finish`](Self::finish) is called. A line may be as long as the cap; a longer one is skipped
/// up to its end, so that its neighbours survive, and memory never exceeds the cap.
#[derive(Debug)]
pub struct LineFramer {
    cap: usize,
    partial: Vec<u8>,
    /// While an oversized line is skipped: how many of its bytes have passed.
    skipped: Option<u64>,
}

impl LineFramer {
    /// How much of an oversized line is kept, in bytes; all that the cap allows, if that is less.
    pub const KEPT: usize = 64 * 1024;

    /// The default cap: 256 MiB a line.
    pub const DEFAULT_CAP: usize = 256 * 1024 * 1024;

    /// Makes a framer that accepts lines of up to `cap` bytes.
    pub fn new(cap: usize) -> Self {
        Self {
            cap,
            partial: Vec::new(),
            skipped: None,
        }
    }

    /// Bytes of an unfinished line that are held at the moment.
    pub fn held(&self) -> usize {
        self.partial.len()
    }

    /// Takes the next chunk and hands each line that ends in it to `emit`, in order.
    pub fn feed(&mut self, chunk: &[u8], mut emit: impl FnMut(Framed)) {
        self.find(chunk, |found| emit(found.framed()));
    }

    /// Ends the stream: a last line without `\n` is handed to `emit`.
    pub fn finish(&mut self, mut emit: impl FnMut(Framed)) {
        self.end(|found| emit(found.framed()));
    }

    /// Like [`feed`](Self::feed), without a copy of each line.
    pub(crate) fn find(&mut self, chunk: &[u8], mut emit: impl FnMut(FoundLine<'_>)) {
        let mut at = 0;
        while let Some(length) = memchr::memchr(b'\n', &chunk[at..]) {
            let line = &chunk[at..at + length];
            if self.partial.is_empty() && self.skipped.is_none() && length <= self.cap {
                let line = without_return(line);
                if !is_blank(line) {
                    emit(FoundLine::Line { line, at });
                }
            } else {
                self.hold(line);
                self.end(&mut emit);
            }
            at += length + 1;
        }
        self.hold(&chunk[at..]);
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = match &mut self.skipped {
            Some(skipped) => {
                *skipped += bytes.len() as u64;
                self.kept().saturating_sub(self.partial.len())
            }
            None if self.partial.len() + bytes.len() <= self.cap => bytes.len(),
            None => {
                self.skipped = Some((self.partial.len() + bytes.len()) as u64);
                let kept = self.kept();
                self.partial.truncate(kept);
                self.partial.shrink_to(kept);
                kept - self.partial.len()
            }
        };
        let bytes = &bytes[..room.min(bytes.len())];
        if !bytes.is_empty() && self.partial.capacity() == 0 {
            self.partial.reserve(self.kept().max(bytes.len()));
        }
        self.partial.extend_from_slice(bytes);
    }

    /// How much of an oversized line is kept: always the same, however the line is cut into chunks.
    fn kept(&self) -> usize {
        Self::KEPT.min(self.cap)
    }

    /// Like [`finish`](Self::finish), without a copy.
    pub(crate) fn end(&mut self, mut emit: impl FnMut(FoundLine<'_>)) {
        match self.skipped.take() {
            Some(length) => emit(FoundLine::Oversized {
                head: &self.partial,
                length,
            }),
            None => {
                self.partial.truncate(without_return(&self.partial).len());
                if !is_blank(&self.partial) {
                    emit(FoundLine::Gathered {
                        line: &mut self.partial,
                    });
                }
            }
        }
        // The next line will need the room again, unless this one was unusually long.
        self.partial.clear();
        self.partial.shrink_to(Self::KEPT);
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}
