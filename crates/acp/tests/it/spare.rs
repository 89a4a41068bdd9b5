//! The spare.

use std::path::Path;
use std::time::Duration;

use outrigger::testing::Simulated;
use outrigger_acp::Config;
use outrigger_sim::peer::{Running, Signal, Steps};
use serde_json::{Value, json};

use crate::editor::{Editor, PATIENCE, said};
use crate::sessions::agent;

/// An editor with a session, which is the first CLI, and a ready spare, which is the second.
async fn with_spare(cli: &Simulated, change: impl FnOnce(Config) -> Config) -> Editor {
    let config = Config::new().options(cli.options());
    let mut editor = Editor::with(change(config));
    editor.initialize(json!({})).await;
    editor.open(&std::env::temp_dir()).await;
    ready(cli, 1).await;
    editor
}

/// Waits for the end of a CLI.
async fn ended(cli: &Running) {
    let in_time = tokio::time::timeout(PATIENCE, cli.exit()).await;
    in_time.expect("it ends in time");
}

/// Waits until the CLI of this number is ready. The paused clock advances only when no task can run.
async fn ready(cli: &Simulated, number: usize) {
    let until = tokio::time::Instant::now() + PATIENCE;
    while !is_ready(cli, number) {
        assert!(tokio::time::Instant::now() < until, "a spare is ready");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether the CLI of this number has reported that it is ready, and the agent has read it.
fn is_ready(cli: &Simulated, number: usize) -> bool {
    let started = cli.started();
    let sent = started.get(number).map(|cli| cli.report().sent_kinds());
    sent.is_some_and(|sent| !sent.is_empty())
}

/// Whether it was claimed.
fn was_claimed(cli: &Running) -> bool {
    let report = cli.report();
    report
        .received()
        .any(|frame| frame["request"]["subtype"] == "claim_session")
}

fn new_session(cwd: &Path) -> Value {
    json!({"cwd": cwd, "mcpServers": []})
}

/// A whole turn in a new session.
async fn works(editor: &mut Editor, cwd: &Path) -> String {
    let (session, _) = editor.open(cwd).await;
    let (lines, answer) = editor.turn(&session, "%say here").await;
    assert_eq!(answer["stopReason"], "end_turn");
    assert_eq!(said(&lines), "here");
    session
}

fn simulated() -> Simulated {
    Simulated::agent(|agent| agent.directives())
}

#[tokio::test(start_paused = true)]
async fn it_becomes_the_next_session_and_asks_in_its_name() {
    let cli = simulated();
    let mut editor = with_spare(&cli, |config| config).await;
    let home = tempfile::tempdir().unwrap();
    let more = tempfile::tempdir().unwrap();
    let mut wanted = new_session(home.path());
    wanted["additionalDirectories"] = json!([more.path()]);
    wanted["systemPrompt"] = json!({"mode": "append", "content": [{"type": "text", "text": "Be brief."}]});
    let opened = editor.call("session/new", wanted).await;
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(opened["modes"]["currentModeId"], "default");

    editor.answer = Box::new(|_| Some(json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})));
    let write = json!({"file_path": home.path().join("a.txt"), "content": "hello"});
    let (lines, answer) = editor
        .turn(&session, &format!("%tool Write {write}\n%say done"))
        .await;
    assert_eq!(answer["stopReason"], "end_turn");
    let question = lines
        .iter()
        .find(|line| line["method"] == "session/request_permission");
    let question = question.expect("somebody was asked");
    assert_eq!(question["params"]["sessionId"], session.as_str());

    let started = cli.started();
    assert_eq!(started.len(), 2, "one process for each was enough");
    let report = started[1].report();
    let claim = report
        .received()
        .find(|frame| frame["request"]["subtype"] == "claim_session")
        .expect("it was claimed");
    assert_eq!(claim["request"]["cwd"], json!(home.path()));
    assert_eq!(claim["request"]["additional_directories"], json!([more.path()]));
    assert_eq!(claim["request"]["append_system_prompt"], "Be brief.");
    let init = report.sent().find(|frame| frame["subtype"] == "init");
    assert_eq!(init.expect("a turn ran")["session_id"], session.as_str());

    // The slot is filled again, and the next spare becomes another session.
    ready(&cli, 2).await;
    let other = works(&mut editor, home.path()).await;
    assert_ne!(other, session);
    assert!(was_claimed(&cli.started()[2]));
    editor.leave().await;
    assert!(cli.started().iter().all(|cli| cli.exited().is_some()));
}

#[tokio::test(start_paused = true)]
async fn what_a_spare_can_not_be_is_started_and_ends_it() {
    let home = tempfile::tempdir().unwrap();
    let server = json!([{"name": "a", "command": "/bin/true", "args": [], "env": []}]);
    let prompt = json!({"mode": "override", "content": [{"type": "text", "text": "You are a parrot."}]});
    for (key, value) in [("mcpServers", server), ("systemPrompt", prompt)] {
        let cli = simulated();
        let mut editor = with_spare(&cli, |config| config).await;
        let mut wanted = new_session(home.path());
        wanted[key] = value;
        editor.call("session/new", wanted).await;
        ended(&cli.started()[1]).await;
        assert_eq!(cli.started().len(), 3, "{key}");
        assert!(!was_claimed(&cli.started()[1]));
        editor.leave().await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_died_or_is_old_is_not_used() {
    let home = tempfile::tempdir().unwrap();
    let cli = simulated();
    let mut editor = with_spare(&cli, |config| config).await;
    cli.started()[1].signal(Signal::Kill);
    ended(&cli.started()[1]).await;
    works(&mut editor, home.path()).await;
    assert!(!was_claimed(&cli.started()[2]));
    editor.leave().await;

    let cli = simulated();
    let age = Duration::from_millis(20);
    let mut editor = with_spare(&cli, |config| config.spare_age(age)).await;
    ended(&cli.started()[1]).await;
    works(&mut editor, home.path()).await;
    assert!(!was_claimed(&cli.started()[2]));
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn one_that_has_read_old_settings_is_not_used() {
    let home = tempfile::tempdir().unwrap();
    let cli = simulated();
    let options = cli.options().env("CLAUDE_CONFIG_DIR", home.path());
    let mut editor = with_spare(&cli, |config| config.options(options)).await;
    std::fs::write(home.path().join("settings.json"), r#"{"model":"opus"}"#).unwrap();
    works(&mut editor, home.path()).await;
    ended(&cli.started()[1]).await;
    assert!(!was_claimed(&cli.started()[1]));
    assert_eq!(cli.started().len(), 3);
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn it_ends_with_the_editor() {
    for by_signal in [false, true] {
        let cli = simulated();
        let editor = with_spare(&cli, |config| config).await;
        if by_signal {
            editor.stop.cancel();
            editor.gone().await;
        } else {
            editor.leave().await;
        }
        assert_eq!(cli.started().len(), 2);
        assert!(cli.started()[1].exited().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_become_a_session_is_replaced_while_the_session_waits() {
    let cli = Simulated::start(|launch, number| match number {
        1 => Steps::new()
            .initialize()
            .stop_reading()
            // Longer than the test; a signal ends it.
            .sleep(Duration::from_secs(3600))
            .spawn_in_memory(),
        _ => agent(launch, number),
    });
    let mut editor = with_spare(&cli, |config| config).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    // A cancel does not wait for it, and leaves nothing that would begin a turn.
    let prompt = editor.prompt(&session, "%say never").await;
    let steer = json!({"sessionId": session, "prompt": [{"type": "text", "text": "%say never"}]});
    let steer = editor.ask("_session/steering", steer).await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let (_, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    let (_, answer) = editor.until(steer).await;
    assert_eq!(answer["error"]["code"], -32800, "{answer}");
    assert!(cli.started().len() < 3 || !is_ready(&cli, 2));
    // A prompt waits for it, and the mode that was chosen before applies.
    let mode = json!({"sessionId": session, "modeId": "acceptEdits"});
    let mode = editor.ask("session/set_mode", mode).await;
    let (lines, answer) = editor.turn(&session, "%say late").await;
    assert_eq!(
        (said(&lines).as_str(), &answer["stopReason"]),
        ("late", &json!("end_turn"))
    );
    assert!(editor.until(mode).await.1["result"].is_object());
    // The next spare would fail as well, so there is none.
    works(&mut editor, home.path()).await;
    let started = cli.started();
    assert!(started.iter().skip(2).all(|cli| !was_claimed(cli)));
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_does_not_begin_says_why_and_is_tried_again() {
    let cli = Simulated::start(|launch, number| match number {
        // It dies when it is claimed, and so does its replacement.
        1 => Steps::new()
            .initialize()
            .expect("control_request")
            .exit(1)
            .spawn_in_memory(),
        2 | 3 => Steps::new().complain("out of order").exit(1).spawn_in_memory(),
        _ => agent(launch, number),
    });
    let mut editor = with_spare(&cli, |config| config).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    // A prompt gets the error of the start that it waits for; the next prompt starts the CLI again.
    let mut refused = 0;
    let lines = loop {
        let prompt = editor.prompt(&session, "%say again").await;
        let (lines, answer) = editor.until(prompt).await;
        if answer.get("error").is_none() {
            break lines;
        }
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("out of order"), "{answer:#}");
        refused += 1;
    };
    assert!((1..=2).contains(&refused), "{refused}");
    assert_eq!(said(&lines), "again");
    editor.leave().await;
}

/// An editor that resumes its sessions does not share its cores with a spare, and an editor that can't use a spare has none.
#[tokio::test(start_paused = true)]
async fn there_is_none_before_a_session_that_it_could_have_been() {
    let cli = simulated();
    let mut editor = Editor::with(Config::new().options(cli.options()));
    editor.initialize(json!({})).await;
    let minute = Duration::from_secs(60);
    tokio::time::sleep(minute).await;
    assert_eq!(cli.started().len(), 0);
    let home = tempfile::tempdir().unwrap();
    let mut wanted = new_session(home.path());
    wanted["mcpServers"] = json!([{"name": "a", "command": "/bin/true", "args": [], "env": []}]);
    editor.call("session/new", wanted).await;
    tokio::time::sleep(minute).await;
    assert_eq!(cli.started().len(), 1);
    editor.open(home.path()).await;
    ready(&cli, 2).await;
    assert!(!was_claimed(&cli.started()[1]));
    editor.leave().await;
}
