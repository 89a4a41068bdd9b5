//! Walks against serde_json.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use outrigger_json::walk::{Walk, elements, fields, string, string_at};
use proptest::prelude::*;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of an object, in order.
#[derive(Debug, PartialEq)]
struct Fields(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Fields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    fields.push((key, value.get().to_owned()));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

fn walked(text: &str) -> Option<Fields> {
    let mut found = Vec::new();
    fields(text, |key, value| {
        found.push((key.into_owned(), value.to_owned()))
    })?;
    Some(Fields(found))
}

/// Reads a text in all ways that there are.
fn compare(text: &str) {
    let by_serde = serde_json::from_str::<Fields>(text);
    match by_serde {
        Ok(by_serde) => assert_eq!(walked(text), Some(by_serde), "{text}"),
        // Half of a surrogate pair in a key is an error of serde_json.
        Err(error) if error.to_string().contains("surrogate") || error.to_string().contains("hex escape") => {
        }
        Err(_) => assert_eq!(walked(text), None, "{text}"),
    }
    let mut list = Vec::new();
    let list = elements(text, |element| list.push(element.to_owned())).map(|()| list);
    let by_serde = serde_json::from_str::<Vec<&RawValue>>(text).ok();
    let by_serde = by_serde.map(|list| list.iter().map(|raw| raw.get().to_owned()).collect::<Vec<_>>());
    assert_eq!(list, by_serde, "{text}");
    let plain = text.trim_matches([' ', '\n', '\t', '\r']);
    let by_serde = serde_json::from_str::<String>(plain);
    match by_serde {
        Ok(by_serde) => assert_eq!(string(plain).as_deref(), Some(&*by_serde), "{text}"),
        Err(_) if outrigger_json::repair::lone_surrogates(plain).is_some() => {}
        Err(_) => assert_eq!(string(plain), None, "{text}"),
    }
    // Where a value ends, whatever comes behind it.
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    if let Some(Ok(_)) = values.next() {
        let mut walk = Walk::of(text.as_bytes());
        assert!(walk.value().is_some(), "{text}");
        assert_eq!(walk.at(), values.byte_offset(), "{text}");
    }
    if serde_json::from_str::<IgnoredAny>(text).is_err() {
        let mut walk = Walk::of(text.as_bytes());
        assert_eq!(walk.value().and_then(|()| walk.end()), None, "{text}");
    }
}

#[test]
fn whatever_is_unusual_is_read_as_serde_json_reads_it() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    for value in [
        "",
        " ",
        "nul",
        "null",
        "tru",
        "truer",
        "0",
        "-0",
        "01",
        "1.",
        ".5",
        "1e",
        "1e400",
        "-2.5E+3",
        "+1",
        "-",
        "[]",
        "[ ]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{,}",
        "{}",
        "{ }",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "[}",
        "{]",
        "{\"a\":[}]",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\",
        "\"",
        "'a'",
        "[1]]",
        "1,",
        "{\"\\u0061\":1}",
        "{\"\\ud83d\":1}",
        "\"\\ud83d\"",
        "{\"a\":[1, {\"b\":\"\\\"}\"}], \"c\" :null,\"a\":\"é\" }",
        "{\n\t\"é\" :\r\n1}",
        "\u{feff}{}",
        "\"\u{1}\"",
        "\"é\\n\"",
        &deep(64),
        &deep(65),
        &deep(5000),
        &deep(65)[1..],
    ] {
        for text in [
            value.to_owned(),
            format!(" {value}\n"),
            format!("{value}x"),
            format!("{{\"x\":{value}}}"),
            format!("[1,{value} , 2]"),
            format!("{{\"a\":{{\"b\":[{value}"),
        ] {
            compare(&text);
        }
    }
}

#[test]
fn strings_have_no_lone_surrogates() {
    assert_eq!(string(r#""plain""#), Some(Cow::Borrowed("plain")));
    assert_eq!(
        string(r#""a\ud83db\ude00\n""#).as_deref(),
        Some("a\u{fffd}b\u{fffd}\n")
    );
    let mut keys = Vec::new();
    fields(r#"{"\ud83d":1}"#, |key, _| keys.push(key.into_owned())).unwrap();
    assert_eq!(keys, ["\u{fffd}"]);
}

#[test]
fn the_last_of_two_equal_keys_counts() {
    assert_eq!(string_at(r#"{"a":"b","\u0061":"c"}"#, "a").as_deref(), Some("c"));
    assert_eq!(string_at(r#"{"a":"b","a":5}"#, "a"), None);
    assert_eq!(string_at(r#"{"a":"b""#, "a"), None);
    assert_eq!(string_at("[]", "a"), None);
}

fn piece() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(
        &[
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            " ",
            "\t",
            "\n",
            "\"",
            "\\",
            "\\u",
            "\\ud83d",
            "\\ude00",
            "\\n",
            "null",
            "true",
            "false",
            "0",
            "-1.5e3",
            "é",
            "\u{0}",
            "\"a\"",
            "\"a\":",
            "\"b\":1,",
            "\"a\\\"b\"",
            "\"\"",
            "{}",
            "[]",
            "[[1],{\"x\":2}]",
        ][..],
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn pieces_of_json_are_walked_as_serde_json_reads_them(pieces in proptest::collection::vec(piece(), 0..24)) {
        let text = pieces.concat();
        compare(&text);
        compare(&format!("{{\"a\":{text}}}"));
        compare(&format!("[{text}]"));
    }

    #[test]
    fn objects_are_walked_whatever_they_hold(
        map in proptest::collection::btree_map(".{0,6}", prop_oneof![".{0,80}".prop_map(serde_json::Value::from), any::<f64>().prop_map(serde_json::Value::from)], 0..6),
    ) {
        let map: BTreeMap<String, serde_json::Value> = map;
        compare(&serde_json::to_string(&map).unwrap());
        compare(&serde_json::to_string_pretty(&map).unwrap());
    }
}
