//! Reading straight through against reading in the general way.

use proptest::prelude::*;

use super::*;
use crate::drift::{Drift, watch};
use crate::inbound::{AssistantMessage, StreamEvent, UserMessage};
use crate::shared::ContentBlock;

/// What came of it: the value, shown, or that there is none.
fn shown<T: fmt::Debug>(read: (Result<T, serde_json::Error>, Vec<Drift>)) -> (Option<String>, Vec<Drift>) {
    (read.0.ok().map(|value| format!("{value:?}")), read.1)
}

fn compare<T: DeserializeOwned + fmt::Debug>(text: &str) {
    let general = watch(|| within(Mode::General, || serde_json::from_str::<T>(text)).0);
    let (general, mut expected) = shown(general);
    let (got, mut seen) = shown(watch(|| decode::<T>(text)));
    assert_eq!(got, general, "{text}");
    expected.sort();
    seen.sort();
    assert_eq!(seen, expected, "{text}");
}

/// Whether nothing had to be read twice.
fn goes_straight<T: DeserializeOwned>(text: &str) -> bool {
    let (read, mode) = within(Mode::Straight, || reader::read::<T>(text));
    read.is_ok() && mode == Mode::Straight
}

const DELTA: &str = r#"{"event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some\n\"text\" é"}},"session_id":"s","parent_tool_use_id":null,"uuid":"u","api_message_id":"m"}"#;
const RESULT: &str = r#"{"message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":[{"type":"text","text":"a"},{"source":{"type":"base64","media_type":"image/png","data":"eA=="},"type":"image"}],"is_error":false}]},"session_id":"s","uuid":"u","tool_use_result":{"type":"x","type":"y"}}"#;
const CALL: &str = r#"{"message":{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"t","name":"Bash","input":{"type":"text","a":[1e400,"\ud83d"]}}],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"s","uuid":"u"}"#;

#[test]
fn what_the_cli_writes_is_read_in_one_pass() {
    assert!(goes_straight::<StreamEvent>(DELTA));
    assert!(goes_straight::<UserMessage>(RESULT));
    assert!(goes_straight::<AssistantMessage>(CALL));
    compare::<StreamEvent>(DELTA);
    compare::<UserMessage>(RESULT);
    compare::<AssistantMessage>(CALL);
}

#[test]
fn what_is_unusual_becomes_what_it_would_have_been() {
    for block in [
        r#"{"type":"text"}"#,
        r#"{"type":"text","text":5}"#,
        r#"{"type":"never_seen","x":1}"#,
        r#"{"type":"text","text":"a","type":"thinking","thinking":"b","signature":"c"}"#,
        r#"{"type":"text","type":null,"text":"a"}"#,
        r#"{"text":"a","t\u0079pe":"text"}"#,
        r#"{"type":"te\u0078t","text":"a"}"#,
        r#"{"text":"a","text":"b","type":"text"}"#,
        r#"{"type":"text","text":"\ud83d"}"#,
        r#"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"text":"a","type":"text"}"#,
        r#"{"type":"tool_result","tool_use_id":"t","content":[{"type":"text"},{"type":"new"}]}"#,
        r#"{"text":"a"}"#,
        "[]",
        "null",
        "{",
    ] {
        compare::<ContentBlock>(block);
        compare::<Vec<ContentBlock>>(&format!(r#"[{{"type":"text","text":"before"}},{block}]"#));
        compare::<UserMessage>(&RESULT.replace(r#"{"type":"text","text":"a"}"#, block));
    }
}

#[test]
fn an_error_that_somebody_takes_for_an_answer_counts() {
    #[derive(Debug, serde::Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "shown by Debug")]
    enum Either {
        Any(BTreeUnion),
        Text(String),
    }
    #[derive(Debug)]
    struct BTreeUnion(#[expect(dead_code, reason = "shown by Debug")] Option<ContentBlock>);
    impl<'de> serde::Deserialize<'de> for BTreeUnion {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            Ok(Self(ContentBlock::deserialize(deserializer).ok()))
        }
    }
    compare::<BTreeUnion>(r#"{"type":"text"}"#);
    compare::<Either>(r#""x""#);
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
        compare::<serde_json::Value>(text);
        compare::<Option<serde_json::Value>>(text);
        compare::<crate::RawJson>(text);
        compare::<Vec<crate::RawJson>>(&format!("[{text} , {text}]"));
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
        compare::<BTreeMap<u8, String>>(text);
        compare::<crate::inbound::StopReason>(text);
        compare::<Vec<serde::de::IgnoredAny>>(text);
    }
    let deep = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    for levels in [60, 65, 99, 101, 127, 128, 5000] {
        compare::<serde_json::Value>(&deep(levels));
        compare::<crate::RawJson>(&deep(levels));
    }
    assert!(goes_straight::<Vec<crate::RawJson>>(r#"[{"a":[1.5,"\n"]},null]"#));
    assert!(goes_straight::<(u64, f64, Option<String>)>(
        r#"[7,-2.5e3,"\u00e9"]"#
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutated_messages_are_read_alike(
        which in 0_usize..3,
        edits in proptest::collection::vec(
            (any::<proptest::sample::Index>(), 0_usize..16, proptest::sample::select(&[
                "", "\"", "null", "5", "\"type\":\"text\",", "\"type\":", "{", "}", "[", "]", ",", "\\", "x", "\"text\"",
                "{\"type\":\"text\",\"text\":\"t\"},", "\"a\":1,", "\"index\":1,",
            ][..])),
            1..4,
        ),
    ) {
        let mut text = [DELTA, RESULT, CALL][which].to_owned();
        for (at, cut, piece) in edits {
            let at = floor(&text, at.index(text.len()));
            let end = at.max(floor(&text, (at + cut).min(text.len())));
            text.replace_range(at..end, piece);
        }
        match which {
            0 => compare::<StreamEvent>(&text),
            1 => compare::<UserMessage>(&text),
            _ => compare::<AssistantMessage>(&text),
        }
    }
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
