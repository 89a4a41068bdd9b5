//! No public future is forgotten: the source is searched for them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{cases, control, leaks};

/// What the other tests do not list, and why.
const ELSEWHERE: &[(&str, &str)] = &[
    ("Session::history", "`a_history_can_be_given_up_at_any_point`"),
    (
        "Session::history_with",
        "`a_history_can_be_given_up_at_any_point`",
    ),
    ("History::open", "`a_history_can_be_given_up_at_any_point`"),
    ("History::of_store", "`a_history_can_be_given_up_at_any_point`"),
    ("History::next", "`a_history_can_be_given_up_at_any_point`"),
    ("History::next_frame", "`a_history_can_be_given_up_at_any_point`"),
    (
        "TailReader::next",
        "`a_reader_that_is_given_up_at_any_point_loses_nothing`",
    ),
    (
        "Session::prompt_retrying",
        "`a_retry_that_is_given_up_at_any_point_goes_on_where_it_was`",
    ),
    (
        "Retrying::next",
        "`a_retry_that_is_given_up_at_any_point_goes_on_where_it_was`",
    ),
    (
        "Retrying::outcome",
        "`a_retry_that_is_given_up_at_any_point_goes_on_where_it_was`",
    ),
    (
        "Retrying::answer",
        "`a_retry_that_is_given_up_at_any_point_goes_on_where_it_was`",
    ),
    ("doctor", "is `Doctor::examine` with its defaults"),
    ("Session::revive", "`reviving_can_be_given_up`"),
    (
        "Session::revive_at",
        "`reviving_can_be_given_up`: the same, with one more flag",
    ),
    (
        "Pool::get",
        "`a_get_can_be_dropped_at_any_point`, with the pool's tests",
    ),
    (
        "Pool::close",
        "waits for spares to end; `a_pool_that_is_dropped_leaves_nothing_behind` has the end without it",
    ),
    ("ToolContext::progress", "tells something that needs no answer"),
    (
        "RawConnection::next",
        "`a_next_that_is_dropped_loses_no_message`, with the servers' tests",
    ),
    ("RawSender::send", "hands a message over, or has not"),
    (
        "Chain::last",
        "makes a handler; `what_is_dropped_decides_nothing`",
    ),
    (
        "Chain::or_deny",
        "makes a handler; `what_is_dropped_decides_nothing`",
    ),
    (
        "one_at_a_time",
        "makes a handler; `one_question_at_a_time`, with its tests",
    ),
    ("record", "makes a handler; `what_is_dropped_decides_nothing`"),
];

/// A public future in the source.
struct Found {
    name: String,
    /// What its documentation says.
    doc: String,
}

/// The public async functions of the crate, as `Type::name`.
fn public_futures() -> Vec<Found> {
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    files.iter().flat_map(|file| in_file(file)).collect()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn in_file(path: &Path) -> Vec<Found> {
    let source = std::fs::read_to_string(path).unwrap();
    // Tests stand at the end.
    let source = source.split("#[cfg(test)]\nmod").next().unwrap_or_default();
    let (mut owner, mut doc, mut found) = (String::new(), String::new(), Vec::new());
    for line in source.lines() {
        if let Some(header) = line.strip_prefix("impl") {
            owner = type_of(header);
        } else if line.starts_with('}') {
            owner.clear();
        }
        let text = line.trim();
        if let Some(words) = text.strip_prefix("///") {
            doc.push_str(words);
            doc.push('\n');
            continue;
        }
        if let Some(name) = public_future(text) {
            let name = if owner.is_empty() {
                name
            } else {
                format!("{owner}::{name}")
            };
            found.push(Found {
                name,
                doc: std::mem::take(&mut doc),
            });
        }
        // Attributes may stand between the words and the function.
        if !text.starts_with('#') {
            doc.clear();
        }
    }
    // The control requests are declared in a list: `"subtype" fn name(…)`.
    if path.ends_with("control.rs") {
        let listed = source.lines().filter_map(|line| line.trim().split_once("\" fn "));
        found.extend(listed.map(|(_, rest)| {
            Found {
                name: format!("Session::{}", name_of(rest)),
                doc: source
                    .split("macro_rules! methods")
                    .nth(1)
                    .unwrap_or_default()
                    .to_owned(),
            }
        }));
    }
    found
}

/// The name of the public function that begins in `text`, if it gives a future.
fn public_future(text: &str) -> Option<String> {
    let rest = match text.strip_prefix("pub async fn ") {
        Some(rest) => rest,
        None => {
            let rest = text.strip_prefix("pub fn ")?;
            let gives = rest.split_once("->")?.1;
            (gives.contains("Future") || gives.contains("impl PermissionHandler")).then_some(rest)?
        }
    };
    // The list of the control requests is read apart.
    (!rest.starts_with('$')).then(|| name_of(rest))
}

fn name_of(rest: &str) -> String {
    rest.chars()
        .take_while(|char| char.is_alphanumeric() || *char == '_')
        .collect()
}

/// The type in what follows `impl`.
fn type_of(header: &str) -> String {
    let mut depth = 0;
    let mut plain = String::new();
    for char in header.chars() {
        match char {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ if depth == 0 => plain.push(char),
            _ => {}
        }
    }
    let plain = plain.split(" where").next().unwrap_or_default();
    name_of(plain.rsplit(" for ").next().unwrap_or_default().trim())
}

fn covered() -> BTreeSet<String> {
    let cases = cases::cases()
        .into_iter()
        .chain(cases::endings())
        .chain(control::cases());
    let beginnings = cases::beginnings();
    let names = cases.map(|case| case.name);
    let names = names.chain(beginnings.iter().map(|beginning| beginning.name));
    let names = names.chain(leaks::COVERED.iter().copied());
    names
        .chain(ELSEWHERE.iter().map(|(name, _)| *name))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_public_future_is_given_up_somewhere() {
    let found = public_futures();
    let names: BTreeSet<_> = found.iter().map(|found| found.name.clone()).collect();
    let covered = covered();
    let missing: Vec<_> = names.difference(&covered).collect();
    assert!(
        missing.is_empty(),
        "add these to a list in tests/it/cancel (cases.rs, control.rs, leaks.rs): {missing:?}"
    );
    let gone: Vec<_> = covered.difference(&names).collect();
    assert!(gone.is_empty(), "these are not in the source any more: {gone:?}");
    assert!(names.len() > 90, "the search finds only {} futures", names.len());
}

#[test]
fn every_public_future_says_what_becomes_of_it_when_it_is_dropped() {
    let silent: Vec<_> = public_futures()
        .into_iter()
        .filter(|found| !found.doc.contains("# Cancel safety"))
        .map(|found| found.name)
        .collect();
    assert!(
        silent.is_empty(),
        "these need a section `# Cancel safety` in their documentation: {silent:?}"
    );
}
