//! Comparison of what came with what our types make of it, for tests.

use serde_json::Value;

/// The paths in `told` that `ours` lacks or has otherwise. What `ours` has beyond that does not count, and 5 is 5.0.
pub(crate) fn uncovered(told: &Value, ours: &Value) -> Vec<String> {
    fn walk(path: &str, told: &Value, ours: Option<&Value>, found: &mut Vec<String>) {
        match (told, ours) {
            (Value::Object(told), Some(Value::Object(ours))) => {
                for (key, value) in told {
                    walk(&format!("{path}.{key}"), value, ours.get(key), found);
                }
            }
            (Value::Array(told), Some(Value::Array(ours))) if told.len() == ours.len() => {
                for (index, value) in told.iter().enumerate() {
                    walk(&format!("{path}[{index}]"), value, ours.get(index), found);
                }
            }
            (Value::Number(told), Some(Value::Number(ours))) if told.as_f64() == ours.as_f64() => {}
            (told, Some(ours)) if told == ours => {}
            _ => found.push(format!("{path}: {told} / {ours:?}")),
        }
    }
    let mut found = Vec::new();
    walk("", told, Some(ours), &mut found);
    found
}
