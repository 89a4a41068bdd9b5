//! Requests that open and end one session at the same time.

use outrigger::testing::Simulated;
use outrigger_sim::peer::Steps;
use serde_json::{Value, json};

use crate::editor::{Editor, said};
use crate::plans::{cli, editor_of};
use crate::rewind::kept;

/// How many CLIs run.
fn running(cli: &Simulated) -> usize {
    cli.started().iter().filter(|cli| cli.exited().is_none()).count()
}

async fn is_listed(editor: &mut Editor, session: &str) -> bool {
    let listed = editor.call("session/list", json!({})).await;
    let sessions = listed["sessions"].as_array().expect("a list");
    sessions.iter().any(|listed| listed["sessionId"] == session)
}

/// A session with a message, which is closed again.
async fn stored(editor: &mut Editor, cwd: &std::path::Path) -> String {
    let (session, _) = editor.open(cwd).await;
    editor.turn(&session, "%say hello").await;
    editor.call("session/close", json!({"sessionId": session})).await;
    session
}

#[tokio::test]
async fn a_session_that_is_opened_twice_at_once_has_one_process() {
    let home = tempfile::tempdir().expect("a directory");
    let (mut editor, cli) = kept(home.path()).await;
    let session = stored(&mut editor, home.path()).await;
    let open = json!({"sessionId": session, "cwd": home.path(), "mcpServers": []});
    for (first, second) in [
        ("session/load", "session/load"),
        ("session/load", "session/resume"),
        ("session/resume", "session/load"),
    ] {
        let first = editor.ask(first, open.clone()).await;
        let second = editor.ask(second, open.clone()).await;
        for id in [first, second] {
            let (_, answer) = editor.until(id).await;
            assert!(answer.get("error").is_none(), "{answer:#}");
        }
        assert_eq!(running(&cli), 1);
        editor.turn(&session, "%say again").await;
        editor.call("session/close", json!({"sessionId": session})).await;
        assert_eq!(running(&cli), 0);
    }
    editor.leave().await;
}

/// All requests are in the pipe before the session is open. It may be open already: its process ends.
#[tokio::test]
async fn what_is_sent_behind_the_request_that_opens_a_session_is_for_the_session_that_it_opens() {
    let home = tempfile::tempdir().expect("a directory");
    let (mut editor, _cli) = kept(home.path()).await;
    let session = stored(&mut editor, home.path()).await;
    let open = json!({"sessionId": session, "cwd": home.path(), "mcpServers": []});
    let nowhere = json!({"sessionId": session, "cwd": home.path().join("missing"), "mcpServers": []});
    for (method, params) in [
        ("session/load", &open),
        ("session/load", &open),
        ("session/resume", &open),
        // The session that is open stays so.
        ("session/load", &nowhere),
    ] {
        let opening = editor.ask(method, params.clone()).await;
        let mode = json!({"sessionId": session, "modeId": "plan"});
        let mode = editor.ask("session/set_mode", mode).await;
        let prompt = editor.prompt(&session, "%say behind it").await;
        let (_, opened) = editor.until(opening).await;
        assert_eq!(opened.get("error").is_some(), params == &nowhere, "{opened:#}");
        let (mut lines, chosen) = editor.until(mode).await;
        assert!(chosen.get("error").is_none(), "{chosen:#}");
        let (more, answer) = editor.until(prompt).await;
        lines.extend(more);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{method}: {answer:#}");
        assert_eq!(said(&lines), "behind it", "{lines:#?}");
    }
    let opening = editor.ask("session/load", open).await;
    let prompt = editor.prompt(&session, "%say never").await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let (_, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer:#}");
    let (_, opened) = editor.until(opening).await;
    assert!(opened.get("error").is_none(), "{opened:#}");
    let (lines, _) = editor.turn(&session, "%say next").await;
    assert_eq!(said(&lines), "next");
    editor.leave().await;
}

#[tokio::test]
async fn a_session_can_be_opened_and_ended_at_once() {
    let home = tempfile::tempdir().expect("a directory");
    let (mut editor, cli) = kept(home.path()).await;
    let session = stored(&mut editor, home.path()).await;
    let load = json!({"sessionId": session, "cwd": home.path(), "mcpServers": []});
    let of_session = json!({"sessionId": session});
    // Opened while it is being closed.
    editor.call("session/load", load.clone()).await;
    let close = editor.ask("session/close", of_session.clone()).await;
    let again = editor.ask("session/load", load.clone()).await;
    for id in [close, again] {
        let (_, answer) = editor.until(id).await;
        assert!(answer.get("error").is_none(), "{answer:#}");
    }
    assert_eq!(running(&cli), 1);
    editor.call("session/close", of_session.clone()).await;
    // Closed, archived and deleted while it is being opened.
    for end in ["session/close", "session/archive", "session/delete"] {
        let load = editor.ask("session/load", load.clone()).await;
        let end = editor.ask(end, of_session.clone()).await;
        for id in [load, end] {
            let (_, answer) = editor.until(id).await;
            assert!(answer.get("error").is_none(), "{answer:#}");
        }
        assert_eq!(running(&cli), 0);
    }
    assert!(!is_listed(&mut editor, &session).await);
    editor.leave().await;
}

#[tokio::test]
async fn a_session_ends_even_if_the_request_to_end_it_is_cancelled() {
    for end in ["session/close", "session/delete", "session/archive"] {
        let home = tempfile::tempdir().expect("a directory");
        let (mut editor, cli) = kept(home.path()).await;
        let (session, _) = editor.open(home.path()).await;
        let prompt = editor.prompt(&session, "%hang\n%say beginning").await;
        editor
            .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
            .await;
        let id = editor.ask(end, json!({"sessionId": session})).await;
        editor.notify("$/cancel_request", json!({"requestId": id})).await;
        let (_, answer) = editor.until(id).await;
        assert_eq!(answer["error"]["code"], -32800, "{end}: {answer:#}");
        let (_, answer) = editor.until(prompt).await;
        assert_eq!(answer["result"]["stopReason"], "cancelled", "{end}: {answer:#}");
        let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "%say no"}]});
        let refused = editor.refused("session/prompt", prompt).await;
        assert_eq!(refused["code"], -32002, "{end}: {refused:#}");
        // This waits for the end, if the session has not ended by now.
        let again = editor.ask("session/close", json!({"sessionId": session})).await;
        editor.until(again).await;
        assert_eq!(running(&cli), 0, "{end}");
        editor.leave().await;
    }
}

/// A CLI that does not start, and one whose start never ends.
fn missing() -> Option<Steps> {
    Some(Steps::new().exit(1))
}

fn silent() -> Option<Steps> {
    Some(
        Steps::new()
            .stop_reading()
            .sleep(std::time::Duration::from_secs(3600)),
    )
}

#[tokio::test(start_paused = true)]
async fn a_fork_that_does_not_open_leaves_no_copy() {
    for (second, is_cancelled) in [(missing as fn() -> Option<Steps>, false), (silent, true)] {
        let home = tempfile::tempdir().expect("a directory");
        let cli = cli(home.path(), second);
        let mut editor = editor_of(&cli, home.path());
        editor.initialize(json!({})).await;
        let session = stored(&mut editor, home.path()).await;
        let fork = json!({"sessionId": session, "cwd": home.path(), "mcpServers": []});
        let id = editor.ask("session/fork", fork).await;
        if is_cancelled {
            // The paused clock advances only when no task can run: the CLI has started, and says nothing.
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            editor.notify("$/cancel_request", json!({"requestId": id})).await;
        }
        let (_, answer) = editor.until(id).await;
        assert!(answer["error"].is_object(), "{answer:#}");
        editor.leave().await;
        let mut editor = editor_of(&cli, home.path());
        editor.initialize(json!({})).await;
        let listed = editor.call("session/list", json!({})).await;
        let ids: Vec<&Value> = listed["sessions"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|listed| &listed["sessionId"])
            .collect();
        assert_eq!(ids, [session.as_str()], "{listed:#}");
        editor.leave().await;
    }
}
