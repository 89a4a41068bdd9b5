//! The setters of the options, as the source has them: those of the macro and those that are written by hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Each public setter of the options with what it takes: the kind of its field (`value<Effort>`), or its signature.
pub(crate) fn setters() -> BTreeMap<String, String> {
    let by_hand = methods("Options")
        .into_iter()
        .filter(|(_, signature)| signature.contains("self, ") && signature.contains("-> Self"));
    declared().into_iter().chain(by_hand).collect()
}

/// The options that the macro declares, with their kinds.
pub(crate) fn declared() -> BTreeMap<String, String> {
    let source = read(&source().join("options.rs"));
    let (_, fields) = source.split_once("\noptions! {\n").expect("the macro is called");
    let (fields, _) = fields.split_once("\n}\n").expect("the call ends");
    let fields = fields.lines().map(str::trim);
    fields
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .map(|line| {
            let (kind, name) = line
                .trim_end_matches(';')
                .rsplit_once(' ')
                .expect("a kind and a name");
            (name.to_owned(), kind.to_owned())
        })
        .collect()
}

/// The public methods of a type of this crate, with their signatures from the first parenthesis on.
pub(crate) fn methods(of: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let head = format!("\nimpl {of} {{\n");
    for file in files(&source()) {
        let text = read(&file);
        for block in text.split(&head).skip(1) {
            let (block, _) = block.split_once("\n}\n").expect("the block ends");
            // As rustfmt has it: four blanks, and the brace at the end of the line.
            for item in format!("\n{block}").split("\n    pub ").skip(1) {
                let (signature, _) = item.split_once("{\n").unwrap_or((item, ""));
                let words = signature.split_whitespace().collect::<Vec<_>>().join(" ");
                let Some((_, function)) = words
                    .split_once("fn ")
                    .filter(|(before, _)| !before.contains('('))
                else {
                    continue;
                };
                let end = function.find(['(', '<']).expect("it has arguments");
                found.insert(function[..end].to_owned(), function[end..].to_owned());
            }
        }
    }
    assert!(!found.is_empty(), "no `impl {of}` was found");
    found
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("the directory can be read") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
