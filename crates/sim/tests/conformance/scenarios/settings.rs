//! What stands in settings files, and what is written to them.

use serde_json::{Value, json};

use super::{ECHO, TOUCH, WRITE, allow};
use crate::scenario::{Reply, Scenario};

const RULES: &str = r#"{
  "permissions": {"allow": ["Bash(touch:*)"], "deny": ["Write"], "ask": ["Bash(echo:*)"]},
  "env": {"OUTRIGGER_GREETING": "hello"}
}"#;

/// The first suggestion, whatever it is.
fn always(request: &Value) -> Option<Reply> {
    let first = json!([request["permission_suggestions"][0]]);
    Some(Reply::Payload(
        json!({"behavior": "allow", "updatedPermissions": first}),
    ))
}

fn to(destination: &str) -> Value {
    json!([{
        "type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "touch made.txt"}], "behavior": "allow",
        "destination": destination,
    }])
}

pub(super) fn settings() -> Vec<Scenario> {
    let asked = |scenario: Scenario| {
        scenario
            .control(json!({"subtype": "get_settings"}))
            .control(json!({"subtype": "list_permission_rules"}))
    };
    let touch = format!("{TOUCH}\n%say done");
    let all = format!("{TOUCH}\n{WRITE}\n{ECHO}\n%say done");
    vec![
        asked(
            Scenario::new("project_settings")
                .file(".claude/settings.json", RULES)
                .answer("can_use_tool", allow)
                .turn(&all),
        ),
        asked(
            Scenario::new("local_settings")
                .file(".claude/settings.local.json", RULES)
                .answer("can_use_tool", allow)
                .turn(&all),
        ),
        asked(
            Scenario::new("user_settings")
                .file("../home/.claude/settings.json", RULES)
                .answer("can_use_tool", allow)
                .turn(&all),
        ),
        asked(
            Scenario::new("settings_that_are_not_asked_for")
                .flag("--setting-sources", "user")
                .file(".claude/settings.json", RULES)
                .answer("can_use_tool", allow)
                .turn(&all),
        ),
        asked(
            Scenario::new("settings_of_several_sources")
                .file("../home/.claude/settings.json", r#"{"model": "claude-haiku-4-5-20251001", "permissions": {"allow": ["Read"]}}"#)
                .file(".claude/settings.json", r#"{"model": "claude-sonnet-4-5-20250929", "permissions": {"allow": ["Bash(touch:*)"]}}"#)
                .flag("--settings", r#"{"permissions": {"deny": ["WebFetch"]}}"#)
                .answer("can_use_tool", allow)
                .turn(&touch),
        ),
        Scenario::new("variables_of_settings")
            .flags("--allowedTools Bash")
            .file(".claude/settings.json", RULES)
            .file(".claude/settings.local.json", r#"{"env": {"OUTRIGGER_OTHER": "there"}}"#)
            .answer("can_use_tool", allow)
            .turn(concat!(
                "%tool Bash {\"command\": \"test $OUTRIGGER_OTHER = there\"}\n",
                "%tool Bash {\"command\": \"test $OUTRIGGER_GREETING = hello\"}\n%say done",
            )),
        asked(
            Scenario::new("mode_of_settings")
                .file(".claude/settings.json", r#"{"permissions": {"defaultMode": "acceptEdits", "additionalDirectories": ["/usr/share"]}}"#)
                .turn(&format!("{WRITE}\n%say done")),
        ),
        asked(
            Scenario::new("settings_that_are_broken")
                .file(".claude/settings.json", "{nope")
                .answer("can_use_tool", allow)
                .turn(&touch),
        ),
        asked(
            Scenario::new("rule_kept_locally")
                .answer("can_use_tool", always)
                .turn(&touch)
                .turn(&touch),
        )
        .then_process()
        .turn(&touch)
        .turn("%tool Bash {\"command\": \"cat .claude/settings.local.json\"}\n%say done")
        .turn("%tool Bash {\"command\": \"wc -c .claude/settings.local.json\"}\n%say done"),
        asked(
            Scenario::new("rule_kept_for_the_project")
                .answer("can_use_tool", |_| {
                    Some(Reply::Payload(json!({"behavior": "allow", "updatedPermissions": to("projectSettings")})))
                })
                .turn(&touch),
        )
        .turn("%tool Bash {\"command\": \"cat .claude/settings.json\"}\n%say done"),
        asked(
            Scenario::new("rule_kept_for_the_user")
                .answer("can_use_tool", |_| {
                    Some(Reply::Payload(json!({"behavior": "allow", "updatedPermissions": to("userSettings")})))
                })
                .turn(&touch),
        )
        .then_process()
        .turn(&touch),
        asked(
            Scenario::new("rules_taken_away")
                .file(".claude/settings.local.json", r#"{"permissions": {"allow": ["Bash(touch:*)"]}, "other": 1}"#)
                .answer("can_use_tool", |_| {
                    let updates = json!([
                        {"type": "removeRules", "rules": [{"toolName": "Bash", "ruleContent": "touch:*"}], "behavior": "allow", "destination": "localSettings"},
                        {"type": "addDirectories", "directories": ["/usr/share"], "destination": "localSettings"},
                        {"type": "setMode", "mode": "acceptEdits", "destination": "localSettings"},
                    ]);
                    Some(Reply::Payload(json!({"behavior": "allow", "updatedPermissions": updates})))
                })
                .turn(&format!("{WRITE}\n%say done")),
        )
        .turn("%tool Bash {\"command\": \"cat .claude/settings.local.json\"}\n%say done"),
    ]
}
