//! Replays of a part of a stored session, and the rest on demand.

use serde_json::{Value, json};

use crate::editor::{Editor, said, updates};
use crate::real::Rig;

/// The updates of a page as lines, for [`updates`] and [`said`].
fn lines(page: &Value) -> Vec<Value> {
    let updates = page["updates"].as_array().expect("updates").iter();
    updates
        .map(|update| json!({"method": "session/update", "params": {"update": update}}))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_messages_are_replayed_and_the_rest_when_asked_for() {
    let rig = Rig::start().await;
    let cwd = rig.sandbox.project();
    let mut editor = rig.editor();
    let told = editor.initialize(json!({})).await;
    let can = &told["agentCapabilities"]["_meta"]["claudeCode"]["replay"];
    assert_eq!(*can, json!({"limit": true, "history": true}));
    let (session, _) = editor.open(&cwd).await;
    let read = json!({"file_path": cwd.join("none.txt")});
    editor.turn(&session, "%say one.").await;
    editor
        .turn(&session, &format!("%tool Read {read}\n%say two."))
        .await;
    editor.turn(&session, "%say three.").await;
    editor.leave().await;

    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let load = |limit: Value| json!({"sessionId": session, "cwd": cwd, "mcpServers": [], "_meta": {"claudeCode": {"replay": limit}}});
    // All three prompts have at least two messages, the second more.
    let id = editor.ask("session/load", load(json!({"limit": 3}))).await;
    let (replayed, answer) = editor.until(id).await;
    assert_eq!(said(&replayed), "two.three.", "{replayed:#?}");
    let before = &answer["result"]["_meta"]["claudeCode"]["replay"]["before"];
    assert_eq!(*before, updates(&replayed, "user_message_chunk")[0]["messageId"]);

    let history = json!({"sessionId": session, "cwd": cwd, "before": before});
    let page = editor.call("_session/history", history).await;
    assert_eq!(said(&lines(&page)), "one.", "{page:#}");
    assert_eq!(page["before"], Value::Null);
    // Page by page, the pages are the whole.
    let mut before = Value::Null;
    let mut pages = Vec::new();
    loop {
        let history = json!({"sessionId": session, "cwd": cwd, "before": before, "limit": 1});
        let page = editor.call("_session/history", history).await;
        pages.insert(0, said(&lines(&page)));
        let calls = updates(&lines(&page), "tool_call").len();
        assert_eq!(calls, usize::from(pages[0] == "two."), "{page:#}");
        before = page["before"].clone();
        if before.is_null() {
            break;
        }
    }
    assert_eq!(pages, ["one.", "two.", "three."]);
    // The model knows all.
    editor.turn(&session, "%say four.").await;
    let requests = rig.api.message_requests();
    let sent = json!(requests.last().expect("a request").messages()).to_string();
    assert!(sent.contains("one.") && sent.contains("three."), "{sent}");

    // A limit that has room for all is no limit.
    editor.call("session/close", json!({"sessionId": session})).await;
    let id = editor.ask("session/load", load(json!({"limit": 100}))).await;
    let (replayed, answer) = editor.until(id).await;
    assert_eq!(said(&replayed), "one.two.three.four.");
    let replay = &answer["result"]["_meta"]["claudeCode"]["replay"];
    assert_eq!(*replay, json!({"before": null}), "{answer:#}");
    editor.leave().await;
}

#[tokio::test]
async fn what_is_no_limit_and_no_place_is_refused() {
    let home = tempfile::tempdir().expect("a directory");
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let replay = |limit: Value| json!({"claudeCode": {"replay": {"limit": limit}}});
    let new = json!({"cwd": home.path(), "mcpServers": [], "_meta": replay(json!(5))});
    let error = editor.refused("session/new", new).await;
    assert_eq!(error["code"], -32602, "{error:#}");
    let id = "00000000-0000-4000-8000-000000000001";
    for wrong in [json!(0), json!("5"), Value::Null] {
        let load =
            json!({"sessionId": id, "cwd": home.path(), "mcpServers": [], "_meta": replay(wrong.clone())});
        let error = editor.refused("session/load", load).await;
        assert_eq!(error["code"], -32602, "{wrong}: {error:#}");
    }
    for (field, wrong) in [
        ("limit", json!(0)),
        ("limit", json!(1001)),
        ("cwd", json!("here")),
    ] {
        let mut history = json!({"sessionId": id, "cwd": home.path()});
        history[field] = wrong.clone();
        let error = editor.refused("_session/history", history).await;
        assert_eq!(error["code"], -32602, "{field} {wrong}: {error:#}");
    }
    let history = json!({"sessionId": id, "cwd": home.path()});
    let error = editor.refused("_session/history", history).await;
    assert_eq!(error["code"], -32002, "{error:#}");
    editor.leave().await;
}
