//! The differences that are known and explained.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Deserialize;

use super::schema::upstream;

/// A list of differences, in groups with a reason each.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    group: Vec<Group>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    reason: String,
    facts: Vec<String>,
}

impl List {
    pub(crate) fn read(name: &str) -> Self {
        let file = upstream().join(name);
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let list: Self = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for group in &list.group {
            assert!(
                group.reason.len() > 20,
                "{name}: `{}` explains nothing",
                group.reason
            );
            assert!(!group.facts.is_empty(), "{name}: `{}` has no facts", group.reason);
        }
        list
    }

    fn facts(&self) -> BTreeSet<&str> {
        self.group
            .iter()
            .flat_map(|group| &group.facts)
            .map(String::as_str)
            .collect()
    }

    /// What is wrong between the list and what was found: differences without a reason, reasons without a difference.
    ///
    /// Nothing is told of fields of the kinds in `unclear`: what does not fit, or is gone, shows no fields.
    pub(crate) fn wrong(
        &self,
        name: &str,
        found: &BTreeMap<String, String>,
        unclear: &[&str],
        advice: &str,
    ) -> String {
        let listed = self.facts();
        let mut told = String::new();
        for (fact, detail) in found.iter().filter(|(fact, _)| !listed.contains(fact.as_str())) {
            let detail = if detail.is_empty() {
                String::new()
            } else {
                format!("   ({detail})")
            };
            writeln!(told, "  {fact}{detail}").unwrap();
        }
        if !told.is_empty() {
            told = format!("{advice}\n{told}");
        }
        let is_clear = |fact: &str| {
            let within = |kind: &&str| fact.strip_prefix(*kind).is_some_and(|rest| rest.starts_with(' '));
            !unclear.iter().any(within)
        };
        let untrue = |fact: &&str| !found.contains_key(*fact) && is_clear(fact);
        for fact in listed.into_iter().filter(untrue) {
            writeln!(
                told,
                "  upstream/{name} lists `{fact}`, which is no longer so: remove it there"
            )
            .unwrap();
        }
        told
    }
}
