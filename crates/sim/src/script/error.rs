//! From a file to a script, and what can be wrong with it.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_saphyr::Error;

use super::place::Position;
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
    if file.is_some() && text.lines().all(is_nothing) {
        // Of a file that was truncated or misnamed, everything would hold.
        return Err(ScriptError {
            file: file.map(str::to_owned),
            at: None,
            what: "the file is empty, and a script has at least `prompts: []`".to_owned(),
        });
    }
    let mut script: Script = read_yaml(text, file)?;
    script.source = Source(file.map(Arc::from));
    match script.mistakes().into_iter().next() {
        None => Ok(script),
        Some((at, what)) => Err(ScriptError {
            file: file.map(str::to_owned),
            at,
            what,
        }),
    }
}

/// Whether a line of YAML has no value: a blank, a comment, a mark of a document.
fn is_nothing(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#') || line == "---" || line == "..."
}

/// Reads any type from YAML; errors have their place.
pub(super) fn read_yaml<T: DeserializeOwned>(text: &str, file: Option<&str>) -> Result<T, ScriptError> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        // `yes` and `no` are texts here, as in YAML 1.2.
        strict_booleans: true,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let text = explain(error.without_snippet());
        let (at, what) = match unmark(&text) {
            Some((at, what)) => (Some(at), what.to_owned()),
            None => (error.location().and_then(Position::of), text),
        };
        ScriptError {
            file: file.map(str::to_owned),
            at,
            what,
        }
    })
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

fn explain(error: &Error) -> String {
    match error {
        Error::SerdeUnknownField { field, expected, .. } => unknown("field", field, expected),
        Error::SerdeUnknownVariant {
            variant, expected, ..
        } => unknown("word", variant, expected),
        Error::SerdeMissingField { field, .. } => format!("the field `{field}` is missing"),
        Error::DuplicateMappingKey { key, .. } => match key {
            Some(key) => format!("the field `{key}` is given twice"),
            None => "a field is given twice".to_owned(),
        },
        Error::ExpectedMappingEndAfterEnumVariantValue { .. } => {
            "one thing too many: this takes a mapping with one key (a step is one item of the list)"
                .to_owned()
        }
        Error::ExternallyTaggedEnumExpectedScalarOrMapping { .. } => {
            "this takes a word, or a mapping with one key".to_owned()
        }
        error => {
            // Separates the place from the text.
            let text = error.to_string();
            match text.rsplit_once(" at line ") {
                Some((text, _)) => text.to_owned(),
                None => text,
            }
        }
    }
}
