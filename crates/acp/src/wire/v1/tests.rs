//! Updates as they go out, and that the protocol's own schema takes each of them.

use agent_client_protocol::v1::schema::SessionNotification;
use serde_json::Value;

use super::*;
use crate::reduce::testing::{events, fixture};

const PLAIN: Client = Client {
    notices: false,
    compaction: false,
    terminals: false,
    subagent_text: false,
};

const ABLE: Client = Client {
    notices: true,
    compaction: true,
    terminals: true,
    subagent_text: true,
};

fn schema() -> jsonschema::Validator {
    let schema = schemars::schema_for!(SessionNotification);
    jsonschema::validator_for(schema.as_value()).unwrap()
}

/// The updates of a conversation, checked, a line each.
fn updates(name: &str, client: Client) -> Vec<Value> {
    let schema = schema();
    let mut encoder = Encoder::new(client);
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

fn lines(name: &str, client: Client) -> String {
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
    let capabilities = |value: Value| Client::of(&serde_json::from_value(value).unwrap());
    assert_eq!(capabilities(json!({})), PLAIN);
    let able = json!({
        "session": {"notices": {}, "compaction": {}},
        "_meta": {"terminal_output": true, "claudeCode": {"subagentText": true}},
    });
    assert_eq!(capabilities(able), ABLE);
}
