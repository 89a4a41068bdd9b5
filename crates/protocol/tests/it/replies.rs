//! What really went in and out, read with these types: the recorded sample, and whole recordings if `OUTRIGGER_RECORDINGS` names a
//! directory of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use outrigger_protocol::check::with_every_field;
use outrigger_protocol::outbound::*;
use outrigger_protocol::shared::{ContentBlock, HookInput, PermissionResult, RequestId};
use outrigger_protocol::{RawJson, drift};

use crate::support::uncovered;

/// One line of a recording.
#[derive(Deserialize)]
struct Line {
    dir: String,
    msg: RawJson,
}

/// What a conversation holds that these types are about.
#[derive(Default)]
struct Seen {
    /// Subtype and payload of the CLI's successful answers.
    replies: Vec<(String, RawJson)>,
    /// Subtype and payload of our successful answers.
    answers: Vec<(String, RawJson)>,
    hook_inputs: Vec<RawJson>,
    /// Lines that we wrote.
    sent: Vec<RawJson>,
}

impl Seen {
    fn read(&mut self, text: &str) {
        #[derive(Deserialize)]
        struct Frame {
            r#type: String,
            request_id: Option<RawJson>,
            request: Option<RawJson>,
            response: Option<Response>,
        }
        #[derive(Deserialize)]
        struct Response {
            subtype: Option<String>,
            request_id: Option<RawJson>,
            response: Option<RawJson>,
        }
        #[derive(Deserialize)]
        struct Request {
            subtype: String,
            input: Option<RawJson>,
        }
        let mut asked: HashMap<(bool, String), String> = HashMap::new();
        let key = |id: &Option<RawJson>| id.as_ref().map_or_else(String::new, |id| id.get().to_owned());
        for line in text.lines() {
            let Ok(line) = serde_json::from_str::<Line>(line) else {
                continue;
            };
            let ours = line.dir == "in";
            if !ours && line.dir != "out" {
                continue;
            }
            if ours {
                self.sent.push(line.msg.clone());
            }
            let Ok(frame) = line.msg.decode::<Frame>() else {
                continue;
            };
            if let (Some(request), true) = (&frame.request, frame.r#type == "control_request") {
                let Ok(request) = request.decode::<Request>() else {
                    continue;
                };
                if !ours && request.subtype == "hook_callback" {
                    self.hook_inputs.extend(request.input);
                }
                asked.insert((ours, key(&frame.request_id)), request.subtype);
            }
            if let (Some(response), true) = (frame.response, frame.r#type == "control_response") {
                let Some(subtype) = asked.get(&(!ours, key(&response.request_id))) else {
                    continue;
                };
                if response.subtype.as_deref() == Some("success") {
                    let payload = response.response.unwrap_or_default();
                    let list = if ours {
                        &mut self.answers
                    } else {
                        &mut self.replies
                    };
                    list.push((subtype.clone(), payload));
                }
            }
        }
    }

    fn sample() -> Self {
        let mut seen = Self::default();
        seen.read(include_str!("../fixtures/control.jsonl"));
        if let Some(directory) = std::env::var_os("OUTRIGGER_RECORDINGS") {
            for entry in std::fs::read_dir(Path::new(&directory)).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|extension| extension == "jsonl") {
                    seen.read(&String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
                }
            }
        }
        seen
    }
}

fn value(raw: &RawJson) -> Value {
    raw.to_value().unwrap()
}

#[test]
fn recorded_replies_are_known_in_full() {
    let seen = Seen::sample();
    let mut met = BTreeSet::new();
    for (subtype, payload) in &seen.replies {
        let (read, drift) = drift::watch(|| check_reply(subtype, payload));
        let Some(read) = read else {
            panic!("no type for the reply to {subtype}: {payload}");
        };
        let read = read.unwrap_or_else(|error| panic!("{subtype}: {error}: {payload}"));
        assert_eq!(drift, [], "{subtype}");
        if !payload.is_null() {
            assert_eq!(uncovered(&value(payload), &value(&read)), [""; 0], "{subtype}");
        }
        met.insert(subtype.as_str());
    }
    assert!(met.len() >= 40, "the sample has become small: {met:?}");
}

#[test]
fn recorded_hook_inputs_are_known_in_full() {
    let seen = Seen::sample();
    let mut met = BTreeSet::new();
    for input in &seen.hook_inputs {
        let (read, drift) = drift::watch(|| input.decode::<HookInput>());
        let read = read.unwrap_or_else(|error| panic!("{error}: {input}"));
        assert_eq!(drift, [], "{input}");
        let again = with_every_field(|| RawJson::encode(&read)).unwrap();
        assert_eq!(
            uncovered(&value(input), &value(&again)),
            [""; 0],
            "{}",
            read.event()
        );
        met.insert(read.event().to_string());
    }
    assert!(met.len() >= 15, "the sample has become small: {met:?}");
}

/// Answers that the CLI was given on purpose though it would not understand them.
fn is_meant_to_be_bad(subtype: &str, answer: &Value) -> bool {
    match subtype {
        "can_use_tool" => !matches!(
            (
                answer["behavior"].as_str(),
                answer.get("updatedInput"),
                answer.get("message")
            ),
            (Some("allow"), None | Some(Value::Object(_)), _) | (Some("deny"), _, Some(Value::String(_)))
        ),
        "mcp_message" => answer.get("mcp_response").is_none(),
        "elicitation" => answer.get("action").is_none(),
        _ => !answer.is_object(),
    }
}

#[test]
fn recorded_answers_are_read_unless_the_cli_refuses_them_too() {
    let seen = Seen::sample();
    let mut met: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (subtype, answer) in &seen.answers {
        let read = check_answer(subtype, answer).unwrap_or_else(|| panic!("no answer type for {subtype}"));
        let count = met.entry(subtype).or_default();
        if is_meant_to_be_bad(subtype, &value(answer)) {
            count.1 += 1;
            assert!(read.is_err(), "{subtype}: {answer}");
        } else {
            count.0 += 1;
            let read = read.unwrap_or_else(|error| panic!("{subtype}: {error}: {answer}"));
            let mut told = value(answer);
            if let Some(object) = told.as_object_mut() {
                // Sent on purpose to see that the CLI ignores it.
                object.remove("nonsense");
            }
            assert_eq!(uncovered(&told, &value(&read)), [""; 0], "{subtype}");
        }
    }
    assert!(met["can_use_tool"].0 > 0 && met["can_use_tool"].1 > 0, "{met:?}");
    assert!(met["hook_callback"].0 > 0, "{met:?}");
}

#[test]
fn recorded_lines_of_ours_are_read() {
    let seen = Seen::sample();
    let mut fit = 0;
    for line in &seen.sent {
        let Ok(line) = line.decode::<OutboundLine>() else {
            continue;
        };
        if !matches!(line, OutboundLine::Unknown(_) | OutboundLine::Misfit(_)) {
            fit += 1;
        }
    }
    assert!(fit * 20 >= seen.sent.len() * 19, "{fit} of {}", seen.sent.len());
}

#[test]
fn lines_have_one_line_each() {
    let foreign = RawJson::from_text("{\n  \"a\\n\": [1,\r\n 2]\n}").unwrap();
    let request = control::McpMessage::new("calc", foreign);
    let line = encode_request(&RequestId::from("r"), &request).unwrap();
    assert_eq!(
        line.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count(),
        1
    );
    assert_eq!(line.last(), Some(&b'\n'));
    let read: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(read["request"]["message"], json!({"a\n": [1, 2]}));
}

fn line<T: serde::Serialize>(line: T) -> String {
    String::from_utf8(encode_line(&line).unwrap()).unwrap()
}

#[test]
fn envelopes_are_as_the_cli_reads_them() {
    assert_eq!(
        line(OutboundLine::from(
            ControlResponse::success("R", &PermissionResult::deny("why")).unwrap()
        )),
        concat!(
            r#"{"type":"control_response","response":{"subtype":"success","request_id":"R","#,
            r#""response":{"behavior":"deny","message":"why"}}}"#,
            "\n"
        )
    );
    assert_eq!(
        line(OutboundLine::from(ControlResponse::unsupported("R", "x"))),
        concat!(
            r#"{"type":"control_response","response":{"subtype":"error","request_id":"R","#,
            r#""error":"Unsupported control request subtype: x","error_code":"unsupported_request"}}"#,
            "\n"
        )
    );
    let numeric: RequestId = serde_json::from_str("7").unwrap();
    assert_eq!(
        line(OutboundLine::from(ControlCancel { request_id: numeric })),
        "{\"type\":\"control_cancel_request\",\"request_id\":7}\n"
    );
    assert_eq!(
        line(OutboundLine::from(KeepAliveLine {})),
        "{\"type\":\"keep_alive\"}\n"
    );
    assert_eq!(
        line(OutboundLine::from(UpdateEnvironmentVariables {
            variables: [("A".to_owned(), "b".to_owned())].into(),
            request_id: None,
        })),
        "{\"type\":\"update_environment_variables\",\"variables\":{\"A\":\"b\"}}\n"
    );
    assert_eq!(
        line(OutboundLine::from(BashCommand::new("ls"))),
        "{\"type\":\"bash_command\",\"command\":\"ls\"}\n"
    );
    let raw = RawRequest::new("x")
        .field("a", json!(1))
        .field("subtype", json!("y"));
    assert_eq!(
        encode_raw_request(&RequestId::from("r"), &raw).unwrap(),
        b"{\"type\":\"control_request\",\"request_id\":\"r\",\"request\":{\"subtype\":\"x\",\"a\":1}}\n"
    );
}

#[test]
fn prompts_are_as_the_cli_reads_them() {
    let prompt = line(OutboundLine::from(UserMessage::new("hi")));
    assert_eq!(
        prompt,
        "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"},\"parent_tool_use_id\":null}\n"
    );
    let full = UserMessage::new(vec![
        ContentBlock::text("look"),
        ContentBlock::image_base64("image/png", "AA=="),
        ContentBlock::image_url("https://example.com/a.png"),
        ContentBlock::pdf_base64("AA==").titled("t"),
        ContentBlock::text_document("x"),
        ContentBlock::file("file_1"),
    ])
    .uuid("u")
    .priority(Priority::Now)
    .from_person()
    .without_turn()
    .verbatim();
    let written: Value = serde_json::from_str(&line(OutboundLine::from(full))).unwrap();
    assert_eq!(
        written,
        json!({
            "type": "user",
            "message": {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
                {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
                {"type": "document", "title": "t",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
                {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
            ]},
            "parent_tool_use_id": null, "uuid": "u", "priority": "now", "origin": {"kind": "human"},
            "shouldQuery": false, "client_composed": true,
        })
    );
    let no_user = r#"{"type":"user","message":{"role":"assistant","content":"x"}}"#;
    assert!(matches!(
        serde_json::from_str(no_user),
        Ok(OutboundLine::Misfit(_))
    ));
}

#[test]
fn answers_that_the_cli_would_not_understand_are_refused() {
    for (subtype, good) in [
        (
            "can_use_tool",
            json!({"behavior":"allow","updatedInput":{"a":1},"toolUseID":"t"}),
        ),
        ("hook_callback", json!({"async":true,"asyncTimeout":5000})),
        (
            "hook_callback",
            json!({"decision":"block","reason":"r","continue":false,"suppressOutput":true}),
        ),
        (
            "mcp_message",
            json!({"mcp_response":{"jsonrpc":"2.0","id":1,"result":{}}}),
        ),
        ("elicitation", json!({"action":"accept","content":{"a":1}})),
        ("elicitation", json!({"action":"cancel"})),
        (
            "request_user_dialog",
            json!({"behavior":"completed","result":[1]}),
        ),
        ("request_user_dialog", json!({"behavior":"cancelled"})),
        (
            "oauth_token_refresh",
            json!({"accessToken":null,"reason":"signed_out"}),
        ),
        (
            "host_auth_token_refresh",
            json!({"authToken":"x","materialUnchanged":true}),
        ),
        ("remote_control_work_secret", json!({"work_secret":null})),
    ] {
        let read = check_answer(subtype, &RawJson::from(good.clone()))
            .unwrap()
            .unwrap();
        assert_eq!(uncovered(&good, &value(&read)), [""; 0], "{subtype}");
    }
    for (subtype, bad) in [
        ("can_use_tool", json!({"behavior":"deny"})),
        ("hook_callback", json!("text")),
        ("hook_callback", json!({"decision":"maybe"})),
        ("mcp_message", json!({})),
        ("elicitation", json!({"action":"accept","content":[]})),
        ("request_user_dialog", json!({"behavior":"completed"})),
        ("oauth_token_refresh", json!({"accessToken":null,"reason":"whim"})),
    ] {
        assert!(
            check_answer(subtype, &RawJson::from(bad.clone()))
                .unwrap()
                .is_err(),
            "{subtype}: {bad}"
        );
    }
    assert!(check_answer("remote_tool_call", &RawJson::null()).is_none());
}

#[test]
fn a_prompt_is_written_as_any_line() {
    let prompt = UserMessage::new("what?").uuid("u").priority(Priority::Now);
    let line = encode_prompt(&prompt).unwrap();
    assert_eq!(line, encode_line(&OutboundLine::from(prompt)).unwrap());
}
