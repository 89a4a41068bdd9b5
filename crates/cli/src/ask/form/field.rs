//! One field of a form: what it takes, and what a typed line means for it.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    /// What people see.
    label: String,
    kind: FieldKind,
    required: bool,
    default: Option<Value>,
}

#[derive(Debug, Clone, PartialEq)]
enum FieldKind {
    Text {
        least: Option<u64>,
        most: Option<u64>,
        format: Option<String>,
    },
    Number {
        whole: bool,
        least: Option<f64>,
        most: Option<f64>,
    },
    Boolean,
    /// One of these values, or some of them.
    Choice {
        choices: Vec<FieldOption>,
        several: bool,
    },
    /// A field of a type that forms should not have; it is typed as JSON.
    Json,
}

#[derive(Debug, Clone, PartialEq)]
struct FieldOption {
    value: Value,
    label: String,
}

/// What a line gives.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FieldInput {
    Value(Value),
    /// The field is left out.
    Nothing,
    /// The line has no value, for this reason.
    Wrong(String),
}

impl Field {
    /// The fields of an object's schema: those of `order` first, the others after them, as the schema lists them.
    ///
    /// # Errors
    /// When the schema is not one of an object.
    pub(super) fn all(schema: &Value, order: &[String]) -> Result<Vec<Self>, String> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return match schema.get("properties") {
                None => Ok(Vec::new()),
                Some(_) => Err("its form is no object with properties".to_owned()),
            };
        };
        let required = |name: &str| {
            let list = schema.get("required").and_then(Value::as_array);
            list.is_some_and(|list| list.iter().any(|entry| entry.as_str() == Some(name)))
        };
        let ordered = order.iter().filter(|name| properties.contains_key(*name));
        let others = properties.keys().filter(|name| !order.contains(name));
        Ok(ordered
            .chain(others)
            .map(|name| Self::read_schema(name, &properties[name.as_str()], required(name)))
            .collect())
    }

    fn read_schema(name: &str, schema: &Value, required: bool) -> Self {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let mut label = text("title").unwrap_or(name).to_owned();
        if let Some(description) = text("description") {
            let _ = write!(label, " ({description})");
        }
        Self {
            name: name.to_owned(),
            label,
            kind: FieldKind::of(schema),
            required,
            default: schema.get("default").filter(|value| !value.is_null()).cloned(),
        }
    }

    /// What to ask.
    pub(super) fn prompt(&self) -> String {
        let mut text = format!("  {}", self.label);
        let hint = match &self.kind {
            FieldKind::Choice { choices, several } => {
                for (number, choice) in choices.iter().enumerate() {
                    let _ = write!(text, "\n    {}. {}", number + 1, choice.label);
                }
                let hint = if *several {
                    "numbers separated by commas"
                } else {
                    "a number"
                };
                let _ = write!(text, "\n  {hint}");
                None
            }
            FieldKind::Boolean => Some("y/n".to_owned()),
            FieldKind::Number { whole: true, .. } => Some("whole number".to_owned()),
            FieldKind::Number { .. } => Some("number".to_owned()),
            FieldKind::Text { format, .. } => format.clone(),
            FieldKind::Json => Some("JSON".to_owned()),
        };
        if let Some(hint) = hint {
            let _ = write!(text, " [{hint}]");
        }
        match &self.default {
            Some(Value::String(default)) => {
                let _ = write!(text, " (nothing: {default})");
            }
            Some(default) => {
                let _ = write!(text, " (nothing: {default})");
            }
            None if !self.required => text.push_str(" (nothing: leave out)"),
            None => {}
        }
        text + ": "
    }

    /// What a line gives.
    pub(super) fn read(&self, line: &str) -> FieldInput {
        if line.is_empty() {
            return match &self.default {
                Some(default) => FieldInput::Value(default.clone()),
                None if self.required => FieldInput::Wrong("This is needed.".to_owned()),
                None => FieldInput::Nothing,
            };
        }
        match self.kind.read(line) {
            Ok(value) => FieldInput::Value(value),
            Err(why) => FieldInput::Wrong(why),
        }
    }
}

impl FieldKind {
    fn of(schema: &Value) -> Self {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        if let Some(choices) = choices(schema) {
            return Self::Choice {
                choices,
                several: false,
            };
        }
        match text("type") {
            Some("string") => Self::Text {
                least: schema.get("minLength").and_then(Value::as_u64),
                most: schema.get("maxLength").and_then(Value::as_u64),
                format: text("format").map(str::to_owned),
            },
            Some(kind @ ("number" | "integer")) => Self::Number {
                whole: kind == "integer",
                least: schema.get("minimum").and_then(Value::as_f64),
                most: schema.get("maximum").and_then(Value::as_f64),
            },
            Some("boolean") => Self::Boolean,
            Some("array") => match schema.get("items").and_then(choices) {
                Some(choices) => Self::Choice {
                    choices,
                    several: true,
                },
                None => Self::Json,
            },
            _ => Self::Json,
        }
    }

    fn read(&self, line: &str) -> Result<Value, String> {
        match self {
            Self::Text { least, most, .. } => {
                let length = line.chars().count() as u64;
                if least.is_some_and(|least| length < least) || most.is_some_and(|most| length > most) {
                    return Err(format!("It should have {} characters.", range(*least, *most)));
                }
                Ok(line.into())
            }
            Self::Number { whole, least, most } => {
                let number: Number = line.parse().map_err(|_| "This takes a number.".to_owned())?;
                let value = number.as_f64().unwrap_or(f64::NAN);
                let mut number = number;
                if *whole && !number.is_i64() && !number.is_u64() {
                    // As in a JSON schema, 2.0 is a whole number.
                    let whole = format!("{value}").parse::<i64>();
                    number = whole.map_err(|_| "This takes a whole number.".to_owned())?.into();
                }
                if least.is_some_and(|least| value < least) || most.is_some_and(|most| value > most) {
                    return Err(format!("It should be {}.", range(*least, *most)));
                }
                Ok(Value::Number(number))
            }
            Self::Boolean => match line.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(true.into()),
                "n" | "no" | "false" => Ok(false.into()),
                _ => Err("This takes y or n.".to_owned()),
            },
            Self::Choice {
                choices,
                several: false,
            } => chosen(choices, line),
            Self::Choice {
                choices,
                several: true,
            } => {
                let mut values = Vec::new();
                for part in line.split(',') {
                    let value = chosen(choices, part.trim())?;
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Ok(Value::Array(values))
            }
            Self::Json => serde_json::from_str(line).map_err(|error| format!("This takes JSON: {error}.")),
        }
    }
}

/// The value that a number, a label or the value itself stands for.
fn chosen(choices: &[FieldOption], part: &str) -> Result<Value, String> {
    let by_number = part
        .parse::<usize>()
        .ok()
        .and_then(|number| choices.get(number.checked_sub(1)?));
    let named = |choice: &&FieldOption| choice.label == part || choice.value.as_str() == Some(part);
    let loosely_named = |choice: &&FieldOption| {
        let is_it = |name: &str| name.to_lowercase() == part.to_lowercase();
        is_it(&choice.label) || choice.value.as_str().is_some_and(is_it)
    };
    let found = by_number.or_else(|| choices.iter().find(named));
    match found.or_else(|| choices.iter().find(loosely_named)) {
        Some(choice) => Ok(choice.value.clone()),
        None => Err(format!("There is no choice {part:?}.")),
    }
}

/// The choices of an `enum` (with the names that `enumNames` gives), or of `oneOf` and `anyOf` made of `const` and `title`.
fn choices(schema: &Value) -> Option<Vec<FieldOption>> {
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let names = schema.get("enumNames").and_then(Value::as_array);
        let label = |number: usize, value: &Value| {
            let name = names.and_then(|names| names.get(number)?.as_str());
            name.map_or_else(|| shown(value), str::to_owned)
        };
        let choices = values.iter().enumerate().map(|(number, value)| FieldOption {
            value: value.clone(),
            label: label(number, value),
        });
        return Some(choices.collect());
    }
    let list = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    list.iter()
        .map(|entry| {
            let value = entry.get("const")?;
            let title = entry.get("title").and_then(Value::as_str);
            Some(FieldOption {
                value: value.clone(),
                label: title.map_or_else(|| shown(value), str::to_owned),
            })
        })
        .collect()
}

fn range<T: std::fmt::Display>(least: Option<T>, most: Option<T>) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => "any number of".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(schema: Value, required: bool) -> Field {
        Field::read_schema("x", &schema, required)
    }

    fn value(schema: Value, line: &str) -> Value {
        match field(schema.clone(), true).read(line) {
            FieldInput::Value(value) => value,
            other => panic!("{schema} {line:?}: {other:?}"),
        }
    }

    fn is_wrong(schema: Value, line: &str) -> bool {
        matches!(field(schema, true).read(line), FieldInput::Wrong(_))
    }

    #[test]
    fn each_type_is_read_as_itself() {
        assert_eq!(value(json!({"type": "string"}), "12"), json!("12"));
        assert_eq!(value(json!({"type": "number"}), "1.5"), json!(1.5));
        assert_eq!(value(json!({"type": "integer"}), "-3"), json!(-3));
        assert_eq!(value(json!({"type": "integer"}), "2.0"), json!(2));
        let cases = json!({"enum": ["a", "A"]});
        assert_eq!(value(cases, "A"), json!("A"));
        assert_eq!(value(json!({"type": "boolean"}), "Yes"), json!(true));
        assert_eq!(value(json!({"type": "boolean"}), "n"), json!(false));
        assert_eq!(value(json!({"type": "object"}), "{\"a\":1}"), json!({"a": 1}));
        let colours = json!({"type": "string", "enum": ["red", "blue"], "enumNames": ["Red", "Blue"]});
        for line in ["2", "blue", "Blue", "BLUE"] {
            assert_eq!(value(colours.clone(), line), json!("blue"));
        }
        let titled = json!({"oneOf": [{"const": "r", "title": "Red"}, {"const": "b"}]});
        assert_eq!(value(titled.clone(), "1"), json!("r"));
        assert_eq!(value(titled, "b"), json!("b"));
        let several = json!({"type": "array", "items": {"enum": ["a", "b", "c"]}});
        assert_eq!(value(several, "3, 1,3"), json!(["c", "a"]));
    }

    #[test]
    fn what_does_not_fit_is_asked_again() {
        for (schema, line) in [
            (json!({"type": "string", "minLength": 3}), "ab"),
            (json!({"type": "string", "maxLength": 3}), "abcd"),
            (json!({"type": "number"}), "many"),
            (json!({"type": "integer"}), "1.5"),
            (json!({"type": "integer", "minimum": 1, "maximum": 9}), "10"),
            (json!({"type": "boolean"}), "maybe"),
            (json!({"enum": ["a"]}), "2"),
            (json!({"enum": ["a"]}), "0"),
            (json!({"type": "array", "items": {"enum": ["a"]}}), "1,b"),
            (json!({}), "no JSON"),
            (json!({"type": "string"}), ""),
        ] {
            assert!(is_wrong(schema.clone(), line), "{schema} {line:?}");
        }
    }

    #[test]
    fn nothing_is_the_default_or_leaves_the_field_out() {
        let schema = json!({"type": "integer", "default": 4});
        assert_eq!(field(schema, true).read(""), FieldInput::Value(json!(4)));
        assert_eq!(
            field(json!({"type": "string"}), false).read(""),
            FieldInput::Nothing
        );
    }

    #[test]
    fn fields_come_in_the_order_that_was_asked_for() {
        let schema = json!({
            "type": "object",
            "properties": {
                "d": {"type": "string"}, "a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"},
            },
            "required": ["c"],
        });
        let fields = Field::all(&schema, &["c".to_owned(), "gone".to_owned(), "b".to_owned()]).unwrap();
        let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["c", "b", "d", "a"]);
        assert!(fields[0].required && !fields[1].required);
        assert!(Field::all(&json!({"properties": 1}), &[]).is_err());
    }

    #[test]
    fn the_prompt_says_what_may_be_typed() {
        let schema = json!({"title": "Colour", "description": "of the roof", "enum": ["red", "blue"], "default": "red"});
        assert_eq!(
            field(schema, true).prompt(),
            "  Colour (of the roof)\n    1. red\n    2. blue\n  a number (nothing: red): "
        );
        assert_eq!(
            field(json!({"type": "integer"}), false).prompt(),
            "  x [whole number] (nothing: leave out): "
        );
    }
}
