//! `_meta` and the other parameters of sessions, and errors of their directories.

use std::path::Path;
use std::sync::{Arc, Mutex};

use outrigger::Agent;
use outrigger::testing::Simulated;
use serde_json::{Value, json};

use crate::draft;
use crate::editor::{Editor, said, updates};
use crate::sessions::agent;

/// A CLI that records its arguments and environment.
fn telling() -> (Simulated, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let cli = Simulated::start(move |launch, number| {
        let mut told = tell.lock().unwrap();
        told.clear();
        told.extend(launch.args.iter().map(|arg| arg.to_string_lossy().into_owned()));
        let env = launch.env.iter();
        told.extend(
            env.map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy())),
        );
        agent(launch, number)
    });
    (cli, told)
}

/// The CLI's `initialize` request.
fn introduced(cli: &Simulated) -> Value {
    let report = cli.report().expect("one was started");
    let request = report
        .received()
        .find(|frame| frame["request"]["subtype"] == "initialize")
        .cloned();
    request.expect("it was introduced to")["request"].clone()
}

#[tokio::test]
async fn a_system_prompt_and_more_directories_reach_the_cli() {
    let (cli, told) = telling();
    let mut editor = Editor::of(&cli);
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let more = tempfile::tempdir().unwrap();
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let mut wanted = json!({"cwd": home.path(), "mcpServers": [], "additionalDirectories": [more.path()]});
    wanted["systemPrompt"] = json!({"mode": "append", "content": text("Be brief.")});
    editor.call("session/new", wanted.clone()).await;
    assert_eq!(introduced(&cli)["appendSystemPrompt"], "Be brief.");
    let more = format!("--add-dir={}", more.path().display());
    assert!(told.lock().unwrap().contains(&more), "{told:?}");

    wanted["systemPrompt"] = json!({"mode": "override", "content": text("You are a parrot.")});
    editor.call("session/new", wanted.clone()).await;
    let introduced = introduced(&cli);
    assert!(
        introduced["systemPrompt"]
            .to_string()
            .contains("You are a parrot."),
        "{introduced:#}"
    );

    for (key, value, named) in [
        (
            "systemPrompt",
            json!({"mode": "prepend", "content": text("a")}),
            "systemPrompt.mode",
        ),
        (
            "systemPrompt",
            json!({"mode": "append", "content": text(" ")}),
            "systemPrompt.content",
        ),
        (
            "additionalDirectories",
            json!([home.path(), "there"]),
            "additionalDirectories[1]",
        ),
        ("_meta", json!({"systemPrompt": "twice"}), "_meta.systemPrompt"),
    ] {
        let mut wanted = wanted.clone();
        wanted[key] = value;
        let refused = editor.refused("session/new", wanted).await;
        assert_eq!(
            (&refused["code"], &refused["data"]["parameter"]),
            (&json!(-32602), &json!(named))
        );
    }
    editor.leave().await;
}

#[tokio::test]
async fn options_reach_the_cli_and_wrong_ones_are_named() {
    let (cli, told) = telling();
    let mut editor = Editor::of(&cli);
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let with = |meta: Value| json!({"cwd": home.path(), "mcpServers": [], "_meta": meta});
    let options = json!({"env": {"OF_THE_EDITOR": "1"}, "maxTurns": 7, "permissionMode": "plan"});
    let meta = json!({"systemPrompt": {"append": "Be brief."}, "claudeCode": {"options": options}});
    let opened = editor.call("session/new", with(meta)).await;
    assert_eq!(opened["modes"]["currentModeId"], "plan");
    assert_eq!(introduced(&cli)["appendSystemPrompt"], "Be brief.");
    let started = told.lock().unwrap().clone();
    assert!(started.contains(&"OF_THE_EDITOR=1".to_owned()), "{started:?}");
    assert!(started.join(" ").contains("--max-turns"), "{started:?}");
    let before = cli.started().len();
    for (option, value) in [
        ("colour", json!("red")),
        ("resume", json!("an id")),
        ("maxTurns", json!("7")),
    ] {
        let meta = json!({"claudeCode": {"options": {option: value}}});
        let refused = editor.refused("session/new", with(meta)).await;
        let named = format!("_meta.claudeCode.options.{option}");
        assert_eq!(
            (&refused["code"], &refused["data"]["parameter"]),
            (&json!(-32602), &json!(named))
        );
    }
    assert_eq!(cli.started().len(), before, "nothing was started for those");
    editor.leave().await;
}

#[tokio::test]
async fn the_cli_s_own_messages_are_told_to_those_who_want_them() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let messages = |lines: &[Value]| -> Vec<String> {
        let told = lines.iter().filter(|line| line["method"] == "_claude/sdkMessage");
        told.map(|line| {
            line["params"]["message"]["type"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
    };
    let with = |raw: Value| {
        let meta = json!({"claudeCode": {"emitRawSDKMessages": raw}});
        json!({"cwd": home.path(), "mcpServers": [], "_meta": meta})
    };
    let all = editor.call("session/new", with(json!(true))).await;
    let all = all["sessionId"].as_str().expect("an id").to_owned();
    let (lines, _) = editor.turn(&all, "%say hello").await;
    let told = messages(&lines);
    for kind in ["system", "stream_event", "assistant", "result"] {
        assert!(told.contains(&kind.to_owned()), "{kind}: {told:?}");
    }
    assert!(!told.iter().any(|kind| kind.starts_with("control_")), "{told:?}");
    let raw = lines.iter().find(|line| line["method"] == "_claude/sdkMessage");
    assert_eq!(raw.expect("one of them")["params"]["sessionId"], all.as_str());
    // In addition, not instead.
    assert_eq!(said(&lines), "hello");

    let some = editor
        .call("session/new", with(json!([{"type": "result"}])))
        .await;
    let some = some["sessionId"].as_str().expect("an id").to_owned();
    let (lines, _) = editor.turn(&some, "%say hello").await;
    assert_eq!(messages(&lines), ["result"]);
    let (none, _) = editor.open(home.path()).await;
    let (lines, _) = editor.turn(&none, "%say hello").await;
    assert!(messages(&lines).is_empty());
    assert!(!updates(&lines, "agent_message_chunk").is_empty());
    editor.leave().await;
}

#[tokio::test]
async fn the_draft_takes_the_same() {
    let (mut editor, _cli) = Editor::simulated();
    draft::meet(&mut editor, &json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let with = |own: Value| json!({"cwd": home.path(), "_meta": {"claudeCode": own}});
    let refused = editor
        .refused("session/new", with(json!({"options": {"colour": "red"}})))
        .await;
    assert_eq!(refused["data"]["parameter"], "_meta.claudeCode.options.colour");
    let opened = editor
        .call("session/new", with(json!({"emitRawSDKMessages": true})))
        .await;
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    let lines = draft::turn(&mut editor, &session, "%say hello").await;
    assert_eq!(said(&lines), "hello");
    let raw = lines.iter().find(|line| line["method"] == "_claude/sdkMessage");
    assert_eq!(raw.expect("one of them")["params"]["sessionId"], session.as_str());
    editor.leave().await;
}

#[tokio::test]
async fn so_many_sessions_and_no_more() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let mut last = String::new();
    for _ in 0..64 {
        last = editor.open(home.path()).await.0;
    }
    let wanted = json!({"cwd": home.path(), "mcpServers": []});
    let refused = editor.refused("session/new", wanted).await;
    assert_eq!(refused["code"], -32603);
    let message = refused["message"].as_str().expect("a message");
    assert!(
        message.contains("64") && message.contains("close one"),
        "{message}"
    );
    editor.call("session/close", json!({"sessionId": last})).await;
    editor.open(home.path()).await;
    editor.leave().await;
}

/// The error for a session with this program as the CLI.
async fn with_program(text: &str) -> Value {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("claude");
    outrigger_needs::script(&program, text).unwrap();
    let options = Agent::builder().cli_path(&program).env("HOME", place.path());
    let mut editor = Editor::of_options(options);
    editor.initialize(json!({})).await;
    let wanted = json!({"cwd": Path::new("/"), "mcpServers": []});
    let refused = editor.refused("session/new", wanted).await;
    editor.leave().await;
    refused
}

#[tokio::test]
async fn a_cli_that_is_too_old_or_dies_at_once_is_told_with_what_it_said() {
    let old = with_program("#!/bin/sh\necho \"error: unknown option '--input-format'\" >&2\nexit 1\n").await;
    assert_eq!(old["code"], -32603, "{old:#}");
    let message = old["message"].as_str().expect("a message");
    assert!(message.contains("update"), "{old:#}");
    assert_eq!(old["data"]["cause"], "it does not know an option", "{old:#}");

    let dead = with_program("#!/bin/sh\necho 'no such luck' >&2\nexit 3\n").await;
    assert_eq!(dead["code"], -32603, "{dead:#}");
    assert!(
        dead["message"]
            .as_str()
            .is_some_and(|message| message.contains("no such luck")),
        "{dead:#}"
    );
    assert!(
        dead["data"]["stderr"]
            .as_str()
            .is_some_and(|stderr| stderr.contains("no such luck")),
        "{dead:#}"
    );

    let nothing = with_program("#!/no/such/interpreter\n").await;
    assert_eq!(nothing["code"], -32603, "{nothing:#}");
    assert!(
        nothing["message"]
            .as_str()
            .is_some_and(|message| message.contains("claude")),
        "{nothing:#}"
    );
}

#[tokio::test]
async fn options_that_cannot_be_used_are_the_fault_of_the_request() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let missing = home.path().join("missing.json");
    for options in [
        json!({ "settings": missing }),
        json!({"maxBudgetUsd": -1}),
        json!({"maxTurns": 1.5}),
        json!({"effort": "High"}),
    ] {
        let params =
            json!({"cwd": home.path(), "mcpServers": [], "_meta": {"claudeCode": {"options": options}}});
        let refused = editor.refused("session/new", params).await;
        assert_eq!(refused["code"], -32602, "{options}: {refused:#}");
    }
    let params = json!({"cwd": home.path(), "mcpServers": [], "_meta": {"claudeCode": {"options": {"maxTurns": 3.0}}}});
    editor.call("session/new", params).await;
    editor.leave().await;
}
