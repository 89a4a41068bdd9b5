//! What is wrong with a fault that cannot be read, with the word that was probably meant.

use schemars::Schema;
use serde_json::Value;

use super::effect::Effect;
use super::place::At;
use crate::near::unknown;

/// Of an effect with its parameters.
pub(super) fn of_effect(fields: &Value, error: &serde_json::Error) -> String {
    // The schema has every word, and is made of the types that read them.
    let schema = schemars::schema_for!(Effect);
    let Some(word) = fields["fault"].as_str() else {
        return error.to_string();
    };
    let variants: Vec<&Value> = list(&schema, "oneOf");
    let named = |variant: &&&Value| word_of(variant) == Some(word);
    let Some(variant) = variants.iter().find(named) else {
        let known: Vec<&str> = variants.iter().filter_map(|variant| word_of(variant)).collect();
        return unknown("fault", word, &known);
    };
    let referred = variant["$ref"]
        .as_str()
        .and_then(|place| schema.as_value().pointer(place.trim_start_matches('#')));
    let known: Vec<&str> = [Some(*variant), referred]
        .into_iter()
        .flatten()
        .flat_map(properties)
        .chain(["at"])
        .collect();
    of_fields(fields, &known, error)
}

/// Of the place of one.
pub(super) fn of_place(fields: &Value, error: &serde_json::Error) -> String {
    let schema = schemars::schema_for!(At);
    let known: Vec<&str> = properties(schema.as_value()).collect();
    of_fields(fields, &known, error)
}

fn of_fields(fields: &Value, known: &[&str], error: &serde_json::Error) -> String {
    let mut names = fields.as_object().into_iter().flatten().map(|(name, _)| name);
    match names.find(|name| !known.contains(&name.as_str())) {
        Some(name) => unknown("field", name, known),
        None => error.to_string(),
    }
}

fn list<'s>(schema: &'s Schema, key: &str) -> Vec<&'s Value> {
    let values = schema.get(key).and_then(Value::as_array);
    values.into_iter().flatten().collect()
}

fn word_of(variant: &Value) -> Option<&str> {
    variant["properties"]["fault"]["const"].as_str()
}

fn properties(schema: &Value) -> impl Iterator<Item = &str> {
    let properties = schema["properties"].as_object();
    properties.into_iter().flatten().map(|(name, _)| name.as_str())
}
