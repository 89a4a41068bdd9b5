//! What a host sets up around a session: agents in files, who wrote a prompt, variables, root.

use serde_json::json;

use super::CALL;
use crate::scenario::Scenario;

const REVIEWER: &str = "---\nname: reviewer\ndescription: Reviews\ntools: Read\n---\nReview.\n";

pub(super) fn hosts() -> Vec<Scenario> {
    let call = CALL.replace("RB", "false");
    vec![
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
