//! Over the parts of JSON text without decoding them, for those who want one small part of a long text.
//!
//! It gives up on what it would have to think about, such as escapes in a key, other space than blanks, or deep nesting, and on
//! everything that is not JSON. Whoever asks then reads the text with serde_json, which says what is wrong with it if anything is.

use crate::frame;

/// Tells `each` the key and the text of the value of each field of the object that `text` is, in order; a key that stands twice
/// comes twice. `None` when it gave up, perhaps after it told some.
pub fn fields<'t>(text: &'t str, each: impl FnMut(&'t str, &'t str)) -> Option<()> {
    frame::fields(text, each)
}

/// Tells `each` the text of each element of the array that `text` is, in order. `None` when it gave up, perhaps after it told some.
pub fn elements<'t>(text: &'t str, each: impl FnMut(&'t str)) -> Option<()> {
    frame::elements(text, each)
}

/// What a string says, by its text with the quotes, if it has no escapes.
pub fn plain_string(text: &str) -> Option<&str> {
    let said = text.strip_prefix('"')?.strip_suffix('"')?;
    memchr::memchr2(b'\\', b'"', said.as_bytes())
        .is_none()
        .then_some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_in_order_or_it_gives_up() {
        let told = |text| {
            let mut told = Vec::new();
            let whole = fields(text, |key, value| told.push((key, value)));
            (whole.is_some(), told)
        };
        let text = r#" {"a": [1, {"b":"\"}"}], "c" :null,"a":"é" } "#;
        let all = vec![("a", r#"[1, {"b":"\"}"}]"#), ("c", "null"), ("a", "\"é\"")];
        assert_eq!(told(text), (true, all));
        assert_eq!(told("{}"), (true, Vec::new()));
        for text in [
            r#"{"a":1} x"#,
            r#"{"a":1,}"#,
            r#"{"a":1"#,
            "[1]",
            "",
            r#"{"\u0061":1}"#,
        ] {
            assert!(!told(text).0, "{text}");
        }
        let told = |text| {
            let mut told = Vec::new();
            elements(text, |element| told.push(element)).map(|()| told)
        };
        assert_eq!(told(r#"[1 , "]", [2] ]"#), Some(vec!["1", r#""]""#, "[2]"]));
        assert_eq!(told("[ ]"), Some(Vec::new()));
        for text in ["[1,]", "[1", "[1] 2", "{}", ""] {
            assert_eq!(told(text), None, "{text}");
        }
        assert_eq!(plain_string(r#""é""#), Some("é"));
        for text in ["\"", r#""a\n""#, "1", ""] {
            assert_eq!(plain_string(text), None, "{text}");
        }
    }
}
