//! Background work: its call stays open, its output is followed, and its end is the real one.

use serde_json::{Value, json};

use super::call_lifecycle::{call, result};
use super::support::Run;

const SENTENCE: &str = "Command running in background with ID: b1. Output is being written to: /tmp/t/b1.output. You will be notified";

fn launched(id: &str) -> Value {
    let output = json!({"stdout": "", "stderr": "", "interrupted": false, "backgroundTaskId": "b1"});
    result(id, SENTENCE, output, false)
}

fn system(subtype: &str, more: Value) -> Value {
    let mut frame = json!({"type": "system", "subtype": subtype, "session_id": "s",
        "uuid": format!("{subtype}{more}")});
    frame
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    frame
}

fn ended(status: &str, summary: &str) -> Value {
    system(
        "task_notification",
        json!({"task_id": "b1", "tool_use_id": "t", "status": status,
        "output_file": "/tmp/t/b1.output", "summary": summary}),
    )
}

fn turn_over(reason: &str) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "duration_ms": 1, "duration_api_ms": 1, "num_turns": 1,
        "terminal_reason": reason, "total_cost_usd": 0.5, "usage": {"input_tokens": 1, "output_tokens": 1},
        "modelUsage": {}, "permission_denials": [], "uuid": reason, "session_id": "s"})
}

#[test]
fn a_command_is_followed_to_its_end() {
    let mut run = Run::new();
    run.json(call("t", "Bash", json!({"command": "make"})));
    run.json(launched("t"));
    run.json(turn_over("completed"));
    let told = run.story();
    assert!(
        told.contains("! tail t /tmp/t/b1.output\n") && !told.contains("Completed"),
        "{told}"
    );
    assert!(!told.contains("Command running"), "{told}");
    let going = crate::reduce::BackgroundCall {
        call: "t".into(),
        is_terminal: true,
    };
    assert_eq!(run.reducer.background(), [going]);
    let steps = run.reducer.tailed("t", b"one\n".to_vec());
    run.take(steps);
    run.json(ended(
        "failed",
        "Background command \"make\" failed with exit code 2",
    ));
    assert_eq!(run.story(), "  terminal t live \"one\\n\"\n! untail t\n");
    let steps = run.reducer.tailed("t", b"two\n".to_vec());
    run.take(steps);
    let steps = run.reducer.tail_ended("t");
    run.take(steps);
    assert_eq!(
        run.story(),
        "  terminal t live \"two\\n\"\n  terminal t exits Some(2) None\n  call t Failed\n"
    );
    let steps = run.reducer.tail_ended("t");
    run.take(steps);
    run.json(ended("completed", "again"));
    assert_eq!(
        (run.story(), run.reducer.background()),
        (String::new(), Vec::new())
    );
}

#[test]
fn a_tail_that_never_ends_is_not_waited_for() {
    let mut run = Run::new();
    run.json(call("t", "Bash", json!({"command": "make"})));
    run.json(launched("t"));
    run.json(ended(
        "completed",
        "Background command \"make\" completed (exit code 0)",
    ));
    run.story();
    run.wait(1999);
    assert_eq!(run.story(), "");
    run.wait(1);
    assert_eq!(
        run.story(),
        "  terminal t exits Some(0) None\n  call t Completed\n"
    );
}

#[test]
fn an_end_that_overtakes_the_launch_counts() {
    let mut run = Run::new();
    run.json(call("t", "Bash", json!({"command": "true"})));
    run.json(ended(
        "completed",
        "Background command \"true\" completed (exit code 0)",
    ));
    run.json(launched("t"));
    let steps = run.reducer.tail_ended("t");
    run.take(steps);
    let told = run.story();
    assert!(
        told.ends_with("! untail t\n  terminal t exits Some(0) None\n  call t Completed\n"),
        "{told}"
    );
}

#[test]
fn a_command_in_the_foreground_ends_with_its_result() {
    let mut run = Run::new();
    run.json(call("t", "Bash", json!({"command": "sleep 3"})));
    run.json(system(
        "task_started",
        json!({"task_id": "b1", "tool_use_id": "t", "description": "d", "is_backgrounded": false,
        "task_type": "local_bash"}),
    ));
    run.json(system(
        "task_notification",
        json!({"task_id": "b1", "tool_use_id": "t", "status": "completed",
        "output_file": "", "summary": "d"}),
    ));
    let told = run.story();
    assert!(told.ends_with("  call t InProgress\n"), "{told}");
    run.json(result(
        "t",
        "x",
        json!({"stdout": "x", "stderr": "", "interrupted": false}),
        false,
    ));
    assert_eq!(
        run.story(),
        "  terminal t \"x\"\n  terminal t exits Some(0) None\n  call t Completed\n"
    );
}

#[test]
fn when_the_cli_dies_so_does_the_background() {
    let mut run = Run::new();
    run.json(call("t", "Bash", json!({"command": "make"})));
    run.json(launched("t"));
    run.story();
    let steps = run.reducer.cancelled();
    run.take(steps);
    assert_eq!(run.story(), "");
    let steps = run.reducer.died();
    run.take(steps);
    assert_eq!(
        run.story(),
        "  terminal t exits None None\n  call t Failed\n! untail t\n"
    );
}

#[test]
fn what_an_agent_in_the_background_calls_outlives_the_turn() {
    let mut run = Run::new();
    run.json(call("t", "Agent", json!({"description": "d", "prompt": "p"})));
    let output = json!({"status": "async_launched", "agentId": "b1", "description": "d", "prompt": "p", "outputFile": "/t/b1.output"});
    run.json(result(
        "t",
        "Async agent launched successfully. (This tool result is internal metadata)",
        output,
        false,
    ));
    let mut nested = call("n", "Bash", json!({"command": "ls"}));
    nested["parent_tool_use_id"] = json!("t");
    run.json(nested);
    let mut words = call("x", "Read", json!({}));
    words["parent_tool_use_id"] = json!("t");
    words["message"]["content"] = json!([{"type": "text", "text": "the answer"}]);
    run.json(words);
    run.story();
    run.json(turn_over("completed"));
    assert_eq!(run.story(), "");
    run.json(ended("completed", "not the report"));
    assert_eq!(run.story(), "  call t Completed [\"the answer\"]\n");
}
