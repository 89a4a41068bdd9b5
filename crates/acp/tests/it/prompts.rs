//! Prompts, their turns and their ends.

use std::time::{Duration, Instant};

use outrigger::testing::Simulated;
use outrigger_sim::peer;
use serde_json::json;

use crate::editor::{Editor, said};

async fn started() -> (Editor, Simulated, String, tempfile::TempDir) {
    let (mut editor, cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    (editor, cli, session, home)
}

#[tokio::test]
async fn text_comes_before_the_answer_to_its_prompt() {
    let (mut editor, _cli, session, _home) = started().await;
    let (lines, answer) = editor.turn(&session, "%say hello, editor").await;
    assert_eq!(said(&lines), "hello, editor");
    assert_eq!(answer["stopReason"], "end_turn");
    assert!(
        answer["usage"]["totalTokens"]
            .as_u64()
            .is_some_and(|tokens| tokens > 0),
        "{answer}"
    );
    assert!(
        answer["_meta"]["quota"]["model_usage"]
            .as_array()
            .is_some_and(|models| !models.is_empty())
    );
    // Nothing is left over for the next.
    let (lines, _) = editor.turn(&session, "%say again").await;
    assert_eq!(said(&lines), "again");
    editor.leave().await;
}

#[tokio::test]
async fn a_cancel_ends_all_prompts() {
    let (mut editor, _cli, session, _home) = started().await;
    let running = editor.prompt(&session, "%hang\n%say beginning").await;
    let waiting = editor.prompt(&session, "%say never").await;
    editor.wait_for(|line| line["method"] == "session/update").await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    for id in [running, waiting] {
        let (lines, answer) = editor.until(id).await;
        assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
        assert!(!said(&lines).contains("never"));
    }
    // With nothing to cancel it does nothing.
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let (lines, answer) = editor.turn(&session, "%say on we go").await;
    assert_eq!(
        (said(&lines).as_str(), &answer["stopReason"]),
        ("on we go", &json!("end_turn"))
    );
    editor.leave().await;
}

#[tokio::test]
async fn one_prompt_can_be_taken_back_by_its_request() {
    let (mut editor, _cli, session, _home) = started().await;
    let running = editor.prompt(&session, "%slow 50 chunk=1\n%say slowly").await;
    let waiting = editor.prompt(&session, "%say never").await;
    editor
        .notify("$/cancel_request", json!({"requestId": waiting}))
        .await;
    let (_, answer) = editor.until(waiting).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    let (lines, answer) = editor.until(running).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(!said(&lines).contains("never"));
    editor.leave().await;
}

#[tokio::test]
async fn queued_prompts_have_turns_of_their_own_in_order() {
    let (mut editor, _cli, session, _home) = started().await;
    let mut ids = Vec::new();
    for number in 0..3 {
        ids.push(editor.prompt(&session, &format!("%say answer {number}")).await);
    }
    for (number, id) in ids.into_iter().enumerate() {
        let (lines, answer) = editor.until(id).await;
        assert_eq!(said(&lines), format!("answer {number}"));
        assert_eq!(answer["result"]["stopReason"], "end_turn");
    }
    editor.leave().await;
}

#[tokio::test]
async fn a_cli_that_ignores_the_interrupt_is_ended_and_brought_back() {
    // It takes the prompt and says nothing more.
    let cli = Simulated::start(|launch, number| {
        if number == 0 {
            crate::sessions::deaf()
        } else {
            crate::sessions::agent(launch, number)
        }
    });
    let config = outrigger_acp::Config::new()
        .options(cli.options())
        .cancel_floor(Duration::from_millis(300));
    let mut editor = Editor::with(config);
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    let id = editor.prompt(&session, "%say hello").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let since = Instant::now();
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let (_, answer) = editor.until(id).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    assert!(since.elapsed() < Duration::from_secs(5));
    let (lines, answer) = editor.turn(&session, "%say back again").await;
    assert_eq!(
        (said(&lines).as_str(), &answer["stopReason"]),
        ("back again", &json!("end_turn"))
    );
    assert_eq!(cli.started().len(), 2);
    editor.leave().await;
}

#[tokio::test]
async fn a_death_fails_the_turn_that_ran_and_the_next_prompt_goes_on() {
    let (mut editor, cli, session, _home) = started().await;
    let (_, _) = editor.turn(&session, "%say one").await;
    let running = editor.prompt(&session, "%hang\n%say two").await;
    let waiting = editor.prompt(&session, "%say three").await;
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    cli.started()[0].signal(peer::Signal::Kill);
    let (_, answer) = editor.until(running).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer:#}");
    assert!(answer["error"]["data"]["exit"].is_string(), "{answer:#}");
    let (lines, answer) = editor.until(waiting).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer:#}");
    assert_eq!(said(&lines), "three");
    let (lines, _) = editor.turn(&session, "%say four").await;
    assert_eq!(said(&lines), "four");
    assert_eq!(cli.started().len(), 2);
    editor.leave().await;
}
