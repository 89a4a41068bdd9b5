//! What a summary is made of.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn key() -> SessionKey {
    SessionKey::new("p", "s")
}

fn raw(value: Value) -> RawJson {
    RawJson::from(value)
}

fn data(entries: &[RawJson]) -> Value {
    fold_summary(None, &key(), entries).data.to_value().unwrap()
}

fn user(text: &str) -> RawJson {
    raw(json!({"type": "user", "message": {"role": "user", "content": text}}))
}

#[test]
fn things_of_the_beginning_stay_and_the_last_of_the_others_counts() {
    let entries = [
        raw(json!({"type": "mode", "timestamp": "nonsense"})),
        raw(
            json!({"type": "user", "timestamp": "2026-01-02T03:04:05.678Z", "cwd": "/one", "gitBranch": "a",
            "message": {"content": [{"type": "text", "text": "  first\nprompt "}]}}),
        ),
        raw(
            json!({"type": "user", "timestamp": "2026-01-02T04:00:00Z", "cwd": "/two", "gitBranch": "b",
            "message": {"content": "second"}, "isSidechain": true}),
        ),
        raw(json!({"type": "custom-title", "customTitle": "old"})),
        raw(json!({"type": "custom-title", "customTitle": "new"})),
        raw(json!({"type": "tag", "tag": "blue"})),
        raw(json!({"type": "last-prompt", "lastPrompt": "second"})),
        raw(json!({"type": "summary", "summary": "hint"})),
    ];
    let all = json!({
        "isSidechain": false, "createdAt": 1_767_323_045_678_i64, "cwd": "/one", "firstPrompt": "first prompt",
        "firstPromptLocked": true, "gitBranch": "b", "customTitle": "new", "tag": "blue", "lastPrompt": "second",
        "summaryHint": "hint"
    });
    assert_eq!(data(&entries), all);
    let gone = [&entries[..], &[raw(json!({"type": "tag", "tag": ""}))]].concat();
    assert!(data(&gone).get("tag").is_none());
    let moved = [
        &entries[..],
        &[raw(json!({"type": "relocated", "relocatedCwd": "/three"}))],
    ]
    .concat();
    assert_eq!(data(&moved)["cwd"], "/three");
}

#[test]
fn the_first_prompt_is_what_a_person_wrote() {
    let first = |entries: &[RawJson]| data(entries).get("firstPrompt").cloned().unwrap_or_default();
    let passed_over = [
        raw(json!({"type": "user", "isMeta": true, "message": {"content": "meta"}})),
        raw(json!({"type": "user", "isCompactSummary": true, "message": {"content": "summary"}})),
        raw(json!({"type": "assistant", "message": {"content": "answer"}})),
        raw(
            json!({"type": "user", "message": {"content": [{"type": "tool_result"}, {"type": "text", "text": "x"}]}}),
        ),
        user("<local-command-stdout>x</local-command-stdout>"),
        user("[Request interrupted by user for tool use]"),
        user("<ide_opened_file>x</ide_opened_file>"),
        user(" \n "),
        user("hello"),
    ];
    assert_eq!(first(&passed_over), "hello");
    assert_eq!(first(&[user("<bash-input> ls </bash-input>")]), "! ls");
    assert_eq!(first(&[user("<3 you")]), "<3 you");
    assert_eq!(first(&[user(&"é".repeat(300))]), format!("{}…", "é".repeat(200)));
    let command = [
        user("<command-name>/clear</command-name>"),
        user("<command-name>/x</command-name>"),
    ];
    assert_eq!(data(&command)["commandFallback"], "/clear");
    assert_eq!(first(&command), Value::Null);
}

#[test]
fn what_others_put_into_the_data_stays() {
    let before = SummaryEntry::new(
        "s",
        7,
        RawJson::from_text(r#"{"theirs":"\ud800","customTitle":"a"}"#).unwrap(),
    );
    let after = fold_summary(
        Some(&before),
        &key(),
        &[raw(json!({"customTitle": "b", "isSidechain": true}))],
    );
    assert_eq!(after.mtime, 7);
    assert_eq!(
        after.data.get(),
        r#"{"theirs":"\ud800","customTitle":"b","isSidechain":true}"#
    );
}

#[test]
fn no_entry_brings_it_down() {
    for text in [
        "null",
        "[]",
        "1",
        r#""x""#,
        r#"{"message":[]}"#,
        r#"{"type":"user","message":{"content":[1,[]]}}"#,
    ] {
        assert_eq!(
            data(&[RawJson::from_text(text).unwrap()]),
            json!({"isSidechain": false}),
            "{text}"
        );
    }
}

fn entry() -> impl Strategy<Value = RawJson> {
    let text = prop_oneof![
        Just("a".to_owned()),
        "[<>a-z\n ]{0,9}",
        Just("<command-name>/c</command-name>".to_owned())
    ];
    let field = prop_oneof![
        (
            Just("type"),
            prop_oneof![Just(json!("user")), Just(json!("tag")), Just(json!("relocated"))]
        ),
        (Just("tag"), prop_oneof![Just(json!("")), Just(json!("t"))]),
        (Just("customTitle"), text.clone().prop_map(Value::from)),
        (Just("cwd"), text.clone().prop_map(Value::from)),
        (Just("relocatedCwd"), text.clone().prop_map(Value::from)),
        (Just("isSidechain"), any::<bool>().prop_map(Value::from)),
        (Just("timestamp"), Just(json!("2026-01-02T03:04:05Z"))),
        (Just("message"), text.prop_map(|text| json!({"content": text}))),
    ];
    prop::collection::vec(field, 0..6).prop_map(|fields| {
        raw(Value::Object(
            fields
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        ))
    })
}

proptest! {
    #[test]
    fn in_pieces_or_at_once_it_is_the_same(entries in prop::collection::vec(entry(), 0..12), at in 0usize..12) {
        let at = at.min(entries.len());
        let whole = fold_summary(None, &key(), &entries);
        let first = fold_summary(None, &key(), &entries[..at]);
        let both = fold_summary(Some(&first), &key(), &entries[at..]);
        prop_assert_eq!(whole.data.to_value().unwrap(), both.data.to_value().unwrap());
    }
}
