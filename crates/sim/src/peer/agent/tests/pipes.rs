//! MCP servers that are processes, and what the brain gets to know of the flags.

use super::*;

/// A server with one tool, which asks a person.
const SERVER: &str = r#"
while read -r line; do case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"lab","version":"1"}}}';;
*tools/list*) echo '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}}';;
*tools/call*) echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Which?","requestedSchema":{"type":"object","properties":{"c":{"type":"string"}}}}}';;
*'"action":"accept"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"accepted"}]}}';;
*'"action"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"refused"}]}}';;
esac; done"#;

fn lab() -> Value {
    json!({"type": "stdio", "command": "sh", "args": ["-c", SERVER]})
}

fn here() -> Builder {
    Agent::builder()
        .cwd(std::env::temp_dir())
        .allowed_tools(["mcp__lab"])
}

#[tokio::test]
async fn a_server_asks_a_person() {
    for (answer, told) in [
        (json!({"action": "accept", "content": {"c": "blue"}}), "accepted"),
        (json!({"action": "decline"}), "refused"),
        (json!({"nonsense": 1}), "refused"),
    ] {
        let mut hand = Hand::ready(here().mcp_server("lab", lab())).await;
        hand.prompt("%tool mcp__lab__ask {}\n%say done").await;
        let init = hand.until("system/init").await;
        assert_eq!(
            init["mcp_servers"],
            json!([{"name": "lab", "status": "connected", "source": "dynamic"}])
        );
        let question = hand.until("control_request/elicitation").await;
        assert_eq!(question["request"]["mcp_server_name"], "lab");
        assert_eq!(question["request"]["property_order"], json!(["c"]));
        hand.answer(&question, answer).await;
        let result = hand.until("user").await;
        assert_eq!(result["message"]["content"][0]["content"][0]["text"], told);
        hand.until("result/success").await;
        assert_eq!(hand.end().await.0, Exit::Code(0));
    }
}

#[tokio::test]
async fn the_host_calls_a_tool_and_takes_the_call_back() {
    let mut hand = Hand::ready(here().mcp_server("lab", lab())).await;
    hand.prompt("%say hello").await;
    hand.until("result/success").await;
    hand.request(json!({"subtype": "mcp_call", "tool": "mcp__lab__ask"}))
        .await;
    let id = format!("req_{}", hand.requests);
    let question = hand.until("control_request/elicitation").await;
    hand.answer(&question, json!({"action": "accept", "content": {}}))
        .await;
    let answer = hand.until("control_response/success").await;
    assert_eq!(answer["response"]["request_id"], id);
    assert_eq!(answer["response"]["response"]["content"][0]["text"], "accepted");
    hand.request(json!({"subtype": "mcp_call", "tool": "mcp__lab__ask"}))
        .await;
    hand.until("control_request/elicitation").await;
    let id = format!("req_{}", hand.requests);
    hand.write(&json!({"type": "control_cancel_request", "request_id": id}).to_string())
        .await;
    let answer = hand.until("control_response/error").await;
    assert_eq!(answer["response"]["error"], "mcp_call cancelled by client: lab");
    hand.end().await;
}

#[tokio::test]
async fn servers_are_set_while_it_runs() {
    let mut hand = Hand::ready(here()).await;
    let servers = json!({
        "lab": lab(), "gone": {"command": "/nonexistent/server", "args": []}, "web": {"type": "http", "url": "http://x"},
        "bare": {"command": "x"},
    });
    hand.request(json!({"subtype": "mcp_set_servers", "servers": servers}))
        .await;
    let answer = hand.until("control_response/success").await["response"]["response"].clone();
    assert_eq!(answer["added"], json!(["lab", "gone", "web", "bare"]));
    let wrong: Vec<&String> = answer["errors"].as_object().unwrap().keys().collect();
    assert_eq!(wrong, ["bare", "gone", "web"]);
    hand.request(json!({"subtype": "mcp_status"})).await;
    let status = hand.until("control_response/success").await["response"]["response"].clone();
    let lab = status["mcpServers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|server| server["name"] == "lab")
        .unwrap();
    assert_eq!(
        (&lab["status"], &lab["tools"][0]["name"]),
        (&json!("connected"), &json!("ask"))
    );
    hand.request(json!({"subtype": "mcp_set_servers", "servers": {}}))
        .await;
    let answer = hand.until("control_response/success").await["response"]["response"].clone();
    assert_eq!(answer["removed"].as_array().unwrap().len(), 4);
    hand.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_brain_knows_what_the_host_has_set() {
    let asks = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = asks.clone();
    let brain = move |ask: &ModelRequest| {
        log.lock().unwrap().push(ask.clone());
        Reply::say("ok")
    };
    let mut hand = Hand::new(Agent::builder().append_system_prompt("more").brain(brain));
    hand.request(json!({"subtype": "initialize", "systemPrompt": ["Be", "brief."]}))
        .await;
    hand.request(json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 0}))
        .await;
    hand.prompt("hello").await;
    hand.until("result/success").await;
    let ask = asks.lock().unwrap()[0].clone();
    assert_eq!(ask.system_prompt.as_deref(), Some("Be\nbrief."));
    assert_eq!(ask.appended_prompt.as_deref(), Some("more"));
    assert_eq!(ask.max_thinking_tokens, Some(0));
    hand.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_model_is_replaced() {
    let mut hand = Hand::ready(Agent::builder().fallback_model("haiku")).await;
    hand.prompt("%error 529 n=9\n%say done").await;
    let told = hand.until("system/model_fallback").await;
    assert_eq!(told["fallback_model"], "claude-haiku-5-5");
    assert_eq!(hand.until("result/success").await["is_error"], false);
    let (_, kinds) = hand.end().await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "system/api_retry").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn answers_come_back_when_prompts_do() {
    let mut hand = Hand::ready(Agent::builder().replay_user_messages(true)).await;
    hand.prompt(&format!("{TOUCH}\n%say done")).await;
    let question = hand.until("control_request/can_use_tool").await;
    hand.answer(&question, json!({"behavior": "allow"})).await;
    let echo = hand.next().await;
    assert_eq!(echo["response"]["request_id"], question["request_id"]);
    assert_eq!(echo["response"]["response"], json!({"behavior": "allow"}));
    hand.until("result/success").await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_in_its_time_has_failed() {
    let limit = Duration::from_millis(300);
    let silent = json!({"command": "sleep", "args": ["600"]});
    let agent = here().mcp_server("silent", silent).mcp_timeout(limit);
    let mut hand = Hand::ready(agent).await;
    hand.prompt("%say hello").await;
    let init = hand.until("system/init").await;
    assert_eq!(init["mcp_servers"][0]["status"], "failed");
    let report = hand.agent.report();
    let init = report.lines.iter().find(|line| line.kind() == "system/init");
    assert!(init.expect("it was written").at >= limit);
    assert_eq!(hand.end().await.0, Exit::Code(0));
}
