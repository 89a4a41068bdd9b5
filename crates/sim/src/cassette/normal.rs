//! Values without what differs from run to run.

use std::collections::HashMap;

use serde_json::Value;

use super::matching::is_time;
use super::places::Places;
use crate::word_list::WordList;

/// Values that are the same in each run, for snapshots: ids are numbered in their order over all of them (`[uuid-1]`,
/// `[toolu-1]`), times are `[time]`, directories and names of this machine `[cwd]`, `[home]`, `[tmp]`, `[user]`, `[host]`, and numbers
/// that measure something (milliseconds, costs, counts of tokens) `[number]`.
///
/// ```
/// use outrigger_sim::cassette::normalised;
/// use serde_json::json;
///
/// let values = vec![json!({"uuid": "5e551000-0000-4000-8000-000000000001", "duration_ms": 17, "num_turns": 1})];
/// assert_eq!(normalised(values), [json!({"uuid": "[uuid-1]", "duration_ms": "[number]", "num_turns": 1})]);
/// ```
pub fn normalised(values: Vec<Value>) -> Vec<Value> {
    let mut normal = Normal {
        places: Places::here()
            .needles()
            .into_iter()
            .map(|needle| (needle.text, format!("[{}]", needle.name)))
            .collect(),
        known: HashMap::new(),
        counted: HashMap::new(),
    };
    values.into_iter().map(|value| normal.value("", value)).collect()
}

struct Normal {
    places: Vec<(String, String)>,
    known: HashMap<String, String>,
    counted: HashMap<&'static str, usize>,
}

impl Normal {
    fn value(&mut self, key: &str, value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(key, value)| {
                    let value = self.value(&key, value);
                    (self.text(&key), value)
                });
                Value::Object(fields.collect())
            }
            Value::Array(items) => items.into_iter().map(|item| self.value(key, item)).collect(),
            Value::String(text) => Value::String(self.text(&text)),
            Value::Number(_) if is_measure(key) => Value::from("[number]"),
            other => other,
        }
    }

    fn text(&mut self, text: &str) -> String {
        if is_time(text) {
            return "[time]".to_owned();
        }
        for (prefix, kind) in [
            ("toolu_", "toolu"),
            ("msg_", "msg"),
            ("req_", "req"),
            ("run_", "run"),
        ] {
            let is_id = |id: &str| {
                !id.is_empty()
                    && id
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            };
            if text.strip_prefix(prefix).is_some_and(is_id) {
                return self.id(kind, text);
            }
        }
        let mut text = text.to_owned();
        for (place, name) in &self.places {
            text = text.replace(place.as_str(), name);
        }
        let mut from = 0;
        while let Some(window) = text.get(from..).filter(|rest| rest.len() >= 36) {
            let uuid = window
                .get(..36)
                .filter(|uuid| uuid::Uuid::try_parse(uuid).is_ok());
            let Some(uuid) = uuid.map(str::to_owned) else {
                from += window.chars().next().map_or(1, char::len_utf8);
                continue;
            };
            let name = self.id("uuid", &uuid);
            text.replace_range(from..from + 36, &name);
            from += name.len();
        }
        text
    }

    fn id(&mut self, kind: &'static str, id: &str) -> String {
        if let Some(name) = self.known.get(id) {
            return name.clone();
        }
        let number = self.counted.entry(kind).or_default();
        *number += 1;
        let name = format!("[{kind}-{number}]");
        self.known.insert(id.to_owned(), name.clone());
        name
    }
}

/// Whether numbers under this key are measured.
fn is_measure(key: &str) -> bool {
    const ENDS: WordList = WordList("_ms _at cost costusd cost_usd tokens timestamp pid _time");
    let key = key.to_ascii_lowercase();
    ENDS.iter().any(|end| key.ends_with(end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_named_and_the_rest_stays() {
        let uuid = |n: u8| format!("5e551000-0000-4000-8000-00000000000{n}");
        let here = std::env::current_dir().unwrap();
        let values = vec![
            json!({"uuid": uuid(1), "at": "2026-01-01T00:00:00.000Z", "total_cost_usd": 0.25, "inputTokens": 4, "n": 3}),
            json!({"uuid": uuid(2), "for": uuid(1), "list": [{"tool_use_id": "toolu_01Abc"}], "cwd": here.join("x")}),
            json!({"path": format!("/x/{}/y/{}.jsonl", uuid(2), uuid(3)), "text": "msg_ of é and more than thirty-six bytes"}),
        ];
        assert_eq!(
            normalised(values),
            [
                json!({"uuid": "[uuid-1]", "at": "[time]", "total_cost_usd": "[number]", "inputTokens": "[number]", "n": 3}),
                json!({"uuid": "[uuid-2]", "for": "[uuid-1]", "list": [{"tool_use_id": "[toolu-1]"}], "cwd": "[cwd]/x"}),
                json!({"path": "/x/[uuid-2]/y/[uuid-3].jsonl", "text": "msg_ of é and more than thirty-six bytes"}),
            ]
        );
    }
}
