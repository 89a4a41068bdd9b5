//! Truncates long texts, with a note.

use serde_json::Value;

/// The longest text of an update, in bytes.
pub(super) const MOST_TEXT: usize = 64 * 1024;

/// The longest string of an input or output, in bytes.
const MOST_STRING: usize = 8 * 1024;

/// The longest diff, which is sent whole or not at all.
pub(super) const MOST_DIFF: usize = 1024 * 1024;

pub(super) fn text(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let left = text.len() - end;
    format!("{}\n… ({left} bytes more)", &text[..end])
}

/// Leaves out the middle of a long string: of the input of a call, the end may be what matters.
fn string(text: String) -> String {
    if text.len() <= MOST_STRING {
        return text;
    }
    let boundary_before = |at: usize| (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let begin = boundary_before(MOST_STRING / 4 * 3);
    let end = boundary_before(text.len() - MOST_STRING / 4);
    let left = end - begin;
    format!(
        "{}\n… ({left} bytes are left out here) …\n{}",
        &text[..begin],
        &text[end..]
    )
}

/// Truncates the strings of a value.
pub(crate) fn value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(string(text)),
        Value::Array(list) => Value::Array(list.into_iter().map(self::value).collect()),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            Value::Object(fields.map(|(name, value)| (name, self::value(value))).collect())
        }
        other => other,
    }
}

/// A message of the CLI for programs: without nulls, and without the ids of its frame.
pub(super) fn frame(value: Value) -> Value {
    let mut value = self::value(value);
    if let Value::Object(fields) = &mut value {
        fields.retain(|name, _| name != "uuid" && name != "session_id");
    }
    drop_nulls(&mut value);
    value
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(text("abc".into(), 3), "abc");
        assert_eq!(text("abcd".into(), 3), "abc\n… (1 bytes more)");
        assert_eq!(text("éé".into(), 3), "é\n… (2 bytes more)");
        let long = "x".repeat(MOST_STRING + 1);
        let cut = value(serde_json::json!({"a": [long, 1]}));
        let cut_text = cut["a"][0].as_str().unwrap();
        assert!(
            cut_text.contains("x\n… (1 bytes are left out here) …\nx"),
            "{cut_text}"
        );
        let long = format!("{}; rm important", "é".repeat(MOST_STRING));
        let cut_text = string(long);
        assert!(cut_text.starts_with('é') && cut_text.ends_with("; rm important"));
        assert_eq!(cut["a"][1], 1);
        let said = serde_json::json!({"uuid": "u", "a": null, "b": [{"c": null, "d": 1, "uuid": 2}]});
        assert_eq!(frame(said), serde_json::json!({"b": [{"d": 1, "uuid": 2}]}));
    }
}
