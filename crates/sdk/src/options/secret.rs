//! A string that must not be shown.

use std::fmt;

/// A key or token. Neither `Debug` nor `Display` shows it; [`Secret::reveal`] does.
///
/// It is not erased from memory when dropped: the child's environment holds a copy anyway.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps a key or token.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into().into_boxed_str())
    }

    /// The value itself, not redacted.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether the secret is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_shown() {
        let secret = Secret::new("sk-ant-1");
        assert_eq!(
            format!("{secret:?} {secret} {secret:#?}"),
            "Secret(…) … Secret(…)"
        );
        assert_eq!(secret.reveal(), "sk-ant-1");
    }
}
