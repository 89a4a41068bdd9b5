//! Errors and advice for users who do not see Rust names.
//!
//! Errors and advice of this crate name what a program can change as Rust has it, in backticks: `` `cwd` ``, `` `Auth::Login` ``.
//! People at a terminal or in an editor cannot set these. A program that shows errors to people uses [`Error::explained`], with names
//! of
//! its own:
//!
//! ```
//! use outrigger::advice::reworded;
//!
//! let flag = |name: &str| (name == "max_turns").then(|| "--max-turns".to_owned());
//! let hint = reworded("prompt again to go on, or raise `max_turns`", flag);
//! assert_eq!(hint, "prompt again to go on, or raise --max-turns");
//! ```

use std::error::Error as StdError;

use crate::error::Error;

/// The names that errors and advice of this crate put in backticks, besides those of the options ([`Options::NAMES`]): what a program that
/// tells errors in other words has to have a word for, unless it never uses what they belong to.
///
/// [`Options::NAMES`]: crate::Options::NAMES
pub const NAMES: &[&str] = &[
    "Auth::Inherit",
    "Auth::OAuthToken",
    "Delivery::Initialize",
    "Isolation::Hermetic",
    "Isolation::Interactive",
    "Isolation::Plain",
    "OnBusy::Fork",
    "OnBusy::TakeOver",
    "Skills::All",
    "ThinkingConfig::Disabled",
    "ThinkingConfig::Enabled",
    "env",
    "initialize",
    "permissions",
    "sdk_mcp_server",
    "start",
    "ttl",
];

/// An error in parts, none of which repeats another.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedError {
    /// What went wrong.
    pub message: String,
    /// The causes, the nearest first.
    pub because: Vec<String>,
    /// What to do, if that is known and not part of the message.
    pub hint: Option<String>,
}

impl Error {
    /// The error, its sources and its [`hint`](Self::hint), with `name` for what Rust names in them. What `name` has no word for stays as
    /// it is. Only names in this crate's own texts are replaced, never in those of the CLI or the model.
    pub fn explained(&self, name: impl Fn(&str) -> Option<String>) -> ExplainedError {
        let is_ours = self.names_options();
        let told = |text: String| if is_ours { reworded(&text, &name) } else { text };
        let message = told(self.to_string());
        let mut because: Vec<String> = Vec::new();
        let says = |because: &[String], text: &str| {
            message.contains(text) || because.iter().any(|said| said.contains(text))
        };
        let mut source = self.source();
        while let Some(error) = source {
            let text = told(error.to_string());
            if !says(&because, &text) {
                because.push(text);
            }
            source = error.source();
        }
        let hint = self.hint().map(|hint| reworded(hint, &name));
        let hint = hint.filter(|hint| !says(&because, hint));
        ExplainedError {
            message,
            because,
            hint,
        }
    }
}

/// A text of this crate with `name` for what Rust names in it, which stands in backticks there. What `name` has no word for stays.
pub fn reworded(text: &str, name: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('`') {
        out.push_str(before);
        let Some((word, behind)) = behind.split_once('`') else {
            out.push('`');
            rest = behind;
            continue;
        };
        match name(word) {
            Some(other) => out.push_str(&other),
            None => {
                out.push('`');
                out.push_str(word);
                out.push('`');
            }
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::Options;

    #[test]
    fn only_what_has_another_word_is_replaced() {
        let name = |name: &str| (name == "cwd").then(|| "--cwd".to_owned());
        assert_eq!(
            reworded("pass `cwd`, run `claude`", name),
            "pass --cwd, run `claude`"
        );
        assert_eq!(reworded("`cwd``cwd`", name), "--cwd--cwd");
        assert_eq!(reworded("a lone ` stays", name), "a lone ` stays");
    }

    /// What a JSON schema calls its parts, which is no name of Rust.
    const OF_SCHEMAS: &[&str] = &[
        "type",
        "required",
        "enum",
        "properties",
        "anyOf",
        "oneOf",
        "allOf",
    ];

    fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    /// The string literals of the code before its tests, without what is not said to anybody: comments and attributes.
    fn literals(code: &str) -> Vec<String> {
        let code = code.split("\n#[cfg(test)]\n").next().unwrap();
        let lines = code.lines().filter(|line| {
            let line = line.trim_start();
            !line.starts_with("//") && !line.starts_with("#[")
        });
        let code = lines.collect::<Vec<_>>().join("\n").replace("'\"'", "");
        let mut found = Vec::new();
        let mut rest = code.as_str();
        while let Some((_, behind)) = rest.split_once('"') {
            let mut text = String::new();
            let mut letters = behind.char_indices();
            let end = loop {
                match letters.next() {
                    Some((_, '\\')) => drop(letters.next()),
                    Some((at, '"')) => break at + 1,
                    Some((_, letter)) => text.push(letter),
                    None => break behind.len(),
                }
            };
            found.push(text);
            rest = &behind[end..];
        }
        found
    }

    fn is_path(word: &str) -> bool {
        word.split_once("::")
            .is_some_and(|(of, name)| of.starts_with(|c: char| c.is_ascii_uppercase()) && !name.is_empty())
    }

    /// Whoever has errors told in other words learns of each new name by this list.
    #[test]
    fn names_in_advice_are_listed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = Vec::new();
        sources(&root, &mut files);
        let mut used = BTreeSet::new();
        for file in files {
            let code = std::fs::read_to_string(&file).unwrap();
            let is_test = file.components().any(|part| part.as_os_str() == "tests")
                || file
                    .file_stem()
                    .is_some_and(|stem| stem == "tests" || stem == "advice");
            let advises = ["OptionsError", "fn advice"]
                .iter()
                .any(|words| code.contains(words))
                || ["options", "discover"].iter().any(|module| {
                    file.starts_with(root.join(module)) || file == root.join(format!("{module}.rs"))
                })
                || file == root.join("value_syntax.rs");
            if is_test || !advises {
                continue;
            }
            for text in literals(&code) {
                let mut in_backticks = false;
                for part in text.split('`') {
                    let is_name = part.chars().all(|c| c.is_ascii_lowercase() || c == '_')
                        && part.contains(|c: char| c.is_ascii_lowercase());
                    if in_backticks && (is_name || is_path(part)) && !part.contains('{') {
                        used.insert(part.to_owned());
                    }
                    let bare = part.split_whitespace().find(|word| is_path(word));
                    assert!(
                        in_backticks || bare.is_none(),
                        "{}: a name of Rust belongs into backticks: {text}",
                        file.display()
                    );
                    in_backticks = !in_backticks;
                }
            }
        }
        let commands = ["claude"];
        for known in Options::NAMES.iter().chain(OF_SCHEMAS).chain(&commands) {
            used.remove(*known);
        }
        assert_eq!(used, NAMES.iter().map(|name| (*name).to_owned()).collect());
    }
}
