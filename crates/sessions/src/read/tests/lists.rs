//! What is known of sessions, and which are listed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::{DIR, Home};
use crate::{ListOptions, SessionId, SessionInfo};

fn prompt(text: &str, more: Value) -> Value {
    let more = {
        let mut all = json!({"timestamp": "2026-01-01T00:00:00.289Z", "cwd": DIR});
        all.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        all
    };
    let mut prompt = super::record("user", "u", None, more);
    prompt["message"]["content"] = json!(text);
    prompt
}

fn p() -> Value {
    prompt("p", json!({}))
}

/// What is known of a session of these lines, with `beside` its transcript.
fn info_beside(records: &[Value], beside: &[(&str, &str)]) -> Option<SessionInfo> {
    let home = Home::new();
    let id = home.put(records);
    for (name, text) in beside {
        let dir = home.dir().join(id.as_str());
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(name), text).unwrap();
    }
    let listed = home.sessions.list(&ListOptions::new().dir(DIR)).unwrap();
    let info = home.sessions.info(&id, Some(Path::new(DIR))).unwrap();
    assert_eq!(listed.first(), info.as_ref());
    info
}

fn info(records: &[Value]) -> Option<SessionInfo> {
    info_beside(records, &[])
}

fn summary(records: &[Value]) -> String {
    info(records).unwrap().summary
}

fn title(title: &str) -> Value {
    json!({"type": "custom-title", "customTitle": title, "sessionId": "s"})
}

fn ai_title(title: &str) -> Value {
    json!({"type": "ai-title", "aiTitle": title})
}

#[test]
fn an_info_has_the_names_of_the_typescript_sdk() {
    let mut info = info(&[
        prompt("p", json!({"gitBranch": "main"})),
        json!({"type": "tag", "tag": "t"}),
    ])
    .unwrap();
    info.last_modified = 7;
    info.file_size = Some(8);
    let expected = json!({
        "sessionId": "00000000-0000-4000-8000-000000000001", "summary": "p", "lastModified": 7, "fileSize": 8, "firstPrompt": "p",
        "gitBranch": "main", "cwd": DIR, "tag": "t", "createdAt": 1_767_225_600_289_u64,
    });
    assert_eq!(serde_json::to_value(&info).unwrap(), expected);
}

#[test]
fn a_title_goes_before_all_else_and_the_last_one_counts() {
    assert_eq!(summary(&[p(), title("A"), title("B"), ai_title("AI")]), "B");
    assert_eq!(summary(&[p(), title("A"), title(""), ai_title("AI")]), "AI");
    let said = info(&[p(), ai_title("AI")]).unwrap();
    assert_eq!(
        (said.summary.as_str(), said.custom_title.as_deref()),
        ("AI", Some("AI"))
    );
    let beside = [("custom-title.json", r#"{"customTitle":"SIDE"}"#)];
    assert_eq!(
        info_beside(&[p(), ai_title("AI")], &beside).unwrap().summary,
        "SIDE"
    );
    assert_eq!(info_beside(&[p(), title("T")], &beside).unwrap().summary, "T");
    let last_prompt = json!({"type": "last-prompt", "lastPrompt": "LP"});
    let sum = json!({"type": "summary", "summary": "SUM"});
    assert_eq!(summary(&[p(), last_prompt, sum.clone()]), "LP");
    assert_eq!(summary(&[p(), sum]), "SUM");
    // What a tool is called with is no title.
    let call = json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "input": {"summary": "IN", "customTitle": "IN"}}]}});
    assert_eq!(summary(&[p(), call]), "p");
}

#[test]
fn a_title_near_the_beginning_of_a_long_transcript_counts() {
    let filler = || json!({"type": "assistant", "message": {"content": "x".repeat(1000)}});
    let mut records = vec![p(), title("early")];
    records.extend(std::iter::repeat_with(filler).take(200));
    let beside = [("custom-title.json", r#"{"customTitle":"SIDE"}"#)];
    assert_eq!(summary(&records), "early");
    assert_eq!(info_beside(&records, &beside).unwrap().summary, "SIDE");
    records.push(ai_title("AI"));
    assert_eq!(summary(&records), "early");
    records.push(title("late"));
    assert_eq!(summary(&records), "late");
}

#[test]
fn tags_places_branches_and_times() {
    let tag = |tag: &str| json!({"type": "tag", "tag": tag});
    assert_eq!(
        info(&[p(), tag("a"), tag("b")]).unwrap().tag.as_deref(),
        Some("b")
    );
    assert_eq!(info(&[p(), tag("a"), tag("")]).unwrap().tag, None);
    let reordered = json!(r#"{"sessionId":"x","type":"tag","tag":"t"}"#);
    assert_eq!(info(&[p(), reordered]).unwrap().tag.as_deref(), Some("t"));
    let call = json!({"type": "assistant", "message": {"content": [{"input": {"tag": "v1"}}]}});
    assert_eq!(info(&[p(), call]).unwrap().tag, None);

    let cwd = |records: &[Value]| info(records).unwrap().cwd.unwrap();
    let moved = |to: &str| json!({"type": "relocated", "relocatedCwd": to});
    assert_eq!(cwd(&[p(), moved("/a"), moved("/b")]), "/b");
    assert_eq!(cwd(&[p(), moved("/a"), moved("")]), DIR);
    assert_eq!(cwd(&[prompt("p", json!({"cwd": "/other"}))]), "/other");
    assert_eq!(cwd(&[prompt("p", json!({"cwd": null}))]), DIR);

    let branch = |branches: &[&str]| {
        let records: Vec<Value> = branches
            .iter()
            .map(|it| prompt("p", json!({"gitBranch": it})))
            .collect();
        info(&records).unwrap().git_branch
    };
    assert_eq!(branch(&["main", "x"]).as_deref(), Some("x"));
    assert_eq!(branch(&["main", ""]).as_deref(), Some("main"));
    assert_eq!(branch(&[""]), None);
    let times = [prompt("p", json!({"timestamp": "yesterday"})), p()];
    assert_eq!(info(&times).unwrap().created_at, None);
}

#[test]
fn what_is_no_session_of_its_own_is_left_out() {
    assert_eq!(info(&[prompt("p", json!({"isSidechain": true}))]), None);
    assert!(info(&[json!({"type": "mode"}), prompt("p", json!({"isSidechain": true}))]).is_some());
    assert_eq!(info(&[json!({"type": "mode"})]), None);
    assert_eq!(info(&[]), None);
    assert_eq!(info(&[prompt("p", json!({"isMeta": true}))]), None);
    let picture = json!({"type": "user", "message": {"content": [{"type": "image"}]}});
    let shown = info(&[picture]).unwrap();
    assert_eq!((shown.summary.as_str(), shown.first_prompt), ("Image", None));
}

#[test]
fn a_session_is_archived_until_it_is_prompted_again() {
    let archived = |mark: &str, then: Value| {
        info_beside(&[p(), then], &[("archived.json", mark)])
            .unwrap()
            .archived
    };
    let mark = r#"{"archived":true,"at":"2026-06-01T00:00:00.000Z","by":"sdk"}"#;
    let later = |more: Value| {
        let mut then = prompt("later", json!({"timestamp": "2026-06-02T00:00:00.000Z"}));
        then.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        then
    };
    let nothing = || json!({"type": "mode"});
    assert_eq!(archived(mark, nothing()), Some(true));
    assert_eq!(archived(mark, later(json!({}))), Some(false));
    assert_eq!(archived(mark, later(json!({"type": "assistant"}))), Some(true));
    assert_eq!(archived(mark, later(json!({"isMeta": true}))), Some(true));
    let result = json!({"message": {"content": [{"type": "tool_result", "content": "x"}]}});
    assert_eq!(archived(mark, later(result)), Some(true));
    assert_eq!(archived(&mark.replace("true", "false"), nothing()), Some(false));
    assert_eq!(archived("broken", nothing()), None);
    assert_eq!(info(&[p()]).unwrap().archived, None);
}

fn ids(listed: &[SessionInfo]) -> Vec<SessionId> {
    listed.iter().map(|info| info.session_id.clone()).collect()
}

#[test]
fn a_conversation_that_goes_on_elsewhere_is_listed_there() {
    let home = Home::new();
    let other = home.put(&[p()]);
    let continued = |id: &SessionId| json!({"type": "continued-in", "continuedInSessionId": id});
    let hidden = home.put(&[p(), continued(&other)]);
    let empty = home.put(&[json!({"type": "mode"})]);
    let to_empty = home.put(&[p(), continued(&empty)]);
    let to_nothing = home.put(&[p(), continued(&SessionId::random())]);
    let prompted = home.put(&[p(), continued(&other), p()]);
    let mut listed = ids(&home.sessions.list(&ListOptions::new()).unwrap());
    listed.sort();
    assert_eq!(listed, [other, to_empty, to_nothing, prompted]);
    assert!(home.sessions.info(&hidden, None).unwrap().is_some());
}

#[test]
fn programs_sessions_are_left_out_on_request() {
    let home = Home::new();
    let person = home.put(&[prompt("p", json!({"entrypoint": "cli"}))]);
    for more in [
        json!({"entrypoint": "sdk-py"}),
        json!({"entrypoint": "sdk-cli"}),
        json!({"sessionKind": "daemon-worker"}),
    ] {
        home.put(&[prompt("p", more)]);
    }
    assert_eq!(home.sessions.list(&ListOptions::new()).unwrap().len(), 4);
    let listed = home
        .sessions
        .list(&ListOptions::new().include_programmatic(false))
        .unwrap();
    assert_eq!(ids(&listed), [person]);
}

fn touch(path: PathBuf, seconds: u64) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
        .unwrap();
}

#[test]
fn the_newest_come_first_and_pages_cut_the_same_list() {
    let home = Home::new();
    let mut made = Vec::new();
    for nth in 0..60 {
        // Every third one is nothing that is listed; two have the same time each.
        let records = if nth % 3 == 0 {
            vec![json!({"type": "mode"})]
        } else {
            vec![p()]
        };
        let id = home.put(&records);
        touch(home.dir().join(id.file_name()), 1000 + nth / 2 * 7 % 90);
        made.push(id);
    }
    // A copy in another project that is older, and one that is newer.
    for (id, seconds) in [(&made[1], 5), (&made[2], 5000)] {
        let dir = home.sessions.project_dir_of("/another");
        fs::create_dir_all(&dir).unwrap();
        fs::write(
            dir.join(id.file_name()),
            super::text(&[prompt("copy", json!({}))]),
        )
        .unwrap();
        touch(dir.join(id.file_name()), seconds);
    }
    fs::write(home.dir().join("notes.jsonl"), "{}").unwrap();
    let all = home.sessions.list(&ListOptions::new()).unwrap();
    assert_eq!(all.len(), 40);
    assert!(all.is_sorted_by_key(|info| std::cmp::Reverse((info.last_modified, info.session_id.clone()))));
    let of = |id: &SessionId| &all.iter().find(|info| info.session_id == *id).unwrap().summary;
    assert_eq!((of(&made[1]).as_str(), of(&made[2]).as_str()), ("p", "copy"));
    assert_eq!(all[0].last_modified, 5_000_000);
    for (offset, limit) in [(0, 1), (0, 7), (5, 20), (30, 20), (39, 1), (40, 3), (0, 100)] {
        let page = home
            .sessions
            .list(&ListOptions::new().offset(offset).limit(limit))
            .unwrap();
        let expected: Vec<SessionInfo> = all.iter().skip(offset).take(limit).cloned().collect();
        assert_eq!(page, expected, "{offset} {limit}");
    }
    assert_eq!(
        home.sessions.list(&ListOptions::new().offset(38)).unwrap(),
        all[38..]
    );
    assert_eq!(
        home.sessions.list(&ListOptions::new().dir(DIR)).unwrap().len(),
        40
    );
    assert_eq!(
        home.sessions
            .list(&ListOptions::new().dir("/another"))
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn sessions_of_another_directory_with_the_same_name_are_not_listed() {
    let home = Home::new();
    let root = tempfile::tempdir().unwrap();
    let made = |name: &str| {
        let path = root.path().join(name);
        fs::create_dir_all(&path).unwrap();
        crate::place::real_path(&path)
    };
    let (mine, theirs) = (made("a.b"), made("a-b"));
    let gone = mine.replace("a.b", "a_b");
    let dir = home.sessions.project_dir_of(&mine);
    assert_eq!(dir, home.sessions.project_dir_of(&theirs));
    fs::create_dir_all(&dir).unwrap();
    let session = |cwd: &str| {
        let id = SessionId::random();
        let text = super::text(&[prompt("p", json!({"cwd": cwd}))]);
        fs::write(dir.join(id.file_name()), text).unwrap();
        id
    };
    // What was moved away may have been renamed to this.
    let mut expected = [session(&mine), session(&gone)];
    let other = session(&theirs);
    expected.sort();
    let listed = |path: &str| ids(&home.sessions.list(&ListOptions::new().dir(path)).unwrap());
    let mut found = listed(&mine);
    found.sort();
    assert_eq!(found, expected);
    assert!(listed(&theirs).contains(&other) && listed(&theirs).len() == 2);
}

#[test]
fn of_a_shared_directory_only_those_of_the_project_are_listed() {
    let home = Home::new();
    let long = format!("/{}", "a".repeat(250));
    let (mine, theirs) = (format!("{long}/mine"), format!("{long}/theirs"));
    // A CLI of another time hashed differently, and both are in one directory.
    let name = crate::place::project_dir_name(&mine);
    let dir = home
        .sessions
        .projects_dir()
        .join(format!("{}-other", &name[..200]));
    fs::create_dir_all(&dir).unwrap();
    let id = SessionId::random();
    fs::write(
        dir.join(id.file_name()),
        super::text(&[prompt("p", json!({"cwd": mine}))]),
    )
    .unwrap();
    let other = SessionId::random();
    fs::write(
        dir.join(other.file_name()),
        super::text(&[prompt("p", json!({"cwd": theirs}))]),
    )
    .unwrap();
    assert_eq!(
        ids(&home.sessions.list(&ListOptions::new().dir(&mine)).unwrap()),
        std::slice::from_ref(&id)
    );
    // And with a directory of today's name beside it.
    let today = home.sessions.projects_dir().join(name);
    fs::create_dir_all(&today).unwrap();
    let newer = SessionId::random();
    fs::write(
        today.join(newer.file_name()),
        super::text(&[prompt("p", json!({"cwd": mine}))]),
    )
    .unwrap();
    let mut listed = ids(&home.sessions.list(&ListOptions::new().dir(&mine)).unwrap());
    listed.sort();
    let mut expected = [id, newer];
    expected.sort();
    assert_eq!(listed, expected);
}

#[test]
fn without_a_config_directory_there_are_none_and_a_file_in_its_place_is_an_error() {
    let home = Home::new();
    assert_eq!(home.sessions.list(&ListOptions::new()).unwrap(), []);
    assert_eq!(home.sessions.list(&ListOptions::new().dir("/gone")).unwrap(), []);
    assert_eq!(home.sessions.info(&SessionId::random(), None).unwrap(), None);
    fs::write(home.path().join("projects"), "").unwrap();
    assert!(home.sessions.list(&ListOptions::new()).is_err());
}
