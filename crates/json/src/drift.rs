//! Counts what decoding has no type for.
//!
//! Decoding never fails because of something new: it keeps the text and notes it here, so that a program or a test sees how far the
//! other side has moved on.

use std::cell::RefCell;
use std::fmt;

/// A value that decoding kept as text because it has no type, or does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Drift {
    /// The Rust name of the enum or struct that has no place for the value.
    pub place: &'static str,
    /// The tag or the value.
    pub tag: String,
    /// Why it was kept as text.
    pub kind: DriftKind,
}

/// Why a value was kept as text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DriftKind {
    /// A tag (`type`, `subtype`, …) that this build does not know.
    UnknownTag,
    /// A value of an open string set that this build does not know.
    UnknownValue,
    /// A known tag whose body does not have the expected shape; the text says why.
    Misfit(String),
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            DriftKind::UnknownTag => write!(f, "unknown {} `{}`", self.place, self.tag),
            DriftKind::UnknownValue => write!(f, "unknown value of {}: `{}`", self.place, self.tag),
            DriftKind::Misfit(reason) => write!(f, "{} `{}` does not fit: {reason}", self.place, self.tag),
        }
    }
}

thread_local! {
    static SINK: RefCell<Option<Vec<Drift>>> = const { RefCell::new(None) };
}

/// Runs `decode` and returns its result, with all drift in it.
///
/// Of nested calls, each returns only its own drift.
pub fn watch<R>(decode: impl FnOnce() -> R) -> (R, Vec<Drift>) {
    let outer = SINK.replace(Some(Vec::new()));
    let result = decode();
    let seen = SINK.replace(outer).unwrap_or_default();
    (result, seen)
}

/// How many notes there are so far.
#[inline(never)]
pub(crate) fn count() -> usize {
    SINK.with_borrow(|sink| sink.as_ref().map_or(0, Vec::len))
}

/// Forgets all but the first `count` notes, because their text is read again.
#[cold]
#[inline(never)]
pub(crate) fn forget(count: usize) {
    SINK.with_borrow_mut(|sink| {
        if let Some(list) = sink {
            list.truncate(count);
        }
    });
}

/// Notes drift, within [`watch`]. For the decoding macros.
#[doc(hidden)]
#[cold]
#[inline(never)]
pub fn note(place: &'static str, tag: &str, kind: DriftKind) {
    SINK.with_borrow_mut(|sink| {
        if let Some(list) = sink {
            list.push(Drift {
                place,
                tag: tag.to_owned(),
                kind,
            });
        }
    });
}
