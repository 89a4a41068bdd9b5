//! Searches over whole config directories, against looking at everything.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ConversationPart, Hit, Search};
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
    let shown: Vec<(String, ConversationPart, u64)> = hits
        .iter()
        .map(|hit| (hit.session.session_id.to_string(), hit.part, hit.position.line))
        .collect();
    let expected = [
        (4, ConversationPart::Answer, 2),
        (4, ConversationPart::ToolInput, 2),
        (2, ConversationPart::Prompt, 1),
        (1, ConversationPart::Prompt, 2),
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
    let only = |parts: &[ConversationPart]| Search::new("needle").parts(parts.iter().copied());
    assert_eq!(home.found(&only(&[ConversationPart::ToolInput])), ["needle"]);
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

/// How characters are written in JSON: by chance, the same each time.
struct Hand {
    ways: Vec<u8>,
    at: usize,
}

impl Hand {
    fn way(&mut self) -> u8 {
        self.at += 1;
        self.ways[self.at % self.ways.len()]
    }

    fn text(&mut self, text: &str, into: &mut String) {
        into.push('"');
        for c in text.chars() {
            let short = match c {
                '"' => Some("\\\""),
                '\\' => Some("\\\\"),
                '/' => Some("\\/"),
                '\n' => Some("\\n"),
                '\t' => Some("\\t"),
                _ => None,
            };
            let is_free = !c.is_control() && !matches!(c, '"' | '\\');
            match (self.way() % 6, short) {
                (0..4, _) if is_free => into.push(c),
                (0..4, Some(short)) => into.push_str(short),
                (way, _) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let digits = if way == 4 {
                            format!("\\u{unit:04x}")
                        } else {
                            format!("\\u{unit:04X}")
                        };
                        into.push_str(&digits);
                    }
                }
            }
        }
        into.push('"');
    }

    fn value(&mut self, value: &Value, into: &mut String) {
        match value {
            Value::String(text) => self.text(text, into),
            Value::Array(all) => {
                into.push('[');
                for (nth, value) in all.iter().enumerate() {
                    into.push_str(if nth == 0 { "" } else { "," });
                    self.value(value, into);
                }
                into.push(']');
            }
            Value::Object(fields) => {
                into.push('{');
                for (nth, (key, value)) in fields.iter().enumerate() {
                    into.push_str(if nth == 0 { "" } else { "," });
                    into.push_str(&json!(key).to_string());
                    into.push(':');
                    if key == "type" {
                        into.push_str(&value.to_string());
                    } else {
                        self.value(value, into);
                    }
                }
                into.push('}');
            }
            other => into.push_str(&other.to_string()),
        }
    }
}

/// What is said. Some of its letters are in no name of a field, so that only the text itself can hold them.
fn said() -> impl Strategy<Value = String> {
    "[aeEkKqQzZ\"\\\\/\n\t äÄßσΣς日🦀\u{1b}]{0,12}"
}

/// A part of what was said, mostly; else something that is hardly there.
fn needle(texts: &[String], (of, from, length): (prop::sample::Index, usize, usize), other: &str) -> String {
    let chars: Vec<char> = of.get(texts).chars().collect();
    if chars.is_empty() || length == 0 {
        return other.to_owned();
    }
    chars.iter().skip(from % chars.len()).take(length).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_search_finds_what_looking_at_everything_does(
        texts in proptest::collection::vec((said(), said(), any::<bool>()), 1..8),
        chosen in (any::<prop::sample::Index>(), 0..12_usize, 0..5_usize),
        other in "[aeEkKqQzZ\"\\\\/\n\t äÄßσΣς日🦀\u{1b}]{1,3}",
        ways in proptest::collection::vec(any::<u8>(), 1..40),
        differ in any::<bool>(),
    ) {
        let home = Home::new();
        let mut lines = vec![prompt("#")];
        let mut expected = Vec::new();
        let all: Vec<String> = texts.iter().flat_map(|(first, second, _)| [first.clone(), second.clone()]).collect();
        let needle = needle(&all, chosen, &other);
        let mut hand = Hand { ways, at: 0 };
        let fold = |text: &str| text.chars().map(|c| match c.to_lowercase().collect::<Vec<_>>()[..] {
            [low] if !differ => low,
            _ => c,
        }).collect::<String>();
        for (first, second, is_answer) in texts {
            let record = if is_answer {
                json!({"type": "assistant", "message": {"content": [{"type": "text", "text": first}, {"type": "tool_use", "name": "text", "input": {"text": [{"key": second}]}}]}})
            } else {
                json!({"type": "user", "message": {"content": first}})
            };
            expected.extend(naively(&record).into_iter().filter(|text| fold(text).contains(&fold(&needle))));
            let mut line = String::new();
            hand.value(&record, &mut line);
            prop_assert_eq!(&serde_json::from_str::<Value>(&line).unwrap(), &record);
            lines.push(line);
        }
        home.put("-a", 1, &lines);
        let found = home.found(&Search::new(needle).case_sensitive(differ).context(1000));
        prop_assert_eq!(found, expected);
    }
}
