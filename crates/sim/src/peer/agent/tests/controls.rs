//! Control requests, and what follows from them.

use super::*;

/// Answers a request and gives the payload, or the error as a string.
async fn ask(hand: &mut Hand, request: Value) -> Value {
    hand.request(request).await;
    loop {
        let line = hand.next().await;
        if line["type"] == "control_response"
            && line["response"]["request_id"] == format!("req_{}", hand.requests)
        {
            let response = &line["response"];
            return match response.get("error") {
                Some(error) => error.clone(),
                None => response["response"].clone(),
            };
        }
    }
}

#[tokio::test(start_paused = true)]
async fn settings_and_rules() {
    let mut hand = Hand::ready(Agent::builder().allowed_tools(["Read"])).await;
    let apply = |settings: Value| json!({"subtype": "apply_flag_settings", "settings": settings});
    assert_eq!(
        ask(&mut hand, apply(Value::Null)).await,
        "apply_flag_settings requires `settings` to be an object, got null"
    );
    ask(
        &mut hand,
        apply(json!({"permissions": {"allow": ["Bash(touch:*)"]}})),
    )
    .await;
    ask(&mut hand, apply(json!({"model": "haiku"}))).await;
    let settings = ask(&mut hand, json!({"subtype": "get_settings"})).await;
    let expected = json!({"permissions": {"allow": ["Bash(touch:*)"]}, "model": "haiku"});
    assert_eq!(settings["effective"], expected);
    assert_eq!(
        settings["sources"],
        json!([{"source": "flagSettings", "settings": expected}])
    );
    assert_eq!(settings["applied"]["model"], "claude-haiku-5-5");
    let rules = ask(&mut hand, json!({"subtype": "list_permission_rules"})).await;
    let sources: Vec<_> = rules["state"]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| &rule["source"])
        .collect();
    assert_eq!(sources, ["cliArg", "flagSettings"]);
    // The rule counts.
    hand.prompt(&format!("{TOUCH}\n%say done")).await;
    let result = hand.until("result/success").await;
    assert_eq!(result["permission_denials"], json!([]));
    let (_, kinds) = hand.end().await;
    assert!(!kinds.contains(&"control_request/can_use_tool".to_owned()));
}

/// The contents of a file, as the model gets to read them.
async fn cat(hand: &mut Hand, path: &str) -> Value {
    hand.prompt(&format!("%tool Bash {{\"command\": \"cat {path}\"}}\n%say read"))
        .await;
    let told = hand.until("user").await;
    hand.until("result/success").await;
    told["message"]["content"][0]["content"].clone()
}

#[tokio::test(start_paused = true)]
async fn files_are_brought_back() {
    let builder = Agent::builder()
        .permission_mode("acceptEdits")
        .file_checkpointing(true)
        .files([("a.txt".to_owned(), "one\n".to_owned())]);
    let mut hand = Hand::ready(builder).await;
    let edit = |old: &str, new: &str| {
        format!(
            "%tool Edit {{\"file_path\": \"a.txt\", \"old_string\": \"{old}\", \"new_string\": \"{new}\"}}"
        )
    };
    hand.prompt_with(&format!("{}\n%say edited", edit("one", "two")), uuid(1))
        .await;
    hand.until("result/success").await;
    let write = "%tool Write {\"file_path\": \"b.txt\", \"content\": \"hello\\n\"}";
    hand.prompt_with(
        &format!("{write}\n{}\n%say edited", edit("two", "three")),
        uuid(2),
    )
    .await;
    hand.until("result/success").await;
    assert_eq!(cat(&mut hand, "a.txt").await, "three");
    let rewind = |n: u32, dry: bool| json!({"subtype": "rewind_files", "user_message_id": uuid(n)["uuid"], "dry_run": dry});
    assert_eq!(
        ask(&mut hand, rewind(2, true)).await,
        json!({"canRewind": true, "filesChanged": ["/home/user/project/a.txt", "/home/user/project/b.txt"],
            "insertions": 1, "deletions": 2})
    );
    assert_eq!(
        ask(&mut hand, rewind(2, false)).await,
        json!({"canRewind": true, "skippedLinks": 0})
    );
    assert_eq!(cat(&mut hand, "a.txt").await, "two");
    let gone = "Exit code 1\ncat: b.txt: No such file or directory";
    assert_eq!(cat(&mut hand, "b.txt").await, gone);
    ask(&mut hand, rewind(1, false)).await;
    assert_eq!(cat(&mut hand, "a.txt").await, "one");
    let unknown = "No file checkpoint found for this message.";
    assert_eq!(
        ask(&mut hand, rewind(9, true)).await,
        json!({"canRewind": false, "error": unknown})
    );
    assert_eq!(ask(&mut hand, rewind(9, false)).await, unknown);
    hand.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_listed() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt("%say one").await;
    hand.until("result/success").await;
    for (subtype, field) in [
        ("get_context_usage", "categories"),
        ("list_models", "models"),
        ("get_binary_version", "version"),
        ("list_permission_rules", "state"),
    ] {
        let answer = ask(&mut hand, json!({"subtype": subtype})).await;
        assert!(!answer[field].is_null(), "{subtype}: {answer}");
    }
    for subtype in ["set_color", "can_use_tool", "account_info", "set_max_turns"] {
        let error = ask(&mut hand, json!({"subtype": subtype})).await;
        assert_eq!(error, format!("Unsupported control request subtype: {subtype}"));
    }
    hand.write(
        "{\"type\":\"update_environment_variables\",\"variables\":{\"A\":\"1\",\"CLAUDE_CODE_SESSION_ACCESS_TOKEN\":\"t\"},\"request_id\":\"e\"}",
    )
    .await;
    assert_eq!(
        hand.until("control_response/success").await["response"]["response"],
        json!({"applied": ["CLAUDE_CODE_SESSION_ACCESS_TOKEN"]})
    );
    hand.end().await;
}

#[tokio::test(start_paused = true)]
async fn servers_are_switched_and_called() {
    let mut hand = Hand::new(Agent::builder());
    hand.request(json!({"subtype": "initialize", "sdkMcpServers": ["calc"]}))
        .await;
    let first = hand.mcp("initialize").await;
    hand.shake(&first).await;
    let request = json!({"subtype": "mcp_status"});
    // The list of tools is on its way.
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(
        ask(&mut hand, request.clone()).await["mcpServers"][0]["status"],
        "connected"
    );
    // The host can call its own tools itself.
    let call = json!({"subtype": "mcp_call", "tool": "mcp__calc__add", "arguments": {"a": 1}});
    assert_eq!(
        ask(&mut hand, call).await,
        "mcp_call does not support SDK MCP servers. SDK servers are caller-provided — invoke calc directly."
    );
    let nope = json!({"subtype": "mcp_call", "tool": "mcp__nope__x"});
    assert_eq!(ask(&mut hand, nope).await, "MCP server not connected: nope");
    let toggle = |enabled: bool| json!({"subtype": "mcp_toggle", "serverName": "calc", "enabled": enabled});
    ask(&mut hand, toggle(false)).await;
    assert_eq!(
        ask(&mut hand, request.clone()).await["mcpServers"][0]["status"],
        "disabled"
    );
    hand.request(toggle(true)).await;
    let again = hand.mcp("initialize").await;
    hand.shake(&again).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(
        ask(&mut hand, request).await["mcpServers"][0]["status"],
        "connected"
    );
    let reconnect = |name: &str| json!({"subtype": "mcp_reconnect", "serverName": name});
    assert_eq!(ask(&mut hand, reconnect("nope")).await, "Server not found: nope");
    hand.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_simulated_is_an_error_with_its_name() {
    let mut hand = Hand::ready(Agent::builder()).await;
    let error = ask(&mut hand, json!({"subtype": "get_workspace_diff"})).await;
    let told = "the control request get_workspace_diff is not simulated: let the real CLI play this script (`outrigger mock-api`)";
    assert_eq!(error, told);
    assert_eq!(hand.agent.report().flaws[0].what, told);
    hand.end().await;
}
