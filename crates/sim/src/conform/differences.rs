//! The differences that are known, each with its reason.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::compare::{Difference, DifferenceKind, DifferenceSide};

/// The known differences between the real CLI and the simulated one, and their reasons: `differences.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    #[serde(default)]
    frames: Vec<ListedDifference>,
    #[serde(default)]
    fields: Vec<ListedDifference>,
}

/// Frames that only one of them writes, or that it writes in another place; or, with kinds, fields that only one of them has in frames
/// of these kinds.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ListedDifference {
    kinds: Vec<String>,
    /// In which scenarios; fields without any named occur in at least one.
    scenarios: Vec<String>,
    /// Whether the difference depends on who is faster, and need not occur.
    sometimes: bool,
    real: Vec<String>,
    simulator: Vec<String>,
    reason: String,
}

impl Listed {
    /// The list of this build.
    ///
    /// # Errors
    /// When it is not well-formed.
    pub fn read() -> Result<Self, toml::de::Error> {
        toml::from_str(include_str!("../../tests/conformance/differences.toml"))
    }

    fn entries(&self) -> impl Iterator<Item = &ListedDifference> {
        self.frames.iter().chain(&self.fields)
    }

    fn entries_about(&self, difference: &Difference) -> impl Iterator<Item = &ListedDifference> {
        self.entries().filter(|entry| {
            let names = entry.only_with(difference.who);
            names.iter().any(|name| entry.is(name, &difference.what))
        })
    }

    /// All reasons.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        self.entries().map(|entry| entry.reason.as_str())
    }

    /// The reason for a difference that occurs whatever is played: a field that is listed without a scenario.
    pub fn reason(&self, difference: &Difference) -> Option<&str> {
        let mut entries = self.entries_about(difference);
        entries
            .find(|entry| entry.scenarios.is_empty())
            .map(|entry| entry.reason.as_str())
    }

    /// The scenario in which such a difference is known, and its reason there.
    pub fn elsewhere(&self, difference: &Difference) -> Option<(&str, &str)> {
        let entry = self.entries_about(difference).next()?;
        Some((entry.scenarios.first()?, &entry.reason))
    }

    /// What was found and is not listed, as it would be.
    pub fn unlisted(&self, found: &[Difference]) -> Vec<String> {
        let mut lines = BTreeMap::<String, BTreeSet<&str>>::new();
        for difference in found {
            let mut entries = self.entries_about(difference);
            let here =
                |scenarios: &[String]| scenarios.is_empty() || scenarios.contains(&difference.scenario);
            if entries.any(|entry| here(&entry.scenarios)) {
                continue;
            }
            let who = match difference.who {
                DifferenceSide::Real => "only the real one",
                DifferenceSide::Simulator => "only the simulator",
            };
            let line = match &difference.what {
                DifferenceKind::Frame(kind) => format!("{who} writes {kind}"),
                DifferenceKind::Field { kind, field } => format!("{who} has in {kind}: {field}"),
            };
            lines.entry(line).or_default().insert(&difference.scenario);
        }
        lines
            .into_iter()
            .map(|(line, scenarios)| format!("{line}  [{}]", Vec::from_iter(scenarios).join(", ")))
            .collect()
    }

    /// What is listed and was not found.
    pub fn stale(&self, found: &[Difference]) -> Vec<String> {
        let mut stale = Vec::new();
        for entry in self.entries().filter(|entry| !entry.sometimes) {
            for who in [DifferenceSide::Real, DifferenceSide::Simulator] {
                for name in entry.only_with(who) {
                    let mut alike = found
                        .iter()
                        .filter(|found| found.who == who && entry.is(name, &found.what));
                    let text = format!("listed, but does not occur: {who:?} {:?} {name}", entry.kinds);
                    if entry.scenarios.is_empty() && alike.next().is_none() {
                        stale.push(text.clone());
                    }
                    let seen: Vec<&str> = alike.map(|found| found.scenario.as_str()).collect();
                    let missing = entry
                        .scenarios
                        .iter()
                        .filter(|scenario| !seen.contains(&scenario.as_str()));
                    stale.extend(missing.map(|scenario| format!("{text} in {scenario}")));
                }
            }
        }
        stale
    }
}

impl ListedDifference {
    /// The frames or fields that only this one has.
    fn only_with(&self, who: DifferenceSide) -> &[String] {
        match who {
            DifferenceSide::Real => &self.real,
            DifferenceSide::Simulator => &self.simulator,
        }
    }

    /// Whether one of its frames or fields is what differs. A kind that ends with `*` stands for all that begin so, and `= *` for
    /// any value.
    fn is(&self, name: &str, what: &DifferenceKind) -> bool {
        match what {
            DifferenceKind::Frame(kind) => self.kinds.is_empty() && kind == name,
            DifferenceKind::Field { kind, field } => {
                let covers = |listed: &String| match listed.strip_suffix('*') {
                    Some(beginning) => kind.starts_with(beginning),
                    None => listed == kind,
                };
                let is_field = match name.strip_suffix(" = *") {
                    Some(path) => field
                        .strip_prefix(path)
                        .is_some_and(|value| value.starts_with(" = ")),
                    None => field == name,
                };
                is_field && self.kinds.iter().any(covers)
            }
        }
    }
}
