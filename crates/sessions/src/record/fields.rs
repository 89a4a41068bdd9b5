//! Over the parts of JSON text without decoding them, however odd it is written.

use std::borrow::Cow;

use outrigger_protocol::{RawJson, walk};

use super::DamageReason;

/// The fields of an object in their order, each as its name and the text of its value.
pub(crate) type Fields<'t> = Vec<(Cow<'t, str>, Cow<'t, str>)>;

/// The fields of the object that `text` is. NUL bytes before it are passed over: a machine that stopped may have left some. (The CLI
/// leaves such a record out; `repair` mends it.)
pub(crate) fn fields(text: &str) -> Result<Fields<'_>, DamageReason> {
    let text = text.trim_start_matches('\0');
    let mut fields = Vec::with_capacity(24);
    let whole = walk::fields(text, |key, value| fields.push((key, Cow::Borrowed(value))));
    if whole.is_some() {
        return Ok(fields);
    }
    match RawJson::from_text(text.trim()) {
        Ok(_) => Err(DamageReason::NotAnObject),
        Err(error) => Err(DamageReason::NotJson(error.to_string())),
    }
}

/// The value of the last field of this name.
pub(crate) fn last<'f>(fields: &'f Fields<'_>, name: &str) -> Option<&'f str> {
    let found = fields.iter().rev().find(|(key, _)| key == name)?;
    Some(&found.1)
}

/// The elements of the array that `text` is. `None` if it is none.
pub(crate) fn elements(text: &str) -> Option<Vec<Cow<'_, str>>> {
    let mut elements = Vec::new();
    walk::elements(text, |element| elements.push(Cow::Borrowed(element)))?;
    Some(elements)
}

/// The text of a JSON string, if the value is one; a lone surrogate becomes U+FFFD.
pub(crate) fn text_of(value: &str) -> Option<String> {
    walk::string(value).map(Cow::into_owned)
}

/// Whether a condition in JavaScript holds for a value.
pub(crate) fn is_truthy(value: &str) -> bool {
    match value {
        "true" => true,
        "false" | "null" | "\"\"" => false,
        number if number.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
            number.parse::<f64>().is_ok_and(|number| number != 0.0)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_count_as_in_javascript() {
        for value in ["true", "1", "-0.5", "\"false\"", "{}", "[]"] {
            assert!(is_truthy(value), "{value}");
        }
        for value in ["false", "null", "0", "-0", "0.0", "\"\""] {
            assert!(!is_truthy(value), "{value}");
        }
    }

    #[test]
    fn parts_are_found_however_they_are_written() {
        let text = "\0\0{\t\"a\":1,\"\\u0062\":[\"\\ud83d\"],\"a\":2}";
        let read = fields(text).unwrap();
        assert_eq!(
            (last(&read, "a"), last(&read, "b"), last(&read, "c")),
            (Some("2"), Some("[\"\\ud83d\"]"), None)
        );
        assert_eq!(text_of("\"\\ud83d\"").as_deref(), Some("\u{fffd}"));
        assert_eq!(text_of("7"), None);
        assert_eq!(elements("[1,\t{}]").unwrap(), ["1", "{}"]);
        assert_eq!(elements("{}"), None);
    }
}
