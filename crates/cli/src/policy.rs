//! `--policy`: rules from a file, before anybody is asked.

use std::path::Path;

use anyhow::anyhow;
use outrigger::permissions::{Policy, PolicyError, PolicyFile};

use crate::exit::{Failure, Status};
use crate::text_file;

/// Reads a file in TOML or JSON: by its extension, else by whether it begins like a JSON object.
///
/// # Errors
/// When it can't be read, or any of it can't be understood: with the line and the key.
pub(crate) fn read(path: &Path) -> Result<Policy, Failure> {
    let wrong = |error: anyhow::Error| {
        Failure::new(
            Status::Usage,
            error.context(format!("--policy: {}", path.display())),
        )
    };
    let text = text_file::read(path).map_err(|error| wrong(anyhow!("cannot read it: {error}")))?;
    let is_json = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => true,
        Some("toml") => false,
        _ => text.trim_start().starts_with('{'),
    };
    let file = if is_json { json(&text) } else { toml(&text) };
    let file = file.map_err(|error| wrong(error.into_error()))?;
    file.policy()
        .map_err(|error| wrong(Wrong::of_policy(&text, &error).into_error()))
}

/// What is wrong with a file.
#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    line: Option<usize>,
    /// The key, where that is known and the message doesn't name it.
    key: String,
    message: String,
}

impl Wrong {
    fn into_error(self) -> anyhow::Error {
        let line = self.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let key = match self.key.as_str() {
            "" | "." | "?" => String::new(),
            key => format!("in `{key}`: "),
        };
        anyhow!("{line}{key}{}", self.message)
    }

    /// A rule that is wrong stands in some line; what contradicts itself may stand in many.
    fn of_policy(text: &str, error: &PolicyError) -> Self {
        let line = match error {
            PolicyError::Rule { error, .. } => {
                // The rule as it stands between quotes, in either format.
                let written = serde_json::to_string(error.rule()).unwrap_or_default();
                let written = written.trim_matches('"');
                text.lines()
                    .position(|line| line.contains(written) || line.contains(error.rule()))
            }
            _ => text.lines().position(|line| line.contains("read_only")),
        };
        Self {
            line: line.map(|index| index + 1),
            key: String::new(),
            message: error.to_string(),
        }
    }
}

fn json(text: &str) -> Result<PolicyFile, Wrong> {
    let wrong = |key: String, error: &serde_json::Error| {
        let message = error.to_string();
        // The place is told in front.
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        Wrong {
            line: Some(error.line()),
            key,
            message,
        }
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let file = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| wrong(error.path().to_string(), error.inner()))?;
    reader.end().map_err(|error| wrong(String::new(), &error))?;
    Ok(file)
}

fn toml(text: &str) -> Result<PolicyFile, Wrong> {
    let wrong = |key: String, error: &toml::de::Error| Wrong {
        line: error
            .span()
            .and_then(|span| text.get(..span.start))
            .map(|before| before.matches('\n').count() + 1),
        key,
        message: error.message().to_owned(),
    };
    let reader = toml::Deserializer::parse(text).map_err(|error| wrong(String::new(), &error))?;
    serde_path_to_error::deserialize(reader).map_err(|error| wrong(error.path().to_string(), error.inner()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(read: fn(&str) -> Result<PolicyFile, Wrong>, text: &str) -> String {
        let wrong = match read(text) {
            Err(wrong) => wrong,
            Ok(file) => Wrong::of_policy(text, &file.policy().expect_err(text)),
        };
        wrong.into_error().to_string()
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_key() {
        for (text, line, words) in [
            (
                "default = \"deny\"\nalow = []",
                "line 2: ",
                "unknown field `alow`",
            ),
            (
                "allow = [\n  \"Bash\",\n  3,\n]",
                "line 3: ",
                "in `allow[1]`: invalid type",
            ),
            ("deny = [\n\"Bash(\"]", "line 2: ", "in `deny` the rule `Bash(`"),
            ("default = \"maybe\"", "line 1: ", "in `default`: unknown variant"),
            ("allow = [", "line 1: ", "array"),
            ("default = \"allow\"\nread_only = true", "line 2: ", "contradict"),
        ] {
            let said = said(toml, text);
            assert!(said.starts_with(line) && said.contains(words), "{text}: {said}");
        }
        for (text, line, words) in [
            (
                "{\"default\": \"deny\",\n\"alow\": []}",
                "line 2: ",
                "unknown field `alow`",
            ),
            ("{\"allow\": [\n3]}", "line 2: ", "in `allow[0]`: invalid type"),
            (
                "{\"ask\": [\n\"Bash(\"]}",
                "line 2: ",
                "in `ask` the rule `Bash(`",
            ),
            ("{\"allow\": [}", "line 1: ", "expected value"),
            ("{}\nx", "line 2: ", "trailing characters"),
        ] {
            let said = said(json, text);
            assert!(said.starts_with(line) && said.contains(words), "{text}: {said}");
            assert!(!said.contains(" at line "), "{said}");
        }
    }
}
