//! What comes on stdin, how it ends, and what goes wrong at the API.

use super::*;

#[tokio::test(start_paused = true)]
async fn api_errors() {
    let mut hand = Hand::ready(Agent::builder()).await;
    for (status, error) in [(529, "overloaded"), (401, "authentication_failed")] {
        hand.prompt(&format!("%error {status}\n%say recovered")).await;
        let retry = hand.until("system/api_retry").await;
        assert_eq!(
            (&retry["error_status"], &retry["error"]),
            (&json!(status), &json!(error))
        );
        assert_eq!(hand.until("result/success").await["result"], "recovered");
    }
    hand.prompt("%error 400 n=99 msg=\"bad request\"\n%say never")
        .await;
    let assistant = hand.until("assistant").await;
    assert_eq!(
        (&assistant["message"]["model"], &assistant["error"]),
        (&json!("<synthetic>"), &json!("unknown"))
    );
    let result = hand.next().await;
    assert_eq!(result["result"], "API Error: 400 bad request");
    assert_eq!(result["is_error"], true);
    assert_eq!(result["api_error_status"], 400);
    assert_eq!(result["terminal_reason"], "api_error");
    let (exit, _) = hand.end().await;
    assert_eq!(exit, Exit::Code(1));
}

#[tokio::test(start_paused = true)]
async fn what_the_api_says_about_trying_again_counts() {
    let script = crate::script::Script::from_yaml(
        r"
prompts:
  - prompt: {contains: soon}
    steps: [{api_error: {status: 429, retry_after: 7, times: 1}}, {say: well}]
  - prompt: {contains: much later}
    steps: [{api_error: {status: 429, retry_after: 61}}]
  - prompt: {contains: never}
    steps: [{api_error: {status: 529, headers: {x-should-retry: 'false'}}}]
  - prompt: {contains: busy}
    steps: [{api_error: {status: 500, kind: overloaded_error}}]
  - prompt: {contains: large}
    steps: [{api_error: 413}]
",
    )
    .unwrap();
    let mut hand = Hand::ready(script.agent().unwrap()).await;
    let began = tokio::time::Instant::now();
    hand.prompt("soon").await;
    assert_eq!(hand.until("system/api_retry").await["retry_delay_ms"], 7000);
    assert_eq!(hand.until("result/success").await["result"], "well");
    assert!(began.elapsed() >= std::time::Duration::from_secs(7));
    for (prompt, error) in [("much later", "rate_limit"), ("never", "server_error")] {
        hand.prompt(prompt).await;
        let began = tokio::time::Instant::now();
        assert_eq!(hand.until("assistant").await["error"], error);
        assert!(
            began.elapsed() < std::time::Duration::from_millis(400),
            "{prompt}"
        );
    }
    hand.prompt("busy").await;
    for attempt in [1, 2] {
        let retry = hand.until("system/api_retry").await;
        assert_eq!(
            (&retry["attempt"], &retry["error"]),
            (&json!(attempt), &json!("overloaded"))
        );
    }
    let result = hand.until("result/success").await;
    assert_eq!(result["result"], "API Error: Repeated 529 Overloaded errors");
    assert_eq!(result["api_error_type"], "overloaded_error");
    // The real CLI compacts what is before it.
    hand.prompt("large").await;
    let result = hand.until("result/error_during_execution").await;
    let told = result["errors"][0].as_str().unwrap();
    assert!(told.contains("and the CLI compacts is not simulated"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn bad_input_ends_it() {
    for (line, complaint) in [
        (
            "this is not json",
            "Error parsing streaming input line (type=unknown, 16 chars): SyntaxError",
        ),
        (
            "{\"type\":\"user\",\"message\":",
            "Error parsing streaming input line (type=user, 25 chars): SyntaxError",
        ),
        (
            "{\"type\":\"user\"}",
            "Error: Expected message role 'user', got 'undefined'",
        ),
        (
            "{\"type\":\"user\",\"message\":{\"role\":\"assistant\",\"content\":\"hi\"}}",
            "Error: Expected message role 'user', got 'assistant'",
        ),
        (
            "{\"type\":\"control_request\"}",
            "Error: Missing request on control_request",
        ),
    ] {
        let mut hand = Hand::ready(Agent::builder()).await;
        hand.write(line).await;
        assert_eq!(hand.agent.exit().await, Exit::Code(1));
        assert_eq!(hand.stderr.next_line().await.unwrap().unwrap(), complaint);
    }
    let mut hand = Hand::ready(Agent::builder()).await;
    for line in [
        "[]",
        "42",
        "{}",
        "",
        "   ",
        "{\"type\":\"system\",\"subtype\":\"x\"}",
        "{\"type\":\"keep_alive\"}",
    ] {
        hand.write(line).await;
    }
    hand.prompt("%say got \u{1F600}").await;
    assert_eq!(hand.end().await.0, Exit::Code(0));
}

#[tokio::test(start_paused = true)]
async fn end_of_input_and_signals() {
    // The turn finishes, and a question that is open becomes an error.
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(&format!("{TOUCH}\n%say after")).await;
    hand.until("control_request/can_use_tool").await;
    hand.stdin = None;
    let user = hand.until("user").await;
    let content = user["message"]["content"][0]["content"].as_str().unwrap();
    assert!(
        content.contains("stream closed before response received"),
        "{content}"
    );
    assert_eq!(hand.end().await.0, Exit::Code(0));

    for (signal, exit) in [
        (Signal::Term, Exit::Code(143)),
        (Signal::Hup, Exit::Code(129)),
        (Signal::Kill, Exit::Signal(9)),
        (Signal::Int, Exit::Code(0)),
    ] {
        let mut hand = Hand::ready(Agent::builder()).await;
        hand.prompt(SLOW).await;
        hand.until("system/init").await;
        hand.agent.signal(signal);
        assert_eq!(hand.agent.exit().await, exit);
        let wrote_result = hand.kinds().contains(&"result/error_during_execution".to_owned());
        assert_eq!(wrote_result, signal == Signal::Int);
    }

    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(SLOW).await;
    hand.until("system/init").await;
    hand.request(json!({"subtype": "end_session"})).await;
    assert_eq!(hand.agent.exit().await, Exit::Code(1));
}
