//! The differences that are known, each with its reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use super::compare::{Difference, What, Who};

/// `differences.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    #[serde(default)]
    frames: Vec<Frames>,
    #[serde(default)]
    fields: Vec<Fields>,
}

/// Frames that only one of them writes, in each of these scenarios, or that it writes in another place.
#[derive(Debug, Deserialize)]
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
#[derive(Debug, Deserialize)]
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
    pub(crate) fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/differences.toml");
        let text = std::fs::read_to_string(&path).expect("differences.toml is there");
        let listed: Self =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let frames = listed.frames.iter().map(|entry| &entry.reason);
        let fields = listed.fields.iter().map(|entry| &entry.reason);
        for reason in frames.chain(fields) {
            assert!(reason.len() > 20, "a reason that gives none: {reason:?}");
        }
        listed
    }

    /// What was found and is not listed, as it would be.
    pub(crate) fn unlisted(&self, found: &[Difference]) -> Vec<String> {
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
            lines.entry(line).or_default().insert(difference.scenario);
        }
        lines
            .into_iter()
            .map(|(line, scenarios)| format!("{line}  [{}]", Vec::from_iter(scenarios).join(", ")))
            .collect()
    }

    fn covers(&self, difference: &Difference) -> bool {
        let named = |scenarios: &[String]| scenarios.iter().any(|name| name == difference.scenario);
        match &difference.what {
            What::Frame(kind) => self.frames.iter().any(|entry| {
                named(&entry.scenarios) && side(difference.who, &entry.real, &entry.simulator).contains(kind)
            }),
            What::Field { kind, field } => self.fields.iter().any(|entry| {
                entry.covers(kind)
                    && (entry.scenarios.is_empty() || named(&entry.scenarios))
                    && side(difference.who, &entry.real, &entry.simulator).contains(field)
            }),
        }
    }

    /// What is listed and was not found.
    pub(crate) fn stale(&self, found: &[Difference]) -> Vec<String> {
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
                            && difference.scenario == scenario
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
                        && scenario.is_none_or(|scenario| difference.scenario == scenario)
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
    /// Whether it is about this kind: one that is named, or that begins with what stands before a `*`.
    fn covers(&self, kind: &str) -> bool {
        self.kinds.iter().any(|listed| match listed.strip_suffix('*') {
            Some(beginning) => kind.starts_with(beginning),
            None => listed == kind,
        })
    }
}
