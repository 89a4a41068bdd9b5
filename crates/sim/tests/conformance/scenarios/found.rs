//! What drawn scenarios have found, each by itself.

use serde_json::{Value, json};

use super::{ECHO, allow, nothing};
use crate::scenario::{Reply, Scenario};

/// A project with files beside it, and hooks around tools.
fn project(name: &str) -> Scenario {
    let events = ["PreToolUse", "PostToolUse", "PostToolUseFailure"];
    Scenario::with_initialize(name, json!({"hooks": hooked(&events)}))
        .file("x.txt", "one\ntwo\n")
        .file("crlf.txt", "one\r\ntwo\r\n")
        .file("src/lib.rs", "fn a() {}\n")
        .file("../outside.txt", "out\n")
        .link("out.txt", "../outside.txt")
        .answer("can_use_tool", allow)
}

/// A hook for each of these events.
fn hooked(events: &[&str]) -> Value {
    let hooks = events.iter();
    let hooks = hooks.map(|event| ((*event).to_owned(), json!([{"hookCallbackIds": [event]}])));
    Value::Object(hooks.collect())
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

/// An agent that says something with its calls.
const TEXTS_AND_CALLS: &str = "%say one\n%+tool Bash {\"command\": \"echo a\"}\n%say two\n%+tool Bash {\"command\": \"echo b\"}\n%say end";

/// An agent that says nothing.
const CALLS: &str = "%tool Bash {\"command\": \"echo a\"}\n%tool Bash {\"command\": \"echo b\"}\n%say end";

/// A hook that stops an agent at its second call.
fn stops_below(request: &Value, event: &str) -> Option<Reply> {
    let input = &request["input"];
    let stops = input["hook_event_name"] == event && input["tool_input"]["command"] == "echo b";
    Some(Reply::Payload(if stops {
        json!({"continue": false, "stopReason": "enough"})
    } else {
        json!({})
    }))
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
        // What is written behind `<<` is expanded, and a rule does not name where the output goes.
        project("lines_that_cannot_be_checked")
            .answer("hook_callback", nothing)
            .flags("--disallowedTools Read(.env)")
            .turn(&calls(&[
                bash("cat <<E\nhi\nE"),
                bash("git --version > /dev/null"),
                bash("cd src && ls"),
                bash("cd src && pwd"),
            ])),
        Scenario::with_initialize("hooks_that_say_something", json!({"hooks": hooked(&[
            "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "SubagentStart", "SubagentStop", "Stop",
        ])}))
            .answer("hook_callback", |_| Some(Reply::Payload(json!({"systemMessage": "take care"}))))
            .flags("--allowedTools Bash --disallowedTools Bash(rm:*)")
            .turn(&calls(&[
                bash("echo hi"),
                bash("exit 3"),
                bash("rm x.txt"),
                agent("Agent", "general-purpose", "%say from below"),
            ])),
        Scenario::new("question_where_nobody_is_asked")
            .flags("--permission-mode dontAsk")
            .turn(&calls(&[("AskUserQuestion", json!({"questions": [{
                "question": "Tea or coffee?", "header": "Drink", "multiSelect": false,
                "options": [{"label": "Tea", "description": "hot"}, {"label": "Coffee", "description": "hot"}],
            }]}))])),
        project("agent_that_a_hook_asks_about")
            .answer("hook_callback", |request| {
                let before = request["input"]["hook_event_name"] == "PreToolUse";
                let output = json!({"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "so"});
                Some(Reply::Payload(if before { json!({"hookSpecificOutput": output}) } else { json!({}) }))
            })
            .turn(&calls(&[agent("Agent", "general-purpose", "%say from below")])),
        project("agent_that_a_hook_asks_about_and_a_person_denies")
            .answer("hook_callback", |request| {
                let before = request["input"]["hook_event_name"] == "PreToolUse";
                let output = json!({"hookEventName": "PreToolUse", "permissionDecision": "ask"});
                Some(Reply::Payload(if before { json!({"hookSpecificOutput": output}) } else { json!({}) }))
            })
            .answer("can_use_tool", |_| Some(Reply::Payload(json!({"behavior": "deny", "message": "not now"}))))
            .turn(&calls(&[agent("Agent", "general-purpose", "%say from below"), bash("touch made.txt")])),
        project("edit_of_what_was_read_in_part")
            .answer("hook_callback", nothing)
            .turn(&calls(&[
                file("Read", "x.txt", json!({"offset": 2, "limit": 1})),
                file("Edit", "x.txt", edit("one", "1")),
            ])),
        Scenario::new("failure_that_is_not_replayed")
            .flags("--replay-user-messages")
            .answer("can_use_tool", |_| Some(Reply::Error("out of order")))
            .turn(&calls(&[bash("touch made.txt")])),
        Scenario::new("model_before_the_first_prompt")
            .control(json!({"subtype": "set_model", "model": "claude-sonnet-4-5-20250929"}))
            .turn("%say hello"),
        Scenario::new("model_that_it_is_already_behind_a_failure")
            .control(json!({"subtype": "set_model", "model": "claude-sonnet-4-5-20250929"}))
            .turn("%error 400 n=99 msg=\"bad\"\n%say never")
            .control(json!({"subtype": "set_model", "model": "claude-sonnet-4-5-20250929"})),
        Scenario::new("another_model_behind_a_failure")
            .turn("%error 400 n=99 msg=\"bad\"\n%say never")
            .control(json!({"subtype": "set_model", "model": "claude-sonnet-4-5-20250929"})),
        Scenario::new("failure_at_once_of_a_prompt_with_uuid")
            .prompt_with(1, "%error 400 n=99 msg=\"bad\"\n%say never", json!({}))
            .until("command_lifecycle/cancelled"),
        Scenario::new("agent_that_is_denied")
            .flags("--permission-mode dontAsk")
            .turn(&calls(&[agent("Agent", "general-purpose", "%tool Write {\"file_path\":\"a.txt\",\"content\":\"x\"}\n%say from below")])),
        // The check of actions that plans have is not there for each model, nor where everything may be allowed.
        project("plan_with_an_older_model")
            .answer("hook_callback", nothing)
            .flags("--permission-mode plan --allowedTools Write")
            .control(json!({"subtype": "set_model", "model": "claude-sonnet-4-5-20250929"}))
            .turn(&calls(&[
                agent("Agent", "general-purpose", "%say from below"),
                bash("nosuchprogram"),
                bash("echo hi | tee t.txt"),
                file("Write", "made.txt", json!({"content": "x"})),
            ])),
        project("plan_where_all_may_be_allowed")
            .answer("hook_callback", nothing)
            .flags("--permission-mode bypassPermissions")
            .variable("IS_SANDBOX", "1")
            .control(json!({"subtype": "set_permission_mode", "mode": "plan"}))
            .turn(&calls(&[bash("touch made.txt"), bash("echo $(echo a)"), agent("Agent", "nobody", "%say from below")])),
        Scenario::with_initialize("rules_of_plans", json!({"hooks": null, "sdkMcpServers": ["calc"]}))
            .answer("mcp_message", super::calc)
            .answer("can_use_tool", allow)
            .flags("--permission-mode plan")
            .flag("--allowedTools", "Write,Bash,Agent,mcp__calc__add,Edit(src/**)")
            .file("src/lib.rs", "fn a() {}\n")
            .turn(&calls(&[
                file("Write", "made.txt", json!({"content": "x"})),
                file("Edit", "src/lib.rs", edit("fn", "pub fn")),
                bash("touch made.txt"),
                bash("ls"),
                ("mcp__calc__add", json!({"a": 2, "b": 3})),
                agent("Agent", "general-purpose", "%say from below"),
            ])),
        Scenario::new("rules_for_commands_of_plans")
            .answer("can_use_tool", allow)
            .flags("--permission-mode plan")
            .flag("--allowedTools", "Bash(touch *)")
            .turn(&calls(&[bash("touch made.txt"), bash("mkdir a")])),
        Scenario::new("usage_of_the_process_before")
            .turn("%say hello")
            .then_process()
            .flag("--resume", "{session}")
            .prompt("%delay 60000\n%say never")
            .until("system/init")
            .control(json!({"subtype": "interrupt"}))
            .until("result"),
        project("file_changed_by_a_command")
            .answer("hook_callback", nothing)
            .flags("--allowedTools Bash")
            .turn(&calls(&[
                file("Read", "x.txt", json!({})),
                file("Read", "src/lib.rs", json!({})),
                bash("echo three >> x.txt"),
                file("Write", "x.txt", json!({"content": "x"})),
                file("Edit", "x.txt", edit("one", "1")),
                bash("echo four >> x.txt; echo >> src/lib.rs"),
                file("Read", "x.txt", json!({})),
                file("Edit", "x.txt", edit("one", "1")),
            ])),
        project("file_shown_by_a_command")
            .answer("hook_callback", nothing)
            .flags("--allowedTools Bash")
            .turn(&calls(&[
                bash("cat x.txt"),
                file("Edit", "x.txt", edit("one", "1")),
                bash("head -n 1 src/lib.rs"),
                file("Edit", "src/lib.rs", edit("fn", "pub fn")),
                bash("tail -n 1 crlf.txt"),
                bash("sed -i s/one/1/ crlf.txt"),
                bash("sed -n 1p y.txt"),
                bash("sed -i s/one/1/ y.txt"),
                bash("cat ../outside.txt"),
                file("Edit", "../outside.txt", edit("out", "1")),
                bash("grep one w.txt"),
                bash("sed -i s/one/1/ w.txt"),
            ]))
            .file("y.txt", "one\n")
            .file("w.txt", "one\n"),
        project("unread_outside_with_rules")
            .answer("hook_callback", nothing)
            .flag("--allowedTools", "Read,Edit")
            .turn(&calls(&[
                file("Write", "../outside.txt", json!({"content": "x"})),
                file("Edit", "../outside.txt", edit("out", "x")),
                file("Edit", "src", edit("", "x")),
                file("Edit", "src", edit("a", "x")),
                file("Edit", "empty.txt", edit("", "x")),
            ]))
            .file("empty.txt", ""),
        project("mode_that_it_is_already")
            .answer("hook_callback", nothing)
            .flags("--permission-mode acceptEdits")
            .answer("can_use_tool", |_| {
                let mode = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
                Some(Reply::Payload(json!({"behavior": "allow", "updatedPermissions": [mode]})))
            })
            .turn(&calls(&[bash("nosuchprogram")])),
        // Each agent has to read for itself.
        Scenario::new("files_that_an_agent_has_written")
            .file("x.txt", "one\ntwo\n")
            .flags("--allowedTools Write,Edit")
            .control(json!({"subtype": "set_model", "model": "claude-sonnet-4-5-20250929"}))
            .turn(&calls(&[
                agent("Agent", "general-purpose", "%tool Write {\"file_path\":\"made.txt\",\"content\":\"x\"}\n%say from below"),
                file("Write", "made.txt", json!({"content": "y"})),
                file("Read", "x.txt", json!({})),
                agent("Agent", "general-purpose", "%tool Edit {\"file_path\":\"x.txt\",\"old_string\":\"one\",\"new_string\":\"1\"}\n%say from below"),
            ])),
        project("rule_for_files_that_a_command_changes")
            .answer("hook_callback", nothing)
            .flag("--allowedTools", "Edit(src/**)")
            .turn(&calls(&[bash("touch src/made.rs"), bash("touch made.rs"), bash("touch src/a made.rs")])),
        Scenario::with_initialize("server_with_a_hook_for_requests", json!({"hooks": hooked(&["PermissionRequest"]), "sdkMcpServers": ["calc"]}))
            .answer("mcp_message", super::calc)
            .answer("hook_callback", nothing)
            .answer("can_use_tool", allow)
            .turn(&calls(&[("mcp__calc__add", json!({"a": 2, "b": 3}))])),
        project("unread_where_a_rule_lets_read")
            .answer("hook_callback", nothing)
            .flag("--allowedTools", "Read(//**/outside.txt)")
            .turn(&calls(&[
                file("Write", "../outside.txt", json!({"content": "x"})),
                file("Edit", "../outside.txt", edit("x", "y")),
            ])),
        project("agent_whose_call_is_denied_and_interrupted")
            .answer("hook_callback", nothing)
            .answer("can_use_tool", |_| {
                Some(Reply::Payload(json!({"behavior": "deny", "message": "no", "interrupt": true})))
            })
            .turn(&calls(&[agent("Agent", "general-purpose", "%tool Bash {\"command\":\"touch made.txt\"}\n%say from below")])),
        project("allowed_by_a_hook_while_planning")
            .answer("hook_callback", |asked| {
                let before = asked["input"]["hook_event_name"] == "PreToolUse";
                let allowed = json!({"hookEventName": "PreToolUse", "permissionDecision": "allow"});
                Some(Reply::Payload(if before {
                    json!({"hookSpecificOutput": allowed})
                } else {
                    json!({})
                }))
            })
            .flags("--permission-mode plan")
            .turn(&calls(&[
                bash("git --version > /dev/null"),
                bash("touch made.txt"),
                file("Write", "made.txt", json!({"content": "x"})),
                bash("echo hi"),
            ])),
        // What the answer is stands in the command.
        project("answers_of_hooks_that_do_not_fit")
            .answer("hook_callback", |asked| {
                let command = asked["input"]["tool_input"]["command"].as_str().unwrap_or_default();
                let (event, answer) = command.trim_start_matches("echo ").split_once(' ')?;
                let answer = answer.trim_matches('\'');
                let is_it = asked["input"]["hook_event_name"] == event;
                let answer = if is_it { answer } else { "{}" };
                Some(Reply::Payload(serde_json::from_str(answer).expect("an answer")))
            })
            .flags("--allowedTools Bash")
            .turn(&calls(&[
                bash("echo PreToolUse '{\"hookSpecificOutput\":{}}'"),
                bash("echo PostToolUse '{\"hookSpecificOutput\":{}}'"),
                bash("echo PostToolUse '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\"}}'"),
                bash("echo PostToolUse '{\"hookSpecificOutput\":{\"hookEventName\":\"Nothing\"}}'"),
                bash("echo PreToolUse '{\"hookSpecificOutput\":{\"hookEventName\":\"Nothing\"}}'"),
                bash("echo PreToolUse '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"maybe\"}}'"),
                bash("echo PostToolUse '{\"systemMessage\":5}'"),
                bash("echo PostToolUse '{\"decision\":\"maybe\"}'"),
                bash("echo PreToolUse '{\"continue\":\"no\"}'"),
                bash("echo PostToolUse '{\"systemMessage\":null}'"),
                bash("echo PostToolUse '{\"hookSpecificOutput\":null}'"),
                bash("echo PreToolUse '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"updatedInput\":5}}'"),
                bash("echo PreToolUse '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecisionReason\":5}}'"),
                bash("echo PostToolUse '{\"hookSpecificOutput\":{\"hookEventName\":\"PostToolUse\",\"additionalContext\":5}}'"),
                bash("echo PostToolUse '{\"unknown\":5,\"hookSpecificOutput\":{\"hookEventName\":\"PostToolUse\",\"unknown\":5}}'"),
                bash("echo PostToolUse '{\"reason\":5}'"),
                bash("echo PostToolUse '{\"stopReason\":5}'"),
                bash("echo PostToolUse '{\"suppressOutput\":5}'"),
                bash("echo PostToolUse '{\"async\":\"yes\"}'"),
            ])),
        project("agent_that_a_hook_stops_before_a_call")
            .answer("hook_callback", |request| stops_below(request, "PreToolUse"))
            .turn(&calls(&[agent("Agent", "general-purpose", TEXTS_AND_CALLS), agent("Agent", "general-purpose", CALLS)])),
        project("agent_that_a_hook_stops_behind_a_call")
            .answer("hook_callback", |request| stops_below(request, "PostToolUse"))
            .turn(&calls(&[agent("Agent", "general-purpose", TEXTS_AND_CALLS), agent("Agent", "general-purpose", CALLS)])),
        Scenario::with_initialize("agent_with_a_limit_of_turns", json!({"hooks": null, "agents": {
            "short": {"description": "Looks", "prompt": "Look.", "maxTurns": 1},
            "longer": {"description": "Looks", "prompt": "Look.", "maxTurns": 2},
        }}))
            .flags("--allowedTools Bash")
            .turn(&calls(&[
                agent("Agent", "longer", TEXTS_AND_CALLS),
                agent("Agent", "short", TEXTS_AND_CALLS),
                agent("Agent", "general-purpose", TEXTS_AND_CALLS),
                agent("Agent", "short", CALLS),
            ])),
        Scenario::with_initialize("one_of_two_prompts_is_stopped_by_a_hook", json!({"hooks": hooked(&["UserPromptSubmit"])}))
            .flags("--replay-user-messages")
            .answer("hook_callback", |request| {
                let stops = request["input"]["prompt"].as_str()?.contains("never");
                Some(Reply::Payload(if stops {
                    json!({"continue": false, "stopReason": "enough"})
                } else {
                    json!({})
                }))
            })
            .turn("%say never")
            .turn("%say on"),
        project("write_that_a_person_has_changed")
            .answer("hook_callback", nothing)
            .answer("can_use_tool", |asked| {
                let mut input = asked["input"].clone();
                input["content"] = json!("y");
                Some(Reply::Payload(json!({"behavior": "allow", "updatedInput": input})))
            })
            .turn(&calls(&[
                file("Write", "made.txt", json!({"content": "x"})),
                file("Write", "made.txt", json!({"content": "y"})),
            ])),
        project("stopped_agent_in_the_foreground")
            .answer("hook_callback", nothing)
            .prompt(&calls(&[agent("Agent", "general-purpose", "%delay 60000\n%say from below")]))
            .until("user/subagent/text")
            .control(json!({"subtype": "stop_task", "task_id": "{task}"}))
            .until("result"),
        // What recordings of the real CLI have shown.
        Scenario::new("todos_of_an_older_model")
            .control(json!({"subtype": "set_model", "model": "claude-sonnet-4-5-20250929"}))
            .turn(&calls(&[
                ("TaskList", json!({})),
                ("TaskCreate", json!({"subject": "Do", "description": "Do it"})),
                ("TaskCreate", json!({"subject": "Do more", "description": "Do it again", "activeForm": "Doing more"})),
                ("TaskUpdate", json!({"taskId": "1", "status": "in_progress"})),
                ("TaskUpdate", json!({"taskId": "2", "addBlockedBy": ["1"]})),
                ("TaskUpdate", json!({"taskId": "9", "status": "completed"})),
                ("TaskGet", json!({"taskId": "2"})),
                ("TaskGet", json!({"taskId": "9"})),
                ("TaskUpdate", json!({"taskId": "1", "status": "deleted"})),
                ("TaskList", json!({})),
            ])),
        Scenario::new("todos_as_a_whole")
            .variable("CLAUDE_CODE_ENABLE_TASKS", "0")
            .control(json!({"subtype": "set_model", "model": "claude-sonnet-4-5-20250929"}))
            .turn(&calls(&[
                ("TodoWrite", json!({"todos": [{"content": "a", "status": "pending", "activeForm": "doing a"}]})),
                ("TodoWrite", json!({"todos": [{"content": "a", "status": "in_progress", "activeForm": "doing a"}]})),
                ("TaskList", json!({})),
            ])),
        Scenario::new("todos_that_are_named")
            .flags("--tools TaskCreate,TaskList,TodoWrite")
            .turn(&calls(&[
                ("TaskCreate", json!({"subject": "Do", "description": "Do it"})),
                ("TaskList", json!({})),
                ("TaskGet", json!({"taskId": "1"})),
                ("TodoWrite", json!({"todos": []})),
            ])),
        Scenario::with_initialize("tools_by_other_names", json!({"hooks": hooked(&["PreToolUse", "PostToolUse"]), "toolAliases": {"Shell": "Bash"}}))
            .answer("hook_callback", nothing)
            .answer("can_use_tool", allow)
            .turn(&calls(&[("Shell", json!({"command": "echo hi"})), ("Shell", json!({"command": "touch made.txt"}))])),
        Scenario::new("servers_that_cannot_be")
            .flag("--mcp-config", r#"{"mcpServers": {"bad": {"type": "stdio"}, "bogus": {"type": "bogus"}}}"#)
            .turn("%say hello")
            .control(json!({"subtype": "mcp_status"})),
        Scenario::new("nobody_can_ever_be_asked")
            .flags("--permission-prompts none")
            .turn(&calls(&[bash("touch made.txt"), bash("echo hi")])),
        Scenario::with_initialize("request_that_a_hook_allows", json!({"hooks": hooked(&["PermissionRequest"])}))
            .answer("hook_callback", |_| {
                let output = json!({"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}});
                Some(Reply::Payload(json!({"hookSpecificOutput": output})))
            })
            .turn(&calls(&[bash("touch made.txt")])),
        Scenario::with_initialize("agent_that_a_hook_denies", json!({"hooks": hooked(&["PreToolUse"])}))
            .answer("hook_callback", |_| {
                let output = json!({"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "so"});
                Some(Reply::Payload(json!({"hookSpecificOutput": output})))
            })
            .turn(&calls(&[agent("Agent", "general-purpose", "%say from below"), bash("echo hi")])),
        Scenario::with_initialize("denied_call_that_a_hook_allows", json!({"hooks": hooked(&["PreToolUse"])}))
            .answer("hook_callback", |_| {
                let output = json!({"hookEventName": "PreToolUse", "permissionDecision": "allow", "permissionDecisionReason": "so"});
                Some(Reply::Payload(json!({"hookSpecificOutput": output})))
            })
            .flags("--disallowedTools Bash(rm:*)")
            .turn(&calls(&[bash("touch a; rm b"), bash("rm b")])),
        Scenario::new("agent_with_a_rule")
            .flags("--allowedTools Agent")
            .turn(&calls(&[agent("Agent", "general-purpose", "%say from below")])),
        Scenario::with_initialize("denied_tool_of_a_server", json!({"hooks": null, "sdkMcpServers": ["calc"]}))
            .answer("mcp_message", super::calc)
            .flags("--disallowedTools mcp__calc__fail")
            .turn(&calls(&[("mcp__calc__fail", json!({}))])),
        Scenario::with_initialize("hooks_that_fail", json!({"hooks": hooked(&["SubagentStart", "PermissionRequest"])}))
            .answer("hook_callback", |_| Some(Reply::Error("broken")))
            .answer("can_use_tool", allow)
            .turn(&calls(&[agent("Agent", "general-purpose", "%say from below")])),
        // The permission was granted before, and the next command runs.
        Scenario::with_initialize("hooks_that_fail_late", json!({"hooks": hooked(&["PermissionRequest"])}))
            .answer("can_use_tool", allow)
            .prompt(&calls(&[("Bash", json!({"command": "touch made.txt"})), ("Bash", json!({"command": "touch runs; until [ -e go ]; do sleep 0.1; done"}))]))
            .until_file("runs")
            .answer_open("touch made.txt", json!("broken"))
            .until("system/informational")
            .make_file("go")
            .until("result"),
        Scenario::with_initialize("hooks_that_do_not_reply_in_time", json!({"hooks": {
            "PermissionRequest": [{"hookCallbackIds": ["PermissionRequest"], "timeout": 1}],
        }}))
            .answer("can_use_tool", allow)
            .turn(&calls(&[("Bash", json!({"command": "touch made.txt"})), ("Bash", json!({"command": "sleep 2.5; true"}))])),
        Scenario::with_initialize("an_interrupt_before_a_hook_replies", json!({"hooks": hooked(&["PermissionRequest"])}))
            .answer("can_use_tool", allow)
            .prompt(&calls(&[("Bash", json!({"command": "touch made.txt"})), ("Bash", json!({"command": "touch more.txt; until [ -e go ]; do sleep 0.1; done"}))]))
            .until_file("more.txt")
            .control(json!({"subtype": "interrupt"}))
            .until("result")
            .turn("%say on"),
        Scenario::with_initialize("hooks_that_never_reply", json!({"hooks": hooked(&["PermissionRequest"])}))
            .answer("can_use_tool", allow)
            .turn(&calls(&[("Bash", json!({"command": "touch made.txt"}))])),
        Scenario::new("long_descriptions_of_requests")
            .answer("can_use_tool", |_| Some(Reply::Payload(json!({"behavior": "deny", "message": "no"}))))
            .turn(&calls(&[
                ("Bash", json!({"command": format!("touch {}", "a".repeat(43))})),
                ("Bash", json!({"command": format!("touch {}", "a".repeat(44))})),
                ("Bash", json!({"command": format!("touch {}", "a".repeat(45))})),
                ("Bash", json!({"command": format!("touch {}", "a".repeat(200))})),
                ("Bash", json!({"command": format!("touch {}", "ü".repeat(60))})),
                ("Bash", json!({"command": format!("touch {}", "漢".repeat(60))})),
                ("Bash", json!({"command": format!("touch {}", "😀".repeat(60))})),
                ("Bash", json!({"command": "touch a\ntouch b"})),
                ("Bash", json!({"command": format!("touch a\ntouch {}", "b".repeat(60))})),
                ("Bash", json!({"command": "touch a   b\t\tc"})),
                ("Bash", json!({"command": format!("touch {} b", "a".repeat(42))})),
                ("Bash", json!({"command": "touch a", "description": "d".repeat(200)})),
                ("Bash", json!({"command": "touch a", "description": "two\nlines"})),
                ("Bash", json!({"command": format!("touch {}", "a".repeat(80)), "description": ""})),
                ("WebFetch", json!({"url": format!("https://example.com/{}", "u".repeat(200)), "prompt": "look"})),
                ("Write", json!({"file_path": format!("{}/x.txt", "p".repeat(200)), "content": "x"})),
                ("WebSearch", json!({"query": "q".repeat(200)})),
            ])),
    ]
}
