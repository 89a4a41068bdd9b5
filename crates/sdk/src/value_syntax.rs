//! Checks single values for what the CLI would reject, misread or silently drop.

use serde_json::Value;

/// A permission rule: `Tool` or `Tool(what)`.
///
/// The CLI splits a list of rules at every comma and blank that is not between parentheses. It knows no escape, and takes the first
/// closing parenthesis for the end, whatever was opened: to it `Bash(f(), Bash)` is three rules, of which one is `Bash`. A rule that
/// breaks this would become several, or swallow its neighbours.
pub(crate) fn rule(rule: &str) -> Result<(), &'static str> {
    if rule.is_empty() {
        return Err("holds an empty entry: leave it out");
    }
    if rule.chars().any(char::is_control) {
        return Err("holds a control character, which no rule may");
    }
    let mut depth = 0usize;
    let mut closed = false;
    let mut seems_closed = false;
    for c in rule.chars() {
        if seems_closed && depth > 0 && (c == ',' || c.is_whitespace()) {
            return Err(
                "holds a comma or a blank behind an inner closing parenthesis, where the CLI would split it: put a `*` there",
            );
        }
        match c {
            '(' => seems_closed = false,
            ')' => seems_closed = true,
            _ => {}
        }
        match c {
            _ if closed => return Err("goes on after its closing parenthesis, where a rule ends"),
            '(' => depth += 1,
            ')' if depth == 0 => return Err("has a closing parenthesis too many"),
            ')' => {
                depth -= 1;
                closed = depth == 0;
            }
            ',' if depth == 0 => return Err("holds a comma outside parentheses: give each rule by itself"),
            c if depth == 0 && c.is_whitespace() => {
                return Err("holds a blank outside parentheses, where the CLI would split it");
            }
            _ => {}
        }
    }
    match depth {
        0 if rule.starts_with('(') => Err("names no tool before its parenthesis"),
        0 => Ok(()),
        _ => Err("lacks a closing parenthesis; the CLI knows no escape for one"),
    }
}

/// An entry of a list that the CLI splits at commas and blanks.
pub(crate) fn word(word: &str) -> Result<(), &'static str> {
    if word.is_empty() {
        return Err("holds an empty entry: leave it out");
    }
    if word
        .chars()
        .any(|c| c.is_control() || c.is_whitespace() || matches!(c, ',' | '(' | ')'))
    {
        return Err(
            "holds a comma, a blank, a parenthesis or a control character: give each entry by itself",
        );
    }
    Ok(())
}

/// The name of a skill. It becomes `Skill(name)`, so it must not be able to close the parenthesis or to match more.
pub(crate) fn skill(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("holds an empty entry: leave it out");
    }
    if name.trim() != name {
        return Err("begins or ends with a blank");
    }
    if name
        .chars()
        .any(|c| c.is_control() || matches!(c, '(' | ')' | ',' | '\u{feff}'))
    {
        return Err("holds a parenthesis, a comma or a control character");
    }
    if name == "*" || name.ends_with(":*") || name.ends_with(" *") {
        return Err("is a pattern; use `Skills::All` for all skills");
    }
    if name.starts_with('/') {
        return Err("begins with a slash; give the name without it");
    }
    if name.contains("\\\\") || name.ends_with('\\') {
        return Err("holds a double backslash or ends with a backslash");
    }
    Ok(())
}

/// The name of an MCP tool as its server has it. The CLI skips those in the model's spelling silently.
pub(crate) fn own_name(name: &str) -> Result<(), &'static str> {
    if name.starts_with("mcp__") {
        return Err("begins with mcp__; give the name that the server uses");
    }
    self::name(name)
}

/// A name that becomes a key of a JSON object.
pub(crate) fn name(name: &str) -> Result<(), &'static str> {
    if name.trim().is_empty() {
        return Err("holds an empty entry: leave it out");
    }
    if name.chars().any(char::is_control) {
        return Err("holds a control character");
    }
    Ok(())
}

/// A UUID in its usual form, as `--session-id` and `--resume-session-at` want it.
pub(crate) fn uuid(id: &str) -> Result<(), &'static str> {
    let groups: Vec<&str> = id.split('-').collect();
    let lengths = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]);
    if lengths
        && groups
            .iter()
            .all(|group| group.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        Ok(())
    } else {
        Err("is no UUID, such as 01234567-89ab-4cde-8f01-23456789abcd")
    }
}

/// The name of a flag, without its dashes.
pub(crate) fn flag(name: &str) -> Result<(), &'static str> {
    if name.starts_with('-') {
        return Err("begins with a dash: give the name without dashes");
    }
    if name.len() < 2 {
        return Err("is too short: give the long name of the flag");
    }
    let mut bytes = name.bytes();
    let sound = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric())
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if sound {
        Ok(())
    } else {
        Err("is no flag name: letters, digits, `-` and `_` only")
    }
}

/// The name of an environment variable.
pub(crate) fn variable(name: &std::ffi::OsStr) -> Result<(), &'static str> {
    let bytes = name.as_encoded_bytes();
    if bytes.is_empty() {
        return Err("has an empty name");
    }
    if bytes.contains(&b'=') || bytes.contains(&0) {
        return Err("has a name with `=` or a NUL character in it");
    }
    Ok(())
}

/// A JSON Schema, as far as its own form goes. In `initialize` a bad one silently turns structured output off.
pub(crate) fn schema(schema: &Value) -> Result<(), &'static str> {
    match schema {
        Value::Object(_) => subschema(schema),
        _ => Err("is no JSON object"),
    }
}

const TYPES: &[&str] = &[
    "null", "boolean", "object", "array", "number", "integer", "string",
];

fn subschema(schema: &Value) -> Result<(), &'static str> {
    let keywords = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(keywords) => keywords,
        _ => return Err("holds a subschema that is neither an object nor a boolean"),
    };
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            ("type", Value::String(name)) if TYPES.contains(&name.as_str()) => {}
            ("type", Value::Array(names))
                if !names.is_empty()
                    && names
                        .iter()
                        .all(|name| name.as_str().is_some_and(|name| TYPES.contains(&name))) => {}
            ("type", _) => return Err("holds a `type` that JSON Schema does not know"),
            ("required", Value::Array(names)) if names.iter().all(Value::is_string) => {}
            ("required", _) => return Err("holds a `required` that is no list of strings"),
            ("enum", Value::Array(_)) => {}
            ("enum", _) => return Err("holds an `enum` that is no list"),
            ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(schemas)) => {
                schemas.values().try_for_each(subschema)?;
            }
            ("properties" | "patternProperties" | "$defs" | "definitions", _) => {
                return Err("holds `properties` or definitions that are no object");
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) if !schemas.is_empty() => {
                schemas.iter().try_for_each(subschema)?;
            }
            ("anyOf" | "oneOf" | "allOf", _) => {
                return Err("holds an `anyOf`, `oneOf` or `allOf` that is no list, or an empty one");
            }
            ("items", Value::Array(schemas)) => schemas.iter().try_for_each(subschema)?,
            (
                "items"
                | "additionalProperties"
                | "not"
                | "contains"
                | "propertyNames"
                | "if"
                | "then"
                | "else",
                inner,
            ) => {
                subschema(inner)?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What CLI 2.1.330 took apart or swallowed is refused, what it understood is not.
    #[test]
    fn rules() {
        for good in [
            "Read",
            "Bash(git log:*)",
            "Bash(a,b)",
            "Bash(a b(c)d)",
            "Bash(x(y))",
            "Bash()",
            "mcp__a__b",
            "mcp__a__*",
            "Edit(-x)",
        ] {
            assert_eq!(rule(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            " Read",
            "Read ",
            "Bash Read",
            "Bash,Read",
            "Bash(a",
            "Bash)",
            "Bash(a)Read",
            "Bash(a) Read",
            "Bash(x\\(y)",
            // These are three rules to the CLI, and one is for all commands.
            "Bash(f(),Bash,x)",
            "Bash(f() Bash x)",
            "Bash(x(y(z)a)\u{a0}b)",
        ] {
            assert!(rule(bad).is_err(), "{bad:?}");
        }
        for bad in ["Bash\tRead", "Bash\nRead", "Bash\u{a0}Read", "Bash(a\0)", "(a)"] {
            assert!(rule(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn skills() {
        for good in ["pdf", "my skill", "plugin:skill", "a\\b", "ünï"] {
            assert_eq!(skill(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            " a",
            "a ",
            "a(b",
            "a)",
            "a,b",
            "*",
            "a:*",
            "a *",
            "/a",
            "a\\\\b",
            "a\\",
            "a\nb",
            "a\u{feff}b",
        ] {
            assert!(skill(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn ids_and_flags() {
        assert_eq!(uuid("01234567-89ab-4cde-8f01-23456789abcd"), Ok(()));
        for bad in [
            "",
            "x",
            "0123456789ab4cde8f0123456789abcd",
            "01234567-89ab-4cde-8f01-23456789abcg",
            "--version",
        ] {
            assert!(uuid(bad).is_err(), "{bad}");
        }
        for good in ["chrome", "no-chrome", "x2_y"] {
            assert_eq!(flag(good), Ok(()));
        }
        for bad in ["", "p", "-p", "--chrome", "a=b", "a b", "ä", "-", "a\0"] {
            assert!(flag(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn schemas() {
        let good = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": ["string", "null"]}, "b": true},
            "additionalProperties": false, "$defs": {"x": {"anyOf": [{"enum": [1]}]}}});
        assert_eq!(schema(&good), Ok(()));
        for bad in [
            json!([]),
            json!({"type": 7}),
            json!({"type": "strin"}),
            json!({"type": []}),
            json!({"required": "a"}),
            json!({"properties": []}),
            json!({"properties": {"a": 1}}),
            json!({"items": {"type": "x"}}),
            json!({"anyOf": []}),
            json!({"enum": "x"}),
        ] {
            assert!(schema(&bad).is_err(), "{bad}");
        }
    }
}
