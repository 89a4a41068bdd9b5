//! Looks into an entry as far as a store needs to.

use std::borrow::Cow;

use outrigger_protocol::{RawJson, repair, walk};

/// The `uuid` of an entry: two entries of one transcript with the same `uuid` are the same entry, sent twice. An empty `uuid`, and
/// one that is no text, identifies nothing. One with half of a UTF-16 pair, which no string can have, is returned as written in JSON.
pub fn uuid(entry: &RawJson) -> Option<String> {
    let fields = EntryFields::of(entry.get());
    let written = fields.get("uuid")?;
    match repair::lone_surrogates(written) {
        // With the surrogates replaced, two uuids that differ could become the same.
        Some(_) if written.starts_with('"') => Some(written.to_owned()),
        _ => text(written).filter(|uuid| !uuid.is_empty()),
    }
}

/// The fields of an object, as they are written. Of a key that stands twice the last one counts, as for the CLI.
pub(crate) struct EntryFields<'t>(Vec<(Cow<'t, str>, &'t str)>);

impl<'t> EntryFields<'t> {
    /// None at all if it is no object.
    pub(crate) fn of(text: &'t str) -> Self {
        let mut fields = Vec::new();
        match walk::fields(text, |key, value| fields.push((key, value))) {
            Some(()) => Self(fields),
            None => Self(Vec::new()),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'t str> {
        let mut fields = self.0.iter().rev();
        fields.find(|(name, _)| name == key).map(|(_, value)| *value)
    }

    /// The text under a key; none if it is something else.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.get(key).and_then(text)
    }

    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.get(key) == Some("true")
    }

    pub(crate) fn into_pairs(self) -> impl Iterator<Item = (Cow<'t, str>, &'t str)> {
        self.0.into_iter()
    }
}

/// The text of a JSON string, if it is one; lone surrogates become replacement characters.
pub(crate) fn text(json: &str) -> Option<String> {
    walk::string(json).map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::from_text(text).unwrap()
    }

    #[test]
    fn the_uuid_is_found_whatever_else_an_entry_has() {
        let deep = format!(r#"{{"x":{}{},"uuid":"u"}}"#, "[".repeat(5000), "]".repeat(5000));
        for text in [
            r#"{"uuid":"u"}"#,
            r#"{ "type" : "x", "uuid" : "u" }"#,
            r#"{"t":"\ud800 \u0000","uuid":"\u0075"}"#,
            r#"{"\u0061":1,"uuid":"u"}"#,
            r#"{"uuid":"first","uuid":"u"}"#,
            r#"{"n":1e999,"uuid":"u"}"#,
            &deep,
        ] {
            assert_eq!(uuid(&raw(text)).as_deref(), Some("u"), "{text:.60}");
        }
        let (one, other) = (raw(r#"{"uuid":"\ud800"}"#), raw(r#"{"uuid":"\ud801"}"#));
        assert_ne!(uuid(&one), uuid(&other));
        assert_ne!(uuid(&one), uuid(&raw(r#"{"uuid":"\ufffd"}"#)));
        assert_eq!(uuid(&one), uuid(&one.clone()));
        for text in [
            r#"{"uuid":""}"#,
            r#"{"uuid":1}"#,
            r#"{"a":{"uuid":"u"}}"#,
            "[]",
            "null",
            r#"{"uuid":null}"#,
        ] {
            assert_eq!(uuid(&raw(text)), None, "{text}");
        }
    }
}
