//! The agent's entry for the registry of agents of the Agent Client Protocol, held against the rules by which the registry takes entries.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::root;

/// The directory of the entry in the registry has this name.
const ID: &str = "outrigger";

fn entry() -> Value {
    let text = fs::read_to_string(root().join("packages/acp/agent.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn text<'a>(entry: &'a Value, field: &str) -> &'a str {
    let text = entry[field].as_str().unwrap_or_default();
    assert!(!text.is_empty(), "{field} is stated");
    text
}

#[test]
fn the_entry_has_the_fields_that_the_registry_asks_for() {
    let entry = entry();
    assert_eq!(text(&entry, "id"), ID);
    assert!(ID.starts_with(|c: char| c.is_ascii_lowercase()));
    assert!(
        ID.chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    );
    for field in ["name", "description", "license"] {
        text(&entry, field);
    }
    for field in ["repository", "website", "license_url"] {
        assert!(
            text(&entry, field).starts_with("https://"),
            "{field} is an address"
        );
    }
    assert!(!entry["authors"].as_array().unwrap().is_empty());
    let known: BTreeSet<&str> = [
        "id",
        "name",
        "version",
        "description",
        "repository",
        "website",
        "authors",
        "license",
        "license_url",
        "distribution",
    ]
    .into();
    // `icon` is set by the registry.
    for field in entry.as_object().unwrap().keys() {
        assert!(known.contains(field.as_str()), "the registry knows no {field}");
    }
    let version = text(&entry, "version");
    let parts: Vec<&str> = version.split('.').collect();
    assert!(
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok()),
        "{version} has three numbers"
    );
}

#[test]
fn the_entry_names_the_package_of_its_version() {
    let entry = entry();
    let package = fs::read_to_string(root().join("packages/acp/package.json")).unwrap();
    let package: Value = serde_json::from_str(&package).unwrap();
    let version = text(&entry, "version");
    assert_eq!(package["version"], version);
    let distribution = entry["distribution"].as_object().unwrap();
    // What it brings is a CLI, too, which archives do not.
    assert_eq!(distribution.keys().collect::<Vec<_>>(), ["npx"]);
    let npx = &distribution["npx"];
    let expected = format!("{}@{version}", package["name"].as_str().unwrap());
    assert_eq!(npx["package"], expected.as_str());
    for field in npx.as_object().unwrap().keys() {
        assert!(
            ["package", "args", "env"].contains(&field.as_str()),
            "the registry knows no {field}"
        );
    }
    // `npx` runs the program of the package's name, or its only one.
    assert_eq!(package["bin"].as_object().unwrap().len(), 1);
}

/// The values of an attribute, in the order in which they come.
fn attributes<'a>(svg: &'a str, name: &str) -> Vec<&'a str> {
    svg.split(&format!(" {name}=\""))
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect()
}

#[test]
fn the_icon_is_square_and_takes_the_colour_of_the_text() {
    let svg = fs::read_to_string(root().join("packages/acp/icon.svg")).unwrap();
    let (head, _) = svg.split_once('>').unwrap();
    assert!(head.starts_with("<svg "));
    assert_eq!(attributes(head, "width"), ["16"]);
    assert_eq!(attributes(head, "height"), ["16"]);
    assert_eq!(attributes(head, "viewBox"), ["0 0 16 16"]);
    for name in ["fill", "stroke"] {
        for value in attributes(&svg, name) {
            assert!(
                ["currentColor", "none", "inherit"].contains(&value),
                "{name}=\"{value}\""
            );
        }
    }
    assert!(attributes(&svg, "style").is_empty() && !svg.contains("<style"));
    assert!(svg.contains("currentColor"));
}
