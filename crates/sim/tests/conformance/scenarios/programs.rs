//! What programs do beyond the plain turn: hooks that keep on, prompts in between, rules that change, tools that are used in odd ways.

use serde_json::{Value, json};

use super::{CALL, ECHO, TOUCH, WAIT, WRITE, allow, calc, nothing};
use crate::scenario::{Reply, Scenario};

/// A picture of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn payload(payload: Value) -> Option<Reply> {
    Some(Reply::Payload(payload))
}

/// A host with a hook for this event, which answers so.
fn hooked(name: &str, event: &str, answer: Value) -> Scenario {
    let hooks = json!({event: [{"hookCallbackIds": ["hook_0"]}]});
    Scenario::with_initialize(name, json!({"hooks": hooks, "sdkMcpServers": ["calc"]}))
        .answer("mcp_message", calc)
        .answer("hook_callback", move |_| payload(answer.clone()))
        .flag("--allowedTools", "Bash,mcp__calc__add")
}

/// The same, of which the answer has this for the event.
fn specific(name: &str, event: &str, mut output: Value) -> Scenario {
    output["hookEventName"] = json!(event);
    hooked(name, event, json!({ "hookSpecificOutput": output }))
}

/// A host that answers permission requests with these updates.
fn updating(name: &str, updates: Value) -> Scenario {
    Scenario::new(name).answer("can_use_tool", move |_| {
        payload(json!({"behavior": "allow", "updatedPermissions": updates}))
    })
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

/// A server whose tools give what is no text, or nothing.
fn gallery(request: &Value) -> Option<Reply> {
    let text = json!({"type": "text", "text": "a"});
    let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
    let result = match request["message"]["method"].as_str()? {
        "tools/list" => {
            let names = [
                "image",
                "audio",
                "resource",
                "link",
                "none",
                "failure",
                "structured",
            ];
            let tool =
                |name: &str| json!({"name": name, "description": "Shows", "inputSchema": {"type": "object"}});
            json!({"tools": names.map(tool)})
        }
        "tools/call" => match request["message"]["params"]["name"].as_str()? {
            "image" => json!({"content": [text, image]}),
            "audio" => json!({"content": [{"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"}]}),
            "resource" => {
                json!({"content": [{"type": "resource", "resource": {"uri": "a://b", "text": "r", "mimeType": "text/plain"}}]})
            }
            "link" => {
                json!({"content": [{"type": "resource_link", "uri": "a://b", "name": "n", "description": "d"}]})
            }
            "failure" => json!({"content": [], "isError": true}),
            "structured" => json!({"content": [text], "structuredContent": {"a": 1}, "_meta": {"m": 1}}),
            _ => json!({"content": []}),
        },
        _ => return calc(request),
    };
    payload(json!({"mcp_response": {"jsonrpc": "2.0", "id": request["message"]["id"], "result": result}}))
}

pub(super) fn programs() -> Vec<Scenario> {
    [hooks(), prompts(), rules(), tools()].concat()
}

fn hooks() -> Vec<Scenario> {
    let echo = format!("{ECHO}\n%say done");
    let write = "%tool Write {\"file_path\": \"a.md\", \"content\": \"x\"}\n";
    let agent = format!("{}\n%say done", CALL.replace("RB", "false"));
    let add = "%tool mcp__calc__add {\"a\": 1, \"b\": 2}\n%say done";
    let matchers = [
        "Bash|Write",
        "^Ba",
        "*",
        "",
        "bash",
        "Bash,Write",
        "B.*h",
        "(",
        "mcp__.*",
    ];
    let matchers = matchers.map(|matcher| json!({"matcher": matcher, "hookCallbackIds": [matcher]}));
    vec![
        hooked(
            "hook_that_never_lets_a_turn_end",
            "Stop",
            json!({"decision": "block"}),
        )
        .turn("%say one\n%say two"),
        hooked("hook_that_may_block_twice", "Stop", json!({"decision": "block"}))
            .variable("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "2")
            .turn("%say one\n%say two"),
        specific(
            "hook_that_always_adds_at_the_end",
            "Stop",
            json!({"additionalContext": "more"}),
        )
        .turn("%say one"),
        hooked(
            "hook_that_prevents_going_on",
            "Stop",
            json!({"continue": false, "stopReason": "enough"}),
        )
        .turn("%say one"),
        hooked(
            "hook_that_blocks_the_end_and_prevents_it",
            "Stop",
            json!({"continue": false, "decision": "block", "reason": "more", "systemMessage": "hm"}),
        )
        .turn("%say one\n%say two"),
        hooked("hook_that_lets_the_second_end_be", "Stop", json!({}))
            .answer("hook_callback", |request| {
                let again = request["input"]["stop_hook_active"] == true;
                let blocks = json!({"decision": "block", "reason": "more", "systemMessage": "hm"});
                payload(if again { json!({}) } else { blocks })
            })
            .turn("%say one\n%say two")
            .turn("%say one\n%say two"),
        hooked(
            "hook_that_never_lets_an_agent_end",
            "SubagentStop",
            json!({"decision": "block", "reason": "more"}),
        )
        .turn(&agent),
        hooked(
            "prompt_stopped_by_a_hook",
            "UserPromptSubmit",
            json!({"continue": false, "stopReason": "enough"}),
        )
        .turn("%say one"),
        hooked(
            "prompt_stopped_without_a_reason",
            "UserPromptSubmit",
            json!({"continue": false}),
        )
        .flags("--replay-user-messages")
        .turn("%say one")
        .prompt_with(1, "%say two", json!({}))
        .until("command_lifecycle/completed"),
        hooked(
            "prompt_blocked_without_a_reason",
            "UserPromptSubmit",
            json!({"decision": "block"}),
        )
        .turn("%say one"),
        specific(
            "session_named_by_a_hook",
            "UserPromptSubmit",
            json!({"sessionTitle": "Tea"}),
        )
        .turn("%say one"),
        specific(
            "output_replaced_by_a_text",
            "PostToolUse",
            json!({"updatedToolOutput": "other"}),
        )
        .turn(&echo),
        specific(
            "output_replaced_in_part",
            "PostToolUse",
            json!({"updatedToolOutput": {"stdout": "other"}}),
        )
        .turn(&echo),
        specific(
            "output_of_a_server_replaced",
            "PostToolUse",
            json!({"updatedMCPToolOutput": [{"type": "text", "text": "x"}]}),
        )
        .turn(add),
        specific(
            "output_of_a_server_replaced_by_another_kind",
            "PostToolUse",
            json!({"updatedToolOutput": {"a": 1}}),
        )
        .turn(add),
        specific(
            "request_that_a_hook_changes",
            "PermissionRequest",
            json!({"decision": {
                "behavior": "allow", "updatedInput": {"file_path": "b.md", "content": "y"},
                "updatedPermissions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}],
            }}),
        )
        .turn(&format!("{write}{write}%say done")),
        Scenario::with_initialize("hooks_with_matchers", json!({"hooks": {"PreToolUse": matchers}}))
            .answer("hook_callback", nothing)
            .flags("--allowedTools Bash")
            .turn(&echo),
    ]
}

fn prompts() -> Vec<Scenario> {
    let running = |name| {
        Scenario::new(name)
            .flags("--allowedTools Bash")
            .prompt_with(1, &format!("{WAIT}\n%say done"), json!({}))
            .until_file("runs")
    };
    vec![
        Scenario::new("prompt_for_now_while_asked")
            .prompt_with(1, &format!("{TOUCH}\n%say never"), json!({}))
            .until("control_request/can_use_tool")
            .prompt_with(2, "%say two", json!({"priority": "now"}))
            .until("result")
            .until("result"),
        running("prompt_for_now_while_a_command_runs")
            .prompt_with(2, "%say two", json!({"priority": "now"}))
            .until("command_lifecycle/queued")
            .until("command_lifecycle/queued")
            .make_file("go")
            .until("result")
            .until("result"),
        running("prompt_without_query_while_a_command_runs")
            .prompt_with(2, "note", json!({"shouldQuery": false}))
            .until("command_lifecycle/queued")
            .until("command_lifecycle/queued")
            .make_file("go")
            .until("result"),
        Scenario::new("prompts_that_the_host_has_made_up")
            .flags("--replay-user-messages")
            .prompt_with(1, "%say one", json!({"isSynthetic": true}))
            .until("command_lifecycle/completed")
            .prompt_with(2, "note", json!({"isSynthetic": true, "shouldQuery": false}))
            .until("command_lifecycle/completed")
            .prompt_with(
                3,
                "%say two",
                json!({"isSynthetic": true, "origin": {"kind": "human"}}),
            )
            .until("command_lifecycle/completed"),
        Scenario::new("window_of_the_model_is_full")
            .turn("%stop model_context_window_exceeded\n%say one\n%say two"),
        Scenario::new("killed_in_a_command_and_resumed")
            .flags("--allowedTools Bash")
            // Nobody ends what a killed CLI leaves: the command ends by itself once its directory is gone.
            .prompt(
                "%tool Bash {\"command\": \"touch runs; while [ -e runs ]; do sleep 0.1; done\"}\n%say never",
            )
            // The command may run before its frame is written.
            .until("assistant/tool_use")
            .until_file("runs")
            .signal("KILL")
            .then_process()
            .flag("--resume", "{session}")
            .turn("%say two"),
    ]
}

fn rules() -> Vec<Scenario> {
    let rule = |kind: &str, tool: &str, content: Option<&str>, behavior: &str| {
        let mut rule = json!({"toolName": tool});
        if let Some(content) = content {
            rule["ruleContent"] = json!(content);
        }
        json!({"type": kind, "rules": [rule], "behavior": behavior, "destination": "session"})
    };
    let listed = |scenario: Scenario| scenario.control(json!({"subtype": "list_permission_rules"}));
    let directory = json!({"type": "addDirectories", "directories": ["{root}"], "destination": "session"});
    vec![
        listed(
            updating(
                "rule_added_twice",
                json!([rule("addRules", "Bash", Some("touch:*"), "allow")]),
            )
            .turn(&calls(&[bash("touch a"), bash("touch b"), bash("rm b")])),
        ),
        listed(
            updating(
                "rule_for_all_commands",
                json!([rule("replaceRules", "Bash", None, "allow")]),
            )
            .turn(&calls(&[bash("touch a"), bash("touch b")])),
        ),
        listed(
            updating(
                "rule_of_a_flag_taken_away",
                json!([
                    rule("removeRules", "Write", None, "deny"),
                    rule("addRules", "Bash", Some("rm:*"), "deny"),
                ]),
            )
            .flags("--disallowedTools Write")
            .turn(&format!(
                "{WRITE}\n{}",
                calls(&[bash("touch a"), bash("rm a"), bash("touch b")])
            )),
        ),
        listed(
            updating("directory_added_twice", json!([directory]))
                .file("../outside.txt", "x\n")
                .turn(&calls(&[
                    ("Read", json!({"file_path": "../outside.txt"})),
                    ("Read", json!({"file_path": "../outside.txt"})),
                    ("Write", json!({"file_path": "../made.txt", "content": "x"})),
                ])),
        ),
        Scenario::with_initialize(
            "rules_for_good",
            json!({"hooks": null, "sdkMcpServers": ["calc"]}),
        )
        .file(
            ".claude/settings.local.json",
            r#"{"permissions": {"allow": ["Write", "Bash", "mcp__calc__add", "Edit(src/**)"]}}"#,
        )
        .file("src/a.rs", "a\n")
        .answer("mcp_message", calc)
        .turn(&calls(&[
            ("Write", json!({"file_path": "n", "content": "x"})),
            bash("touch a"),
            ("mcp__calc__add", json!({"a": 1, "b": 2})),
            ("Read", json!({"file_path": "src/a.rs"})),
            (
                "Edit",
                json!({"file_path": "src/a.rs", "old_string": "a", "new_string": "b"}),
            ),
        ])),
    ]
}

fn refuse(_: &Value) -> Option<Reply> {
    Some(Reply::Payload(json!({"behavior": "deny", "message": "no"})))
}

/// Commands whose options keep the CLI from telling which files they change.
fn copies(name: &str, flags: &[&str]) -> Scenario {
    let commands = [
        "cp -r d e",
        "mv -- x y",
        "cp -r d e && echo a",
        "echo a; mv -f x y; touch q",
        "timeout 5 cp -r d e",
        "cp -r d ../o",
        "cp -r d e > log",
        "cp x y",
    ];
    let commands = commands.map(|command| ("Bash", json!({"command": command})));
    let scenario = Scenario::new(name)
        .file("x", "x\n")
        .file("d/f", "1\n")
        .answer("can_use_tool", refuse);
    let scenario = flags
        .iter()
        .fold(scenario, |scenario, flag| scenario.argument(flag));
    scenario.turn(&calls(&commands))
}

fn tools() -> Vec<Scenario> {
    let names = [
        "image",
        "audio",
        "resource",
        "link",
        "none",
        "failure",
        "structured",
    ];
    let tools: Vec<String> = names
        .iter()
        .map(|name| format!("mcp__gallery_1__{name}"))
        .collect();
    let shows: Vec<(&str, Value)> = tools.iter().map(|name| (name.as_str(), json!({}))).collect();
    vec![
        Scenario::new("files_that_are_read_in_odd_ways")
            .file("empty.txt", "")
            .file("x.txt", "one\ntwo\n")
            .file("x.dat", "\u{0}\u{1}")
            .turn(&calls(&[
                ("Read", json!({"file_path": "empty.txt"})),
                ("Read", json!({"file_path": "x.txt", "offset": 99})),
                ("Read", json!({"file_path": "x.dat"})),
            ])),
        Scenario::new("notebook_that_is_edited_as_text")
            .file("n.ipynb", "{\"cells\": []}\n")
            .answer("can_use_tool", allow)
            .turn(&calls(&[(
                "Edit",
                json!({"file_path": "n.ipynb", "old_string": "[]", "new_string": "[1]"}),
            )])),
        copies("copies_with_options", &[]),
        copies(
            "copies_with_options_by_mode",
            &["--permission-mode", "acceptEdits"],
        ),
        copies(
            "copies_with_options_by_rule",
            &["--allowedTools", "Bash(cp *)", "Bash(mv *)"],
        ),
        Scenario::new("files_that_are_long")
            .flags("--allowedTools Bash Read")
            .turn(&calls(&[
                (
                    "Bash",
                    json!({"command": "seq 1 30000 > long.txt; seq 1 60000 > longer.txt; seq 1 7000"}),
                ),
                ("Read", json!({"file_path": "long.txt"})),
                ("Read", json!({"file_path": "long.txt", "limit": 29000})),
                ("Read", json!({"file_path": "long.txt", "offset": 3})),
                ("Read", json!({"file_path": "long.txt", "allow_large": true})),
                ("Read", json!({"file_path": "longer.txt"})),
                ("Read", json!({"file_path": "longer.txt", "offset": 50000})),
                ("Read", json!({"file_path": "longer.txt", "limit": 9})),
            ])),
        Scenario::new("addresses_with_a_name")
            .answer("can_use_tool", refuse)
            .turn(&calls(&[
                (
                    "WebFetch",
                    json!({"url": "https://me:word@Example.invalid:8080/x", "prompt": "p"}),
                ),
                (
                    "WebSearch",
                    json!({"query": "ab", "allowed_domains": ["a.b"], "blocked_domains": ["c.d"]}),
                ),
            ])),
        Scenario::new("commands_that_take_too_long")
            .flags("--allowedTools Bash")
            .turn(&calls(&[
                ("Bash", json!({"command": "sleep 5", "timeout": 300})),
                (
                    "Bash",
                    json!({"command": "until [ -e go ]; do sleep 0.1; done", "timeout": 300}),
                ),
            ]))
            .make_file("go")
            .until("result"),
        Scenario::with_initialize(
            "results_that_are_no_texts",
            json!({"hooks": null, "sdkMcpServers": ["gallery.1"]}),
        )
        .answer("mcp_message", gallery)
        .flags("--allowedTools mcp__gallery_1")
        .turn(&calls(&shows)),
    ]
}
