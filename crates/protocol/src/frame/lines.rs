//! What frames share: the text that they stand in.

use std::ops::Range;
use std::sync::Arc;

use super::Misfit;
use super::head::Head;

/// How long a line is at most that shares its memory with others, and is short.
pub(super) const SHORT: usize = 1024;

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

/// The text as it came.
#[derive(Clone)]
pub(super) enum Text {
    /// A short one, which was found to be UTF-8 once for everything that reads it.
    Utf8(Arc<str>),
    /// Whoever reads it looks at that. Mostly, that is whoever decodes a long line, if anybody does.
    Bytes(Arc<Vec<u8>>),
}

impl From<Vec<u8>> for Text {
    /// A long one stays where it is.
    fn from(mut text: Vec<u8>) -> Self {
        if text.len() > SHORT {
            text.shrink_to_fit();
            Self::Bytes(Arc::new(text))
        } else {
            Self::short(&text)
        }
    }
}

impl Text {
    pub(super) fn of(text: &[u8]) -> Self {
        if text.len() > SHORT {
            Self::Bytes(Arc::new(text.to_vec()))
        } else {
            Self::short(text)
        }
    }

    /// That of a line, or of several short ones.
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
