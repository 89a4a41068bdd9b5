//! One source on top of another.

use serde_json::Value;

use super::file::Object;

/// Lists in which the higher source replaces the lower: an order of preference.
const REPLACED: &[&str] = &["fallbackModel"];

/// Lays `over` on top: objects key by key, lists one behind the other, all else replaced.
pub(super) fn lay_over(under: &mut Object, over: Object) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            // A marketplace is one thing, not two mixed.
            (Some(Value::Object(under)), Value::Object(over)) if key == "extraKnownMarketplaces" => {
                under.extend(over);
            }
            (Some(under), value) if !REPLACED.contains(&key.as_str()) => join(under, value),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

/// Puts what a lower source has below a higher one: the higher one's scalars stay, and its lists come first.
pub(super) fn lay_under(over: &mut Object, under: Object) {
    for (key, value) in under {
        match over.get_mut(&key) {
            None => {
                over.insert(key, value);
            }
            Some(Value::Object(over)) => {
                if let Value::Object(under) = value {
                    lay_under(over, under);
                }
            }
            Some(Value::Array(over)) => {
                if let Value::Array(under) = value
                    && !REPLACED.contains(&key.as_str())
                {
                    append(over, under);
                }
            }
            Some(_) => {}
        }
    }
}

fn join(under: &mut Value, over: Value) {
    match (&mut *under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                match under.get_mut(&key) {
                    Some(under) => join(under, value),
                    None => {
                        under.insert(key, value);
                    }
                }
            }
        }
        (Value::Array(under), Value::Array(over)) => append(under, over),
        // An object does not replace a list.
        (Value::Array(_), Value::Object(_)) => {}
        (_, over) => *under = over,
    }
}

/// One list behind the other. Texts, numbers and the like are in it once; objects are never the same, as in JavaScript.
fn append(under: &mut Vec<Value>, over: Vec<Value>) {
    let all = std::mem::take(under).into_iter().chain(over);
    for value in all {
        let is_plain = !value.is_object() && !value.is_array();
        if !is_plain || !under.contains(&value) {
            under.push(value);
        }
    }
}
