//! Prompts, their turns and their ends.

use std::time::Duration;

use outrigger::testing::Simulated;
use outrigger::testing::sim::script::Script;
use outrigger_sim::peer;
use serde_json::json;
use tokio::time::Instant;

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
    // The next prompt is not affected.
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
    // Without a prompt, a cancel has no effect.
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

#[tokio::test(start_paused = true)]
async fn a_cli_that_ignores_the_interrupt_is_ended_and_brought_back() {
    // It accepts the prompt and writes nothing more.
    let cli = Simulated::start(|launch, number| {
        if number == 0 {
            crate::sessions::deaf()
        } else {
            crate::sessions::agent(launch, number)
        }
    });
    let config = outrigger_acp::Config::new()
        .options(cli.options())
        .spare(false)
        .cancel_floor(Duration::from_millis(300));
    let mut editor = Editor::with(config);
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    let id = editor.prompt(&session, "%say hello").await;
    // The paused clock advances only when no task can run.
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

#[tokio::test(start_paused = true)]
async fn an_editor_that_reads_late_misses_nothing() {
    let (mut editor, _cli, session, _home) = started().await;
    // Many lines, more than the pipe holds.
    let words: Vec<String> = (0..3000).map(|number| format!("word{number:04}")).collect();
    let text = words.join(" ");
    let prompt = editor
        .prompt(&session, &format!("%slow 0 chunk=9\n%say {text}"))
        .await;
    // The paused clock advances only when no task can run: nothing more can be written. The agent reads requests nonetheless.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let other = editor.ask_badly("session/juggle", json!({})).await;
    let (mut lines, answer) = editor.until(other).await;
    assert_eq!(answer["error"]["code"], -32601);
    let (more, answer) = editor.until(prompt).await;
    lines.extend(more);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(said(&lines), text);
    editor.leave().await;
}

#[tokio::test]
async fn a_prompt_is_the_word_of_a_person() {
    let (mut editor, cli, session, _home) = started().await;
    editor.turn(&session, "%say hello").await;
    let report = cli.report().expect("it was started");
    let prompt = report
        .received()
        .find(|line| line["type"] == "user")
        .expect("a prompt");
    assert_eq!(prompt["origin"]["kind"], "human", "{prompt}");
    editor.leave().await;
}

#[tokio::test]
async fn a_prompt_can_be_folded_into_the_turn_that_runs() {
    let (mut editor, _cli, session, _home) = started().await;
    let running = editor
        .prompt(
            &session,
            "%slow 20 chunk=1\n%say a longer answer that takes its time",
        )
        .await;
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "%say steered"}],
        "_meta": {"claudeCode": {"delivery": "steer"}}});
    let steered = editor.ask("session/prompt", params).await;
    for id in [running, steered] {
        let (_, answer) = editor.until(id).await;
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    }
    let odd = json!({"sessionId": session, "prompt": [{"type": "text", "text": "x"}],
        "_meta": {"claudeCode": {"delivery": "shout"}}});
    let refused = editor.refused("session/prompt", odd).await;
    assert_eq!(refused["data"]["parameter"], "_meta.claudeCode.delivery");
    editor.leave().await;
}

#[tokio::test]
async fn the_turn_that_runs_can_be_steered() {
    let (mut editor, cli, session, _home) = started().await;
    let steer = |text: &str, meta: serde_json::Value| json!({"sessionId": session, "prompt": [{"type": "text", "text": text}], "_meta": meta});
    let waits = json!({"steering": {"idleBehavior": "promptRequired"}});
    let told = editor
        .call("_session/steering", steer("%say unheard", waits.clone()))
        .await;
    assert_eq!(
        told,
        json!({"outcome": "promptRequired", "reason": "noRunningTurn"})
    );
    let running = editor
        .prompt(
            &session,
            "%slow 20 chunk=1\n%say a longer answer that takes its time",
        )
        .await;
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    let told = editor
        .call("_session/steering", steer("%say steered", waits))
        .await;
    assert_eq!(told, json!({"outcome": "injected"}));
    let (_, answer) = editor.until(running).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let report = cli.report().expect("it was started");
    let heard = |text: &str| report.received().any(|line| line.to_string().contains(text));
    assert!(heard("%say steered") && !heard("%say unheard"));
    // Behind the updates of the turn.
    editor.turn(&session, "%say between").await;
    // Without a turn it begins one, whose end has no answer.
    let told = editor
        .call("_session/steering", steer("%say by itself", json!({})))
        .await;
    assert_eq!(told, json!({"outcome": "startedNewTurn"}));
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    let (lines, _) = editor.turn(&session, "%say and on").await;
    assert!(said(&lines).ends_with("and on"), "{lines:#?}");
    for (name, params) in [
        ("prompt", json!({"sessionId": session, "prompt": []})),
        (
            "_meta.steering.idleBehavior",
            steer("x", json!({"steering": {"idleBehavior": "wait"}})),
        ),
    ] {
        let refused = editor.refused("_session/steering", params).await;
        assert_eq!(refused["data"]["parameter"], name, "{refused:#}");
    }
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn steering_is_refused_while_too_many_prompts_are_open() {
    let (mut editor, cli, session, _home) = started().await;
    editor.prompt(&session, "%hang\n%say beginning").await;
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    for _ in 1..256 {
        editor.prompt(&session, "%say never").await;
    }
    let steer = json!({"sessionId": session, "prompt": [{"type": "text", "text": "%say unheard"}]});
    let refused = editor.refused("_session/steering", steer).await;
    let why = refused["message"].as_str().unwrap_or_default();
    assert!(why.contains("256 prompts are open"), "{refused:#}");
    let report = cli.report().expect("it was started");
    assert!(!report.received().any(|line| line.to_string().contains("unheard")));
    editor.leave().await;
}

/// The last pieces of a text may be held back for a moment.
#[tokio::test(start_paused = true)]
async fn what_was_said_before_a_form_comes_before_it() {
    let script = "
prompts:
  - prompt: go
    steps:
      - pace: {chunk: 2, every: 3ms}
      - say: one moment
      - ask: {elicitation: {server: shop, message: Which?, schema: {type: object, properties: {name: {type: string}}}}}
      - say: done
";
    let cli = Simulated::script(Script::from_yaml(script).unwrap());
    let mut editor = Editor::of(&cli);
    editor.initialize(json!({"elicitation": {"form": {}}})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    let prompt = editor.prompt(&session, "go").await;
    let mut before = Vec::new();
    let form = loop {
        let line = editor.next().await.expect("the agent is there");
        if line["method"] == "elicitation/create" {
            break line;
        }
        before.push(line);
    };
    assert_eq!(said(&before), "one moment");
    editor.reply(&form, json!({"action": "cancel"})).await;
    editor.until(prompt).await;
    editor.leave().await;
}
