//! What differed when all scenarios were last played to both CLIs: `compared.jsonl`, which `cargo xtask conformance` writes.
//!
//! An entry is true as long as its hash is. The hash is made of all that can change what differs: the scenario, what the simulator does
//! in it, the version of the pinned CLI, and the sources of what plays and compares. A simulator that does something else than it did
//! is so compared with the real CLI, and not with its own past.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outrigger_sim::claude::pin;
use outrigger_sim::conform::Difference;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::play::Played;
use super::scenario::Scenario;

/// Has the file that what is found is written to.
pub(crate) const INTO: &str = "OUTRIGGER_CONFORMANCE_INTO";

/// Is set if all scenarios are to be played to both.
pub(crate) const ALL: &str = "OUTRIGGER_CONFORMANCE_ALL";

/// What plays a scenario to the real CLI, and compares.
const SOURCES: &[&str] = &[
    "src/api",
    "src/claude",
    "src/conform",
    "src/directive.rs",
    "src/script",
    "tests/conformance/play.rs",
    "tests/conformance/scenario.rs",
    "../claude/src/sandbox.rs",
];

/// What was found in one scenario.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(crate) struct Found {
    pub(crate) scenario: String,
    hash: String,
    pub(crate) differences: Vec<Difference>,
}

impl Found {
    pub(crate) fn new(scenario: &Scenario, hash: String, differences: Vec<Difference>) -> Self {
        Self {
            scenario: scenario.name.clone(),
            hash,
            differences,
        }
    }
}

/// What was found in all scenarios.
pub(crate) struct Compared {
    /// The hash of the pinned CLI's version and of [`SOURCES`].
    how: String,
    found: BTreeMap<String, Found>,
}

impl Compared {
    /// What is in `compared.jsonl`; nothing, if it is not to be relied on.
    pub(crate) fn read(relied_on: bool) -> Self {
        let text = relied_on.then_some(include_str!("compared.jsonl"));
        let lines = text.unwrap_or_default().lines();
        let found = lines
            .map(|line| serde_json::from_str(line).expect("a line that `cargo xtask conformance` wrote"));
        Self {
            how: how(),
            found: found
                .map(|found: Found| (found.scenario.clone(), found))
                .collect(),
        }
    }

    /// The hash of a scenario and of what the simulator did in it.
    pub(crate) fn hash(&self, scenario: &Scenario, seen: &Played) -> String {
        let mut replies = seen.replies.clone();
        // Requests of a turn may come in any order.
        replies.sort();
        let mut hash = Sha256::new();
        hash.update(&self.how);
        hash.update(scenario.described());
        hash.update(seen.spoken.compared());
        hash.update(replies.join("\n"));
        short(hash)
    }

    /// What was found in a scenario, if the hash is the same now.
    pub(crate) fn same(&self, scenario: &str, hash: &str) -> Option<Found> {
        self.found
            .get(scenario)
            .filter(|found| found.hash == hash)
            .cloned()
    }
}

/// Writes what was found, a line for each scenario.
pub(crate) fn write(file: &Path, found: &[Found]) {
    let lines = found
        .iter()
        .map(|found| serde_json::to_string(found).expect("plain data") + "\n");
    std::fs::write(file, lines.collect::<String>()).expect("the file is written");
}

fn how() -> String {
    let mut files = Vec::new();
    for source in SOURCES {
        files_in(Path::new(env!("CARGO_MANIFEST_DIR")).join(source), &mut files);
    }
    let mut hash = Sha256::new();
    hash.update(&pin().version);
    for file in files {
        hash.update(std::fs::read(file).expect("a source"));
    }
    short(hash)
}

/// The file, or those in the directory, in an order of their names.
fn files_in(path: PathBuf, files: &mut Vec<PathBuf>) {
    let Ok(entries) = path.read_dir() else {
        files.push(path);
        return;
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        files_in(path, files);
    }
}

/// The first digits of a hash: enough to see a change by.
fn short(hash: Sha256) -> String {
    let bytes = hash.finalize();
    bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn another_scenario_or_another_way_through_it_has_another_hash() {
    use outrigger_sim::conform::Spoken;

    let played = |kind: &str, replies: [&str; 2]| Played {
        spoken: Spoken::new([(kind.to_owned(), serde_json::json!({}))]),
        replies: replies.map(str::to_owned).to_vec(),
    };
    let scenario = |prompt: &str| Scenario::new("one").turn(prompt);
    let mut compared = Compared::read(false);
    let hash = compared.hash(&scenario("a"), &played("result", ["yes", "no"]));
    for (scenario, played, is_same) in [
        (scenario("a"), played("result", ["no", "yes"]), true),
        (scenario("b"), played("result", ["yes", "no"]), false),
        (scenario("a"), played("result", ["yes", "yes"]), false),
        (scenario("a"), played("assistant", ["yes", "no"]), false),
    ] {
        assert_eq!(compared.hash(&scenario, &played) == hash, is_same);
    }
    let found = Found::new(&scenario("a"), hash.clone(), Vec::new());
    compared.found.insert("one".to_owned(), found);
    assert!(compared.same("one", &hash).is_some() && compared.same("two", &hash).is_none());
    assert!(compared.same("one", "another").is_none());
    compared.how.push('x');
    assert_ne!(
        compared.hash(&scenario("a"), &played("result", ["yes", "no"])),
        hash
    );
}
