//! The updates of conversations, each validated by the draft's schema.

use agent_client_protocol::v2::schema::UpdateSessionNotification;

use super::*;
use crate::reduce::testing::{events, fixture};

fn schema() -> jsonschema::Validator {
    let schema = schemars::schema_for!(UpdateSessionNotification);
    jsonschema::validator_for(schema.as_value()).unwrap()
}

fn checked(schema: &jsonschema::Validator, update: SessionUpdate) -> Value {
    let line = serde_json::to_value(UpdateSessionNotification::new("s", update)).unwrap();
    let problems: Vec<_> = schema.iter_errors(&line).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{line}: {problems:?}");
    line["update"].clone()
}

/// The validated updates of a conversation.
fn updates(name: &str) -> Vec<Value> {
    let schema = schema();
    let mut encoder = V2Encoder::new("message".to_owned(), true);
    let updates = events(&fixture(name))
        .into_iter()
        .flat_map(|event| encoder.encode(event));
    updates.map(|update| checked(&schema, update)).collect()
}

#[test]
fn conversations_are_told_in_the_words_of_the_draft() {
    for name in [
        "parallel_edits",
        "thinking",
        "todos",
        "compaction",
        "retried",
        "background_agent",
    ] {
        let lines: String = updates(name).iter().map(|update| format!("{update}\n")).collect();
        insta::assert_snapshot!(name, lines);
    }
}

#[test]
fn every_update_is_valid() {
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/fixtures")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(!updates(name).is_empty(), "{name}");
    }
}

#[test]
fn the_state_says_what_goes_on_behind_it() {
    let background = || {
        vec![
            BackgroundCall {
                call: "a".into(),
                is_terminal: true,
            },
            BackgroundCall {
                call: "b".into(),
                is_terminal: false,
            },
        ]
    };
    let schema = schema();
    let told = |doing, end, going| checked(&schema, super::state(doing, end, going));
    let ended = || Some(Ok(acp::PromptResponse::new(acp::StopReason::EndTurn)));
    assert_eq!(
        told(State::Idle, ended(), background()),
        json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn", "background": [
            {"type": "terminal", "terminalId": "a"}, {"type": "tool_call", "toolCallId": "b"}]})
    );
    for (doing, name) in [
        (State::Running, "running"),
        (State::RequiresAction, "requires_action"),
        (State::Idle, "idle"),
    ] {
        assert_eq!(told(doing, None, Vec::new())["state"], name);
    }
    let failed = told(State::Idle, Some(Err(crate::error::internal("no"))), Vec::new());
    assert_eq!(failed["stopReason"], "error");
    assert_eq!(failed["error"], json!({"code": -32603, "message": "no"}));
}
