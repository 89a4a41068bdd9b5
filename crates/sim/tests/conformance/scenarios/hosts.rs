//! What a host sets up around a session: agents in files, who wrote a prompt, variables, root.

use serde_json::{Value, json};

use super::{CALL, allow};
use crate::scenario::Scenario;

const REVIEWER: &str = "---\nname: reviewer\ndescription: Reviews\ntools: Read\n---\nReview.\n";

const EDIT: &str =
    "%tool Edit {\"file_path\": \"{project}/w\", \"old_string\": \"\", \"new_string\": \"x\"}\n%say done";

/// A call of an agent that does this.
fn call(kind: &str, does: &str) -> String {
    let input =
        json!({"description": "look", "prompt": does, "subagent_type": kind, "run_in_background": false});
    format!("%tool Agent {input}")
}

/// A session with an agent that runs a command and writes a file.
fn works(name: &str, agent: Value) -> Scenario {
    let does = "%tool Bash {\"command\": \"touch made.txt\"}\n%tool Write {\"file_path\": \"{project}/w\", \"content\": \"x\"}\n%say done";
    let nested = call("general-purpose", does);
    let mut own = json!({"description": "Works", "prompt": "Work."});
    for (key, value) in agent.as_object().into_iter().flatten() {
        own[key] = value.clone();
    }
    Scenario::new(name)
        .flag("--agents", &json!({"own": own}).to_string())
        .answer("can_use_tool", allow)
        .turn(&format!(
            "{}\n{}\n%say done",
            call("own", does),
            call("own", &nested)
        ))
}

pub(super) fn hosts() -> Vec<Scenario> {
    let mode = |name: &str, mode: &str, flags: &str| {
        works(name, json!({"permissionMode": mode}))
            .variable("IS_SANDBOX", "1")
            .flags(flags)
    };
    let call = CALL.replace("RB", "false");
    let both = format!("%tool Bash {{\"command\": \"touch made.txt\"}}\n{EDIT}");
    vec![
        mode("agent_that_may_edit", "acceptEdits", "--permission-mode default"),
        mode("agent_that_asks_nobody", "dontAsk", "--permission-mode default"),
        mode("agent_that_plans", "plan", "--permission-mode default"),
        mode("agent_that_asks", "default", "--permission-mode dontAsk"),
        mode("agent_that_may_not_bypass", "bypassPermissions", "--allow-dangerously-skip-permissions"),
        mode("agent_of_a_session_that_may_edit", "dontAsk", "--permission-mode acceptEdits"),
        works("agent_with_tools_of_rules", json!({"tools": ["Bash(ls *)", "Write", "Agent"]})),
        works("agent_without_tools_of_rules", json!({"disallowedTools": ["Write(x)"]})),
        Scenario::new("tools_of_agents_in_files")
            .file(".claude/agents/a.md", "---\nname: a\ndescription: A\ntools: [Read, \"Bash\"]\n---\nDo.\n")
            .file(".claude/agents/b.md", "---\nname: b\ndescription: B\ntools:\n  - Read\n  - Bash\n---\nDo.\n")
            .file(".claude/agents/c.md", "---\nname: c\ndescription: C\ndisallowedTools: Bash, Write\npermissionMode: acceptEdits\n---\nDo.\n")
            .answer("can_use_tool", allow)
            .turn(&format!(
                "{}\n{}\n{}\n%say done",
                self::call("a", &both),
                self::call("b", &both),
                self::call("c", EDIT)
            )),
        Scenario::new("agents_in_files")
            .file(".claude/agents/reviewer.md", REVIEWER)
            .file("../home/.claude/agents/other.md", "---\nname: other\ndescription: Other\n---\nDo.\n")
            .file(".claude/agents/none.md", "no head\n")
            .turn(&format!(
                "{}\n{}\n%say done",
                call.replace("general-purpose", "reviewer"),
                call.replace("general-purpose", "none")
            )),
        Scenario::new("who_wrote_a_prompt")
            .prompt_with(1, "%say one", json!({"origin": {"kind": "human"}}))
            .until("command_lifecycle/completed")
            .prompt_with(2, "%say two", json!({"origin": {"kind": "channel", "server": "x"}}))
            .until("command_lifecycle/completed"),
        Scenario::new("agents_taken_away")
            .flags("--disallowedTools Task")
            .turn(&format!("{call}\n%say done")),
        Scenario::new("variables_of_the_host")
            .flags("--allowedTools Bash")
            .line(r#"{"type": "update_environment_variables", "request_id": "e", "variables": {"CLAUDE_CODE_SESSION_ACCESS_TOKEN": "there", "OUTRIGGER_OTHER": "x"}}"#)
            .until("control_response")
            .turn(concat!(
                "%tool Bash {\"command\": \"test \\\"$CLAUDE_CODE_SESSION_ACCESS_TOKEN\\\" = there\"}\n",
                "%tool Bash {\"command\": \"test -z \\\"$OUTRIGGER_OTHER\\\"\"}\n%say done",
            )),
        Scenario::new("byte_order_mark")
            .line("\u{feff}{\"type\": \"keep_alive\"}")
            .turn("%say hello"),
        // Root may not.
        Scenario::bare("without_permissions").flags("--dangerously-skip-permissions").eof(),
        Scenario::bare("in_the_mode_without_permissions")
            .flags("--permission-mode bypassPermissions")
            .eof(),
    ]
}
