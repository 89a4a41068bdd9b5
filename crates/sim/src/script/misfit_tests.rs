use serde_json::{Value, json};

use super::super::{Script, json_schema};

/// Stands where the wrong value goes.
const HERE: &str = "@HERE@";

/// Words of the parser, which no message has.
const PARSERS: [&str; 14] = [
    "scalar", "sequence", "variant", "enum", "unit", "struct", "expected", "invalid", "u16", "u32", "u64",
    "i32", "f64", "null",
];

/// What is told of the mapping around the value.
const AROUND: [&str; 9] = [
    "is missing",
    "must be",
    "demands nothing",
    "needs a `subtype`",
    "without a",
    "the name of a gate",
    "unknown kind of frame",
    "of a signal",
    "is left blank",
];

/// Values of every kind, as they are written on one line.
const VALUES: [&str; 10] = [
    "",
    "{{prompt}}",
    "{a: 1}",
    "[1]",
    "word",
    "-1",
    "1.5",
    "99999999999999999999",
    "true",
    "'2'",
];

/// Every value of every field, of a wrong kind, in an otherwise right script.
#[test]
fn no_wrong_value_is_told_in_the_words_of_the_parser() {
    let schema = json_schema();
    let mut scripts = Vec::new();
    every_place(&schema, &schema, &mut Vec::new(), &|value| value, &mut scripts);
    assert!(scripts.len() > 150, "{}", scripts.len());
    let mut wrong = 0;
    let mut off = Vec::new();
    for script in scripts {
        let script = serde_json::to_string_pretty(&script).unwrap();
        let line = 1 + script.lines().position(|line| line.contains(HERE)).unwrap();
        for value in VALUES {
            let script = script.replace(&format!("\"{HERE}\""), value);
            let Err(error) = Script::from_yaml(&script) else {
                continue;
            };
            wrong += 1;
            let at = error.at.is_some_and(|at| {
                at.line == line as u64
                    || at.line < line as u64 && AROUND.iter().any(|what| error.what.contains(what))
            });
            // Between backticks are words of the script.
            let words: String = error.what.split('`').step_by(2).collect();
            let words = words.replace("stop_sequence", "");
            if !at || PARSERS.iter().any(|word| words.contains(word)) {
                off.push(format!("{error}\n{script}"));
            }
        }
    }
    assert!(wrong > 1000, "{wrong}");
    assert!(off.is_empty(), "{} of {wrong}:\n{}", off.len(), off.join("\n"));
}

/// What is right is not taken for wrong: else it would be told instead of the mistake behind it.
#[test]
fn nothing_is_wrong_with_the_values_of_right_scripts() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["examples/scripts", "../../clients/examples/scripts"];
    let files = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    let mut seen = 0;
    for file in files {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        if Script::from_yaml(&text).is_ok() {
            assert_eq!(super::wrong_kind(&text), None, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

/// Scripts with [`HERE`] in the place of a value, for every value that the schema has: `script` puts it into one.
fn every_place<'a>(
    whole: &'a Value,
    schema: &'a Value,
    named: &mut Vec<&'a str>,
    script: &dyn Fn(Value) -> Value,
    found: &mut Vec<Value>,
) {
    if let Some(name) = schema["$ref"].as_str() {
        // Steps are in steps again.
        if !named.contains(&name) {
            named.push(name);
            let schema = whole.pointer(name.trim_start_matches('#')).unwrap();
            every_place(whole, schema, named, script, found);
        }
        return;
    }
    let several = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    for one in several.into_iter().flatten() {
        every_place(whole, one, named, script, found);
    }
    let fields = schema["properties"].as_object().into_iter().flatten();
    let constants: serde_json::Map<String, Value> = fields
        .clone()
        .filter_map(|(name, schema)| Some((name.clone(), schema.get("const")?.clone())))
        .collect();
    for (name, schema) in fields.filter(|(name, _)| !constants.contains_key(*name)) {
        let script = |value| {
            let mut fields = constants.clone();
            fields.insert(name.clone(), value);
            script(fields.into())
        };
        found.push(script(HERE.into()));
        every_place(whole, schema, named, &script, found);
    }
    if schema["items"].is_object() {
        let script = |value| script(json!([value]));
        found.push(script(HERE.into()));
        every_place(whole, &schema["items"], named, &script, found);
    }
    if schema["additionalProperties"].is_object() {
        let script = |value| script(json!({"a": value}));
        found.push(script(HERE.into()));
        every_place(whole, &schema["additionalProperties"], named, &script, found);
    }
}
