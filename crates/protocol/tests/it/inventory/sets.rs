//! The open sets of strings, from our own source: the macro that makes them cannot be asked for all of them at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The members of each `open_enum!`, by the name of the enum.
pub(crate) fn in_our_source() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                read(&std::fs::read_to_string(path).unwrap(), &mut found);
            }
        }
    }
    found
}

/// Sets of the same name are taken together: which one was meant cannot be told.
fn read(text: &str, found: &mut BTreeMap<String, Vec<String>>) {
    let mut current: Option<String> = None;
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if line.ends_with("open_enum! {") || line.starts_with("hooks! {") {
            inside = true;
            if line.starts_with("hooks!") {
                current = Some("HookEvent".to_owned());
            }
        } else if !inside || line.starts_with("//") {
            continue;
        } else if let Some(name) = line.strip_prefix("pub enum ") {
            current = Some(name.trim_end_matches(['{', ' ']).to_owned());
        } else if line == "}" {
            inside = current.take().is_some();
        } else if let Some(name) = &current {
            let literal = line.split('"').nth(1);
            if let Some(literal) = literal {
                found.entry(name.clone()).or_default().push(literal.to_owned());
            }
        }
    }
}

#[test]
fn the_source_is_read_as_it_is() {
    use outrigger_protocol::inbound::DecisionReasonType;
    use outrigger_protocol::shared::HookEvent;

    let found = in_our_source();
    assert_eq!(found["HookEvent"], HookEvent::KNOWN);
    assert_eq!(found["DecisionReasonType"], DecisionReasonType::KNOWN);
}
