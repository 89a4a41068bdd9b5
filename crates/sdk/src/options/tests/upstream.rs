//! Holds the options and the flags against what upstream has, as `cargo xtask inventory` wrote it down.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::flags::{OPTIONS, RESERVED, is_ours};
use super::super::*;
use super::setters::{declared, methods, setters};
use super::{TestHome, wire};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lists {
    renamed: BTreeMap<String, String>,
    #[serde(default)]
    missing: Vec<Named>,
    own: Vec<Named>,
    unused: Vec<Flags>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    reason: String,
    options: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flags {
    reason: String,
    flags: Vec<String>,
}

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../upstream")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn lists() -> Lists {
    let lists: Lists = toml::from_str(&read("options.toml")).unwrap();
    let reasons = lists.missing.iter().chain(&lists.own).map(|group| &group.reason);
    for reason in reasons.chain(lists.unused.iter().map(|group| &group.reason)) {
        assert!(reason.len() > 20, "`{reason}` explains nothing");
    }
    lists
}

fn inventory() -> Value {
    serde_json::from_str(&read("inventory.json")).unwrap()
}

/// All flags of the CLI, and what each takes.
fn flags(inventory: &Value) -> Map<String, Value> {
    let mut flags = inventory["cli"]["flags"].as_object().unwrap().clone();
    flags.extend(inventory["cli"]["hidden_flags"].as_object().unwrap().clone());
    flags
}

fn names<'a>(groups: impl IntoIterator<Item = &'a Named>) -> BTreeSet<&'a str> {
    groups
        .into_iter()
        .flat_map(|group| &group.options)
        .map(String::as_str)
        .collect()
}

/// `maxTurns` as `max_turns`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

const ADVICE: &str = "upstream's options and ours differ: add the option, or explain it in upstream/options.toml \
                      (CONTRIBUTING.md, \"When upstream moves\")";

fn upstream() -> BTreeSet<String> {
    let inventory = inventory();
    let options = inventory["types"]["Options"].as_object().unwrap();
    let names = options.keys().map(|name| name.trim_end_matches('?').to_owned());
    names.collect()
}

/// An option of upstream has a setter of its name, or is explained; one of ours is upstream's, or is explained. What is explained
/// and need not be fails, too.
#[test]
fn each_option_of_upstream_is_here_or_explained() {
    let (upstream, lists) = (upstream(), lists());
    let setters = setters();
    let ours: BTreeSet<&str> = setters.keys().map(String::as_str).collect();
    assert!(ours.len() > 100, "the setters were not found: {ours:?}");
    let missing = upstream
        .iter()
        .filter(|name| !ours.contains(snake(name).as_str()));
    let missing: BTreeSet<&str> = missing.map(String::as_str).collect();
    let mut explained = names(&lists.missing);
    explained.extend(lists.renamed.keys().map(String::as_str));
    assert_eq!(missing, explained, "{ADVICE}");

    let theirs: BTreeSet<String> = upstream.iter().map(|name| snake(name)).collect();
    let own: BTreeSet<&str> = ours.into_iter().filter(|name| !theirs.contains(*name)).collect();
    assert_eq!(own, names(&lists.own), "{ADVICE}");
}

/// What a renamed option is said to be exists: a setter of the options, or a method of another type.
#[test]
fn each_new_name_exists() {
    let setters = setters();
    for (theirs, here) in lists().renamed {
        let named: Vec<(&str, &str)> = here
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':')
            .filter_map(|word| word.split_once("::"))
            .collect();
        assert!(!named.is_empty(), "`{theirs}` is explained by no name: {here}");
        for (of, name) in named {
            let exists = match of {
                "Options" => setters.contains_key(name),
                of => methods(of).contains_key(name),
            };
            assert!(
                exists,
                "`{theirs}` is said to be `{of}::{name}`, which is not there"
            );
        }
    }
}

/// So that a setter can't be missed for the way it is written.
#[test]
fn the_source_is_read_as_it_is_compiled() {
    let declared = declared();
    let read: BTreeSet<&str> = declared.keys().map(String::as_str).collect();
    let compiled: BTreeSet<&str> = Options::NAMES.iter().copied().collect();
    assert_eq!(read, compiled);
    let setters = setters();
    for name in [
        "permissions",
        "can_use_tool",
        "hook",
        "lease",
        "wait_for_mcp",
        "questions",
        "env",
    ] {
        assert!(setters.contains_key(name), "{name}");
    }
    for name in ["new", "check", "start", "explain", "has_session_store", "prewarm"] {
        assert!(!setters.contains_key(name), "{name}");
    }
}

#[test]
fn each_flag_is_one_that_the_cli_has() {
    let flags = flags(&inventory());
    for flag in RESERVED.iter().chain(OPTIONS) {
        assert!(
            flags.contains_key(&format!("--{flag}")),
            "the CLI has no --{flag}: run `cargo xtask inventory`"
        );
    }
    let stage = TestHome::new();
    let mut seen = BTreeSet::new();
    for row in wire::rows(&stage) {
        for argument in row.args {
            let (flag, value) = match argument.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (argument.as_str(), None),
            };
            // These rows are about flags without an option.
            if row.name == "extra_args" {
                continue;
            }
            let takes = flags
                .get(flag)
                .and_then(Value::as_str)
                .unwrap_or_else(|| panic!("`{}` becomes {flag}, which the CLI does not have", row.name));
            assert!(is_ours(flag.trim_start_matches('-')), "{flag}");
            match value {
                Some(_) => assert!(takes.starts_with(['<', '[']), "{flag} takes no value"),
                None => assert!(!takes.starts_with('<'), "{flag} takes {takes}"),
            }
            seen.insert(flag.to_owned());
        }
    }
    assert!(seen.len() > 40, "{seen:?}");
}

#[test]
fn each_flag_of_the_cli_is_used_or_explained() {
    let (flags, lists) = (flags(&inventory()), lists());
    let unused: BTreeSet<&str> = flags
        .keys()
        .map(String::as_str)
        .filter(|flag| !is_ours(flag.trim_start_matches('-')))
        .collect();
    let explained: BTreeSet<&str> = lists
        .unused
        .iter()
        .flat_map(|group| &group.flags)
        .map(String::as_str)
        .collect();
    assert_eq!(
        unused, explained,
        "flags of the CLI that no option uses: add an option, or explain them in upstream/options.toml"
    );
}
