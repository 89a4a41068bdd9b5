//! The updates of conversations, each validated by the protocol's schema.

use agent_client_protocol::v1::schema::SessionNotification;
use serde_json::Value;

use super::*;
use crate::event::*;
use crate::reduce::testing::{events, fixture};

const PLAIN: UpdateCapabilities = UpdateCapabilities {
    notices: false,
    compaction: false,
    terminals: false,
    subagent_text: false,
};

const ABLE: UpdateCapabilities = UpdateCapabilities {
    notices: true,
    compaction: true,
    terminals: true,
    subagent_text: true,
};

fn schema() -> jsonschema::Validator {
    let schema = schemars::schema_for!(SessionNotification);
    jsonschema::validator_for(schema.as_value()).unwrap()
}

/// The validated updates of a conversation, a line each.
fn updates(name: &str, client: UpdateCapabilities) -> Vec<Value> {
    let schema = schema();
    let mut encoder = V1Encoder::new(client);
    let updates = events(&fixture(name))
        .into_iter()
        .flat_map(|event| encoder.encode(event));
    let updates = updates.map(|update| {
        let line = serde_json::to_value(SessionNotification::new("s", update)).unwrap();
        let problems: Vec<_> = schema.iter_errors(&line).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{line}: {problems:?}");
        line["update"].clone()
    });
    updates.collect()
}

fn lines(name: &str, client: UpdateCapabilities) -> String {
    let updates = updates(name, client);
    updates.iter().map(|update| format!("{update}\n")).collect()
}

#[test]
fn a_simple_client_gets_what_it_can_show() {
    for name in [
        "background_bash",
        "compaction",
        "parallel_edits",
        "retried",
        "todos",
    ] {
        insta::assert_snapshot!(format!("plain_{name}"), lines(name, PLAIN));
    }
}

#[test]
fn an_able_client_gets_all_of_it() {
    for name in [
        "background_bash",
        "background_agent",
        "compaction",
        "retried",
        "thinking",
    ] {
        insta::assert_snapshot!(format!("able_{name}"), lines(name, ABLE));
    }
}

#[test]
fn every_update_is_valid() {
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/fixtures")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        for client in [PLAIN, ABLE] {
            assert!(!updates(name, client).is_empty(), "{name}");
        }
    }
}

#[test]
fn what_agents_say_is_not_taken_for_the_answer() {
    let text = |client| lines("background_agent", client);
    assert!(!text(PLAIN).contains("\"agent_message_chunk\",\"_meta\""));
    let is_nested = |update: &Value| {
        update["sessionUpdate"] == "agent_message_chunk"
            && update["_meta"]["claudeCode"]["parentToolUseId"].is_string()
    };
    assert!(!updates("background_agent", PLAIN).iter().any(is_nested));
    assert!(updates("background_agent", ABLE).iter().any(is_nested));
    for client in [PLAIN, ABLE] {
        assert!(!text(client).contains("internal metadata"), "{}", text(client));
    }
}

#[test]
fn the_capabilities_are_where_clients_put_them() {
    let capabilities = |value: Value| UpdateCapabilities::of(&serde_json::from_value(value).unwrap());
    assert_eq!(capabilities(json!({})), PLAIN);
    let able = json!({
        "session": {"notices": {}, "compaction": {}},
        "_meta": {"terminal_output": true, "claudeCode": {"subagentText": true}},
    });
    assert_eq!(capabilities(able), ABLE);
}

/// The updates for the events of a terminal.
fn terminal(client: UpdateCapabilities, what: Vec<TerminalEvent>) -> Vec<Value> {
    let mut encoder = V1Encoder::new(client);
    let mut events = vec![Event::Call(Box::new(NewToolCall {
        id: "t".into(),
        tool: "Bash".into(),
        parent: None,
        title: "make".into(),
        kind: Kind::Execute,
        status: Status::InProgress,
        content: vec![CallContent::Terminal("t".into())],
        locations: Vec::new(),
        input: None,
    }))];
    events.extend(what.into_iter().map(|what| {
        let (id, call) = ("t".into(), "t".into());
        Event::Terminal(TerminalChange { id, call, what })
    }));
    events.push(Event::CallChanged(Box::new(CallChange {
        id: "t".into(),
        tool: "Bash".into(),
        status: Some(Status::Completed),
        ..CallChange::default()
    })));
    let schema = schema();
    let updates = events.into_iter().flat_map(|event| encoder.encode(event));
    let updates = updates.map(|update| {
        let line = serde_json::to_value(SessionNotification::new("s", update)).unwrap();
        assert!(schema.is_valid(&line), "{line}");
        line["update"].clone()
    });
    updates.skip(1).collect()
}

fn printed(bytes: &[u8], is_live: bool) -> TerminalEvent {
    let bytes = bytes.to_vec();
    TerminalEvent::Output { bytes, is_live }
}

fn exited(code: Option<i32>) -> TerminalEvent {
    TerminalEvent::Exited { code, signal: None }
}

#[test]
fn live_output_goes_out_piece_by_piece_where_that_is_known() {
    let updates = terminal(
        ABLE,
        vec![
            printed(b"one \xc3", true),
            printed(b"\xa9", true),
            printed(b"\xc3", true),
            printed(b"rest", false),
            exited(Some(3)),
        ],
    );
    let data: Vec<_> = updates
        .iter()
        .map(|update| update["_meta"]["terminal_output"]["data"].as_str())
        .collect();
    // Half a character is held back, and an invalid byte is replaced.
    assert_eq!(data, [Some("one "), Some("é"), Some("\u{fffd}rest")]);
    let last = updates.last().unwrap();
    assert_eq!(
        last["_meta"]["terminal_exit"],
        json!({"terminal_id": "t", "exit_code": 3, "signal": null})
    );
    assert_eq!(
        (&last["status"], &last["content"]),
        (&json!("completed"), &Value::Null)
    );
}

#[test]
fn live_output_is_a_block_of_text_elsewhere() {
    let text = |update: &Value| {
        update["content"][0]["content"]["text"]
            .as_str()
            .map(str::to_owned)
    };
    let updates = terminal(
        PLAIN,
        vec![printed(b"one\n", true), printed(b"two\n", true), exited(Some(3))],
    );
    let texts: Vec<_> = updates.iter().map(text).collect();
    let block = |inner: &str| Some(format!("```console\n{inner}\n```"));
    assert_eq!(
        texts,
        [block("one"), block("one\ntwo"), block("one\ntwo\nExit code 3")]
    );
    // The last output comes with the end, once.
    let updates = terminal(PLAIN, vec![printed(b"hi", false), exited(Some(0))]);
    assert_eq!(updates.iter().map(text).collect::<Vec<_>>(), [block("hi")]);
    let silent = terminal(PLAIN, vec![exited(Some(0))]);
    assert_eq!((silent.len(), text(&silent[0])), (1, None));
    let much = "line\n".repeat(100_000);
    let updates = terminal(PLAIN, vec![printed(much.as_bytes(), true), exited(Some(0))]);
    for update in &updates {
        let text = text(update).unwrap();
        assert!(
            text.len() < 20_000 && text.starts_with("```console\n… ("),
            "{} bytes",
            text.len()
        );
    }
}

#[test]
fn what_is_too_long_is_cut() {
    let mut encoder = V1Encoder::new(PLAIN);
    let change = CallChange {
        id: "t".into(),
        content: Some(vec![
            CallContent::Content(Content::Text("x".repeat(1_000_000))),
            CallContent::Diff(Diff {
                path: "/w/a".into(),
                old: None,
                new: "y".repeat(2_000_000),
                line: None,
            }),
        ]),
        input: Some(outrigger::protocol::RawJson::from(
            json!({"data": "z".repeat(1_000_000)}),
        )),
        ..CallChange::default()
    };
    let updates = encoder.encode(Event::CallChanged(Box::new(change)));
    let line = serde_json::to_string(&updates).unwrap();
    assert!(line.len() < 100_000, "{} bytes", line.len());
    for said in ["bytes more)", "A change of 2000000 bytes in /w/a"] {
        assert!(line.contains(said), "{said}");
    }
}

#[test]
fn a_notice_that_matters_reaches_everybody() {
    let notice = |important| {
        Event::Notice(Notice {
            severity: Severity::Error,
            title: "The disk is full".into(),
            description: Some("Really".into()),
            topic: crate::event::Topic::SessionWritesLost,
            data: None,
            important,
        })
    };
    let told = |client, important| {
        let updates = V1Encoder::new(client).encode(notice(important));
        serde_json::to_value(&updates).unwrap()[0].clone()
    };
    assert_eq!(told(ABLE, false)["sessionUpdate"], "notice");
    assert_eq!(told(ABLE, true)["severity"], "error");
    let text = told(PLAIN, true);
    assert_eq!(text["content"]["text"], "\n\n**The disk is full**\n\nReally\n\n");
    let beside = told(PLAIN, false);
    assert_eq!(beside["sessionUpdate"], "session_info_update");
    assert_eq!(
        beside["_meta"]["claudeCode"]["notice"]["title"],
        "The disk is full"
    );
}
