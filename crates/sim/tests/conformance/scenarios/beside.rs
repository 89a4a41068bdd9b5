//! Several calls in one response, of which the next ones begin while an earlier one still runs.

use serde_json::{Map, Value, json};

use super::{calc, nothing};
use crate::scenario::{Reply, Scenario};

const ADD: &str = r#"%tool mcp__calc__add {"a": 2, "b": 3}"#;
const ADD_TOO: &str = r#"%+tool mcp__calc__add {"a": 4, "b": 5}"#;
const READ: &str = r#"%+tool Read {"file_path": "x.txt"}"#;
const WRITE: &str = r#"%+tool Write {"file_path": "y.txt", "content": "y"}"#;
/// Parts of the calls' inputs.
const FIRST: &str = "\"a\":2";
const SECOND: &str = "\"a\":4";

const CALL: &str = "control_request/mcp_message/tools/call";
/// A call in a response.
const TOLD: &str = "assistant/tool_use";
const ASK: &str = "control_request/can_use_tool";
const BEFORE: &str = "control_request/hook_callback/PreToolUse";
const BEHIND: &str = "control_request/hook_callback/PostToolUse";
const RESULT: &str = "user/tool_result";

/// A server that leaves the calls of its tools open. They change nothing.
fn reading(request: &Value) -> Option<Reply> {
    let Some(Reply::Payload(mut payload)) = changing(request) else {
        return None;
    };
    if let Some(tool) = payload.pointer_mut("/mcp_response/result/tools/0") {
        tool["annotations"] = json!({"readOnlyHint": true});
    }
    Some(Reply::Payload(payload))
}

/// The same, of which nothing is known but that.
fn changing(request: &Value) -> Option<Reply> {
    let is_call = request["message"]["method"] == "tools/call";
    (!is_call).then(|| calc(request))?
}

/// The answer of the server.
fn sum(text: &str) -> Value {
    json!({"mcp_response": {"jsonrpc": "2.0", "result": {"content": [{"type": "text", "text": text}]}}})
}

fn allowed() -> Value {
    json!({"behavior": "allow"})
}

fn question(text: &str) -> Value {
    let option = |label| json!({"label": label, "description": "or not"});
    json!({"questions": [{"question": text, "header": "Q", "options": [option("Yes"), option("No")]}]})
}

/// An agent that is waited for.
fn agent(description: &str, steps: &str) -> String {
    let input = json!({
        "description": description, "prompt": steps, "subagent_type": "general-purpose", "run_in_background": false,
    });
    format!("%+tool Agent {input}")
}

/// The first call of a response.
fn first(call: &str) -> String {
    call.replacen("%+tool", "%tool", 1)
}

/// A host with hooks for these events.
fn hooked(name: &str, events: &[&str], servers: &[&str]) -> Scenario {
    let hooks = events.iter();
    let hooks: Map<String, Value> = hooks
        .map(|event| ((*event).to_owned(), json!([{"hookCallbackIds": [event]}])))
        .collect();
    Scenario::with_initialize(name, json!({"hooks": hooks, "sdkMcpServers": servers}))
        .file("x.txt", "one\n")
        .file("../outside.txt", "out\n")
}

/// A host without a server.
fn plain(name: &str) -> Scenario {
    hooked(name, &[], &[])
}

/// A host whose server answers when the scenario says so.
fn served(name: &str, events: &[&str]) -> Scenario {
    hooked(name, events, &["calc"])
        .answer("mcp_message", reading)
        .flags("--allowedTools mcp__calc__add")
}

pub(super) fn beside() -> Vec<Scenario> {
    let adds = format!("{ADD}\n{ADD_TOO}\n%say done");
    let both = |name: &str, events: &[&str]| served(name, events).prompt(&adds).until(CALL).until(CALL);
    let second_first = |scenario: Scenario| {
        scenario
            .answer_open(SECOND, sum("9"))
            .until(RESULT)
            .answer_open(FIRST, sum("5"))
            .until("result")
    };
    let outside = r#"%+tool Read {"file_path": "../outside.txt"}"#;
    vec![
        second_first(both("calls_of_a_server_beside", &[])),
        second_first(
            both("calls_of_a_server_beside_with_hooks", &["PreToolUse", "PostToolUse", "PostToolBatch"])
                .answer("hook_callback", nothing),
        ),
        served("calls_of_a_server_that_changes_things", &[])
            .answer("mcp_message", changing)
            .prompt(&adds)
            .until(CALL)
            .answer_open(FIRST, sum("5"))
            .until(CALL)
            .answer_open(SECOND, sum("9"))
            .until("result"),
        served("a_change_between_calls", &[])
            .prompt(&format!("{ADD}\n%+tool Bash {{\"command\": \"touch a\"}}\n{ADD_TOO}\n{READ}\n%say done"))
            .until(CALL)
            .until("assistant/tool_use")
            .until("assistant/tool_use")
            .until("assistant/tool_use")
            .answer_open(FIRST, sum("5"))
            .until(ASK)
            .answer_open("touch a", allowed())
            .until(CALL)
            .answer_open(SECOND, sum("9"))
            .until("result"),
        plain("commands_beside").turn(&format!(
            "%tool Bash {{\"command\": \"sleep 1; echo a\"}}\n{}\n%say done",
            r#"%+tool Bash {"command": "cat none.txt"}"#
        )),
        plain("a_file_is_written_between").flags("--permission-mode acceptEdits").turn(&format!(
            "%tool Bash {{\"command\": \"sleep 1; echo a\"}}\n{WRITE}\n{}\n%say done",
            r#"%+tool Read {"file_path": "y.txt"}"#
        )),
        plain("two_questions_about_files")
            .prompt(&format!("{}\n%+tool Read {{\"file_path\": \"../none.txt\"}}\n%say done", first(outside)))
            .until(ASK)
            .until(ASK)
            .answer_open("none.txt", allowed())
            .until(RESULT)
            .answer_open("outside.txt", allowed())
            .until("result"),
        hooked("two_questions_about_a_server", &[], &["calc"])
            .answer("mcp_message", reading)
            .prompt(&adds)
            .until(ASK)
            .until(ASK)
            .answer_open(SECOND, allowed())
            .until(CALL)
            .answer_open(SECOND, sum("9"))
            .until(RESULT)
            .answer_open(FIRST, allowed())
            .until(CALL)
            .answer_open(FIRST, sum("5"))
            .until("result"),
        plain("two_questions_and_their_state")
            .variable("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1")
            .prompt(&format!("{}\n%+tool Read {{\"file_path\": \"../none.txt\"}}\n%say done", first(outside)))
            .until(ASK)
            .until(ASK)
            .answer_open("outside.txt", allowed())
            .until(RESULT)
            .answer_open("none.txt", allowed())
            .until("result"),
        plain("two_questions_of_the_model")
            .prompt(&format!(
                "%tool AskUserQuestion {}\n%+tool AskUserQuestion {}\n%say done",
                question("One?"),
                question("Two?")
            ))
            .until(ASK)
            .until(ASK)
            .answer_open("One?", allowed())
            .until(RESULT)
            .answer_open("Two?", allowed())
            .until("result"),
        served("hooks_that_take_their_time", &["PreToolUse", "PostToolUse"])
            .prompt(&adds)
            .until(BEFORE)
            .until(BEFORE)
            .answer_open(SECOND, json!({}))
            .until(CALL)
            .answer_open(SECOND, sum("9"))
            .until(BEHIND)
            .answer_open(SECOND, json!({"systemMessage": "behind"}))
            .until("system/informational")
            .answer_open(FIRST, json!({"systemMessage": "before"}))
            .until(CALL)
            .answer_open(FIRST, sum("5"))
            .until(BEHIND)
            .answer_open(FIRST, json!({}))
            .until("result"),
        served("a_hook_denies_one_of_two", &["PreToolUse"])
            .prompt(&adds)
            .until(BEFORE)
            .until(BEFORE)
            .answer_open(FIRST, json!({}))
            .until(CALL)
            .answer_open(
                SECOND,
                json!({"hookSpecificOutput": {
                    "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no",
                }}),
            )
            .until(RESULT)
            .answer_open(FIRST, sum("5"))
            .until("result"),
        second_first(both("a_hook_stops_one_of_two", &["PreToolUse"]).answer("hook_callback", |request| {
            let stops = request["input"]["tool_input"]["a"] == 4;
            Some(Reply::Payload(json!({"continue": !stops, "stopReason": "enough"})))
        })),
        both("one_of_two_fails", &[])
            .answer_open(SECOND, json!({"mcp_response": {"jsonrpc": "2.0", "error": {"code": -32000, "message": "no"}}}))
            .until(RESULT)
            .answer_open(FIRST, sum("5"))
            .until("result"),
        both("interrupted_while_one_of_two_runs", &[])
            .answer_open(SECOND, sum("9"))
            .until(RESULT)
            .control(json!({"subtype": "interrupt"}))
            .until("result"),
        served("interrupted_while_others_wait", &[])
            .prompt(&format!("{ADD}\n{ADD_TOO}\n{WRITE}\n{READ}\n%say done"))
            // All of the response has come when it is interrupted.
            .until_each(&[CALL, CALL, TOLD, TOLD, TOLD, TOLD])
            .control(json!({"subtype": "interrupt"}))
            .until("result"),
        served("interrupted_by_the_answer_about_another", &[])
            .prompt(&format!("{ADD}\n{outside}\n{WRITE}\n%say done"))
            .until(CALL)
            .until(ASK)
            .answer_open("outside.txt", json!({"behavior": "deny", "message": "no", "interrupt": true}))
            .until("result"),
        served("interrupted_behind_a_call", &[])
            .flags("--include-partial-messages")
            .prompt(&format!("%slow 50 chunk=1\n{ADD}\n%+say (a text behind the call, told at leisure and without an end\n%say done"))
            .until(CALL)
            .until("stream_event/content_block_delta")
            .control(json!({"subtype": "interrupt"}))
            .until("result"),
        served("calls_that_cannot_be", &[])
            .prompt(&format!("{ADD}\n%+tool Nonsense {{}}\n%+tool Read {{}}\n{ADD_TOO}\n%say done"))
            .until(CALL)
            .until(RESULT)
            .answer_open(FIRST, sum("5"))
            .until(CALL)
            .answer_open(SECOND, sum("9"))
            .until("result"),
        served("a_call_before_the_end_of_the_response", &[])
            .prompt(&format!("%slow 50 chunk=1\n{ADD}\n%+say (a text behind the call, told at leisure\n%say done"))
            .until(CALL)
            .answer_open(FIRST, sum("5"))
            .until("result"),
        plain("agents_beside")
            .prompt(&format!(
                "{}\n{}\n%say done",
                first(&agent("look", "%tool Bash {\"command\": \"touch a1\"}\n%say from below")),
                agent("look too", "%tool Bash {\"command\": \"touch a2\"}\n%say from below")
            ))
            .until(ASK)
            .until(ASK)
            .answer_open("touch a2", allowed())
            .until(RESULT)
            .answer_open("touch a1", allowed())
            .until("result"),
        served("an_agent_beside_a_call", &[])
            .prompt(&format!(
                "{}\n{ADD_TOO}\n%say done",
                first(&agent("look", "%tool Bash {\"command\": \"touch a1\"}\n%say from below"))
            ))
            .until(CALL)
            .until(ASK)
            .answer_open(SECOND, sum("9"))
            .until(RESULT)
            .answer_open("touch a1", allowed())
            .until("result"),
    ]
}

/// What a host tells of its server in `initialize`.
pub(super) fn manifests() -> Vec<Scenario> {
    let version = "2025-11-25";
    let initialized = |version: &str, capabilities: Value| json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": {"name": "calc", "version": "1"}});
    let tools = json!({"tools": [{"name": "add", "description": "Adds", "inputSchema": {"type": "object", "properties": {}}}]});
    let known = initialized(version, json!({"tools": {}}));
    let whole = || json!({"calc": {"initializeResult": known, "toolsListResult": tools}});
    let host = |name: &str, manifests: Value| {
        let fields = json!({"hooks": null, "sdkMcpServers": ["calc"], "sdkMcpServerManifests": manifests});
        Scenario::with_initialize(name, fields)
            .answer("mcp_message", calc)
            .flags("--allowedTools mcp__calc__add")
    };
    let add = format!("{ADD}\n%say done");
    let again = json!({
        "subtype": "initialize", "hooks": null, "sdkMcpServers": ["calc"], "sdkMcpServerManifests": whole(),
    });
    vec![
        host("manifest", whole()).turn(&add).control(json!({"subtype": "mcp_status"})),
        host("manifest_of_an_older_protocol", json!({"calc": {"initializeResult": initialized("2025-06-18", json!({"tools": {}})), "toolsListResult": tools}})).turn(&add),
        host("manifest_without_tools", json!({"calc": {"initializeResult": known}})).turn(&add),
        host("manifest_without_the_capability", json!({"calc": {"initializeResult": initialized(version, json!({})), "toolsListResult": tools}})).turn(&add),
        host("manifest_with_wrong_tools", json!({"calc": {"initializeResult": known, "toolsListResult": {"tools": 5}}})).turn(&add),
        host("manifest_that_is_none", json!({"calc": {"x": 1}})).turn(&add),
        host("manifest_of_another", json!({"other": {"initializeResult": known}})).turn(&add),
        host("manifests_that_are_none", json!([1])).turn(&add),
        host("manifest_again", whole()).control(again).turn(&add),
    ]
}
