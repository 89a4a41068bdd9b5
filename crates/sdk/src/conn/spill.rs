//! Frames that wait on disk for a slow reader, in their order.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use outrigger_protocol::framer::Framed;
use outrigger_protocol::{Frame, MisfitKind};

use super::lane::LaneItem;

/// The size of a write.
const BLOCK: usize = 256 * 1024;

/// The size at which the next file begins; a file is removed once it is read.
const SEGMENT: u64 = 32 * 1024 * 1024;

/// The size of a read, at least one frame.
const BATCH: usize = 256 * 1024;

/// A first-in-first-out queue of frames in unnamed temporary files.
#[derive(Debug)]
pub(super) struct Spill {
    segments: VecDeque<Segment>,
    /// Records that are not written yet, of the last segment.
    unwritten: Vec<u8>,
    /// The read position in the first segment.
    read_to: u64,
    /// Elements that are no frames; each has a marker in the files.
    asides: VecDeque<LaneItem>,
    /// Whether the last record is a marker.
    ends_in_aside: bool,
    /// The number of waiting frames.
    pub(super) frames: u64,
    /// How many bytes the records take on disk.
    pub(super) bytes: u64,
}

#[derive(Debug)]
struct Segment {
    file: File,
    written: u64,
}

/// The kind of a record.
mod tag {
    pub(super) const LINE: u64 = 0;
    pub(super) const OVERSIZED: u64 = 1;
    pub(super) const ASIDE: u64 = 2;
}

/// Tag, length of the whole line, length of its kept part: eight bytes each.
const HEADER: usize = 3 * 8;

impl Spill {
    pub(super) fn new() -> Self {
        Self {
            segments: VecDeque::new(),
            unwritten: Vec::new(),
            read_to: 0,
            asides: VecDeque::new(),
            ends_in_aside: false,
            frames: 0,
            bytes: 0,
        }
    }

    /// The bytes of a frame on disk.
    pub(super) fn size_of(frame: &Frame) -> u64 {
        (HEADER + frame.bytes().len()) as u64
    }

    /// Appends a frame. An error leaves the queue unchanged.
    pub(super) fn push(&mut self, frame: &Frame, dir: Option<&Path>) -> io::Result<()> {
        let bytes = frame.bytes();
        let (tag, length) = match frame.flaw().map(|flaw| flaw.kind) {
            Some(MisfitKind::Oversized(length)) => (tag::OVERSIZED, length),
            _ => (tag::LINE, bytes.len() as u64),
        };
        if self.segments.back().is_none_or(|last| last.written >= SEGMENT) {
            self.write_out()?;
            let file = match dir {
                Some(dir) => tempfile::tempfile_in(dir)?,
                None => tempfile::tempfile()?,
            };
            self.segments.push_back(Segment { file, written: 0 });
        }
        let before = self.unwritten.len();
        self.record(tag, length, bytes);
        if self.unwritten.len() >= BLOCK
            && let Err(error) = self.write_out()
        {
            self.unwritten.truncate(before);
            return Err(error);
        }
        self.frames += 1;
        self.bytes += Self::size_of(frame);
        self.ends_in_aside = false;
        Ok(())
    }

    fn record(&mut self, tag: u64, length: u64, bytes: &[u8]) {
        self.unwritten.reserve(HEADER + bytes.len());
        for number in [tag, length, bytes.len() as u64] {
            self.unwritten.extend_from_slice(&number.to_le_bytes());
        }
        self.unwritten.extend_from_slice(bytes);
    }

    /// Appends an element that is no frame and stays in memory.
    pub(super) fn push_aside(&mut self, item: LaneItem) {
        self.record(tag::ASIDE, 0, &[]);
        self.asides.push_back(item);
        self.ends_in_aside = true;
    }

    /// The last element, if it is no frame.
    pub(super) fn last_aside(&mut self) -> Option<&mut LaneItem> {
        self.asides.back_mut().filter(|_| self.ends_in_aside)
    }

    /// Takes the elements that are no frames, without their positions.
    pub(super) fn take_asides(&mut self) -> VecDeque<LaneItem> {
        std::mem::take(&mut self.asides)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames == 0 && self.asides.is_empty()
    }

    fn write_out(&mut self) -> io::Result<()> {
        let Some(last) = self.segments.back_mut() else {
            return Ok(());
        };
        last.file.seek(SeekFrom::Start(last.written))?;
        last.file.write_all(&self.unwritten)?;
        last.written += self.unwritten.len() as u64;
        // Drops a buffer that a huge frame has grown.
        if self.unwritten.capacity() > 2 * BLOCK {
            self.unwritten = Vec::new();
        } else {
            self.unwritten.clear();
        }
        Ok(())
    }

    /// Takes the next elements; none if the queue is empty. After an error, nothing was taken.
    pub(super) fn pop_batch(&mut self) -> io::Result<Vec<LaneItem>> {
        let mut items = Vec::new();
        match self.read_batch(&mut items) {
            Err(error) if items.is_empty() => Err(error),
            // What was read before the error counts; the error comes again.
            _ => Ok(items),
        }
    }

    fn read_batch(&mut self, items: &mut Vec<LaneItem>) -> io::Result<()> {
        let mut taken = 0;
        while taken < BATCH
            && let Some(first) = self.segments.front_mut()
        {
            if self.read_to >= first.written {
                if self.segments.len() == 1 && !self.unwritten.is_empty() {
                    break;
                }
                self.segments.pop_front();
                self.read_to = 0;
                continue;
            }
            first.file.seek(SeekFrom::Start(self.read_to))?;
            let left = first.written - self.read_to;
            let mut reader = io::BufReader::with_capacity(BATCH, first.file.try_clone()?.take(left));
            while taken < BATCH && self.read_to < self.segments.front().map_or(0, |first| first.written) {
                let (record, size) = Record::read(&mut reader)?;
                self.read_to += size;
                taken += size as usize;
                self.take(record, size, items);
            }
        }
        if taken == 0 {
            // Everything that was written has been read; the rest is still in memory.
            let unwritten = std::mem::take(&mut self.unwritten);
            self.segments.clear();
            self.read_to = 0;
            let mut rest = unwritten.as_slice();
            while !rest.is_empty() {
                let (record, size) = Record::read(&mut rest)?;
                self.take(record, size, items);
            }
        }
        Ok(())
    }

    fn take(&mut self, record: Record, size: u64, items: &mut Vec<LaneItem>) {
        let framed = match record {
            Record::Aside => {
                items.extend(self.asides.pop_front());
                return;
            }
            Record::Frame(framed) => framed,
        };
        self.frames = self.frames.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(size);
        items.extend(Frame::read(framed).into_iter().map(LaneItem::Frame));
    }
}

enum Record {
    Aside,
    Frame(Framed),
}

impl Record {
    /// Reads one record. Returns the record's size, too.
    fn read(from: &mut impl Read) -> io::Result<(Self, u64)> {
        let mut number = || {
            let mut bytes = [0; 8];
            from.read_exact(&mut bytes).map(|()| u64::from_le_bytes(bytes))
        };
        let (tag, length, kept) = (number()?, number()?, number()?);
        let mut bytes = vec![0; usize::try_from(kept).map_err(io::Error::other)?];
        from.read_exact(&mut bytes)?;
        let record = match tag {
            tag::ASIDE => Self::Aside,
            tag::OVERSIZED => Self::Frame(Framed::Oversized { head: bytes, length }),
            _ => Self::Frame(Framed::Line(bytes)),
        };
        Ok((record, HEADER as u64 + kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Lag;

    fn line(text: &str) -> Frame {
        Frame::from_line(text.as_bytes()).remove(0)
    }

    fn drain(spill: &mut Spill) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            let items = spill.pop_batch().unwrap();
            if items.is_empty() {
                return seen;
            }
            for item in items {
                seen.push(match item {
                    LaneItem::Frame(frame) => String::from_utf8_lossy(frame.bytes()).into_owned(),
                    LaneItem::Lag(lag) => format!("lag {}", lag.frames),
                    LaneItem::Outcome(_) => "outcome".to_owned(),
                });
            }
        }
    }

    #[test]
    fn frames_and_gaps_come_back_in_their_order() {
        let mut spill = Spill::new();
        let big = format!(r#"{{"type":"big","x":"{}"}}"#, "y".repeat(3 * BLOCK));
        let mut expected = Vec::new();
        for round in 0..3 {
            for text in [r#"{"type":"a"}"#, &big, "noise", r#"{"type":"b"}"#] {
                spill.push(&line(text), None).unwrap();
                expected.push(text.to_owned());
            }
            spill.push_aside(LaneItem::Lag(Lag {
                frames: round,
                bytes: 1,
            }));
            expected.push(format!("lag {round}"));
            assert!(spill.last_aside().is_some());
        }
        assert_eq!(spill.frames, 12);
        assert_eq!(drain(&mut spill), expected);
        assert_eq!(spill.frames, 0);
        // It can be used again.
        spill.push(&line(r#"{"type":"c"}"#), None).unwrap();
        assert!(spill.last_aside().is_none());
        assert_eq!(drain(&mut spill), [r#"{"type":"c"}"#]);
    }

    #[test]
    fn reading_and_writing_take_turns() {
        let mut spill = Spill::new();
        let mut seen = Vec::new();
        for number in 0..10_000 {
            let text = format!(r#"{{"type":"n","n":{number},"pad":"{}"}}"#, "p".repeat(200));
            spill.push(&line(&text), None).unwrap();
            if number % 700 == 0 {
                seen.extend(spill.pop_batch().unwrap());
            }
        }
        while let items @ [_, ..] = &mut *spill.pop_batch().unwrap() {
            seen.extend(
                items
                    .iter_mut()
                    .map(|item| std::mem::replace(item, LaneItem::Lag(Lag::default()))),
            );
        }
        assert_eq!(seen.len(), 10_000);
        for (number, item) in seen.iter().enumerate() {
            let LaneItem::Frame(frame) = item else {
                panic!("a gap")
            };
            assert!(String::from_utf8_lossy(frame.bytes()).contains(&format!("\"n\":{number},")));
        }
    }

    #[test]
    fn an_oversized_line_stays_one() {
        let mut spill = Spill::new();
        let frame = Frame::read(Framed::Oversized {
            head: br#"{"type":"user","#.to_vec(),
            length: 99,
        })
        .remove(0);
        spill.push(&frame, None).unwrap();
        let Some(LaneItem::Frame(back)) = spill.pop_batch().unwrap().pop() else {
            panic!("nothing came back");
        };
        assert_eq!(back.flaw(), frame.flaw());
        assert_eq!(back.kind(), "user");
    }

    #[test]
    fn a_place_that_can_not_be_written_is_an_error_and_no_loss() {
        let mut spill = Spill::new();
        let nowhere = Path::new("/nonexistent/directory");
        assert!(spill.push(&line(r#"{"type":"a"}"#), Some(nowhere)).is_err());
        assert_eq!(spill.frames, 0);
        assert!(drain(&mut spill).is_empty());
    }
}
