//! Signing in and out, and the status of the account.

use outrigger::options::Auth;
use outrigger::testing::Simulated;
use serde_json::{Value, json};

use crate::editor::Editor;
use crate::real::Rig;

fn methods(told: &Value) -> Vec<&Value> {
    told["authMethods"]
        .as_array()
        .map(|methods| methods.iter().collect())
        .unwrap_or_default()
}

#[tokio::test]
async fn terminals_are_offered_to_those_who_have_them() {
    let offered = async |capabilities: Value| {
        let (mut editor, _cli) = Editor::simulated();
        let told = editor.initialize(capabilities).await;
        editor.leave().await;
        told
    };
    assert_eq!(methods(&offered(json!({})).await), Vec::<&Value>::new());
    let told = offered(json!({"auth": {"terminal": true}})).await;
    let ids: Vec<&str> = methods(&told)
        .iter()
        .filter_map(|method| method["id"].as_str())
        .collect();
    assert_eq!(ids, ["claude-ai-login", "console-login"]);
    for (method, how) in methods(&told).into_iter().zip(["--claudeai", "--console"]) {
        assert_eq!(method["type"], "terminal");
        assert_eq!(method["args"], json!(["--cli", "auth", "login", how]));
        assert!(method["_meta"].is_null());
    }
    // Editors older than the capability get the whole command.
    let told = offered(json!({"_meta": {"terminal-auth": true}})).await;
    let whole = &methods(&told)[0]["_meta"]["terminal-auth"];
    assert_eq!(whole["command"], json!(std::env::current_exe().unwrap()));
    let args = whole["args"].as_array().expect("arguments");
    assert!(
        args.ends_with(&["--cli", "auth", "login", "--claudeai"].map(Value::from)),
        "{whole:#}"
    );
    assert!(whole["label"].is_string());
}

/// An editor whose CLI repeats a failed request once.
fn impatient() -> (Editor, Simulated) {
    let cli = Simulated::agent(|agent| agent.directives().max_retries(1));
    (Editor::of(&cli), cli)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sign_in_that_was_done_in_a_terminal_is_finished() {
    let rig = Rig::start().await;
    let mut editor = rig.editor();
    editor.initialize(json!({"auth": {"terminal": true}})).await;
    let done = editor
        .call("authenticate", json!({"methodId": "claude-ai-login"}))
        .await;
    assert_eq!(done, json!({}));
    let refused = editor.refused("authenticate", json!({"methodId": "magic"})).await;
    assert_eq!(refused["data"]["parameter"], "methodId", "{refused:#}");
    // The API rejects the account.
    let (session, _) = editor.open(&rig.sandbox.project()).await;
    let prompt = editor
        .prompt(&session, "%error 403 n=99 msg=\"no such account\"")
        .await;
    let (_, answer) = editor.until(prompt).await;
    let error = &answer["error"];
    assert_eq!(error["code"], -32000, "{answer:#}");
    assert_eq!(
        error["data"]["authMethods"][0]["id"], "claude-ai-login",
        "{answer:#}"
    );
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_needs_a_sign_in_says_how() {
    let (mut editor, _cli) = impatient();
    editor.initialize(json!({"auth": {"terminal": true}})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, opened) = editor.open(home.path()).await;
    // From the CLI's reply at its start: there is no program to ask.
    let account = &opened["_meta"]["claudeCode"]["account"];
    let status = editor.call("auth/status", json!({})).await;
    assert_eq!(status["state"], "authenticated", "{status:#}, {account:#}");
    assert!(status["accounts"][0]["label"].is_string());

    let prompt = editor
        .prompt(&session, "%error 401 n=99 msg=\"invalid x-api-key\"")
        .await;
    let (mut lines, answer) = editor.until(prompt).await;
    let error = &answer["error"];
    assert_eq!(error["code"], -32000, "{answer:#}");
    assert_eq!(
        error["data"]["authMethods"][0]["id"], "claude-ai-login",
        "{error:#}"
    );
    assert!(error["data"]["messageUuid"].is_string(), "{error:#}");
    let told = |lines: &[Value]| {
        let news = lines.iter().filter(|line| line["method"] == "auth/status_update");
        news.map(|news| news["params"]["state"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&lines), ["unauthenticated"]);
    // The update comes once.
    let prompt = editor
        .prompt(&session, "%error 401 n=99 msg=\"invalid x-api-key\"")
        .await;
    lines = editor.until(prompt).await.0;
    assert!(told(&lines).is_empty(), "{lines:#?}");
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn who_does_not_ask_who_is_signed_in_is_not_told() {
    let (mut editor, _cli) = impatient();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    let prompt = editor
        .prompt(&session, "%error 401 n=99 msg=\"invalid x-api-key\"")
        .await;
    let (lines, answer) = editor.until(prompt).await;
    assert_eq!(answer["error"]["code"], -32000);
    assert_eq!(answer["error"]["data"]["authMethods"], json!([]));
    assert!(
        lines.iter().all(|line| line["method"] != "auth/status_update"),
        "{lines:#?}"
    );
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_cli_says_who_is_signed_in() {
    let rig = Rig::start().await;
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    // Without a session the CLI is asked; with one it has reported the account.
    let before = editor.call("auth/status", json!({})).await;
    assert_eq!(before["state"], "authenticated", "{before:#}");
    editor.open(&rig.sandbox.project()).await;
    let with = editor.call("auth/status", json!({})).await;
    assert_eq!(with["state"], "authenticated", "{with:#}");
    assert!(with["accounts"][0]["label"].is_string(), "{with:#}");
    // Signing out does not remove a key of the environment, which is no failure.
    editor.call("logout", json!({})).await;
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_without_an_account_says_how_to_sign_in() {
    let mut rig = Rig::start().await;
    let mut options = rig.config.options.clone().auth(Auth::Inherit);
    for name in [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
    ] {
        options = options.env(name, "");
    }
    rig.config = rig.config.clone().options(options);
    let mut editor = rig.editor();
    editor.initialize(json!({"auth": {"terminal": true}})).await;
    for _ in 0..2 {
        let params = json!({"cwd": rig.sandbox.project(), "mcpServers": []});
        let error = editor.refused("session/new", params).await;
        assert_eq!(error["code"], -32000, "{error:#}");
        assert_eq!(
            error["data"]["authMethods"][0]["id"], "claude-ai-login",
            "{error:#}"
        );
        let message = error["message"].as_str().expect("a text");
        assert!(message.contains("not logged in"), "{message}");
        assert!(
            message.contains("the agent's environment") && !message.contains("`auth`"),
            "{message}"
        );
    }
    let status = editor.call("auth/status", json!({})).await;
    assert_eq!(status["state"], "unauthenticated", "{status:#}");
    let refused = editor
        .refused("authenticate", json!({"methodId": "claude-ai-login"}))
        .await;
    assert_eq!(refused["code"], -32000, "{refused:#}");
    assert_eq!(refused["data"]["authMethods"][0]["id"], "claude-ai-login");
    editor.leave().await;
}
