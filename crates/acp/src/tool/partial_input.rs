//! The input of a tool call while it streams.

use outrigger::protocol::RawJson;

/// Longer inputs are parsed when they are complete: the target is at their beginning.
const MOST: usize = 256 * 1024;

/// A growing JSON object, and the end of its complete fields.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    text: String,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Whether the next value is of the object itself.
    in_value: bool,
    /// Whether the value has ended, although no comma has come.
    closed: bool,
    /// The end of the last complete field.
    whole: usize,
}

impl Partial {
    /// Appends a piece. Returns whether it completes a field.
    pub(crate) fn push(&mut self, piece: &str) -> bool {
        if self.text.len() + piece.len() > MOST {
            return false;
        }
        let start = self.text.len();
        self.text.push_str(piece);
        let before = self.whole;
        for (at, byte) in piece.bytes().enumerate() {
            self.step(start + at, byte);
        }
        self.whole > before
    }

    fn step(&mut self, at: usize, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => {
                    self.in_string = false;
                    self.close(at + 1);
                }
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                if self.depth == 1 {
                    self.close(at);
                }
                self.depth = self.depth.saturating_sub(1);
                self.close(at + 1);
            }
            b':' if self.depth == 1 => (self.in_value, self.closed) = (true, false),
            b',' if self.depth == 1 => {
                self.close(at);
                self.in_value = false;
            }
            _ => {}
        }
    }

    /// Marks the end of a value of the object itself.
    fn close(&mut self, at: usize) {
        if self.depth == 1 && self.in_value && !self.closed {
            self.closed = true;
            self.whole = at;
        }
    }

    /// The complete fields as an object; `None` if there are none.
    pub(crate) fn fields(&self) -> Option<RawJson> {
        if self.whole == 0 {
            return None;
        }
        RawJson::from_text(format!("{}}}", &self.text[..self.whole])).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(pieces: &[&str]) -> (Vec<bool>, Option<String>) {
        let mut partial = Partial::default();
        let grown = pieces.iter().map(|piece| partial.push(piece)).collect();
        (grown, partial.fields().map(|raw| raw.get().to_owned()))
    }

    #[test]
    fn a_field_is_whole_when_its_value_is() {
        let (grown, fields) = after(&[r#"{"a": "x"#, r#"\"}y""#, ", \"b\"", ": 1", "2,", "\"c\": [1, {"]);
        assert_eq!(grown, [false, true, false, false, true, false]);
        assert_eq!(fields.as_deref(), Some(r#"{"a": "x\"}y", "b": 12}"#));
    }

    #[test]
    fn nested_values_and_the_end_count() {
        let (_, fields) = after(&[r#"{"a": {"b": "c", "d": [1]}"#]);
        assert_eq!(fields.as_deref(), Some(r#"{"a": {"b": "c", "d": [1]}}"#));
        let (_, fields) = after(&[r#"{"a": true}"#]);
        assert_eq!(fields.as_deref(), Some(r#"{"a": true}"#));
        assert_eq!(after(&["{}"]).1, None);
        assert_eq!(after(&["{\"a"]).1, None);
        assert_eq!(after(&["]]}}{{", "\"x\":,,"]).1, None);
    }

    proptest::proptest! {
        #[test]
        fn wherever_it_is_cut_the_whole_fields_are_an_object(
            fields in proptest::collection::vec(("[a-z\"\\\\{}]{1,6}", "[ -~]{0,12}"), 0..5),
            size in 1usize..7,
        ) {
            let mut object = serde_json::Map::new();
            for (name, value) in fields {
                object.insert(name, serde_json::json!([value, 1, {"k": value.clone()}]));
            }
            let text = serde_json::Value::Object(object.clone()).to_string();
            let mut partial = Partial::default();
            let bytes: Vec<char> = text.chars().collect();
            let mut seen = 0;
            for piece in bytes.chunks(size) {
                partial.push(&piece.iter().collect::<String>());
                if let Some(raw) = partial.fields() {
                    let now: serde_json::Map<String, serde_json::Value> = raw.decode().unwrap();
                    proptest::prop_assert!(now.len() >= seen);
                    proptest::prop_assert!(now.iter().all(|(name, value)| object.get(name) == Some(value)));
                    seen = now.len();
                }
            }
            proptest::prop_assert_eq!(seen, object.len());
        }

        #[test]
        fn no_text_upsets_it(pieces in proptest::collection::vec("[{}\\[\\]\",:a\\\\é ]{0,9}", 0..12)) {
            let mut partial = Partial::default();
            for piece in pieces {
                partial.push(&piece);
                let _ = partial.fields();
            }
        }
    }
}
