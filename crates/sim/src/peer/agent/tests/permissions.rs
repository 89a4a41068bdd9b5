//! May a tool be used?

use super::*;

#[tokio::test(start_paused = true)]
async fn perm_allow() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(&format!("{TOUCH}\n%say done")).await;
    let question = hand.until("control_request/can_use_tool").await;
    assert_eq!(
        question["request"]["permission_suggestions"],
        json!([
            {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "touch a.txt"}], "behavior": "allow",
                "destination": "localSettings"},
            {"type": "addDirectories", "directories": ["/home/user/project"], "destination": "session"},
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
        ])
    );
    assert_eq!(question["request"]["blocked_path"], "/home/user/project/a.txt");
    hand.answer(
        &question,
        json!({"behavior": "allow", "updatedInput": question["request"]["input"]}),
    )
    .await;
    let result = hand.until("result/success").await;
    assert_eq!(
        (&result["num_turns"], &result["result"]),
        (&json!(2), &json!("done"))
    );
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/init",
            "assistant",
            "control_request/can_use_tool",
            "user",
            "assistant",
            "result/success"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn perm_deny_interrupt() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(&format!("{TOUCH}\n%say must not be reached")).await;
    let question = hand.until("control_request/can_use_tool").await;
    hand.answer(
        &question,
        json!({"behavior": "deny", "message": "no", "interrupt": true}),
    )
    .await;
    let result = hand.until("result/error_during_execution").await;
    assert_eq!(result["terminal_reason"], "aborted_tools");
    assert_eq!(result["num_turns"], 3);
    assert_eq!(result["stop_reason"], "tool_use");
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
    hand.prompt("%say second turn works").await;
    let result = hand.until("result/success").await;
    assert_eq!(result["result"], "second turn works");
    assert_eq!(result["result_index"], 1);
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/init",
            "assistant",
            "control_request/can_use_tool",
            "user",
            "user",
            "result/error_during_execution",
            "system/init",
            "assistant",
            "result/success",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn deny_and_wrong_answers() {
    let mut hand = Hand::ready(Agent::builder()).await;
    for (answer, text) in [
        (json!({"behavior": "deny", "message": "not today"}), "not today"),
        (
            json!({"behavior": "deny"}),
            "The canUseTool callback returned an invalid",
        ),
        (
            json!({"allowed": true}),
            "The canUseTool callback returned an invalid",
        ),
        (
            json!({"behavior": "allow", "updatedInput": null}),
            "The canUseTool callback returned an invalid",
        ),
        (
            json!({"behavior": "allow", "updatedInput": {"command": "echo changed"}}),
            "changed",
        ),
        (
            json!({"behavior": "allow", "updatedInput": {}}),
            "(Bash completed with no output)",
        ),
    ] {
        hand.prompt(&format!("{TOUCH}\n%say after")).await;
        let question = hand.until("control_request/can_use_tool").await;
        hand.answer(&question, answer).await;
        let user = hand.until("user").await;
        let content = user["message"]["content"][0]["content"].as_str().unwrap();
        assert!(content.starts_with(text), "{content}");
        assert_eq!(hand.until("result/success").await["result"], "after");
    }
    let (exit, _) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
}
