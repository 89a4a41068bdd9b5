//! What drawn scenarios have found, each by itself.

use serde_json::{Value, json};

use super::{ECHO, allow, nothing};
use crate::scenario::{Reply, Scenario};

/// A project with files beside it, and hooks around tools.
fn project(name: &str) -> Scenario {
    let events = ["PreToolUse", "PostToolUse", "PostToolUseFailure"];
    let hooks: serde_json::Map<String, Value> = events
        .iter()
        .map(|event| ((*event).to_owned(), json!([{"hookCallbackIds": [event]}])))
        .collect();
    Scenario::with_initialize(name, json!({"hooks": hooks}))
        .file("x.txt", "one\ntwo\n")
        .file("crlf.txt", "one\r\ntwo\r\n")
        .file("src/lib.rs", "fn a() {}\n")
        .file("../outside.txt", "out\n")
        .link("out.txt", "../outside.txt")
        .answer("can_use_tool", allow)
}

/// A prompt that calls these tools.
fn calls(calls: &[(&str, Value)]) -> String {
    let lines = calls
        .iter()
        .map(|(tool, input)| format!("%tool {tool} {input}\n"));
    lines.collect::<String>() + "%say done"
}

fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": command}))
}

fn file(tool: &'static str, path: &str, more: Value) -> (&'static str, Value) {
    let mut input = json!({"file_path": path});
    for (key, value) in more.as_object().into_iter().flatten() {
        input[key] = value.clone();
    }
    (tool, input)
}

pub(super) fn found() -> Vec<Scenario> {
    let edit = |old: &str, new: &str| json!({"old_string": old, "new_string": new});
    let agent = |name: &'static str, kind: &str, prompt: &str| {
        let input = json!({"description": "look", "prompt": prompt, "subagent_type": kind, "run_in_background": false});
        (name, input)
    };
    vec![
        // The next call, and the next turn, are where the command has gone.
        project("command_goes_to_another_directory")
            .answer("hook_callback", nothing)
            .flags("--allowedTools Bash")
            .turn(&calls(&[
                bash("cd src"),
                bash("test -f lib.rs"),
                file("Read", "lib.rs", json!({})),
                file("Write", "made.txt", json!({"content": "x"})),
                bash("cd .. && false"),
                bash("test -f lib.rs"),
            ]))
            .turn(&calls(&[bash("cd ../.."), bash("test -f src/lib.rs")])),
        project("exit_codes_that_are_no_failures")
            .answer("hook_callback", nothing)
            .flags("--allowedTools Bash")
            .turn(&calls(&[
                bash("grep none x.txt"),
                bash("diff x.txt src/lib.rs"),
                bash("test -f none"),
                bash("grep none none.txt"),
            ])),
        project("agent_by_its_old_name")
            .answer("hook_callback", nothing)
            .turn(&calls(&[agent("Task", "general-purpose", "%say from below")])),
        project("agent_that_only_looks")
            .answer("hook_callback", nothing)
            .turn(&calls(&[agent(
                "Agent",
                "Explore",
                "%tool Edit {\"file_path\":\"x.txt\",\"old_string\":\"one\",\"new_string\":\"1\"}\n%say from below",
            )])),
        project("agent_of_a_denied_kind")
            .answer("hook_callback", nothing)
            .flags("--disallowedTools Agent(Explore)")
            .turn(&calls(&[agent("Agent", "Explore", "%say from below")])),
        project("links_are_not_written")
            .answer("hook_callback", nothing)
            .turn(&calls(&[
                file("Write", "out.txt", json!({"content": "x"})),
                file("Edit", "out.txt", edit("out", "x")),
                file("Read", "out.txt", json!({})),
                file("Write", "out.txt", json!({"content": "x"})),
            ])),
        project("unread_outside")
            .answer("hook_callback", nothing)
            .turn(&calls(&[
                file("Write", "../outside.txt", json!({"content": "x"})),
                file("Edit", "../outside.txt", edit("none", "x")),
                file("Read", "../outside.txt", json!({})),
                file("Edit", "../outside.txt", edit("none", "x")),
            ])),
        project("rule_for_where_a_link_leads")
            .answer("hook_callback", nothing)
            .flag("--disallowedTools", "Read(//**/outside.txt)")
            .turn(&calls(&[file("Write", "out.txt", json!({"content": "x"}))])),
        project("lines_that_end_in_two_characters")
            .answer("hook_callback", nothing)
            .turn(&calls(&[
                file("Read", "crlf.txt", json!({"offset": 0, "limit": 1})),
                file("Write", "crlf.txt", json!({"content": "one\ntwo\n"})),
            ])),
        project("input_updated_to_what_does_not_fit")
            .answer("hook_callback", |request| {
                let before = request["input"]["hook_event_name"] == "PreToolUse";
                let mut input = request["input"]["tool_input"].clone();
                input["old_string"] = json!("none");
                let output = json!({"hookEventName": "PreToolUse", "updatedInput": input});
                Some(Reply::Payload(if before {
                    json!({"hookSpecificOutput": output})
                } else {
                    json!({})
                }))
            })
            .turn(&calls(&[file("Edit", "x.txt", edit("one", "1"))])),
        project("hook_stops_behind_a_failure")
            .answer("hook_callback", |request| {
                let stops = request["input"]["hook_event_name"] == "PostToolUseFailure";
                Some(Reply::Payload(if stops {
                    json!({"continue": false, "stopReason": "enough"})
                } else {
                    json!({})
                }))
            })
            .turn(&format!("%tool Bash {{\"command\": \"exit 3\"}}\n{ECHO}\n%say done")),
        Scenario::new("failure_of_a_prompt_with_uuid")
            .flags("--allowedTools Bash")
            .prompt_with(1, &format!("%think hm\n%+{}\n%error 400 n=99 msg=\"bad\"\n%say never", &ECHO[1..]), json!({}))
            .until("command_lifecycle/cancelled")
            .control(json!({"subtype": "set_permission_mode", "mode": "acceptEdits"})),
        Scenario::new("failure_at_once")
            .flags("--include-partial-messages")
            .turn("%error 400 n=99 msg=\"bad\"\n%say never"),
        Scenario::new("thinking_of_a_prompt_with_uuid")
            .prompt_with(1, "%think hm\n%+say one", json!({}))
            .until("command_lifecycle/completed"),
        Scenario::new("unknown_tool_of_a_server").turn("%tool mcp__none__do_it {}\n%say done"),
    ]
}
