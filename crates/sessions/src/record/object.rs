//! One record as text: its fields can be read and changed, and all others stay as they were written.

use std::borrow::Cow;

use super::{Fields, fields, last, text_of};

/// The fields of a JSON object in their order, each with the text of its value.
///
/// Values are never decoded and encoded again: lone surrogates, deep nesting and odd numbers come through.
#[derive(Debug, Clone)]
pub(crate) struct Object<'t> {
    fields: Fields<'t>,
}

impl<'t> Object<'t> {
    /// Reads the text of an object; `None` for everything else.
    pub(crate) fn parse(text: &'t str) -> Option<Self> {
        let fields = fields(text).ok()?;
        Some(Self { fields })
    }

    /// An object without fields.
    pub(crate) fn new() -> Self {
        Self { fields: Vec::new() }
    }

    /// The text of a field's value. Of a key that stands twice, the last one counts, as in JavaScript.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        last(&self.fields, key)
    }

    /// The value of a field, if it is a string. Lone surrogates become U+FFFD.
    pub(crate) fn string(&self, key: &str) -> Option<String> {
        text_of(self.get(key)?)
    }

    /// Sets a field, in its place if it is there and else at the end.
    pub(crate) fn set(&mut self, key: &'static str, value: impl Into<Cow<'t, str>>) {
        let value = value.into();
        let Some(last) = self.fields.iter().rposition(|(name, _)| name == key) else {
            self.fields.push((Cow::Borrowed(key), value));
            return;
        };
        self.fields[last].1 = value;
        let mut at = 0;
        self.fields.retain(|(name, _)| {
            at += 1;
            at > last || name != key
        });
    }

    /// Sets a field to a string.
    pub(crate) fn set_string(&mut self, key: &'static str, value: &str) {
        self.set(key, quoted(value));
    }

    /// Takes a field out.
    pub(crate) fn remove(&mut self, key: &str) {
        self.fields.retain(|(name, _)| name != key);
    }

    /// The whole object as text, without a line break.
    pub(crate) fn to_text(&self) -> String {
        let length: usize = self
            .fields
            .iter()
            .map(|(name, value)| name.len() + value.len() + 4)
            .sum();
        let mut text = String::with_capacity(length + 2);
        for (nth, (name, value)) in self.fields.iter().enumerate() {
            text.push(if nth == 0 { '{' } else { ',' });
            text.push_str(&quoted(name));
            text.push(':');
            text.push_str(value);
        }
        if self.fields.is_empty() {
            text.push('{');
        }
        text.push('}');
        text
    }
}

/// The elements of a JSON array as texts; none if it is no array.
pub(crate) fn elements(text: &str) -> Vec<Cow<'_, str>> {
    super::elements(text).unwrap_or_default()
}

/// A string as JSON.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_changed_stays_as_it_was_written() {
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        let text = format!(r#"{{"a": 1e400, "b" :"\ud83d","deep":{deep},"a":2,"\u0063":[ ]}}"#);
        let mut object = Object::parse(&text).unwrap();
        assert_eq!(
            (object.get("a"), object.get("c"), object.get("x")),
            (Some("2"), Some("[ ]"), None)
        );
        assert_eq!(object.string("b").as_deref(), Some("\u{fffd}"));
        object.set_string("a", "é\"");
        object.set("new", "true");
        object.remove("c");
        assert_eq!(object.get("new"), Some("true"));
        assert_eq!(
            object.to_text(),
            format!(r#"{{"b":"\ud83d","deep":{deep},"a":"é\"","new":true}}"#)
        );
        assert_eq!(Object::new().to_text(), "{}");
        for text in ["", "[]", "1", "{", r#"{"a":1}x"#, r#"{"a":1}{"#] {
            assert!(Object::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn elements_are_texts() {
        assert_eq!(
            elements(r#"[ {"a" :1}, "\ud800" ]"#),
            [r#"{"a" :1}"#, r#""\ud800""#]
        );
        assert!(elements("{}").is_empty());
    }
}
