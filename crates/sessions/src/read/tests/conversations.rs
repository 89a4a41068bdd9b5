//! Which records a conversation is made of.

use serde_json::{Value, json};

use super::{Home, record};
use crate::{Error, MessageKind, MessageOptions, SessionMessage};

fn user(uuid: &str, parent: &str) -> Value {
    user_with(uuid, parent, json!({}))
}

fn user_with(uuid: &str, parent: &str, more: Value) -> Value {
    record("user", uuid, Some(parent).filter(|it| !it.is_empty()), more)
}

fn message(uuid: &str, parent: &str) -> Value {
    record("assistant", uuid, Some(parent), json!({}))
}

fn noted(uuid: &str, parent: &str, more: Value) -> Value {
    record("system", uuid, Some(parent), more)
}

fn queued(uuid: &str, parent: &str, attachment: Value, more: Value) -> Value {
    let mut whole = json!({"type": "queued_command", "prompt": "hello", "commandMode": "prompt"});
    whole
        .as_object_mut()
        .unwrap()
        .extend(attachment.as_object().unwrap().clone());
    let mut queued = record("attachment", uuid, Some(parent), more);
    queued["attachment"] = whole;
    queued
}

fn side() -> Value {
    json!({"isSidechain": true})
}

fn show(messages: impl IntoIterator<Item = SessionMessage>) -> String {
    let letter = |kind| match kind {
        MessageKind::User => "u",
        MessageKind::Assistant => "a",
        MessageKind::System => "s",
    };
    let shown = messages
        .into_iter()
        .map(|it| format!("{}:{}", letter(it.kind), it.uuid));
    shown.collect::<Vec<_>>().join(" ")
}

fn read_with(records: &[Value], options: &MessageOptions) -> String {
    let home = Home::new();
    let id = home.put(records);
    let messages = home.sessions.messages(&id, options).unwrap();
    show(messages.map(|message| message.unwrap()))
}

fn read(records: &[Value]) -> String {
    read_with(records, &MessageOptions::new())
}

#[test]
fn the_conversation_ends_at_the_last_record_that_nothing_follows() {
    let (a, b, c) = (user("a", ""), message("b", "a"), message("c", "a"));
    let to_c = |last: Value| read(&[a.clone(), b.clone(), c.clone(), last]);
    assert_eq!(read(&[a.clone(), b.clone(), user("d", "b")]), "u:a a:b u:d");
    assert_eq!(to_c(user("d", "b")), "u:a a:b u:d");
    assert_eq!(
        read(&[a.clone(), b.clone(), user("d", "b"), c.clone()]),
        "u:a a:c"
    );
    // A note, something attached or something hidden marks where it stands, progress and subagents do not.
    assert_eq!(to_c(noted("s", "b", json!({}))), "u:a a:b");
    assert_eq!(to_c(user_with("m", "b", json!({"isMeta": true}))), "u:a a:b");
    assert_eq!(
        to_c(record(
            "attachment",
            "x",
            Some("b"),
            json!({"attachment": {"type": "file"}})
        )),
        "u:a a:b"
    );
    assert_eq!(to_c(record("progress", "p", Some("b"), json!({}))), "u:a a:c");
    assert_eq!(to_c(user_with("x", "b", side())), "u:a a:c");
    assert_eq!(to_c(user_with("x", "b", json!({"teamName": "t"}))), "u:a a:c");
    let follows_progress = [
        a.clone(),
        b.clone(),
        record("progress", "p", Some("b"), json!({})),
        user("d", "p"),
    ];
    assert_eq!(read(&follows_progress), "u:a a:b u:d");
    let through_side = [a.clone(), user_with("x", "a", side()), message("b", "x")];
    assert_eq!(read(&through_side), "u:a a:b");
}

#[test]
fn what_does_not_hang_together_is_no_reason_to_give_up() {
    assert_eq!(
        read(&[user("a", ""), message("b", "gone"), user("c", "b")]),
        "a:b u:c"
    );
    assert_eq!(read(&[user("a", "b"), message("b", "a")]), "");
    assert_eq!(read(&[user("a", "a")]), "");
    assert_eq!(
        read(&[user("a", "b"), message("b", "a"), user("c", "b")]),
        "u:a a:b u:c"
    );
    let again = user_with("a", "", json!({"message": {"role": "user", "content": "NEW"}}));
    let home = Home::new();
    let id = home.put(&[user("a", ""), message("b", "a"), again]);
    let mut messages = home.sessions.messages(&id, &MessageOptions::new()).unwrap();
    assert!(
        messages
            .next()
            .unwrap()
            .unwrap()
            .message
            .unwrap()
            .get()
            .contains("NEW")
    );
    assert_eq!(show(messages.map(|message| message.unwrap())), "a:b");
    assert_eq!(
        read(&[user("a", ""), json!(format!("\0\0{}", message("b", "a")))]),
        "u:a a:b"
    );
}

#[test]
fn what_is_hidden_is_left_out_unless_others_wrote_it() {
    for (kind, shown) in [
        ("channel", true),
        ("peer", true),
        ("human", false),
        ("task-notification", false),
    ] {
        let hidden = user_with("m", "a", json!({"isMeta": true, "origin": {"kind": kind}}));
        let expected = if shown { "u:a u:m a:b" } else { "u:a a:b" };
        assert_eq!(
            read(&[user("a", ""), hidden, message("b", "m")]),
            expected,
            "{kind}"
        );
    }
    for flag in ["isVisibleInTranscriptOnly", "isVirtual", "isCompactSummary"] {
        let shown = user_with("v", "a", json!({flag: true}));
        assert_eq!(
            read(&[user("a", ""), shown, message("b", "v")]),
            "u:a u:v a:b",
            "{flag}"
        );
    }
    assert_eq!(read(&[user_with("m", "", json!({"isMeta": true}))]), "");
}

#[test]
fn notes_are_told_on_request() {
    let records = [
        user("a", ""),
        noted("s", "a", json!({"message": null})),
        noted("m", "s", json!({"isMeta": true})),
        message("b", "m"),
        noted("e", "b", json!({})),
    ];
    assert_eq!(read(&records), "u:a a:b");
    let all = MessageOptions::new().include_system_messages(true);
    assert_eq!(read_with(&records, &all), "u:a s:s a:b");
}

#[test]
fn prompts_that_queued_up_within_a_circle_are_not_behind_it() {
    let circle = || [user("m", "n"), noted("n", "m", json!({}))];
    let queued = |parent: &str| queued("q", parent, json!({}), json!({}));
    let with = |more: &[Value]| read(&[&circle(), more].concat());
    assert_eq!(with(&[queued("m")]), "u:m u:q");
    assert_eq!(with(&[noted("o", "m", json!({})), queued("o")]), "u:m u:q");
    assert_eq!(with(&[queued("n")]), "u:m");
    assert_eq!(with(&[noted("o", "n", json!({})), queued("o")]), "u:m");
}

#[test]
fn prompts_that_had_queued_up_are_told_once() {
    let none = || json!({});
    let with = |attachment: Value, more: Value| {
        read(&[
            user("a", ""),
            queued("q", "a", attachment, more),
            message("d", "q"),
        ])
    };
    assert_eq!(with(none(), none()), "u:a u:q a:d");
    assert_eq!(with(json!({"source_uuid": "src"}), none()), "u:a u:src a:d");
    assert_eq!(with(json!({"prompt": []}), none()), "u:a u:q a:d");
    assert_eq!(with(json!({"prompt": {}}), none()), "u:a a:d");
    assert_eq!(with(json!({"isMeta": true}), none()), "u:a a:d");
    assert_eq!(
        with(json!({"isMeta": true, "origin": {"kind": "channel"}}), none()),
        "u:a u:q a:d"
    );
    assert_eq!(with(none(), json!({"isMeta": true})), "u:a u:q a:d");
    assert_eq!(with(none(), side()), "u:a a:d");
    assert_eq!(with(none(), json!({"teamName": "t"})), "u:a a:d");
    let copy = || queued("q", "a", json!({"source_uuid": "src"}), none());
    assert_eq!(
        read(&[user("a", ""), copy(), message("d", "q"), user("src", "d")]),
        "u:a a:d u:src"
    );
    let twice = queued("r", "q", json!({"source_uuid": "src"}), none());
    assert_eq!(
        read(&[user("a", ""), copy(), twice, message("d", "r")]),
        "u:a u:src a:d"
    );
    assert_eq!(
        read(&[user("a", ""), message("b", "a"), queued("q", "b", none(), none())]),
        "u:a a:b u:q"
    );
}

/// Six messages, a compaction that kept something of them, its summary, and what came then.
fn compacted(kept: Value, then: &[Value]) -> String {
    let mut metadata = json!({"trigger": "manual", "preTokens": 1});
    metadata
        .as_object_mut()
        .unwrap()
        .extend(kept.as_object().unwrap().clone());
    let boundary = json!({"parentUuid": null, "logicalParentUuid": "f", "subtype": "compact_boundary", "compactMetadata": metadata});
    let mut records = vec![
        user("a", ""),
        message("b", "a"),
        user("c", "b"),
        message("d", "c"),
        user("e", "d"),
        message("f", "e"),
        noted("cb", "", boundary),
        user_with("sum", "cb", json!({"isCompactSummary": true})),
    ];
    records.extend_from_slice(then);
    read(&records)
}

fn segment(head: &str, anchor: &str, tail: &str) -> Value {
    json!({"preservedSegment": {"headUuid": head, "anchorUuid": anchor, "tailUuid": tail}})
}

fn chosen(uuids: &[&str], anchor: &str) -> Value {
    json!({"preservedMessages": {"anchorUuid": anchor, "uuids": uuids}})
}

#[test]
fn a_compaction_cuts_the_conversation() {
    assert_eq!(compacted(json!({}), &[message("z", "sum")]), "u:sum a:z");
    assert_eq!(compacted(json!({}), &[message("z", "d")]), "u:a a:b u:c a:d a:z");
    let records = [
        user("a", ""),
        noted(
            "cb",
            "",
            json!({"parentUuid": null, "subtype": "compact_boundary"}),
        ),
    ];
    assert_eq!(read(&records), "u:a");
}

#[test]
fn what_a_compaction_kept_follows_its_anchor() {
    let z = [message("z", "sum")];
    assert_eq!(compacted(segment("e", "sum", "f"), &z), "u:sum u:e a:f a:z");
    assert_eq!(
        compacted(segment("e", "sum", "f"), &[user("z", "f")]),
        "u:sum u:e a:f u:z"
    );
    assert_eq!(compacted(segment("e", "cb", "f"), &z), "u:e a:f u:sum a:z");
    assert_eq!(compacted(segment("e", "sum", "f"), &[]), "u:sum u:e a:f");
    assert_eq!(
        compacted(segment("gone", "sum", "f"), &z),
        "u:a a:b u:c a:d u:e a:f a:z"
    );
    assert_eq!(compacted(segment("e", "sum", "gone"), &z), "a:z");
    assert_eq!(compacted(segment("e", "gone", "f"), &z), "u:sum a:z");
    assert_eq!(compacted(segment("f", "sum", "e"), &z), "u:a a:b u:c a:d u:e a:z");

    assert_eq!(compacted(chosen(&["c", "f"], "sum"), &z), "u:sum u:c a:f a:z");
    assert_eq!(
        compacted(chosen(&["c", "f"], "sum"), &[user("z", "f")]),
        "u:sum u:c a:f u:z"
    );
    assert_eq!(compacted(chosen(&["f", "c"], "sum"), &z), "u:sum a:f u:c a:z");
    assert_eq!(compacted(chosen(&["e", "f"], "cb"), &z), "u:e a:f u:sum a:z");
    assert_eq!(compacted(chosen(&["c", "gone"], "sum"), &z), "u:sum a:z");
    assert_eq!(compacted(chosen(&["e", "f"], "gone"), &z), "u:sum a:z");
    assert_eq!(compacted(chosen(&[], "sum"), &z), "u:sum a:z");
    assert_eq!(compacted(chosen(&["e", "e"], "sum"), &z), "u:e a:z");
    assert_eq!(compacted(chosen(&["sum", "e"], "sum"), &z), "u:e a:z");
    let mut both = segment("e", "sum", "f");
    both["preservedMessages"] = chosen(&["c"], "sum")["preservedMessages"].clone();
    assert_eq!(compacted(both, &z), "u:sum u:c a:z");
}

#[test]
fn several_compactions_each_keep_their_own() {
    let second = |kept: Value, uuid: &str| {
        let metadata = json!({"parentUuid": null, "subtype": "compact_boundary", "compactMetadata": kept});
        noted(uuid, "", metadata)
    };
    let first = segment("e", "sum", "f");
    let sum2 = user_with("sum2", "cb2", json!({"isCompactSummary": true}));
    let then = [
        message("z", "sum"),
        user("y", "z"),
        second(segment("y", "sum2", "y"), "cb2"),
        sum2.clone(),
        message("w", "sum2"),
    ];
    assert_eq!(compacted(first.clone(), &then), "u:sum2 u:y a:w");
    let then = [
        message("z", "sum"),
        second(segment("f", "sum2", "z"), "cb2"),
        sum2.clone(),
        message("w", "sum2"),
    ];
    assert_eq!(compacted(first.clone(), &then), "u:sum2 a:f a:z a:w");
    let then = [
        message("z", "sum"),
        second(json!({}), "cb2"),
        sum2,
        user("w", "z"),
    ];
    assert_eq!(compacted(first, &then), "u:sum u:e a:f a:z u:w");
}

fn calls(uuid: &str, parent: &str, message: &str, calls: &[&str]) -> Value {
    let content: Vec<Value> = calls
        .iter()
        .map(|id| json!({"type": "tool_use", "id": id, "name": "X", "input": {}}))
        .collect();
    let message = json!({"role": "assistant", "id": message, "content": content});
    record("assistant", uuid, Some(parent), json!({"message": message}))
}

fn result(uuid: &str, parent: &str, call: &str, more: Value) -> Value {
    let content = json!([{"type": "tool_result", "tool_use_id": call, "content": "y"}]);
    let mut result = user_with(uuid, parent, more);
    result["message"]["content"] = content;
    result
}

#[test]
fn calls_and_results_of_parallel_tools_are_put_back() {
    let none = || json!({});
    let begin = [
        user("a", ""),
        calls("x1", "a", "m", &["t1"]),
        calls("x2", "x1", "m", &["t2"]),
    ];
    let with = |then: &[Value]| read(&[&begin, then].concat());
    let both = [result("r1", "x1", "t1", none()), result("r2", "x2", "t2", none())];
    assert_eq!(
        with(&[&both[..], &[message("n", "r2")]].concat()),
        "u:a a:x1 a:x2 u:r1 u:r2 a:n"
    );
    // The chain goes on from the first one, so that the second call is lost too.
    assert_eq!(
        with(&[&both[..], &[message("n", "r1")]].concat()),
        "u:a a:x1 a:x2 u:r2 u:r1 a:n"
    );
    // A result that follows something else is told where its call is, if nothing else answers that.
    let stray = [
        result("r2", "x2", "t2", none()),
        result("s", "a", "t1", none()),
        message("n", "r2"),
    ];
    assert_eq!(with(&stray), "u:a a:x1 a:x2 u:s u:r2 a:n");
    let named = json!({"sourceToolAssistantUUID": "x1"});
    let answered = [
        both[0].clone(),
        both[1].clone(),
        result("s", "a", "t1", named),
        message("n", "r2"),
    ];
    assert_eq!(with(&answered), "u:a a:x1 a:x2 u:r1 u:r2 a:n");
    let of_agent = [
        result("r2", "x2", "t2", none()),
        result("s", "a", "t1", json!({"agentId": "g"})),
        message("n", "r2"),
    ];
    assert_eq!(with(&of_agent), "u:a a:x1 a:x2 u:r2 a:n");
    let by_time = [
        result("r1", "x1", "t1", json!({"timestamp": "2026-01-01T00:00:09Z"})),
        result("r3", "x1", "t1", json!({"timestamp": "2026-01-01T00:00:08Z"})),
        result("r2", "x2", "t2", none()),
        message("n", "r2"),
    ];
    assert_eq!(with(&by_time), "u:a a:x1 a:x2 u:r3 u:r1 u:r2 a:n");
}

#[test]
fn pages_and_numbers_lead_to_the_same_messages() {
    let records = [
        user("a", ""),
        message("b", "a"),
        user("c", "b"),
        message("d", "c"),
    ];
    let page = |offset, limit| read_with(&records, &MessageOptions::new().offset(offset).limit(limit));
    assert_eq!(
        (page(1, 2), page(3, 9), page(9, 1)),
        ("a:b u:c".into(), "a:d".into(), String::new())
    );
    let home = Home::new();
    let id = home.put(&records);
    let mut messages = home.sessions.messages(&id, &MessageOptions::new()).unwrap();
    assert_eq!((messages.len(), messages.count_all()), (4, 4));
    assert_eq!(messages.get(2).unwrap().unwrap().uuid, "c");
    assert!(messages.get(4).unwrap().is_none());
    assert_eq!(messages.nth(1).unwrap().unwrap().uuid, "b");
    assert_eq!(messages.next_back().unwrap().unwrap().uuid, "d");
    assert_eq!(
        (messages.len(), messages.next().unwrap().unwrap().uuid.as_str()),
        (1, "c")
    );
    assert!(messages.next().is_none());
}

#[test]
fn damage_is_told_and_what_is_written_meanwhile_changes_nothing() {
    let home = Home::new();
    let id = home.put(&[user("a", ""), json!("{\"type\":"), message("b", "a"), json!("[]")]);
    let path = home.sessions.find(&id).unwrap().path;
    let mut messages = home.sessions.messages(&id, &MessageOptions::new()).unwrap();
    assert_eq!((messages.damaged(), messages.damage().len()), (2, 2));
    assert_eq!(messages.damage()[0].position.line, 2);
    let mut text = std::fs::read_to_string(&path).unwrap();
    text += &message("c", "b").to_string();
    std::fs::write(&path, &text).unwrap();
    assert_eq!(messages.next().unwrap().unwrap().uuid, "a");
    // Cut off in place, which nobody should do.
    std::fs::write(&path, "").unwrap();
    assert!(messages.next().unwrap().is_err());
}

#[test]
fn subagents_are_found_wherever_they_are_and_say_what_began_them() {
    let home = Home::new();
    let id = home.put(&[user("a", "")]);
    let dir = home.dir().join(id.as_str()).join("subagents");
    std::fs::create_dir_all(dir.join("workflows/run")).unwrap();
    let write = |name: &str, text: String| std::fs::write(dir.join(name), text).unwrap();
    let records = [
        user_with("1", "", side()),
        record("assistant", "2", Some("1"), side()),
        noted("3", "2", side()),
    ];
    write("agent-b.jsonl", super::text(&records));
    write(
        "agent-b.meta.json",
        json!({"toolUseId": "t", "agentType": "Explore", "description": "d"}).to_string(),
    );
    write("workflows/run/agent-c.jsonl", super::text(&[user("1", "")]));
    write("workflows/run/agent-c.meta.json", "{broken".to_owned());
    write("agent-a.jsonl", String::new());
    write("notes.jsonl", String::new());
    let found = home.sessions.subagents(&id, None).unwrap();
    let shown: Vec<&str> = found.iter().map(|it| it.agent_id.as_str()).collect();
    assert_eq!(shown, ["a", "b", "c"]);
    assert_eq!(
        (found[1].tool_use_id.as_deref(), found[1].agent_type.as_deref()),
        (Some("t"), Some("Explore"))
    );
    assert!(found[1].metadata.is_some() && found[2].metadata.is_none());

    let of = |agent: &str| {
        let agent = agent.parse().unwrap();
        home.sessions
            .subagent_messages(&id, &agent, &MessageOptions::new())
    };
    let messages: Vec<SessionMessage> = of("b").unwrap().map(|message| message.unwrap()).collect();
    assert_eq!(messages[0].parent_tool_use_id.as_deref(), Some("t"));
    assert_eq!(show(messages), "u:1 a:2");
    assert_eq!(show(of("a").unwrap().map(|message| message.unwrap())), "");
    assert!(matches!(of("x"), Err(Error::NoSubagent { .. })));
    assert!(
        home.sessions
            .subagents(&crate::SessionId::random(), None)
            .unwrap_err()
            .is_not_found()
    );
}
