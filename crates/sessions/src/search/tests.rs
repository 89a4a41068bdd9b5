//! Searches over whole config directories, against looking at everything.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Hit, Part, Search};
use crate::{SessionId, Sessions};

struct Home {
    place: TempDir,
    sessions: Sessions,
}

fn id(nth: u32) -> SessionId {
    SessionId::new(&format!("00000000-0000-4000-8000-{nth:012}")).unwrap()
}

impl Home {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let sessions = Sessions::at(place.path());
        Self { place, sessions }
    }

    /// Makes a session that was written to `nth` seconds after all began.
    fn put(&self, project: &str, nth: u32, lines: &[String]) {
        let dir = self.sessions.projects_dir().join(project);
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join(id(nth).file_name());
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        touch(&path, nth);
    }

    fn hits(&self, search: &Search) -> Vec<Hit> {
        self.sessions
            .search(search)
            .unwrap()
            .map(Result::unwrap)
            .collect()
    }

    /// The snippets that a search finds.
    fn found(&self, search: &Search) -> Vec<String> {
        self.hits(search).into_iter().map(|hit| hit.snippet).collect()
    }
}

fn time(nth: u32) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600 + u64::from(nth))
}

fn touch(path: &Path, nth: u32) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(time(nth)).unwrap();
}

fn line(kind: &str, content: Value, more: Value) -> String {
    let mut record = json!({
        "parentUuid": null, "isSidechain": false, "type": kind, "message": {"role": kind, "content": content}, "uuid": "u",
        "timestamp": "2026-01-01T00:00:05.000Z", "entrypoint": "cli", "gitBranch": "main",
    });
    if let (Some(record), Value::Object(more)) = (record.as_object_mut(), more) {
        record.extend(more);
    }
    record.to_string()
}

fn prompt(text: &str) -> String {
    line("user", json!(text), json!({}))
}

#[test]
fn hits_come_newest_session_first_with_their_message_and_place() {
    let home = Home::new();
    home.put("-a", 1, &[prompt("hi"), prompt("Find the NEEDLE\n\"here\"")]);
    home.put("-b", 2, &[prompt("a needle")]);
    home.put("-a", 3, &[prompt("nothing, only \\n")]);
    let answer = json!([{"type": "text", "text": "x".repeat(100) + "needle" + &"y".repeat(100)}, {"type": "tool_use", "name": "Bash", "input": {"needle": 1, "command": "needle"}}]);
    home.put(
        "-b",
        4,
        &[prompt("hi"), line("assistant", answer, json!({"uuid": "needle"}))],
    );
    let hits = home.hits(&Search::new("needle"));
    let shown: Vec<(String, Part, u64)> = hits
        .iter()
        .map(|hit| (hit.session.session_id.to_string(), hit.part, hit.position.line))
        .collect();
    let expected = [
        (4, Part::Answer, 2),
        (4, Part::ToolInput, 2),
        (2, Part::Prompt, 1),
        (1, Part::Prompt, 2),
    ];
    assert_eq!(
        shown,
        expected.map(|(nth, part, at)| (id(nth).to_string(), part, at))
    );
    assert_eq!(hits[0].snippet.len(), 126);
    for hit in &hits {
        assert!(
            hit.snippet[hit.range.clone()].eq_ignore_ascii_case("needle"),
            "{hit:?}"
        );
        // The line is where it is said to be.
        let text = fs::read(&*hit.path).unwrap();
        let at = usize::try_from(hit.position.offset).unwrap();
        assert!(text[at..].starts_with(b"{") && (at == 0 || text[at - 1] == b'\n'));
    }
    assert_eq!(
        (hits[1].tool.as_deref(), hits[1].uuid.as_deref()),
        (Some("Bash"), Some("needle"))
    );
    let only = |parts: &[Part]| Search::new("needle").parts(parts.iter().copied());
    assert_eq!(home.found(&only(&[Part::ToolInput])), ["needle"]);
    assert_eq!(
        home.found(&Search::new("NEEDLE\n\"h").case_sensitive(true)),
        ["Find the NEEDLE\n\"here\""]
    );
    assert_eq!(home.found(&Search::new("only \\n")), ["nothing, only \\n"]);
    assert_eq!(home.found(&Search::new("needle").per_session(1)).len(), 3);
    assert_eq!(home.found(&Search::new("needle").context(2))[0], "xxneedleyy");
    // What no reader of the conversation sees is no hit: names of fields, ids, roles.
    for text in ["parentUuid", "isSidechain", "tool_use", "00:00:05"] {
        assert!(home.found(&Search::new(text)).is_empty(), "{text}");
    }
}

#[test]
fn each_filter_keeps_what_fits() {
    let home = Home::new();
    let edit = json!([{"type": "tool_use", "name": "Edit", "input": {"file_path": "/home/x/src/main.rs"}}]);
    let sdk = line("user", json!("find me sdk"), json!({"entrypoint": "sdk-py"}));
    home.put("-a", 10, &[sdk]);
    home.put(
        "-a",
        11,
        &[prompt("find me edit"), line("assistant", edit, json!({}))],
    );
    let tag = json!({"type": "tag", "tag": "red", "sessionId": "s"}).to_string();
    home.put("-a", 12, &[prompt("find me tagged"), tag]);
    home.put("-a", 13, &[prompt("find me archived")]);
    let beside = home.sessions.projects_dir().join("-a").join(id(13).as_str());
    fs::create_dir_all(beside.join("subagents")).unwrap();
    fs::write(
        beside.join("archived.json"),
        r#"{"archived":true,"at":"2027-01-01T00:00:00.000Z"}"#,
    )
    .unwrap();
    fs::write(
        beside.join("subagents/agent-x.jsonl"),
        prompt("find me subagent") + "\n",
    )
    .unwrap();
    let other = json!({"gitBranch": "other", "timestamp": "2026-01-01T00:00:20.000Z"});
    let meta = line("user", json!("find me meta"), json!({"isMeta": true}));
    home.put(
        "-b",
        14,
        &[prompt("x"), line("user", json!("find me branch"), other), meta],
    );
    // The older copy of a session is not searched.
    home.put("-b", 11, &[prompt("find me copy")]);
    touch(
        &home.sessions.projects_dir().join("-b").join(id(11).file_name()),
        1,
    );

    let base = || Search::new("find me");
    let found = |search: Search| -> Vec<String> {
        let found = home.found(&search).into_iter();
        found.map(|text| text.replace("find me ", "")).collect()
    };
    assert_eq!(found(base()), ["branch", "archived", "tagged", "edit", "sdk"]);
    assert_eq!(
        found(base().include_programmatic(false)),
        ["branch", "archived", "tagged", "edit"]
    );
    assert_eq!(
        found(base().include_meta(true)),
        ["branch", "meta", "archived", "tagged", "edit", "sdk"]
    );
    assert_eq!(
        found(base().include_subagents(true))[1..3],
        ["archived", "subagent"]
    );
    assert_eq!(found(base().tag("red")), ["tagged"]);
    assert_eq!(found(base().archived(true)), ["archived"]);
    assert_eq!(found(base().archived(false)), ["branch", "tagged", "edit", "sdk"]);
    assert_eq!(found(base().tool("Edit")), ["edit"]);
    assert!(found(base().tool("Edi")).is_empty());
    assert_eq!(found(base().file("src/main.rs")), ["edit"]);
    assert_eq!(found(base().file("/home/x/src/main.rs")), ["edit"]);
    assert!(found(base().file("rc/main.rs")).is_empty());
    assert_eq!(found(base().branch("other")), ["branch"]);
    assert_eq!(found(base().since(time(12))), ["branch"]);
    assert_eq!(
        found(base().until(time(12))),
        ["archived", "tagged", "edit", "sdk"]
    );
    assert_eq!(found(Search::new("").branch("other")), ["branch"]);
    let project = home.place.path().join("nowhere");
    assert!(found(base().dir(project)).is_empty());
}

#[test]
fn damage_is_passed_over_and_counted() {
    let home = Home::new();
    let nuls = format!("\0\0{}", prompt("needle after NUL bytes"));
    let torn = prompt("needle")[..90].to_owned();
    let surrogate = prompt("needle SURROGATE").replace("SURROGATE", "\\ud83d");
    home.put(
        "-a",
        1,
        &[
            nuls,
            "needle".to_owned(),
            surrogate,
            String::new(),
            torn + "needle",
        ],
    );
    let mut hits = home.sessions.search(&Search::new("needle")).unwrap();
    let found: Vec<String> = hits.by_ref().map(|hit| hit.unwrap().snippet).collect();
    assert_eq!(found, ["needle after NUL bytes", "needle \u{fffd}"]);
    assert_eq!(hits.unread_lines(), 2);
}

#[test]
fn many_hits_are_told_lazily_and_can_be_left() {
    let home = Home::new();
    for nth in 0..200 {
        let lines: Vec<String> = (0..100).map(|at| prompt(&format!("needle {nth} {at}"))).collect();
        home.put("-a", nth, &lines);
    }
    let search = Search::new("needle");
    let mut hits = home.sessions.search(&search).unwrap();
    assert_eq!(hits.next().unwrap().unwrap().snippet, "needle 199 0");
    drop(hits);
    let all = home.found(&search);
    let expected: Vec<String> = (0..200)
        .rev()
        .flat_map(|nth| (0..100).map(move |at| format!("needle {nth} {at}")))
        .collect();
    assert_eq!(all, expected);
}

/// All texts of a record, found by looking at everything.
fn naively(record: &Value) -> Vec<String> {
    fn strings(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::String(text) => into.push(text.clone()),
            Value::Array(all) => all.iter().for_each(|value| strings(value, into)),
            Value::Object(all) => all.values().for_each(|value| strings(value, into)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    let content = &record["message"]["content"];
    if let Some(text) = content.as_str() {
        found.push(text.to_owned());
    }
    for block in content.as_array().into_iter().flatten() {
        match block["type"].as_str() {
            Some("text") => strings(&block["text"], &mut found),
            Some("tool_use") => strings(&block["input"], &mut found),
            _ => {}
        }
    }
    found
}

/// A text as JSON, with some characters escaped that need not be.
fn written(value: &Value, escapes: bool) -> String {
    let text = value.to_string();
    if !escapes {
        return text;
    }
    let escape = |c: char| {
        c.encode_utf16(&mut [0; 2])
            .iter()
            .map(|unit| format!("\\u{unit:04X}"))
            .collect::<String>()
    };
    let each = |c: char| {
        if c.is_ascii() && c != 'e' {
            c.to_string()
        } else {
            escape(c)
        }
    };
    // Only in texts, not in names of fields or what tells the types.
    let parts: Vec<&str> = text.split('~').collect();
    let parts = parts.iter().enumerate().map(|(nth, part)| {
        if nth % 2 == 1 && !part.contains('\\') {
            part.chars().map(each).collect()
        } else {
            (*part).to_owned()
        }
    });
    parts.collect::<Vec<String>>().join("~")
}

fn said() -> impl Strategy<Value = String> {
    "~[aeAEkKtext\"\\\\/\n äÄßσΣς日🦀\u{1b}]{0,12}~"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn a_search_finds_what_looking_at_everything_does(
        texts in proptest::collection::vec((said(), said(), any::<bool>(), any::<bool>()), 1..8),
        needle in "[aeAEkKtext\"\\\\/\n äÄßσΣς日🦀\u{1b}]{1,3}",
        differ in any::<bool>(),
    ) {
        let home = Home::new();
        let mut lines = vec![prompt("#")];
        let mut expected = Vec::new();
        let fold = |text: &str| text.chars().map(|c| match c.to_lowercase().collect::<Vec<_>>()[..] {
            [low] if !differ => low,
            _ => c,
        }).collect::<String>();
        for (first, second, is_answer, escapes) in texts {
            let record = if is_answer {
                json!({"type": "assistant", "message": {"content": [{"type": "text", "text": first}, {"type": "tool_use", "name": "text", "input": {"text": [{"key": second}]}}]}})
            } else {
                json!({"type": "user", "message": {"content": first}})
            };
            expected.extend(naively(&record).into_iter().filter(|text| fold(text).contains(&fold(&needle))));
            lines.push(written(&record, escapes));
        }
        home.put("-a", 1, &lines);
        let found = home.found(&Search::new(needle).case_sensitive(differ).context(1000));
        prop_assert_eq!(found, expected);
    }
}
