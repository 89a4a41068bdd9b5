//! What agents run in the background, and tasks that the model stops.

use serde_json::{Value, json};

use crate::scenario::{Reply, Scenario};

fn call(tool: &str, input: Value) -> String {
    format!("%tool {tool} {input}\n")
}

fn bash(command: &str) -> String {
    call("Bash", json!({"command": command}))
}

fn in_background(command: &str) -> String {
    call("Bash", json!({"command": command, "run_in_background": true}))
}

/// Waits for a file.
fn wait(file: &str) -> String {
    format!("until [ -e {file} ]; do sleep 0.1; done")
}

fn agent(prompt: &str, in_background: bool) -> String {
    let input = json!({
        "description": "look", "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": in_background,
        "name": "bob",
    });
    call("Agent", input)
}

fn stop(id: &str) -> String {
    call("TaskStop", json!({"task_id": id}))
}

/// An agent with this is slower than the one that has started it.
const SLOW: &str = "%slow 300 chunk=20\n";

fn owned(name: &str) -> Scenario {
    Scenario::new(name).flags("--allowedTools Bash,Agent")
}

/// An agent in the background that begins when the turn is over, and has reported while this still runs.
fn parked(scenario: Scenario, commands: &str) -> Scenario {
    let works = format!(
        "{SLOW}{}{commands}%say reported\n%say again\n%say and again",
        bash(&wait("go"))
    );
    scenario
        .turn(&format!(
            "{}%say started\n%say heard\n%say and heard",
            agent(&works, true)
        ))
        .make_file("go")
        .until("result")
}

pub(super) fn owned_tasks() -> Vec<Scenario> {
    let alive = "echo $$ > pid; for i in {1..300}; do touch alive; sleep 0.1; done";
    let gone = bash("rm -f alive; sleep 0.5; [ ! -e alive ]") + "%say gone";
    let leaves = format!("{}{}%say reported", in_background(alive), bash(&wait("alive")));
    let works = format!(
        "{}{}%say reported",
        in_background(alive),
        bash(&format!("touch runs; {}", wait("late")))
    );
    let hooks = json!({"hooks": {
        "SubagentStart": [{"matcher": null, "hookCallbackIds": ["start"]}],
        "SubagentStop": [{"matcher": null, "hookCallbackIds": ["end"]}],
        "Stop": [{"matcher": null, "hookCallbackIds": ["stop"]}],
    }});
    let forwarding = |name: &str, fields: Value| {
        Scenario::with_initialize(name, fields).flags("--allowedTools Bash,Agent")
    };
    let deep = agent(&format!("{}%say inner", bash("true")), false);
    let deep = format!("{}%say over", agent(&format!("{deep}%say outer"), false));
    let outliving = {
        // Its first call comes after some seconds, when the other agent has ended even on a machine that is busy.
        let slower = SLOW.replace("300", "3000");
        let inner = agent(&format!("{slower}{}%say inner", bash(&wait("go"))), true);
        agent(&format!("{inner}{}%say outer", bash("true")), false)
    };
    vec![
        owned("a_command_that_ends_in_a_turn").turn(&format!(
            "{}{}%say over",
            in_background(&format!("{}; touch ended", wait("early"))),
            bash(&format!("touch early; {}; sleep 1", wait("ended")))
        )),
        owned("commands_that_end_while_the_answer_is_said")
            .prompt(&format!(
                "{}{}%slow 400 chunk=4\n%say a long ending that takes its time",
                in_background(&wait("go")),
                in_background(&wait("go"))
            ))
            .until("user/tool_result")
            .until("user/tool_result")
            .make_file("go")
            .until("result")
            .until("result")
            .until("result"),
        owned("an_agent_that_ends_in_a_turn").turn(&format!(
            "{}{}%say over",
            agent(
                &format!(
                    "{}%say reported",
                    SLOW.to_owned() + &bash(&format!("{}; touch ended", wait("early")))
                ),
                true
            ),
            bash(&format!("touch early; {}; sleep 1", wait("ended")))
        )),
        owned("a_command_that_an_agent_leaves")
            .turn(&format!("{}%say over", agent(&leaves, false)))
            .turn(&gone),
        owned("a_command_that_ends_while_its_agent_works").turn(&format!(
            "{}%say over",
            agent(
                &format!(
                    "{}{}%say reported",
                    in_background(&format!("{}; touch ended", wait("early"))),
                    bash(&format!("touch early; {}; sleep 1", wait("ended")))
                ),
                false
            )
        )),
        owned("a_command_of_an_agent_that_lasts").turn(&format!(
            "{}%say over",
            agent(&format!("{}%say reported", bash("sleep 5")), false)
        )),
        owned("a_command_of_an_agent_that_is_moved_by_a_limit").turn(&format!(
            "{}%say over",
            agent(
                &format!(
                    "{}%say reported",
                    call(
                        "Bash",
                        json!({"command": "echo on; sleep 60 | cat", "timeout": 1500})
                    )
                ),
                false
            )
        )),
        parked(
            owned("an_agent_waits_for_its_command"),
            &in_background(&wait("end")),
        )
        .make_file("end")
        .until("result"),
        parked(
            owned("an_agent_waits_for_two_commands"),
            &(in_background(&wait("end")) + &in_background(&format!("{}; exit 3", wait("next")))),
        )
        .make_file("end")
        .until("result")
        .make_file("next")
        .until("result"),
        parked(
            Scenario::with_initialize("an_agent_waits_with_hooks", hooks)
                .answer("hook_callback", |_| Some(Reply::Payload(json!({}))))
                .flags("--allowedTools Bash,Agent"),
            &in_background(&wait("end")),
        )
        .make_file("end")
        .until("result"),
        parked(
            owned("an_agent_waits_for_a_command_that_is_stopped"),
            &in_background("sleep 60"),
        )
        .control(json!({"subtype": "get_task_output", "task_id": "{task}"}))
        .control(json!({"subtype": "stop_task", "task_id": "{task}"}))
        .until("result"),
        parked(owned("an_agent_is_stopped_while_it_waits"), &in_background(alive))
            .turn(&format!("{}%say stopped", stop("bob")))
            .turn(&gone),
        parked(
            owned("an_agent_is_interrupted_while_it_waits"),
            &in_background(alive),
        )
        .prompt(&format!(
            "{}%say no",
            bash(&format!("touch runs; {}", wait("late")))
        ))
        .until_file("runs")
        .control(json!({"subtype": "interrupt"}))
        .until("result")
        .turn(&gone),
        parked(
            owned("an_agent_waits_at_the_end_of_the_input"),
            &in_background("sleep 60"),
        ),
        owned("an_agent_is_interrupted_with_its_command")
            .prompt(&format!("{}%say no", agent(&works, false)))
            .until_file("alive")
            .until_file("runs")
            .control(json!({"subtype": "interrupt"}))
            .until("result")
            .turn(&gone),
        owned("an_agent_is_stopped_with_its_command")
            .turn(&format!(
                "{}%say started\n%say heard",
                agent(&format!("{SLOW}{}{works}", bash(&wait("go"))), true)
            ))
            .make_file("go")
            .until_file("alive")
            .until_file("runs")
            // Said at length, so that the agent has ended before.
            .prompt(&format!(
                "{}{SLOW}%say {}",
                stop("bob"),
                "it is stopped ".repeat(8)
            ))
            .until("result")
            .until("result")
            .turn(&gone),
        owned("an_agent_is_stopped_in_the_foreground")
            .prompt(&format!(
                "{}%say over",
                agent(&format!("{}%say no", bash("touch runs; sleep 60")), false)
            ))
            .until("system/task_started")
            .until_file("runs")
            .control(json!({"subtype": "stop_task", "task_id": "{task}"}))
            .until("result"),
        owned("an_agent_outlives_the_one_that_started_it")
            .turn(&format!("{}%say over\n%say heard", outliving))
            .make_file("go")
            .until("result"),
        forwarding(
            "calls_of_agents_of_agents",
            json!({"forwardNestedSubagentToolCalls": true}),
        )
        .turn(&deep),
        forwarding(
            "calls_and_texts_of_agents_of_agents",
            json!({"forwardNestedSubagentToolCalls": true, "forwardSubagentText": true}),
        )
        .turn(&deep),
        owned("an_agent_stops_what_is_not_its_own")
            .turn(&format!("{}%say started", in_background("sleep 60")))
            .turn(&format!(
                "{}%say over",
                agent(&format!("{}%say refused", stop("{task}")), false)
            ))
            .signal("TERM"),
        owned("an_agent_stops_what_is_not_there").turn(&format!(
            "{}%say over",
            agent(
                &format!(
                    "{}{}%say reported",
                    in_background("sleep 60"),
                    call("TaskStop", json!({"task_id": "none"}))
                ),
                false
            )
        )),
        owned("tasks_that_the_model_stops")
            .turn(&format!("{}%say started", in_background(alive)))
            .until_file("alive")
            .turn(&format!(
                "{}{}{}{}{}{}%say stopped",
                stop("none"),
                stop(""),
                call("TaskStop", json!({})),
                stop(" {task} "),
                stop("{task}"),
                stop("{task}")
            ))
            .turn(&gone)
            .turn(&format!("{}%say started", in_background("sleep 60")))
            .turn(&format!(
                "{}{}{}%say stopped",
                call("KillShell", json!({"shell_id": "none"})),
                call("KillBash", json!({"shell_id": "{task}"})),
                call("KillShell", json!({}))
            )),
        owned("agents_that_the_model_stops")
            .turn(&format!("{}%say over", agent("%say done", false)))
            .turn(&format!("{}{}%say stopped", stop("bob"), stop("{task}")))
            .turn(&format!(
                "{}%say over\n%say heard",
                agent(&format!("{SLOW}{}%say done", bash(&wait("go"))), true)
            ))
            .make_file("go")
            .until("result")
            .turn(&format!("{}{}%say stopped", stop("bob"), stop("{task}"))),
    ]
}
