//! What differs between two inventories, for a person to read.

use std::collections::BTreeMap;

use serde_json::Value;

/// Prints a line for each fact that came, went or changed, in the order of the inventory.
pub(super) fn print(before: &Value, after: &Value) {
    let lines = compare(before, after);
    if lines.is_empty() {
        println!("nothing changed");
    }
    for line in &lines {
        println!("{line}");
    }
    if !lines.is_empty() {
        println!("{} differences from upstream/inventory.json", lines.len());
    }
}

fn compare(before: &Value, after: &Value) -> Vec<String> {
    let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
    flatten(String::new(), before, &mut old);
    flatten(String::new(), after, &mut new);
    let mut lines = Vec::new();
    let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        lines.extend(match (old.get(key), new.get(key)) {
            (Some(old), Some(new)) if old == new => None,
            (Some(old), Some(new)) => Some(format!("~ {key}: {old} -> {new}")),
            (Some(old), None) => Some(format!("- {key}{}", told(old))),
            (None, Some(new)) => Some(format!("+ {key}{}", told(new))),
            (None, None) => None,
        });
    }
    lines
}

fn told(value: &str) -> String {
    if value.is_empty() {
        String::new()
    } else {
        format!(": {value}")
    }
}

/// Each fact by where it is. The strings of a list are facts of their own, so that one more is one line.
fn flatten(place: String, value: &Value, facts: &mut BTreeMap<String, String>) {
    let below = |name: &str| {
        if place.is_empty() {
            name.to_owned()
        } else {
            format!("{place} {name}")
        }
    };
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                flatten(below(name), value, facts);
            }
        }
        Value::Array(items) => {
            for item in items {
                let name = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
                facts.insert(below(&name), String::new());
            }
        }
        Value::String(text) => {
            facts.insert(place, text.clone());
        }
        other => {
            facts.insert(place, other.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_difference_is_a_line() {
        let before = json!({"types": {"A": {"x": "string", "y?": "number"}, "S": ["'a'", "'b'"], "Gone": {"z": "any"}}});
        let after = json!({"types": {"A": {"x": "string", "y": "number"}, "S": ["'a'", "'c'"], "B": {}}});
        assert_eq!(
            compare(&before, &after),
            [
                "+ types A y: number",
                "- types A y?: number",
                "- types Gone z: any",
                "- types S 'b'",
                "+ types S 'c'",
            ]
        );
        assert!(compare(&before, &before).is_empty());
    }
}
