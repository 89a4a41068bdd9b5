//! What was found, summed up.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::{Direction, Finding, Verdict};

/// What was found in all frames, by their kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// One entry for each kind that was seen, in the order of direction, type, subtype.
    pub kinds: Vec<KindReport>,
    /// Lines of the client that were recorded as text. They are not judged.
    pub raw_lines: u64,
}

/// What was found in the frames of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KindReport {
    /// Who wrote them.
    pub direction: Direction,
    /// Their `type`.
    pub kind: String,
    /// Their `subtype`, if they have one.
    pub subtype: Option<String>,
    /// Of control responses: the subtype of the request that they answer, if that was seen.
    pub answers: Option<String>,
    /// How many there were.
    pub total: u64,
    /// How many of them are fully typed and lossless.
    pub typed: u64,
    /// How many of them count as failures.
    pub failed: u64,
    /// Fields without a type, as dotted paths, and in how many frames each is.
    pub unmodelled: BTreeMap<String, u64>,
    /// Tags that no type is for, and in how many frames each is.
    pub unknown: BTreeMap<String, u64>,
    /// Why frames, or parts of them, did not decode, and how many.
    pub undecodable: BTreeMap<String, u64>,
    /// What the typed value, written again, has different, and in how many frames.
    pub altered: BTreeMap<String, u64>,
    /// What the frame itself, written again, has different, and in how many frames.
    pub lost: BTreeMap<String, u64>,
    /// Values that their open sets do not list, and in how many frames each is. They do not count against a frame.
    pub unlisted: BTreeMap<String, u64>,
}

impl Report {
    /// Whether nothing failed: all that the CLI wrote is fully typed, and everything is lossless.
    pub fn passed(&self) -> bool {
        self.kinds.iter().all(|kind| kind.failed == 0)
    }

    /// How many frames were judged.
    pub fn frames(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.total).sum()
    }

    pub(super) fn count(&mut self, verdict: &Verdict) {
        let key = |kind: &KindReport| {
            let key = (kind.direction, kind.kind.clone(), kind.subtype.clone());
            (key, kind.answers.clone())
        };
        let new = KindReport {
            direction: verdict.direction,
            kind: verdict.kind.clone(),
            subtype: verdict.subtype.clone(),
            answers: verdict.answers.clone(),
            total: 0,
            typed: 0,
            failed: 0,
            unmodelled: BTreeMap::new(),
            unknown: BTreeMap::new(),
            undecodable: BTreeMap::new(),
            altered: BTreeMap::new(),
            lost: BTreeMap::new(),
            unlisted: BTreeMap::new(),
        };
        let place = match self.kinds.binary_search_by_key(&key(&new), key) {
            Ok(place) => place,
            Err(place) => {
                self.kinds.insert(place, new);
                place
            }
        };
        let kind = &mut self.kinds[place];
        kind.total += 1;
        kind.typed += u64::from(verdict.is_clean());
        kind.failed += u64::from(verdict.is_failure());
        for finding in &verdict.findings {
            let (list, what) = match finding {
                Finding::Undecodable(reason) => (&mut kind.undecodable, reason),
                Finding::Unknown(what) => (&mut kind.unknown, what),
                Finding::Unmodelled(path) => (&mut kind.unmodelled, path),
                Finding::Altered(what) => (&mut kind.altered, what),
                Finding::Lost(what) => (&mut kind.lost, what),
                Finding::Unlisted(what) => (&mut kind.unlisted, what),
            };
            *list.entry(what.clone()).or_default() += 1;
        }
    }
}

/// One line for each kind, followed by what was found in it.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for kind in &self.kinds {
            let by = match kind.direction {
                Direction::In => "client",
                Direction::Out | Direction::Unknown => "cli",
            };
            let mut name = if kind.kind.is_empty() {
                "(no type)".to_owned()
            } else {
                kind.kind.clone()
            };
            for part in [&kind.subtype, &kind.answers].into_iter().flatten() {
                name.push('/');
                name.push_str(part);
            }
            writeln!(f, "{by:6} {name}: {} of {} fully typed", kind.typed, kind.total)?;
            for (what, list) in [
                ("field without a type", &kind.unmodelled),
                ("without a type", &kind.unknown),
                ("does not decode", &kind.undecodable),
                ("different when typed", &kind.altered),
                ("lost", &kind.lost),
                ("unlisted", &kind.unlisted),
            ] {
                for (text, count) in list {
                    writeln!(f, "       {count} x {what}: {text}")?;
                }
            }
        }
        if self.raw_lines > 0 {
            writeln!(f, "client {} lines recorded as text, not judged", self.raw_lines)?;
        }
        Ok(())
    }
}
