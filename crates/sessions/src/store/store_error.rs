//! What can go wrong with a store.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use crate::clock::iso;

/// The year 9999, in milliseconds since 1970: what ends later never does.
const AGES: u64 = 253_370_764_800_000;

/// An operation of a store failed.
///
/// `Display` has the operation and the reason, without the cause that [`source`](Error::source) has.
#[derive(Debug, Clone)]
pub struct StoreError {
    kind: StoreErrorKind,
    what: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// What kind of failure it was.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store does not have this at all; see [`Capabilities`](super::Capabilities).
    Unsupported,
    /// Another owner holds the lease.
    Held {
        /// Who.
        owner: String,
        /// Until when, in milliseconds since 1970 by the store's clock, unless it is renewed; 0 where that is not known.
        until: u64,
    },
    /// The lease is over: it ran out, was released, or another owner has taken the session over. Nothing was written.
    Fenced,
    /// The stored data can't be read.
    Damaged,
    /// The session isn't in the store.
    NotFound,
    /// The arguments make no sense; nothing was done.
    Invalid,
    /// The database or the disk failed; trying again may help.
    Failed,
}

/// The result of a store's function.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

impl StoreError {
    /// A failure of the given kind; `what` has the operation and the reason in a few words.
    pub fn new(kind: StoreErrorKind, what: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            source: None,
        }
    }

    /// A failure of the system below the store.
    pub fn failed(what: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(StoreErrorKind::Failed, what).caused_by(source)
    }

    /// The same error with its cause.
    #[must_use]
    pub fn caused_by(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            source: Some(Arc::from(source.into())),
            ..self
        }
    }

    /// The store has no such function.
    pub fn unsupported(function: &str) -> Self {
        Self::new(
            StoreErrorKind::Unsupported,
            format!("this session store has no {function}"),
        )
    }

    /// The lease is over.
    pub fn fenced(what: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Fenced, what)
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> &StoreErrorKind {
        &self.kind
    }

    /// Whether the lease is over, so that this process may not write any more.
    pub fn is_fenced(&self) -> bool {
        self.kind == StoreErrorKind::Fenced
    }

    /// Whether another owner holds the lease.
    pub fn is_held(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Held { .. })
    }

    /// Whether trying the same again may help.
    pub fn may_pass(&self) -> bool {
        self.kind == StoreErrorKind::Failed
    }

    /// This error and its causes in one line, for a log or a `mirror_error`.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.kind {
            StoreErrorKind::Held { owner, until: 0 } => write!(f, ": {owner} has it"),
            StoreErrorKind::Held { owner, until } => {
                let at = UNIX_EPOCH.checked_add(Duration::from_millis(*until));
                match at.filter(|_| *until < AGES) {
                    Some(at) => {
                        let at = iso(at);
                        write!(
                            f,
                            ": {owner} has it until {at}, unless it is renewed or given back"
                        )
                    }
                    None => write!(f, ": {owner} has it until it is given back"),
                }
            }
            _ => Ok(()),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_it_is_told_with_the_time() {
        let held = |until| {
            let owner = "one".to_owned();
            StoreError::new(StoreErrorKind::Held { owner, until }, "the session p/s is leased").to_string()
        };
        assert_eq!(
            held(951_782_400_007),
            "the session p/s is leased: one has it until 2000-02-29T00:00:00.007Z, unless it is renewed or given back"
        );
        assert_eq!(held(0), "the session p/s is leased: one has it");
        let for_ever = "the session p/s is leased: one has it until it is given back";
        assert_eq!(held(u64::MAX), for_ever);
    }
}
