//! Forks, and what the official SDKs were seen to make of the same records.

use std::collections::{HashMap, HashSet};
use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::write::testing::TestConfigDir;

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

fn uuid(number: usize) -> String {
    format!("{number:08}-0000-4000-8000-000000000000")
}

/// A record of the conversation; 0 is no parent.
fn record(number: usize, parent: usize, kind: &str, more: Value) -> Value {
    let mut record = json!({
        "parentUuid": (parent > 0).then(|| uuid(parent)), "isSidechain": false, "type": kind, "uuid": uuid(number),
        "timestamp": "2026-01-01T00:00:00.000Z", "sessionId": "old", "message": {"role": kind, "content": format!("m{number}")},
    });
    for (key, value) in more.as_object().unwrap() {
        record[key] = value.clone();
    }
    record
}

fn plain(number: usize, parent: usize) -> Value {
    record(number, parent, "user", json!({}))
}

fn put(place: &TestConfigDir, records: &[Value]) -> SessionFile {
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.put(&SessionId::new(ID).unwrap(), "/project", text.as_bytes())
}

fn read(file: &SessionFile) -> Vec<Value> {
    let text = fs::read_to_string(&file.path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The messages of a fork, each with the old number of it and of its parent.
fn messages(fork: &[Value]) -> Vec<(String, Option<String>)> {
    let old = |record: &Value| record["forkedFrom"]["messageUuid"].as_str().map(str::to_owned);
    let by_new: HashMap<&str, String> = fork
        .iter()
        .filter_map(|record| Some((record["uuid"].as_str()?, old(record)?)))
        .collect();
    fork.iter()
        .filter_map(|record| {
            let parent = record["parentUuid"].as_str();
            let parent = parent.map(|parent| by_new.get(parent).cloned().unwrap_or(parent.to_owned()));
            Some((old(record)?, parent))
        })
        .collect()
}

fn linked(links: &[(usize, usize)]) -> Vec<(String, Option<String>)> {
    let link = |(number, parent): &(usize, usize)| (uuid(*number), (*parent > 0).then(|| uuid(*parent)));
    links.iter().map(link).collect()
}

fn up_to(number: usize) -> ForkOptions {
    ForkOptions::new().up_to_message_id(uuid(number))
}

#[test]
fn messages_get_new_ids_and_are_linked_as_before() {
    let place = TestConfigDir::new();
    let file = put(
        &place,
        &[
            json!({"type": "history-suppression", "sessionId": "old"}),
            record(
                1,
                0,
                "user",
                json!({"teamName": "t", "slug": "s", "sessionKind": "daemon", "custom": 1, "turnAttributionKey": "k",
                    "summarizedTurnPromptUuids": [uuid(1)], "droppedPromptUuids": [uuid(1)], "sentAsUuid": uuid(1),
                    "rowsAheadOfPutBack": 1}),
            ),
            record(2, 1, "progress", json!({})),
            record(
                3,
                2,
                "assistant",
                json!({"sourceToolAssistantUUID": uuid(1), "agentName": "a"}),
            ),
            record(8, 3, "user", json!({"isSidechain": true})),
            record(4, 77, "user", json!({})),
            json!({"type": "mode", "mode": "x"}),
            record(
                5,
                4,
                "system",
                json!({"logicalParentUuid": uuid(3), "subtype": "other"}),
            ),
            record(6, 5, "progress", json!({})),
            json!({"type": "content-replacement", "replacements": [{"a": 1}], "sessionId": "old"}),
            json!({"type": "content-replacement", "replacements": [{"a": 2}], "sessionId": "old"}),
            json!({"type": "tools-used", "tools": ["A"], "sessionId": "old"}),
            json!({"type": "tools-used", "tools": ["A", "B"], "sessionId": "old"}),
            json!({"type": "relocated", "relocatedCwd": "/there", "sessionId": "old"}),
            json!({"type": "atis-latch", "atis": "x", "sessionId": "old"}),
            json!({"type": "data-flow-records", "records": [1], "sessionId": ID}),
            json!({"type": "data-flow-records", "records": [2], "sessionId": ID, "agentId": "a"}),
            json!({"type": "custom-title", "customTitle": "Mine", "sessionId": "old"}),
            json!({"type": "tag", "tag": "t", "sessionId": "old"}),
        ],
    );
    let before = fs::read(&file.path).unwrap();
    let fork = file.fork(&ForkOptions::new()).unwrap();
    assert_eq!(fs::read(&file.path).unwrap(), before);
    let records = read(&fork);
    assert_eq!(messages(&records), linked(&[(1, 0), (3, 1), (4, 77), (5, 4)]));
    let kinds: Vec<&str> = records
        .iter()
        .map(|record| record["type"].as_str().unwrap())
        .collect();
    let expected = [
        "history-suppression",
        "user",
        "assistant",
        "user",
        "system",
        "content-replacement",
        "atis-latch",
        "tools-used",
        "data-flow-records",
        "relocated",
        "derived-from",
        "custom-title",
    ];
    assert_eq!(kinds, expected);
    assert!(
        records
            .iter()
            .all(|record| record["sessionId"] == fork.id.as_str())
    );
    assert!(!fs::read_to_string(&fork.path).unwrap().contains("\"old\""));
    for key in [
        "teamName",
        "slug",
        "sessionKind",
        "sourceToolAssistantUUID",
        "agentName",
        "turnAttributionKey",
        "summarizedTurnPromptUuids",
        "droppedPromptUuids",
        "sentAsUuid",
        "rowsAheadOfPutBack",
    ] {
        assert!(records.iter().all(|record| record.get(key).is_none()), "{key}");
    }
    assert_eq!(
        (&records[1]["custom"], &records[1]["message"]["content"]),
        (&json!(1), &json!("m1"))
    );
    assert_eq!(records[2]["requestSessionId"], file.id.as_str());
    assert_eq!(records[4]["logicalParentUuid"], records[2]["uuid"]);
    assert_eq!(records[3]["timestamp"], "2026-01-01T00:00:00.000Z");
    assert_ne!(
        records[4]["timestamp"], "2026-01-01T00:00:00.000Z",
        "the last one is of now"
    );
    assert_eq!(records[5]["replacements"], json!([{"a": 1}, {"a": 2}]));
    assert_eq!(records[7]["tools"], json!(["A", "B"]));
    assert_eq!(records[11]["customTitle"], "Mine (fork)");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            fs::metadata(&fork.path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

/// What the TypeScript SDK 0.3.330 makes of these records.
#[test]
fn a_fork_says_which_sessions_it_has_come_from() {
    let place = TestConfigDir::new();
    let of = |records: &[Value]| {
        let fork = put(&place, records).fork(&ForkOptions::new()).unwrap();
        let records = read(&fork);
        let found = |kind: &str| records.iter().find(|record| record["type"] == kind).cloned();
        (
            found("derived-from").map(|record| record["sessions"].clone()),
            found("data-flow-incomplete"),
        )
    };
    let derived =
        |sessions: Value| json!({"type": "derived-from", "v": 1, "sessionId": ID, "sessions": sessions});
    let session = |id: &str, via: &str| json!({"type": "claude_code_session", "id": id, "via": via});
    let copy = record(
        1,
        0,
        "user",
        json!({"forkedFrom": {"sessionId": "parent", "messageUuid": "x"}}),
    );
    assert_eq!(
        of(std::slice::from_ref(&copy)),
        (None, None),
        "nobody before says it"
    );

    let flow = json!({"type": "data-flow-records", "v": 1, "records": [], "sessionId": ID});
    let (sessions, lost) = of(&[copy.clone(), flow]);
    assert_eq!(
        sessions,
        Some(json!([session("parent", "fork"), session(ID, "fork")]))
    );
    assert_eq!(lost, None);

    let started =
        json!({"type": "claude_code_session", "id": "gp", "via": "clear", "started": "s", "other": 1});
    let (sessions, lost) = of(&[
        derived(json!([session("older", "fork")])),
        json!({"type": "derived-from", "v": 1, "sessionId": "another", "sessions": [session("not", "fork")]}),
        derived(
            json!([started, started, {"type": "unknown", "id": null, "via": "resume"}, session("parent", "branch")]),
        ),
        copy.clone(),
    ]);
    let gp = json!({"type": "claude_code_session", "id": "gp", "via": "clear", "started": "s"});
    let unknown = json!({"type": "unknown", "id": null, "via": "resume"});
    let expected = json!([gp, unknown, session("parent", "branch"), session(ID, "fork")]);
    assert_eq!((sessions, lost), (Some(expected), None));

    // What cannot be understood is told as lost, and what was said before stays.
    for odd in [
        derived(json!([{"type": "new", "id": "x", "via": "fork"}])),
        derived(json!([session("x", "new")])),
        derived(json!([session("", "fork")])),
        derived(json!("x")),
        json!({"type": "derived-from", "v": 2, "sessionId": ID, "sessions": []}),
    ] {
        let (sessions, lost) = of(&[
            derived(json!([session("older", "fork")])),
            odd.clone(),
            copy.clone(),
        ]);
        let expected = json!([
            session("older", "fork"),
            session("parent", "fork"),
            session(ID, "fork")
        ]);
        assert_eq!(sessions, Some(expected), "{odd}");
        assert_eq!(lost.unwrap()["codes"], json!([12]), "{odd}");
    }
}

#[test]
fn a_fork_has_a_title() {
    let place = TestConfigDir::new();
    let words =
        json!({"message": {"content": [{"type": "image"}, {"type": "text", "text": " first\nwords "}]}});
    let meta = json!({"isMeta": true});
    let mut records = vec![record(1, 0, "user", meta), record(2, 1, "user", words)];
    let title = |options: &ForkOptions, records: &[Value]| {
        let fork = put(&place, records).fork(options).unwrap();
        read(&fork).pop().unwrap()["customTitle"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(title(&ForkOptions::new(), &records[..1]), "Forked session");
    assert_eq!(
        title(&ForkOptions::new().title(" "), &records),
        "first words (fork)"
    );
    records.push(json!({"type": "ai-title", "aiTitle": "Made"}));
    assert_eq!(title(&ForkOptions::new(), &records), "Made (fork)");
    records.push(json!({"type": "custom-title", "customTitle": "Given"}));
    assert_eq!(title(&ForkOptions::new(), &records), "Given (fork)");
    assert_eq!(title(&ForkOptions::new().title(" New "), &records), "New");
}

#[test]
fn a_fork_ends_where_it_is_told_to() {
    let place = TestConfigDir::new();
    let kept = json!({"headUuid": uuid(2), "anchorUuid": uuid(5), "tailUuid": uuid(2)});
    let metadata =
        json!({"preservedSegment": kept, "preservedMessages": {"uuids": [uuid(2)]}, "trigger": "manual"});
    let boundary =
        json!({"subtype": "compact_boundary", "logicalParentUuid": uuid(2), "compactMetadata": metadata});
    let rewound =
        json!({"subtype": "compact_boundary", "logicalParentUuid": uuid(6), "compactMetadata": metadata});
    let file = put(
        &place,
        &[
            plain(1, 0),
            record(2, 1, "assistant", json!({})),
            record(3, 0, "system", boundary),
            record(4, 3, "attachment", json!({})),
            record(5, 4, "user", json!({"isCompactSummary": true})),
            plain(6, 5),
            record(7, 0, "system", rewound),
            plain(8, 7),
        ],
    );
    let fork = |number| read(&file.fork(&up_to(number)).unwrap());
    let whole = [(1, 0), (2, 1), (3, 0), (4, 3), (5, 4), (6, 5), (7, 0), (8, 7)];
    for (last, kept) in [(1, 1), (2, 2), (3, 2), (4, 2), (5, 5), (6, 6), (7, 7), (8, 8)] {
        assert_eq!(messages(&fork(last)), linked(&whole[..kept]), "up to {last}");
    }
    // With the summary, nothing is kept behind it.
    let boundary = fork(5).swap_remove(2);
    assert_eq!(boundary["compactMetadata"], json!({"trigger": "manual"}));
    let records = fork(6);
    let segment = &records[2]["compactMetadata"]["preservedSegment"];
    assert_eq!(
        (&segment["headUuid"], &segment["anchorUuid"]),
        (&records[1]["uuid"], &records[4]["uuid"])
    );
    assert_eq!(
        records[2]["compactMetadata"]["preservedMessages"]["uuids"],
        json!([records[1]["uuid"]])
    );
    assert_eq!(records[2]["logicalParentUuid"], records[1]["uuid"]);

    let count = || fs::read_dir(file.project_dir()).unwrap().count();
    let before = count();
    let error = file.fork(&up_to(9)).unwrap_err().to_string();
    assert!(
        error.contains(&uuid(9)) && error.contains(file.id.as_str()),
        "{error}"
    );
    assert_eq!(count(), before, "nothing is left behind");
}

#[test]
fn what_has_no_messages_cannot_be_forked() {
    let place = TestConfigDir::new();
    let side = record(1, 0, "user", json!({"isSidechain": true}));
    for records in [
        vec![side],
        vec![json!({"type": "tag", "tag": "x"})],
        vec![record(1, 0, "progress", json!({}))],
    ] {
        let error = put(&place, &records).fork(&ForkOptions::new()).unwrap_err();
        assert!(error.to_string().contains("message"), "{error}");
    }
    let boundary = [
        record(1, 0, "system", json!({"subtype": "compact_boundary"})),
        record(2, 1, "user", json!({"isCompactSummary": true})),
    ];
    assert!(put(&place, &boundary).fork(&up_to(1)).is_err());
    assert!(
        place
            .sessions
            .fork(&SessionId::random(), &ForkOptions::new())
            .unwrap_err()
            .is_not_found()
    );
}

#[test]
fn what_is_odd_comes_through() {
    let place = TestConfigDir::new();
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let content = format!(r#"{{"content":"\ud83d","deep":{deep},"big":1e400}}"#);
    let odd = format!(
        r#"{{"type":"user","uuid":"{}","parentUuid":null,"message":{content}}}"#,
        uuid(1)
    );
    let file = place.session(&[&odd, "{\"torn", "[1]", "\0\0"]);
    let fork = file.fork(&ForkOptions::new()).unwrap();
    let text = fs::read_to_string(&fork.path).unwrap();
    assert!(text.contains(&format!(r#""message":{content}"#)));
    assert_eq!(text.lines().count(), 2);
}

/// The way from a record up to the root, as the number of each record in the file. It ends where a parent is missing, or a circle
/// would begin.
fn chain(records: &[Value], from: usize) -> Vec<usize> {
    let places: HashMap<&str, usize> = records
        .iter()
        .enumerate()
        .map(|(at, it)| (it["uuid"].as_str().unwrap(), at))
        .collect();
    let mut chain = vec![from];
    let mut seen = HashSet::from([from]);
    while let Some(&at) = records[chain[chain.len() - 1]]["parentUuid"]
        .as_str()
        .and_then(|parent| places.get(parent))
    {
        if !seen.insert(at) {
            break;
        }
        chain.push(at);
    }
    chain
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn each_chain_is_the_same_but_for_the_ids(parents in proptest::collection::vec((any::<prop::sample::Index>(), 0..6), 1..40)) {
        let place = TestConfigDir::new();
        // Mostly trees; some parents are missing, and some come later, which can make circles.
        let records: Vec<Value> = parents.iter().enumerate().map(|(at, (parent, kind))| {
            let parent = match kind {
                0 => 0,
                1 => 1 + parent.index(parents.len()),
                2 => 99,
                _ if at == 0 => 0,
                _ => 1 + parent.index(at),
            };
            record(at + 1, parent, if kind % 2 == 0 { "user" } else { "assistant" }, json!({}))
        }).collect();
        let forked = read(&put(&place, &records).fork(&ForkOptions::new()).unwrap());
        let forked: Vec<Value> = forked.into_iter().filter(|record| record.get("forkedFrom").is_some()).collect();
        prop_assert_eq!(forked.len(), records.len());
        let uuids: HashSet<&str> = forked.iter().map(|record| record["uuid"].as_str().unwrap()).collect();
        prop_assert_eq!(uuids.len(), records.len());
        prop_assert!(records.iter().all(|record| !uuids.contains(record["uuid"].as_str().unwrap())));
        for at in 0..records.len() {
            prop_assert_eq!(&forked[at]["message"], &records[at]["message"]);
            prop_assert_eq!(chain(&forked, at), chain(&records, at));
        }
    }
}

#[test]
fn a_fork_gets_the_id_that_was_asked_for_unless_it_is_in_use() {
    let place = TestConfigDir::new();
    let source = put(&place, &[plain(1, 0)]);
    let id = SessionId::random();
    let fork = source.fork(&ForkOptions::new().id(id.clone())).unwrap();
    assert_eq!(fork.id, id);
    let before = fs::read(&fork.path).unwrap();
    let again = source.fork(&ForkOptions::new().id(id)).unwrap_err();
    assert!(matches!(again, Error::Exists(_)), "{again}");
    assert_eq!(fs::read(&fork.path).unwrap(), before);
}
