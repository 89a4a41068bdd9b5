//! What Tab completes: commands at the begin of a prompt, and names of files behind `@`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use reedline::{Span, Suggestion};

/// How many files are looked at, and how many suggestions are shown.
const MOST: usize = 10_000;
const SHOWN: usize = 200;

/// What there is to complete.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// Commands without their slash, and what they do.
    pub(crate) commands: Vec<(String, String)>,
    /// Where file names begin.
    pub(crate) directory: PathBuf,
}

pub(super) struct Completer {
    words: Arc<Mutex<Words>>,
}

impl Completer {
    pub(super) fn new(words: Arc<Mutex<Words>>) -> Self {
        Self { words }
    }
}

impl reedline::Completer for Completer {
    fn complete(&mut self, line: &str, position: usize) -> Vec<Suggestion> {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        suggestions(&words, line, position)
    }
}

fn suggestions(words: &Words, line: &str, position: usize) -> Vec<Suggestion> {
    let Some(before) = line.get(..position) else {
        return Vec::new();
    };
    let from = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let word = &before[from..];
    let suggest = |value: String, description: Option<String>, is_whole: bool| Suggestion {
        value,
        description,
        span: Span::new(from, position),
        append_whitespace: is_whole,
        ..Suggestion::default()
    };
    if let Some(name) = word.strip_prefix('/').filter(|_| from == 0) {
        let known = words.commands.iter().filter(|(known, _)| known.starts_with(name));
        return known
            .map(|(name, does)| suggest(format!("/{name}"), (!does.is_empty()).then(|| does.clone()), true))
            .collect();
    }
    let Some(path) = word.strip_prefix('@') else {
        return Vec::new();
    };
    files(&words.directory, path)
        .into_iter()
        .map(|(path, is_directory)| suggest(format!("@{path}"), None, !is_directory))
        .collect()
}

/// Files whose path begins like this. Those that hide are named only if a dot asks for them, and none whose name would command the
/// terminal.
fn files(directory: &Path, path: &str) -> Vec<(String, bool)> {
    let (parent, name) = match path.rfind('/') {
        Some(at) => path.split_at(at + 1),
        None => ("", path),
    };
    let Ok(entries) = fs::read_dir(directory.join(parent)) else {
        return Vec::new();
    };
    let mut found: Vec<(String, bool)> = entries
        .take(MOST)
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let file = entry.file_name().into_string().ok()?;
            let hides = file.starts_with('.') && !name.starts_with('.');
            if hides
                || !file.starts_with(name)
                || file.contains(|char: char| char.is_control() || char.is_whitespace())
            {
                return None;
            }
            let is_directory = entry.path().is_dir();
            let slash = if is_directory { "/" } else { "" };
            Some((format!("{parent}{file}{slash}"), is_directory))
        })
        .collect();
    found.sort();
    found.truncate(SHOWN);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(words: &Words, line: &str) -> Vec<String> {
        let found = suggestions(words, line, line.len());
        found.into_iter().map(|suggestion| suggestion.value).collect()
    }

    #[test]
    fn commands_are_completed_at_the_begin_and_files_behind_an_at_sign() {
        let place = tempfile::tempdir().unwrap();
        for file in ["main.rs", "mail.txt", ".hidden", "with space", "bad\x1b[2J"] {
            fs::write(place.path().join(file), "").unwrap();
        }
        fs::create_dir(place.path().join("made")).unwrap();
        fs::write(place.path().join("made/of.wood"), "").unwrap();
        let words = Words {
            commands: vec![
                ("cost".to_owned(), String::new()),
                ("compact".to_owned(), "makes it short".to_owned()),
            ],
            directory: place.path().to_owned(),
        };
        assert_eq!(values(&words, "/co"), ["/cost", "/compact"]);
        assert_eq!(values(&words, "say /co"), [""; 0]);
        assert_eq!(values(&words, "look at @ma"), ["@made/", "@mail.txt", "@main.rs"]);
        assert_eq!(values(&words, "@made/"), ["@made/of.wood"]);
        assert_eq!(values(&words, "@.h"), ["@.hidden"]);
        assert_eq!(values(&words, "@wi"), [""; 0]);
        assert_eq!(values(&words, "@b"), [""; 0]);
    }
}
