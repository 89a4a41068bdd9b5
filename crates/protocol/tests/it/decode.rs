//! The decoder against serde_json, on messages as the CLI writes them.

use outrigger_json::decode::decode;
use outrigger_protocol::drift::{Drift, watch};
use outrigger_protocol::inbound::{AssistantMessage, StreamEvent, UserMessage};
use proptest::prelude::*;
use serde::de::DeserializeOwned;

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

const DELTA: &str = r#"{"event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some\n\"text\" é"}},"session_id":"s","parent_tool_use_id":null,"uuid":"u","api_message_id":"m"}"#;
const RESULT: &str = r#"{"message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":[{"type":"text","text":"a"},{"source":{"type":"base64","media_type":"image/png","data":"eA=="},"type":"image"}],"is_error":false}]},"session_id":"s","uuid":"u","tool_use_result":{"type":"x","type":"y"}}"#;
const CALL: &str = r#"{"message":{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"t","name":"Bash","input":{"type":"text","a":[1e400,"\ud83d"]}}],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"s","uuid":"u"}"#;

#[test]
fn what_the_cli_writes_is_read_as_serde_json_reads_it() {
    compare::<StreamEvent>(DELTA);
    compare::<UserMessage>(RESULT);
    compare::<AssistantMessage>(CALL);
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
