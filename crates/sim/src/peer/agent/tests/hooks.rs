//! Hooks of the host.

use super::*;

async fn hooked(hooks: Value) -> Hand {
    let mut hand = Hand::new(Agent::builder());
    hand.request(json!({"subtype": "initialize", "hooks": hooks}))
        .await;
    let answer = hand.next().await;
    assert_eq!(answer["response"]["response"]["hooks_applied"], true);
    hand
}

fn on(event: &str) -> Value {
    json!({event: [{"matcher": null, "hookCallbackIds": ["h"]}]})
}

/// What the tool result says when a PreToolUse hook answers this, and whether the client was asked.
async fn pre_tool_use(answer: Value) -> (String, bool) {
    let mut hand = hooked(on("PreToolUse")).await;
    hand.prompt(&format!("{TOUCH}\n%say done")).await;
    let callback = hand.until("control_request/hook_callback").await;
    let input = &callback["request"]["input"];
    assert_eq!(
        (&input["hook_event_name"], &input["tool_name"]),
        (&json!("PreToolUse"), &json!("Bash"))
    );
    hand.answer(&callback, answer).await;
    let mut asked = false;
    loop {
        let line = hand.next().await;
        match running::kind(&line).as_str() {
            "control_request/can_use_tool" => {
                asked = true;
                hand.answer(&line, json!({"behavior": "allow"})).await;
            }
            "user" => {
                let content = line["message"]["content"][0]["content"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                hand.until("result/success").await;
                return (content, asked);
            }
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pre_tool_use_decides() {
    let decision = |decision: &str| {
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision,
            "permissionDecisionReason": "because"}})
    };
    let silent = "(Bash completed with no output)";
    let broken = "PreToolUse hook failed with an unexpected error. The tool call was not executed; other configured \
                  hooks may not have completed.";
    for (answer, content, asked) in [
        (json!({}), silent, true),
        (decision("allow"), silent, false),
        (decision("ask"), silent, true),
        (decision("deny"), "PreToolUse:Bash hook error: because", false),
        (
            json!({"decision": "block", "reason": "old"}),
            "PreToolUse:Bash hook error: old",
            false,
        ),
        (
            json!({"hookSpecificOutput": {"hookEventName": "Stop"}}),
            broken,
            false,
        ),
        (
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
                "updatedInput": {"command": "echo changed"}}}),
            "changed",
            false,
        ),
        (
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
                "updatedInput": {"command": 5}}}),
            "A hook changed the input of Bash to one that the tool refuses: Bash failed due to the following issue:\nThe \
             parameter `command` type is expected as `string` but provided as `number`",
            false,
        ),
    ] {
        assert_eq!(
            pre_tool_use(answer.clone()).await,
            (content.to_owned(), asked),
            "{answer}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_is_late_is_cancelled() {
    let mut hand =
        hooked(json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h"], "timeout": 2}]})).await;
    hand.prompt(&format!("{TOUCH}\n%say done")).await;
    let callback = hand.until("control_request/hook_callback").await;
    let cancel = hand.next().await;
    assert_eq!(cancel["type"], "control_cancel_request");
    assert_eq!(cancel["request_id"], callback["request_id"]);
    let user = hand.next().await;
    let content = user["message"]["content"][0]["content"].as_str().unwrap();
    assert!(
        content.starts_with("PreToolUse hook did not respond before its timeout"),
        "{content}"
    );
    assert_eq!(hand.until("result/success").await["result"], "done");
}

#[tokio::test(start_paused = true)]
async fn continue_false_ends_the_turn_behind_the_tool() {
    let mut hand = hooked(on("PreToolUse")).await;
    hand.prompt("%tool Bash {\"command\":\"echo hi\"}\n%say never")
        .await;
    let callback = hand.until("control_request/hook_callback").await;
    hand.answer(&callback, json!({"continue": false})).await;
    let result = hand.until("result/success").await;
    assert_eq!(
        (&result["terminal_reason"], &result["result"]),
        (&json!("hook_stopped"), &json!(""))
    );
}

#[tokio::test(start_paused = true)]
async fn post_tool_use_replaces_the_output() {
    let mut hand = hooked(on("PostToolUse")).await;
    hand.prompt("%tool Bash {\"command\":\"echo original\"}\n%say done")
        .await;
    let callback = hand.until("control_request/hook_callback").await;
    assert_eq!(
        callback["request"]["input"]["tool_response"]["stdout"],
        "original"
    );
    let output = json!({"stdout": "REPLACED", "stderr": "", "interrupted": false});
    let answer = json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": output}});
    hand.answer(&callback, answer).await;
    assert_eq!(
        hand.until("user").await["message"]["content"][0]["content"],
        "REPLACED"
    );
}

#[tokio::test(start_paused = true)]
async fn a_prompt_can_be_blocked() {
    let mut hand = hooked(on("UserPromptSubmit")).await;
    hand.prompt("%say hello").await;
    let callback = hand.next().await;
    assert_eq!(callback["request"]["input"]["prompt"], "%say hello");
    hand.answer(
        &callback,
        json!({"decision": "block", "reason": "prompt blocked"}),
    )
    .await;
    let result = hand.until("result/success").await;
    let text = "UserPromptSubmit operation blocked by hook:\nprompt blocked\n\nOriginal prompt: %say hello";
    assert_eq!(
        (&result["result"], &result["num_turns"]),
        (&json!(text), &json!(0))
    );
    let (_, kinds) = hand.end().await;
    assert_eq!(
        kinds[1..],
        ["system/init", "system/informational", "result/success"]
    );
}

#[tokio::test(start_paused = true)]
async fn stop_makes_it_go_on() {
    let mut hand = hooked(on("Stop")).await;
    hand.prompt("%say one\n%say two").await;
    let callback = hand.until("control_request/hook_callback").await;
    assert_eq!(callback["request"]["input"]["stop_hook_active"], false);
    hand.answer(&callback, json!({"decision": "block", "reason": "not yet"}))
        .await;
    assert_eq!(hand.until("user").await["isSynthetic"], true);
    let callback = hand.until("control_request/hook_callback").await;
    assert_eq!(callback["request"]["input"]["stop_hook_active"], true);
    hand.answer(&callback, json!({})).await;
    assert_eq!(hand.until("result/success").await["result"], "two");
}

#[tokio::test(start_paused = true)]
async fn a_permission_request_hook_races_the_question() {
    let mut hand = hooked(on("PermissionRequest")).await;
    hand.prompt(&format!("{TOUCH}\n%say done")).await;
    let question = hand.until("control_request/can_use_tool").await;
    let callback = hand.next().await;
    let decision = json!({"behavior": "allow"});
    let answer = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}});
    hand.answer(&callback, answer).await;
    let cancel = hand.next().await;
    assert_eq!(cancel["request_id"], question["request_id"]);
    assert_eq!(hand.until("result/success").await["result"], "done");
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_takes_a_callback_back() {
    let mut hand = hooked(on("PreToolUse")).await;
    hand.prompt("%tool Bash {\"command\":\"echo hi\"}\n%say done")
        .await;
    hand.until("control_request/hook_callback").await;
    hand.request(json!({"subtype": "interrupt"})).await;
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(1));
    assert_eq!(
        kinds[2..],
        [
            "control_request/hook_callback",
            "control_cancel_request",
            "control_response/success",
            "user",
            "user",
            "result/error_during_execution",
        ]
    );
}

/// What an answer for another event does to a turn that calls a tool and an agent.
#[tokio::test(start_paused = true)]
async fn an_answer_for_another_event_ends_what_it_was_asked_about() {
    let answer = json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "x"}});
    let prompt = "%tool Bash {\"command\": \"echo hi\"}\n%tool Agent {\"description\": \"d\", \"prompt\": \"%say below\", \
                  \"subagent_type\": \"general-purpose\", \"run_in_background\": false}\n%say done";
    for (event, ends, called) in [
        ("UserPromptSubmit", true, 1),
        ("PostToolBatch", true, 1),
        ("Stop", false, 1),
        ("SubagentStop", false, 1),
        ("SubagentStart", false, 1),
        ("PostToolUse", false, 2),
    ] {
        let mut hand = hooked(on(event)).await;
        hand.prompt(prompt).await;
        let (mut calls, mut agent) = (0, None);
        let result = loop {
            let line = hand.next().await;
            match running::kind(&line).as_str() {
                "control_request/hook_callback" => {
                    calls += 1;
                    hand.answer(&line, answer.clone()).await;
                }
                "system/task_notification" => agent = Some(line["status"].clone()),
                kind if kind.starts_with("result/") => break line,
                _ => {}
            }
        };
        assert_eq!(calls, called, "{event}");
        assert_eq!(result["subtype"] == "error_during_execution", ends, "{event}");
        let fails = event == "SubagentStart";
        assert_eq!(agent.is_some_and(|status| status == "failed"), fails, "{event}");
        let (exit, _) = hand.end().await;
        assert_eq!(exit, Exit::Code(i32::from(ends)), "{event}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_told_of_a_call_that_nobody_can_check() {
    let mut hand = Hand::new(Agent::builder().permission_mode("plan"));
    hand.request(json!({"subtype": "initialize", "hooks": on("PermissionDenied")}))
        .await;
    hand.prompt("%tool Bash {\"command\": \"touch x\"}\n%say done")
        .await;
    let callback = hand.until("control_request/hook_callback").await;
    assert_eq!(callback["request"]["input"]["reason"], "Classifier unavailable");
    let answer = json!({"hookSpecificOutput": {"hookEventName": "PermissionDenied", "retry": true}});
    hand.answer(&callback, answer).await;
    assert_eq!(
        hand.until("user").await["message"]["content"][0]["is_error"],
        true
    );
    assert_eq!(hand.until("user").await["isSynthetic"], true);
    hand.until("result/success").await;
    hand.end().await;
}
