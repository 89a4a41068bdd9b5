//! Which version of the CLI runs, and whether this SDK was tested with it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use outrigger_protocol::TESTED_CLI_VERSIONS;

/// The oldest version of the CLI that is supported: sessions, permissions, hooks, MCP servers in the program, streaming and resuming
/// work with it and with those since, each of which has to be without what came later: 2.1.0 and older ones tell nothing of jobs in the
/// background, for one. `cargo xtask cli-matrix` tries a dozen of them.
pub const OLDEST_CLI_VERSION: &str = "2.0.0";

/// The CLI's version, as it said itself, held against [`TESTED_CLI_VERSIONS`] and [`OLDEST_CLI_VERSION`].
///
/// Another version is never refused: what it says beyond this build's types arrives as it came, and
/// [`Session::stats`](crate::Session::stats) counts it. This tells where to look first when something is odd. One that is too old is
/// named in the log with what may not work; not by an error, since the oldest say their version only in the first turn, or never.
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
    /// Older than all of them, and supported.
    Older,
    /// Older than [`OLDEST_CLI_VERSION`].
    Unsupported,
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

    /// Whether it is this version or a newer one; not if that can't be told.
    pub(crate) fn is_since(&self, version: &str) -> bool {
        matches!((numbers(&self.text), numbers(version)), (Some(own), Some(since)) if own >= since)
    }

    /// Warns of a CLI that never tells its version, once in this process.
    pub(crate) fn warn_of_untold() {
        static WARNED: AtomicBool = AtomicBool::new(false);
        if !WARNED.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                supported_from = OLDEST_CLI_VERSION,
                "this Claude Code does not tell its version, as those of the beginning of 2.0 and older ones don't; with one that is older than what is supported, tool calls and hooks may fail"
            );
        }
    }

    /// Warns of an untested version, once in this process: with a pool of sessions the tenth warning says nothing new.
    pub(crate) fn warn(&self) {
        static WARNED: AtomicBool = AtomicBool::new(false);
        if self.is_tested() || WARNED.swap(true, Ordering::Relaxed) {
            return;
        }
        let (oldest, newest) = TESTED_CLI_VERSIONS;
        if self.age == CliAge::Unsupported {
            tracing::warn!(
                version = %self.text,
                supported_from = OLDEST_CLI_VERSION,
                "this version of Claude Code is too old for this SDK: tool calls that are allowed may fail, hooks may refuse what they guard, and servers in this program may be missing; update Claude Code"
            );
            return;
        }
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
    if let (Some(version), Some(oldest)) = (numbers(version), numbers(OLDEST_CLI_VERSION))
        && version < oldest
    {
        return CliAge::Unsupported;
    }
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
            (OLDEST_CLI_VERSION, CliAge::Older),
            ("1.900.0", CliAge::Unsupported),
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
