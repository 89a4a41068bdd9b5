//! What holds for whatever comes in: nothing panics, nothing is lost, and routing agrees with a plain JSON reader.

use outrigger_protocol::framer::{Framed, LineFramer};
use outrigger_protocol::{Frame, MisfitKind};
use proptest::prelude::*;
use serde_json::Value;

use crate::heads::{Routed, compare};

/// One frame of each kind that the CLI was recorded to write.
const FRAMES: &str = include_str!("../fixtures/frames.jsonl");

/// All frames in `chunks`.
fn frames<'c>(cap: usize, chunks: impl IntoIterator<Item = &'c [u8]>) -> Vec<Frame> {
    let mut framer = LineFramer::new(cap);
    let mut found = Vec::new();
    for chunk in chunks {
        framer.feed(chunk, |framed| found.extend(Frame::read(framed)));
    }
    framer.finish(|framed| found.extend(Frame::read(framed)));
    found
}

/// Looks at everything there is to look at.
fn exercise(frame: &Frame) -> bool {
    let _ = (
        Routed::of(frame),
        frame.text().len(),
        format!("{frame:?}"),
        frame.clone(),
    );
    match (frame.decode(), frame.flaw()) {
        (Ok(message), _) => message.to_body().is_ok(),
        (Err(misfit), flaw) => {
            assert!(!misfit.to_string().is_empty());
            assert!(flaw.is_none_or(|flaw| *flaw == misfit));
            false
        }
    }
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // Quarters are read back exactly.
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 4.0)),
        ".{0,8}".prop_map(Value::from),
        "[a-z\\\\\"/\u{0}-\u{1f}\u{2028}😀é]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(key(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    const NAMES: &[&str] = &[
        "type",
        "subtype",
        "uuid",
        "session_id",
        "request_id",
        "parent_tool_use_id",
        "user_message_uuid",
        "user_message_uuids",
        "command_uuid",
        "state",
        "origin",
        "kind",
        "isReplay",
        "request",
        "response",
        "message",
    ];
    prop_oneof![8 => proptest::sample::select(NAMES).prop_map(str::to_owned), 1 => ".{0,6}"]
}

/// An object's entries in an order of their own, each key once.
fn entries() -> impl Strategy<Value = Vec<(String, Value)>> {
    let value = prop_oneof![
        json(),
        "[a-z-]{0,6}".prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        proptest::collection::vec(prop_oneof!["[a-z]{1,4}".prop_map(Value::from), json()], 0..4)
            .prop_map(Value::from),
    ];
    proptest::collection::vec((key(), value), 0..12).prop_map(|mut entries| {
        let mut seen = std::collections::HashSet::new();
        entries.retain(|(key, _)| seen.insert(key.clone()));
        entries
    })
}

/// Writes JSON with blanks and escapes where `dice` says so.
struct Writer<'d> {
    out: String,
    dice: std::iter::Cycle<std::iter::Copied<std::slice::Iter<'d, u8>>>,
}

impl Writer<'_> {
    fn write(entries: &[(String, Value)], dice: &[u8]) -> String {
        let mut writer = Writer {
            out: String::new(),
            dice: dice.iter().copied().cycle(),
        };
        writer.object(entries.iter().map(|(key, value)| (key.as_str(), value)));
        writer.out
    }

    fn roll(&mut self, sides: u8) -> bool {
        self.dice.next().unwrap_or_default().is_multiple_of(sides)
    }

    fn blank(&mut self) {
        if self.roll(5) {
            self.out.push_str([" ", "\t", "\r", "  "][self.out.len() % 4]);
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for letter in text.chars() {
            if letter < ' ' || letter == '"' || letter == '\\' || self.roll(4) {
                let mut units = [0; 2];
                for unit in letter.encode_utf16(&mut units) {
                    self.out.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                self.out.push(letter);
            }
        }
        self.out.push('"');
    }

    fn object<'v>(&mut self, entries: impl Iterator<Item = (&'v str, &'v Value)>) {
        self.out.push('{');
        for (index, (key, value)) in entries.enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.blank();
            self.string(key);
            self.blank();
            self.out.push(':');
            self.blank();
            self.value(value);
            self.blank();
        }
        self.out.push('}');
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(list) => {
                self.out.push('[');
                for (index, value) in list.iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.blank();
                    self.value(value);
                }
                self.out.push(']');
            }
            Value::Object(map) => self.object(map.iter().map(|(key, value)| (key.as_str(), value))),
            plain => self.out.push_str(&plain.to_string()),
        }
    }
}

proptest! {
    #[test]
    fn routing_agrees_with_a_plain_json_reader(
        entries in entries(),
        dice in proptest::collection::vec(any::<u8>(), 1..40),
    ) {
        let text = Writer::write(&entries, &dice);
        let plain: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(plain, Value::Object(entries.iter().cloned().collect()));
        let found = frames(1 << 20, [text.as_bytes()]);
        prop_assert_eq!(found.len(), 1);
        compare(text.as_bytes());
        prop_assert_eq!(found[0].bytes(), text.as_bytes());
        exercise(&found[0]);
    }

    #[test]
    fn no_bytes_bring_it_down(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..6), cap in 0usize..80) {
        for frame in frames(cap, chunks.iter().map(Vec::as_slice)) {
            exercise(&frame);
        }
    }

    #[test]
    fn no_damage_brings_it_down(
        line in proptest::sample::select(FRAMES.lines().collect::<Vec<_>>()),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            proptest::sample::select(&["", "\"", "\\", "\\ud83d", "{", "}", "[", "]", ",", ":", "1e999", "null", "\n", "\u{0}"][..])
                .prop_map(|text| text.as_bytes().to_vec()),
        ]), 1..4),
    ) {
        let mut bytes = line.as_bytes().to_vec();
        for (at, with) in damage {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            let end = (at + 1).min(bytes.len());
            bytes.splice(at..end, with);
        }
        let found = frames(1 << 20, [bytes.as_slice()]);
        for frame in &found {
            exercise(frame);
        }
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        prop_assert!(found.len() >= lines.count());
    }
}

#[test]
fn wherever_the_stream_is_cut_the_frames_are_the_same() {
    let stream = "{\"type\":\"keep_alive\"}\r\n\n  \n{\"type\":\"x\",\"uuid\":\"é😀\u{2028}\"}{\"type\":\"y\"}\nnot json\n\
                  {\"type\":\"system\",\"subtype\":\"\\ud83d\\ude00\",\"session_id\":\"s\"}";
    let seen = |frames: Vec<Frame>| -> Vec<(Routed, Vec<u8>, bool)> {
        frames
            .iter()
            .map(|frame| (Routed::of(frame), frame.bytes().to_vec(), frame.flaw().is_some()))
            .collect()
    };
    for cap in [1 << 20, 30] {
        let whole = seen(frames(cap, [stream.as_bytes()]));
        assert_eq!(whole.len(), if cap == 30 { 4 } else { 5 });
        for cut in 0..=stream.len() {
            let (before, after) = stream.as_bytes().split_at(cut);
            assert_eq!(seen(frames(cap, [before, after])), whole, "cut at {cut}");
        }
        assert_eq!(seen(frames(cap, stream.as_bytes().chunks(1))), whole);
    }
}

/// The places in `value`, as JSON pointers. Of a list, the first two.
fn places(value: &Value) -> Vec<String> {
    fn below(value: &Value, path: String, into: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    below(value, format!("{path}/{key}"), into);
                }
            }
            Value::Array(list) => {
                for (index, value) in list.iter().enumerate().take(2) {
                    below(value, format!("{path}/{index}"), into);
                }
            }
            _ => {}
        }
        into.push(path);
    }
    let mut all = Vec::new();
    below(value, String::new(), &mut all);
    all
}

fn one_frame(value: &Value) -> Frame {
    let mut frames = Frame::read(Framed::Line(value.to_string().into_bytes()));
    assert_eq!(frames.len(), 1);
    frames.remove(0)
}

#[test]
fn a_field_that_is_missing_or_of_another_kind_panics_nowhere() {
    let odd = [
        Value::Null,
        Value::from(true),
        Value::from(5),
        Value::from(-1.5),
        Value::from(u64::MAX),
        Value::from("?"),
        serde_json::json!([]),
        serde_json::json!({}),
        serde_json::json!([[{}]]),
        serde_json::json!({"type": 1, "subtype": null}),
    ];
    for line in FRAMES.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        for place in places(&value) {
            for odd in &odd {
                let mut changed = value.clone();
                *changed.pointer_mut(&place).unwrap() = odd.clone();
                exercise(&one_frame(&changed));
            }
            let keys = value.pointer(&place).and_then(Value::as_object);
            for key in keys.into_iter().flat_map(serde_json::Map::keys) {
                let mut changed = value.clone();
                changed
                    .pointer_mut(&place)
                    .and_then(Value::as_object_mut)
                    .unwrap()
                    .remove(key);
                exercise(&one_frame(&changed));
            }
        }
    }
}

#[test]
fn a_new_field_is_no_misfit_anywhere() {
    // Objects whose keys are names of models or agents, where a new key is one more of them.
    const MAPS: [&str; 3] = ["modelUsage", "model_usage_since_last_result", "by_type"];
    let mut misfits = Vec::new();
    for line in FRAMES.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(
            exercise(&one_frame(&value)),
            "{line}: {:?}",
            one_frame(&value).decode()
        );
        for place in places(&value) {
            let mut changed = value.clone();
            let Some(map) = changed.pointer_mut(&place).and_then(Value::as_object_mut) else {
                continue;
            };
            map.insert("from_the_future".to_owned(), serde_json::json!({"a": [1, null]}));
            if !exercise(&one_frame(&changed)) && !MAPS.contains(&place.rsplit('/').next().unwrap()) {
                misfits.push(format!("{place} of {}", one_frame(&value).kind()));
            }
        }
    }
    assert_eq!(misfits, Vec::<String>::new());
}

#[test]
fn nesting_of_any_depth_is_routed() {
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let objects = format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000));
    for payload in [deep, objects] {
        for line in [
            format!(r#"{{"payload":{payload},"type":"from_the_future","uuid":"u"}}"#),
            format!(r#"{{"type":"from_the_future","request":{{"payload":{payload}}},"uuid":"u"}}"#),
            format!(r#"{{"type":"from_the_future","origin":{payload},"uuid":"u"}}"#),
            format!(r#"{{"state":{payload},"type":"from_the_future","uuid":"u","isReplay":{payload}}}"#),
        ] {
            let frames = Frame::from_line(line.into_bytes());
            assert_eq!(frames.len(), 1);
            assert_eq!(
                (frames[0].kind(), frames[0].uuid()),
                ("from_the_future", Some("u"))
            );
            assert!(exercise(&frames[0]), "{:?}", frames[0].decode());
        }
    }
}

#[test]
fn odd_text_is_routed_and_decoded() {
    for (line, uuid) in [
        (&br#"{"type":"new","uuid":"a\ud83d"}"#[..], "a\u{fffd}"),
        (br#"{"type":"new","x":"\ud83d","uuid":"a"}"#, "a"),
        (b"{\"type\":\"new\",\"uuid\":\"a\xff\"}", "a\u{fffd}"),
        (b"{\"x\":\"\xc3\",\"type\":\"new\",\"uuid\":\"a\"}", "a"),
        (br#"{"type":"new","n":1e999,"state":1e999,"uuid":7}"#, "7"),
    ] {
        let frames = Frame::from_line(line);
        assert_eq!(frames.len(), 1);
        assert_eq!((frames[0].kind(), frames[0].uuid()), ("new", Some(uuid)));
        assert_eq!(frames[0].bytes(), line);
        assert!(exercise(&frames[0]), "{:?}", frames[0].decode());
    }
}

#[test]
fn a_line_may_hold_several_objects_and_the_last_needs_no_end() {
    let found = frames(
        1 << 20,
        [&b"{\"type\":\"a\"} {\"type\":\"b\"}{\"type\":\"c\"}\n{\"type\":\"d\"}"[..]],
    );
    let kinds: Vec<&str> = found.iter().map(Frame::kind).collect();
    assert_eq!(kinds, ["a", "b", "c", "d"]);
    let found = frames(1 << 20, [&b"{\"type\":\"a\"}{\"type\":"[..]]);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].kind(), "a");
    assert_eq!(found[1].flaw().map(|flaw| flaw.kind), Some(MisfitKind::NotJson));
}

#[test]
fn what_is_no_object_is_no_frame() {
    for line in [
        "5",
        "-1.5",
        "true",
        "null",
        "\"x\"",
        "[]",
        "[{\"type\":\"a\"}]",
        "{}",
        "{\"type\":{}}",
    ] {
        let frames = Frame::from_line(line.as_bytes());
        assert_eq!(frames.len(), 1);
        let flaw = frames[0].flaw().map(|flaw| flaw.kind);
        assert_eq!(flaw, Some(MisfitKind::NoType), "{line}");
        assert!(!exercise(&frames[0]));
    }
}

#[test]
fn an_oversized_line_keeps_its_routing_if_that_came_early() {
    let line = format!(
        r#"{{"type":"assistant","uuid":"u","message":"{}"}}"#,
        "x".repeat(300)
    );
    let stream = format!("{line}\n{{\"type\":\"keep_alive\"}}\n");
    let found = frames(100, [stream.as_bytes()]);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].kind(), found[0].uuid()), ("assistant", Some("u")));
    let length = line.len() as u64;
    assert_eq!(
        found[0].flaw().map(|flaw| flaw.kind),
        Some(MisfitKind::Oversized(length))
    );
    assert!(exercise(&found[1]));
}
