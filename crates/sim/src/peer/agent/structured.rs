//! Structured output: an answer in the shape of a JSON schema.
//!
//! The keywords that are understood are those of ordinary schemas, with the rules of draft 7. As in the CLI, formats are taken as
//! fulfilled.

use regex_lite::Regex;
use serde_json::{Map, Value};

use super::not_simulated;
use crate::word_list::WordList;

/// The name of the tool that takes the answer.
pub(super) const TOOL: &str = "StructuredOutput";

/// How often a wrong answer is taken.
pub(super) const ATTEMPTS: u64 = 5;

/// Where a schema refers to itself, this deep is enough.
const DEPTH: usize = 64;

/// What structured output has to look like.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Schema(Map<String, Value>);

const TYPES: &[&str] = &[
    "object", "array", "string", "number", "integer", "boolean", "null",
];

/// Keywords whose value is not looked at when a schema is read.
const SILENT: WordList = WordList(
    "$comment $id const contentEncoding contentMediaType default deprecated description examples format nullable \
     readOnly title writeOnly",
);

/// Keywords of the CLI's validator that are not understood. `docs/testing.md` has the same.
pub(super) const NOT_SIMULATED: WordList = WordList(
    "additionalItems contains dependencies else if maxProperties minProperties multipleOf patternProperties \
     propertyNames then uniqueItems",
);

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    ///
    /// The problem, in the words of the CLI's validator.
    pub(super) fn read(schema: &Value) -> Result<Self, String> {
        let Some(object) = schema.as_object() else {
            return Err("data must be object,boolean".to_owned());
        };
        let read = Self(object.clone());
        read.check_schema(schema, "data")?;
        Ok(read)
    }

    pub(super) fn to_json(&self) -> Value {
        Value::Object(self.0.clone())
    }

    fn check_schema(&self, schema: &Value, at: &str) -> Result<(), String> {
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(_) => return Ok(()),
            _ => return Err(format!("{at} must be object,boolean")),
        };
        for (key, value) in keywords {
            let at = format!("{at}/{key}");
            let must =
                |fits: bool, kind: &str| fits.then_some(()).ok_or_else(|| format!("{at} must be {kind}"));
            match key.as_str() {
                "$schema" if value == "http://json-schema.org/draft-07/schema#" => {}
                "$schema" if value == "http://json-schema.org/draft-07/schema" => {}
                "$schema" => return Err(format!("no schema with key or ref {value}")),
                "$ref" => {
                    let resolved = value.as_str().and_then(|reference| self.resolve(reference));
                    resolved.ok_or_else(|| format!("can't resolve reference {value} from id #"))?;
                }
                "$defs" | "definitions" | "properties" => {
                    must(value.is_object(), "object")?;
                    for (name, schema) in value.as_object().into_iter().flatten() {
                        self.check_schema(schema, &format!("{at}/{name}"))?;
                    }
                }
                "allOf" | "anyOf" | "oneOf" => {
                    must(value.is_array(), "array")?;
                    for (n, schema) in value.as_array().into_iter().flatten().enumerate() {
                        self.check_schema(schema, &format!("{at}/{n}"))?;
                    }
                }
                "items" if value.is_array() => return Err(not_simulated::keyword("items with a list")),
                "additionalProperties" | "items" | "not" => self.check_schema(value, &at)?,
                "enum" | "required" => must(value.is_array(), "array")?,
                "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" => {
                    must(value.is_number(), "number")?
                }
                "maxItems" | "maxLength" | "minItems" | "minLength" => must(value.is_u64(), "integer")?,
                "pattern" => {
                    Regex::new(value.as_str().unwrap_or("(")).map_err(|error| {
                        format!("Invalid regular expression, or one that is not simulated: {error}")
                    })?;
                }
                "type" => {
                    let known = |kind: &Value| TYPES.iter().any(|known| kind == known);
                    let kinds = value.as_array();
                    let is_list = kinds.is_some_and(|kinds| !kinds.is_empty() && kinds.iter().all(known));
                    if !known(value) && !is_list {
                        return Err(format!(
                            "{at} must be equal to one of the allowed values, {at} must be array, {at} must match a schema in anyOf"
                        ));
                    }
                }
                silent if SILENT.has(silent) => {}
                keyword if NOT_SIMULATED.has(keyword) => {
                    return Err(not_simulated::keyword(keyword));
                }
                unknown => return Err(format!("strict mode: unknown keyword: \"{unknown}\"")),
            }
        }
        Ok(())
    }

    /// The problems of an answer; none if it matches the schema.
    pub(super) fn flaws(&self, answer: &Value) -> Vec<String> {
        let mut flaws = Vec::new();
        self.check(&self.0, answer, "", 0, &mut flaws);
        flaws
    }

    /// The target of a `$ref` in the schema.
    fn resolve(&self, reference: &str) -> Option<&Map<String, Value>> {
        let path = reference.strip_prefix('#')?;
        let mut at = &self.0;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            at = at.get(&part.replace("~1", "/").replace("~0", "~"))?.as_object()?;
        }
        Some(at)
    }

    fn fits(&self, schema: &Value, answer: &Value, depth: usize) -> bool {
        let mut flaws = Vec::new();
        self.check_value(schema, answer, "", depth, &mut flaws);
        flaws.is_empty()
    }

    fn check_value(&self, schema: &Value, answer: &Value, at: &str, depth: usize, flaws: &mut Vec<String>) {
        match schema {
            Value::Bool(false) => flaw(flaws, at, "boolean schema is false"),
            Value::Object(schema) => self.check(schema, answer, at, depth, flaws),
            _ => {}
        }
    }

    fn check(
        &self,
        schema: &Map<String, Value>,
        answer: &Value,
        at: &str,
        depth: usize,
        flaws: &mut Vec<String>,
    ) {
        if depth > DEPTH {
            return;
        }
        let depth = depth + 1;
        if let Some(target) = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|r| self.resolve(r))
        {
            self.check(target, answer, at, depth, flaws);
        }
        if let Some(kinds) = schema.get("type") {
            let kinds: Vec<&str> = match kinds {
                Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
                kind => kind.as_str().into_iter().collect(),
            };
            if !kinds.iter().any(|kind| is_a(answer, kind)) {
                flaw(flaws, at, &format!("must be {}", kinds.join(",")));
                return;
            }
        }
        if let Some(options) = schema.get("enum").and_then(Value::as_array)
            && !options.contains(answer)
        {
            flaw(flaws, at, "must be equal to one of the allowed values");
        }
        if schema.get("const").is_some_and(|constant| constant != answer) {
            flaw(flaws, at, "must be equal to constant");
        }
        match answer {
            Value::Object(fields) => self.check_object(schema, fields, at, depth, flaws),
            Value::Array(items) => self.check_array(schema, items, at, depth, flaws),
            Value::String(text) => check_string(schema, text, at, flaws),
            Value::Number(number) => check_number(schema, number.as_f64().unwrap_or_default(), at, flaws),
            _ => {}
        }
        let all = schema.get("allOf").and_then(Value::as_array);
        for part in all.into_iter().flatten() {
            self.check_value(part, answer, at, depth, flaws);
        }
        let fitting = |key: &str| {
            let parts = schema.get(key).and_then(Value::as_array)?;
            Some(parts.iter().filter(|part| self.fits(part, answer, depth)).count())
        };
        if fitting("anyOf") == Some(0) {
            flaw(flaws, at, "must match a schema in anyOf");
        }
        if fitting("oneOf").is_some_and(|fitting| fitting != 1) {
            flaw(flaws, at, "must match exactly one schema in oneOf");
        }
        if schema.get("not").is_some_and(|not| self.fits(not, answer, depth)) {
            flaw(flaws, at, "must NOT be valid");
        }
    }

    fn check_object(
        &self,
        schema: &Map<String, Value>,
        fields: &Map<String, Value>,
        at: &str,
        depth: usize,
        flaws: &mut Vec<String>,
    ) {
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                flaw(flaws, at, &format!("must have required property '{name}'"));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, value) in fields {
            match (
                properties.and_then(|known| known.get(name)),
                schema.get("additionalProperties"),
            ) {
                (Some(property), _) => {
                    self.check_value(property, value, &format!("{at}/{name}"), depth, flaws);
                }
                (None, Some(Value::Bool(false))) => flaw(flaws, at, "must NOT have additional properties"),
                (None, Some(rest)) => self.check_value(rest, value, &format!("{at}/{name}"), depth, flaws),
                (None, None) => {}
            }
        }
    }

    fn check_array(
        &self,
        schema: &Map<String, Value>,
        items: &[Value],
        at: &str,
        depth: usize,
        flaws: &mut Vec<String>,
    ) {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        if let Some(least) = bound("minItems").filter(|least| (items.len() as u64) < *least) {
            flaw(flaws, at, &format!("must NOT have fewer than {least} items"));
        }
        if let Some(most) = bound("maxItems").filter(|most| items.len() as u64 > *most) {
            flaw(flaws, at, &format!("must NOT have more than {most} items"));
        }
        if let Some(item) = schema.get("items") {
            for (n, value) in items.iter().enumerate() {
                self.check_value(item, value, &format!("{at}/{n}"), depth, flaws);
            }
        }
    }
}

fn check_string(schema: &Map<String, Value>, text: &str, at: &str, flaws: &mut Vec<String>) {
    let length = text.chars().count() as u64;
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    if let Some(least) = bound("minLength").filter(|least| length < *least) {
        flaw(flaws, at, &format!("must NOT have fewer than {least} characters"));
    }
    if let Some(most) = bound("maxLength").filter(|most| length > *most) {
        flaw(flaws, at, &format!("must NOT have more than {most} characters"));
    }
    let pattern = schema.get("pattern").and_then(Value::as_str);
    if let Some(pattern) = pattern
        && Regex::new(pattern).is_ok_and(|regex| !regex.is_match(text))
    {
        flaw(flaws, at, &format!("must match pattern \"{pattern}\""));
    }
}

fn check_number(schema: &Map<String, Value>, number: f64, at: &str, flaws: &mut Vec<String>) {
    type Wrong = fn(f64, f64) -> bool;
    let bounds: [(&str, &str, Wrong); 4] = [
        ("minimum", ">=", |number, bound| number < bound),
        ("maximum", "<=", |number, bound| number > bound),
        ("exclusiveMinimum", ">", |number, bound| number <= bound),
        ("exclusiveMaximum", "<", |number, bound| number >= bound),
    ];
    for (key, sign, wrong) in bounds {
        if let Some(bound) = schema.get(key).and_then(Value::as_f64)
            && wrong(number, bound)
        {
            flaw(flaws, at, &format!("must be {sign} {bound}"));
        }
    }
}

fn flaw(flaws: &mut Vec<String>, at: &str, what: &str) {
    let at = if at.is_empty() { "root" } else { at };
    flaws.push(format!("{at}: {what}"));
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        // 3.0 is an integer in JSON schema.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn flaws_are_told_like_the_cli_tells_them() {
        let schema = json!({
            "type": "object", "required": ["name", "n"], "additionalProperties": false,
            "properties": {"name": {"type": "string"}, "n": {"type": "integer", "minimum": 1},
                "kind": {"enum": ["a", "b"]}, "list": {"type": "array", "items": {"$ref": "#/$defs/word"}, "minItems": 1}},
            "$defs": {"word": {"type": "string", "pattern": "^[a-z]+$"}},
        });
        let schema = Schema::read(&schema).unwrap();
        for (answer, flaws) in [
            (json!({"name": "x", "n": 3.0, "list": ["a"]}), vec![]),
            (
                json!({"name": 5}),
                vec!["root: must have required property 'n'", "/name: must be string"],
            ),
            (json!([]), vec!["root: must be object"]),
            (json!({"name": "x", "n": 0}), vec!["/n: must be >= 1"]),
            (
                json!({"name": "x", "n": 1.5, "kind": "c", "list": ["A"], "more": 1}),
                vec![
                    "/kind: must be equal to one of the allowed values",
                    "/list/0: must match pattern \"^[a-z]+$\"",
                    "root: must NOT have additional properties",
                    "/n: must be integer",
                ],
            ),
        ] {
            let mut found = schema.flaws(&answer);
            found.sort();
            let mut flaws = flaws;
            flaws.sort_unstable();
            assert_eq!(found, flaws, "{answer}");
        }
        let any = Schema::read(&json!({"anyOf": [{"type": "string"}, {"type": "null"}]})).unwrap();
        assert_eq!(any.flaws(&json!(1)), ["root: must match a schema in anyOf"]);
    }

    #[test]
    fn schemas_are_refused_as_the_cli_refuses_them() {
        for (schema, flaw) in [
            (json!("x"), "data must be object,boolean"),
            (
                json!({"type": 5}),
                "data/type must be equal to one of the allowed values, data/type must be array, data/type must match a schema \
                 in anyOf",
            ),
            (json!({"required": "a"}), "data/required must be array"),
            (
                json!({"properties": {"a": {"minimum": "1"}}}),
                "data/properties/a/minimum must be number",
            ),
            (
                json!({"properties": {"a": {"xx": 1}}}),
                "strict mode: unknown keyword: \"xx\"",
            ),
            (
                json!({"anyOf": [{"prefixItems": []}]}),
                "strict mode: unknown keyword: \"prefixItems\"",
            ),
            (
                json!({"$schema": "https://json-schema.org/draft/2020-12/schema"}),
                "no schema with key or ref \"https://json-schema.org/draft/2020-12/schema\"",
            ),
        ] {
            assert_eq!(Schema::read(&schema).unwrap_err(), flaw);
        }
        for schema in [
            json!({"$ref": "#/nowhere"}),
            json!({"$ref": "https://a.example/b"}),
            json!({"pattern": "("}),
        ] {
            assert!(Schema::read(&schema).is_err(), "{schema}");
        }
        for schema in [
            json!({}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "nullable": true}),
        ] {
            assert!(Schema::read(&schema).is_ok(), "{schema}");
        }
    }
}
