//! Strings that must not be shown, and where they are found.

use std::fmt;

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::JsonObject;
use serde::Serialize;
use serde_json::Value;

use super::{CUSTOM_HEADERS, Encoded};

/// A key or token. Neither `Debug` nor `Display` shows it; [`Secret::reveal`] does.
///
/// It is not erased from memory when dropped: the child's environment holds a copy anyway.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps a key or token.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into().into_boxed_str())
    }

    /// The value itself, not redacted.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether the secret is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Words in a name that make its value a secret.
const SECRETIVE: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "apikey",
    "api_key",
    "api-key",
    "authorization",
    "bearer",
    "credential",
];

pub(super) fn sounds_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    SECRETIVE.iter().any(|word| text.contains(word))
}

/// Whether JSON holds an environment, headers, or a string under a name that sounds secret. Better once too often.
pub(super) fn looks_secret(json: &JsonObject) -> bool {
    // What is nested too deep to look at is not shown around.
    json.to_value().map_or(true, |value| {
        let mut found = false;
        walk(&value, &mut |_, _| found = true);
        found
    })
}

/// Reports each value of an environment and of headers, and each string under a name that sounds secret, with its name.
fn walk(value: &Value, found: &mut impl FnMut(&str, &str)) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    ("env" | "headers", Value::Object(variables)) => {
                        for (name, value) in variables {
                            match value {
                                Value::String(text) => found(name, text),
                                other => found(name, &other.to_string()),
                            }
                        }
                    }
                    // A command that prints a key is no secret.
                    (key, Value::String(text)) if !key.ends_with("Helper") => {
                        if sounds_secret(key) && !text.is_empty() {
                            found(key, text);
                        }
                    }
                    (_, value) => walk(value, found),
                }
            }
        }
        Value::Array(values) => {
            for value in values {
                walk(value, found);
            }
        }
        _ => {}
    }
}

/// The secrets of a session, to be redacted in what the CLI writes.
#[derive(Default)]
pub(crate) struct Secrets(Vec<Secret>);

impl Secrets {
    /// Adds the value of a variable or a header.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        if name == CUSTOM_HEADERS {
            let headers = value.lines().filter_map(|line| line.split_once(':'));
            headers.for_each(|(name, value)| self.add(name, value.trim()));
        } else if value.len() >= 8 {
            // Redacting "1" or "true" would make everything unreadable and hide nothing.
            self.0.push(value.into());
        }
    }

    /// Adds those in settings.
    pub(crate) fn add_settings<T>(&mut self, settings: &Encoded<T>) {
        if let Some(json) = settings.json() {
            self.add_below(json);
        }
    }

    /// Adds those in what is sent to the CLI as JSON.
    pub(crate) fn add_below(&mut self, value: &impl Serialize) {
        if let Ok(value) = RawJson::encode(value).and_then(|json| json.to_value()) {
            walk(&value, &mut |name, value| self.add(name, value));
        }
    }

    pub(crate) fn into_list(self) -> Vec<Secret> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_shown() {
        let secret = Secret::new("sk-ant-1");
        assert_eq!(
            format!("{secret:?} {secret} {secret:#?}"),
            "Secret(…) … Secret(…)"
        );
        assert_eq!(secret.reveal(), "sk-ant-1");
    }
}
