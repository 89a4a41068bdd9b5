//! Stored sessions: titles, the archive, and their status.

use serde_json::{Value, json};

use crate::editor::updates;
use crate::rewind::kept;

fn ids(listed: &Value) -> Vec<&str> {
    let sessions = listed["sessions"].as_array().expect("a list").iter();
    sessions
        .filter_map(|session| session["sessionId"].as_str())
        .collect()
}

#[tokio::test]
async fn a_title_is_kept_listed_and_told() {
    let home = tempfile::tempdir().unwrap();
    let (mut editor, _cli) = kept(home.path()).await;
    let (session, _) = editor.open(home.path()).await;
    editor.turn(&session, "%say hello").await;
    let set = |title: &str| json!({"sessionId": session, "title": title});
    let told = |lines: &[Value]| {
        let news = updates(lines, "session_info_update").into_iter();
        news.filter_map(|news| news["title"].as_str())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    // While it is open, and after it was closed.
    for (title, stored) in [
        ("  The first\n title ", "The first title"),
        ("Another", "Another"),
    ] {
        let id = editor.ask("session/set_title", set(title)).await;
        let (lines, answer) = editor.until(id).await;
        assert_eq!(answer["result"]["title"], stored, "{answer:#}");
        let (more, _) = {
            let id = editor.ask("session/list", json!({"cwd": home.path()})).await;
            let (lines, answer) = editor.until(id).await;
            assert_eq!(answer["result"]["sessions"][0]["title"], stored, "{answer:#}");
            (lines, answer)
        };
        // The title of the first turn may come as late as here.
        let news = told(&[lines, more].concat());
        assert_eq!(news.iter().filter(|news| *news == stored).count(), 1, "{news:?}");
        if title != "Another" {
            editor.call("session/close", json!({"sessionId": session})).await;
        }
    }
    assert_eq!(
        editor.refused("session/set_title", set(" \n")).await["code"],
        -32602
    );
    let unknown = json!({"sessionId": "00000000-0000-4000-8000-000000000000", "title": "x"});
    assert_eq!(editor.refused("session/set_title", unknown).await["code"], -32002);
    editor.leave().await;
}

#[tokio::test]
async fn what_is_archived_is_listed_only_if_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let (mut editor, cli) = kept(home.path()).await;
    let mut sessions = Vec::new();
    for text in ["%say one", "%say two"] {
        let (session, _) = editor.open(home.path()).await;
        editor.turn(&session, text).await;
        sessions.push(session);
    }
    let (first, second) = (sessions[0].as_str(), sessions[1].as_str());
    let archive = json!({"sessionId": first});
    editor.call("session/archive", archive.clone()).await;
    assert!(cli.started()[0].exited().is_some(), "it is closed");
    editor.call("session/archive", archive.clone()).await;
    for (filter, expected) in [
        (Value::Null, vec![second]),
        (json!("exclude"), vec![second]),
        (json!("include"), vec![second, first]),
        (json!("only"), vec![first]),
    ] {
        let listed = editor.call("session/list", json!({"archived": filter})).await;
        let mut found = ids(&listed);
        found.sort_unstable_by_key(|id| *id == first);
        assert_eq!(found, expected, "{filter}: {listed:#}");
        for session in listed["sessions"].as_array().unwrap() {
            assert_eq!(session["archived"], session["sessionId"] == first, "{session:#}");
        }
    }
    let refused = editor
        .refused("session/list", json!({"archived": "_other"}))
        .await;
    assert_eq!(refused["data"]["parameter"], "archived");
    editor.call("session/unarchive", archive).await;
    assert_eq!(ids(&editor.call("session/list", json!({})).await).len(), 2);
    for method in ["session/archive", "session/unarchive"] {
        let unknown = json!({"sessionId": "00000000-0000-4000-8000-000000000000"});
        assert_eq!(editor.refused(method, unknown).await["code"], -32002, "{method}");
    }
    editor.leave().await;
}

#[tokio::test]
async fn a_session_is_open_saved_or_unknown() {
    let home = tempfile::tempdir().unwrap();
    let (mut editor, _cli) = kept(home.path()).await;
    let (session, _) = editor.open(home.path()).await;
    editor.turn(&session, "%say hello").await;
    let which = json!({"sessionId": session});
    assert_eq!(
        editor.call("session/status", which.clone()).await["status"],
        "open"
    );
    editor.call("session/close", which.clone()).await;
    assert_eq!(
        editor.call("session/status", which.clone()).await["status"],
        "saved"
    );
    editor.call("session/delete", which.clone()).await;
    assert_eq!(editor.refused("session/status", which).await["code"], -32002);
    editor.leave().await;
}

#[tokio::test]
async fn a_page_is_full_whatever_is_left_out() {
    let home = tempfile::tempdir().unwrap();
    let (mut editor, _cli) = kept(home.path()).await;
    // Written directly in the CLI's form, since 120 real sessions would take long.
    let config = home.path().join("config");
    let project = config.join("projects").join("-w");
    std::fs::create_dir_all(&project).unwrap();
    for number in 0..120 {
        let id = format!("00000000-0000-4000-8000-{number:012}");
        let record = json!({
            "type": "user", "uuid": id, "parentUuid": null, "sessionId": id, "cwd": "/w", "timestamp": "2026-01-01T00:00:00.000Z",
            "message": {"role": "user", "content": format!("prompt {number}")},
        });
        std::fs::write(project.join(format!("{id}.jsonl")), format!("{record}\n")).unwrap();
        if number % 2 == 0 {
            std::fs::create_dir_all(project.join(&id)).unwrap();
            let note = json!({"archived": true, "at": "2030-01-01T00:00:00.000Z"});
            std::fs::write(project.join(&id).join("archived.json"), note.to_string()).unwrap();
        }
    }
    let mut found = Vec::new();
    let mut cursor = Value::Null;
    let mut sizes = Vec::new();
    loop {
        let page = editor.call("session/list", json!({"cursor": cursor})).await;
        sizes.push(ids(&page).len());
        found.extend(ids(&page).into_iter().map(str::to_owned));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(sizes, [50, 10]);
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 60);
    editor.leave().await;
}
