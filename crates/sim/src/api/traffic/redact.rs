//! Redacts texts before they are written, and normalizes them before they are compared.

use std::borrow::Cow;
use std::env;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use outrigger_protocol::RawJson;
use regex_lite::{Captures, Regex};
use serde_json::Value;

use crate::cassette::{is_above_homes, is_amid_path, secrets};

/// Stands for the CLI's working directory in a recording.
pub(super) const CWD: &str = "{{cwd}}";
/// Stands for the home directory in a recording.
pub(super) const HOME: &str = "{{home}}";
/// Stands for a secret.
const SECRET: &str = "<redacted>";

/// The redaction of files: keys and tokens by their forms, the home directory, names of users in paths, and rules of the program.
///
/// It works on whole texts, also when they come in pieces, so that a secret which a stream cuts in two is found.
#[derive(Debug, Clone)]
#[must_use]
pub struct Redaction {
    literals: Vec<(String, String)>,
    patterns: Arc<Vec<(Regex, String)>>,
}

/// Names of users in paths. What secrets look like is known to [`secrets`], for cassettes too.
static PATTERNS: LazyLock<Arc<Vec<(Regex, String)>>> = LazyLock::new(|| {
    let users = [
        (r"/home/[^/\s\x22'`<>:;,]+", "/home/user"),
        (r"/Users/[^/\s\x22'`<>:;,]+", "/Users/user"),
    ];
    // All of them compile, which a test shows.
    let patterns = users
        .into_iter()
        .filter_map(|(pattern, put)| Some((Regex::new(pattern).ok()?, put.to_owned())));
    Arc::new(patterns.collect())
});

impl Redaction {
    /// The built-in rules, and the home directory of this process.
    pub fn new() -> Self {
        let redaction = Self {
            literals: Vec::new(),
            patterns: Arc::clone(&PATTERNS),
        };
        let home = env::var(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
        match home {
            Ok(home) => redaction.home(&home),
            Err(_) => redaction,
        }
    }

    /// Also puts the placeholder of the home directory in the place of this one.
    pub fn home(self, directory: &str) -> Self {
        self.directory(directory, HOME)
    }

    /// Also takes out this text wherever it occurs, such as a password. Less than 4 characters are left alone: they would be found
    /// everywhere.
    pub fn secret(self, secret: &str) -> Self {
        self.literal(secret, SECRET)
    }

    /// Also redacts the matches of this regular expression.
    ///
    /// # Errors
    /// When it is not a regular expression, with the reason.
    pub fn pattern(mut self, pattern: &str) -> Result<Self, String> {
        let regex =
            Regex::new(pattern).map_err(|error| format!("`{pattern}` is no regular expression: {error}"))?;
        Arc::make_mut(&mut self.patterns).push((regex, SECRET.to_owned()));
        Ok(self)
    }

    pub(super) fn working_directory(self, directory: &str) -> Self {
        self.directory(directory, CWD)
    }

    fn directory(self, directory: &str, put: &str) -> Self {
        self.literal(directory.trim_end_matches(['/', '\\']), put)
    }

    fn literal(mut self, text: &str, put: &str) -> Self {
        if text.chars().count() < 4 {
            return self;
        }
        let escaped = escaped(text);
        if escaped != text {
            self.literals.push((escaped, put.to_owned()));
        }
        self.literals.push((text.to_owned(), put.to_owned()));
        self
    }

    /// The text without what must not be in it.
    pub fn text(&self, text: &str) -> String {
        self.pieces(&[text]).concat()
    }

    /// The same for a text that comes in pieces. What takes the place of something goes to the piece where that begins.
    pub(super) fn pieces(&self, pieces: &[&str]) -> Vec<String> {
        let whole: Cow<'_, str> = match pieces {
            [one] => Cow::Borrowed(one),
            _ => Cow::Owned(pieces.concat()),
        };
        let spans = self.spans(&whole);
        let mut spans = spans.iter().peekable();
        let mut start = 0;
        let mut done = Vec::new();
        for piece in pieces {
            let end = start + piece.len();
            let mut text = String::with_capacity(piece.len());
            let mut at = start;
            while let Some((range, put)) = spans.peek() {
                if range.start >= end {
                    break;
                }
                if range.start >= start {
                    text.push_str(whole.get(at..range.start).unwrap_or_default());
                    text.push_str(put);
                }
                at = range.end.min(end);
                if range.end > end {
                    break;
                }
                spans.next();
            }
            text.push_str(whole.get(at..end).unwrap_or_default());
            done.push(text);
            start = end;
        }
        done
    }

    /// Every text in a JSON value.
    #[cfg(feature = "api-record")]
    pub(super) fn value(&self, value: &mut Value) {
        each_text(value, &mut |_, text| {
            let clean = self.text(text);
            if clean != *text {
                *text = clean;
            }
        });
    }

    /// The ranges to replace, in order; overlapping ones become one.
    fn spans(&self, text: &str) -> Vec<(Range<usize>, &str)> {
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        for (literal, put) in &self.literals {
            let whole = |at: usize| {
                // A directory's name must be neither the beginning nor the end of another's.
                put == SECRET
                    || !text[at + literal.len()..]
                        .starts_with(|c: char| c.is_alphanumeric() || "-_".contains(c))
                        && !is_amid_path(text, at)
            };
            let places = text
                .match_indices(literal.as_str())
                .map(|(at, _)| at)
                .filter(|at| whole(*at));
            found.extend(places.map(|at| (at..at + literal.len(), put.as_str())));
        }
        found.extend(secrets(text).into_iter().map(|range| (range, SECRET)));
        for (pattern, put) in self.patterns.iter() {
            let places = pattern.find_iter(text).map(|found| found.range());
            let places = places.filter(|range| put == SECRET || is_above_homes(text, range.start));
            found.extend(places.map(|range| (range, put.as_str())));
        }
        found.sort_by_key(|(range, _)| (range.start, usize::MAX - range.end));
        let mut merged: Vec<(Range<usize>, &str)> = Vec::new();
        for (range, put) in found {
            match merged.last_mut() {
                Some((last, _)) if range.start < last.end => last.end = last.end.max(range.end),
                _ => merged.push((range, put)),
            }
        }
        merged
    }
}

impl Default for Redaction {
    fn default() -> Self {
        Self::new()
    }
}

/// The directories and names of a conversation, for the placeholders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::api) struct Place {
    pub(super) cwd: Option<String>,
    pub(super) home: Option<String>,
}

impl Place {
    /// JSON text with this place in it.
    pub(in crate::api) fn filled(&self, json: &RawJson) -> String {
        let text = json.get();
        if !text.contains("{{") {
            return text.to_owned();
        }
        let Ok(mut value) = serde_json::from_str::<Value>(text) else {
            return text.to_owned();
        };
        self.fill(&mut value);
        value.to_string()
    }

    /// Puts this place in for the placeholders in every text of a value.
    fn fill(&self, value: &mut Value) {
        each_text(value, &mut |key, text| {
            if !text.contains("{{") {
                return;
            }
            for (placeholder, directory) in [(CWD, &self.cwd), (HOME, &self.home)] {
                if let Some(directory) = directory {
                    // The pieces of a tool's input are JSON within JSON.
                    let put = if key == "partial_json" {
                        escaped(directory)
                    } else {
                        directory.clone()
                    };
                    *text = text.replace(placeholder, &put);
                }
            }
        });
    }
}

/// Shows every text in a value, with the name of its field.
fn each_text(value: &mut Value, change: &mut dyn FnMut(&str, &mut String)) {
    fn walk(key: &str, value: &mut Value, change: &mut dyn FnMut(&str, &mut String)) {
        match value {
            Value::String(text) => change(key, text),
            Value::Array(items) => items.iter_mut().for_each(|item| walk(key, item, change)),
            Value::Object(fields) => fields
                .iter_mut()
                .for_each(|(key, value)| walk(key, value, change)),
            _ => {}
        }
    }
    walk("", value, change);
}

/// The text as it stands inside a JSON string.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.trim_matches('"').to_owned()
}

/// Texts that mean the same become the same: without the CLI's reminders, with ids, dates, times and the directories of paths
/// replaced.
pub(super) fn normalised(text: &str) -> String {
    static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let rules = [
            (r"(?s)<system-reminder>.*?</system-reminder>", ""),
            (
                r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
                "<id>",
            ),
            (r"\b(?:toolu|msg|req|call|srvtoolu)_[A-Za-z0-9_]+", "<id>"),
            (r"\b[0-9a-f]{12,64}\b", "<id>"),
            (r"(?i)\b(id|ID): [a-z0-9]{6,}\b", "$1: <id>"),
            (
                r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?",
                "<date>",
            ),
            (
                r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* +\d{1,2},? +\d{4}\b",
                "<date>",
            ),
            (r"\b\d\d:\d\d:\d\d(?:\.\d+)?\b", "<time>"),
            (r"\b\d+(?:\.\d+)? ?(?:ms|s|seconds)\b", "<time>"),
        ];
        let rules = rules.into_iter();
        rules
            .filter_map(|(pattern, put)| Some((Regex::new(pattern).ok()?, put)))
            .collect()
    });
    static PATHS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let name = r"[^\s/\\\x22'`<>:;,()\[\]{}|*?]+";
        Regex::new(&format!(
            r"(^|[\s\x22'`(=:,\[])(?:\{{\{{(?:cwd|home)\}}\}}|[A-Za-z]:)?(?:[/\\]{{1,2}}{name})*[/\\]{{1,2}}({name})"
        ))
        .ok()
    });
    let mut text = text.to_owned();
    for (rule, put) in RULES.iter() {
        if let Cow::Owned(changed) = rule.replace_all(&text, *put) {
            text = changed;
        }
    }
    if let Some(paths) = &*PATHS
        && let Cow::Owned(changed) = paths.replace_all(&text, |found: &Captures<'_>| {
            format!("{}<path>/{}", &found[1], &found[2])
        })
    {
        text = changed;
    }
    for placeholder in [CWD, HOME] {
        text = text.replace(placeholder, "<path>");
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare() -> Redaction {
        assert_eq!(PATTERNS.len(), 2, "every pattern compiles");
        Redaction {
            literals: Vec::new(),
            patterns: Arc::clone(&PATTERNS),
        }
    }

    #[test]
    fn secrets_go_wherever_they_are_cut() {
        let redaction = bare()
            .secret("hunter2hunter2")
            .working_directory("/place/it")
            .home("/place");
        let text = "key sk-ant-api03-abcdefghijkl in /place/it/a, /place/b and /placemat; hunter2hunter2!";
        let clean = "key <redacted> in {{cwd}}/a, {{home}}/b and /placemat; <redacted>!";
        assert_eq!(redaction.text(text), clean);
        for size in 1..text.len() {
            let bytes: Vec<&str> = text
                .as_bytes()
                .chunks(size)
                .map(|piece| std::str::from_utf8(piece).unwrap())
                .collect();
            let pieces = redaction.pieces(&bytes);
            assert_eq!(
                (pieces.len(), pieces.concat()),
                (bytes.len(), clean.to_owned()),
                "{size}"
            );
        }
        assert_eq!(
            redaction.text("/home/jo/x ghp_0123456789abcdefXYZ"),
            "/home/user/x <redacted>"
        );
        let amid = "src/home/page.tsx and /srv/x/home/.cache";
        assert_eq!(redaction.text(amid), amid);
        let root = bare().home("/root");
        assert_eq!(root.text("/root/x /srv/root/x"), "{{home}}/x /srv/root/x");
    }

    #[test]
    fn what_overlaps_goes_together() {
        let redaction = bare().secret("abcdef").secret("defghi");
        assert_eq!(redaction.text("1 abcdefghi 2"), "1 <redacted> 2");
    }

    #[test]
    fn texts_that_mean_the_same_are_equal() {
        let same = [
            (
                "Read /tmp/a1/project/src/main.rs now\n<system-reminder>x\ny</system-reminder>",
                "Read {{cwd}}/src/main.rs now",
            ),
            (
                "ran toolu_01Ab in 12.5ms on 2026-01-02T03:04:05Z",
                "ran toolu_9x in 3 ms on 2025-11-12",
            ),
            (
                "at 0b6b2d3e-5c1f-4c8f-9d3a-0123456789ab, `C:\\Users\\jo\\a.txt`",
                "at ffffffff-5c1f-4c8f-9d3a-0123456789ab, `/x/a.txt`",
            ),
        ];
        for (left, right) in same {
            assert_eq!(normalised(left), normalised(right));
        }
        for (left, right) in [
            ("Read /a/b.rs", "Read /a/c.rs"),
            ("see https://a.b/c", "see https://a.b/d"),
            ("3 files", "4 files"),
        ] {
            assert_ne!(normalised(left), normalised(right));
        }
    }

    #[test]
    fn placeholders_are_filled_as_their_field_needs_it() {
        let place = Place {
            cwd: Some(r"C:\w".to_owned()),
            home: None,
        };
        let mut value =
            serde_json::json!({"partial_json": "{\"p\":\"{{cwd}}\"}", "text": ["{{cwd}} {{home}}"]});
        place.fill(&mut value);
        assert_eq!(
            value,
            serde_json::json!({"partial_json": "{\"p\":\"C:\\\\w\"}", "text": ["C:\\w {{home}}"]})
        );
    }
}
