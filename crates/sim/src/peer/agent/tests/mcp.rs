//! MCP servers inside the host.

use super::*;

impl Hand {
    pub(super) async fn mcp(&mut self, method: &str) -> Value {
        let request = self.until("control_request/mcp_message").await;
        assert_eq!(request["request"]["message"]["method"], method);
        request
    }

    pub(super) async fn mcp_answer(&mut self, request: &Value, result: Value) {
        let id = &request["request"]["message"]["id"];
        let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.answer(request, json!({"mcp_response": response})).await;
    }

    /// Plays the server's part of the handshake, after its first message.
    pub(super) async fn shake(&mut self, first: &Value) {
        let info = json!({"name": "calc", "version": "1.0.0"});
        let result =
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info});
        self.mcp_answer(first, result).await;
        let notification = self.mcp("notifications/initialized").await;
        self.answer(&notification, json!({})).await;
        let list = self.mcp("tools/list").await;
        let tool = json!({"name": "add", "inputSchema": {"type": "object"}});
        self.mcp_answer(&list, json!({"tools": [tool]})).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_of_the_host() {
    let mut hand = Hand::new(Agent::builder());
    hand.request(json!({"subtype": "initialize", "sdkMcpServers": ["calc"]}))
        .await;
    let first = hand.mcp("initialize").await;
    hand.until("control_response/success").await;
    hand.prompt("%tool mcp__calc__add {\"a\":2,\"b\":3}\n%say done")
        .await;
    hand.shake(&first).await;
    let init = hand.until("system/init").await;
    assert_eq!(
        init["mcp_servers"],
        json!([{"name": "calc", "status": "connected", "source": "sdk"}])
    );
    let question = hand.until("control_request/can_use_tool").await;
    assert_eq!(
        question["request"]["mcp_server"],
        json!({"name": "calc", "source": "sdk"})
    );
    hand.answer(&question, json!({"behavior": "allow"})).await;
    let call = hand.mcp("tools/call").await;
    assert_eq!(
        call["request"]["message"]["params"],
        json!({"name": "add", "arguments": {"a": 2, "b": 3},
            "_meta": {"claudecode/toolUseId": "toolu_sim_0001_0", "progressToken": 2}})
    );
    hand.mcp_answer(&call, json!({"content": [{"type": "text", "text": "5"}]}))
        .await;
    let user = hand.until("user").await;
    assert_eq!(
        user["message"]["content"][0]["content"],
        json!([{"type": "text", "text": "5"}])
    );
    hand.until("result/success").await;
    hand.request(json!({"subtype": "mcp_status"})).await;
    let status = hand.until("control_response/success").await;
    assert_eq!(
        status["response"]["response"]["mcpServers"][0]["tools"],
        json!([{"name": "add", "annotations": {}}])
    );
    assert_eq!(hand.end().await.0, Exit::Code(0));
}

#[tokio::test(start_paused = true)]
async fn a_server_answers_the_first_call_when_the_second_has_come() {
    let hints = json!({"readOnlyHint": true});
    for (annotations, beside) in [(hints, true), (json!({}), false)] {
        let mut hand = Hand::new(Agent::builder().allowed_tools(["mcp__calc__add"]));
        let tool = json!({"name": "add", "inputSchema": {"type": "object"}, "annotations": annotations});
        let initialized = json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "calc", "version": "1"},
        });
        let manifest = json!({"initializeResult": initialized, "toolsListResult": {"tools": [tool]}});
        let request = json!({
            "subtype": "initialize", "sdkMcpServers": ["calc"], "sdkMcpServerManifests": {"calc": manifest},
        });
        hand.request(request).await;
        let answer = hand.until("control_response/success").await;
        assert_eq!(
            answer["response"]["response"]["sdk_mcp_manifests_parked"],
            json!({"calc": "parked"})
        );
        hand.prompt("%tool mcp__calc__add {\"a\":1}\n%+tool mcp__calc__add {\"a\":2}\n%say done")
            .await;
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        let first = hand.mcp("tools/call").await;
        if beside {
            let second = hand.mcp("tools/call").await;
            hand.mcp_answer(&second, text("two")).await;
            let user = hand.until("user").await;
            assert_eq!(user["message"]["content"][0]["tool_use_id"], "toolu_sim_0001_1");
            hand.mcp_answer(&first, text("one")).await;
        } else {
            hand.mcp_answer(&first, text("one")).await;
            let second = hand.mcp("tools/call").await;
            hand.mcp_answer(&second, text("two")).await;
        }
        hand.until("result/success").await;
        assert_eq!(hand.end().await.0, Exit::Code(0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_holds_the_first_turn() {
    let mut hand = Hand::new(Agent::builder());
    hand.request(json!({"subtype": "initialize", "sdkMcpServers": ["calc"]}))
        .await;
    hand.prompt("%say hello").await;
    hand.mcp("initialize").await;
    hand.mcp("initialize").await;
    let init = hand.until("system/init").await;
    assert_eq!(init["mcp_servers"][0]["status"], "failed");
    let report = hand.agent.report();
    let at = report
        .lines
        .iter()
        .find(|line| line.kind() == "system/init")
        .unwrap()
        .at;
    assert_eq!(at.as_secs(), 60);
    assert_eq!(hand.end().await.0, Exit::Code(0));
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_cancels_the_call() {
    let mut hand = Hand::new(
        Agent::builder()
            .sdk_mcp_servers(["calc"])
            .allowed_tools(["mcp__calc"]),
    );
    hand.request(json!({"subtype": "initialize"})).await;
    let first = hand.mcp("initialize").await;
    hand.prompt("%tool mcp__calc__add {}\n%say never").await;
    hand.shake(&first).await;
    hand.mcp("tools/call").await;
    hand.request(json!({"subtype": "interrupt"})).await;
    let cancelled = hand.mcp("notifications/cancelled").await;
    assert_eq!(cancelled["request"]["message"]["params"]["requestId"], 2);
    hand.answer(&cancelled, json!({})).await;
    let result = hand.until("result/error_during_execution").await;
    assert_eq!(result["terminal_reason"], "aborted_tools");
}

#[tokio::test(start_paused = true)]
async fn servers_come_and_go() {
    let mut hand = Hand::ready(Agent::builder()).await;
    let servers = json!({"calc": {"type": "sdk", "name": "calc"}, "lab": {"command": "lab"}});
    hand.request(json!({"subtype": "mcp_set_servers", "servers": servers}))
        .await;
    let answer = hand.until("control_response/success").await;
    let error = "Spread syntax requires ...iterable not be null or undefined";
    let expected = json!({"added": ["calc", "lab"], "removed": [], "errors": {"lab": error}});
    assert_eq!(answer["response"]["response"], expected);
    let first = hand.mcp("initialize").await;
    hand.shake(&first).await;
    let ping = json!({"jsonrpc": "2.0", "id": 77, "method": "ping"});
    hand.request(json!({"subtype": "mcp_message", "server_name": "calc", "message": ping}))
        .await;
    let pong = hand.until("control_request/mcp_message").await;
    assert_eq!(
        pong["request"]["message"],
        json!({"jsonrpc": "2.0", "id": 77, "result": {}})
    );
    hand.request(json!({"subtype": "mcp_set_servers", "servers": {}}))
        .await;
    let answer = hand.until("control_response/success").await;
    assert_eq!(answer["response"]["response"]["removed"], json!(["lab", "calc"]));
    hand.request(json!({"subtype": "mcp_set_servers"})).await;
    let answer = hand.until("control_response/error").await;
    assert_eq!(
        answer["response"]["error"],
        "mcp_set_servers: servers must be an object of config objects"
    );
}

#[tokio::test(start_paused = true)]
async fn resources_are_listed_once_and_read() {
    let mut hand = Hand::new(Agent::builder());
    hand.request(json!({"subtype": "initialize", "sdkMcpServers": ["calc"]}))
        .await;
    let first = hand.mcp("initialize").await;
    hand.until("control_response/success").await;
    hand.prompt(
        "%tool ListMcpResourcesTool {}\n%tool ListMcpResourcesTool {\"server\":\"calc\"}\n%tool ReadMcpResourceTool \
         {\"server\":\"calc\",\"uri\":\"x://a\"}\n%tool ReadMcpResourceTool {\"server\":\"other\",\"uri\":\"x://a\"}\n%say done",
    )
    .await;
    let result = json!({
        "protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
        "serverInfo": {"name": "calc", "version": "1.0.0"},
    });
    hand.mcp_answer(&first, result).await;
    let notification = hand.mcp("notifications/initialized").await;
    hand.answer(&notification, json!({})).await;
    let list = hand.mcp("tools/list").await;
    hand.mcp_answer(&list, json!({"tools": []})).await;
    // Prompts of servers of the host are no commands, and nobody asks for them.
    let list = hand.mcp("resources/list").await;
    let resource = json!({"uri": "x://a", "name": "a", "size": 4});
    hand.mcp_answer(&list, json!({"resources": [resource]})).await;
    for _ in 0..2 {
        let listed = hand.until("user").await["message"]["content"][0]["content"].clone();
        assert_eq!(listed, "[{\"name\":\"a\",\"uri\":\"x://a\",\"server\":\"calc\"}]");
    }
    let read = hand.mcp("resources/read").await;
    let content = json!({"uri": "x://a", "text": "body"});
    hand.mcp_answer(&read, json!({"contents": [content]})).await;
    let read = hand.until("user").await["message"]["content"][0]["content"].clone();
    assert_eq!(read, "{\"contents\":[{\"uri\":\"x://a\",\"text\":\"body\"}]}");
    let refused = hand.until("user").await["message"]["content"][0]["content"].clone();
    assert_eq!(refused, "Server \"other\" not found. Available servers: calc");
    hand.until("result/success").await;
    hand.end().await;
}
