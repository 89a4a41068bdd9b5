//! What the CLI said that this build has no type for.
//!
//! Decoding never fails because of something new; it keeps it as text and notes it here, so that a program or a
//! test can tell how far the CLI has moved on.

use std::cell::RefCell;
use std::fmt;

/// One thing that decoding kept as text because it has no type, or did not fit its type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Drift {
    /// The Rust name of the enum or struct in which it was met.
    pub place: &'static str,
    /// The tag or value that was met.
    pub tag: String,
    /// What is wrong with it.
    pub kind: DriftKind,
}

/// The ways in which a value can be beyond this build.
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

/// Runs `decode` and returns what it returned along with all that it had no type for.
///
/// Nested calls each see only their own part.
pub fn watch<R>(decode: impl FnOnce() -> R) -> (R, Vec<Drift>) {
    let outer = SINK.replace(Some(Vec::new()));
    let result = decode();
    let seen = SINK.replace(outer).unwrap_or_default();
    (result, seen)
}

/// How much was noted so far.
#[inline(never)]
pub(crate) fn count() -> usize {
    SINK.with_borrow(|sink| sink.as_ref().map_or(0, Vec::len))
}

/// Forgets what was noted since there were `count`: it is read again.
#[cold]
#[inline(never)]
pub(crate) fn forget(count: usize) {
    SINK.with_borrow_mut(|sink| {
        if let Some(list) = sink {
            list.truncate(count);
        }
    });
}

/// Notes one thing, if somebody is watching. For the decoding macros.
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
