//! What the workspace promises about itself, checked.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use outrigger_needs::{Missing, needs, program};
use serde_json::Value;

#[path = "tidy/editors.rs"]
mod editors;
#[path = "tidy/registry.rs"]
mod registry;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// What cargo says without a network. A package that was never downloaded is missing: building for this system brings those of
/// this system alone.
fn cargo(arguments: &[&str]) -> Result<String, Missing> {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--offline", "--locked", "--color=never"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("--offline") {
        let how = "some of Cargo.lock's packages were never downloaded: `cargo xtask set-up` does so";
        return Err(Missing::new(how));
    }
    assert!(output.status.success(), "cargo {arguments:?}: {said}");
    Ok(String::from_utf8(output.stdout).expect("cargo writes text"))
}

fn metadata(arguments: &[&str]) -> Result<Value, Missing> {
    let text = cargo(&[&["metadata", "--format-version=1"], arguments].concat())?;
    Ok(serde_json::from_str(&text).unwrap())
}

/// The crates of the workspace and which of each other they use, always or (`optional`) with a feature; `kinds`: `null` is a normal
/// dependency.
fn arrows(metadata: &Value, kinds: &[Value], optional: bool) -> BTreeMap<String, BTreeSet<String>> {
    let members: BTreeSet<&str> = metadata["workspace_members"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let packages: Vec<&Value> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|package| members.contains(package["id"].as_str().unwrap()))
        .collect();
    let names: BTreeSet<&str> = packages
        .iter()
        .filter_map(|package| package["name"].as_str())
        .collect();
    let used = |package: &Value| {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let ours = dependencies
            .filter(|dependency| kinds.contains(&dependency["kind"]) && dependency["optional"] == optional);
        ours.filter_map(|dependency| dependency["name"].as_str())
            .filter(|name| names.contains(name))
            .map(str::to_owned)
            .collect()
    };
    packages
        .iter()
        .map(|package| (package["name"].as_str().unwrap().to_owned(), used(package)))
        .collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn the_crates_depend_on_each_other_as_the_map_says() {
    let metadata = needs!(metadata(&["--no-deps"]));
    let kinds = [Value::Null, "build".into()];
    let normal = arrows(&metadata, &kinds, false);
    let expected = BTreeMap::from([
        ("outrigger-json".to_owned(), set(&[])),
        ("outrigger-protocol".to_owned(), set(&["outrigger-json"])),
        ("outrigger-sessions".to_owned(), set(&["outrigger-protocol"])),
        (
            "outrigger".to_owned(),
            set(&["outrigger-protocol", "outrigger-secrets", "outrigger-sessions"]),
        ),
        (
            "outrigger-stores".to_owned(),
            set(&["outrigger-protocol", "outrigger-sessions"]),
        ),
        ("outrigger-acp".to_owned(), set(&["outrigger"])),
        ("outrigger-fleet".to_owned(), set(&["outrigger"])),
        (
            "outrigger-host-http".to_owned(),
            set(&["outrigger", "outrigger-host", "outrigger-host-hooks"]),
        ),
        (
            "outrigger-host".to_owned(),
            set(&["outrigger", "outrigger-fleet"]),
        ),
        (
            "outrigger-host-hooks".to_owned(),
            set(&["outrigger", "outrigger-host"]),
        ),
        ("outrigger-host-client".to_owned(), set(&["outrigger-json"])),
        (
            "outrigger-otel".to_owned(),
            set(&["outrigger", "outrigger-fleet", "outrigger-secrets"]),
        ),
        ("outrigger-claude".to_owned(), set(&[])),
        ("outrigger-secrets".to_owned(), set(&[])),
        (
            "outrigger-sim".to_owned(),
            set(&["outrigger-protocol", "outrigger-secrets"]),
        ),
        (
            "outrigger-cli".to_owned(),
            set(&[
                "outrigger",
                "outrigger-acp",
                "outrigger-fleet",
                "outrigger-host",
                "outrigger-host-client",
                "outrigger-host-http",
                "outrigger-otel",
                "outrigger-protocol",
                "outrigger-sim",
                "outrigger-stores",
            ]),
        ),
        (
            "outrigger-fuzz".to_owned(),
            set(&["outrigger", "outrigger-host-http", "outrigger-protocol"]),
        ),
        ("outrigger-needs".to_owned(), set(&[])),
        ("xtask".to_owned(), set(&["outrigger-claude", "outrigger-needs"])),
    ]);
    assert_eq!(normal, expected, "an arrow that ARCHITECTURE.md does not have");
    let mut optional = arrows(&metadata, &kinds, true);
    optional.retain(|_, used| !used.is_empty());
    assert_eq!(
        optional,
        BTreeMap::from([
            ("outrigger".to_owned(), set(&["outrigger-sim"])),
            ("outrigger-acp".to_owned(), set(&["outrigger-host-client"])),
            ("outrigger-sim".to_owned(), set(&["outrigger-claude"])),
        ]),
        "only the feature `testing` brings the simulation, only `claude` the real CLI, and only `host` the client of hosts"
    );
    let tests = arrows(&metadata, &["dev".into()], false);
    assert!(
        !tests["outrigger-sim"].contains("outrigger"),
        "the simulation is the SDK's witness, so it must not use it"
    );
}

#[test]
fn the_sdk_stays_light() {
    let tree = needs!(cargo(&[
        "tree",
        "--package=outrigger",
        "--edges=normal",
        "--prefix=none",
    ]));
    let crates: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split(" (").next())
        .filter(|line| !line.is_empty())
        .collect();
    assert!(
        crates.len() <= 80,
        "{} crates in the SDK's tree: {crates:#?}",
        crates.len()
    );
}

/// A user finds a feature on this page or not at all.
#[test]
fn the_install_page_has_each_feature_of_the_sdk() {
    let metadata = needs!(metadata(&["--no-deps"]));
    let packages = metadata["packages"].as_array().unwrap();
    let sdk = packages
        .iter()
        .find(|package| package["name"] == "outrigger")
        .unwrap();
    let features = sdk["features"].as_object().unwrap();
    let page = std::fs::read_to_string(root().join("docs/install.md")).unwrap();
    let missing: Vec<_> = features
        .keys()
        // No part of the API.
        .filter(|feature| *feature != "fuzzing" && !page.contains(&format!("| `{feature}` |")))
        .collect();
    assert!(missing.is_empty(), "docs/install.md does not have {missing:?}");
}

#[test]
fn every_dependency_allows_the_minimum_rust_version() {
    let version = |text: &str| -> Vec<u32> {
        let mut parts: Vec<u32> = text.split('.').map(|part| part.parse().unwrap()).collect();
        parts.resize(3, 0);
        parts
    };
    let metadata = needs!(metadata(&[]));
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let ours = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .expect("it is stated")
        .trim_matches('"');
    let newer: Vec<String> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|package| {
            package["rust_version"]
                .as_str()
                .is_some_and(|theirs| version(theirs) > version(ours))
        })
        .map(|package| {
            format!(
                "{} {} needs Rust {}",
                package["name"], package["version"], package["rust_version"]
            )
        })
        .collect();
    assert!(newer.is_empty(), "Rust {ours} is promised, but: {newer:#?}");
}

/// The files of the repository that match a pattern.
fn files(pattern: &str) -> Vec<String> {
    let files = Command::new("git")
        .args(["ls-files", "-z", pattern])
        .current_dir(root())
        .output()
        .expect("git runs");
    assert!(
        files.status.success(),
        "git: {}",
        String::from_utf8_lossy(&files.stderr)
    );
    let names = String::from_utf8(files.stdout).unwrap();
    let names = names.split('\0').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// The protocol is a state machine, whose driver has the tasks and the clock.
#[test]
fn the_core_of_the_connection_names_no_tokio() {
    let mut core = files("crates/sdk/src/conn/core/*.rs");
    assert!(!core.is_empty(), "the core is somewhere else");
    core.extend(files("crates/sdk/src/conn/core.rs"));
    for file in core {
        let text = std::fs::read_to_string(root().join(&file)).unwrap();
        let named = text.lines().find(|line| line.contains("tokio"));
        assert_eq!(named, None, "{file}");
    }
}

/// Names that several files of a crate's `src` have; `mod.rs`, and files of tests, aside. A name that is no longer there twice goes from
/// this list, and none is added.
const SHARED_NAMES: &[(&str, &[&str])] = &[
    ("acp", &["call", "v1", "v2"]),
    (
        "protocol",
        &[
            "agent",
            "control",
            "hook",
            "mcp",
            "model",
            "notice",
            "permission",
            "plugin",
            "reply",
            "result",
            "session",
            "settings",
            "shape",
            "task",
            "usage",
            "user",
        ],
    ),
];

/// A file is found by its name, and a name in a message says which file is meant.
#[test]
fn no_two_source_files_of_a_crate_have_one_name() {
    let mut found: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for file in files("crates/*/src/*.rs") {
        let mut parts = file.split('/');
        let (Some(_), Some(krate), Some(name)) = (parts.next(), parts.next(), parts.next_back()) else {
            continue;
        };
        // A file of tests is called as what it tests.
        if matches!(name, "mod.rs" | "tests.rs") || file.contains("/tests/") {
            continue;
        }
        let names = found.entry(krate.to_owned()).or_default();
        *names.entry(name.trim_end_matches(".rs").to_owned()).or_default() += 1;
    }
    assert!(found.contains_key("sdk"), "the crates are read");
    for (krate, names) in found {
        let shared: BTreeSet<&str> = names
            .iter()
            .filter(|(_, count)| **count > 1)
            .map(|(name, _)| name.as_str())
            .collect();
        let listed = SHARED_NAMES.iter().find(|(listed, _)| *listed == krate);
        let listed: BTreeSet<&str> = listed
            .into_iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        assert_eq!(
            shared, listed,
            "left: the names of several files in crates/{krate}/src; right: those in SHARED_NAMES"
        );
    }
}

/// Types that several files of a crate's `src` define. A name that is no longer there twice goes from this list.
const SHARED_TYPES: &[(&str, &[&str])] = &[
    // What stands in for the host where the feature for hosts is off.
    ("acp", &["Host", "HostLink", "HostSession"]),
    // Of each subcommand, as clap's users write it.
    ("cli", &["Args", "Command"]),
    // The protocol has one name for both directions.
    ("protocol", &["ControlRequest", "ControlResponse", "UserMessage"]),
    // Of each system.
    ("sdk", &["LocalProcess"]),
    // Of the crate, and of the trait that stores implement.
    ("sessions", &["Result"]),
];

/// The name of the type that a line begins to define.
fn defined_type(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub").map_or(line, |rest| {
        let rest = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        rest.map_or(&line["pub".len()..], |(_, rest)| rest)
    });
    let (word, rest) = line.trim_start().split_once(' ')?;
    let is_definition = matches!(word, "struct" | "enum" | "trait" | "type" | "union");
    let end = rest.find(|c: char| !c.is_alphanumeric())?;
    is_definition.then_some(&rest[..end])
}

#[test]
fn no_two_types_of_a_crate_have_one_name() {
    for (line, name) in [
        ("pub(crate) struct One<'a> {", Some("One")),
        ("pub enum Two {", Some("Two")),
        ("type Three = u8;", Some("Three")),
        ("    struct Inside;", None),
        ("impl Trait for Four {", None),
    ] {
        let found = Some(line)
            .filter(|line| !line.starts_with(' '))
            .and_then(defined_type);
        assert_eq!(found, name, "{line}");
    }
    let mut found: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for file in files("crates/*/src/*.rs") {
        if file.ends_with("tests.rs") || file.contains("/tests/") || file.ends_with("laws.rs") {
            continue;
        }
        let krate = file.split('/').nth(1).unwrap_or_default().to_owned();
        let text = std::fs::read_to_string(root().join(&file)).unwrap();
        let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
        for name in lines
            .filter(|line| !line.starts_with(' '))
            .filter_map(defined_type)
        {
            let types = found.entry(krate.clone()).or_default();
            types.entry(name.to_owned()).or_default().insert(file.clone());
        }
    }
    assert!(found.contains_key("sdk"), "the crates are read");
    for (krate, types) in found {
        let listed = SHARED_TYPES.iter().find(|(listed, _)| *listed == krate);
        let listed = listed.map_or(&[][..], |(_, names)| names);
        for (name, files) in &types {
            let is_listed = listed.contains(&name.as_str());
            assert_eq!(
                files.len() > 1,
                is_listed,
                "{name} in {files:?}, and SHARED_TYPES"
            );
        }
    }
}

/// Whether there is a file that a page names: by the end of its path, or by its crate without `src`.
fn is_there(named: &str, files: &[String]) -> bool {
    let in_crate = named
        .split_once('/')
        .map(|(krate, rest)| format!("crates/{krate}/src/{rest}"));
    files.iter().any(|file| {
        let before = file.strip_suffix(named);
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
            || in_crate.as_ref() == Some(file)
    })
}

#[test]
fn files_and_tests_that_the_map_names_are_there() {
    let files = files("*.rs");
    let source = |file: &String| std::fs::read_to_string(root().join(file)).unwrap();
    let sources: String = files.iter().map(source).collect();
    let words: BTreeSet<&str> = sources
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    let map = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    // Every other piece is between backticks.
    let named: Vec<&str> = map.split('`').skip(1).step_by(2).collect();
    let missing: Vec<&str> = named
        .into_iter()
        .filter(|name| {
            let is_word = name.chars().all(|c| c.is_alphanumeric() || c == '_');
            (name.ends_with(".rs") && !name.contains(['*', ' ']) && !is_there(name, &files))
                // Tests have long names.
                || (is_word && name.matches('_').count() > 2 && !words.contains(name))
        })
        .collect();
    assert!(
        missing.is_empty(),
        "ARCHITECTURE.md names what is not there: {missing:?}"
    );
    assert!(is_there("conn/core/turns.rs", &files) && is_there("protocol/frame.rs", &files));
    assert!(!is_there("urns.rs", &files));
}

#[test]
fn the_crates_have_one_style_of_modules() {
    let found: Vec<String> = files("crates/*/src/*.rs")
        .into_iter()
        .filter(|file| file.ends_with("/mod.rs") && !file.starts_with("crates/sim/"))
        .collect();
    assert!(
        found.is_empty(),
        "these are `NAME.rs` beside a folder `NAME`: {found:#?}"
    );
}

/// The reader gives derived visitors the numbers of fields, and serde counts an alias as a field of its own.
#[test]
fn no_wire_type_has_an_alias() {
    for file in files("crates/protocol/src/*.rs") {
        let text = std::fs::read_to_string(root().join(&file)).unwrap();
        let alias = text
            .lines()
            .find(|line| line.contains("serde(") && line.contains("alias"));
        assert_eq!(alias, None, "{file}");
    }
}

#[test]
fn every_source_file_says_what_it_is() {
    let names = files("*.rs");
    let silent: Vec<&String> = names
        .iter()
        .filter(|name| std::fs::read_to_string(root().join(name)).is_ok_and(|text| !text.starts_with("//!")))
        .filter(|name| !name.ends_with("tests.rs"))
        .collect();
    assert!(
        silent.is_empty(),
        "files that do not begin with `//!`: {silent:#?}"
    );
}

/// The lines of a Markdown text, by their numbers, that render as rows of the table before them, and are none.
fn swallowed_by_tables<'a>(lines: impl Iterator<Item = Option<&'a str>>) -> Vec<usize> {
    let (mut in_table, mut in_code) = (false, false);
    let mut swallowed = Vec::new();
    for (index, line) in lines.enumerate() {
        let Some(line) = line.map(str::trim) else {
            // The end of a comment.
            (in_table, in_code) = (false, false);
            continue;
        };
        let fence = line.starts_with("```");
        if in_table && !line.is_empty() && !line.starts_with('|') {
            swallowed.push(index + 1);
        }
        in_table = !in_code && !fence && line.starts_with('|');
        in_code ^= fence;
    }
    swallowed
}

fn doc_comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    (!text.starts_with('/')).then_some(text)
}

#[test]
fn tables_end_with_a_blank_line() {
    let comment =
        "//! | a |\n//! |---|\n//! | b |\n//! c\n//! ```\n//! | x |\n//! y\n//! ```\n/// | d |\nfn e() {}";
    assert_eq!(swallowed_by_tables(comment.lines().map(doc_comment)), [4]);
    assert_eq!(swallowed_by_tables("| a |\n\nb\n| c |\nd".lines().map(Some)), [5]);

    let mut found = Vec::new();
    let sources = files("*.rs").into_iter().map(|name| (name, true));
    for (name, is_source) in sources.chain(files("*.md").into_iter().map(|name| (name, false))) {
        let Ok(text) = std::fs::read_to_string(root().join(&name)) else {
            continue;
        };
        let of = |line| if is_source { doc_comment(line) } else { Some(line) };
        let lines = swallowed_by_tables(text.lines().map(of));
        found.extend(lines.into_iter().map(|line| format!("{name}:{line}")));
    }
    assert!(
        found.is_empty(),
        "text that renders as a row of the table before it, for want of a blank line: {found:#?}"
    );
}

#[test]
fn the_changelog_knows_the_version() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("version = "))
        .expect("it is stated")
        .trim_matches('"');
    let changelog = std::fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    assert!(
        changelog.contains(&format!("\n## {version}")),
        "CHANGELOG.md has no section for {version}"
    );
}

/// The wheel has its version from the crate; the tarballs have theirs from the committed package.
#[test]
fn the_packages_have_the_version_of_the_workspace() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let manifest = read("Cargo.toml");
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("version = "))
        .expect("it is stated");
    for path in ["packages/npm/package.json", "packages/acp/package.json"] {
        let npm: Value = serde_json::from_str(&read(path)).unwrap();
        assert_eq!(npm["version"], version.trim_matches('"'), "{path}");
    }
    let python = read("packages/python/pyproject.toml");
    assert!(
        python.contains("\ndynamic = [\"version\"]\n") && !python.contains("\nversion = "),
        "packages/python/pyproject.toml leaves its version to the crate"
    );
    assert!(
        read("crates/sim/Cargo.toml").contains("\nversion.workspace = true\n"),
        "the wheel has the version of this crate"
    );
}

#[test]
fn the_tested_version_is_the_pinned_one() {
    let protocol = std::fs::read_to_string(root().join("crates/protocol/src/lib.rs")).unwrap();
    let pinned = &outrigger_claude::pin().version;
    let (_, stated) = protocol
        .split_once("pub const TESTED_CLI_VERSIONS: (&str, &str) = (")
        .expect("it is stated");
    let (stated, _) = stated.split_once(");").unwrap();
    let newest = stated.rsplit(", ").next().unwrap().trim_matches('"');
    assert_eq!(
        newest, pinned,
        "`TESTED_CLI_VERSIONS` and crates/claude/claude-cli.json have to move together"
    );
}

#[test]
fn what_the_matrix_promises_is_what_is_supported() {
    let version = std::fs::read_to_string(root().join("crates/sdk/src/version.rs")).unwrap();
    let matrix = std::fs::read_to_string(root().join("upstream/cli-matrix.json")).unwrap();
    let matrix: Value = serde_json::from_str(&matrix).unwrap();
    let oldest = matrix["promised_from"].as_str().unwrap();
    let stated = format!("pub const OLDEST_CLI_VERSION: &str = \"{oldest}\";");
    assert!(
        version.contains(&stated),
        "upstream/cli-matrix.json promises from {oldest} on, and crates/sdk/src/version.rs says otherwise"
    );
}

/// Upstream's documentation is not ours to copy, and would hide in strings.
#[test]
fn what_is_told_of_upstream_is_facts_and_no_text() {
    fn strings<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
        match value {
            Value::String(text) => into.push(text),
            Value::Array(items) => items.iter().for_each(|item| strings(item, into)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    into.push(name);
                    strings(value, into);
                }
            }
            _ => {}
        }
    }
    let text = std::fs::read_to_string(root().join("upstream/inventory.json")).unwrap();
    let inventory: Value = serde_json::from_str(&text).unwrap();
    let mut found = Vec::new();
    strings(&inventory, &mut found);
    assert!(found.len() > 1000, "{}", found.len());
    // What a field may be is names with bars between them; a set may have a member of three words.
    let is_text = |text: &&&str| {
        let words = text.split(" | ").flat_map(|atom| atom.split(' ').skip(1)).count();
        words > 2 || text.len() > 200
    };
    let texts: Vec<&&str> = found.iter().filter(is_text).collect();
    assert!(
        texts.is_empty(),
        "sentences in upstream/inventory.json: {texts:#?}"
    );
}

/// A user or a machine may have the name of a field or of a value, which a cassette must not replace.
#[test]
fn cassettes_know_the_words_of_the_protocol() {
    /// The names of fields, and the values that a field may have.
    fn words<'a>(value: &'a Value, into: &mut BTreeSet<&'a str>) {
        match value {
            Value::String(text) => into.extend(text.split('\'').skip(1).step_by(2)),
            Value::Array(items) => items.iter().for_each(|item| words(item, into)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    into.extend(name.trim_end_matches('?').split(['/', ' ']));
                    words(value, into);
                }
            }
            _ => {}
        }
    }
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let inventory: Value = serde_json::from_str(&read("upstream/inventory.json")).unwrap();
    let list = read("crates/sim/src/cassette/words.txt");
    let listed: BTreeSet<&str> = list.split_whitespace().collect();
    let mut found = BTreeSet::new();
    for part in [
        "control_requests",
        "hook_inputs",
        "messages",
        "tool_types",
        "types",
    ] {
        words(&inventory[part], &mut found);
    }
    // Nobody is called `permissionMode` or `-n`.
    let is_name = |word: &&&str| {
        let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        word.len() > 2 && word.starts_with(|c: char| c.is_ascii_alphabetic()) && word[1..].chars().all(lower)
    };
    let found: BTreeSet<&str> = found.iter().filter(is_name).copied().collect();
    assert!(found.len() > 500, "{}", found.len());
    let missing: Vec<_> = found.difference(&listed).collect();
    assert!(
        missing.is_empty(),
        "add to crates/sim/src/cassette/words.txt: {missing:?}"
    );
}

#[test]
fn what_is_written_from_the_inventory_is_what_would_be_written() {
    needs!(program("rustfmt", "`rustup component add rustfmt` installs it"));
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["types", "--check"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_inventory_is_not_behind_the_pinned_version() {
    let stamp = std::fs::read_to_string(root().join("upstream/VERSION")).unwrap();
    let cli = stamp
        .lines()
        .find_map(|line| line.strip_prefix("cli "))
        .expect("it is stated");
    // The inventory may be ahead while the types follow, but not behind.
    let numbers =
        |version: &str| -> Vec<u32> { version.split('.').map(|part| part.parse().unwrap()).collect() };
    assert!(
        numbers(cli) >= numbers(&outrigger_claude::pin().version),
        "upstream/inventory.json is of {cli}, older than the pinned CLI: run `cargo xtask inventory`"
    );
}

#[test]
fn the_foreign_clients_are_pinned() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();

    for file in [
        "clients/python/requirements.txt",
        "clients/examples/requirements.txt",
        "clients/host/requirements.txt",
        "packages/python/tests/requirements.txt",
    ] {
        let text = read(file);
        let loose: Vec<&str> = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with(['#', '-']))
            .filter(|line| !line.contains("==") || line.contains("//"))
            .collect();
        assert!(text.contains("==") && loose.is_empty(), "{file}: {loose:#?}");
    }
    assert!(read("clients/python/requirements.txt").contains("\nclaude-agent-sdk=="));

    let locked = |directory: &str| -> Value {
        let package: Value = serde_json::from_str(&read(&format!("{directory}/package.json"))).unwrap();
        let lock: Value = serde_json::from_str(&read(&format!("{directory}/package-lock.json"))).unwrap();
        for (name, version) in package["dependencies"].as_object().unwrap() {
            assert_eq!(
                &lock["packages"][format!("node_modules/{name}")]["version"],
                version,
                "{name}"
            );
        }
        // Whoever installs has a registry of their own; what comes from it is held to the checksums.
        for (path, locked) in lock["packages"].as_object().unwrap() {
            assert!(locked["resolved"].is_null(), "{path} names where it comes from");
            assert!(
                path.is_empty() || locked["integrity"].is_string(),
                "{path} has no checksum"
            );
        }
        package["dependencies"].clone()
    };
    locked("packages/npm/tests");
    let named = locked("clients/typescript");

    let stamp = std::fs::read_to_string(root().join("upstream/VERSION")).unwrap();
    let sdk = stamp.lines().find_map(|line| line.strip_prefix("sdk "));
    assert_eq!(
        named["@anthropic-ai/claude-agent-sdk"].as_str(),
        sdk,
        "clients/typescript and upstream/ have to move together"
    );
}

/// The targets of a page's links, code blocks aside.
fn links(page: &str) -> Vec<&str> {
    let mut in_code = false;
    let prose = page.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !fence && !in_code
    });
    prose
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split(')').next())
        .collect()
}

/// The code blocks of a page, with their languages.
fn code_blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks: Vec<(&str, String)> = Vec::new();
    let mut in_code = false;
    for line in page.lines() {
        if let Some(language) = line.strip_prefix("```") {
            in_code = !in_code;
            if in_code {
                blocks.push((language, String::new()));
            }
        } else if let (true, Some((_, text))) = (in_code, blocks.last_mut()) {
            text.push_str(line);
            text.push('\n');
        }
    }
    blocks
}

/// Those examples are run by `cargo xtask clients kit`.
#[test]
fn what_pages_show_of_python_and_typescript_are_examples_that_run() {
    for (page, examples) in [
        ("docs/testing-python.md", "packages/python/examples/*"),
        ("packages/python/README.md", "packages/python/examples/*"),
        ("docs/testing-typescript.md", "packages/npm/examples/*"),
        ("packages/npm/README.md", "packages/npm/examples/*"),
    ] {
        let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
        let sources: Vec<String> = files(examples).iter().map(|path| read(path)).collect();
        let text = read(page);
        let blocks = code_blocks(&text);
        let code = blocks
            .iter()
            .filter(|(language, _)| !matches!(*language, "console" | "text"));
        assert!(code.clone().count() > 0, "{page} shows no code");
        for (language, block) in code {
            assert!(
                sources.iter().any(|source| source.contains(block.as_str())),
                "{page}: no file of {examples} has this {language}:\n{block}"
            );
        }
    }
}

/// The name by which mdBook and GitHub link to a heading.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter(kept)
        .collect::<String>()
        .replace(' ', "-")
}

fn has_anchor(page: &str, wanted: &str) -> bool {
    page.lines()
        .filter(|line| line.starts_with('#'))
        .any(|line| anchor(line.trim_start_matches('#')) == wanted)
}

#[test]
fn the_book_has_every_page_and_no_dead_link() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<&str> = links(&summary).into_iter().collect();
    let mut pages: Vec<_> = std::fs::read_dir(&docs)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    let names: BTreeSet<&str> = pages
        .iter()
        .map(|path| path.file_name().and_then(|name| name.to_str()).unwrap())
        .filter(|name| *name != "SUMMARY.md")
        .collect();
    assert_eq!(listed, names, "docs/SUMMARY.md lists what docs/ has");

    let others = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name));
    pages.extend(others);
    let mut dead = Vec::new();
    for path in &pages {
        let text = std::fs::read_to_string(path).unwrap();
        for link in links(&text) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let here = ["blob", "tree"]
                .map(|kind| format!("https://github.com/outrigger-rs/outrigger/{kind}/main/"));
            let target = match here.iter().find_map(|here| file.strip_prefix(here.as_str())) {
                Some(file) => root().join(file),
                None if link.contains("://") => continue,
                // The book has nothing outside of its directory.
                None if path.starts_with(&docs) && file.starts_with("../") => PathBuf::new(),
                None if file.is_empty() => path.clone(),
                None => path.with_file_name("").join(file),
            };
            let is_alive = match std::fs::read_to_string(&target) {
                Ok(text) => heading.is_empty() || has_anchor(&text, heading),
                Err(_) => target.exists() && heading.is_empty(),
            };
            if !is_alive {
                dead.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(dead.is_empty(), "links that lead nowhere: {dead:#?}");
}
