//! The differences that are known, each with its reason.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::compare::{Difference, What, Who};

/// The known differences between the real CLI and the simulated one, and their reasons: `differences.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    #[serde(default)]
    frames: Vec<Frames>,
    #[serde(default)]
    fields: Vec<Fields>,
}

/// Frames that only one of them writes, in each of these scenarios, or that it writes in another place.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Frames {
    scenarios: Vec<String>,
    /// Whether it depends on who is faster, and need not occur.
    #[serde(default)]
    sometimes: bool,
    #[serde(default)]
    real: Vec<String>,
    #[serde(default)]
    simulator: Vec<String>,
    reason: String,
}

/// Fields that only one of them writes, in these scenarios or, without any named, in at least one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    kinds: Vec<String>,
    #[serde(default)]
    scenarios: Vec<String>,
    /// Whether it depends on who is faster, and need not occur.
    #[serde(default)]
    sometimes: bool,
    #[serde(default)]
    real: Vec<String>,
    #[serde(default)]
    simulator: Vec<String>,
    reason: String,
}

fn side<'a>(who: Who, real: &'a [String], simulator: &'a [String]) -> &'a [String] {
    match who {
        Who::Real => real,
        Who::Simulator => simulator,
    }
}

impl Listed {
    /// The list of this build.
    ///
    /// # Errors
    /// When it is not well-formed.
    pub fn read() -> Result<Self, toml::de::Error> {
        toml::from_str(include_str!("../../tests/conformance/differences.toml"))
    }

    /// All reasons.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        let frames = self.frames.iter().map(|entry| &entry.reason);
        let fields = self.fields.iter().map(|entry| &entry.reason);
        frames.chain(fields).map(String::as_str)
    }

    /// The reason for a difference that occurs whatever is played: a field that is listed without a scenario.
    pub fn reason(&self, difference: &Difference) -> Option<&str> {
        let What::Field { kind, field } = &difference.what else {
            return None;
        };
        let mut entries = self.fields.iter().filter(|entry| entry.scenarios.is_empty());
        entries
            .find(|entry| entry.has(difference.who, kind, field))
            .map(|entry| entry.reason.as_str())
    }

    /// The scenario in which such a difference is known, and its reason there.
    pub fn elsewhere(&self, difference: &Difference) -> Option<(&str, &str)> {
        let (scenarios, reason) = match &difference.what {
            What::Frame(kind) => {
                let mut entries = self.frames.iter();
                let entry = entries
                    .find(|entry| side(difference.who, &entry.real, &entry.simulator).contains(kind))?;
                (&entry.scenarios, &entry.reason)
            }
            What::Field { kind, field } => {
                let mut entries = self.fields.iter();
                let entry = entries.find(|entry| entry.has(difference.who, kind, field))?;
                (&entry.scenarios, &entry.reason)
            }
        };
        Some((scenarios.first()?, reason))
    }

    /// What was found and is not listed, as it would be.
    pub fn unlisted(&self, found: &[Difference]) -> Vec<String> {
        let unlisted = found.iter().filter(|difference| !self.covers(difference));
        let mut lines = BTreeMap::<String, BTreeSet<&str>>::new();
        for difference in unlisted {
            let who = match difference.who {
                Who::Real => "only the real one",
                Who::Simulator => "only the simulator",
            };
            let line = match &difference.what {
                What::Frame(kind) => format!("{who} writes {kind}"),
                What::Field { kind, field } => format!("{who} has in {kind}: {field}"),
            };
            lines.entry(line).or_default().insert(&difference.scenario);
        }
        lines
            .into_iter()
            .map(|(line, scenarios)| format!("{line}  [{}]", Vec::from_iter(scenarios).join(", ")))
            .collect()
    }

    fn covers(&self, difference: &Difference) -> bool {
        let named = |scenarios: &[String]| scenarios.contains(&difference.scenario);
        match &difference.what {
            What::Frame(kind) => self.frames.iter().any(|entry| {
                named(&entry.scenarios) && side(difference.who, &entry.real, &entry.simulator).contains(kind)
            }),
            What::Field { kind, field } => self.fields.iter().any(|entry| {
                entry.has(difference.who, kind, field)
                    && (entry.scenarios.is_empty() || named(&entry.scenarios))
            }),
        }
    }

    /// What is listed and was not found.
    pub fn stale(&self, found: &[Difference]) -> Vec<String> {
        let mut stale = Vec::new();
        for (who, entry) in self
            .frames
            .iter()
            .filter(|entry| !entry.sometimes)
            .flat_map(|entry| [(Who::Real, entry), (Who::Simulator, entry)])
        {
            for kind in side(who, &entry.real, &entry.simulator) {
                for scenario in &entry.scenarios {
                    let occurs = found.iter().any(|difference| {
                        difference.who == who
                            && difference.scenario == *scenario
                            && difference.what == What::Frame(kind.clone())
                    });
                    if !occurs {
                        stale.push(format!(
                            "listed, but does not occur: {who:?} {kind} in {scenario}"
                        ));
                    }
                }
            }
        }
        for (who, entry) in self
            .fields
            .iter()
            .filter(|entry| !entry.sometimes)
            .flat_map(|entry| [(Who::Real, entry), (Who::Simulator, entry)])
        {
            let occurs = |field: &String, scenario: Option<&String>| {
                found.iter().any(|difference| {
                    difference.who == who
                        && scenario.is_none_or(|scenario| difference.scenario == *scenario)
                        && matches!(&difference.what, What::Field { kind, field: seen } if entry.covers(kind) && seen == field)
                })
            };
            for field in side(who, &entry.real, &entry.simulator) {
                if entry.scenarios.is_empty() && !occurs(field, None) {
                    stale.push(format!(
                        "listed, but does not occur: {who:?} {:?} {field}",
                        entry.kinds
                    ));
                }
                for scenario in entry
                    .scenarios
                    .iter()
                    .filter(|scenario| !occurs(field, Some(scenario)))
                {
                    stale.push(format!(
                        "listed, but does not occur: {who:?} {:?} {field} in {scenario}",
                        entry.kinds
                    ));
                }
            }
        }
        stale
    }
}

impl Fields {
    /// Whether it is about this field of this kind, of this one.
    fn has(&self, who: Who, kind: &str, field: &String) -> bool {
        self.covers(kind) && side(who, &self.real, &self.simulator).contains(field)
    }

    /// Whether it is about this kind: one that is named, or that begins with what stands before a `*`.
    fn covers(&self, kind: &str) -> bool {
        self.kinds.iter().any(|listed| match listed.strip_suffix('*') {
            Some(beginning) => kind.starts_with(beginning),
            None => listed == kind,
        })
    }
}
