//! What commands and agents put out, and where; what a command is given, and what becomes of what it has started.

use serde_json::{Value, json};

use super::allow;
use crate::scenario::Scenario;

/// The files of tasks, from the project.
const FILES: &str = "../t/claude-*/*/*/tasks/*.output";

fn call(tool: &str, input: Value) -> String {
    format!("%tool {tool} {input}\n")
}

fn in_background(command: &str) -> String {
    call("Bash", json!({"command": command, "run_in_background": true}))
}

/// A turn whose command fails unless the only file of a task has this output.
fn shows(output: &str) -> String {
    let command =
        format!("for f in {FILES}; do [ -s $f ] && cat $f > shown; done; printf '{output}' | cmp - shown");
    call("Bash", json!({"command": command})) + "%say shown"
}

fn tasks(name: &str) -> Scenario {
    Scenario::new(name)
        .flags("--allowedTools Bash,Read,Agent")
        .file("src/a.txt", "a\n")
}

fn agent(prompt: &str, in_background: bool) -> String {
    let input = json!({
        "description": "look", "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": in_background,
    });
    call("Agent", input)
}

/// Ends a task whose command waits for it.
const WAIT: &str = "until [ -e go ]; do sleep 0.1; done";

/// A task runs in the background, ends when its file is there, and wakes the model.
fn woken(scenario: Scenario, line: &str) -> Scenario {
    scenario
        .turn(&format!("{line}%say started\n%say woken"))
        .make_file("go")
        .until("result")
}

/// Commands that go elsewhere, and some that only look so.
const GOING: &[&str] = &[
    "cd src",
    "cd src && ls",
    "(cd src; ls)",
    "pushd src",
    "cd .",
    "ls src",
    "echo cd src",
    "false && cd src",
    "bash -c 'cd src'",
    "builtin cd src",
    "ls | (cd src)",
    "A=1 cd src",
    "cd",
    "ls; cd src; pwd",
    "cd none",
    "popd",
    "command cd src",
    "time cd src",
];

/// Lines that leave a command running, and some that only look so.
const LEFT_RUNNING: &[&str] = &[
    "touch q &",
    "sleep 0 &",
    "cd src &",
    "mkdir d &",
    "touch q & true",
    "touch q & touch r",
    "(touch q) &",
    "touch q&",
    "touch q &\n",
    "touch q & wait",
    "true &",
    "touch src/x &",
    "true; touch q &",
    "true && touch q &",
    "node none.js > /dev/null 2>&1 &",
    "npm none > /dev/null 2>&1 &",
    "chmod +r src &",
    "cp src/a.txt r &",
    "sed -i s/a/b/ src/a.txt &",
    "echo a > q &",
    "true;touch u &",
    "touch a; touch b &",
    "cat /etc/passwd > /dev/null &",
    "touch ../x &",
    "$(true) &",
    "true & $(true)",
    "X=1 &",
    "X=1 true &",
    "cd src && touch a &",
    "true | true &",
    "rm -f q & rm -f r",
    "true &> q",
    "true 2>&1 &",
    "echo '& and more' '&'",
    "true & # x",
];

/// Commands that write nothing, and some that only look so.
const SILENT: &[&str] = &[
    "mkdir a",
    "(mkdir b)",
    "mkdir $(echo c)",
    "mkdir d && touch d/e",
    "mkdir f | touch g",
    "A=1 touch h",
    "A=$(echo 1) touch i",
    "touch j; true",
    "command touch k",
    "touch `echo l`",
    "if true; then touch m; fi",
    "for i in n o; do touch $i; done",
    "{ touch p; }",
    "touch q &",
    "! rm r",
    "touch s > t",
    "echo u > v",
    "touch w 2>&1",
    "\\touch x",
    "/bin/touch y",
    "time touch z",
];

/// Variables of a command, and those of a server: with their values, or without if they are not there.
const COMMANDS_VARIABLES: &[&str] = &[
    "AI_AGENT=claude-code_2-1-332_agent",
    "CLAUDECODE=1",
    "CLAUDE_CODE_CHILD_SESSION=1",
    "CLAUDE_CODE_ENTRYPOINT=sdk-cli",
    "CLAUDE_CODE_SESSION_ATTENDED=0",
    "CLAUDE_EFFORT=medium",
    "COREPACK_ENABLE_AUTO_PIN=0",
    "GIT_EDITOR=true",
    "NoDefaultCurrentDirectoryInExePath=1",
    "OTEL_LOGS_EXPORTER",
    "SHELL=/bin/bash",
];
const SERVERS_VARIABLES: &[&str] = &[
    "A=b",
    "AI_AGENT=claude-code_2-1-332_harness",
    "CLAUDECODE=1",
    "CLAUDE_CODE_ENTRYPOINT=sdk-cli",
    "COREPACK_ENABLE_AUTO_PIN=0",
    "GIT_EDITOR=vim",
    "NoDefaultCurrentDirectoryInExePath=1",
    "OTEL_LOGS_EXPORTER",
];

/// A command that fails unless another one shows these variables.
fn variables(variables: &[&str], shown_by: &str) -> String {
    let tests = variables.iter().map(|variable| match variable.contains('=') {
        true => format!("{shown_by} | grep -qx '{variable}'"),
        false => format!("! {shown_by} | grep -q '^{variable}='"),
    });
    let names = [
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_PID",
        "CLAUDE_CODE_EXECPATH",
        "CLAUDE_PROJECT_DIR",
    ];
    let counts = format!("{shown_by} | grep -cE '^({})='", names.join("|"));
    tests.collect::<Vec<_>>().join(" && ") + " && " + &counts
}

pub(super) fn outputs() -> Vec<Scenario> {
    let going = GOING.iter();
    let going: String = going
        .map(|command| in_background(&format!("{command}\n{WAIT}")))
        .collect();
    let moved = call(
        "Bash",
        json!({"command": "echo early; cd src; sleep 6", "timeout": 1500}),
    );
    let by_hand = call(
        "Bash",
        json!({"command": "echo early; cd src; sleep 7; echo late"}),
    );
    let stays = call("Bash", json!({"command": "[ -e src ]"})) + "%say here";
    // The agent is slower than the one that has started it.
    let waits = format!(
        "%slow 300 chunk=8\n{}%say deep",
        call("Bash", json!({"command": WAIT}))
    );
    let shows_agent = call("Bash", json!({"command": format!("grep -q deep {FILES}")})) + "%say shown";
    let after = |command: &str| in_background(&format!("{WAIT}; {command}"));
    let left = LEFT_RUNNING
        .iter()
        .map(|command| call("Bash", json!({"command": command})));
    let left = left.collect::<String>() + "%say left";
    let left_running = |name: &str| {
        Scenario::new(name)
            .file("src/a.txt", "a\n")
            .answer("can_use_tool", allow)
    };
    let parent = "echo on > runs; bash -c 'for i in {1..300}; do touch alive; sleep 0.1; done'; true";
    let gone = call(
        "Bash",
        json!({"command": "rm -f alive; sleep 0.5; [ ! -e alive ]"}),
    ) + "%say gone";
    vec![
        woken(
            tasks("an_output_and_its_end"),
            &after("echo one; echo two >&2; printf 'a\\0b'; exit 3"),
        )
        .turn(&shows("one\\ntwo\\na\\0b\\n[exited with code 3]\\n")),
        woken(tasks("an_output_of_nothing"), &after("true")).turn(&shows("\\n[exited with code 0]\\n")),
        woken(tasks("an_output_with_an_end_by_a_signal"), &after("kill -9 $$"))
            .turn(&shows("\\n[exited with code 1]\\n")),
        tasks("an_output_that_goes_on")
            .turn(&format!(
                "{}%say on",
                in_background(&format!("printf on; {WAIT}; printf off"))
            ))
            .turn(&shows("on"))
            .make_file("go")
            .until("result")
            .turn(&shows("onoff\\n[exited with code 0]\\n")),
        tasks("an_output_that_is_stopped")
            .turn(&format!("{}%say on", in_background("echo on; sleep 60")))
            .control(json!({"subtype": "stop_task", "task_id": "{task}"}))
            .turn(&shows("on\\n\\n[killed]\\n")),
        tasks("an_output_that_is_read")
            .turn(&format!("{}%say on", in_background("echo on; sleep 60")))
            .turn(&format!(
                "{}{}%say read",
                call(
                    "Bash",
                    json!({"command": format!("for f in {FILES}; do [ -s $f ] && ln -s $f link; done; true")})
                ),
                call("Read", json!({"file_path": "link"}))
            ))
            .control(json!({"subtype": "stop_task", "task_id": "{task}"})),
        tasks("an_output_behind_the_end_of_its_process")
            .turn(&format!("{}%say on", in_background("echo on; sleep 60")))
            .signal("TERM")
            .then_process()
            .flags("--allowedTools Bash")
            .turn(&shows("on\\n\\n[killed]\\n")),
        tasks("an_output_that_is_moved_by_a_limit")
            .turn(&format!("{moved}%say moved\n%say woken"))
            .until("result")
            .turn(&shows("early\\n\\n[exited with code 0]\\n"))
            .turn(&stays),
        tasks("an_output_that_is_moved_by_hand")
            .prompt(&format!("{by_hand}%say moved\n%say woken"))
            .until("system/task_started")
            .control(json!({"subtype": "background_tasks"}))
            .until("result")
            .until("result")
            .turn(&shows("early\\nlate\\n\\n[exited with code 0]\\n"))
            .turn(&stays),
        tasks("an_output_of_an_agent").turn(&format!("{}{shows_agent}", agent("%say deep", false))),
        woken(
            tasks("an_output_of_an_agent_in_the_background"),
            &agent(&waits, true),
        )
        .turn(&shows_agent),
        tasks("tasks_go_elsewhere")
            .turn(&format!("{going}%say started"))
            .signal("TERM"),
        tasks("tasks_that_write_nothing")
            .turn(&format!(
                "{}%say made",
                call("Bash", json!({"command": "mkfifo pipe"}))
            ))
            .turn(&format!(
                "{}{}%say started",
                in_background("cp pipe copy"),
                in_background("cd src; cp ../pipe copy")
            ))
            .signal("TERM"),
        tasks("commands_that_write_nothing").turn(&format!(
            "{}%say made",
            SILENT
                .iter()
                .map(|command| call("Bash", json!({"command": command})))
                .collect::<String>()
        )),
        tasks("interrupted_with_what_it_runs")
            .prompt(&format!("{}%say over", call("Bash", json!({"command": parent}))))
            .until_file("runs")
            .control(json!({"subtype": "interrupt"}))
            .until("result")
            .turn(&gone),
        tasks("stopped_with_what_it_runs")
            .turn(&format!("{}%say on", in_background(parent)))
            .until_file("runs")
            .control(json!({"subtype": "stop_task", "task_id": "{task}"}))
            .turn(&gone),
        tasks("terminated_with_what_it_runs")
            .prompt(&format!("{}%say over", call("Bash", json!({"command": parent}))))
            .until_file("runs")
            .signal("TERM")
            .then_process()
            .flags("--allowedTools Bash")
            .turn(&gone),
        tasks("variables_of_commands_and_servers")
            .variable("GIT_EDITOR", "vim")
            .variable("OTEL_LOGS_EXPORTER", "none")
            .variable("CLAUDE_CODE_SESSION_ID", "another")
            .flag(
                "--mcp-config",
                r#"{"mcpServers": {"lab": {"command": "bash", "args": ["-c", "env > served; exec cat"], "env": {"A": "b"}}}}"#,
            )
            .turn(&format!("{}{}%say seen", call("Bash", json!({"command": variables(COMMANDS_VARIABLES, "env")})),
                call("Bash", json!({"command": variables(SERVERS_VARIABLES, "cat served")})))),
        left_running("lines_that_are_left_running").turn(&left),
        left_running("lines_that_are_left_running_by_the_mode")
            .flags("--permission-mode acceptEdits")
            .turn(&left),
        left_running("lines_that_are_left_running_by_rules")
            .flag(
                "--allowedTools",
                "Bash(touch:*),Bash(true:*),Bash(npm none > /dev/null 2>&1 &)",
            )
            .turn(&left),
        left_running("lines_that_are_left_running_by_a_rule_for_all")
            .flags("--allowedTools Bash")
            .turn(&left),
        tasks("a_command_that_is_left_running_holds_nobody")
            .answer("can_use_tool", allow)
            .turn(&format!(
                "{}%say on",
                call("Bash", json!({"command": "echo begun; sleep 50 & echo on"}))
            )),
        tasks("the_shell_goes_elsewhere_and_says_something")
            .turn(&format!(
                "{}%say gone",
                call("Bash", json!({"command": "echo hi; cd /"}))
            ))
            .turn(&stays),
        tasks("a_command_outlives_its_conversation")
            .turn(&format!("{}%say started", in_background(WAIT)))
            .turn("/clear")
            .turn("%say hello")
            .make_file("go")
            .until("result"),
        tasks("an_agent_outlives_its_conversation")
            .prompt(&format!("{}%say started", agent(&waits, true)))
            .until_each(&["result", "system/task_progress"])
            .turn("/clear")
            .turn("%say hello")
            .make_file("go")
            .until("result")
            .turn(&shows_agent),
    ]
}
