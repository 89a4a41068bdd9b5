//! Requests of editors, and their errors.

use serde_json::{Value, json};

use crate::editor::Editor;

#[tokio::test]
async fn the_agent_introduces_itself_without_a_process() {
    let (mut editor, cli) = Editor::simulated();
    let told = editor.initialize(json!({})).await;
    assert_eq!(told["protocolVersion"], 1);
    assert_eq!(told["agentInfo"]["name"], "outrigger-acp");
    assert_eq!(told["agentCapabilities"]["promptCapabilities"]["image"], true);
    assert_ne!(told["agentCapabilities"]["promptCapabilities"]["audio"], true);
    assert!(cli.started().is_empty());
    // Another version gets the version that is served.
    let told = editor
        .call(
            "initialize",
            json!({"protocolVersion": 7, "clientCapabilities": {}}),
        )
        .await;
    assert_eq!(told["protocolVersion"], 1);
    editor.leave().await;
}

#[tokio::test]
async fn what_is_no_message_is_told_and_passed_over() {
    let (mut editor, _cli) = Editor::simulated();
    for (line, code) in [("{", -32700), ("[]", -32600), ("17", -32600)] {
        editor.send_raw(line).await;
        let answer = editor.next().await.expect("an answer");
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
        assert_eq!(answer["id"], Value::Null);
    }
    assert_eq!(editor.initialize(json!({})).await["protocolVersion"], 1);
    let refused = editor.refused("session/juggle", json!({})).await;
    assert_eq!(refused["code"], -32601);
    editor.leave().await;
}

#[tokio::test]
async fn wrong_parameters_are_told_by_their_names() {
    let (mut editor, cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let refused = editor
        .refused("session/new", json!({"cwd": "here", "mcpServers": []}))
        .await;
    assert_eq!(
        (&refused["code"], &refused["data"]["parameter"]),
        (&json!(-32602), &json!("cwd"))
    );
    let refused = editor
        .refused("session/new", json!({"cwd": "/no/such/place", "mcpServers": []}))
        .await;
    assert_eq!(refused["code"], -32602);
    let refused = editor.refused("session/new", json!({"mcpServers": 1})).await;
    assert_eq!(refused["code"], -32602);
    let twice = json!({"name": "a", "command": "/bin/true", "args": [], "env": []});
    let refused = editor
        .refused("session/new", json!({"cwd": "/", "mcpServers": [twice, twice]}))
        .await;
    assert_eq!(refused["data"]["parameter"], "mcpServers[1].name");
    for (server, parameter) in [
        (
            json!({"name": "ide", "command": "/bin/true", "args": [], "env": []}),
            "mcpServers[0].name",
        ),
        (
            json!({"name": "a", "command": "", "args": [], "env": []}),
            "mcpServers[0]",
        ),
        (
            json!({"type": "http", "name": "a", "url": "localhost:80", "headers": []}),
            "mcpServers[0].url",
        ),
        (
            json!({"type": "sse", "name": "a", "url": "file:///x", "headers": []}),
            "mcpServers[0].url",
        ),
    ] {
        let refused = editor
            .refused("session/new", json!({"cwd": "/", "mcpServers": [server]}))
            .await;
        assert_eq!(
            (&refused["code"], &refused["data"]["parameter"]),
            (&json!(-32602), &json!(parameter)),
            "{refused}"
        );
    }
    assert!(cli.started().is_empty());

    let nobody = json!({"sessionId": "nobody", "prompt": [{"type": "text", "text": "hello"}]});
    let refused = editor.refused("session/prompt", nobody).await;
    assert_eq!(refused["code"], -32002, "{refused}");
    let refused = editor
        .refused("session/close", json!({"sessionId": "nobody"}))
        .await;
    assert_eq!(refused["code"], -32002);
    // A notification has no answer, and no effect here.
    editor
        .notify("session/cancel", json!({"sessionId": "nobody"}))
        .await;

    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    let refused = editor
        .refused("session/prompt", json!({"sessionId": session, "prompt": []}))
        .await;
    assert_eq!(
        (&refused["code"], &refused["data"]["parameter"]),
        (&json!(-32602), &json!("prompt"))
    );
    let audio = json!([{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]);
    let refused = editor
        .refused("session/prompt", json!({"sessionId": session, "prompt": audio}))
        .await;
    assert_eq!(refused["data"]["parameter"], "prompt[0]");
    let refused = editor
        .refused(
            "session/set_mode",
            json!({"sessionId": session, "modeId": "yolo"}),
        )
        .await;
    assert_eq!(refused["code"], -32602);
    let option = json!({"sessionId": session, "configId": "colour", "value": "red"});
    let refused = editor.refused("session/set_config_option", option).await;
    assert_eq!(refused["data"]["parameter"], "configId");
    editor.leave().await;
}

#[tokio::test]
async fn a_cli_that_is_missing_is_told_with_what_to_do() {
    let options = outrigger::Agent::builder().cli_path("/no/such/claude");
    let mut editor = Editor::of_options(options);
    editor.initialize(json!({})).await;
    let refused = editor
        .refused("session/new", json!({"cwd": "/", "mcpServers": []}))
        .await;
    assert_eq!(refused["code"], -32603, "{refused:#}");
    assert!(
        refused["data"]["advice"]
            .as_str()
            .is_some_and(|advice| advice.contains("install")),
        "{refused:#}"
    );
    // Users of an editor can't set options by their Rust names.
    let told = refused.to_string();
    assert!(
        told.contains("CLAUDE_CODE_EXECUTABLE") && !told.contains("cli_path"),
        "{refused:#}"
    );
    editor.leave().await;
}
