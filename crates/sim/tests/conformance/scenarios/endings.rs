//! How a turn goes on, or does not: stop reasons, interrupts beside agents, ends.

use serde_json::json;

use super::{allow, nothing};
use crate::scenario::Scenario;

/// An agent that works while the turn goes on.
fn agent(prompt: &str, background: bool) -> String {
    let input = json!({
        "description": "look", "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": background,
    });
    format!("%tool Agent {input}")
}

/// A prompt that runs these commands.
fn outputs(commands: &[&str]) -> String {
    let lines = commands
        .iter()
        .map(|command| format!("%tool Bash {}\n", json!({"command": command})));
    lines.collect::<String>() + "%say done"
}

pub(super) fn endings() -> Vec<Scenario> {
    let limits = "%stop max_tokens\n%say one\n%stop max_tokens\n%say two\n%stop max_tokens\n%say three\n%stop max_tokens\n%say four\n%stop max_tokens\n%say five\n%say six";
    let refusals = "%stop refusal\n%say one\n%stop refusal\n%say two\n%say three";
    let blank = r#"%json [{"type":"text","text":""}]"#;
    let half_blank =
        r#"%json [{"type":"text","text":""},{"type":"text","text":"one"},{"type":"text","text":"\n\n"}]"#;
    let silences = "%json []\n%json []\n%json []\n%say four";
    // Begins with what is not a word, for the same reason as `LONG`.
    let slow = "%slow 50 chunk=4\n%say (word word word word word word word word word word word word word word word word word word";
    // An agent or a command in the background outlives the turn, on a machine that is busy, too.
    let slower = slow.replace("%slow 50", "%slow 250");
    let beside = format!("{}\n{slow}", agent(&slower, true));
    vec![
        Scenario::new("stopped_at_the_limit_of_tokens").turn(limits).turn("%stop max_tokens\n%say one\n%say two"),
        Scenario::new("stopped_at_the_limit_in_a_call").turn("%stop max_tokens\n%say one\n%+tool Read {\"file_path\":\"none\"}\n%say two"),
        Scenario::new("stopped_by_refusals").turn(refusals).turn("%stop refusal\n%say one\n%say two"),
        Scenario::new("stopped_by_refusals_without_text").turn("%stop refusal\n%json []\n%say two"),
        Scenario::new("said_nothing").turn(silences),
        Scenario::new("thought_alone")
            .flags("--allowedTools Bash")
            .turn("%think hm")
            .turn("%think one\n%redacted two\n%say three")
            .turn("%think one\n%+say \" \"\n%say two")
            .turn("%tool Bash {\"command\":\"echo one\"}\n%think two\n%say three")
            .turn("%think one\n%tool Bash {\"command\":\"echo two\"}\n%say three")
            .turn("%stop max_tokens\n%think one\n%say two")
            .turn(&format!("{}\n%say done", agent(blank, false)))
            .turn(&format!("{}\n%say done", agent("%think hm", false))),
        Scenario::new("texts_of_nothing")
            .flags("--include-partial-messages --allowedTools Bash")
            .turn(blank)
            .turn("%say \" \"")
            .turn(half_blank)
            .turn(&format!("{blank}\n%+tool Bash {{\"command\":\"echo one\"}}\n%say two")),
        Scenario::new("blocks_that_are_given_whole")
            .flags("--include-partial-messages --allowedTools Bash")
            .turn("%json [{\"type\":\"tool_use\",\"id\":\"toolu_given\",\"name\":\"Bash\",\"input\":{\"command\":\"echo one\"}}]\n%say two")
            .turn("%json [{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"c2lnbmF0dXJl\"},{\"type\":\"text\",\"text\":\"one\"}]"),
        Scenario::new("said_nothing_behind_a_tool").turn("%tool Read {\"file_path\":\"none\"}\n%json []\n%say two"),
        Scenario::new("agents_that_stop").turn(&format!(
            "{}\n{}\n{}\n%say done",
            agent("%stop max_tokens\n%say one\n%say two", false),
            agent("%stop refusal\n%say one\n%say two", false),
            agent("%json []\n%say two", false),
        )),
        Scenario::with_initialize("stopped_with_hooks", json!({"hooks": {"Stop": [{"hookCallbackIds": ["Stop"]}]}}))
            .answer("hook_callback", nothing)
            .turn("%stop max_tokens\n%say one\n%say two")
            .turn("%stop refusal\n%say one\n%say two")
            .turn("%json []\n%say two"),
        Scenario::new("interrupted_twice_at_once")
            .flags("--include-partial-messages")
            .prompt(slow)
            .until("stream_event/content_block_delta")
            .line("{\"type\":\"control_request\",\"request_id\":\"one\",\"request\":{\"subtype\":\"interrupt\"}}\n{\"type\":\"control_request\",\"request_id\":\"two\",\"request\":{\"subtype\":\"interrupt\"}}")
            .until("result"),
        Scenario::new("interrupted_in_a_stall")
            .flags("--include-partial-messages")
            .prompt("%hang\n%say some text that never ends")
            .until("stream_event/content_block_delta")
            .control(json!({"subtype": "interrupt"}))
            .until("result"),
        Scenario::new("interrupted_beside_an_agent")
            .flags("--include-partial-messages")
            .prompt(&beside)
            .until("user/tool_result")
            .until("stream_event/content_block_delta")
            .until("stream_event/content_block_delta")
            .control(json!({"subtype": "interrupt"}))
            .until("result")
            .turn("%say on"),
        Scenario::with_initialize("interrupted_and_the_agent_spared", json!({"hooks": null, "perTaskStopAffordance": true}))
            .flags("--include-partial-messages")
            .prompt(&beside)
            .until("user/tool_result")
            .until("stream_event/content_block_delta")
            .until("stream_event/content_block_delta")
            .control(json!({"subtype": "interrupt"}))
            .until("result")
            .eof(),
        Scenario::new("an_error_and_an_agent")
            .prompt(&format!("{}\n%error 400 n=9\n%say never", agent(&slower, true)))
            .until("result")
            .eof(),
        Scenario::new("an_error_and_a_command")
            .answer("can_use_tool", allow)
            .prompt("%tool Bash {\"command\":\"sleep 6\",\"run_in_background\":true}\n%error 400 n=9\n%say never")
            .until("result")
            .eof(),
        Scenario::new("an_agent_is_stopped_in_its_words")
            .prompt(&format!("{}\n%say on", agent(&slower, true)))
            .until("result")
            .control(json!({"subtype": "stop_task", "task_id": "{task}"}))
            .until("result"),
        Scenario::bare("prompt_before_initialize")
            .prompt("%say hello")
            .control(json!({"subtype": "initialize", "hooks": null}))
            .until("result"),
        Scenario::bare("request_before_initialize")
            .control(json!({"subtype": "mcp_status"}))
            .control(json!({"subtype": "initialize", "hooks": null}))
            .turn("%say hello"),
        Scenario::bare("prompt_where_initialize_is_awaited")
            .flags("--await-initialize")
            .prompt("%say hello"),
        Scenario::bare("prompt_where_initialize_is_awaited_and_failures_are_told")
            .variable("CLAUDE_CODE_STARTUP_FAILURE_RESULTS", "1")
            .flags("--await-initialize")
            .prompt("%say hello"),
        Scenario::bare("no_json_where_initialize_is_awaited_and_failures_are_told")
            .variable("CLAUDE_CODE_STARTUP_FAILURE_RESULTS", "1")
            .flags("--await-initialize")
            .line("nonsense"),
        Scenario::bare("unknown_session_where_failures_are_told")
            .variable("CLAUDE_CODE_STARTUP_FAILURE_RESULTS", "1")
            .flags("--resume 00000000-0000-4000-8000-000000000000"),
        Scenario::bare("bad_mode_where_failures_are_told")
            .variable("CLAUDE_CODE_STARTUP_FAILURE_RESULTS", "1")
            .flags("--permission-mode bogus"),
        Scenario::new("interrupted_beside_a_command")
            .answer("can_use_tool", allow)
            .flags("--include-partial-messages")
            .prompt(&format!("%tool Bash {{\"command\":\"sleep 6\",\"run_in_background\":true}}\n{slow}"))
            .until("user/tool_result")
            .until("stream_event/content_block_delta")
            .until("stream_event/content_block_delta")
            .control(json!({"subtype": "interrupt"}))
            .until("result")
            .eof(),
        Scenario::new("terminated_beside_a_command")
            .answer("can_use_tool", allow)
            .turn("%tool Bash {\"command\":\"sleep 30\",\"run_in_background\":true}\n%say started")
            .signal("TERM"),
        Scenario::new("terminated_beside_an_agent")
            .turn(&format!("{}\n%say started", agent(&slower, true)))
            .signal("TERM"),
        Scenario::new("unknown_skill").answer("can_use_tool", allow).turn("%tool Skill {\"skill\":\"no-such-skill\"}\n%say done"),
        Scenario::new("reads_devices").answer("can_use_tool", allow).file("../outside.txt", "out\n")
            .turn("%tool Bash {\"command\":\"echo a; cat ../outside.txt\"}\n%say done")
            .turn("%tool Bash {\"command\":\"echo a; touch ../new.txt\"}\n%say done")
            .turn("%tool Bash {\"command\":\"echo a; make; cat ../outside.txt\"}\n%say done")
            .turn("%tool Bash {\"command\":\"echo a; cat /dev/null\"}\n%say done")
            .turn("%tool Bash {\"command\":\"cat /dev/null\"}\n%say done")
            .turn("%tool Bash {\"command\":\"echo a; tail -n 1 ../outside.txt -s 3\"}\n%say done")
            .turn("%tool Bash {\"command\":\"echo a; head -c 1 /dev/zero\"}\n%say done"),
        Scenario::new("large_outputs")
            .flags("--allowedTools Bash")
            .turn(&outputs(&["head -c 29000 /dev/zero | tr '\\0' x", "head -c 31000 /dev/zero | tr '\\0' x", "head -c 300000 /dev/zero | tr '\\0' x"]))
            .turn(&outputs(&["head -c 31000 /dev/zero | tr '\\0' x; exit 3", "head -c 31000 /dev/zero | tr '\\0' x >&2"])),
        Scenario::new("large_files")
            .flags("--allowedTools Bash")
            .turn(&outputs(&["head -c 300000 /dev/zero | tr '\\0' x > long.txt; seq 3000 > short.txt; seq 30000 > many.txt"]))
            .turn("%tool Read {\"file_path\":\"long.txt\"}\n%tool Read {\"file_path\":\"short.txt\"}\n%tool Read {\"file_path\":\"many.txt\"}\n%tool Read {\"file_path\":\"many.txt\",\"limit\":10}\n%say done"),
        Scenario::new("server_that_dies_at_once")
            .flag("--mcp-config", r#"{"mcpServers": {"dies": {"type": "stdio", "command": "false"}}}"#)
            .flags("--strict-mcp-config")
            .turn("%say hello"),
    ]
}
