//! The user's choices, as they reach the model through the real CLI.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::editor::said;
use crate::real::Rig;

/// The options by id, with the chosen values.
fn values(told: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let options = told["configOptions"].as_array().expect("options").iter();
    options
        .map(|option| (text(&option["id"]), text(&option["currentValue"])))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effort_fast_mode_and_the_agent_reach_the_model() {
    let rig = Rig::start().await.interactive();
    let agents = rig.sandbox.config().join("agents");
    std::fs::create_dir_all(&agents).expect("a directory");
    let poet = "---\nname: poet\ndescription: Writes verse\n---\nSpeak in hexameters only.\n";
    std::fs::write(agents.join("poet.md"), poet).expect("it is written");
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let (session, opened) = editor.open(&rig.sandbox.project()).await;
    let at_first = values(&opened);
    for (id, value) in [("effort", "default"), ("fast", "off"), ("agent", "default")] {
        assert_eq!(at_first.get(id).map(String::as_str), Some(value), "{opened:#}");
    }
    let option = |id: &str, value: &str| json!({"sessionId": session, "configId": id, "value": value});
    let chosen = [
        ("effort", "low"),
        ("fast", "on"),
        ("agent", "poet"),
        ("agent", "default"),
        ("agent", "poet"),
    ];
    for (id, value) in chosen {
        let told = editor.call("session/set_config_option", option(id, value)).await;
        assert_eq!(values(&told)[id], value, "{told:#}");
    }
    for (id, value) in [
        ("fast", "perhaps"),
        ("agent", "nobody"),
        ("effort", "none"),
        ("ultra", "on"),
    ] {
        let refused = editor
            .refused("session/set_config_option", option(id, value))
            .await;
        assert_eq!(refused["code"], -32602, "{id}: {refused}");
    }
    let (lines, _) = editor.turn(&session, "%say in verse").await;
    assert_eq!(said(&lines), "in verse");
    // The API request with this prompt.
    let asked = |marker: &str| {
        let requests = rig.api.requests();
        let mut requests = requests.iter().rev();
        let asked = requests.find(|request| request.body.to_string().contains(marker));
        Arc::clone(&asked.expect("it was asked").body)
    };
    let body = asked("in verse");
    assert!(body["system"].to_string().contains("hexameters"), "{body:#}");
    assert_eq!(body["output_config"]["effort"], "low", "{body:#}");
    assert_eq!(body["speed"], "fast", "{body:#}");

    for (id, value) in [("effort", "default"), ("fast", "off")] {
        let told = editor.call("session/set_config_option", option(id, value)).await;
        assert_eq!(values(&told)[id], value, "{told:#}");
        assert_eq!(values(&told)["agent"], "poet", "{told:#}");
    }
    // The CLI keeps its first system prompt.
    let refused = editor
        .refused("session/set_config_option", option("agent", "default"))
        .await;
    assert_eq!(refused["code"], -32602, "{refused}");
    editor.turn(&session, "%say in prose").await;
    let body = asked("in prose");
    assert!(body["system"].to_string().contains("hexameters"), "{body:#}");
    assert_ne!(body["output_config"]["effort"], "low", "{body:#}");
    assert_ne!(body["speed"], "fast", "{body:#}");

    // For an editor with boolean options it is one.
    let mut other = rig.editor();
    other
        .initialize(json!({"session": {"configOptions": {"boolean": {}}}}))
        .await;
    let (switched, opened) = other.open(&rig.sandbox.project()).await;
    let fast = |told: &Value| {
        let options = told["configOptions"].as_array().expect("options").iter();
        let mut fast = options.filter(|option| option["id"] == "fast");
        fast.next().cloned().expect("fast mode is there")
    };
    assert_eq!(fast(&opened)["type"], "boolean", "{opened:#}");
    assert_eq!(fast(&opened)["currentValue"], false);
    let on = json!({"sessionId": switched, "configId": "fast", "type": "boolean", "value": true});
    let told = other.call("session/set_config_option", on).await;
    assert_eq!(fast(&told)["currentValue"], true, "{told:#}");
    other.leave().await;

    // An agent that was deselected before the first prompt never led.
    let (session, _) = editor.open(&rig.sandbox.project()).await;
    for agent in ["poet", "default"] {
        let option = json!({"sessionId": session, "configId": "agent", "value": agent});
        editor.call("session/set_config_option", option).await;
    }
    editor.turn(&session, "%say as ever").await;
    let body = asked("as ever");
    assert!(!body["system"].to_string().contains("hexameters"), "{body:#}");
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_a_slash_command_chooses_is_told_at_once() {
    let rig = Rig::start().await;
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let (session, opened) = editor.open(&rig.sandbox.project()).await;
    assert_ne!(values(&opened)["model"], "haiku");
    let is_news = |line: &Value| line["params"]["update"]["sessionUpdate"] == "config_option_update";
    let told = editor.turn_until(&session, "/model haiku", is_news).await;
    assert_eq!(values(&told["params"]["update"])["model"], "haiku", "{told:#}");
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_the_settings_is_told() {
    let rig = Rig::start().await.interactive();
    let agents = rig.sandbox.config().join("agents");
    std::fs::create_dir_all(&agents).expect("a directory");
    let poet = "---\nname: poet\ndescription: Writes verse\n---\nSpeak in hexameters only.\n";
    std::fs::write(agents.join("poet.md"), poet).expect("it is written");
    let settings = rig.sandbox.config().join("settings.json");
    std::fs::write(settings, json!({"agent": "poet"}).to_string()).expect("it is written");
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let (session, _) = editor.open(&rig.sandbox.project()).await;
    let told = editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "config_option_update")
        .await;
    assert_eq!(values(&told["params"]["update"])["agent"], "poet", "{told:#}");
    // Without a choice of the editor, the agent is that of the settings.
    let option = json!({"sessionId": session, "configId": "agent", "value": "default"});
    let told = editor.call("session/set_config_option", option).await;
    assert_eq!(values(&told)["agent"], "poet", "{told:#}");
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_and_the_effort_that_run_are_told() {
    let rig = Rig::start().await.interactive();
    let settings = rig.sandbox.config().join("settings.json");
    std::fs::write(settings, json!({"model": "haiku"}).to_string()).expect("it is written");
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let is_news = |line: &Value| line["params"]["update"]["sessionUpdate"] == "config_option_update";
    // The model of the settings, and the effort of the request.
    let params = json!({"cwd": rig.sandbox.project(), "mcpServers": [],
        "_meta": {"claudeCode": {"options": {"effort": "low"}}}});
    let opened = editor.call("session/new", params).await;
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    let told = editor.wait_for(is_news).await;
    let told = values(&told["params"]["update"]);
    assert_eq!((&*told["model"], &*told["effort"]), ("haiku", "low"), "{told:?}");
    // A slash command changes it.
    let effort_is = |effort: &'static str| {
        move |line: &Value| is_news(line) && values(&line["params"]["update"])["effort"] == effort
    };
    let told = editor
        .turn_until(&session, "/effort high", effort_is("high"))
        .await;
    assert_eq!(values(&told["params"]["update"])["model"], "haiku");
    editor.leave().await;
}
