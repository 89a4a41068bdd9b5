//! What routing reads of a frame against serde_json.

use std::fmt;

use outrigger_protocol::{Frame, MisfitKind, repair};
use proptest::prelude::*;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// All that routing can know of a frame.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Routed {
    kind: String,
    strings: [Option<String>; 9],
    user_message_uuids: Vec<String>,
    is_replay: bool,
}

impl Routed {
    pub(crate) fn of(frame: &Frame) -> Self {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Self {
            kind: frame.kind().to_owned(),
            strings: [
                own(frame.subtype()),
                own(frame.uuid()),
                own(frame.session_id()),
                own(frame.request_id()),
                own(frame.parent_tool_use_id()),
                own(frame.command_uuid()),
                own(frame.state()),
                own(frame.origin_kind()),
                own(frame.event_type()),
            ],
            user_message_uuids: frame.user_message_uuids().map(str::to_owned).collect(),
            is_replay: frame.is_replay(),
        }
    }
}

/// The fields of an object, in order.
struct Fields(Vec<(String, Box<RawValue>)>);

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
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

fn fields(object: &RawValue) -> Vec<(String, Box<RawValue>)> {
    serde_json::from_str::<Fields>(object.get()).map_or_else(|_| Vec::new(), |fields| fields.0)
}

/// A routing string, if it is one.
fn string(raw: &RawValue) -> Option<String> {
    match raw.get().as_bytes()[0] {
        b'"' => Some(serde_json::from_str(raw.get()).unwrap()),
        b'-' | b'0'..=b'9' => {
            let signed = raw.get().parse::<i64>().map(|number| number.to_string());
            signed
                .or_else(|_| raw.get().parse::<u64>().map(|number| number.to_string()))
                .ok()
        }
        _ => None,
    }
}

/// What routing should know of the first value of `text`, by serde_json alone: how long it is, and its fields if it is an object.
fn expected(text: &[u8]) -> Option<(usize, Option<(bool, Routed)>)> {
    let mut values = serde_json::Deserializer::from_slice(text);
    IgnoredAny::deserialize(&mut values).ok()?;
    // `byte_offset` is only public on the stream deserializer, which starts at the next value.
    let length = values.into_iter::<IgnoredAny>().byte_offset().min(text.len());
    let first = String::from_utf8_lossy(&text[..length]);
    let first = repair::lone_surrogates(&first).unwrap_or(first.into_owned());
    let raw: &RawValue = serde_json::from_str(&first).unwrap();
    if !raw.get().starts_with('{') {
        return Some((length, None));
    }
    let (mut routed, mut has_kind) = (Routed::default(), false);
    let mut ids = Vec::new();
    for (key, raw) in fields(raw) {
        let [
            subtype,
            uuid,
            session_id,
            request_id,
            parent,
            command_uuid,
            state,
            origin_kind,
            event_type,
        ] = &mut routed.strings;
        let set = |into: &mut Option<String>, raw: &RawValue| *into = string(raw).or(into.take());
        match key.as_str() {
            "type" => {
                let kind = string(&raw);
                has_kind |= kind.is_some();
                routed.kind = kind.unwrap_or(routed.kind);
            }
            "subtype" => set(subtype, &raw),
            "uuid" => set(uuid, &raw),
            "session_id" => set(session_id, &raw),
            "request_id" => set(request_id, &raw),
            "parent_tool_use_id" => set(parent, &raw),
            "command_uuid" => set(command_uuid, &raw),
            "state" => set(state, &raw),
            "user_message_uuid" => ids = string(&raw).map_or(ids, |id| vec![id]),
            "user_message_uuids" => {
                let list: Vec<Box<RawValue>> = serde_json::from_str(raw.get()).unwrap_or_default();
                routed.user_message_uuids = list.iter().filter_map(|raw| string(raw)).collect();
            }
            "isReplay" => routed.is_replay = raw.get() == "true",
            "request" | "response" => fields(&raw).iter().for_each(|(key, raw)| match key.as_str() {
                "subtype" => set(subtype, raw),
                "request_id" => set(request_id, raw),
                _ => {}
            }),
            "origin" => fields(&raw)
                .iter()
                .filter(|(key, _)| key == "kind")
                .for_each(|(_, raw)| set(origin_kind, raw)),
            "event" => fields(&raw)
                .iter()
                .filter(|(key, _)| key == "type")
                .for_each(|(_, raw)| set(event_type, raw)),
            _ => {}
        }
    }
    if routed.user_message_uuids.is_empty() {
        routed.user_message_uuids = ids;
    }
    Some((length, Some((has_kind, routed))))
}

/// Reads a text both ways; whether its first value is a frame.
pub(crate) fn compare(text: &[u8]) -> bool {
    if text.trim_ascii().is_empty() {
        return false;
    }
    let shown = String::from_utf8_lossy(text);
    let frame = Frame::from_line(text).remove(0);
    let flaw = frame.flaw().map(|flaw| flaw.kind);
    let Some((length, routed)) = expected(text) else {
        assert_eq!(flaw, Some(MisfitKind::NotJson), "{shown}");
        return false;
    };
    assert_eq!(frame.bytes().len(), length, "{shown}");
    let Some((has_kind, routed)) = routed else {
        assert_eq!(flaw, Some(MisfitKind::NoType), "{shown}");
        return false;
    };
    assert_eq!(flaw, (!has_kind).then_some(MisfitKind::NoType), "{shown}");
    assert_eq!(Routed::of(&frame), routed, "{shown}");
    flaw.is_none()
}

const FRAMES: [&str; 8] = [
    r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some\n\"text\" é"}},"session_id":"7415c37c","parent_tool_use_id":null,"uuid":"6922a3ea","user_message_uuid":"p"}"#,
    r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"1\t# readme\\","is_error":false}]},"parent_tool_use_id":"toolu_1","session_id":"s","uuid":"u","isReplay":true,"origin":{"kind":"human","n":[1,-2.5e+3,{}]}}"#,
    r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","input":{"subtype":"no","request_id":"no"},"tool_use_id":"t"}}"#,
    r#"{"type":"control_response","response":{"subtype":"success","request_id":"req_1","response":{"a":[true,false,null,[],{}]}}}"#,
    r#"{"duration_api_ms":99,"usage":{"input_tokens":20},"total_cost_usd":0.00028000000000000003,"user_message_uuids":["a","b"],"subtype":"success","type":"result"}"#,
    r#"{"type":"command_lifecycle","command_uuid":"c","state":"queued","uuid":"u","session_id":"s"}"#,
    r#" { "type" : "system" , "subtype" : "init" , "x" : [ 1 , 2 ] , "state" : { "state" : "no" } } {"type":"keep_alive"}"#,
    r#"{"event":5,"request":"x","response":[{"subtype":"no"}],"origin":null,"isReplay":"yes","type":"a","type":"b","type":null,"uuid":{"a":1},"state":"\ud83d"}"#,
];

#[test]
fn what_the_cli_writes_is_routed() {
    for frame in FRAMES {
        assert!(compare(frame.as_bytes()), "{frame}");
    }
}

#[test]
fn of_a_key_that_stands_twice_the_last_string_counts() {
    for text in [
        r#"{"type":"a","type":"b","uuid":"u","uuid":null,"uuid":[1]}"#,
        r#"{"type":"a","event":{"type":"x"},"event":{"type":null},"isReplay":true,"isReplay":0}"#,
        r#"{"type":"a","user_message_uuids":["a"],"user_message_uuids":[]}"#,
        r#"{"request":{"subtype":"inner","request_id":"r"},"subtype":"outer","type":"a"}"#,
    ] {
        assert!(compare(text.as_bytes()), "{text}");
    }
}

#[test]
fn whatever_is_unusual_is_routed() {
    let deep = format!(r#"{{"type":"a","x":{}{}}}"#, "[".repeat(65), "]".repeat(65));
    for text in [
        &deep,
        r#"{"type":"a\n"}"#,
        r#"{"t\u0079pe":"a"}"#,
        r#"{"type":"é"}"#,
        r#"{"é":1,"type":"a"}"#,
        r#"{"type":"a","request_id":7}"#,
        r#"{"type":"a","user_message_uuids":["a",7]}"#,
        r#"{"uuid":"no type"}"#,
        "{\t\"type\":\"a\"}",
        "[1]",
        "\u{feff}{}",
    ] {
        compare(text.as_bytes());
    }
}

#[test]
fn what_is_not_json_is_no_frame() {
    for value in [
        "",
        "nul",
        "tru",
        "truer",
        "01",
        "1.",
        ".5",
        "1e",
        "+1",
        "-",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{,}",
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
    ] {
        let text = format!(r#"{{"type":"a","x":{value}}}"#);
        assert!(!compare(text.as_bytes()), "{text}");
        assert!(!compare(&text.as_bytes()[..text.len() - 1]), "{text}");
    }
}

#[test]
fn short_lines_are_read_as_serde_json_reads_them() {
    const BYTES: &[u8] = br#"-.e05+ "[],{}:"#;
    let mut lines = vec![Vec::new()];
    for _ in 0..4 {
        let longer = |line: &Vec<u8>| {
            BYTES
                .iter()
                .map(|byte| [line, &[*byte][..]].concat())
                .collect::<Vec<_>>()
        };
        lines = lines.iter().flat_map(longer).collect();
        for line in &lines {
            compare(line);
        }
    }
    for word in ["null", "true", "false"] {
        for behind in ["", "x", "e", "5", "\"", " x", "n", "null"] {
            compare(format!("{word}{behind}").as_bytes());
            compare(format!("{}{behind}", &word[..3]).as_bytes());
        }
    }
}

/// Pieces that are unlikely to come up by chance.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: [&str; 34] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        " ",
        "\"",
        "\\",
        "\\u",
        "\\ud83d",
        "\\n",
        "null",
        "true",
        "false",
        "0",
        "-1.5e3",
        "é",
        "\"type\"",
        "\"type\":\"user\"",
        "\"subtype\"",
        "\"uuid\":\"u\"",
        "\"request_id\":7",
        "\"request\":{",
        "\"event\":{",
        "\"origin\":{\"kind\":\"x\"}",
        "\"user_message_uuids\":[\"a\",\"b\"]",
        "\"isReplay\":true",
        "\"response\":",
        "\"x\":",
        "\"a\\\"b\"",
        "\"\"",
        "{}",
        "[]",
    ];
    prop_oneof![
        8 => proptest::sample::select(&PIECES[..]).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// What the CLI writes, cut and spliced.
    #[test]
    fn mutated_frames_are_routed(
        frame in 0..FRAMES.len(),
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), 0_usize..12, piece()), 1..5),
    ) {
        let mut text = FRAMES[frame].as_bytes().to_vec();
        for (at, cut, piece) in edits {
            let at = at.index(text.len());
            let end = (at + cut).min(text.len());
            text.splice(at..end, piece);
            if text.is_empty() {
                return Ok(());
            }
        }
        compare(&text);
    }

    #[test]
    fn pieces_of_json_are_routed(pieces in proptest::collection::vec(piece(), 0..24)) {
        let mut text = b"{\"type\":\"a\",".to_vec();
        text.extend(pieces.concat());
        compare(&text);
        text.push(b'}');
        compare(&text);
    }
}
