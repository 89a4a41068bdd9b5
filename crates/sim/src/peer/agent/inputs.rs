//! The forms of a tool's input.
//!
//! An input has three of them: the one in the assistant message ([`written`]), the one that hooks, permission requests
//! and `permission_denials` have ([`read`], with [`placed`] paths), and the one the tool runs with, which is that of
//! [`read`] unless somebody changed it. `tool_inputs.json` has the fields of the built-in tools.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::paths;

/// A template of ours; a test reads it.
static TOOLS: LazyLock<BTreeMap<String, InputShape>> =
    LazyLock::new(|| serde_json::from_str(include_str!("tool_inputs.json")).unwrap_or_default());

/// Tools of which the assistant message has the form of [`read`], if there is one.
const WRITTEN_AS_READ: &[&str] = &["Bash", "Edit", "Write"];

/// The fields of a tool's input.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InputShape {
    /// Whether unknown fields are an error; else they are dropped.
    strict: bool,
    /// Whether unknown fields are kept.
    #[serde(default)]
    keeps_unknown: bool,
    /// The field with a path that is made absolute.
    path: Option<String>,
    #[serde(deserialize_with = "in_order")]
    fields: Vec<(String, Field)>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    is: JsonKind,
    #[serde(default)]
    required: bool,
    default: Option<Value>,
    /// Whether the assistant message has it as the model wrote it, also when it is read as another type.
    #[serde(default)]
    late: bool,
    #[serde(default)]
    trimmed: bool,
    #[serde(default)]
    url: bool,
    one_of: Option<Vec<String>>,
    /// The smallest length.
    least: Option<usize>,
    /// Smaller numbers count as absent.
    dropped_below: Option<i64>,
    /// The fields of each item.
    #[serde(default, deserialize_with = "maybe_in_order")]
    items: Option<Vec<(String, Field)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum JsonKind {
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
    /// An object whose values are strings, or lists of them.
    Record,
    Any,
}

fn in_order<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, Field)>, D::Error> {
    let fields = Map::<String, Value>::deserialize(from)?.into_iter();
    fields
        .map(|(name, field)| Ok((name, Field::deserialize(field).map_err(serde::de::Error::custom)?)))
        .collect()
}

fn maybe_in_order<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<(String, Field)>>, D::Error> {
    in_order(from).map(Some)
}

impl JsonKind {
    fn of(value: &Value) -> &'static str {
        match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }

    fn named(name: Option<&str>) -> Self {
        match name {
            Some("string") => Self::String,
            Some("number") => Self::Number,
            Some("integer") => Self::Integer,
            Some("boolean") => Self::Boolean,
            Some("array") => Self::Array,
            Some("object") => Self::Object,
            _ => Self::Any,
        }
    }

    /// What the value should have been; none if it fits.
    fn expected(self, value: &Value) -> Option<&'static str> {
        let (fits, name) = match self {
            Self::String => (value.is_string(), "string"),
            Self::Number => (value.is_number(), "number"),
            Self::Integer if value.is_number() => (value.as_f64().is_some_and(|n| n.fract() == 0.0), "int"),
            Self::Integer => (false, "number"),
            Self::Boolean => (value.is_boolean(), "boolean"),
            Self::Array => (value.is_array(), "array"),
            Self::Object => (value.is_object(), "object"),
            Self::Record => (value.is_object(), "record"),
            Self::Any => (true, "any"),
        };
        (!fits).then_some(name)
    }

    /// What a string stands for that should have been of this kind.
    fn converted(self, text: &str) -> Option<Value> {
        let value = match self {
            Self::String | Self::Any => return None,
            Self::Boolean => serde_json::from_str::<Value>(text).ok()?,
            Self::Number | Self::Integer => {
                let text = text.trim();
                let plain = text.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-');
                serde_json::from_str::<Value>(text).ok().filter(|_| plain)?
            }
            Self::Array | Self::Object | Self::Record => serde_json::from_str(text).ok()?,
        };
        let right = match self {
            Self::Integer => value.is_number(),
            _ => self.expected(&value).is_none(),
        };
        right.then_some(value)
    }
}

/// The input as the assistant message has it.
pub(super) fn written(tool: &str, schema: Option<&Value>, input: &Value, cwd: &Path) -> Value {
    let Value::Object(fields) = input else {
        return json!({});
    };
    let mut fields = fields.clone();
    if let Some(schema) = schema {
        for (name, value) in &mut fields {
            let kind = JsonKind::named(schema["properties"][name]["type"].as_str());
            let converted = value.as_str().and_then(|text| kind.converted(text));
            if let Some(converted) = converted.filter(|value| kind.expected(value).is_none()) {
                *value = converted;
            }
        }
        return Value::Object(fields);
    }
    let Some(shape) = TOOLS.get(tool) else {
        return Value::Object(fields);
    };
    if WRITTEN_AS_READ.contains(&tool) {
        let Ok(mut read) = read(tool, input) else {
            return Value::Object(fields);
        };
        tidy(tool, &mut read, cwd);
        return read;
    }
    for (name, field) in shape.fields.iter().filter(|(_, field)| !field.late) {
        let text = fields.get(name).and_then(Value::as_str);
        let converted = text.and_then(|text| field.is.converted(text));
        if let Some(converted) = converted {
            fields.insert(name.clone(), converted);
        }
    }
    Value::Object(fields)
}

/// Takes away what has no effect: going to the directory one is in, and spaces at the ends of lines.
fn tidy(tool: &str, input: &mut Value, cwd: &Path) {
    if tool == "Bash" {
        let here = format!("cd {} && ", cwd.display());
        let rest = input["command"]
            .as_str()
            .and_then(|line| line.strip_prefix(&here));
        if let Some(rest) = rest.map(str::to_owned) {
            input["command"] = json!(rest);
        }
        return;
    }
    let path = input["file_path"].as_str().unwrap_or_default().to_lowercase();
    // In Markdown they break lines.
    if path.ends_with(".md") || path.ends_with(".mdx") {
        return;
    }
    let key = if tool == "Edit" { "new_string" } else { "content" };
    if let Some(text) = input[key].as_str() {
        let lines = text.split('\n').map(|line| match line.strip_suffix('\r') {
            Some(line) => format!("{}\r", line.trim_end()),
            None => line.trim_end().to_owned(),
        });
        input[key] = json!(lines.collect::<Vec<_>>().join("\n"));
    }
}

/// What is wrong with an input.
#[derive(Default)]
struct InputFlaws {
    missing: Vec<String>,
    unexpected: Vec<String>,
    mistyped: Vec<String>,
    /// With the place of each.
    others: Vec<(String, Value)>,
}

impl InputFlaws {
    fn check(&mut self, fields: &[(String, Field)], input: &mut Map<String, Value>, place: &str) {
        for (name, field) in fields {
            let path = format!("{place}{name}");
            let Some(value) = input.get_mut(name) else {
                match &field.default {
                    Some(default) => {
                        input.insert(name.clone(), default.clone());
                    }
                    None if field.required => {
                        self.missing
                            .push(format!("The required parameter `{path}` is missing"));
                    }
                    None => {}
                }
                continue;
            };
            if let (true, Some(text)) = (place.is_empty(), value.as_str())
                && let Some(converted) = field.is.converted(text)
            {
                *value = converted;
            }
            if let (true, Some(text)) = (field.trimmed, value.as_str()) {
                *value = json!(text.trim());
            }
            if let Some(expected) = field.is.expected(value) {
                let seen = JsonKind::of(value);
                self.mistyped.push(format!(
                    "The parameter `{path}` type is expected as `{expected}` but provided as `{seen}`"
                ));
                continue;
            }
            if let (JsonKind::Record, Some(values)) = (field.is, value.as_object()) {
                let is_text = |value: &Value| match value {
                    Value::Array(items) => items.iter().all(Value::is_string),
                    value => value.is_string(),
                };
                let others = values.iter().filter(|(_, value)| !is_text(value));
                self.mistyped.extend(others.map(|(key, value)| {
                    let seen = JsonKind::of(value);
                    format!(
                        "The parameter `{path}.{key}` type is expected as `string` but provided as `{seen}`"
                    )
                }));
            }
            if let Some(issue) = field.issue(&path, value) {
                self.others.push((path.clone(), issue));
            }
            let too_small = |least: i64| value.as_f64().is_some_and(|number| number < least as f64);
            if field.dropped_below.is_some_and(too_small) {
                input.shift_remove(name);
                continue;
            }
            if let (Some(items), Some(values)) = (&field.items, value.as_array_mut()) {
                for (number, value) in values.iter_mut().enumerate() {
                    if let Some(value) = value.as_object_mut() {
                        value.retain(|key, _| items.iter().any(|(name, _)| name == key));
                        self.check(items, value, &format!("{path}[{number}]."));
                    }
                }
            }
        }
        // The fields are read in their own order, whatever that of the model was.
        let mut given = std::mem::take(input);
        let known = fields
            .iter()
            .filter_map(|(name, _)| given.shift_remove_entry(name));
        input.extend(known.collect::<Vec<_>>());
        input.extend(given);
    }

    fn report(self, tool: &str) -> Result<(), String> {
        let Self {
            missing,
            unexpected,
            mistyped,
            others,
        } = self;
        let mut lines = [missing, unexpected, mistyped].concat();
        if lines.is_empty() {
            if others.is_empty() {
                return Ok(());
            }
            let issues: Vec<Value> = others.into_iter().map(|(_, issue)| issue).collect();
            return Err(serde_json::to_string_pretty(&issues).unwrap_or_default());
        }
        lines.extend(others.iter().map(|(path, issue)| {
            let message = issue["message"].as_str().unwrap_or_default();
            format!("The parameter `{path}` is invalid: {message}")
        }));
        let issues = if lines.len() == 1 { "issue" } else { "issues" };
        Err(format!(
            "{tool} failed due to the following {issues}:\n{}",
            lines.join("\n")
        ))
    }
}

impl Field {
    /// What is wrong with a value of the right type.
    fn issue(&self, path: &str, value: &Value) -> Option<Value> {
        let least = self.least.unwrap_or_default();
        match value {
            Value::String(text) => {
                if let Some(known) = self.one_of.as_ref().filter(|known| !known.contains(text)) {
                    let quoted: Vec<String> = known.iter().map(|value| format!("\"{value}\"")).collect();
                    let message = format!("Invalid option: expected one of {}", quoted.join("|"));
                    return Some(
                        json!({"code": "invalid_value", "values": known, "path": [path], "message": message}),
                    );
                }
                if self.url && !text.contains("://") {
                    return Some(
                        json!({"code": "invalid_format", "format": "url", "path": [path], "message": "Invalid URL"}),
                    );
                }
                (text.chars().count() < least).then(|| {
                    let message = format!("Too small: expected string to have >={least} characters");
                    json!({"origin": "string", "code": "too_small", "minimum": least, "inclusive": true, "path": [path], "message": message})
                })
            }
            Value::Array(items) if items.len() < least => {
                let message = format!("Too small: expected array to have >={least} items");
                Some(
                    json!({"origin": "array", "code": "too_small", "minimum": least, "inclusive": true, "path": [path], "message": message}),
                )
            }
            _ => None,
        }
    }
}

/// The input as the tool reads it: converted, with defaults. The error says what is wrong with it.
pub(super) fn read(tool: &str, input: &Value) -> Result<Value, String> {
    read_as(tool, input, true)
}

/// What is wrong with an input that came from the host, which may have fields that the tool does not know.
pub(super) fn check(tool: &str, input: &Value) -> Result<(), String> {
    read_as(tool, input, false).map(|_| ())
}

fn read_as(tool: &str, input: &Value, strictly: bool) -> Result<Value, String> {
    let mut fields = input.as_object().cloned().unwrap_or_default();
    let Some(shape) = TOOLS.get(tool) else {
        return Ok(Value::Object(fields));
    };
    let mut flaws = InputFlaws::default();
    if !shape.keeps_unknown {
        let known = |key: &String| shape.fields.iter().any(|(name, _)| name == key);
        if shape.strict && strictly {
            let unknown = fields.keys().filter(|key| !known(key));
            let line = |key| format!("An unexpected parameter `{key}` was provided");
            flaws.unexpected.extend(unknown.map(line));
        }
        fields.retain(|key, _| known(key));
    }
    flaws.check(&shape.fields, &mut fields, "");
    flaws.report(tool)?;
    Ok(Value::Object(fields))
}

/// The same with an absolute path.
pub(super) fn placed(tool: &str, mut input: Value, cwd: &Path, home: &Path) -> Value {
    let field = TOOLS.get(tool).and_then(|shape| shape.path.as_ref());
    if let Some((field, path)) = field.and_then(|field| Some((field, input[field].as_str()?))) {
        input[field] = json!(paths::absolute(path, cwd, home).to_string_lossy());
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_the_order_of_the_tool() {
        let read = |tool: &str, input: &str| {
            read(tool, &serde_json::from_str(input).unwrap())
                .unwrap()
                .to_string()
        };
        let bash = r#"{"command":"a","timeout":5,"description":"b"}"#;
        assert_eq!(
            read("Bash", r#"{"description":"b","command":"a","timeout":5}"#),
            bash
        );
        let question = r#"{"questions":[{"multiSelect":false,"question":"a","options":[{"description":"b","label":"c"},{"label":"d","description":"e"}],"header":"f"}]}"#;
        let expected = r#"{"questions":[{"question":"a","header":"f","options":[{"label":"c","description":"b"},{"label":"d","description":"e"}],"multiSelect":false}]}"#;
        assert_eq!(read("AskUserQuestion", question), expected);
    }

    const CWD: &str = "/home/user/project";

    fn shown(tool: &str, input: Value) -> Value {
        let read = read(tool, &input).unwrap();
        placed(tool, read, Path::new(CWD), Path::new("/home/user"))
    }

    #[test]
    fn every_tool_of_the_list_is_known() {
        let without = ["EnterPlanMode", "CronList", "TaskList"];
        for tool in super::super::payload::tools() {
            let tool = if tool == "Task" { "Agent" } else { &tool };
            let shape = &TOOLS[tool];
            assert!(!shape.fields.is_empty() || without.contains(&tool), "{tool}");
        }
    }

    #[test]
    fn paths_are_absolute_where_they_are_shown() {
        for (path, expected) in [
            ("notes.md", "/home/user/project/notes.md"),
            ("./a/../b.md", "/home/user/project/b.md"),
            ("../outside.txt", "/home/user/outside.txt"),
            ("~/h.txt", "/home/user/h.txt"),
            ("~", "/home/user"),
            ("~x/y", "/home/user/project/~x/y"),
            (" x.txt ", "/home/user/project/x.txt"),
            ("/etc/../etc/hostname", "/etc/hostname"),
            ("src/", "/home/user/project/src"),
            ("", "/home/user/project"),
        ] {
            assert_eq!(shown("Read", json!({"file_path": path}))["file_path"], expected);
        }
        let search = json!({"pattern": "x", "path": ".."});
        assert_eq!(shown("Glob", search.clone()), search);
    }

    #[test]
    fn defaults_and_types() {
        let edit = json!({"file_path": "/a", "old_string": "a", "new_string": "b"});
        assert_eq!(shown("Edit", edit)["replace_all"], false);
        let read = json!({"file_path": "/a", "limit": "1", "offset": -1});
        assert_eq!(shown("Read", read), json!({"file_path": "/a", "limit": 1}));
        let question = json!({"question": "?", "header": "h", "extra": 1, "options": [
            {"label": "a", "description": "b", "extra": 1}, {"label": "c", "description": "d"},
        ]});
        assert_eq!(
            shown("AskUserQuestion", json!({"questions": [question]}))["questions"][0],
            json!({"question": "?", "header": "h", "multiSelect": false, "options": [
                {"label": "a", "description": "b"}, {"label": "c", "description": "d"},
            ]})
        );
        // Not strict.
        let skill = json!({"skill": "x", "extra": 1});
        assert_eq!(shown("Skill", skill), json!({"skill": "x"}));
        // Of the host.
        assert!(check("Read", &json!({"file_path": "x", "extra": 1})).is_ok());
        assert!(check("Read", &json!({"file_path": 5})).is_err());
        // Of the test's own.
        let own = json!({"a": "1"});
        assert_eq!(shown("Own", own.clone()), own);
    }

    #[test]
    fn what_is_wrong() {
        let failed = |tool, input| read(tool, &input).unwrap_err();
        assert_eq!(
            failed("Write", json!({"content": 5, "extra": 1})),
            "Write failed due to the following issues:\nThe required parameter `file_path` is missing\nAn unexpected \
             parameter `extra` was provided\nThe parameter `content` type is expected as `string` but provided as \
             `number`"
        );
        assert_eq!(
            failed("Read", json!({"file_path": "x", "limit": "1.5"})),
            "Read failed due to the following issue:\nThe parameter `limit` type is expected as `int` but provided as \
             `number`"
        );
        assert!(
            failed("AskUserQuestion", json!({"questions": [{"question": "?"}]}))
                .contains("`questions[0].header` is missing")
        );
        assert!(
            failed(
                "Agent",
                json!({"description": "x", "prompt": "y", "model": "nope"})
            )
            .contains("invalid_value")
        );
        for limit in [json!("abc"), json!(""), json!(true), json!(null), json!("1e3")] {
            assert!(
                read("Read", &json!({"file_path": "x", "limit": limit})).is_err(),
                "{limit}"
            );
        }
    }

    #[test]
    fn the_form_of_the_assistant_message() {
        let cwd = Path::new(CWD);
        for (tool, input, expected) in [
            (
                "Bash",
                json!({"command": format!("cd {CWD} && ls")}),
                json!({"command": "ls"}),
            ),
            (
                "Bash",
                json!({"command": "ls", "timeout": "5", "extra": 1}),
                json!({"command": "ls", "timeout": "5", "extra": 1}),
            ),
            (
                "Read",
                json!({"file_path": "x", "limit": "1", "offset": "2"}),
                json!({"file_path": "x", "limit": "1", "offset": 2}),
            ),
            (
                "Write",
                json!({"file_path": "x", "content": "a \r\nb  \n"}),
                json!({"file_path": "x", "content": "a\r\nb\n"}),
            ),
            (
                "Write",
                json!({"file_path": "x.md", "content": "a  \n"}),
                json!({"file_path": "x.md", "content": "a  \n"}),
            ),
        ] {
            assert_eq!(written(tool, None, &input, cwd), expected);
        }
        let schema = json!({"properties": {"a": {"type": "number"}, "b": {"type": "integer"}, "c": {"type": "array"}}});
        assert_eq!(
            written(
                "mcp__x__y",
                Some(&schema),
                &json!({"a": "1", "b": "1.5", "c": "[1]", "d": "2"}),
                cwd
            ),
            json!({"a": 1, "b": "1.5", "c": [1], "d": "2"})
        );
    }
}
