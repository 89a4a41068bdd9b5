//! Sessions: opened, configured, closed.

use std::time::Duration;

use outrigger::options::Launch;
use outrigger::protocol::shared::AgentDefinition;
use outrigger::testing::Simulated;
use outrigger::testing::sim::script::Script;
use outrigger_sim::peer::{self, ClientIo, CommandLine, Match, Running, Steps, Surroundings};
use serde_json::{Value, json};

use crate::editor::{Editor, said, updates};

/// The simulated CLI of the SDK.
pub(crate) fn agent(launch: &Launch, number: usize) -> (ClientIo, Running) {
    let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    let env = launch.env.iter().map(|(name, value)| (text(name), text(value)));
    let around = Surroundings::new(&launch.cwd, env);
    let line = CommandLine::read(&launch.args).expect("flags that the CLI takes");
    let agent = line.agent(&around).expect("values that the CLI takes");
    agent.directives().seed(number as u64).spawn_in_memory()
}

/// A CLI that answers `initialize`, and is asked what it runs with.
fn begun(initialized: Value) -> Steps {
    let script = Steps::new().initialize_with(initialized);
    script
        .expect(Match::request("get_settings"))
        .reply_error("not known")
}

/// A CLI that answers `initialize` and nothing else.
pub(crate) fn deaf() -> (ClientIo, Running) {
    let script = begun(json!({})).expect("user");
    // Longer than any test; a signal ends it.
    script
        .stop_reading()
        .sleep(Duration::from_secs(3600))
        .spawn_in_memory()
}

#[tokio::test]
async fn sessions_are_told_with_what_can_be_chosen() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (_, opened) = editor.open(home.path()).await;
    assert_eq!(opened["modes"]["currentModeId"], "default");
    let options = opened["configOptions"].as_array().expect("options");
    let ids: Vec<&str> = options
        .iter()
        .filter_map(|option| option["id"].as_str())
        .collect();
    assert_eq!(&ids[..2], ["mode", "model"]);
    editor.leave().await;
}

#[tokio::test]
async fn permissions_are_bypassed_only_where_the_agent_may() {
    for may in [true, false] {
        let cli = Simulated::agent(|agent| agent.directives());
        // The CLI refuses it to root outside of a sandbox.
        let options = cli.options().assume_sandbox(true);
        let mut editor = Editor::of_options(options.allow_dangerously_skip_permissions(may));
        editor.initialize(json!({})).await;
        let home = tempfile::tempdir().unwrap();
        let (session, opened) = editor.open(home.path()).await;
        let modes = opened["modes"]["availableModes"].as_array().expect("modes");
        let is_offered = modes.iter().any(|mode| mode["id"] == "bypassPermissions");
        assert_eq!(is_offered, may, "{modes:#?}");
        let bypass = json!({"sessionId": session, "modeId": "bypassPermissions"});
        match may {
            true => drop(editor.call("session/set_mode", bypass).await),
            false => assert_eq!(editor.refused("session/set_mode", bypass).await["code"], -32602),
        }
        editor.leave().await;
    }
}

#[tokio::test]
async fn an_agent_that_is_chosen_leads_in_a_new_process_too() {
    let cli = Simulated::agent(|agent| agent.directives());
    let poet = AgentDefinition::new("Writes verse", "Speak in verse.");
    let mut editor = Editor::of_options(cli.options().agents("poet", poet));
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, opened) = editor.open(home.path()).await;
    let agent = |told: &Value| {
        let options = told["configOptions"].as_array().expect("options");
        let agent = options.iter().find(|option| option["id"] == "agent");
        agent.map(|agent| agent["currentValue"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(agent(&opened).as_deref(), Some("default"), "{opened:#}");
    let choose = |value: &str| json!({"sessionId": session, "configId": "agent", "value": value});
    let refused = editor.refused("session/set_config_option", choose("Plan")).await;
    assert_eq!(refused["code"], -32602, "{refused}");
    let told = editor.call("session/set_config_option", choose("poet")).await;
    assert_eq!(agent(&told).as_deref(), Some("poet"), "{told:#}");
    cli.started()[0].signal(peer::Signal::Kill);
    editor.turn(&session, "%say back again").await;
    assert_eq!(cli.started().len(), 2);
    let mode = json!({"sessionId": session, "configId": "mode", "value": "plan"});
    let told = editor.call("session/set_config_option", mode).await;
    assert_eq!(agent(&told).as_deref(), Some("poet"), "{told:#}");
    editor.leave().await;
}

/// The user's own agents are a reason to ask each new process who leads.
#[tokio::test(start_paused = true)]
async fn a_cli_that_dies_before_it_has_made_its_changes_is_not_started_for_ever() {
    let poet = json!({"agents": [{"name": "poet", "description": "Writes verse"}]});
    let cli = Simulated::start(move |_, number| {
        if number == 20 {
            // So that the test has an end, whatever is started.
            return deaf();
        }
        let script = Steps::new().initialize_with(poet.clone());
        let script = script.expect(Match::request("get_settings")).exit(1);
        script.spawn_in_memory()
    });
    let mut editor = Editor::of(&cli);
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    for prompt in 1..=3 {
        let id = editor.prompt(&session, "%say never").await;
        let (_, answer) = editor.until(id).await;
        assert_eq!(answer["error"]["code"], -32603, "{answer:#}");
        // The paused clock advances only when no task can run.
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert!(cli.started().len() <= 2 + prompt, "{}", cli.started().len());
    }
    let mode = json!({"sessionId": session, "modeId": "plan"});
    let refused = editor.refused("session/set_mode", mode).await;
    assert_eq!(refused["code"], -32603, "{refused:#}");
    editor.leave().await;
}

/// The settings allow more than the mode that the user chose.
#[tokio::test]
async fn a_prompt_waits_until_a_new_cli_is_in_the_mode_that_was_chosen() {
    let cli = Simulated::start(|launch, number| {
        if number != 1 {
            return agent(launch, number);
        }
        let script = Steps::new().initialize_with(json!({"current_permission_mode": "acceptEdits"}));
        let refused = script
            .expect(Match::request("set_permission_mode"))
            .reply_error("not now");
        let agreed = refused
            .expect(Match::request("set_permission_mode"))
            .reply(json!({"mode": "plan"}));
        agreed.expect("user").exit(1).spawn_in_memory()
    });
    let mut editor = Editor::of(&cli);
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    let mode = json!({"sessionId": session, "modeId": "plan"});
    editor.call("session/set_mode", mode).await;
    cli.started()[0].signal(peer::Signal::Kill);
    let prompt = editor.prompt(&session, "%say unheard").await;
    let (_, answer) = editor.until(prompt).await;
    let why = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("\"plan\"") && why.contains("not now"), "{answer:#}");
    // The next prompt tries again. That process ends then, and the third agrees at once.
    let (lines, answer) = editor.turn(&session, "%say planned").await;
    assert_eq!(
        (said(&lines).as_str(), &answer["stopReason"]),
        ("planned", &json!("end_turn"))
    );
    let report = cli.started()[1].report();
    let prompts: Vec<_> = report.received().filter(|line| line["type"] == "user").collect();
    assert_eq!(prompts.len(), 1, "{prompts:#?}");
    assert!(prompts[0].to_string().contains("planned"), "{prompts:#?}");
    editor.leave().await;
}

#[tokio::test]
async fn a_mode_that_is_chosen_holds_for_the_next_prompt() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    let set = editor
        .ask(
            "session/set_mode",
            json!({"sessionId": session, "modeId": "acceptEdits"}),
        )
        .await;
    let prompt = editor.prompt(&session, "%say hello").await;
    let (mut lines, answer) = editor.until(set).await;
    assert!(answer["result"].is_object(), "{answer}");
    // The mode is a config option, too.
    lines.extend(editor.until(prompt).await.0);
    let told = crate::editor::updates(&lines, "config_option_update");
    assert_eq!(
        told[0]["configOptions"][0]["currentValue"], "acceptEdits",
        "{lines:#?}"
    );
    let option = json!({"sessionId": session, "configId": "mode", "value": "plan"});
    let set = editor.ask("session/set_config_option", option).await;
    let (_, answer) = editor.until(set).await;
    assert_eq!(answer["result"]["configOptions"][0]["currentValue"], "plan");
    // A later prompt comes behind the update.
    let (lines, _) = editor.turn(&session, "%say planned").await;
    assert!(
        !lines
            .iter()
            .any(|line| line["params"]["update"]["currentModeId"] == "acceptEdits")
    );
    editor.leave().await;
}

#[tokio::test]
async fn closing_a_session_ends_its_process_and_its_prompts() {
    let (mut editor, cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    let prompt = editor.prompt(&session, "%hang\n%say one").await;
    let close = editor.ask("session/close", json!({"sessionId": session})).await;
    let (_, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    let (_, answer) = editor.until(close).await;
    assert!(answer["result"].is_object(), "{answer}");
    assert!(cli.started()[0].exited().is_some());
    let refused = editor
        .refused("session/close", json!({"sessionId": session}))
        .await;
    assert_eq!(refused["code"], -32002);
    editor.leave().await;
}

#[tokio::test]
async fn the_end_of_the_editor_is_the_end_of_its_sessions() {
    for by_signal in [false, true] {
        let (mut editor, cli) = Editor::simulated();
        editor.initialize(json!({})).await;
        let home = tempfile::tempdir().unwrap();
        let (session, _) = editor.open(home.path()).await;
        let (idle, _) = editor.open(home.path()).await;
        assert_ne!(session, idle);
        editor.prompt(&session, "%hang\n%say one").await;
        if by_signal {
            editor.stop.cancel();
            editor.gone().await;
        } else {
            editor.leave().await;
        }
        assert_eq!(cli.started().len(), 2);
        assert!(cli.started().iter().all(|cli| cli.exited().is_some()));
    }
}

#[tokio::test]
async fn a_choice_that_the_cli_refuses_is_an_invalid_parameter() {
    let cli = Simulated::start(|_, _| {
        let script = begun(json!({}));
        let refused = script
            .expect(Match::request("set_permission_mode"))
            .reply_error("not now");
        let script = refused.stop_reading().sleep(Duration::from_secs(3600));
        script.spawn_in_memory()
    });
    let mut editor = Editor::of(&cli);
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    let mode = json!({"sessionId": session, "modeId": "plan"});
    let refused = editor.refused("session/set_mode", mode).await;
    assert_eq!(refused["code"], -32602, "{refused:#}");
    assert!(refused["message"].to_string().contains("not now"), "{refused:#}");
}

#[tokio::test]
async fn a_session_without_prompts_is_closed_by_the_archive() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    let of_session = json!({"sessionId": session});
    editor.call("session/archive", of_session.clone()).await;
    // Now it is not there.
    let refused = editor.refused("session/archive", of_session).await;
    assert_eq!(refused["code"], -32002, "{refused:#}");
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn no_more_changes_wait_than_may() {
    let cli = Simulated::start(|_, _| {
        let script = begun(json!({})).stop_reading();
        script.sleep(Duration::from_secs(3600)).spawn_in_memory()
    });
    let mut editor = Editor::of(&cli);
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    let mode = json!({"sessionId": session, "modeId": "plan"});
    // One is being made.
    for _ in 0..257 {
        editor.ask("session/set_mode", mode.clone()).await;
        // So that no queue before the changes is full.
        tokio::task::yield_now().await;
    }
    let refused = editor.refused("session/set_mode", mode).await;
    assert!(
        refused["message"].to_string().contains("256 changes wait"),
        "{refused:#}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_runs_in_the_background_ends_with_its_session() {
    let script = "
prompts:
  - prompt: go
    steps:
      - background: {command: sleep 600, after: 10m, output: done, exit: 0}
      - say: started
";
    let cli = Simulated::script(Script::from_yaml(script).unwrap());
    let mut editor = Editor::of(&cli);
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    let (mut lines, _) = editor.turn(&session, "go").await;
    let close = editor.ask("session/close", json!({"sessionId": session})).await;
    lines.extend(editor.until(close).await.0);
    let last = updates(&lines, "tool_call_update");
    let last = last.last().map(|update| &update["status"]);
    assert_eq!(last, Some(&json!("failed")), "{lines:#?}");
    editor.leave().await;
}
