//! Which version of the CLI runs, and whether this SDK was tested with it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use outrigger_protocol::TESTED_CLI_VERSIONS;

/// The CLI's version, as it said itself, held against [`TESTED_CLI_VERSIONS`].
///
/// Another version is never refused: what it says beyond this build's types arrives as it came, and
/// [`Session::stats`](crate::Session::stats) counts it. This tells where to look first when something is odd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliVersion {
    text: String,
    age: CliAge,
}

/// How a version of the CLI relates to those that this SDK was tested with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CliAge {
    /// One of them, or between them.
    Tested,
    /// Older than all of them.
    Older,
    /// Newer than all of them.
    Newer,
    /// Not three numbers with dots, so that there is nothing to compare.
    Unclear,
}

impl CliVersion {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let age = age(&text);
        Self { text, age }
    }

    /// The version as the CLI writes it, such as `2.1.330`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How it relates to the tested ones.
    pub fn age(&self) -> CliAge {
        self.age
    }

    /// Whether this SDK was tested with it.
    pub fn is_tested(&self) -> bool {
        self.age == CliAge::Tested
    }

    /// Warns of an untested version, once in this process: with a pool of sessions the tenth warning says nothing new.
    pub(crate) fn warn(&self) {
        static WARNED: AtomicBool = AtomicBool::new(false);
        if self.is_tested() || WARNED.swap(true, Ordering::Relaxed) {
            return;
        }
        let (oldest, newest) = TESTED_CLI_VERSIONS;
        tracing::warn!(
            version = %self.text,
            %oldest,
            %newest,
            "this version of Claude Code was not tested with this SDK; Session::stats counts what it says beyond the types"
        );
    }
}

impl fmt::Display for CliVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn age(version: &str) -> CliAge {
    let (oldest, newest) = TESTED_CLI_VERSIONS;
    match (numbers(oldest), numbers(version), numbers(newest)) {
        (Some(oldest), Some(version), _) if version < oldest => CliAge::Older,
        (_, Some(version), Some(newest)) if version > newest => CliAge::Newer,
        (Some(_), Some(_), Some(_)) => CliAge::Tested,
        _ => CliAge::Unclear,
    }
}

/// The three numbers of a version, without what follows a `-` or `+`.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let plain = version.split(['-', '+']).next()?;
    let parts: Vec<u64> = plain
        .split('.')
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    parts.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        let (oldest, newest) = TESTED_CLI_VERSIONS;
        for tested in [oldest, newest] {
            assert!(CliVersion::new(tested).is_tested(), "{tested}");
        }
        for (version, expected) in [
            ("2.1.99", CliAge::Older),
            ("1.900.0", CliAge::Older),
            ("2.1.10000", CliAge::Newer),
            ("2.10.0-beta.1", CliAge::Newer),
            ("10.0.0", CliAge::Newer),
            ("2.1", CliAge::Unclear),
            ("nightly", CliAge::Unclear),
            ("", CliAge::Unclear),
        ] {
            assert_eq!(CliVersion::new(version).age(), expected, "{version}");
        }
    }
}
