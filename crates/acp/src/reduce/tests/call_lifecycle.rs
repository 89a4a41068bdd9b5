//! The life of a tool call.

use serde_json::{Value, json};

use super::support::Run;

fn event(event: Value) -> Value {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let uuid = NEXT
        .fetch_add(1, std::sync::atomic::Ordering::Relaxed)
        .to_string();
    json!({"type": "stream_event", "event": event, "parent_tool_use_id": null, "uuid": uuid, "session_id": "s"})
}

pub(super) fn begin(id: &str, name: &str) -> Value {
    event(json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}}))
}

pub(super) fn piece(text: &str) -> Value {
    event(
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}),
    )
}

pub(super) fn call(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "assistant", "parent_tool_use_id": null, "uuid": format!("a-{id}"), "session_id": "s",
        "message": {"id": "m", "type": "message", "role": "assistant", "model": "x", "stop_reason": null,
            "content": [{"type": "tool_use", "id": id, "name": name, "input": input}]}})
}

pub(super) fn result(id: &str, text: &str, output: Value, is_error: bool) -> Value {
    json!({"type": "user", "parent_tool_use_id": null, "uuid": format!("r-{id}"), "session_id": "s", "tool_use_result": output,
        "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}]}})
}

#[test]
fn a_call_is_told_of_when_its_target_is_known() {
    let mut run = Run::new();
    run.json(begin("t", "Write"));
    run.json(piece("{\"file_path\": \"/home/user/pro"));
    assert_eq!(run.story(), "");
    run.json(piece("ject/a.txt\", \"content\": \"hel"));
    assert_eq!(
        run.story(),
        "call t Write Edit Pending \"Write a.txt\" @/home/user/project/a.txt []\n"
    );
    run.json(piece("lo\"}"));
    assert_eq!(run.story(), "");
    run.json(call(
        "t",
        "Write",
        json!({"file_path": "/home/user/project/a.txt", "content": "hello"}),
    ));
    assert_eq!(
        run.story(),
        "  call t [diff /home/user/project/a.txt:None None -> \"hello\"] in={\"file_path\":\"/home/user/project/a.txt\"}\n"
    );
}

#[test]
fn a_call_is_told_of_in_time_even_without_its_target() {
    let mut run = Run::new();
    run.json(begin("t", "Read"));
    assert_eq!(
        run.reducer.due(),
        Some(run.now + std::time::Duration::from_millis(150))
    );
    run.wait(149);
    assert_eq!(run.story(), "");
    run.wait(1);
    assert_eq!(run.story(), "call t Read Read Pending \"Read\" []\n");
    assert_eq!(run.reducer.due(), None);
    run.json(piece("{\"file_path\": \"b.txt\""));
    assert_eq!(run.story(), "  call t \"Read b.txt\" @/home/user/project/b.txt\n");
}

#[test]
fn a_call_runs_when_it_is_allowed() {
    let mut run = Run::new();
    let input = json!({"command": "ls"});
    run.json(call("t", "Bash", input.clone()));
    let told = run.story();
    assert!(
        told.starts_with("call t Bash Execute Pending \"ls\" [terminal t] in={\"command\":\"ls\"}\n"),
        "{told}"
    );
    let steps = run.reducer.asked(
        "t",
        "Bash",
        None,
        &outrigger::protocol::RawJson::from(input),
        run.now,
    );
    run.take(steps);
    // While the user is asked, it does not count as running.
    run.wait(60_000);
    assert_eq!(run.story(), "");
    let steps = run.reducer.runs("t");
    run.take(steps);
    assert_eq!(run.story(), "  call t InProgress\n");
    run.json(result(
        "t",
        "hi",
        json!({"stdout": "hi", "stderr": "", "interrupted": false}),
        false,
    ));
    assert_eq!(
        run.story(),
        "  terminal t \"hi\"\n  terminal t exits Some(0) None\n  call t Completed\n"
    );
    // Later frames do not change an ended call.
    run.json(call("t", "Bash", json!({"command": "ls"})));
    let steps = run.reducer.runs("t");
    run.take(steps);
    assert_eq!(run.story(), "");
}

#[test]
fn a_call_that_nobody_asks_about_is_taken_to_run() {
    let mut run = Run::new();
    run.json(call("t", "Bash", json!({"command": "make"})));
    run.json(call("u", "Bash", json!({"command": "make test"})));
    run.story();
    run.wait(249);
    assert_eq!(run.story(), "");
    run.wait(1);
    assert_eq!(run.story(), "  call t InProgress\n");
    run.wait(60_000);
    assert_eq!(run.story(), "");
    run.json(result(
        "t",
        "Exit code 2\nno rule",
        json!("Error: Exit code 2\nno rule"),
        true,
    ));
    run.wait(0);
    assert_eq!(
        run.story(),
        "  terminal t \"no rule\"\n  terminal t exits Some(2) None\n  call t Failed\n  call u InProgress\n"
    );
}

#[test]
fn what_was_asked_about_but_never_told_of_is_told_of_first() {
    let mut run = Run::new();
    let input = outrigger::protocol::RawJson::from(json!({"plan": "# Plan"}));
    run.json(call("t", "ExitPlanMode", json!({})));
    let steps = run.reducer.asked("t", "ExitPlanMode", None, &input, run.now);
    run.take(steps);
    let steps = run.reducer.asked(
        "v",
        "Read",
        None,
        &outrigger::protocol::RawJson::from(json!({"file_path": "x"})),
        run.now,
    );
    run.take(steps);
    assert_eq!(
        run.story(),
        "call t ExitPlanMode SwitchMode Pending \"Approve Plan\" [] in={}\n  call t [\"# Plan\"]\n\
         call v Read Read Pending \"Read x\" @/home/user/project/x [] in={\"file_path\":\"x\"}\n"
    );
}

#[test]
fn a_cancelled_turn_ends_its_calls() {
    let mut run = Run::new();
    run.json(call("t", "Bash", json!({"command": "sleep 9"})));
    run.json(call("a", "Agent", json!({"description": "d", "prompt": "p"})));
    run.json(begin("u", "Read"));
    run.story();
    let steps = run.reducer.cancelled();
    run.take(steps);
    // A call that was not reported needs no end.
    assert_eq!(
        run.story(),
        "  terminal t exits None None\n  call t Cancelled\n  call a Cancelled\n"
    );
    run.json(result("t", "late", Value::Null, false));
    assert_eq!((run.story(), run.reducer.due()), (String::new(), None));
}

#[test]
fn progress_means_that_it_runs() {
    let mut run = Run::new();
    run.json(call(
        "t",
        "WebFetch",
        json!({"url": "https://e.x", "prompt": "p"}),
    ));
    run.story();
    let beat = |id: &str, parent: Option<&str>, heartbeat: Option<bool>, uuid: &str| {
        json!({"type": "tool_progress", "tool_use_id": id, "tool_name": "WebFetch", "parent_tool_use_id": parent,
            "elapsed_time_seconds": 30, "heartbeat": heartbeat, "uuid": uuid, "session_id": "s"})
    };
    run.json(beat("t", None, None, "1"));
    run.json(beat("t-heartbeat-1", Some("t"), Some(true), "2"));
    assert_eq!(run.story(), "  call t InProgress\n  call t 30 s\n  call t 30 s\n");
}

#[test]
fn the_plan_takes_the_place_of_the_calls_that_make_it() {
    let mut run = Run::new();
    let todos = json!({"todos": [
        {"content": "CallView", "status": "completed", "activeForm": "Looking"},
        {"content": "Jump", "status": "in_progress", "activeForm": "Jumping"}]});
    run.json(call("t", "TodoWrite", todos.clone()));
    run.json(result("t", "Todos have been modified", Value::Null, false));
    run.json(call("u", "TodoWrite", todos));
    assert_eq!(run.story(), "plan [Completed] CallView, [InProgress] Jumping\n");
    assert_eq!(run.reducer.due(), None);

    run.json(call(
        "c",
        "TaskCreate",
        json!({"subject": "Rest", "description": "d", "activeForm": "Resting"}),
    ));
    run.json(result(
        "c",
        "created",
        json!({"task": {"id": "1", "subject": "Rest"}}),
        false,
    ));
    run.json(call(
        "d",
        "TaskUpdate",
        json!({"taskId": "1", "status": "in_progress"}),
    ));
    run.json(result(
        "d",
        "updated",
        json!({"success": true, "taskId": "1", "updatedFields": ["status"]}),
        false,
    ));
    run.json(call(
        "e",
        "TaskUpdate",
        json!({"taskId": "1", "status": "deleted"}),
    ));
    run.json(result(
        "e",
        "updated",
        json!({"success": true, "taskId": "1", "updatedFields": ["status"]}),
        false,
    ));
    assert_eq!(
        run.story(),
        "plan [Pending] Rest\nplan [InProgress] Resting\nplan \n"
    );
}

#[test]
fn a_plan_stays_although_the_question_about_it_comes_without_it() {
    let mut run = Run::new();
    run.json(call("t", "ExitPlanMode", json!({"plan": "# Plan"})));
    assert!(run.story().contains("# Plan"));
    let empty = outrigger::protocol::RawJson::from(json!({}));
    let steps = run.reducer.asked("t", "ExitPlanMode", None, &empty, run.now);
    run.take(steps);
    assert_eq!(run.story(), "");
}

/// The result of a call that did not run.
fn not_run(id: &str, text: &str, meta: Value) -> Value {
    let mut line = result(id, text, json!(format!("Error: {text}")), true);
    let mut meta = meta;
    meta["id"] = json!(id);
    line["tool_result_meta"] = json!([meta]);
    line
}

/// The CLI's text for the model when the user stops a call.
const STOP: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, \
    the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.";

#[test]
fn what_the_model_is_told_of_a_stopped_call_is_not_shown() {
    let mut run = Run::new();
    run.json(call("t", "Bash", json!({"command": "sleep 9"})));
    run.json(call("p", "ExitPlanMode", json!({"plan": "# Plan"})));
    run.story();
    run.json(not_run("t", STOP, json!({"non_execution_kind": "user-rejected"})));
    run.json(not_run("p", STOP, json!({"non_execution_kind": "user-rejected"})));
    assert_eq!(
        run.story(),
        "  terminal t exits None None\n  call t Cancelled\n  call p Cancelled\n"
    );
}

#[test]
fn a_rejected_plan_fails_although_its_turn_is_stopped() {
    let input = outrigger::protocol::RawJson::encode(&json!({"plan": "# Plan"})).unwrap();
    let asked = || {
        let mut run = Run::new();
        run.json(call("p", "ExitPlanMode", json!({"plan": "# Plan"})));
        let steps = run.reducer.asked("p", "ExitPlanMode", None, &input, run.now);
        run.take(steps);
        run.story();
        run.reducer.rejected("p");
        run
    };
    let mut run = asked();
    run.json(not_run("p", STOP, json!({"non_execution_kind": "user-rejected"})));
    assert_eq!(run.story(), "  call p Failed\n");
    // Without a result, the end of the turn ends it in the same way.
    let mut run = asked();
    let steps = run.reducer.cancelled();
    run.take(steps);
    assert_eq!(run.story(), "  call p Failed\n");
}

#[test]
fn a_change_that_was_refused_stays_on_the_screen() {
    let mut run = Run::new();
    let edit = json!({"file_path": "/home/user/project/a", "old_string": "x", "new_string": "y"});
    let diff = "diff /home/user/project/a:None Some(\"x\") -> \"y\"";
    let by = |source: &str| {
        json!({"non_execution_kind": "permission-rule",
            "permission_decision": {"decision": "reject", "source": source}})
    };
    run.json(call("t", "Edit", edit.clone()));
    assert!(run.story().contains(diff));
    run.json(not_run(
        "t",
        "User refused permission to run tool",
        by("user_reject"),
    ));
    assert_eq!(run.story(), "  call t Failed\n");
    // The rule gives a reason.
    run.json(call("u", "Edit", edit));
    run.story();
    run.json(not_run("u", "No edits on Sundays.", by("config")));
    assert_eq!(
        run.story(),
        format!("  call u Failed [{diff}, \"```\\nNo edits on Sundays.\\n```\"]\n")
    );
}
