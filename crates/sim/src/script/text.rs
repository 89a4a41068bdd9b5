//! Expectations of texts.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

use super::short::{or_text, short_form, unquoted};

/// A pattern for a text. A bare text must match the whole text exactly.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "snake_case")]
#[schemars(transform = or_text)]
#[non_exhaustive]
pub enum TextMatch {
    /// Exactly this, spaces at both ends aside.
    Exact(String),
    /// The text contains this.
    Contains(String),
    /// This regular expression matches somewhere in the text.
    Regex(Pattern),
}

short_form!(TextMatch, "a text, or a mapping with one of `exact`, `contains` and `regex`",
    YamlValue::Text(text) => Ok(TextMatch::Exact(text)),
    plain @ (YamlValue::Bool(_) | YamlValue::Whole(_) | YamlValue::Fraction(_)) => Err(unquoted(&plain)));

/// A regular expression, in the syntax of the crate `regex`, without Unicode classes.
#[derive(Clone, JsonSchema)]
#[schemars(inline, extend("format" = "regex"))]
pub struct Pattern(#[schemars(with = "String")] regex_lite::Regex);

impl TextMatch {
    /// Whether the text is like that.
    pub fn fits(&self, text: &str) -> bool {
        match self {
            Self::Exact(wanted) => wanted.trim() == text.trim(),
            Self::Contains(part) => text.contains(part.as_str()),
            Self::Regex(pattern) => pattern.0.is_match(text),
        }
    }

    /// Puts what its named groups match in the variables, if the text is like that. A group that takes no part is empty.
    pub(super) fn capture(&self, text: &str, variables: &mut BTreeMap<String, String>) -> bool {
        let Self::Regex(pattern) = self else {
            return self.fits(text);
        };
        let Some(found) = pattern.0.captures(text) else {
            return false;
        };
        for name in self.groups() {
            let value = found.name(name).map_or("", |group| group.as_str());
            variables.insert(name.to_owned(), value.to_owned());
        }
        true
    }

    /// The names of its groups.
    pub(super) fn groups(&self) -> impl Iterator<Item = &str> {
        let pattern = match self {
            Self::Regex(pattern) => Some(pattern),
            _ => None,
        };
        pattern
            .into_iter()
            .flat_map(|pattern| pattern.0.capture_names().flatten())
    }

    /// The expected text.
    pub(super) fn wanted(&self) -> &str {
        match self {
            Self::Exact(text) | Self::Contains(text) => text,
            Self::Regex(pattern) => pattern.0.as_str(),
        }
    }
}

/// A bare text means the whole text.
impl From<&str> for TextMatch {
    fn from(text: &str) -> Self {
        Self::Exact(text.to_owned())
    }
}

impl fmt::Display for TextMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) => write!(f, "{text:?}"),
            Self::Contains(part) => write!(f, "something with {part:?}"),
            Self::Regex(pattern) => write!(f, "something like /{}/", pattern.0.as_str()),
        }
    }
}

impl Pattern {
    /// Compiles one.
    ///
    /// # Errors
    ///
    /// When it is not a regular expression, with the reason.
    pub fn new(pattern: &str) -> Result<Self, String> {
        regex_lite::Regex::new(pattern)
            .map(Self)
            .map_err(|error| format!("`{pattern}` is no regular expression: {error}"))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = super::Placed::<String>::deserialize(deserializer)?;
        Self::new(&text.value).map_err(|what| super::error::at(text.at, &what))
    }
}
