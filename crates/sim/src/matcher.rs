//! Expectations of lines.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

/// A description of a line from the client, by meaning: key order, spacing and keys that it does not name are free.
#[derive(Clone)]
pub struct Match {
    parts: Vec<PatternPart>,
}

#[derive(Clone)]
enum PatternPart {
    Partial(Value),
    Text(String),
    Test(String, Arc<dyn Fn(&Value) -> bool + Send + Sync>),
}

impl Match {
    /// Any line.
    pub fn any() -> Self {
        Self { parts: Vec::new() }
    }

    /// A line of this `type`.
    pub fn kind(kind: &str) -> Self {
        Self::partial(json!({"type": kind}))
    }

    /// A control request of this subtype.
    pub fn request(subtype: &str) -> Self {
        Self::partial(json!({"type": "control_request", "request": {"subtype": subtype}}))
    }

    /// A control response with a success payload that holds at least this.
    pub fn success(payload: Value) -> Self {
        Self::partial(
            json!({"type": "control_response", "response": {"subtype": "success", "response": payload}}),
        )
    }

    /// A control response that is an error.
    pub fn error() -> Self {
        Self::partial(json!({"type": "control_response", "response": {"subtype": "error"}}))
    }

    /// A prompt whose text is exactly this.
    pub fn prompt(text: impl Into<String>) -> Self {
        let mut this = Self::kind("user");
        this.parts.push(PatternPart::Text(text.into()));
        this
    }

    /// A line that holds at least this: objects may have more keys, lists must have the same length.
    pub fn partial(pattern: Value) -> Self {
        Self {
            parts: vec![PatternPart::Partial(pattern)],
        }
    }

    /// A line that satisfies a test; `name` stands for it in the report.
    pub fn test(name: impl Into<String>, test: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        Self {
            parts: vec![PatternPart::Test(name.into(), Arc::new(test))],
        }
    }

    /// How a line differs; `None` if it matches.
    pub fn flaw(&self, line: &Value) -> Option<String> {
        self.parts.iter().find_map(|part| match part {
            PatternPart::Partial(pattern) => difference(pattern, line, "$"),
            PatternPart::Text(text) => {
                let got = prompt_text(line);
                (got != *text).then(|| format!("its text is {got:?}"))
            }
            PatternPart::Test(name, test) => (!test(line)).then(|| format!("not {name}")),
        })
    }
}

setters! { Match:
    /// Demands this as well.
    and(other: impl Into<Self>) => parts.extend(other.into().parts);
}

/// A `type`, or `type/subtype` where the subtype of a control request or response is that of its payload.
impl From<&str> for Match {
    fn from(kind: &str) -> Self {
        match kind.split_once('/') {
            None => Self::kind(kind),
            Some(("control_request", subtype)) => Self::request(subtype),
            Some(("control_response", subtype)) => {
                Self::partial(json!({"type": "control_response", "response": {"subtype": subtype}}))
            }
            Some((kind, subtype)) => Self::partial(json!({"type": kind, "subtype": subtype})),
        }
    }
}

impl From<Value> for Match {
    fn from(pattern: Value) -> Self {
        Self::partial(pattern)
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.parts.is_empty() {
            return f.write_str("any line");
        }
        for (n, part) in self.parts.iter().enumerate() {
            if n > 0 {
                f.write_str(" and ")?;
            }
            match part {
                PatternPart::Partial(pattern) => write!(f, "{pattern}")?,
                PatternPart::Text(text) => write!(f, "the text {text:?}")?,
                PatternPart::Test(name, _) => f.write_str(name)?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Match({self})")
    }
}

/// The text of a prompt: its string content, or its text blocks joined by line breaks.
pub(super) fn prompt_text(line: &Value) -> String {
    match &line["message"]["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// The place where a value lacks a part of the pattern.
fn difference(pattern: &Value, value: &Value, path: &str) -> Option<String> {
    match (pattern, value) {
        (Value::Object(pattern), Value::Object(value)) => pattern.iter().find_map(|(key, wanted)| {
            let path = format!("{path}.{key}");
            match value.get(key) {
                Some(got) => difference(wanted, got, &path),
                None => Some(format!("{path} is missing")),
            }
        }),
        (Value::Array(pattern), Value::Array(value)) => {
            if pattern.len() != value.len() {
                return Some(format!("{path} has {} items, not {}", value.len(), pattern.len()));
            }
            let items = pattern.iter().zip(value).enumerate();
            items
                .map(|(n, (wanted, got))| difference(wanted, got, &format!("{path}[{n}]")))
                .find_map(|flaw| flaw)
        }
        (Value::Number(wanted), Value::Number(got)) if wanted.as_f64() == got.as_f64() => None,
        _ if pattern == value => None,
        _ => Some(format!("{path} is {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching_is_partial_and_says_where_it_fails() {
        let line = json!({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]}, "n": 5});
        assert_eq!(Match::prompt("hi").and(json!({"n": 5.0})).flaw(&line), None);
        assert_eq!(Match::from("user").flaw(&line), None);
        assert_eq!(Match::prompt("ho").flaw(&line).unwrap(), "its text is \"hi\"");
        let wrong = Match::partial(json!({"message": {"content": [{"type": "image"}]}}));
        assert_eq!(
            wrong.flaw(&line).unwrap(),
            "$.message.content[0].type is \"text\""
        );
        assert_eq!(
            Match::partial(json!({"x": null})).flaw(&line).unwrap(),
            "$.x is missing"
        );
        assert!(Match::request("interrupt").flaw(&line).is_some());
    }
}
