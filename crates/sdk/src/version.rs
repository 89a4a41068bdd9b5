//! Which version of the CLI runs, and whether this SDK was tested with it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use outrigger_protocol::TESTED_CLI_VERSIONS;

/// The oldest version of the CLI that is supported: sessions, permissions, hooks, MCP servers in the program, streaming and resuming
/// work with it and with those since, each of which has to be without what came later: 2.1.0 and older ones tell nothing of jobs in the
/// background, for one. `cargo xtask cli-matrix` tries a dozen of them.
pub const OLDEST_CLI_VERSION: &str = "2.0.0";

/// Since about this version the CLI says what kind of reason it has to ask about a tool call; 2.1.100 did not.
pub(crate) const TELLS_REASONS: &str = "2.1.150";

/// Since this version the CLI knows `--await-initialize`; 2.1.260 refuses to start with it.
pub(crate) const AWAITS_INITIALIZE: &str = "2.1.261";

/// What a CLI lacks that is older than a version.
const LACKS: &[(&str, &str)] = &[
    (
        "2.0.28",
        "rules that refuse reading do not hold for files that may be edited without a question",
    ),
    (
        "2.0.72",
        "rules that ask about reading do not hold in the working directory",
    ),
    (
        "2.1.150",
        "it does not say why a turn ended: one that was interrupted is told as one that failed or could not start",
    ),
    ("2.1.150", "it does not say which turns nobody prompted"),
    (
        TELLS_REASONS,
        "it does not say why it asks about a tool call: a policy with rules that ask takes each question for one of theirs",
    ),
];

/// How many versions are remembered as warned of.
const WARNED: usize = 64;

/// The version that the CLI reports, compared with [`TESTED_CLI_VERSIONS`] and [`OLDEST_CLI_VERSION`].
///
/// Another version is never rejected: data without a type is kept as raw JSON, and [`Session::stats`](crate::Session::stats)
/// counts it. One that is too old is
/// named in the log when its session starts, with what does not work ([`lacks`](Self::lacks)); not by an error, since the oldest need not
/// tell their version. One that is not asked for it, behind a wrapper for example ([`Session::cli_version`](crate::Session::cli_version)),
/// is named in its first turn, or not at all if it is of those.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliVersion {
    text: String,
    age: CliAge,
}

/// How a version of the CLI relates to those that this SDK was tested with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CliAge {
    /// A tested version, or one between tested ones.
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

    /// How the version relates to the tested ones.
    pub fn age(&self) -> CliAge {
        self.age
    }

    /// Whether this SDK was tested with it.
    pub fn is_tested(&self) -> bool {
        self.age == CliAge::Tested
    }

    /// What does not work with this version and does with those that were tested, a sentence each; empty if nothing is known of the kind.
    pub fn lacks(&self) -> Vec<&'static str> {
        let mut lacks = Vec::new();
        if self.age == CliAge::Unsupported {
            lacks.push(
                "tool calls that are allowed may fail, hooks may refuse what they guard, and servers in this program may be missing",
            );
        }
        if let Some(own) = numbers(&self.text) {
            let is_older = |version: &str| numbers(version).is_some_and(|since| own < since);
            lacks.extend(
                LACKS
                    .iter()
                    .filter(|(since, _)| is_older(since))
                    .map(|(_, what)| *what),
            );
        }
        lacks
    }

    /// Whether the version is this one or newer; false if that is not known.
    pub(crate) fn is_since(&self, version: &str) -> bool {
        matches!((numbers(&self.text), numbers(version)), (Some(own), Some(since)) if own >= since)
    }

    /// Warns of a CLI that never reports its version, once in this process.
    pub(crate) fn warn_of_untold() {
        static WARNED: AtomicBool = AtomicBool::new(false);
        if !WARNED.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                supported_from = OLDEST_CLI_VERSION,
                "this Claude Code does not tell its version, as those of the beginning of 2.0 and older ones don't; with one that is older than what is supported, tool calls and hooks may fail"
            );
        }
    }

    /// Warns of an untested version, of each once in this process: a pool would repeat the warning for each session.
    pub(crate) fn warn(&self) {
        static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        if self.is_tested() {
            return;
        }
        {
            let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.len() >= WARNED || !seen.insert(self.text.clone()) {
                return;
            }
        }
        let (oldest, newest) = TESTED_CLI_VERSIONS;
        let lacks = self.lacks().join("; ");
        if self.age == CliAge::Unsupported {
            tracing::warn!(
                version = %self.text,
                supported_from = OLDEST_CLI_VERSION,
                "this version of Claude Code is too old for this SDK: {lacks}; update Claude Code"
            );
        } else if lacks.is_empty() {
            tracing::warn!(
                version = %self.text,
                %oldest,
                %newest,
                "this version of Claude Code was not tested with this SDK; Session::stats counts the data without a type"
            );
        } else {
            tracing::warn!(
                version = %self.text,
                %oldest,
                %newest,
                "this version of Claude Code is older than those that this SDK was tested with: {lacks}; update Claude Code"
            );
        }
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

    #[test]
    fn what_a_version_lacks() {
        let lacks = |version: &str| CliVersion::new(version).lacks();
        assert!(lacks("1.0.128").len() > lacks("2.0.77").len());
        assert!(
            lacks("2.0.77")
                .iter()
                .any(|what| what.contains("why a turn ended"))
        );
        for version in ["2.1.150", "2.1.330", "9.9.9", "nightly"] {
            assert!(lacks(version).is_empty(), "{version}");
        }
    }
}
