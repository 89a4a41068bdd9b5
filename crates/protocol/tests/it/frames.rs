//! Frames: what routing reads of them, and what is none.

use outrigger_protocol::framer::Framed;
use outrigger_protocol::{Frame, Message, Misfit, MisfitKind};

fn one(line: &str) -> Frame {
    let mut frames = Frame::from_line(line.as_bytes());
    assert_eq!(frames.len(), 1, "{frames:?}");
    frames.remove(0)
}

#[test]
fn the_head_is_read_whatever_the_order_of_the_keys() {
    let frame = one(
        r#"{"user_message_uuids":["a","b"],"origin":{"kind":"human","x":[1]},"message":{"type":"no"},"uuid":"u","subtype":"success","isReplay":true,"session_id":"s","type":"result","parent_tool_use_id":null}"#,
    );
    assert_eq!((frame.kind(), frame.subtype()), ("result", Some("success")));
    assert_eq!((frame.uuid(), frame.session_id()), (Some("u"), Some("s")));
    assert_eq!(frame.user_message_uuids().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(
        (frame.origin_kind(), frame.parent_tool_use_id()),
        (Some("human"), None)
    );
    assert!(frame.is_replay());
}

#[test]
fn control_frames_show_the_inner_subtype_and_the_request_id() {
    let request = one(
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","input":{"subtype":"x"}}}"#,
    );
    assert_eq!(
        (request.subtype(), request.request_id()),
        (Some("can_use_tool"), Some("r"))
    );
    let reply =
        one(r#"{"type":"control_response","response":{"request_id":7,"subtype":"error","error":"no"}}"#);
    assert_eq!((reply.subtype(), reply.request_id()), (Some("error"), Some("7")));
}

#[test]
fn the_id_of_a_request_is_told_as_it_was_written() {
    for (line, id) in [
        (r#"{"type":"x","request_id":"a"}"#, Some(r#""a""#)),
        (r#"{"type":"x","request_id":"\u0061"}"#, Some(r#""a""#)),
        (r#"{"type":"x","request_id":7.0}"#, Some("7.0")),
        (
            r#"{"type":"x","request_id":"a","request":{"request_id":"b"}}"#,
            Some(r#""a""#),
        ),
        (
            r#"{"type":"x","request":{"request_id":"b"},"request_id":"a"}"#,
            Some(r#""a""#),
        ),
        (
            r#"{"type":"x","request_id":"a","request_id":"b"}"#,
            Some(r#""b""#),
        ),
        (r#"{"type":"x","request_id":"a","request_id":7}"#, Some("7")),
        (r#"{"type":"x","response":{"request_id":"b"}}"#, None),
        (r#"{"type":"x","request_id":"a""#, None),
    ] {
        let told = one(line).written_request_id();
        let told = told.map(|id| serde_json::to_string(&id).unwrap());
        assert_eq!(told.as_deref(), id, "{line}");
    }
}

#[test]
fn mistyped_routing_fields_are_absent_rather_than_fatal() {
    let frame = one(
        r#"{"type":"prompt_suggestion","uuid":{"a":1},"session_id":5.5,"isReplay":"yes","origin":[1],"user_message_uuids":{"k":[]}}"#,
    );
    assert_eq!(
        (frame.kind(), frame.uuid(), frame.session_id()),
        ("prompt_suggestion", None, None)
    );
    assert!(!frame.is_replay() && frame.flaw().is_none());
    assert!(matches!(
        frame.decode(),
        Err(Misfit {
            kind: MisfitKind::Shape,
            ..
        })
    ));
}

#[test]
fn several_objects_on_a_line_are_several_frames_that_share_the_line() {
    let frames = Frame::from_line(br#"{"type":"keep_alive"} {"type":"x","uuid":"u"}garbage"#.as_slice());
    let kinds: Vec<_> = frames
        .iter()
        .map(|frame| (frame.kind(), frame.uuid(), frame.flaw().map(|flaw| flaw.kind)))
        .collect();
    assert_eq!(
        kinds,
        [
            ("keep_alive", None, None),
            ("x", Some("u"), None),
            ("", None, Some(MisfitKind::NotJson))
        ]
    );
    assert_eq!(frames[1].bytes(), br#"{"type":"x","uuid":"u"}"#);
    assert_eq!(frames[2].bytes(), b"garbage");
    assert!(frames.iter().all(|frame| frame.line().len() == 52));
}

#[test]
fn what_is_no_frame_says_so_and_keeps_its_bytes() {
    for (line, kind) in [
        ("[SandboxDebug] hello", MisfitKind::NotJson),
        ("{\"type\":\"user\",", MisfitKind::NotJson),
        ("42", MisfitKind::NoType),
        ("null", MisfitKind::NoType),
        ("[{\"type\":\"user\"}]", MisfitKind::NoType),
        ("{\"subtype\":\"x\"}", MisfitKind::NoType),
        ("{\"type\":null}", MisfitKind::NoType),
    ] {
        let frame = one(line);
        assert_eq!(frame.flaw().map(|flaw| flaw.kind), Some(kind), "{line}");
        assert_eq!(frame.bytes(), line.as_bytes());
        assert!(frame.decode().is_err());
    }
}

#[test]
fn lone_surrogates_and_invalid_utf8_are_read_over() {
    let frame =
        one(r#"{"type":"prompt_suggestion","suggestion":"cut \ud83d","uuid":"u\ud83d","session_id":"s"}"#);
    assert_eq!(
        (frame.kind(), frame.uuid(), frame.session_id()),
        ("prompt_suggestion", Some("u\u{fffd}"), Some("s"))
    );
    let Ok(Message::PromptSuggestion(suggestion)) = frame.decode() else {
        panic!("{:?}", frame.decode())
    };
    assert_eq!(suggestion.suggestion, "cut \u{fffd}");

    let bytes =
        b"{\"type\":\"prompt_suggestion\",\"suggestion\":\"\xff\",\"uuid\":\"u\",\"session_id\":\"s\"}";
    let frame = Frame::from_line(bytes.as_slice()).remove(0);
    assert_eq!(frame.kind(), "prompt_suggestion");
    assert!(frame.decode().is_ok());
    assert_eq!(frame.bytes(), bytes);
}

#[test]
fn deep_nesting_is_no_obstacle() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let frame = one(&format!(r#"{{"type":"never_seen","x":{deep},"uuid":"u"}}"#));
    assert_eq!((frame.kind(), frame.uuid()), ("never_seen", Some("u")));
    assert!(matches!(frame.decode(), Ok(Message::Unknown(_))));
}

#[test]
fn an_oversized_control_request_can_still_be_answered() {
    let head = br#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","input":"#
        .to_vec();
    let frame = Frame::read(Framed::Oversized {
        head,
        length: 1 << 30,
    })
    .remove(0);
    assert_eq!(
        (frame.kind(), frame.request_id(), frame.subtype()),
        ("control_request", Some("r1"), Some("can_use_tool"))
    );
    assert!(matches!(
        frame.decode(),
        Err(Misfit {
            kind: MisfitKind::Oversized(_),
            ..
        })
    ));
}

#[test]
fn a_line_of_countless_objects_does_not_fill_the_memory() {
    let line = "{}".repeat(Frame::MOST_ON_A_LINE + 1000);
    let frames = Frame::from_line(line.as_bytes());
    assert_eq!(frames.len(), Frame::MOST_ON_A_LINE + 1);
    let rest = frames.last().unwrap();
    assert_eq!(rest.bytes().len(), 2000);
    assert_eq!(rest.flaw().unwrap().kind, MisfitKind::NotJson);
    let line = "{}".repeat(Frame::MOST_ON_A_LINE);
    assert_eq!(Frame::from_line(line.as_bytes()).len(), Frame::MOST_ON_A_LINE);
}
