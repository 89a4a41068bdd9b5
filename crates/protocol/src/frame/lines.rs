//! The memory that frames share.

use std::ops::Range;
use std::sync::Arc;

use super::Misfit;
use super::head::FrameHead;

/// The longest line that is short: such lines can share their memory.
pub(super) const SHORT: usize = 1024;

/// One line or a few, with the frames in them.
pub(super) struct Lines {
    pub(super) text: LineText,
    pub(super) first: Body,
    pub(super) rest: Box<[Body]>,
}

impl Lines {
    pub(super) fn body(&self, at: u32) -> &Body {
        match at {
            0 => &self.first,
            at => &self.rest[at as usize - 1],
        }
    }
}

/// One frame.
#[derive(Debug)]
pub(super) struct Body {
    /// The part of the text that is its line.
    pub(super) line: Range<usize>,
    /// The part of the text that is this frame: all of the line, unless several objects share it.
    pub(super) own: Range<usize>,
    pub(super) head: FrameHead,
    pub(super) flaw: Option<Box<Misfit>>,
}

impl Body {
    pub(super) fn of(
        line: Range<usize>,
        own: Range<usize>,
        head: FrameHead,
        flaw: Option<Box<Misfit>>,
    ) -> Self {
        Self {
            line,
            own,
            head,
            flaw,
        }
    }
}

/// The text as it came.
#[derive(Clone)]
pub(super) enum LineText {
    /// Short text. It was checked to be UTF-8, once for all readers.
    Utf8(Arc<str>),
    /// Long text. Each reader checks the UTF-8 of its part; most long lines are never decoded.
    Bytes(Arc<Vec<u8>>),
}

impl From<Vec<u8>> for LineText {
    /// Long text keeps its memory.
    fn from(mut text: Vec<u8>) -> Self {
        if text.len() > SHORT {
            text.shrink_to_fit();
            Self::Bytes(Arc::new(text))
        } else {
            Self::short(&text)
        }
    }
}

impl LineText {
    pub(super) fn of(text: &[u8]) -> Self {
        if text.len() > SHORT {
            Self::Bytes(Arc::new(text.to_vec()))
        } else {
            Self::short(text)
        }
    }

    /// The text of a line, or of several short lines.
    pub(super) fn short(text: &[u8]) -> Self {
        match simdutf8::basic::from_utf8(text) {
            Ok(text) => Self::Utf8(text.into()),
            Err(_) => Self::Bytes(Arc::new(text.to_vec())),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Utf8(text) => text.as_bytes(),
            Self::Bytes(text) => text,
        }
    }

    pub(super) fn part(&self, start: usize, end: usize) -> Option<&str> {
        match self {
            Self::Utf8(text) => text.get(start..end),
            Self::Bytes(text) => simdutf8::basic::from_utf8(text.get(start..end)?).ok(),
        }
    }
}
