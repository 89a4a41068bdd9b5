//! The ends of turns, and the answers to their prompts.

use std::time::Duration;

use outrigger::SlowReader;
use outrigger::testing::Simulated;
use outrigger_acp::{Config, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
use tokio_util::sync::CancellationToken;

use crate::editor::{Editor, said};

/// The raw answer to one prompt.
async fn answer(cli: &Simulated, text: &str) -> (Vec<Value>, Value) {
    let mut editor = Editor::of(cli);
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().expect("a directory");
    let (session, _) = editor.open(home.path()).await;
    let id = editor.prompt(&session, text).await;
    let told = editor.until(id).await;
    editor.leave().await;
    told
}

fn simulated() -> Simulated {
    Simulated::agent(|agent| agent.directives())
}

#[tokio::test(start_paused = true)]
async fn a_stop_reason_is_the_models_own() {
    // The CLI lets the model go on where it has stopped, a few times.
    for (reason, times, told) in [
        ("end_turn", 1, "end_turn"),
        ("max_tokens", 4, "max_tokens"),
        ("refusal", 2, "refusal"),
    ] {
        let prompt = format!("%stop {reason}\n%say so far\n").repeat(times);
        let (lines, answer) = answer(&simulated(), &prompt).await;
        assert_eq!(answer["result"]["stopReason"], told, "{reason}: {answer:#}");
        assert!(said(&lines).contains("so far"), "{reason}: {lines:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_takes_too_many_requests_says_so() {
    let cli = Simulated::agent(|agent| agent.directives().max_turns(1));
    let (_, answer) = answer(&cli, "%tool Glob {\"pattern\": \"*\"}\n%say never").await;
    assert_eq!(answer["result"]["stopReason"], "max_turn_requests", "{answer:#}");
}

#[tokio::test(start_paused = true)]
async fn what_a_cancelled_turn_used_is_told() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().expect("a directory");
    let (session, _) = editor.open(home.path()).await;
    // One API request that ends, and one that hangs.
    let prompt = "%usage in=100 out=50\n%tool Glob {\"pattern\": \"*\"}\n%hang\n%say beginning";
    let running = editor.prompt(&session, prompt).await;
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let (_, answer) = editor.until(running).await;
    let answer = &answer["result"];
    assert_eq!(answer["stopReason"], "cancelled", "{answer:#}");
    let used = |key: &str| answer["usage"][key].as_u64().unwrap_or_default();
    assert!(
        used("inputTokens") >= 100 && used("outputTokens") >= 50,
        "{answer:#}"
    );
    assert!(answer["_meta"]["claudeCode"]["costUsd"].is_number(), "{answer:#}");
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_says_what_the_cli_said_of_it() {
    let (_, refused) = answer(&simulated(), "%error 400 n=20 msg=\"too odd\"\n%say never").await;
    let error = &refused["error"];
    assert_eq!(error["code"], -32603, "{refused:#}");
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|said| said.contains("too odd")),
        "{refused:#}"
    );
    let data = &error["data"];
    assert_eq!(data["apiErrorStatus"], 400, "{refused:#}");
    assert!(
        data["verdict"].is_string() && data["subtype"].is_string(),
        "{refused:#}"
    );
    assert!(data["costUsd"].is_number(), "{refused:#}");

    let impatient = Simulated::agent(|agent| agent.directives().max_retries(1));
    let (_, refused) = answer(&impatient, "%error 401 n=20 msg=\"who are you\"\n%say never").await;
    assert_eq!(refused["error"]["code"], -32000, "{refused:#}");
    assert_eq!(refused["error"]["data"]["apiErrorStatus"], 401, "{refused:#}");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_to_be_answered_now_ends_the_turn_that_runs() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().expect("a directory");
    let (session, _) = editor.open(home.path()).await;
    let running = editor.prompt(&session, "%hang\n%say beginning").await;
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "%say at once"}],
        "_meta": {"claudeCode": {"delivery": "now"}}});
    let now = editor.ask("session/prompt", params).await;
    let (_, answer) = editor.until(running).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer:#}");
    let (lines, answer) = editor.until(now).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer:#}");
    assert_eq!(said(&lines), "at once");
    editor.leave().await;
}

/// How many bytes of a command's output a line has.
fn printed(line: &Value) -> usize {
    let output = &line["params"]["update"]["_meta"]["terminal_output"];
    output["data"].as_str().map_or(0, str::len)
}

/// The command writes faster than the editor reads, and does not end: its end would begin a turn.
#[tokio::test]
async fn a_prompt_is_answered_while_a_command_in_the_background_writes() {
    const ALL: usize = 64 * 1024 * 1024;
    let cli = Simulated::agent(|agent| agent.directives().real_tools(true));
    let home = tempfile::tempdir().expect("a directory");
    let mut editor = Editor::of_options(cli.options().env("CLAUDE_CODE_TMPDIR", home.path()));
    editor
        .initialize(json!({"_meta": {"terminal_output": true}}))
        .await;
    let (session, _) = editor.open(home.path()).await;
    editor.answer = Box::new(|_| Some(json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})));
    let bash = json!({"command": format!("yes | head -c {ALL}; sleep 600"), "run_in_background": true});
    editor
        .turn(&session, &format!("%tool Bash {bash}\n%say it writes"))
        .await;
    editor.wait_for(|line| printed(line) > 0).await;
    let (lines, answer) = editor.turn(&session, "%say next").await;
    assert_eq!(answer["stopReason"], "end_turn");
    // The last piece of the text.
    let text = lines
        .iter()
        .rposition(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    let read: usize = lines[text.expect("the model says it")..]
        .iter()
        .map(printed)
        .sum();
    assert!(
        read < ALL / 2,
        "{read} bytes came between the text and the answer"
    );
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_reads_slowly_in_the_end_gets_whole_lines() {
    let (mut editor, agent) = duplex(1024);
    let (read, write) = split(agent);
    let agent = tokio::spawn(serve(
        Config::new().spare(false),
        read,
        write,
        CancellationToken::new(),
    ));
    // The answer has the id, and is longer than what fits between the two.
    let id = "x".repeat(10 * 1024);
    let line = json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {"protocolVersion": 1}});
    editor
        .write_all(format!("{line}\n").as_bytes())
        .await
        .expect("the agent reads");
    let mut told = vec![0; 10];
    editor.read_exact(&mut told).await.expect("the answer begins");
    editor.shutdown().await.expect("the agent is there");
    let mut piece = [0; 1024];
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        match editor.read(&mut piece).await.expect("it is readable") {
            0 => break,
            read => told.extend_from_slice(&piece[..read]),
        }
    }
    assert!(told.ends_with(b"\n"), "{} bytes", told.len());
    let told: Value = serde_json::from_slice(&told).expect("a whole line");
    assert_eq!(told["id"], id);
    agent.await.expect("no panic").expect("it ends well");
}

/// Updates that cannot be merged, more than the pipe holds and may wait before it.
fn many() -> String {
    "%+tool Glob {\"pattern\": \"*\"}\n".repeat(400)
}

#[tokio::test(start_paused = true)]
async fn a_prompt_whose_result_was_dropped_for_a_slow_editor_is_answered() {
    let cli = simulated();
    let options = cli.options().slow_reader(SlowReader::LeaveOut);
    let mut editor = Editor::of_options(options.buffer_bytes(64 * 1024));
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().expect("a directory");
    let (session, _) = editor.open(home.path()).await;
    let text = format!("%say many\n{}%say after", many());
    let id = editor.prompt(&session, &text).await;
    // The paused clock advances only when no task can run: the pipe is full, and the turn over.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (lines, answer) = editor.until(id).await;
    assert!(!said(&lines).contains("after"), "its end was dropped");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer:#}");
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn each_prompt_is_answered_behind_its_own_updates_however_late_the_editor_reads() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().expect("a directory");
    let (session, _) = editor.open(home.path()).await;
    let text = format!("%say many\n{}%say after", many());
    let mut prompts = vec![editor.prompt(&session, &text).await];
    for number in 0..100 {
        prompts.push(editor.prompt(&session, &format!("%say <{number}>")).await);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for (number, id) in prompts.into_iter().enumerate().skip(1) {
        let (lines, answer) = editor.until(id).await;
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer:#}");
        assert!(said(&lines).ends_with(&format!("<{}>", number - 1)), "{lines:#?}");
    }
    editor.leave().await;
}
