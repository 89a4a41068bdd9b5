//! The scenarios.

mod beside;
mod edits;
mod endings;
mod errors;
mod found;
mod grants;
mod hosts;
mod inputs;
mod occasions;
mod outputs;
mod owned;
mod processes;
mod programs;
mod requests;
mod settings;
mod strange;

use serde_json::{Value, json};

use super::scenario::{Reply, Scenario, uuid};

const TOUCH: &str = r#"%tool Bash {"command": "touch made.txt", "description": "make a file"}"#;
const ECHO: &str = r#"%tool Bash {"command": "echo hello", "description": "say hello"}"#;
const REPOSITORY: &str = r#"%tool Bash {"command": "git init -q && git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x"}"#;
/// Succeeds in a worktree alone.
const IN_WORKTREE: &str = r#"%tool Bash {"command": "test -f .git"}"#;
/// Says that it runs, and waits to be told that it may end.
const WAIT: &str = r#"%tool Bash {"command": "touch runs; until [ -e go ]; do sleep 0.1; done"}"#;
const WRITE: &str = r#"%tool Write {"file_path": "{project}/made.txt", "content": "made"}"#;
/// Starts an agent, in the background or not as `RB` says.
const CALL: &str = r#"%tool Agent {"description": "look", "prompt": "%say from below", "subagent_type": "general-purpose", "run_in_background": RB}"#;
/// A response of some seconds. No beginning of it is a word: words are compared by value, and how much of it comes before an interrupt
/// is a matter of milliseconds.
const LONG: &str =
    "%slow 50 chunk=1\n%say (a story without any end, told at leisure, letter by letter, and then told again";

/// All of them, as many a file as belong together.
pub(crate) fn all() -> Vec<Scenario> {
    [
        turns(),
        permissions(),
        hooks(),
        deferred(),
        mcp(),
        control(),
        errors::statuses(),
        errors::texts(),
        errors::too_much(),
        errors::repairs(),
        errors::broken(),
        input(),
        sessions(),
        agents(),
        output(),
        beside::beside(),
        beside::manifests(),
        edits::edits(),
        endings::endings(),
        found::found(),
        hosts::hosts(),
        inputs::inputs(),
        occasions::occasions(),
        occasions::decisions(),
        outputs::outputs(),
        owned::owned_tasks(),
        requests::requests(),
        settings::settings(),
        settings::places_of_rules(),
        settings::in_initialize(),
        processes::servers(),
        processes::signals(),
        processes::kept(),
        processes::models(),
        processes::queue(),
        grants::grants(),
        grants::seds(),
        grants::lines(),
        programs::programs(),
        strange::strange(),
    ]
    .concat()
}

fn allow(_: &Value) -> Option<Reply> {
    Some(Reply::Payload(json!({"behavior": "allow"})))
}

fn nothing(_: &Value) -> Option<Reply> {
    Some(Reply::Payload(json!({})))
}

fn turns() -> Vec<Scenario> {
    vec![
        Scenario::new("one_turn").turn("%say hello"),
        Scenario::bare("no_initialize").turn("%say hello"),
        Scenario::new("several_turns")
            .turn("%say one")
            .turn("%say two")
            .turn("%say three"),
        Scenario::new("thinking_and_text").turn("%think hm\n%+say done"),
        Scenario::new("stopped_at_the_limit").turn("%stop max_tokens\n%say done"),
        Scenario::new("refused").turn("%stop refusal\n%say done"),
        Scenario::new("partial_messages")
            .flags("--include-partial-messages --allowedTools Bash")
            .turn(&format!("%think hm\n%+say first\n{}\n%say done", ECHO.replace("%tool", "%+tool"))),
        Scenario::new("partial_messages_of_a_prompt_with_uuid")
            .flags("--include-partial-messages --allowedTools Bash")
            .prompt_with(1, &format!("{ECHO}\n%say done"), json!({}))
            .until("command_lifecycle/completed"),
        Scenario::new("prompt_with_uuid").prompt_with(1, "%say hello", json!({})).until("command_lifecycle/completed"),
        Scenario::new("replay")
            .flags("--replay-user-messages")
            .prompt_with(1, "%say hello", json!({}))
            .until("command_lifecycle/completed"),
        Scenario::new("merged_prompts").prompt_with(1, LONG, json!({})) .until("system/init") .prompt_with(2, "%say two", json!({})) .prompt_with(3, "%say three", json!({}))
            .until("command_lifecycle/completed")
            .until("command_lifecycle/completed")
            .until("command_lifecycle/completed"),
        Scenario::new("folded_prompt")
            .flags("--allowedTools Bash")
            .prompt_with(1, &format!("{WAIT}\n%say done"), json!({}))
            .until_file("runs")
            .prompt_with(2, "and this", json!({}))
            .until("command_lifecycle/queued")
            .until("command_lifecycle/queued")
            .make_file("go")
            .until("result"),
        Scenario::new("prompt_for_now")
            .flags("--include-partial-messages")
            .prompt_with(1, LONG, json!({}))
            .until("stream_event/content_block_delta")
            .prompt_with(2, "%say at once", json!({"priority": "now"}))
            .until("result")
            .until("result"),
        Scenario::new("prompt_without_query")
            .prompt_with(1, "for later", json!({"shouldQuery": false}))
            .until("result")
            .turn("%say now"),
        Scenario::new("cancelled_prompt")
            .flags("--include-partial-messages")
            .prompt_with(1, LONG, json!({}))
            .until("stream_event/content_block_delta")
            .prompt_with(2, "%say never", json!({}))
            .until("command_lifecycle/queued")
            .control(json!({"subtype": "cancel_async_message", "message_uuid": uuid(2)}))
            .until("result"),
        Scenario::new("max_turns")
            .flags("--max-turns 1 --allowedTools Bash")
            .turn(&format!("{ECHO}\n%say never"))
            .turn("%say again"),
        Scenario::new("session_state")
            .variable("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1")
            .answer("can_use_tool", allow)
            .turn(&format!("{TOUCH}\n%say done"))
            .until("system/session_state_changed"),
        Scenario::new("session_state_of_prompts_with_uuids")
            .variable("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1")
            .prompt_with(1, "%say one", json!({}))
            .until("system/session_state_changed")
            .until("system/session_state_changed")
            .prompt_with(2, "%slow 300 chunk=2\n%say two times", json!({}))
            .until("system/init")
            .prompt_with(3, "%say three", json!({}))
            .until("result")
            .until("result"),
        Scenario::new("background_command")
            .flags("--allowedTools Bash")
            .turn("%tool Bash {\"command\": \"sleep 5; echo over\", \"run_in_background\": true}\n%say started\n%say woken")
            .until("result"),
        Scenario::new("end_of_input_mid_turn")
            .prompt("%slow 20 chunk=4\n%say a story that is told to its end")
            .until("system/init")
            .eof(),
    ]
}

fn permissions() -> Vec<Scenario> {
    let touch = format!("{TOUCH}\n%say done");
    let write = format!("{WRITE}\n%say done");
    vec![
        Scenario::new("allowed").answer("can_use_tool", allow).turn(&touch),
        Scenario::new("allowed_write").answer("can_use_tool", allow).turn(&write),
        Scenario::new("denied")
            .answer("can_use_tool", |_| {
                Some(Reply::Payload(json!({"behavior": "deny", "message": "no"})))
            })
            .turn(&touch),
        Scenario::new("denied_and_interrupted")
            .answer("can_use_tool", |_| {
                Some(Reply::Payload(json!({"behavior": "deny", "message": "no", "interrupt": true})))
            })
            .turn(&touch)
            .turn("%say again"),
        Scenario::new("updated_input")
            .answer("can_use_tool", |_| {
                let input = json!({"command": "touch other.txt", "description": "another"});
                Some(Reply::Payload(json!({"behavior": "allow", "updatedInput": input})))
            })
            .turn(&touch),
        Scenario::new("suggestion_taken")
            .answer("can_use_tool", |request| {
                let suggestions = &request["permission_suggestions"];
                Some(Reply::Payload(json!({"behavior": "allow", "updatedPermissions": suggestions})))
            })
            .turn(&format!("{WRITE}\n{}\n%say done", WRITE.replace("made.txt", "more.txt"))),
        Scenario::new("permission_failed")
            .answer("can_use_tool", |_| Some(Reply::Error("out of order")))
            .turn(&touch),
        Scenario::new("two_calls_at_once")
            .answer("can_use_tool", allow)
            .turn(&format!("{TOUCH}\n%+tool Bash {{\"command\": \"touch second.txt\"}}\n%say done")),
        Scenario::new("nobody_to_ask").unprompted().turn(&touch),
        Scenario::new("accept_edits").flags("--permission-mode acceptEdits").turn(&write),
        Scenario::new("do_not_ask").flags("--permission-mode dontAsk").turn(&write),
        Scenario::new("tool_rules")
            .flags("--allowedTools Bash(touch:*) --disallowedTools Write")
            .turn(&format!("{TOUCH}\n{WRITE}\n%say done")),
        Scenario::new("rules_for_commands_and_files")
            .flag("--allowedTools", "Bash(touch *),Read(./**),Edit(src/**)")
            .flag("--disallowedTools", "Read(.env),Bash(rm *)")
            .file(".env", "SECRET=1\n")
            .answer("can_use_tool", |_| {
                Some(Reply::Payload(json!({"behavior": "deny", "message": "no"})))
            })
            .turn(concat!(
                "%tool Bash {\"command\": \"touch one && touch two\", \"description\": \"make two\"}\n",
                "%tool Bash {\"command\": \"touch one; rm one\", \"description\": \"remove one\"}\n",
                "%tool Bash {\"command\": \"cat .env\", \"description\": \"look\"}\n",
                "%tool Write {\"file_path\": \"{project}/src/new\", \"content\": \"x\"}\n",
                "%tool Write {\"file_path\": \"{project}/new\", \"content\": \"x\"}\n",
                "%say done",
            )),
        Scenario::new("reading_and_editing")
            .file("x.txt", "one\ntwo\n")
            .answer("can_use_tool", allow)
            .turn(
                "%tool Read {\"file_path\": \"{project}/x.txt\"}\n\
                 %tool Edit {\"file_path\": \"{project}/x.txt\", \"old_string\": \"one\", \"new_string\": \"three\"}\n\
                 %say done",
            ),
        Scenario::new("failing_command")
            .flags("--allowedTools Bash")
            .turn("%tool Bash {\"command\": \"echo oops >&2; exit 3\"}\n%say done"),
        Scenario::new("unknown_tool").turn("%tool Nonsense {\"a\": 1}\n%say done"),
        Scenario::new("mode_changed_while_asked")
            .prompt(&write)
            .until("control_request/can_use_tool")
            .control(json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}))
            .control(json!({"subtype": "interrupt"}))
            .until("result"),
    ]
}

fn hooks() -> Vec<Scenario> {
    let with = |name, event: &str, answer: fn(&Value) -> Option<Reply>| {
        Scenario::with_initialize(name, json!({"hooks": {event: [{"hookCallbackIds": ["hook_0"]}]}}))
            .answer("hook_callback", answer)
            .flags("--allowedTools Bash")
    };
    let echo = format!("{ECHO}\n%say done");
    vec![
        with("hook_before_a_tool", "PreToolUse", nothing).turn(&echo),
        with("hook_denies", "PreToolUse", |_| {
            let output = json!({"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"});
            Some(Reply::Payload(json!({"hookSpecificOutput": output})))
        })
        .turn(&echo),
        with("hook_asks", "PreToolUse", |_| {
            let output = json!({"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "sure?"});
            Some(Reply::Payload(json!({"hookSpecificOutput": output})))
        })
        .answer("can_use_tool", allow)
        .turn(&echo),
        with("hook_changes_input", "PreToolUse", |_| {
            let output = json!({
                "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"command": "echo bye"},
            });
            Some(Reply::Payload(json!({"hookSpecificOutput": output})))
        })
        .turn(&echo),
        with("hook_stops_the_turn", "PreToolUse", |_| {
            Some(Reply::Payload(json!({"continue": false, "stopReason": "enough"})))
        })
        .turn(&echo),
        with("hook_fails", "PreToolUse", |_| Some(Reply::Error("broken"))).turn(&echo),
        with("hook_after_a_tool", "PostToolUse", |_| {
            let output = json!({"hookEventName": "PostToolUse", "additionalContext": "seen"});
            Some(Reply::Payload(json!({"hookSpecificOutput": output})))
        })
        .turn(&echo),
        with("hook_after_a_failure", "PostToolUseFailure", nothing)
            .turn("%tool Bash {\"command\": \"exit 3\"}\n%say done"),
        with("hook_on_prompts", "UserPromptSubmit", |_| {
            let output = json!({"hookEventName": "UserPromptSubmit", "additionalContext": "by the way"});
            Some(Reply::Payload(json!({"hookSpecificOutput": output})))
        })
        .turn("%say hello"),
        with("hook_refuses_a_prompt", "UserPromptSubmit", |_| {
            Some(Reply::Payload(json!({"decision": "block", "reason": "secret"})))
        })
        .turn("%say hello"),
        with("hook_on_stop", "Stop", |request| {
            Some(Reply::Payload(if request["input"]["stop_hook_active"] == true {
                json!({})
            } else {
                json!({"decision": "block", "reason": "one more thing"})
            }))
        })
        .turn("%say first\n%say second"),
    ]
}

/// Calls that a hook defers, and what the next process does about them.
fn deferred() -> Vec<Scenario> {
    let registered = || json!({"hooks": {"PreToolUse": [{"hookCallbackIds": ["hook_0"]}]}});
    let put_off = |name: &'static str, prompt: &str| {
        Scenario::with_initialize(name, registered())
            .answer("hook_callback", |_| decision("defer"))
            .turn(prompt)
    };
    let resumed = |scenario: Scenario| {
        scenario
            .then_process_with(registered())
            .flags("--await-initialize")
            .flag("--resume", "{session}")
    };
    let touch = format!("{TOUCH}\n%say done");
    let both = format!("{TOUCH}\n%+{}\n%say done", &ECHO[1..]);
    let in_the_midst = format!("{ECHO}\n%say one\n%+{}\n{WRITE}\n%say done", &TOUCH[1..]);
    vec![
        resumed(put_off("deferred_and_allowed", &touch))
            .answer("hook_callback", |_| decision("allow"))
            .until("result")
            .turn("%say two"),
        resumed(put_off("deferred_and_denied", &touch))
            .answer("hook_callback", |_| decision("deny"))
            .until("result"),
        resumed(put_off("deferred_and_asked", &touch))
            .answer("hook_callback", nothing)
            .answer("can_use_tool", allow)
            .until("result"),
        resumed(put_off("deferred_twice", &touch))
            .answer("hook_callback", |_| decision("defer"))
            .until("result"),
        put_off("deferred_and_told_nothing", &touch)
            .then_process_bare()
            .flag("--resume", "{session}")
            .answer("can_use_tool", allow)
            .until("result"),
        resumed(put_off("deferred_and_prompted", &touch))
            .answer("hook_callback", |_| decision("allow"))
            .prompt("%say two")
            .until("result"),
        resumed(put_off("deferred_without_the_tool", &touch))
            .flags("--disallowedTools Bash")
            .answer("hook_callback", |_| decision("allow"))
            .until("result"),
        resumed(put_off("deferred_and_forked", &touch))
            .flags("--fork-session")
            .answer("hook_callback", |_| decision("allow"))
            .until("result"),
        // The second call of the turn is the deferred one, and another follows it.
        resumed(
            Scenario::with_initialize("deferred_in_mid_turn", registered())
                .answer("hook_callback", |request| {
                    let echoes = request["input"]["tool_input"]["command"] == "echo hello";
                    decision(if echoes { "allow" } else { "defer" })
                })
                .turn(&in_the_midst),
        )
        .answer("hook_callback", |_| decision("allow"))
        .until("result"),
        // Both calls of one answer are deferred, then only one of them.
        resumed(put_off("deferred_both", &both))
            .answer("hook_callback", |_| decision("allow"))
            .until("result"),
        resumed(
            Scenario::with_initialize("deferred_the_first_of_two", registered())
                .answer("hook_callback", |request| {
                    let touches = request["input"]["tool_input"]["command"] != "echo hello";
                    decision(if touches { "defer" } else { "allow" })
                })
                .turn(&both),
        )
        .answer("hook_callback", |_| decision("allow"))
        .until("result"),
        resumed(
            Scenario::with_initialize("deferred_the_second_of_two", registered())
                .answer("hook_callback", |request| {
                    let touches = request["input"]["tool_input"]["command"] != "echo hello";
                    decision(if touches { "allow" } else { "defer" })
                })
                .turn(&both),
        )
        .answer("hook_callback", |_| decision("allow"))
        .until("result"),
        resumed(put_off("deferred_and_streamed", &touch))
            .flags("--include-partial-messages --replay-user-messages")
            .answer("hook_callback", |_| decision("allow"))
            .until("result"),
    ]
}

fn decision(decision: &str) -> Option<Reply> {
    let output = json!({"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": "so"});
    Some(Reply::Payload(json!({"hookSpecificOutput": output})))
}

/// A server of the host with the tools `add`, which adds, and `fail`, which fails.
pub(crate) fn calc(request: &Value) -> Option<Reply> {
    let message = &request["message"];
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "calc", "version": "1.0.0"},
        }),
        "tools/list" => {
            let schema =
                json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}});
            json!({"tools": [
                {"name": "add", "description": "Adds", "inputSchema": schema},
                {"name": "fail", "description": "Fails", "inputSchema": {"type": "object", "properties": {}}},
            ]})
        }
        "tools/call" if message["params"]["name"] == "add" => {
            let sum = message["params"]["arguments"]["a"].as_i64()?
                + message["params"]["arguments"]["b"].as_i64()?;
            json!({"content": [{"type": "text", "text": sum.to_string()}]})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "no"}], "isError": true}),
        _ => json!({}),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    Some(Reply::Payload(json!({"mcp_response": answer})))
}

/// A host with one server.
fn mcp_server(name: &'static str) -> Scenario {
    Scenario::with_initialize(name, json!({"hooks": null, "sdkMcpServers": ["calc"]}))
}

fn mcp() -> Vec<Scenario> {
    let with = |name| {
        mcp_server(name)
            .answer("mcp_message", calc)
            .answer("can_use_tool", allow)
    };
    vec![
        with("mcp_call")
            .flags("--allowedTools mcp__calc__add")
            .turn("%tool mcp__calc__add {\"a\": 2, \"b\": 3}\n%say done"),
        with("mcp_call_asked_about").turn("%tool mcp__calc__add {\"a\": 2, \"b\": 3}\n%say done"),
        with("mcp_failure")
            .flags("--allowedTools mcp__calc__fail")
            .turn("%tool mcp__calc__fail {}\n%say done"),
        with("mcp_status")
            .turn("%say hello")
            .control(json!({"subtype": "mcp_status"})),
        mcp_server("mcp_resources")
            .answer("mcp_message", with_resources)
            .turn(concat!(
                "%tool ListMcpResourcesTool {}\n",
                "%tool ListMcpResourcesTool {\"server\": \"calc\"}\n",
                "%tool ReadMcpResourceTool {\"server\": \"calc\", \"uri\": \"x://text\"}\n",
                "%tool ReadMcpResourceTool {\"server\": \"calc\", \"uri\": \"x://data\"}\n",
                "%tool ReadMcpResourceTool {\"server\": \"none\", \"uri\": \"x://data\"}\n",
                "%say done",
            )),
    ]
}

/// A server that also has resources, and prompts.
fn with_resources(request: &Value) -> Option<Reply> {
    let message = &request["message"];
    let uri = &message["params"]["uri"];
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "calc", "version": "1.0.0"},
        }),
        "tools/list" => json!({"tools": []}),
        "resources/list" => json!({"resources": [
            {"uri": "x://text", "name": "text", "mimeType": "text/plain", "description": "A text"},
            {"uri": "x://data", "name": "data"},
        ]}),
        "resources/read" if *uri == "x://text" => {
            json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": "hi"}]})
        }
        "resources/read" => json!({"contents": [{"uri": uri, "mimeType": "image/png", "blob": "aGk="}]}),
        _ => json!({}),
    };
    Some(Reply::Payload(
        json!({"mcp_response": {"jsonrpc": "2.0", "id": message["id"], "result": result}}),
    ))
}

fn control() -> Vec<Scenario> {
    vec![
        Scenario::new("interrupted_before_the_answer")
            .prompt("%delay 60000\n%say never")
            .until("system/init")
            .control(json!({"subtype": "interrupt"}))
            .until("result")
            .turn("%say again"),
        Scenario::new("interrupted_stream")
            .flags("--include-partial-messages")
            .prompt(LONG)
            .until("stream_event/content_block_delta")
            .control(json!({"subtype": "interrupt"}))
            .until("result")
            .turn("%say again"),
        Scenario::new("interrupted_command")
            .flags("--allowedTools Bash")
            .prompt(&format!("{WAIT}\n%say never"))
            .until_file("runs")
            .control(json!({"subtype": "interrupt"}))
            .until("result")
            .turn("%say again"),
        Scenario::new("interrupted_question")
            .prompt(&format!("{TOUCH}\n%say never"))
            .until("control_request/can_use_tool")
            .control(json!({"subtype": "interrupt"}))
            .until("result"),
        Scenario::new("interrupted_with_a_queue")
            .flags("--include-partial-messages")
            .prompt_with(1, LONG, json!({}))
            .until("stream_event/content_block_delta")
            .prompt_with(2, "%say two", json!({}))
            .until("command_lifecycle/queued")
            .control(json!({"subtype": "interrupt"}))
            .until("result")
            .until("result"),
        Scenario::new("interrupted_with_cancelled_queue")
            .flags("--include-partial-messages")
            .prompt_with(1, LONG, json!({}))
            .until("stream_event/content_block_delta")
            .prompt_with(2, "%say two", json!({}))
            .until("command_lifecycle/queued")
            .control(json!({"subtype": "interrupt", "cancel_queued": true}))
            .until("result"),
        Scenario::new("interrupted_for_nothing")
            .control(json!({"subtype": "interrupt"}))
            .turn("%say hello")
            .control(json!({"subtype": "interrupt"})),
        Scenario::new("set_model")
            .turn("%say one")
            .control(json!({"subtype": "set_model", "model": "claude-sonnet-4-5-20250929"}))
            .turn("%say two")
            .control(json!({"subtype": "set_model"}))
            .turn("%say three"),
        Scenario::new("set_permission_mode")
            .turn("%say one")
            .control(json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}))
            .turn(&format!("{WRITE}\n%say done"))
            .control(json!({"subtype": "set_permission_mode", "mode": "nonsense"})),
        Scenario::new("set_max_thinking_tokens")
            .control(json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 4000}))
            .turn("%say one"),
        Scenario::new("unknown_request")
            .control(json!({"subtype": "no_such_request"}))
            .turn("%say hello"),
        Scenario::new("initialized_twice")
            .control(json!({"subtype": "initialize", "hooks": null}))
            .turn("%say hello"),
        Scenario::new("questions_about_the_session")
            .turn("%say hello")
            .control(json!({"subtype": "get_context_usage"}))
            .control(json!({"subtype": "get_settings"}))
            .control(json!({"subtype": "list_models"}))
            .control(json!({"subtype": "get_binary_version"})),
        Scenario::new("end_session")
            .turn("%say hello")
            .control(json!({"subtype": "end_session"})),
    ]
}

fn input() -> Vec<Scenario> {
    let then_turn = |name, line: &str| Scenario::new(name).line(line).turn("%say hello");
    vec![
        Scenario::new("no_json").line("this is no JSON"),
        Scenario::new("truncated_json").line("{\"type\": \"user\", "),
        then_turn("empty_line", ""),
        then_turn("a_list", "[1, 2]"),
        then_turn("unknown_type", "{\"type\": \"nonsense\", \"a\": 1}"),
        then_turn("keep_alive", "{\"type\": \"keep_alive\"}"),
        Scenario::new("prompt_without_message").line("{\"type\": \"user\"}"),
        Scenario::bare("nothing_at_all").eof(),
        Scenario::new("no_prompt").eof(),
        Scenario::bare("unknown_flag").flags("--no-such-flag"),
        Scenario::bare("settings_that_are_none").flag("--settings", "{nope"),
        Scenario::new("two_processes")
            .turn("%say one")
            .then_process()
            .turn("%say two"),
        Scenario::bare("invalid_mode").flags("--permission-mode bogus"),
    ]
}

fn sessions() -> Vec<Scenario> {
    // So many turns, and a process that goes back to the first answer and may drop the turn of one prompt.
    let resumed_at = |name, turns: u32, dropped| {
        let begun = (1..=turns).fold(Scenario::new(name), |scenario, number| {
            scenario
                .prompt_with(number, "%say one", json!({}))
                .until("command_lifecycle/completed")
        });
        begun
            .then_process_bare()
            .flag("--resume", "{session}")
            .flag("--resume-session-at", "{answer}")
            .flag("--resume-drops-turn", &uuid(dropped))
    };
    vec![
        Scenario::new("resume")
            .turn("%say one")
            .then_process()
            .flag("--resume", "{session}")
            .turn("%say two"),
        Scenario::new("resume_with_replay")
            .turn("%say one")
            .then_process()
            .flags("--replay-user-messages")
            .flag("--resume", "{session}")
            .turn("%say two"),
        Scenario::bare("resume_of_nothing")
            .flags("--resume 00000000-0000-4000-8000-000000000000")
            .until("result"),
        resumed_at("resume_at", 2, 2).turn("%say three"),
        resumed_at("resume_that_drops_nothing", 1, 9).turn("%say two"),
        resumed_at("resume_that_drops_another_turn", 2, 9).until("result"),
        resumed_at("resume_that_drops_two_turns", 3, 2).until("result"),
        Scenario::new("resume_that_drops_no_turn")
            .turn("%say one")
            .then_process_bare()
            .flag("--resume", "{session}")
            .flag("--resume-session-at", "{answer}")
            .flags("--resume-drops-turn="),
        Scenario::bare("resume_that_drops_for_nothing")
            .flag("--resume", &uuid(8))
            .flag("--resume-drops-turn", &uuid(9)),
        Scenario::new("continue")
            .turn("%say one")
            .then_process()
            .flags("--continue")
            .turn("%say two"),
        Scenario::new("continue_of_nothing")
            .flags("--continue")
            .turn("%say one"),
        Scenario::new("fork")
            .turn("%say one")
            .then_process()
            .flags("--fork-session")
            .flag("--resume", "{session}")
            .turn("%say two"),
        Scenario::new("session_id")
            .flag("--session-id", &uuid(9))
            .turn("%say one"),
        // The name of the second is taken again.
        Scenario::new("worktree")
            .flag("--allowedTools", "Bash(git *)")
            .answer("can_use_tool", allow)
            .turn(REPOSITORY)
            .then_process()
            .flags("--allowedTools=Bash --worktree feature")
            .turn(IN_WORKTREE)
            .then_process()
            .flags("--allowedTools=Bash --worktree feature")
            .turn("%say two")
            .then_process()
            .flags("--allowedTools=Bash --worktree")
            .turn(IN_WORKTREE),
        // It goes on there when it is resumed, and is kept from the files of the checkout.
        Scenario::new("worktree_and_checkout")
            .flag("--allowedTools", "Bash(git *)")
            .answer("can_use_tool", allow)
            .turn(REPOSITORY)
            .then_process()
            .flags("--permission-mode=acceptEdits --worktree feature --disallowedTools Edit(denied)")
            .answer("can_use_tool", allow)
            .turn(&format!(
                "{WRITE}\n%tool Write {{\"file_path\": \"{{root}}/outside\", \"content\": \"x\"}}\n\
                 %tool Write {{\"file_path\": \"{{project}}/denied\", \"content\": \"x\"}}\n\
                 %tool Write {{\"file_path\": \"{{project}}\", \"content\": \"x\"}}\n\
                 %tool Edit {{\"file_path\": \"{{project}}/none\", \"old_string\": \"a\", \"new_string\": \"a\"}}\n\
                 %tool Write {{\"file_path\": \"made.txt\", \"content\": \"x\"}}\n%say done"
            ))
            .then_process()
            .flags("--permission-mode=acceptEdits")
            .flag("--resume", "{session}")
            .answer("can_use_tool", allow)
            .turn(&format!("{WRITE}\n{IN_WORKTREE}\n%say done")),
        Scenario::bare("worktree_outside_of_a_repository").flags("--worktree feature"),
        Scenario::new("worktree_of_a_bad_name")
            .flag("--allowedTools", "Bash(git *)")
            .answer("can_use_tool", allow)
            .turn(REPOSITORY)
            .then_process_bare()
            .flags("--worktree ../up"),
        Scenario::new("rename")
            .turn("%say one")
            .control(json!({"subtype": "rename_session", "title": "Tea"})),
        Scenario::new("clear")
            .turn("%say one")
            .turn("/clear")
            .turn("%say two"),
        Scenario::new("no_such_command").turn("/nonsense"),
    ]
}

fn agents() -> Vec<Scenario> {
    let call = |background: &str| CALL.replace("RB", background);
    let helper = json!({"helper": {"description": "Helps", "prompt": "Help."}});
    vec![
        Scenario::new("subagent").turn(&format!("{}\n%say done", call("false"))),
        Scenario::with_initialize("defined_subagent", json!({"hooks": null, "agents": helper}))
            .turn(&format!("{}\n%say done", call("false").replace("general-purpose", "helper"))),
        Scenario::new("mirrored_subagent")
            .flags("--session-mirror")
            .turn(&format!("{}\n%say done", call("false"))),
        Scenario::new("unknown_subagent")
            .turn(&format!("{}\n%say done", call("false").replace("general-purpose", "nobody"))),
        Scenario::new("subagent_with_a_tool")
            .answer("can_use_tool", allow)
            .turn(&format!("{}\n%say done", call("false").replace("%say from below", "%tool Bash {\\\"command\\\": \\\"touch made.txt\\\"}\\n%say from below"))),
        Scenario::new("subagent_in_the_background")
            .turn(&format!("{}\n%say started\n%say woken", call("true").replace("%say from", "%delay 5000\\n%say from")))
            .until("result"),
        Scenario::new("stopped_task")
            .flags("--allowedTools Bash")
            .turn("%tool Bash {\"command\": \"touch runs; until [ -e go ]; do sleep 0.1; done\", \"run_in_background\": true}\n%say started")
            .control(json!({"subtype": "background_tasks"}))
            .control(json!({"subtype": "stop_task", "task_id": "{task}"})),
    ]
}

fn output() -> Vec<Scenario> {
    const SCHEMA: &str =
        r#"{"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}"#;
    vec![
        Scenario::new("structured_output")
            .flag("--json-schema", SCHEMA)
            .turn("%tool StructuredOutput {\"answer\": 42}\n%say done"),
        Scenario::with_initialize("structured_output_asked_for", {
            json!({"hooks": null, "jsonSchema": serde_json::from_str::<Value>(SCHEMA).unwrap_or_default()})
        })
        .turn("%tool StructuredOutput {\"answer\": 42}\n%say done"),
        Scenario::new("structured_output_that_does_not_fit")
            .flag("--json-schema", SCHEMA)
            .turn("%tool StructuredOutput {\"answer\": \"x\"}\n%tool StructuredOutput {\"answer\": 1}\n%say done"),
        Scenario::new("structured_output_as_texts")
            .flag("--json-schema", SCHEMA)
            .turn("%tool StructuredOutput {\"answer\": \"42\"}\n%say done"),
        Scenario::new("structured_output_never_given")
            .flag("--json-schema", SCHEMA)
            .turn("%say no\n%say still no"),
        Scenario::new("budget")
            .flags("--max-budget-usd 0.01")
            .turn("%usage in=100000 out=100000\n%say dear")
            .turn("%say again"),
        Scenario::new("plan")
            .flags("--permission-mode plan")
            .answer("can_use_tool", allow)
            .turn("%tool ExitPlanMode {\"plan\": \"do it\"}\n%say done"),
        Scenario::new("question_for_the_user")
            .answer("can_use_tool", |request| {
                let mut input = request["input"].clone();
                input["answers"] = json!({"Tea or coffee?": "Tea"});
                Some(Reply::Payload(json!({"behavior": "allow", "updatedInput": input})))
            })
            .turn(concat!(
                "%tool AskUserQuestion {\"questions\": [{\"question\": \"Tea or coffee?\", \"header\": \"Drink\", ",
                "\"multiSelect\": false, \"options\": [{\"label\": \"Tea\", \"description\": \"hot\"}, ",
                "{\"label\": \"Coffee\", \"description\": \"hot\"}]}]}\n%say done"
            )),
        Scenario::new("hook_events")
            .flags("--include-hook-events --allowedTools Bash")
            .turn(&format!("{ECHO}\n%say done")),
    ]
}
