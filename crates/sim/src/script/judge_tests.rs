//! Each thing that an assertion can say holds of what fits it, and is told of what does not.

use serde_json::{Value, json};

use super::*;
use crate::script::error::parse;

fn of_cli(json: Value) -> Line {
    Line::new(false, json)
}

fn of_client(json: Value) -> Line {
    Line::new(true, json)
}

fn asks(id: &str, request: Value) -> Line {
    of_cli(json!({"type": "control_request", "request_id": id, "request": request}))
}

fn answers(id: &str, response: Value) -> Line {
    let response = json!({"subtype": "success", "request_id": id, "response": response});
    of_client(json!({"type": "control_response", "response": response}))
}

fn fails(id: &str) -> Line {
    let response = json!({"subtype": "error", "request_id": id, "error": "no such thing"});
    of_client(json!({"type": "control_response", "response": response}))
}

fn question() -> Line {
    asks(
        "q",
        json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}}),
    )
}

fn result(text: &str, is_error: bool) -> Line {
    let block = json!({"type": "tool_result", "tool_use_id": "t", "content": text, "is_error": is_error});
    of_cli(json!({"type": "user", "message": {"content": [block]}}))
}

/// An assertion, what fits it, what does not, and what is said of that.
type Case = (&'static str, Vec<Line>, Vec<Line>, &'static str);

fn cases() -> Vec<Case> {
    let allow = || {
        answers(
            "q",
            json!({"behavior": "allow", "updatedInput": {"command": "pwd"}}),
        )
    };
    let deny = || answers("q", json!({"behavior": "deny", "message": "not today"}));
    let half_allow = || answers("q", json!({"behavior": "allow", "updatedInput": null}));
    let half_deny = || answers("q", json!({"behavior": "deny"}));
    let withdraws = |id: &str| of_cli(json!({"type": "control_cancel_request", "request_id": id}));
    let hook = || asks("h", json!({"subtype": "hook_callback"}));
    let mcp = || asks("m", json!({"subtype": "mcp_message"}));
    let interrupt = || of_client(json!({"type": "control_request", "request": {"subtype": "interrupt"}}));
    let prompt = || of_client(json!({"type": "user"}));
    vec![
        (
            "permission: allowed",
            vec![question(), allow()],
            vec![question(), deny()],
            "but it was denied",
        ),
        (
            "permission: denied",
            vec![question(), deny()],
            vec![question(), allow()],
            "but it was allowed",
        ),
        (
            "permission: failed",
            vec![question(), fails("q")],
            vec![question(), deny()],
            "but it was denied",
        ),
        (
            "permission: denied",
            vec![question(), deny()],
            vec![question(), fails("q")],
            "but it was not decided",
        ),
        (
            "permission: denied",
            vec![question(), deny()],
            vec![question()],
            "but none was answered",
        ),
        (
            "permission: failed",
            vec![question(), half_allow()],
            vec![question(), allow()],
            "but it was allowed",
        ),
        (
            "permission: failed",
            vec![question(), half_deny()],
            vec![question(), deny()],
            "but it was denied",
        ),
        (
            "permission: allowed",
            vec![question(), allow(), deny()],
            vec![question(), half_allow(), allow()],
            "but it was not decided",
        ),
        (
            "permission: allowed",
            vec![question(), allow(), withdraws("q")],
            vec![question(), withdraws("q"), allow()],
            "but none was answered",
        ),
        (
            "updated_input: {command: pwd}",
            vec![question(), allow()],
            vec![question(), deny()],
            "the updated input does not fit",
        ),
        (
            "updated_input: {}",
            vec![question(), allow()],
            vec![question()],
            "no question about a tool was answered",
        ),
        (
            "message: not today",
            vec![question(), deny()],
            vec![
                question(),
                answers("q", json!({"behavior": "deny", "message": "never"})),
            ],
            "but it says \"never\"",
        ),
        (
            "message: {contains: today}",
            vec![question(), deny()],
            vec![],
            "expected a denial",
        ),
        (
            "hook: {continue: true}",
            vec![hook(), answers("h", json!({"continue": true}))],
            vec![hook(), answers("h", json!({"continue": false}))],
            "the hook's answer does not fit",
        ),
        (
            "hook: {}",
            vec![hook(), answers("h", json!({}))],
            vec![question(), allow()],
            "expected the hook's answer, but there is none",
        ),
        (
            "hook: {a: 1}",
            vec![hook(), answers("h", json!({"a": 1})), answers("h", json!({}))],
            vec![hook(), withdraws("h"), answers("h", json!({"a": 1}))],
            "expected the hook's answer, but there is none",
        ),
        (
            "hook: {}",
            vec![hook(), answers("h", json!({}))],
            vec![hook(), fails("h")],
            "but it is an error: \"no such thing\"",
        ),
        (
            "mcp: {result: 1}",
            vec![mcp(), answers("m", json!({"mcp_response": {"result": 1}}))],
            vec![mcp(), answers("m", json!({"mcp_response": {"result": 2}}))],
            "the MCP server's answer does not fit",
        ),
        (
            "answer: {behavior: deny}",
            vec![question(), deny()],
            vec![question(), allow()],
            "the client's answer does not fit",
        ),
        (
            "requests: {interrupt: 1}",
            vec![interrupt()],
            vec![interrupt(), interrupt()],
            "expected 1 control requests `interrupt`, but 2 came",
        ),
        (
            "prompts: 2",
            vec![prompt(), prompt()],
            vec![prompt(), result("x", false)],
            "expected 2 prompts, but 1 came",
        ),
        (
            "received: {type: user}",
            vec![interrupt(), prompt()],
            vec![result("x", false)],
            "no line of the client fits",
        ),
    ]
}

/// Three processes of two sessions, with the same ids: the first leaves a call open, and the last goes on with its session.
#[test]
fn a_call_has_its_result_from_the_process_that_goes_on_with_its_session() {
    let in_session = |session: &str, mut line: Line| {
        line.json["session_id"] = json!(session);
        line
    };
    let call = || {
        let block = json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {}});
        of_cli(json!({"type": "assistant", "message": {"content": [block]}}))
    };
    let first = [in_session("a", call())];
    let other = [in_session("b", call()), in_session("b", result("x", true))];
    let last = [in_session("a", result("x", false))];
    let played = [&first[..], &other, &last].map(|lines| Played { lines, ended: true });
    let failed = |played| {
        calls_of(played)
            .iter()
            .map(|call| call.failed)
            .collect::<Vec<_>>()
    };
    assert_eq!(failed(&played), [Some(false), Some(true)]);
    assert_eq!(failed(&played[..2]), [None, Some(true)]);
}

#[test]
fn a_result_is_judged_by_its_text_and_by_how_it_ended() {
    for (text, right, wrong, said) in [
        (
            "result: ok",
            ("ok", false),
            Some(("ko", false)),
            "but it is \"ko\"",
        ),
        ("result: ok", ("ok", true), None, "expected the result of a tool"),
        (
            "is_error: true",
            ("x", true),
            Some(("x", false)),
            "to be a failure",
        ),
        (
            "is_error: false",
            ("x", false),
            Some(("x", true)),
            "to be no failure",
        ),
    ] {
        let assert: Assert = parse(text).unwrap();
        assert_eq!(super::result(&assert, Some(right)), Ok(()), "{text}");
        let flaw = super::result(&assert, wrong).unwrap_err();
        assert!(flaw.contains(said), "{text}: {flaw}");
    }
}

#[test]
fn an_assertion_holds_of_what_fits_and_is_told_of_what_does_not() {
    for (text, right, wrong, said) in cases() {
        let assert: Assert = parse(text).unwrap();
        assert_eq!(check(&assert, &right), None, "{text}");
        let flaw = check(&assert, &wrong).unwrap_or_else(|| panic!("{text} holds of {wrong:?}"));
        assert!(flaw.contains(said), "{text}: {flaw}");
    }
}
