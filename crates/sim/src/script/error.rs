//! From a file to a script, and what can be wrong with it.

use std::cell::LazyCell;
use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::de::DeserializeOwned;
use serde_saphyr::Error;

use super::misfit::{QUOTES, wrong_kind};
use super::place::{Placed, Position};
use super::yaml_value::{YamlValue, place_of};
use super::{Script, Source};
use crate::near::unknown;

/// Why a script cannot be used. Its text names the file, the line and the column, as compilers do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptError {
    /// The file, if it was one.
    pub file: Option<String>,
    /// Where the mistake is, if it has a place.
    pub at: Option<Position>,
    /// The problem.
    pub what: String,
}

impl std::error::Error for ScriptError {}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.file.as_deref().unwrap_or("script"))?;
        if let Some(at) = self.at {
            write!(f, ":{at}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// The place of something wrong, and what is wrong.
pub(super) type Mistake = (Option<Position>, String);

impl ScriptError {
    pub(crate) fn io(file: &str, error: &std::io::Error) -> Self {
        Self {
            file: Some(file.to_owned()),
            at: None,
            what: format!("cannot be read: {error}"),
        }
    }
}

/// Reads a script from YAML.
pub(super) fn read(text: &str, file: Option<&str>) -> Result<Script, ScriptError> {
    let wrong = |(at, what)| ScriptError {
        file: file.map(str::to_owned),
        at,
        what,
    };
    if file.is_some() && text.lines().all(is_nothing) {
        // Of a file that was truncated or misnamed, everything would hold.
        let what = "the file is empty, and a script has at least `prompts: []`";
        return Err(wrong((None, what.to_owned())));
    }
    let mut script: Script = parse(text).map_err(|error| wrong(told(error.without_snippet(), text)))?;
    script.source = Source(file.map(Arc::from));
    let whole = LazyCell::new(|| parse::<Placed<YamlValue>>(text).ok());
    let place = |path: &[&str]| whole.as_ref().and_then(|whole| place_of(whole, path));
    match script.mistakes(&place).into_iter().next() {
        None => Ok(script),
        Some(mistake) => Err(wrong(mistake)),
    }
}

/// Whether a line of YAML has no value: a blank, a comment, a mark of a document.
fn is_nothing(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#') || line == "---" || line == "..."
}

/// Why this text is no script, and where, in words for its author.
fn told(error: &Error, text: &str) -> Mistake {
    let place = error.location().and_then(Position::of);
    let message = error.to_string();
    // The parser puts the place at the end.
    let message = message
        .rsplit_once(" at line ")
        .map_or(&*message, |(what, _)| what);
    if let Some((at, what)) = unmark(message) {
        return (Some(at), what.to_owned());
    }
    if let Some(what) = explain(error) {
        return (place, what);
    }
    wrong_kind(text).unwrap_or_else(|| {
        let what = match error {
            Error::Message { .. } => message.to_owned(),
            Error::Unexpected {
                expected: "string scalar",
                ..
            } => format!("here goes a text: {QUOTES}"),
            Error::Unexpected {
                expected: "mapping start",
                ..
            } => "here goes a mapping: each of its fields is `name: value`".to_owned(),
            Error::Unexpected {
                expected: "sequence start",
                ..
            } => "here goes a list: each item is on a line that begins with `- `".to_owned(),
            _ => "here goes a value of another kind".to_owned(),
        };
        (place, what)
    })
}

/// Reads any type from YAML.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        // `yes` and `no` are texts here, as in YAML 1.2.
        strict_booleans: true,
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// Marks an error's text that knows its place better than the parser.
const MARK: char = '⟦';

/// An error at this place.
pub(crate) fn at<E: serde::de::Error>(at: Option<Position>, what: &str) -> E {
    match at {
        Some(Position { line, column }) => E::custom(format!("{MARK}{line}:{column}{MARK}{what}")),
        None => E::custom(what),
    }
}

/// Takes the place out of an error's text.
fn unmark(text: &str) -> Option<(Position, &str)> {
    let (_, rest) = text.split_once(MARK)?;
    let (place, what) = rest.split_once(MARK)?;
    let (line, column) = place.split_once(':')?;
    let at = Position {
        line: line.parse().ok()?,
        column: column.parse().ok()?,
    };
    Some((at, what))
}

/// What is wrong, if the error knows it. Of a value of a wrong kind, it does not know what it is for.
fn explain(error: &Error) -> Option<String> {
    let text = match error {
        Error::SerdeUnknownField { field, expected, .. } => return Some(unknown("field", field, expected)),
        Error::SerdeUnknownVariant {
            variant, expected, ..
        } => return Some(unknown("word", variant, expected)),
        Error::SerdeMissingField { field, .. } => return Some(format!("the field `{field}` is missing")),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            return Some(format!("the field `{key}` is given twice"));
        }
        Error::DuplicateMappingKey { key: None, .. } => "a field is given twice",
        Error::ExpectedMappingEndAfterEnumVariantValue { .. }
        | Error::Unexpected {
            expected: "mapping end",
            ..
        } => "one thing too many: this takes a mapping with one key (a step is one item of the list)",
        Error::MultipleDocuments { .. } => {
            "`---` begins another document, and a script is one: give each a file of its own"
        }
        Error::UnsupportedTag { .. } | Error::TaggedEnumMismatch { .. } => {
            "a text that begins with `!` goes in quotes"
        }
        Error::UnknownAnchor { .. } => return Some(not_yaml("unknown anchor")),
        Error::MergeValueNotMapOrSeqOfMaps { .. } => "`<<` takes a mapping, or an alias for one",
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "this is too much for a script: aliases repeat too often, or it is nested too deeply"
        }
        Error::NonFiniteFloat { .. } => "this number has no finite value: in quotes it is a text",
        Error::Eof { .. } => "the text ends here in the middle of a value",
        Error::AliasError { error, .. } => return explain(error),
        Error::ExternalMessage { msg, .. } => return Some(not_yaml(msg)),
        _ => return None,
    };
    Some(text.to_owned())
}

/// Words of the parser, and what they mean. The first that occur count.
static MEANINGS: LazyLock<Vec<(String, String)>> =
    LazyLock::new(|| serde_json::from_str(include_str!("yaml_errors.json")).unwrap_or_default());

/// What is wrong with a text that is no YAML. The parser's own words are about its grammar.
fn not_yaml(told: &str) -> String {
    let found = MEANINGS.iter().find(|(words, _)| told.contains(words.as_str()));
    found.map_or_else(
        || "this is no YAML: put texts with special characters in quotes".to_owned(),
        |(_, meaning)| meaning.clone(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_parser_are_read() {
        assert_eq!(MEANINGS.len(), 30);
    }
}
