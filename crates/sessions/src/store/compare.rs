//! Compares a transcript on disk with the same one in a store.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use outrigger_protocol::RawJson;

use super::entry::EntryFields;
use super::import_from_disk::METADATA;
use super::{Batches, ImportOptions, Result, SessionKey, SessionStore, Transcripts};

/// How a transcript on disk stands to the one in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StoreComparison {
    /// Both have the same entries.
    Same,
    /// The store has all of it, and more.
    Ahead,
    /// The store lacks the end of it.
    Behind,
    /// The store lacks something of which it has what came later.
    Holes,
    /// Each has entries at its end that the other lacks: the session was resumed elsewhere before the store had all of it. Appending the end
    /// from here would mix two conversations.
    Diverged,
}

/// What one transcript of a session lacks, and where. See [`compare`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Difference {
    /// The part of the session; `None` is the session itself.
    pub subpath: Option<String>,
    /// How the store's transcript compares with the one on disk.
    pub standing: StoreComparison,
    /// The entries that the store lacks, in the order in which to append them.
    pub lacks: Vec<RawJson>,
    /// How many of the missing entries are missing from the midst, and not from the end.
    pub holes: usize,
    /// The entries that are in the store and not on disk.
    pub beyond: Vec<RawJson>,
    /// Whether [`beyond`](Self::beyond) goes on where the file ends, so that the file may be continued with it.
    pub continues: bool,
}

impl Difference {
    /// The entries to append to the store: none, if that would mix two conversations.
    pub fn to_push(&self) -> &[RawJson] {
        match self.standing {
            StoreComparison::Diverged => &[],
            _ => &self.lacks,
        }
    }

    /// The entries to append to the file: none, if that would mix two conversations.
    pub fn to_pull(&self) -> &[RawJson] {
        match self.standing {
            StoreComparison::Ahead if self.continues => &self.beyond,
            _ => &[],
        }
    }
}

impl Transcripts {
    /// The transcripts of a session on disk, with the key that their names make. Lines that are no JSON objects are left out.
    ///
    /// # Errors
    /// As [`Batches::of`], and when a file can't be read.
    pub fn of_file(file: &Path) -> Result<(SessionKey, Self)> {
        let mut read = Self::default();
        let mut main = None;
        for batch in Batches::of(file, ImportOptions::default())? {
            let (key, entries) = batch?;
            main.get_or_insert_with(|| key.main());
            match &key.subpath {
                None => read.main.extend(entries),
                Some(subpath) => match read.parts.iter_mut().find(|(name, _)| name == subpath) {
                    Some((_, part)) => part.extend(entries),
                    None => read.parts.push((subpath.clone(), entries)),
                },
            }
        }
        let key = match main {
            Some(key) => key,
            None => super::import_from_disk::key_of(file)?,
        };
        Ok((key, read))
    }

    /// The transcripts of a session in a store; `None` if it isn't there. Parts are left out where the store can't list them.
    ///
    /// # Cancel safety
    /// Nothing is written.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn of_store(store: &dyn SessionStore, key: &SessionKey) -> Result<Option<Self>> {
        let main = store.load(&key.main()).await?.unwrap_or_default();
        let mut read = Self::new(main);
        if store.capabilities().list_subkeys {
            let mut parts = store.list_subkeys(&key.main()).await?;
            parts.sort();
            for part in parts {
                let entries = store.load(&key.with_subpath(&part)).await?;
                read.parts.extend(entries.map(|entries| (part, entries)));
            }
        }
        Ok(Some(read).filter(|read| !read.main.is_empty() || !read.parts.is_empty()))
    }
}

/// Holds a session on disk against what a store has of it: a difference for each transcript of either, the session's own first.
///
/// Entries with a `uuid` are the same if that is. Others are the same if their text is. What the CLI does not mirror by its own
/// choice (records of its requests to the API) is left out of account.
pub fn compare(here: &Transcripts, there: &Transcripts) -> Vec<Difference> {
    let mut differences = vec![difference(None, &here.main, &there.main)];
    let mut names: Vec<&String> = here
        .parts
        .iter()
        .chain(&there.parts)
        .map(|(name, _)| name)
        .collect();
    names.sort();
    names.dedup();
    for name in names {
        differences.push(difference(
            Some(name.clone()),
            part(here, name),
            part(there, name),
        ));
    }
    differences
}

fn part<'t>(of: &'t Transcripts, name: &str) -> &'t [RawJson] {
    let found = of.parts.iter().find(|(other, _)| other == name);
    found.map_or(&[], |(_, entries)| entries)
}

/// An entry, as far as it is compared.
struct ComparedEntry<'e> {
    entry: &'e RawJson,
    uuid: Option<String>,
    is_metadata: bool,
}

fn compared_entries(entries: &[RawJson]) -> Vec<ComparedEntry<'_>> {
    let of = |entry| {
        let fields = EntryFields::of(RawJson::get(entry));
        let kind = fields.text("type").unwrap_or_default();
        (!kind.starts_with("api-request")).then(|| ComparedEntry {
            entry,
            uuid: fields.text("uuid").filter(|uuid| !uuid.is_empty()),
            is_metadata: kind == METADATA,
        })
    };
    entries.iter().filter_map(of).collect()
}

fn difference(subpath: Option<String>, here: &[RawJson], there: &[RawJson]) -> Difference {
    let (here, there) = (compared_entries(here), compared_entries(there));
    let uuids = |entries: &[ComparedEntry<'_>]| -> HashSet<String> {
        entries.iter().filter_map(|entry| entry.uuid.clone()).collect()
    };
    let (ours, theirs) = (uuids(&here), uuids(&there));
    let is_in = |all: &HashSet<String>, entry: &ComparedEntry<'_>| {
        entry.uuid.as_ref().is_some_and(|uuid| all.contains(uuid))
    };
    // Behind the last entry that both have, each has an end of its own.
    let end = |entries: &[ComparedEntry<'_>], others: &HashSet<String>| {
        let last = entries.iter().rposition(|entry| is_in(others, entry));
        last.map_or(0, |last| last + 1)
    };
    let (our_end, their_end) = (end(&here, &theirs), end(&there, &ours));
    let is_new = |entry: &ComparedEntry<'_>| entry.uuid.is_some();
    let went_on_here = here[our_end..].iter().any(is_new);
    let went_on_there = there[their_end..].iter().any(is_new);

    // An entry without a uuid is known by its text. In the end of the transcript it is counted as often as it stands there; before the
    // end, once is enough.
    let has_metadata = there.iter().any(|entry| entry.is_metadata);
    let texts: HashSet<&str> = there.iter().map(|entry| entry.entry.get()).collect();
    let mut in_end: HashMap<&str, usize> = HashMap::new();
    for entry in there[their_end..].iter().filter(|entry| !is_new(entry)) {
        *in_end.entry(entry.entry.get()).or_default() += 1;
    }
    let lacks_before = |entry: &ComparedEntry<'_>| match &entry.uuid {
        Some(uuid) => !theirs.contains(uuid),
        None if entry.is_metadata => !has_metadata,
        None => !texts.contains(entry.entry.get()),
    };
    let first_hole = here[..our_end].iter().position(lacks_before);
    let holes = here[..our_end].iter().filter(|entry| lacks_before(entry)).count();
    let mut lacks: Vec<RawJson> = Vec::new();
    for entry in &here[first_hole.unwrap_or(our_end)..our_end] {
        // Of entries without a uuid the last one counts. So those behind the hole have to come again behind what fills it, unless
        // somebody went on there: they would overrule what was said since.
        let is_wanted = match &entry.uuid {
            Some(uuid) => !theirs.contains(uuid),
            None if entry.is_metadata => !has_metadata,
            None => !went_on_there,
        };
        lacks.extend(is_wanted.then(|| entry.entry.clone()));
    }
    for entry in &here[our_end..] {
        let is_wanted = match (&entry.uuid, in_end.get_mut(entry.entry.get())) {
            (Some(_), _) => true,
            (None, _) if entry.is_metadata => !has_metadata,
            (None, Some(left)) if *left > 0 => {
                *left -= 1;
                false
            }
            (None, _) => !went_on_there,
        };
        lacks.extend(is_wanted.then(|| entry.entry.clone()));
    }

    let is_unknown = |entry: &&ComparedEntry<'_>| is_new(entry) && !is_in(&ours, entry);
    let in_midst = there[..their_end].iter().any(|entry| is_unknown(&entry));
    let ours_as_text: HashSet<&str> = here.iter().map(|entry| entry.entry.get()).collect();
    let beyond: Vec<RawJson> = match went_on_there || here.is_empty() {
        // All of that end, since the last one of the entries without a uuid counts.
        true => {
            let end = there[their_end..].iter();
            let end = end.filter(|entry| is_new(entry) || !ours_as_text.contains(entry.entry.get()));
            let midst = there[..their_end].iter().filter(is_unknown);
            midst.chain(end).map(|entry| entry.entry.clone()).collect()
        }
        false => there
            .iter()
            .filter(is_unknown)
            .map(|entry| entry.entry.clone())
            .collect(),
    };
    let standing = match () {
        () if went_on_here && went_on_there => StoreComparison::Diverged,
        () if first_hole.is_some() && !lacks.is_empty() => StoreComparison::Holes,
        () if !lacks.is_empty() => StoreComparison::Behind,
        () if !beyond.is_empty() => StoreComparison::Ahead,
        () => StoreComparison::Same,
    };
    Difference {
        subpath,
        standing,
        holes: if lacks.is_empty() { 0 } else { holes },
        continues: !in_midst,
        lacks,
        beyond,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters are entries with a uuid, digits have none, `r` is a record of a request.
    fn entries(text: &str) -> Vec<RawJson> {
        let entry = |c: char| match c {
            'r' => r#"{"type":"api-request-headers"}"#.to_owned(),
            'm' => r#"{"type":"agent_metadata","agentType":"x"}"#.to_owned(),
            c if c.is_ascii_digit() => format!(r#"{{"type":"mode","n":{c}}}"#),
            c => format!(r#"{{"type":"user","uuid":"{c}"}}"#),
        };
        text.chars()
            .map(|c| RawJson::from_text(entry(c)).unwrap())
            .collect()
    }

    fn letters(entries: &[RawJson]) -> String {
        let letter = |entry: &RawJson| match EntryFields::of(entry.get()) {
            fields if fields.text("uuid").is_some() => fields.text("uuid").unwrap(),
            fields => fields.get("n").unwrap_or("m").to_owned(),
        };
        entries.iter().map(letter).collect()
    }

    fn seen(here: &str, there: &str) -> (StoreComparison, String, usize, String) {
        let difference = difference(None, &entries(here), &entries(there));
        (
            difference.standing,
            letters(difference.to_push()),
            difference.holes,
            letters(difference.to_pull()),
        )
    }

    #[test]
    fn each_lacks_what_it_lacks() {
        use StoreComparison::*;
        for (here, there, standing, push, holes, pull) in [
            ("", "", Same, "", 0, ""),
            ("1Ab2rC3", "1Ab2C3", Same, "", 0, ""),
            // Imported or sent twice, what has no uuid stands twice.
            ("1A2", "1A21A2", Same, "", 0, ""),
            ("1A2B3", "", Behind, "1A2B3", 0, ""),
            ("1A2B3", "1A", Behind, "2B3", 0, ""),
            ("1A2B3", "1A2", Behind, "B3", 0, ""),
            ("1A2B22", "1A2B2", Behind, "2", 0, ""),
            ("12", "1", Behind, "2", 0, ""),
            ("A", "AB", Ahead, "", 0, "B"),
            ("A1", "A1B2", Ahead, "", 0, "B2"),
            ("", "1A", Ahead, "", 0, "1A"),
            // The end here that says nothing does not overrule what was said elsewhere.
            ("A2", "AB", Ahead, "", 0, "B"),
            ("AC", "AB", Diverged, "", 0, ""),
            ("ab", "cd", Diverged, "", 0, ""),
            ("ABCD", "AD", Holes, "BC", 2, ""),
            ("ABCDE", "AD", Holes, "BCE", 2, ""),
            ("A1B2C", "A2C", Holes, "1B2", 2, ""),
            ("ABC", "ACD", Holes, "B", 1, ""),
            // What was filled in stands at the end, and counts.
            ("ABC", "ACB", Same, "", 0, ""),
            // What went on elsewhere and came back.
            ("AC", "ABC", Ahead, "", 0, ""),
        ] {
            let (found, pushed, gaps, pulled) = seen(here, there);
            assert_eq!(
                (found, &*pushed, gaps, &*pulled),
                (standing, push, holes, pull),
                "{here} and {there}"
            );
        }
    }

    #[test]
    fn after_a_push_nothing_is_lacked() {
        for (here, there) in [
            ("1A2B3C", "1A"),
            ("1A2B3C4", "4C"),
            ("ABCD", "AD"),
            ("A1B2C", "A2C"),
            ("Am", "A"),
        ] {
            let mut stored = entries(there);
            let difference = difference(None, &entries(here), &stored);
            stored.extend(difference.to_push().to_vec());
            let again = self::difference(None, &entries(here), &stored);
            assert_eq!(again.standing, StoreComparison::Same, "{here} and {there}");
            // Of what has no uuid, the last is the last.
            let last = |text: &[RawJson]| {
                let mut plain = text.iter().filter(|entry| entry.get().contains("mode"));
                plain.next_back().cloned()
            };
            assert_eq!(last(&stored), last(&entries(here)), "{here} and {there}");
        }
    }

    #[test]
    fn sidecars_are_the_same_if_there_is_one() {
        let other = RawJson::from_text(r#"{"type":"agent_metadata","agentType":"x","model":"y"}"#).unwrap();
        let found = difference(
            Some("p".to_owned()),
            &entries("Am"),
            &[entries("A"), vec![other]].concat(),
        );
        assert_eq!(found.standing, StoreComparison::Same);
    }

    #[test]
    fn parts_of_either_are_compared() {
        let here = Transcripts::new(entries("A")).part("p", entries("AB"));
        let there = Transcripts::new(entries("A"))
            .part("p", entries("A"))
            .part("q", entries("C"));
        let found: Vec<_> = compare(&here, &there)
            .iter()
            .map(|found| (found.subpath.clone(), found.standing))
            .collect();
        let part = |name: &str| Some(name.to_owned());
        assert_eq!(
            found,
            [
                (None, StoreComparison::Same),
                (part("p"), StoreComparison::Behind),
                (part("q"), StoreComparison::Ahead)
            ]
        );
    }
}
