//! The decoder against serde_json.

use outrigger_json::decode::decode;
use outrigger_json::drift::{Drift, watch};
use outrigger_json::{RawJson, open_enum, wire_enum};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

wire_enum! {
    /// A block of a message.
    enum Block by "type" {
        "text" => Text(Text),
        "thinking" => Thinking(Thinking),
        "list" => List(List),
    }
}

open_enum! {
    /// Why a message ended.
    enum Reason {
        End = "end",
        Limit = "limit",
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Text {
    text: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Thinking {
    thinking: String,
    signature: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct List {
    id: String,
    content: Vec<Block>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Message {
    message: Content,
    session_id: Option<String>,
    extra: Option<RawJson>,
    cost: Option<f64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    content: Vec<Block>,
    reason: Option<Reason>,
}

/// What came of it: the value, shown, or that there is none.
fn shown<T: std::fmt::Debug>(
    read: (Result<T, serde_json::Error>, Vec<Drift>),
) -> (Option<String>, Vec<Drift>) {
    (read.0.ok().map(|value| format!("{value:?}")), read.1)
}

fn compare<T: DeserializeOwned + std::fmt::Debug>(text: &str) {
    let (expected, mut drift) = shown(watch(|| serde_json::from_str::<T>(text)));
    let (got, mut seen) = shown(watch(|| decode::<T>(text)));
    assert_eq!(got, expected, "{text}");
    // Text that is no JSON is not read as far.
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
        drift.sort();
        seen.sort();
        assert_eq!(seen, drift, "{text}");
    }
}

const MESSAGE: &str = r#"{"message":{"content":[{"type":"list","id":"l","content":[{"type":"text","text":"a"},{"text":"some\n\"text\" é","type":"text"}]},{"type":"thinking","thinking":"t","signature":null},{"type":"new","x":[1e400,"\ud83d"]}],"reason":"whim"},"session_id":"s","cost":0.00028000000000000003,"extra":{"type":"x","type":"y"}}"#;

#[test]
fn a_message_is_read_as_serde_json_reads_it() {
    compare::<Message>(MESSAGE);
    let (read, drift) = watch(|| decode::<Message>(MESSAGE));
    assert_eq!((read.unwrap().message.content.len(), drift.len()), (3, 2));
}

/// A block of text is read, and what else it becomes: an unknown kind, a misfit with its reason, or an error.
#[test]
fn what_is_unusual_becomes_what_it_has_to() {
    for (block, becomes) in [
        (r#"{"type":"text","text":"a"}"#, "Text"),
        (r#"{"text":"a","type":"text"}"#, "Text"),
        (r#" { "text" : "a" , "type" : "text" } "#, "Text"),
        (
            r#"{"a":1,"b":{"type":"x"},"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"text":"a","type":"text"}"#,
            "Text",
        ),
        (r#"{"text":"a","t\u0079pe":"text"}"#, "Text"),
        (r#"{"type":"te\u0078t","text":"a"}"#, "Text"),
        (r#"{"t\u0065xt":"a","type":"text"}"#, "Text"),
        (r#"{"type":"text","text":"\ud83d"}"#, "Text"),
        (r#"{"type":"never_seen","type":"text","text":"a"}"#, "Text"),
        (r#"{"type":"thinking","text":"a","type":"text"}"#, "Text"),
        (r#"{"type":"text","text":"a","type":"text"}"#, "Text"),
        (r#"{"type":"text","text":"a","type":"never_seen"}"#, "Unknown"),
        (r#"{"type":"never_seen","x":1}"#, "Unknown"),
        (r#"{"type":"text"}"#, "missing field `text` at line 1 column 15"),
        (
            r#"{"type":"text","text":5}"#,
            "invalid type: integer `5`, expected a string at line 1 column 24",
        ),
        (
            r#"{"type":"text","text":null}"#,
            "invalid type: null, expected a string at line 1 column 23",
        ),
        (
            r#"{"text":"a","text":"b","type":"text"}"#,
            "duplicate field `text` at line 1 column 19",
        ),
        (r#"{"type":"text","text":"a","type":null}"#, "no block"),
        (r#"{"text":"a"}"#, "no block"),
        ("[]", "no block"),
        ("null", "no block"),
        ("{", "no block"),
    ] {
        compare::<Block>(block);
        compare::<Vec<Block>>(&format!(r#"[{{"type":"text","text":"before"}},{block}]"#));
        compare::<Message>(&MESSAGE.replace(r#"{"type":"text","text":"a"}"#, block));
        match decode::<Block>(block) {
            Ok(Block::Text(_)) => assert_eq!("Text", becomes, "{block}"),
            Ok(Block::Unknown(raw)) => assert_eq!(("Unknown", raw.get()), (becomes, block), "{block}"),
            Ok(Block::Misfit(misfit)) => {
                assert_eq!((&*misfit.reason, misfit.raw.get()), (becomes, block), "{block}");
            }
            Ok(other) => panic!("{block}: {other:?}"),
            Err(_) => assert_eq!("no block", becomes, "{block}"),
        }
    }
}

#[test]
fn a_struct_is_not_made_of_an_array() {
    let read = decode::<Text>(r#"["a"]"#);
    assert!(
        read.unwrap_err()
            .to_string()
            .starts_with("invalid type: sequence")
    );
}

#[test]
fn errors_say_where() {
    let said = |text: &str| decode::<Message>(text).unwrap_err().to_string();
    let reason = "invalid type: integer `5`, expected struct Content at line 2 column 14";
    assert_eq!(said("{\n \"message\": 5}"), reason);
    assert_eq!(said("{}x"), "trailing characters at line 1 column 3");
    for broken in [
        "",
        "{",
        "{\"message\"}",
        "{\"a\":01}",
        "{\"a\":\"\u{1}\"}",
        "{\"a\":[1,]}",
    ] {
        assert_eq!(said(broken), said_by_serde_json(broken), "{broken}");
    }
}

fn said_by_serde_json(text: &str) -> String {
    serde_json::from_str::<Message>(text).unwrap_err().to_string()
}

/// What does not fit is read again in some cases. Where that is within another that is read again, it must not multiply; and what is
/// too deep for the stack is not read at all.
#[test]
fn what_does_not_fit_at_any_depth_is_read_in_time() {
    let nested = |before: &str, after: &str| {
        let mut block = r#"{"type":"text","text":"\ud83d"}"#.to_owned();
        for _ in 0..80 {
            block = format!(r#"{{"type":"list"{before},"content":[{block}]{after}}}"#);
        }
        block
    };
    for block in [
        // Each lacks its id.
        nested("", ""),
        nested(r#","id":5"#, ""),
        nested("", r#","type":"list""#),
        nested(r#","id":"t""#, r#","type":"text""#),
        nested(r#","id":"t""#, ""),
    ] {
        let (read, drift) = watch(|| decode::<Block>(&block));
        assert!(read.is_ok(), "{block}");
        assert!(drift.len() <= 81, "{} {block}", drift.len());
    }
}

#[test]
fn every_kind_of_value_is_read_alike() {
    use std::collections::BTreeMap;
    for text in [
        "0",
        "-0",
        "7",
        "-7",
        "01",
        "5.0",
        "5e0",
        "-2.5E+3",
        "0.00028000000000000003",
        "1e400",
        "1.",
        "-",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "18446744073709551615",
        "99999999999999999999",
        "null",
        "nul",
        "nulls",
        "true",
        "false",
        "truefalse",
        "\"a\"",
        "\"a",
        "\"a\" ",
        "\"\\u0041\\ud83d\\ude00\\n\"",
        "\"\\ud83d\"",
        "\"\\q\"",
        "\"\u{1}\"",
        "\"a\"b",
        "[]",
        "[ ]",
        "[1]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1,2,3]",
        "[[1],[2]]",
        "[1}",
        "{}",
        "{ }",
        "{\"a\":1}",
        "{\"a\":1,}",
        "{\"a\"}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1,\"a\":2}",
        "{\"\\u0061\":1}",
        "{\"1\":\"a\"}",
        "{1:2}",
        " \n\t{ \"a\" : [ 1 , 2.5 ] , \"b\" : null }\r\n ",
        "{\"a\":[1,2.5]",
        "",
        " ",
        "\u{feff}1",
    ] {
        compare::<RawJson>(text);
        compare::<Vec<RawJson>>(&format!("[{text} , {text}]"));
        compare::<(String, Option<String>)>(text);
        compare::<Option<f64>>(text);
        compare::<u64>(text);
        compare::<i8>(text);
        compare::<Option<bool>>(text);
        compare::<String>(text);
        compare::<()>(text);
        compare::<(u8, f64)>(text);
        compare::<Vec<u64>>(text);
        compare::<BTreeMap<String, Option<f64>>>(text);
        compare::<Reason>(text);
        compare::<Vec<serde::de::IgnoredAny>>(text);
    }
    let deep = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    for levels in [60, 65, 99, 101, 127, 128, 5000] {
        compare::<RawJson>(&deep(levels));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutated_messages_are_read_alike(
        edits in proptest::collection::vec(
            (any::<proptest::sample::Index>(), 0_usize..16, proptest::sample::select(&[
                "", "\"", "null", "5", "\"type\":\"text\",", "\"type\":", "{", "}", "[", "]", ",", "\\", "x", "\"text\"",
                "{\"type\":\"text\",\"text\":\"t\"},", "\"a\":1,", "\"reason\":1,",
            ][..])),
            1..4,
        ),
    ) {
        let mut text = MESSAGE.to_owned();
        for (at, cut, piece) in edits {
            let at = text.floor_char_boundary(at.index(text.len()));
            let end = at.max(text.floor_char_boundary((at + cut).min(text.len())));
            text.replace_range(at..end, piece);
        }
        compare::<Message>(&text);
    }
}
