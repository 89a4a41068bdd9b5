//! Values of a wrong kind: what stands there, what is due by the schema, and how it is written.

use serde_json::Value;

use super::error::{Mistake, parse};
use super::place::{Placed, Position};
use super::schema::SCHEMA;
use super::yaml_value::{YamlFields, YamlValue};
use crate::near::unknown;

/// The first value in this text that the schema does not take.
pub(super) fn wrong_kind(text: &str) -> Option<Mistake> {
    let whole: Placed<YamlValue> = parse(text).ok()?;
    let misfits = Misfits {
        root: &SCHEMA,
        in_fault: false,
    };
    misfits.wrong(&whole, &SCHEMA, "a script")
}

/// How texts are written that the parser takes for something else.
pub(super) const QUOTES: &str = "a text with `: ` in it, or with `{` or `[` at its beginning, goes in quotes";

#[derive(Clone, Copy)]
struct Misfits<'a> {
    root: &'a Value,
    /// Faults are read as JSON is: what is no text without quotes is none.
    in_fault: bool,
}

impl<'a> Misfits<'a> {
    /// The first wrong value in this one; `subject` takes it.
    fn wrong(self, written: &Placed<YamlValue>, schema: &'a Value, subject: &str) -> Option<Mistake> {
        let due = self.alternatives(schema);
        let fits = due.iter().any(|one| self.fits(&written.value, one));
        match &written.value {
            YamlValue::List(_) if std::ptr::eq(schema, self.root) => {
                let what = "a script is a mapping, not a list: write `prompts:` on a line above it";
                Some((written.at, what.to_owned()))
            }
            _ if !fits => {
                let what = format!("{subject} takes {}, not {}", told(&due), written.value);
                Some((written.at, what + &hint(&due, &written.value)))
            }
            YamlValue::Text(word) if !due.iter().any(|one| takes_anything(one) || is_text(one)) => {
                let words = words(&due);
                // Of a step, the value may be forgotten.
                let what = match due.iter().any(|one| one["properties"].get(word).is_some()) {
                    true => format!("`{word}` takes a value: write `{word}: …`"),
                    false if words.contains(&word.as_str()) => return None,
                    false => unknown("word", word, &words),
                };
                Some((written.at, what))
            }
            YamlValue::List(items) => {
                let schema = due.iter().map(|one| &one["items"]).find(|items| !items.is_null());
                let subject = format!("an item of {subject}");
                let mut items = items.iter();
                items.find_map(|item| self.wrong(item, schema.unwrap_or(&Value::Null), &subject))
            }
            YamlValue::Mapping(YamlFields(fields)) => self.wrong_field(written.at, fields, &due),
            _ => None,
        }
    }

    fn wrong_field(
        self,
        at: Option<Position>,
        fields: &[(YamlValue, Placed<YamlValue>)],
        due: &[&'a Value],
    ) -> Option<Mistake> {
        let mut keys = fields.iter().map(|(key, _)| key);
        if let Some(key) = keys.find(|key| matches!(key, YamlValue::List(_) | YamlValue::Mapping(_))) {
            return Some((at, format!("the name of a field is a text, not {key}: {QUOTES}")));
        }
        let first = fields.first()?.0.key().unwrap_or_default();
        if words(due).contains(&first) {
            let what = format!("`{first}` stands alone, without a value: write `{first}`");
            return Some((at, what));
        }
        let objects: Vec<&Value> = due.iter().copied().filter(|one| is(one, "object")).collect();
        let schema = match objects[..] {
            [one] => one,
            [] => &Value::Null,
            // The reader tells what there is.
            _ => objects.into_iter().find(|one| is_that(one, fields))?,
        };
        let within = Self {
            in_fault: self.in_fault || schema["properties"].get("fault").is_some(),
            ..self
        };
        fields.iter().find_map(|(key, value)| {
            let key = key.key().unwrap_or_default();
            let field = schema["properties"].get(key);
            match field.unwrap_or(&schema["additionalProperties"]) {
                Value::Bool(false) => {
                    let known = schema["properties"].as_object().into_iter();
                    let known: Vec<&str> = known
                        .flat_map(|fields| fields.keys().map(String::as_str))
                        .collect();
                    Some((value.at, unknown("field", key, &known)))
                }
                schema => within.wrong(value, schema, &format!("`{key}`")),
            }
        })
    }

    /// Whether the kind is right.
    fn fits(self, written: &YamlValue, schema: &Value) -> bool {
        let text = is_text(schema) && !self.in_fault;
        takes_anything(schema)
            || match written {
                YamlValue::Nothing => is(schema, "null"),
                YamlValue::Bool(_) => is(schema, "boolean") || text,
                YamlValue::Whole(number) => {
                    is(schema, "number") || is(schema, "integer") && in_range(*number, schema) || text
                }
                YamlValue::Fraction(_) => is(schema, "number") || text,
                YamlValue::Text(_) => is(schema, "string") || !words(&[schema]).is_empty(),
                YamlValue::List(_) => is(schema, "array"),
                YamlValue::Mapping(_) => is(schema, "object"),
            }
    }

    /// The schemas of which a value must fit one.
    fn alternatives(&self, schema: &'a Value) -> Vec<&'a Value> {
        if let Some(name) = schema["$ref"].as_str() {
            let named = self.root.pointer(name.trim_start_matches('#'));
            return named.map_or_else(Vec::new, |schema| self.alternatives(schema));
        }
        let several = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
        match several {
            Some(several) => several.iter().flat_map(|one| self.alternatives(one)).collect(),
            None => vec![schema],
        }
    }
}

/// Whether these are the fields of that one among several: it knows the first, and its constants are theirs.
fn is_that(schema: &Value, fields: &[(YamlValue, Placed<YamlValue>)]) -> bool {
    let named = |key: &YamlValue| schema["properties"].get(key.key()?);
    let mut fields = fields.iter();
    let first = fields.clone().next().and_then(|(key, _)| named(key));
    first.is_some()
        && fields.all(
            |(key, value)| match named(key).and_then(|field| field["const"].as_str()) {
                Some(word) => value.value.key() == Some(word),
                None => true,
            },
        )
}

/// The words that stand for themselves.
fn words<'a>(due: &[&'a Value]) -> Vec<&'a str> {
    let words = due.iter().flat_map(|one| {
        let several = one["enum"].as_array().into_iter().flatten();
        several.chain(one.get("const")).filter_map(Value::as_str)
    });
    words.collect()
}

fn takes_anything(schema: &Value) -> bool {
    schema["type"].is_null() && schema["const"].is_null() && schema["enum"].is_null()
}

/// Whether the schema is, or may be, of this type.
fn is(schema: &Value, name: &str) -> bool {
    match &schema["type"] {
        Value::Array(names) => names.iter().any(|one| one == name),
        one => one == name,
    }
}

/// Whether it takes any text.
fn is_text(schema: &Value) -> bool {
    is(schema, "string") && schema["const"].is_null() && schema["enum"].is_null()
}

fn in_range(number: i128, schema: &Value) -> bool {
    let (least, most) = range(schema);
    least.is_none_or(|least| least <= number) && most.is_none_or(|most| number <= most)
}

/// The range of a whole number, as far as it is limited.
fn range(schema: &Value) -> (Option<i128>, Option<i128>) {
    let limits = match schema["format"].as_str() {
        Some("int32") => (Some(i32::MIN.into()), Some(i32::MAX.into())),
        Some("int64") => (Some(i64::MIN.into()), Some(i64::MAX.into())),
        Some("uint16") => (Some(0), Some(u16::MAX.into())),
        Some("uint32") => (Some(0), Some(u32::MAX.into())),
        Some(_) => (Some(0), Some(u64::MAX.into())),
        None => (None, None),
    };
    let given = |name: &str| schema[name].as_i64().map(i128::from);
    (given("minimum").or(limits.0), given("maximum").or(limits.1))
}

/// What is due there.
fn told(due: &[&Value]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut names = Vec::new();
    let objects = due.iter().filter(|one| is(one, "object")).count();
    for schema in due {
        if is_text(schema) {
            parts.push("a text".to_owned());
        }
        if is(schema, "boolean") {
            parts.push("`true` or `false`".to_owned());
        }
        if is(schema, "integer") {
            parts.push(match range(schema) {
                (Some(least @ 0..), Some(most)) if most <= u32::MAX.into() => {
                    format!("a whole number from {least} to {most}")
                }
                (Some(least @ 0..), _) => format!("a whole number from {least}"),
                _ => "a whole number".to_owned(),
            });
        }
        if is(schema, "number") {
            parts.push("a number".to_owned());
        }
        if is(schema, "array") {
            parts.push("a list".to_owned());
        }
        if is(schema, "object") {
            parts.push("a mapping".to_owned());
            let fields = schema["properties"].as_object();
            let fields = fields.into_iter().flat_map(|fields| fields.keys());
            names.extend(
                fields
                    .take(if objects > 1 { 1 } else { usize::MAX })
                    .map(String::as_str),
            );
        }
    }
    parts.dedup();
    names.dedup();
    if let (Some(mapping), false) = (
        parts.iter_mut().find(|part| *part == "a mapping"),
        names.is_empty(),
    ) {
        mapping.push_str(if objects == 1 { " with " } else { " with one of " });
        mapping.push_str(&quoted(&names));
    }
    let words = words(due);
    if !words.is_empty() {
        parts.insert(0, format!("one of the words {}", quoted(&words)));
    }
    parts.join(", or ")
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// How what is due is written.
fn hint(due: &[&Value], found: &YamlValue) -> String {
    let one_is = |name| due.iter().find(|one| is(one, name));
    let text = due.iter().any(|one| is_text(one));
    match found {
        YamlValue::Nothing if text => {
            ": an empty text is `''`, and one that begins with `#` or `!` goes in quotes".to_owned()
        }
        YamlValue::Bool(_) | YamlValue::Whole(_) | YamlValue::Fraction(_) if text => {
            ": in quotes it is one".to_owned()
        }
        YamlValue::Nothing if one_is("array").is_some() => ": an empty list is `[]`".to_owned(),
        YamlValue::List(_) | YamlValue::Mapping(_) if text => format!(": {QUOTES}"),
        YamlValue::Text(number) if number.parse::<f64>().is_ok() && !text => {
            ": write it without quotes".to_owned()
        }
        _ if one_is("array").is_some() => ": each item is on a line that begins with `- `".to_owned(),
        _ => match one_is("object") {
            Some(object) => {
                let required = object["required"].as_array().into_iter().flatten();
                let fields = object["properties"].as_object().into_iter();
                let fields = fields.flat_map(|fields| fields.keys().map(String::as_str));
                let name = required.filter_map(Value::as_str).chain(fields).next();
                format!(": write `{{{}: …}}`", name.unwrap_or("name"))
            }
            None => String::new(),
        },
    }
}

#[cfg(test)]
#[path = "misfit_tests.rs"]
mod tests;
