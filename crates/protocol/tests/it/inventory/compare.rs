//! Compares a value with itself after it was typed.

use std::collections::BTreeSet;

use serde_json::Value;

use super::schema::is_opaque;

/// The paths at which `came` has what `again` has not, or has otherwise.
pub(crate) fn missing(came: &Value, again: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    walk(came, again, "", &mut found);
    found
}

fn walk(came: &Value, again: &Value, path: &str, found: &mut BTreeSet<String>) {
    match (came, again) {
        (Value::Object(came), Value::Object(again)) => {
            for (key, value) in came {
                let path = below(path, key);
                match again.get(key) {
                    Some(typed) => walk(value, typed, &path, found),
                    None => {
                        found.insert(path);
                    }
                }
            }
        }
        (Value::Array(came), Value::Array(again)) if came.len() == again.len() => {
            for (value, typed) in came.iter().zip(again) {
                walk(value, typed, &format!("{path}[]"), found);
            }
        }
        (Value::Number(came), Value::Number(again)) if came.as_f64() == again.as_f64() => {}
        _ if came == again => {}
        _ => {
            found.insert(format!("{path} (changed)"));
        }
    }
}

/// The paths of all fields of `value`, as far as `beside` has an object there that is not somebody else's.
pub(crate) fn paths(value: &Value, beside: &Value, found: &mut BTreeSet<String>) {
    collect(value, beside, "", found);
}

fn collect(value: &Value, beside: &Value, path: &str, found: &mut BTreeSet<String>) {
    match (value, beside) {
        (Value::Object(fields), Value::Object(known)) if !is_opaque(beside) => {
            for (key, value) in fields {
                let path = below(path, key);
                collect(value, known.get(key).unwrap_or(&Value::Null), &path, found);
                found.insert(path);
            }
        }
        (Value::Array(items), Value::Array(known)) => {
            for (item, known) in items.iter().zip(known) {
                collect(item, known, &format!("{path}[]"), found);
            }
        }
        _ => {}
    }
}

/// The path of a field. The keys of a map are all the same field.
fn below(path: &str, key: &str) -> String {
    let is_of_map = key
        .strip_prefix("key")
        .is_some_and(|rest| rest.parse::<u32>().is_ok());
    let key = if is_of_map { "*" } else { key };
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}
