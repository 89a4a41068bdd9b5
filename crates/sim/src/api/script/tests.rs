//! Scripts, read and played to a plain HTTP client.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::api::tests::{SOON, ask, content, prompt, send, user};
use crate::api::{AnsweredBy, MessagesApi, Outcome};

fn text(answer: &str) -> String {
    content(answer)[0]["text"].as_str().unwrap_or_default().to_owned()
}

async fn playing(yaml: &str) -> MessagesApi {
    MessagesApi::builder()
        .script(ApiScript::from_yaml(yaml).unwrap())
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_loop_of_tool_calls_is_played_and_judged() {
    let api = playing(
        r"
conversations:
  - name: list
    prompt: {contains: list}
    replies:
      - think: hm
        say: I look.
        call: {tool: Bash, input: {command: ls}}
        usage: {input: 7, output: 3, cache_read: 2}
      - 'it is {{last}}'
  - from: subagent
    times: any
    replies: [below]
expect:
  sessions: 1
  requests: 2
  prompts: [list it]
  tool_results: [{contains: a.txt}]
",
    )
    .await;
    assert_eq!(api.verdict().unwrap_err().0.len(), 5);
    let mut messages = user("list it");
    let first = ask(api.address(), &prompt(true, messages.clone())).await;
    let blocks = content(&first);
    let kinds: Vec<_> = blocks
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use"]);
    assert!(first.contains(r#""cache_read_input_tokens":2"#), "{first}");
    let history = messages.as_array_mut().unwrap();
    history.push(json!({"role": "assistant", "content": blocks}));
    let result = json!({"type": "tool_result", "tool_use_id": blocks[2]["id"], "content": "a.txt"});
    history.push(json!({"role": "user", "content": [result]}));
    assert_eq!(
        text(&ask(api.address(), &prompt(true, messages.clone())).await),
        "it is a.txt"
    );
    api.verdict().unwrap();
    let name: std::sync::Arc<str> = "list".into();
    assert_eq!(api.requests()[1].answered_by, AnsweredBy::Script(name));

    // Twice more, and nothing is for it.
    ask(api.address(), &prompt(true, messages.clone())).await;
    let refused = ask(api.address(), &prompt(true, messages)).await;
    assert!(refused.starts_with("HTTP/1.1 400"), "{refused}");
    let told = api.verdict().unwrap_err().to_string();
    assert!(
        told.contains("expect.no_unmatched: request 3, asked 2 times: ")
            && told.contains("4 requests for a message came instead of 2"),
        "{told}"
    );
}

#[tokio::test]
async fn every_session_and_subagent_has_its_own_place() {
    let api = playing("conversations: [{times: 1, replies: [one, {say: two, times: 2}]}]").await;
    let ask_as = async |headers: &[(&str, &str)]| {
        let body = prompt(true, user("x")).to_string();
        send(api.address(), "POST /v1/messages", headers, &body).await.0
    };
    let (a, b, sub) = (
        [("x-claude-code-session-id", "a")],
        [("x-claude-code-session-id", "b")],
        [("x-claude-code-session-id", "a"), ("x-claude-code-agent-id", "s")],
    );
    let mut said = Vec::new();
    for who in [&a[..], &b, &a, &sub, &a] {
        said.push(text(&ask_as(who).await));
    }
    assert_eq!(said, ["one", "one", "two", "one", "two"]);
    assert!(ask_as(&a).await.starts_with("HTTP/1.1 400"));
    assert!(
        api.check(&ApiExpect::new().sessions(2).subagents(1))
            .unwrap_err()
            .to_string()
            .contains("request 6")
    );
    let mut lenient = ApiExpect::new().sessions(3).subagents(1);
    lenient.no_unmatched = false;
    assert_eq!(
        api.check(&lenient).unwrap_err().to_string(),
        "expect.sessions: 2 sessions asked instead of 3"
    );
}

#[tokio::test]
async fn requests_are_matched_by_what_they_are() {
    let api = playing(
        r"
unmatched: ok
conversations:
  - {model: model-y, replies: [by model]}
  - {has_tool: Special, replies: [by tool]}
  - {tool_result: {regex: '^\d+ passed'}, replies: [by result]}
  - {request: 2, replies: [second]}
  - {prompt: exactly this, replies: [exact]}
",
    )
    .await;
    let mut other = prompt(true, user("x"));
    other["model"] = "model-y".into();
    let mut tool = prompt(true, user("x"));
    tool["tools"] = json!([{"name": "Special"}]);
    let result = prompt(
        true,
        json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "12 passed"}]}]),
    );
    let mut said = Vec::new();
    for body in [
        &prompt(true, user("exactly this")),
        &prompt(true, user("z")),
        &other,
        &tool,
        &result,
        &prompt(true, user("z")),
    ] {
        said.push(text(&ask(api.address(), body).await));
    }
    assert_eq!(
        said,
        ["exact", "second", "by model", "by tool", "by result", "ok"]
    );
    api.verdict().unwrap();
}

#[tokio::test]
async fn every_fault_does_what_it_is_called() {
    let api = playing(
        r"
conversations:
  - replies:
      - fault: {http: {status: 429, message: slow down, retry_after: 2}}
      - fault: drop
      - {say: abcd, fault: cut}
      - {say: abcd, fault: truncated}
      - {say: abcd, fault: malformed_event}
      - {say: abcd, fault: {error_event: overloaded_error}}
      - {say: abcd, fault: {content_type: text/html}}
      - {say: abcd, first_byte_after: 50ms, pace: {chunk: 1, every: 1ms}, headers: {x-mine: 'yes'}, stop_reason: max_tokens}
      - {say: abcd, fault: stall}
",
    )
    .await;
    let mut answers = Vec::new();
    for _ in 0..7 {
        answers.push(ask(api.address(), &prompt(true, user("x"))).await);
    }
    let [http, drop, cut, truncated, malformed, error, html] = &answers[..] else {
        unreachable!()
    };
    assert!(
        http.starts_with("HTTP/1.1 429") && http.contains("slow down") && http.contains("retry-after: 2"),
        "{http}"
    );
    assert_eq!(drop, "");
    let half = |answer: &String| {
        answer.contains(r#""text":"b""#)
            && !answer.contains(r#""text":"c""#)
            && !answer.contains("message_stop")
    };
    for answer in [cut, truncated, malformed, error] {
        assert!(half(answer), "{answer}");
    }
    assert!(
        !cut.ends_with("0\r\n\r\n") && truncated.ends_with("0\r\n\r\n"),
        "{cut}{truncated}"
    );
    assert!(malformed.contains("\"ind\n"), "{malformed}");
    assert!(error.contains("overloaded_error"), "{error}");
    assert!(
        html.contains("content-type: text/html") && html.contains("message_stop"),
        "{html}"
    );
    let begun = std::time::Instant::now();
    let slow = ask(api.address(), &prompt(true, user("x"))).await;
    assert!(begun.elapsed() >= Duration::from_millis(54));
    assert!(
        slow.contains("x-mine: yes")
            && slow.contains("max_tokens")
            && slow.matches("text_delta").count() == 4,
        "{slow}"
    );
    let address = api.address();
    let client = tokio::spawn(async move { ask(address, &prompt(true, user("x"))).await });
    api.wait_for_requests(9, SOON).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(api.requests()[8].outcome, Outcome::Pending);
    client.abort();
    api.verdict().unwrap();
}

#[test]
fn mistakes_are_told_with_their_place() {
    let told = |yaml: &str| ApiScript::from_yaml(yaml).unwrap_err().to_string();
    for (yaml, text) in [
        (
            "conversations:\n  - promt: x\n",
            "script:2:5: unknown field `promt`, did you mean `prompt`?",
        ),
        (
            "conversations:\n  - prompt: x\n",
            "script:2:5: this conversation has no replies",
        ),
        (
            "conversations:\n  - replies:\n      - {say: a, content: [{say: b}]}\n",
            "script:3:9: a reply has either `content`, or",
        ),
        (
            "conversations:\n  - replies:\n      - fault: {http: {status: 200}}\n",
            "script:3:9: 200 is no HTTP status",
        ),
        (
            "conversations:\n  - replies:\n      - fault: explode\n",
            "unknown word `explode`",
        ),
    ] {
        let is = told(yaml);
        assert!(is.contains(text), "{is}\n{text}");
    }
}

/// `UPDATE_SCHEMA=1` writes the file anew.
#[test]
fn the_committed_schema_is_that_of_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/api-script.schema.json");
    let schema = serde_json::to_string_pretty(&json_schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
        std::fs::write(path, &schema).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&committed).unwrap(),
        serde_json::from_str::<Value>(&schema).unwrap(),
        "run this test with UPDATE_SCHEMA=1 and commit what it writes"
    );
}
