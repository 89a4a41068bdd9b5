//! Calls that a hook defers, and the process that goes on with them.

use std::path::Path;

use super::*;
use crate::script::{Gates, Progress, Script};

const ID: &str = "11111111-2222-4333-8444-555555555555";

fn answer(decision: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision,
        "permissionDecisionReason": "because"}})
}

fn kept_in(directory: &Path) -> Builder {
    Agent::builder().config_dir(directory)
}

async fn hooked(builder: Builder) -> Hand {
    let mut hand = Hand::new(builder);
    let hooks = json!({"PreToolUse": [{"matcher": null, "hookCallbackIds": ["h"]}]});
    hand.request(json!({"subtype": "initialize", "hooks": hooks}))
        .await;
    hand
}

/// Has a hook defer the last call of the turn, and gives the id of that call.
async fn defer(directory: &Path, prompt: &str, allowed: usize) -> Value {
    let mut hand = hooked(kept_in(directory).session_id(ID)).await;
    hand.prompt(prompt).await;
    for decision in std::iter::repeat_n("allow", allowed).chain(["defer"]) {
        let callback = hand.until("control_request/hook_callback").await;
        assert!(callback["request"]["input"]["prompt_id"].is_string());
        hand.answer(&callback, answer(decision)).await;
    }
    let result = hand.until("result/success").await;
    assert_eq!(result["terminal_reason"], "tool_deferred");
    hand.end().await;
    result["deferred_tool_use"]["id"].clone()
}

fn resumed(directory: &Path) -> Builder {
    kept_in(directory).seed(7).resume(ID).await_initialize(true)
}

#[tokio::test(start_paused = true)]
async fn a_deferred_call_is_taken_up_without_a_prompt() {
    for (decision, content, denials) in [
        ("allow", "(Bash completed with no output)", 0),
        ("deny", "PreToolUse:Bash hook error: because", 1),
    ] {
        let home = tempfile::tempdir().unwrap();
        let id = defer(home.path(), &format!("{TOUCH}\n%say done"), 0).await;
        let mut hand = hooked(resumed(home.path())).await;
        let callback = hand.until("control_request/hook_callback").await;
        let input = &callback["request"]["input"];
        assert_eq!(
            (&input["tool_use_id"], &input["tool_name"]),
            (&id, &json!("Bash"))
        );
        assert_eq!(input["tool_input"]["command"], "touch a.txt");
        assert!(input.get("prompt_id").is_none());
        hand.answer(&callback, answer(decision)).await;
        let user = hand.until("user").await;
        let block = &user["message"]["content"][0];
        assert_eq!((&block["tool_use_id"], &block["content"]), (&id, &json!(content)));
        let result = hand.until("result/success").await;
        assert_eq!(
            (&result["result"], &result["session_id"]),
            (&json!("done"), &json!(ID))
        );
        assert_eq!(result["terminal_reason"], "completed");
        assert_eq!(result["num_turns"], 1);
        assert_eq!(result["permission_denials"].as_array().unwrap().len(), denials);
        let kinds = hand.end().await.1;
        assert_eq!(
            kinds,
            [
                "command_lifecycle/started",
                "control_response/success",
                "control_request/hook_callback",
                "user",
                "system/init",
                "assistant",
                "result/success",
                "command_lifecycle/completed",
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_deferred_call_is_taken_up_once() {
    let home = tempfile::tempdir().unwrap();
    defer(home.path(), &format!("{TOUCH}\n%say done"), 0).await;
    let mut hand = hooked(resumed(home.path())).await;
    let callback = hand.until("control_request/hook_callback").await;
    hand.answer(&callback, answer("defer")).await;
    let result = hand.until("result/success").await;
    assert_eq!(result["deferred_tool_use"]["name"], "Bash");
    assert!(!hand.end().await.1.contains(&"system/init".to_owned()));
    // It was deferred again.
    let mut hand = hooked(resumed(home.path()).seed(8)).await;
    let callback = hand.until("control_request/hook_callback").await;
    hand.answer(&callback, answer("allow")).await;
    assert_eq!(hand.until("result/success").await["result"], "done");
    hand.end().await;
    // Now it is decided.
    let (exit, kinds) = hooked(resumed(home.path()).seed(9)).await.end().await;
    assert_eq!((exit, kinds), (Exit::Code(0), Vec::new()));
}

/// The assertion behind the call is due once, whichever process comes to it.
#[tokio::test(start_paused = true)]
async fn an_assertion_behind_a_deferred_call_is_due_in_the_process_that_goes_on() {
    let script = "prompts: [{times: any, steps: [{call: {tool: Bash, input: {command: touch a.txt, description: Make}}}, \
                  {assert: {is_error: false}}, {say: done}]}]";
    let script = Script::from_yaml(script).unwrap();
    for goes_on in [true, false] {
        let home = tempfile::tempdir().unwrap();
        let progress = Progress::new();
        let plays = |builder: Builder| builder.script_in(&script, &Gates::default(), &progress);
        let mut hand = hooked(plays(kept_in(home.path()).session_id(ID))).await;
        hand.prompt("go").await;
        let callback = hand.until("control_request/hook_callback").await;
        hand.answer(&callback, answer("defer")).await;
        hand.until("result/success").await;
        hand.end().await;
        // Another session comes to its own.
        let mut hand = hooked(plays(Agent::builder())).await;
        hand.prompt("go").await;
        let callback = hand.until("control_request/hook_callback").await;
        hand.answer(&callback, answer("allow")).await;
        hand.until("result/success").await;
        hand.end().await;
        if goes_on {
            let mut hand = hooked(plays(resumed(home.path()))).await;
            let callback = hand.until("control_request/hook_callback").await;
            hand.answer(&callback, answer("allow")).await;
            hand.until("result/success").await;
            hand.end().await;
        }
        let flaws = script.judge(&progress, &[]);
        assert_eq!(flaws.is_empty(), goes_on, "{flaws:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_turn_goes_on_where_it_was() {
    let home = tempfile::tempdir().unwrap();
    let prompt = format!("%tool Bash {{\"command\": \"echo 1\"}}\n{TOUCH}\n{TOUCH}\n%say done");
    let deferred = defer(home.path(), &prompt, 1).await;
    let mut hand = hooked(resumed(home.path()).max_turns(2)).await;
    let callback = hand.until("control_request/hook_callback").await;
    hand.answer(&callback, answer("allow")).await;
    // What waits for its turn gets one of its own.
    hand.prompt("%say two").await;
    let callback = hand.until("control_request/hook_callback").await;
    let input = &callback["request"]["input"];
    assert_ne!(input["tool_use_id"], deferred);
    assert!(input["prompt_id"].is_string());
    hand.answer(&callback, answer("allow")).await;
    assert_eq!(hand.until("result/success").await["result"], "done");
    hand.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_of_the_tests_own_is_told_what_was_asked_and_what_came_of_it() {
    let home = tempfile::tempdir().unwrap();
    defer(home.path(), &format!("{TOUCH}\n%say done"), 0).await;
    let (sender, asked) = std::sync::mpsc::channel();
    let brain = move |ask: &ModelRequest| {
        sender.send(ask.clone()).unwrap();
        Reply::say("done by another")
    };
    // Without hooks it is asked about like any other call.
    let builder = kept_in(home.path()).seed(7).resume(ID).brain(brain);
    let mut hand = Hand::new(builder);
    let question = hand.until("control_request/can_use_tool").await;
    hand.answer(&question, json!({"behavior": "allow"})).await;
    assert_eq!(hand.until("result/success").await["result"], "done by another");
    hand.end().await;
    let ask = asked.recv().unwrap();
    assert!(ask.continued && ask.resumed);
    assert_eq!((ask.round, ask.prompt), (1, format!("{TOUCH}\n%say done")));
    assert_eq!(ask.tool_results[0].content, "(Bash completed with no output)");
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_tool_that_is_gone_stays_deferred() {
    let home = tempfile::tempdir().unwrap();
    let id = defer(home.path(), &format!("{TOUCH}\n%say done"), 0).await;
    let mut hand = hooked(resumed(home.path()).disallowed_tools(["Bash"])).await;
    let result = hand.until("result/success").await;
    assert_eq!(result["terminal_reason"], "tool_deferred_unavailable");
    assert_eq!(
        (&result["is_error"], &result["deferred_tool_use"]["id"]),
        (&json!(true), &id)
    );
    let text = result["result"].as_str().unwrap();
    assert!(text.starts_with("Bash isn't available"), "{text}");
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(1));
    assert_eq!(kinds.last().unwrap(), "command_lifecycle/cancelled");
    let mut hand = hooked(resumed(home.path()).seed(8)).await;
    let callback = hand.until("control_request/hook_callback").await;
    assert_eq!(callback["request"]["tool_use_id"], id);
}

#[tokio::test(start_paused = true)]
async fn the_prompt_that_the_cli_gives_itself_can_be_blocked() {
    let home = tempfile::tempdir().unwrap();
    defer(home.path(), &format!("{TOUCH}\n%say done"), 0).await;
    let mut hand = Hand::new(resumed(home.path()).allowed_tools(["Bash"]));
    let hooks = json!({"UserPromptSubmit": [{"matcher": null, "hookCallbackIds": ["h"]}]});
    hand.request(json!({"subtype": "initialize", "hooks": hooks}))
        .await;
    let callback = hand.until("control_request/hook_callback").await;
    let prompt = &callback["request"]["input"]["prompt"];
    assert_eq!(prompt, "Continue from where you left off.");
    hand.answer(&callback, json!({"decision": "block", "reason": "enough"}))
        .await;
    let result = hand.until("result/success").await;
    let text = result["result"].as_str().unwrap();
    assert!(text.contains("blocked by hook:\nenough"), "{text}");
}
