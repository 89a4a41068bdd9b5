//! One source on top of another.

use std::collections::HashSet;

use serde_json::Value;

use super::settings_file::SettingsObject;

/// Lists in which the higher source replaces the lower: an order of preference.
const REPLACED: &[&str] = &["fallbackModel"];

/// Lays `over` on top: objects key by key, lists one behind the other, all else replaced.
pub(super) fn lay_over(under: &mut SettingsObject, over: SettingsObject) {
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
pub(super) fn lay_under(over: &mut SettingsObject, under: SettingsObject) {
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
    let mut plain = HashSet::new();
    let is_kept = |value: &Value| value.is_object() || value.is_array() || plain.insert(value.to_string());
    let all = std::mem::take(under).into_iter().chain(over);
    under.extend(all.filter(is_kept));
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> SettingsObject {
        value.as_object().unwrap().clone()
    }

    #[track_caller]
    fn assert_over(under: Value, over: Value, expected: Value) {
        let mut all = object(under);
        lay_over(&mut all, object(over));
        assert_eq!(Value::Object(all), expected);
    }

    #[track_caller]
    fn assert_under(over: Value, under: Value, expected: Value) {
        let mut all = object(over);
        lay_under(&mut all, object(under));
        assert_eq!(Value::Object(all), expected);
    }

    #[test]
    fn the_higher_source_wins_key_by_key() {
        assert_over(
            json!({"model": "low", "env": {"A": "low", "B": "low"}, "only": 1}),
            json!({"model": "high", "env": {"A": "high", "C": "high"}}),
            json!({"model": "high", "env": {"A": "high", "B": "low", "C": "high"}, "only": 1}),
        );
        assert_over(json!({"a": {"b": 1}}), json!({"a": null}), json!({"a": null}));
    }

    #[test]
    fn lists_follow_one_another_and_only_what_is_plain_is_in_them_once() {
        assert_over(
            json!({"permissions": {"deny": ["A", "B", 1]}, "hooks": [{"x": 1}]}),
            json!({"permissions": {"deny": ["B", "C", 1]}, "hooks": [{"x": 1}]}),
            json!({"permissions": {"deny": ["A", "B", 1, "C"]}, "hooks": [{"x": 1}, {"x": 1}]}),
        );
        assert_over(json!({"a": ["A"]}), json!({"a": {"b": 1}}), json!({"a": ["A"]}));
        assert_over(json!({"a": ["A"]}), json!({"a": "B"}), json!({"a": "B"}));
    }

    /// With a look through the list for each value this takes many minutes.
    #[test]
    fn long_lists_follow_one_another_soon() {
        let list = |from: usize| json!({"deny": (from..from + 500_000).collect::<Vec<_>>()});
        let mut all = object(list(0));
        lay_over(&mut all, object(list(250_000)));
        assert_eq!(all["deny"].as_array().unwrap().len(), 750_000);
    }

    #[test]
    fn an_order_of_preference_and_a_marketplace_are_replaced_as_a_whole() {
        assert_over(
            json!({"fallbackModel": ["a", "b"], "extraKnownMarketplaces": {"m": {"source": 1, "low": 1}, "n": {}}}),
            json!({"fallbackModel": ["c"], "extraKnownMarketplaces": {"m": {"source": 2}}}),
            json!({"fallbackModel": ["c"], "extraKnownMarketplaces": {"m": {"source": 2}, "n": {}}}),
        );
    }

    #[test]
    fn what_comes_below_fills_gaps_and_lengthens_lists() {
        assert_under(
            json!({"model": "high", "permissions": {"deny": ["H"], "ask": "no list"}, "fallbackModel": ["h"], "a": ["x"]}),
            json!({"model": "low", "only": 1, "permissions": {"deny": ["L", "H"], "ask": ["L"], "allow": ["L"]}, "fallbackModel": ["l"], "a": {"b": 1}}),
            json!({"model": "high", "only": 1, "permissions": {"deny": ["H", "L"], "ask": "no list", "allow": ["L"]}, "fallbackModel": ["h"], "a": ["x"]}),
        );
    }
}
