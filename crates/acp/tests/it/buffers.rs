//! Unsaved buffers.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::editor::{Editor, said};
use crate::real::Rig;

const CAN: &str = r#"{"fs": {"readTextFile": true}}"#;

fn can() -> Value {
    serde_json::from_str(CAN).expect("JSON")
}

/// A prompt that mentions files.
async fn ask(editor: &mut Editor, session: &str, text: &str, files: &[&Path]) -> i64 {
    let mut prompt = vec![json!({"type": "text", "text": text})];
    for file in files {
        let uri = format!("file://{}", file.display());
        prompt.push(json!({"type": "resource_link", "uri": uri, "name": "file"}));
    }
    editor
        .ask("session/prompt", json!({"sessionId": session, "prompt": prompt}))
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_that_is_only_in_the_editor_reaches_the_model() {
    let rig = Rig::start().await;
    let cwd = rig.sandbox.project();
    let (changed, saved) = (cwd.join("changed.txt"), cwd.join("saved.txt"));
    std::fs::write(&changed, "as it was saved").unwrap();
    std::fs::write(&saved, "the same").unwrap();
    let mut editor = rig.editor();
    editor.initialize(can()).await;
    let (session, _) = editor.open(&cwd).await;
    let path = json!(changed);
    editor.answer = Box::new(move |asked| {
        assert_eq!(asked["method"], "fs/read_text_file", "{asked:#}");
        let content = if asked["params"]["path"] == path {
            "as it is typed"
        } else {
            "the same"
        };
        Some(json!({"content": content}))
    });
    let id = ask(&mut editor, &session, "%say seen", &[&changed, &saved]).await;
    let (lines, answer) = editor.until(id).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer:#}");
    assert_eq!(said(&lines), "seen");
    let requests = rig.api.message_requests();
    let sent = json!(requests.last().expect("a request").messages()).to_string();
    assert!(
        sent.contains("as it is typed") && sent.contains("not saved"),
        "{sent}"
    );
    assert!(!sent.contains("the same"), "{sent}");
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_does_not_tell_holds_up_nothing_for_long() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("a.txt");
    std::fs::write(&file, "saved").unwrap();
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(can()).await;
    let (session, _) = editor.open(home.path()).await;
    let begun = tokio::time::Instant::now();
    // The editor is asked and does not answer. The next prompt waits, and other requests are answered.
    let first = ask(&mut editor, &session, "%say first", &[&file]).await;
    let second = ask(&mut editor, &session, "%say second", &[]).await;
    editor.call("session/list", json!({"cwd": home.path()})).await;
    assert!(begun.elapsed() < Duration::from_secs(2));
    let (lines, answer) = editor.until(first).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer:#}");
    assert!(begun.elapsed() >= Duration::from_secs(2));
    assert!(!said(&lines).contains("second"), "{lines:#?}");
    assert!(
        lines.iter().any(|line| line["method"] == "$/cancel_request"),
        "{lines:#?}"
    );
    editor.until(second).await;
    editor.leave().await;
}

#[tokio::test]
async fn a_prompt_can_be_cancelled_while_its_texts_are_awaited() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("a.txt");
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(can()).await;
    let (session, _) = editor.open(home.path()).await;
    let first = ask(&mut editor, &session, "%say never", &[&file]).await;
    let asked = editor
        .wait_for(|line| line["method"] == "fs/read_text_file")
        .await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let (_, answer) = editor.until(first).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer:#}");
    editor.reply(&asked, json!({"content": "too late"})).await;
    let (lines, _) = editor.turn(&session, "%say on").await;
    assert_eq!(said(&lines), "on");
    editor.leave().await;
}
