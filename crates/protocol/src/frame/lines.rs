//! What frames share: the text that they stand in.

use std::ops::Range;
use std::sync::Arc;

use super::Misfit;
use super::head::Head;

/// One line or a few, with the frames in them.
pub(super) struct Lines {
    pub(super) text: Text,
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
    /// Its line's part of the text.
    pub(super) line: Range<usize>,
    /// Its own part: all of the line, unless several objects share it.
    pub(super) own: Range<usize>,
    pub(super) head: Head,
    pub(super) flaw: Option<Box<Misfit>>,
}

impl Body {
    pub(super) fn of(line: Range<usize>, own: Range<usize>, head: Head, flaw: Option<Box<Misfit>>) -> Self {
        Self {
            line,
            own,
            head,
            flaw,
        }
    }
}

/// The text as it came. Whether it is UTF-8 is looked at once, for everything that reads it.
#[derive(Clone)]
pub(super) enum Text {
    Utf8(Arc<str>),
    Bytes(Arc<[u8]>),
}

impl Text {
    pub(super) fn of(text: &[u8]) -> Self {
        match simdutf8::basic::from_utf8(text) {
            Ok(text) => Self::Utf8(text.into()),
            Err(_) => Self::Bytes(text.into()),
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
            Self::Bytes(text) => std::str::from_utf8(text.get(start..end)?).ok(),
        }
    }
}
