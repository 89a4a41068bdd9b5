//! The quick way of reading a head against the exact one.

use proptest::prelude::*;

use super::*;

/// Reads a text both ways. Where the quick one did not give up, the exact one must say the same; of bytes that are no UTF-8
/// the exact one says it at the latest once they are mended.
fn compare(text: &[u8]) -> bool {
    let mut quick = Head::default();
    let Some(length) = skim::object(text, &mut quick) else {
        return false;
    };
    // The other does not look for it.
    quick.piece = None;
    quick.is_own_id = false;
    let mut exact = Head::default();
    let read = parse::object(text, &mut exact);
    if read.is_err() && std::str::from_utf8(text).is_err() {
        let mended = String::from_utf8_lossy(&text[..length]);
        exact = Head::default();
        assert_eq!(
            parse::object(mended.as_bytes(), &mut exact),
            Ok((mended.len(), true))
        );
        exact.own(mended.as_bytes());
        quick.own(text);
        assert_eq!(quick, exact, "{mended}");
        return true;
    }
    assert_eq!(read, Ok((length, true)), "{}", String::from_utf8_lossy(text));
    assert_eq!(quick, exact, "{}", String::from_utf8_lossy(text));
    true
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
fn what_the_cli_writes_is_read_the_quick_way() {
    for frame in &FRAMES[..7] {
        assert!(compare(frame.as_bytes()), "{frame}");
    }
}

#[test]
fn a_key_that_stands_twice_is_read_the_same_way() {
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
fn whatever_is_unusual_is_left_to_the_exact_way() {
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
        assert!(!compare(text.as_bytes()), "{text}");
    }
}

#[test]
fn what_is_not_json_is_not_read_the_quick_way() {
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
    fn mutated_frames_are_read_alike(
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
    fn pieces_of_json_are_read_alike(pieces in proptest::collection::vec(piece(), 0..24)) {
        let mut text = b"{\"type\":\"a\",".to_vec();
        text.extend(pieces.concat());
        compare(&text);
        text.push(b'}');
        compare(&text);
    }
}
