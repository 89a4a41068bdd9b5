//! Each assertion holds of what is right, and says of what is wrong what it is.

use serde_json::{Value, json};

use super::*;
use crate::peer::Line;

fn use_of(id: &str, name: &str, input: Value, parent: Value) -> Line {
    let content = json!([{"type": "tool_use", "id": id, "name": name, "input": input}]);
    Line::new(
        false,
        json!({"type": "assistant", "parent_tool_use_id": parent, "message": {"content": content}}),
    )
}

fn result_of(id: &str, is_error: bool) -> Line {
    let content = json!([{"type": "tool_result", "tool_use_id": id, "content": "x", "is_error": is_error}]);
    Line::new(false, json!({"type": "user", "message": {"content": content}}))
}

fn ask(id: &str, tool: &str) -> Line {
    let request = json!({"subtype": "can_use_tool", "tool_name": tool, "input": {"command": "ls"}});
    Line::new(
        false,
        json!({"type": "control_request", "request_id": id, "request": request}),
    )
}

fn answer(id: &str, response: Value) -> Line {
    let response = json!({"subtype": "success", "request_id": id, "response": response});
    Line::new(true, json!({"type": "control_response", "response": response}))
}

fn conversation() -> Trace {
    Trace::new([
        Line::new(true, json!({"type": "user"})),
        use_of("t1", "Task", json!({"prompt": "look"}), json!(null)),
        use_of("t2", "Bash", json!({"command": "ls", "timeout": 5}), json!("t1")),
        // The same block again.
        use_of("t2", "Bash", json!({"command": "ls", "timeout": 5}), json!("t1")),
        ask("q1", "Bash"),
        answer("q1", json!({"behavior": "deny", "message": "no"})),
        result_of("t2", true),
        result_of("t1", false),
        ask("q2", "Write"),
        Line::new(
            false,
            json!({"type": "control_cancel_request", "request_id": "q2"}),
        ),
        ask("q3", "Read"),
        answer("q3", json!({"behavior": "allow", "updatedInput": {}})),
        Line::new(
            false,
            json!({"type": "result", "num_turns": 2, "total_cost_usd": 0.25}),
        ),
        Line::new(
            false,
            json!({"type": "result", "num_turns": 1, "total_cost_usd": 0.5}),
        ),
    ])
}

fn wrong(result: Result<(), Violation>, what: &str) {
    let violation = result.expect_err(what);
    assert!(violation.what.contains(what), "{violation}");
}

#[test]
fn calls_of_tools() {
    let trace = conversation();
    trace.called(["Task", "Bash"]).unwrap();
    trace
        .called([
            tool("Task").succeeded().in_main(),
            tool("Bash")
                .input(json!({"command": "ls"}))
                .failed()
                .in_subagent(),
        ])
        .unwrap();
    wrong(trace.called(["Task"]), "Bash was called, which was not expected");
    wrong(
        trace.called(["Task", "Bash", "Read"]),
        "tool call 3: expected Read, and there were no more",
    );
    wrong(
        trace.called(["Bash", "Task"]),
        "tool call 1: expected Bash, and it is Task",
    );
    wrong(
        trace.called([tool("Task").failed()]),
        "which fails, and it is Task: it succeeded",
    );
    wrong(
        trace.called([tool("Task").in_subagent()]),
        "no subagent called it",
    );
    wrong(
        trace.called([tool("Task").input(json!({"prompt": "run"}))]),
        "its input is {\"prompt\":\"look\"}",
    );
    let calls = trace.tool_calls();
    assert_eq!(
        (calls[1].parent.as_deref(), calls[1].is_error),
        (Some("t1"), true)
    );
}

#[test]
fn a_reply_that_the_cli_does_not_understand_allows_nothing() {
    for (reply, allows) in [
        (json!({"behavior": "allow"}), true),
        (json!({"behavior": "allow", "updatedInput": null}), false),
        (json!({"behavior": "allow", "updatedInput": "ls"}), false),
    ] {
        let trace = Trace::new([ask("q", "Bash"), answer("q", reply)]);
        assert_eq!(trace.asked([question("Bash").allowed()]).is_ok(), allows);
        assert_eq!(trace.asked([question("Bash").denied()]).is_ok(), !allows);
    }
}

#[test]
fn questions_and_answers() {
    let trace = conversation();
    trace
        .asked([
            question("Bash").input(json!({"command": "ls"})).denied(),
            question("Write").withdrawn(),
            question("Read").allowed(),
        ])
        .unwrap();
    wrong(
        trace.asked(["Bash"]),
        "asked for \"Write\", which was not expected",
    );
    wrong(
        trace.asked([question("Bash").allowed()]),
        "it was answered with {\"behavior\":\"deny\"",
    );
    wrong(
        trace.asked([question("Bash"), question("Write").denied()]),
        "the CLI took it back",
    );
    wrong(
        trace.asked(["Bash", "Write", "Read", "Edit"]),
        "question 4: expected Edit, and there were no more",
    );
    assert_eq!(trace.asks().len(), 3);
}

#[test]
fn bounds() {
    let trace = conversation();
    trace.cost_below(0.51).unwrap();
    wrong(trace.cost_below(0.5), "it cost $0.5");
    trace.turns_below(4).unwrap();
    wrong(trace.turns_below(3), "3 turns, which is not below 3");
    wrong(Trace::default().cost_below(1.0), "no result tells");
    wrong(Trace::default().turns_below(1), "no result tells");
}

#[test]
fn answers_in_both_directions() {
    conversation().all_answered().unwrap();
    let mut lines = conversation().lines().to_vec();
    lines.push(ask("q9", "Bash"));
    wrong(
        Trace::new(lines).all_answered(),
        "the CLI's control_request/can_use_tool \"q9\" was never answered",
    );
    let request = json!({"type": "control_request", "request_id": "q1", "request": {"subtype": "interrupt"}});
    let mine = Trace::new([Line::new(true, request), answer("q1", json!({}))]);
    // An answer of the client is none to its own request.
    wrong(
        mine.all_answered(),
        "the client's control_request/interrupt \"q1\" was never answered",
    );
}

#[test]
fn unknown_frames_and_the_neighbourhood() {
    let line = |text: &'static str| (false, text);
    Trace::of_text([line(r#"{"type":"keep_alive"}"#)])
        .nothing_unknown()
        .unwrap();
    wrong(
        Trace::of_text([line(r#"{"type":"unheard_of"}"#)]).nothing_unknown(),
        "unheard_of",
    );
    wrong(
        Trace::of_text([line("noise")]).nothing_unknown(),
        "does not decode",
    );
    let mut lines = vec![line(r#"{"type":"keep_alive"}"#); 10];
    lines.insert(5, line(r#"{"type":"result","subtype":7}"#));
    let violation = Trace::of_text(lines).nothing_unknown().unwrap_err();
    let expected = [
        "    … 2 lines before",
        "       3 CLI    keep_alive  {\"type\":\"keep_alive\"}",
        "       4 CLI    keep_alive  {\"type\":\"keep_alive\"}",
        "       5 CLI    keep_alive  {\"type\":\"keep_alive\"}",
        "  >    6 CLI    result  {\"type\":\"result\",\"subtype\":7}",
        "       7 CLI    keep_alive  {\"type\":\"keep_alive\"}",
        "       8 CLI    keep_alive  {\"type\":\"keep_alive\"}",
        "       9 CLI    keep_alive  {\"type\":\"keep_alive\"}",
        "    … 2 lines more",
    ];
    assert_eq!(violation.around, expected.join("\n"));
}

#[cfg(target_os = "linux")]
#[test]
fn processes_that_are_left() {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;
    use std::time::Duration;

    let mut shell = Command::new("/bin/sh")
        .args(["-c", "sleep 1000 & wait"])
        .process_group(0)
        .spawn()
        .unwrap();
    let pid = shell.id();
    while living_of(pid).len() < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let left = no_process_left(pid, Duration::ZERO).unwrap_err();
    assert!(left.contains("sleep 1000"), "{left}");
    // The shell alone; its child is still of its group.
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert!(no_process_left(pid, Duration::from_millis(20)).is_err());
    let group = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    no_process_left(pid, Duration::from_secs(30)).unwrap();
}

#[test]
fn a_cassette_is_a_conversation() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cassettes/session.ndjson");
    let trace = Trace::from_file(path).unwrap();
    trace.called([tool("Bash")]).unwrap();
    trace.asked([question("Bash").allowed()]).unwrap();
    trace.all_answered().unwrap();
    trace.nothing_unknown().unwrap();
    trace.cost_below(1.0).unwrap();
    assert!(trace.called([tool("Read")]).is_err());
    // A conversation that was cut off has a question without an answer.
    let cassette = crate::cassette::Cassette::read(path).unwrap();
    let mut cut = cassette.clone();
    let asked = cut.events.iter().position(|event| {
        matches!(&event.what, crate::cassette::What::Out(said, _) if said.kind() == "control_request/can_use_tool")
    });
    cut.events.truncate(asked.unwrap() + 1);
    let error = Trace::from(&cut).all_answered().unwrap_err().to_string();
    assert!(error.contains("can_use_tool"), "{error}");
    assert!(Trace::from_file("/no/such/file").is_err());
}
