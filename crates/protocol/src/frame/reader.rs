//! Chunks of bytes to frames.

use std::sync::Arc;

use super::Frame;
use super::head::{FrameHead, HeadRead, read_head};
use super::lines::{Body, LineText, Lines, SHORT};
use super::shape::MessageShape;
use crate::framer::{FoundLine, LineFramer};

/// How many short lines share their memory at most: a frame that is kept keeps no more than 20 KiB.
const TOGETHER: usize = 16;

/// Reads frames from a byte stream, whatever the sizes of the chunks it is fed: a [`LineFramer`] and [`Frame::read`] in one,
/// with less copying in between.
///
/// Short partial messages that come together share an allocation, up to sixteen; everything else has its own.
#[derive(Debug)]
pub struct FrameReader {
    framer: LineFramer,
    /// Empty between calls; kept for its room.
    together: Vec<Body>,
    /// The last partial message.
    shape: Option<MessageShape>,
}

impl FrameReader {
    /// Makes a reader that accepts lines of up to `cap` bytes; see [`LineFramer::new`].
    pub fn new(cap: usize) -> Self {
        Self {
            framer: LineFramer::new(cap),
            together: Vec::with_capacity(TOGETHER),
            shape: None,
        }
    }

    /// Takes the next chunk and appends the frames that end in it to `into`, in order.
    pub fn feed(&mut self, chunk: &[u8], into: &mut Vec<Frame>) {
        let mut gather = Gather {
            chunk,
            start: 0,
            end: 0,
            together: &mut self.together,
            shape: &mut self.shape,
            into,
        };
        self.framer.find(chunk, |found| gather.take(found));
        gather.end_group();
    }

    /// Ends the stream: a last line without `\n` is read.
    pub fn finish(&mut self, into: &mut Vec<Frame>) {
        let mut gather = Gather {
            chunk: &[],
            start: 0,
            end: 0,
            together: &mut self.together,
            shape: &mut self.shape,
            into,
        };
        self.framer.end(|found| gather.take(found));
    }
}

struct Gather<'r> {
    chunk: &'r [u8],
    /// Where the lines in `together` are in the chunk.
    start: usize,
    end: usize,
    together: &'r mut Vec<Body>,
    shape: &'r mut Option<MessageShape>,
    into: &'r mut Vec<Frame>,
}

impl Gather<'_> {
    fn take(&mut self, found: FoundLine<'_>) {
        match found {
            FoundLine::Line { line, at } => self.line(line, at),
            FoundLine::Gathered { line } => {
                self.end_group();
                let mut head = FrameHead::default();
                let read = read_head(line, &mut head);
                let text = if line.len() <= SHORT {
                    LineText::short(line)
                } else {
                    // It was gathered in memory of its own, which it can keep.
                    LineText::from(std::mem::take(line))
                };
                Frame::go_on(text, head, read, self.into);
            }
            FoundLine::Oversized { head, length } => {
                self.end_group();
                self.into.push(Frame::oversized(head, length));
            }
        }
    }

    fn line(&mut self, line: &[u8], at: usize) {
        let shape = self.shape.as_ref().filter(|_| line.len() <= SHORT);
        if let Some(head) = shape.and_then(|shape| shape.read(line)) {
            self.add(at, line.len(), head);
            return;
        }
        let mut head = FrameHead::default();
        match read_head(line, &mut head) {
            Ok(HeadRead { length, flaw: None })
                if length == line.len() && length <= SHORT && head.known == Some("stream_event") =>
            {
                *self.shape = MessageShape::of(line, &head).or(self.shape.take());
                self.add(at, length, head);
            }
            read => {
                self.end_group();
                Frame::go_on(LineText::of(line), head, read, self.into);
            }
        }
    }

    fn add(&mut self, at: usize, length: usize, head: FrameHead) {
        if self.together.is_empty() {
            self.start = at;
        }
        self.end = at + length;
        let own = at - self.start..self.end - self.start;
        self.together.push(Body::of(own.clone(), own, head, None));
        if self.together.len() == TOGETHER {
            self.end_group();
        }
    }

    /// Makes frames of the lines that were gathered.
    fn end_group(&mut self) {
        let mut bodies = self.together.drain(..);
        let Some(first) = bodies.next() else { return };
        let lines = Arc::new(Lines {
            text: LineText::short(&self.chunk[self.start..self.end]),
            first,
            rest: bodies.collect(),
        });
        let count = lines.rest.len() as u32;
        self.into.extend((0..count).map(|at| Frame {
            lines: Arc::clone(&lines),
            at,
        }));
        self.into.push(Frame { lines, at: count });
    }
}
