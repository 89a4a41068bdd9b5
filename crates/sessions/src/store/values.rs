//! Small values that several processes change: a state that they share.

use std::fmt;
use std::time::Duration;

use super::{BoxFuture, Result};

/// A value as a store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredValue {
    /// How often the value was replaced; 0 for a name that has none.
    pub version: u64,
    /// The value; empty for a name that has none.
    pub text: String,
    /// When the value was read, by the clock of the store: since 1970, in milliseconds at the finest.
    pub now: Duration,
}

impl StoredValue {
    /// The value that was read at this time.
    pub fn new(version: u64, text: impl Into<String>, now: Duration) -> Self {
        Self {
            version,
            text: text.into(),
            now,
        }
    }
}

/// Keeps small values, which are replaced by compare-and-set.
///
/// # Cancel safety
/// The futures may be dropped. A value may then have been replaced or not, but never in part.
pub trait ValueStore: fmt::Debug + Send + Sync + 'static {
    /// The value of this name, and the time by the store's clock. All who use the store see the same clock.
    ///
    /// # Errors
    /// When the store fails; never for a name without a value.
    fn read<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<StoredValue>>;

    /// Puts `text` in place of this version (0 for none), which makes it the next version; `false`, if the store has another version.
    /// Of two that replace the same version at once, one gets `true`.
    ///
    /// # Errors
    /// When it is not known which version is stored.
    fn replace<'a>(&'a self, name: &'a str, version: u64, text: &'a str) -> BoxFuture<'a, Result<bool>>;
}
