//! Conversions lose nothing, and report what one version lacks.

use serde_json::json;

use super::*;

fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("words of the protocol")
}

#[test]
fn servers_of_all_kinds_come_over() {
    let given: Vec<draft::McpServer> = of(json!([
        {"type": "stdio", "name": "a", "command": "/bin/a", "args": ["-x"], "env": [{"name": "A", "value": "1"}]},
        {"type": "http", "name": "b", "url": "http://127.0.0.1:1/", "headers": [{"name": "H", "value": "2"}]},
        {"type": "acp", "name": "c", "serverId": "s"},
    ]));
    let taken = servers(&given).expect("kinds that there are");
    let acp::McpServer::Stdio(stdio) = &taken[0] else {
        panic!("{taken:?}")
    };
    assert_eq!(stdio.command.to_str(), Some("/bin/a"));
    assert_eq!((stdio.args[0].as_str(), stdio.env[0].value.as_str()), ("-x", "1"));
    let acp::McpServer::Http(http) = &taken[1] else {
        panic!("{taken:?}")
    };
    assert_eq!(
        (http.url.as_str(), http.headers[0].value.as_str()),
        ("http://127.0.0.1:1/", "2")
    );
    assert!(
        matches!(&taken[2], acp::McpServer::Acp(acp) if acp.server_id.0.as_ref() == "s"),
        "{taken:?}"
    );
    for kind in ["sse", "_pigeon"] {
        let odd: draft::McpServer =
            of(json!({"type": kind, "name": "d", "url": "http://127.0.0.1:1/", "headers": []}));
        assert!(servers(&[odd]).is_err(), "{kind}");
    }
}

#[test]
fn what_the_user_says_comes_over() {
    let given = json!([
        {"type": "text", "text": "hello"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "resource_link", "name": "a", "uri": "file:///a"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "b", "mimeType": "text/plain"}},
        {"type": "resource", "resource": {"uri": "file:///c", "blob": "AAAA", "mimeType": "application/pdf"}},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
    ]);
    let taken = prompt_blocks(of(given.clone())).expect("blocks that there are");
    assert_eq!(serde_json::to_value(taken).expect("JSON"), given);
    let odd: Vec<draft::ContentBlock> = of(json!([{"type": "text", "text": "a"}, {"type": "_smell"}]));
    let error = prompt_blocks(odd).expect_err("it is not known");
    assert!(error.message.contains("prompt[1]"), "{error}");
}

#[test]
fn options_of_all_kinds_come_over() {
    let given: Vec<acp::SessionConfigOption> = of(json!([
        {"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "a",
            "options": [{"value": "a", "name": "A"}]},
        {"id": "model", "name": "Model", "type": "select", "currentValue": "a",
            "options": [{"group": "g", "name": "G", "options": [{"value": "a", "name": "A"}]}]},
        {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": true},
    ]));
    let told = serde_json::to_value(options(&given)).expect("JSON");
    assert_eq!(told[0]["configId"], "mode", "{told:#}");
    assert_eq!(
        (&told[0]["category"], &told[0]["options"][0]["value"]),
        (&json!("mode"), &json!("a"))
    );
    assert_eq!(
        (
            &told[1]["options"][0]["groupId"],
            told[1]["options"][0].get("group")
        ),
        (&json!("g"), None)
    );
    assert_eq!(told[2]["currentValue"], true);
    let value = chosen(of(json!({"type": "boolean", "value": true})));
    assert!(matches!(
        value,
        Ok(acp::SessionConfigOptionValue::Boolean { value: true })
    ));
    let value = chosen(of(json!({"type": "id", "value": "a"})));
    assert!(matches!(value, Ok(acp::SessionConfigOptionValue::ValueId { value }) if value.0.as_ref() == "a"));
    assert!(chosen(of(json!({"type": "_mood", "value": 1}))).is_err());
}

#[test]
fn forms_and_their_answers_come_over() {
    let form = json!({"mode": "form", "sessionId": "s", "toolCallId": "t", "message": "Which?", "requestedSchema": {
    "type": "object", "required": ["a"], "properties": {
        "a": {"type": "string", "oneOf": [{"const": "x", "title": "X"}]},
        "b": {"type": "array", "items": {"anyOf": [{"const": "y", "title": "Y"}]}},
        "c": {"type": "integer", "minimum": 1}, "d": {"type": "boolean"},
    }}});
    let put = elicitation(&of(form.clone())).expect("it is in both");
    assert_eq!(serde_json::to_value(put).expect("JSON"), form);
    let url = json!({"mode": "url", "sessionId": "s", "message": "Open", "elicitationId": "e", "url": "https://example.com/"});
    let put = elicitation(&of(url.clone())).expect("it is in both");
    assert_eq!(serde_json::to_value(put).expect("JSON"), url);
    for answer in [
        json!({"action": "accept", "content": {"a": "x", "b": ["y"], "c": 1, "d": true}}),
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
    ] {
        let taken = elicited(&of(answer.clone())).expect("it is in both");
        assert_eq!(serde_json::to_value(taken).expect("JSON"), answer);
    }
}

#[test]
fn what_an_editor_can_comes_over() {
    let client = capabilities(of(json!({"auth": {"terminal": {}}, "elicitation": {"form": {}},
        "_meta": {"claudeCode": {"subagentText": true}}})));
    assert!(client.auth.terminal);
    let elicitation = client.elicitation.expect("it was told");
    assert!(elicitation.form.is_some() && elicitation.url.is_none());
    assert_eq!(
        client.meta.expect("it was told")["claudeCode"]["subagentText"],
        true
    );
    let nothing = capabilities(of(json!({})));
    assert!(!nothing.auth.terminal && nothing.elicitation.is_none());
}

#[test]
fn why_a_turn_ended_and_what_it_took_comes_over() {
    for told in [
        "end_turn",
        "max_tokens",
        "max_turn_requests",
        "refusal",
        "cancelled",
    ] {
        let reason = reason(of(json!(told)));
        assert_eq!(serde_json::to_value(reason).expect("JSON")["stopReason"], told);
    }
    let told = json!({"totalTokens": 10, "inputTokens": 1, "outputTokens": 2, "thoughtTokens": 3,
        "cachedReadTokens": 4, "cachedWriteTokens": 5});
    assert_eq!(
        serde_json::to_value(usage(&of(told.clone()))).expect("JSON"),
        told
    );
}
