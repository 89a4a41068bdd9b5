//! Rewinds to an earlier prompt, and forks that end at a message.

use std::path::Path;

use outrigger::testing::Simulated;
use serde_json::{Value, json};

use crate::editor::{Editor, said, updates};

/// An editor whose CLI stores its sessions below a directory.
pub(crate) async fn kept(home: &Path) -> (Editor, Simulated) {
    let cli = Simulated::agent(|agent| agent.directives().real_tools(true));
    let options = cli.options().env("CLAUDE_CONFIG_DIR", home.join("config"));
    let mut editor = Editor::of_options(options);
    editor.initialize(json!({})).await;
    (editor, cli)
}

/// A turn; returns the id of its prompt.
async fn turn(editor: &mut Editor, session: &str, text: &str) -> String {
    let (_, answer) = editor.turn(session, text).await;
    let id = answer["_meta"]["claudeCode"]["messageUuid"].as_str();
    id.unwrap_or_else(|| panic!("{answer:#}")).to_owned()
}

async fn allow_all(editor: &mut Editor, session: &str) {
    let mode = json!({"sessionId": session, "modeId": "acceptEdits"});
    editor.call("session/set_mode", mode).await;
}

/// The replay of a session.
async fn told_again(editor: &mut Editor, session: &str, cwd: &Path) -> (String, String) {
    let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    let id = editor.ask("session/load", load).await;
    let (lines, answer) = editor.until(id).await;
    assert!(answer.get("error").is_none(), "{answer:#}");
    let asked = updates(&lines, "user_message_chunk").into_iter();
    let asked = asked.filter_map(|chunk| chunk["content"]["text"].as_str());
    (asked.collect::<Vec<_>>().join("|"), said(&lines))
}

#[tokio::test]
async fn files_and_conversation_go_back_to_before_a_prompt() {
    let home = tempfile::tempdir().unwrap();
    let (mut editor, cli) = kept(home.path()).await;
    let (session, _) = editor.open(home.path()).await;
    allow_all(&mut editor, &session).await;
    let file = home.path().join("a.txt");
    let write = |text: &str| json!({"file_path": file, "content": text});
    turn(&mut editor, &session, "%say begun").await;
    let first = turn(
        &mut editor,
        &session,
        &format!("%tool Write {}\n%say one", write("one\n")),
    )
    .await;
    let second = turn(
        &mut editor,
        &session,
        &format!(
            "%tool Read {}\n%tool Write {}\n%say two",
            json!({"file_path": file}),
            write("two\n")
        ),
    )
    .await;
    let rewind = |message: &str, more: Value| {
        let mut params = json!({"sessionId": session, "messageId": message});
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        params
    };

    // A dry run does nothing.
    let would = editor
        .call("_session/rewind", rewind(&second, json!({"dryRun": true})))
        .await;
    assert_eq!(would["canRewind"], true, "{would:#}");
    assert_eq!(would["filesChanged"], json!([file]), "{would:#}");
    assert!(
        would["messagesRemoved"].as_u64().is_some_and(|count| count > 1),
        "{would:#}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two\n");
    assert_eq!(cli.started().len(), 1);

    // The files only.
    let done = editor
        .call("_session/rewind", rewind(&second, json!({"conversation": false})))
        .await;
    assert_eq!(
        (&done["canRewind"], &done["messagesRemoved"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n");
    assert_eq!(cli.started().len(), 1);

    // Both. The session, its mode and the earlier messages stay, and new messages follow them.
    let done = editor.call("_session/rewind", rewind(&first, json!({}))).await;
    assert_eq!(done["canRewind"], true, "{done:#}");
    assert!(!file.exists());
    assert_eq!(cli.started().len(), 2);
    assert!(cli.started()[0].exited().is_some());
    turn(
        &mut editor,
        &session,
        &format!("%tool Write {}\n%say other", write("other\n")),
    )
    .await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "other\n");
    let (asked, said) = told_again(&mut editor, &session, home.path()).await;
    assert_eq!(said, "begunother", "{asked}");
    let gone = editor
        .refused("_session/rewind", rewind(&second, json!({})))
        .await;
    assert_eq!(
        (&gone["code"], &gone["data"]["parameter"]),
        (&json!(-32602), &json!("messageId")),
        "{gone:#}"
    );
    editor.leave().await;
}

#[tokio::test]
async fn going_back_to_the_first_prompt_begins_anew_under_the_same_id() {
    let home = tempfile::tempdir().unwrap();
    let (mut editor, _cli) = kept(home.path()).await;
    let (session, _) = editor.open(home.path()).await;
    let first = turn(&mut editor, &session, "%say one").await;
    turn(&mut editor, &session, "%say two").await;
    let params = json!({"sessionId": session, "messageId": first, "files": false});
    let done = editor.call("_session/rewind", params).await;
    assert_eq!(
        (&done["canRewind"], &done["messagesRemoved"]),
        (&json!(true), &json!(4)),
        "{done:#}"
    );
    let (lines, _) = editor.turn(&session, "%say anew").await;
    assert_eq!(said(&lines), "anew");
    let news = updates(&lines, "session_info_update");
    let conversation = news
        .iter()
        .find_map(|news| news["_meta"]["claudeCode"]["conversationId"].as_str());
    assert!(conversation.is_some_and(|id| id != session), "{lines:#?}");
    editor.leave().await;

    // Another agent process finds it by the editor's id, and it is listed once.
    let (mut editor, _cli) = kept(home.path()).await;
    let (_, said) = told_again(&mut editor, &session, home.path()).await;
    assert_eq!(said, "anew");
    let listed = editor.call("session/list", json!({})).await;
    let ids: Vec<&str> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["sessionId"].as_str())
        .collect();
    assert_eq!(ids, [session.as_str()], "{listed:#}");
    editor.call("session/delete", json!({"sessionId": session})).await;
    let listed = editor.call("session/list", json!({})).await;
    assert_eq!(listed["sessions"], json!([]), "{listed:#}");
    editor.leave().await;
}

#[tokio::test]
async fn a_conversation_that_was_cleared_is_found_by_the_id_of_the_session() {
    let home = tempfile::tempdir().unwrap();
    let (mut editor, _cli) = kept(home.path()).await;
    let (session, _) = editor.open(home.path()).await;
    turn(&mut editor, &session, "%say before").await;
    editor.turn(&session, "/clear").await;
    let prompt = turn(&mut editor, &session, "%say after").await;
    turn(&mut editor, &session, "%say last").await;
    // Not only after a restart: the prompt is searched in the current conversation.
    let last = json!({"sessionId": session, "messageId": prompt, "files": false, "dryRun": true});
    assert_eq!(editor.call("_session/rewind", last).await["canRewind"], true);
    editor.leave().await;

    let (mut editor, _cli) = kept(home.path()).await;
    let (_, said) = told_again(&mut editor, &session, home.path()).await;
    assert_eq!(said, "afterlast");
    let (lines, _) = editor.turn(&session, "%say on").await;
    assert_eq!(crate::editor::said(&lines), "on");
    let fork = json!({"sessionId": session, "cwd": home.path(), "mcpServers": [], "_meta": {"claudeCode": {"upToMessageId": prompt}}});
    let copy = editor.call("session/fork", fork).await["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    editor.call("session/close", json!({"sessionId": copy})).await;
    let (asked, _) = told_again(&mut editor, &copy, home.path()).await;
    assert!(asked.ends_with("%say after"), "{asked}");
    editor.leave().await;
}

#[tokio::test]
async fn going_back_is_refused_while_a_prompt_runs_and_when_it_makes_no_sense() {
    let home = tempfile::tempdir().unwrap();
    let (mut editor, _cli) = kept(home.path()).await;
    let (session, _) = editor.open(home.path()).await;
    let first = turn(&mut editor, &session, "%say one").await;
    let running = editor.prompt(&session, "%hang\n%say two").await;
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    let params = json!({"sessionId": session, "messageId": first});
    let busy = editor.refused("_session/rewind", params).await;
    assert_eq!(busy["code"], -32600, "{busy:#}");
    assert!(
        busy["message"]
            .as_str()
            .is_some_and(|said| said.contains("a prompt runs")),
        "{busy:#}"
    );
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    editor.until(running).await;
    let neither = json!({"sessionId": session, "messageId": first, "files": false, "conversation": false});
    assert_eq!(editor.refused("_session/rewind", neither).await["code"], -32602);
    let unknown = json!({"sessionId": "00000000-0000-4000-8000-000000000000", "messageId": first});
    assert_eq!(editor.refused("_session/rewind", unknown).await["code"], -32002);
    let nowhere = json!({"sessionId": session, "cwd": home.path(), "mcpServers": [], "_meta": {"claudeCode": {"upToMessageId": "none"}}});
    let refused = editor.refused("session/fork", nowhere).await;
    assert_eq!(
        refused["data"]["parameter"], "_meta.claudeCode.upToMessageId",
        "{refused:#}"
    );
    let (lines, _) = editor.turn(&session, "%say still here").await;
    assert_eq!(said(&lines), "still here");
    editor.leave().await;
}

#[tokio::test]
async fn a_death_before_the_next_prompt_brings_nothing_back() {
    let home = tempfile::tempdir().unwrap();
    let (mut editor, cli) = kept(home.path()).await;
    for (removed, left) in [(1, "onefour"), (0, "four")] {
        let (session, _) = editor.open(home.path()).await;
        let mut prompts = Vec::new();
        for text in ["%say one", "%say two", "%say three"] {
            prompts.push(turn(&mut editor, &session, text).await);
        }
        let params = json!({"sessionId": session, "messageId": prompts[removed], "files": false});
        let done = editor.call("_session/rewind", params).await;
        assert_eq!(done["canRewind"], true, "{done:#}");
        let last = cli.started().last().cloned().expect("a CLI");
        last.signal(outrigger_sim::peer::Signal::Kill);
        turn(&mut editor, &session, "%say four").await;
        editor.call("session/close", json!({"sessionId": session})).await;
        let (_, said) = told_again(&mut editor, &session, home.path()).await;
        assert_eq!(said, left);
        editor.call("session/close", json!({"sessionId": session})).await;
    }
    editor.leave().await;
}
