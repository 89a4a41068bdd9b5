//! What was found, summed up.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::{Direction, FrameFinding, Verdict};

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
    /// The frames' `type`.
    pub kind: String,
    /// The frames' `subtype`, if they have one.
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
    /// Values that their open sets do not list, and in how many frames each is.
    pub unlisted: BTreeMap<String, u64>,
}

/// How many kinds, and how many findings of a sort in each, are told apart. What a recording says must not fill the memory, so the
/// rest is counted under [`OTHERS`].
const KINDS: usize = 1024;
const FINDINGS: usize = 256;

/// The most characters of a name or a finding that are kept.
const TEXT: usize = 400;

const OTHERS: &str = "(others)";

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
        let mut new = KindReport {
            direction: verdict.direction,
            kind: shown(&verdict.kind),
            subtype: verdict.subtype.as_deref().map(shown),
            answers: verdict.answers.as_deref().map(shown),
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
        let mut place = self.kinds.binary_search_by_key(&key(&new), key);
        if place.is_err() && self.kinds.len() >= KINDS {
            (new.kind, new.subtype, new.answers) = (OTHERS.to_owned(), None, None);
            place = self.kinds.binary_search_by_key(&key(&new), key);
        }
        let place = match place {
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
                FrameFinding::Undecodable(reason) => (&mut kind.undecodable, reason),
                FrameFinding::Unknown(what) => (&mut kind.unknown, what),
                FrameFinding::Unmodelled(path) => (&mut kind.unmodelled, path),
                FrameFinding::Altered(what) => (&mut kind.altered, what),
                FrameFinding::Lost(what) => (&mut kind.lost, what),
                FrameFinding::Unlisted(what) => (&mut kind.unlisted, what),
            };
            let mut what = shown(what);
            if list.len() >= FINDINGS && !list.contains_key(&what) {
                OTHERS.clone_into(&mut what);
            }
            *list.entry(what).or_default() += 1;
        }
    }
}

/// Text of a frame so that it can be shown: not too long, and nothing in it that a terminal would act on.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == TEXT {
            shown.push('…');
            break;
        }
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
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
                ("value without a name", &kind.unlisted),
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
