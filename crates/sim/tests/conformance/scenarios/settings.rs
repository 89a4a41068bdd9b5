//! What stands in settings files, and what is written to them.

use serde_json::{Value, json};

use super::{ECHO, TOUCH, WRITE, allow};
use crate::scenario::{Reply, Scenario};

const RULES: &str = r#"{
  "permissions": {"allow": ["Bash(touch:*)"], "deny": ["Write"], "ask": ["Bash(echo:*)"]},
  "env": {"OUTRIGGER_GREETING": "hello"}
}"#;

const NO_BYPASS: &str = r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#;

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
    let no_bypass: Value = serde_json::from_str(NO_BYPASS).expect("it is JSON");
    let no_auto = json!({"permissions": {"disableAutoMode": "disable"}});
    let mode = |mode: &str| json!({"subtype": "set_permission_mode", "mode": mode});
    let in_mode = |name: &str, mode: &str| {
        Scenario::new(name)
            .variable("IS_SANDBOX", "1")
            .flags(&format!("--permission-mode {mode}"))
            .answer("can_use_tool", allow)
    };
    let all = format!("{TOUCH}\n{WRITE}\n{ECHO}\n%say done");
    vec![
        in_mode("settings_forbid_to_bypass", "bypassPermissions")
            .file(".claude/settings.json", NO_BYPASS)
            .turn(&touch)
            .control(mode("bypassPermissions"))
            .turn(&touch),
        in_mode("settings_forbid_to_bypass_later", "bypassPermissions")
            .turn(&touch)
            .control(json!({"subtype": "apply_flag_settings", "settings": no_bypass}))
            .turn(&touch)
            .control(mode("acceptEdits"))
            .control(mode("bypassPermissions")),
        in_mode("settings_forbid_to_bypass_by_an_answer", "default")
            .flag("--settings", NO_BYPASS)
            .flags("--allow-dangerously-skip-permissions")
            .answer("can_use_tool", |_| {
                let bypass = json!([{"type": "setMode", "mode": "bypassPermissions", "destination": "session"}]);
                Some(Reply::Payload(json!({"behavior": "allow", "updatedPermissions": bypass})))
            })
            .turn(&touch)
            .turn(&touch),
        in_mode("settings_forbid_auto_mode", "auto")
            .flag("--settings", &no_auto.to_string())
            .turn(&touch)
            .control(mode("auto"))
            .control(mode("plan"))
            .turn(&touch),
        in_mode("settings_forbid_auto_mode_otherwise", "auto")
            .file(".claude/settings.json", r#"{"disableAutoMode": "disable"}"#)
            .turn(&touch)
            .control(mode("auto")),
        in_mode("settings_forbid_auto_mode_later", "auto")
            .control(json!({"subtype": "apply_flag_settings", "settings": no_auto}))
            .turn(&touch)
            .control(mode("default"))
            .control(mode("auto")),
        Scenario::new("a_variable_names_the_model")
            .variable("ANTHROPIC_MODEL", "haiku")
            .variable("CLAUDE_CODE_SUBAGENT_MODEL", "sonnet")
            .flag("--settings", r#"{"model": "opus"}"#)
            .turn(r#"%tool Agent {"description": "look", "prompt": "%say hi", "subagent_type": "general-purpose", "run_in_background": false}
%tool Agent {"description": "look", "prompt": "%say hi", "subagent_type": "general-purpose", "run_in_background": false, "model": "opus"}
%say done"#),
        Scenario::new("a_variable_names_the_model_in_vain")
            .variable("ANTHROPIC_MODEL", "haiku")
            .flags("--model sonnet")
            .turn("%say done"),
        Scenario::new("variables_limit_commands")
            .variable("BASH_DEFAULT_TIMEOUT_MS", "1100")
            .variable("BASH_MAX_TIMEOUT_MS", "1300")
            .answer("can_use_tool", allow)
            .turn("%tool Bash {\"command\": \"sleep 5\"}\n%tool Bash {\"command\": \"sleep 5\", \"timeout\": 4000}\n%say done"),
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

/// Where a path begins that begins with one `/` in a rule of settings, by where the settings are.
pub(super) fn places_of_rules() -> Vec<Scenario> {
    const DENIES: &str =
        r#"{"permissions": {"deny": ["Edit(/x.txt)", "Read(/read.txt)", "Edit(sub/y.txt)"]}}"#;
    const ASKS: &str = r#"{"permissions": {"ask": ["Edit(/x.txt)"]}}"#;
    let write = |path: &str| format!("%tool Write {}\n", json!({"file_path": path, "content": "x"}));
    let paths = [
        "x.txt",
        "sub/x.txt",
        "sub/y.txt",
        "../home/.claude/x.txt",
        "conf/x.txt",
    ];
    let writes = paths.map(write).concat() + "%tool Read {\"file_path\": \"read.txt\"}\n%say done";
    let edits = |name: &str| {
        Scenario::new(name)
            .flags("--permission-mode acceptEdits")
            .file("read.txt", "x")
            .answer("can_use_tool", allow)
    };
    let change = json!({"subtype": "apply_flag_settings", "settings": serde_json::from_str::<Value>(DENIES).unwrap_or_default()});
    let few = r#"{"cleanupPeriodDays": 5}"#;
    vec![
        edits("rules_of_the_user_begin_at_the_home_of_the_cli")
            .file("../home/.claude/settings.json", DENIES)
            .turn(&writes),
        edits("rules_of_the_project_begin_there")
            .file(".claude/settings.local.json", DENIES)
            .turn(&writes),
        edits("rules_of_a_file_begin_beside_it")
            .file("conf/some.json", DENIES)
            .flag("--settings", "conf/some.json")
            .turn(&writes),
        edits("rules_of_a_text_begin_nowhere")
            .flag("--settings", DENIES)
            .turn(&writes),
        edits("rules_of_a_text_that_ask_begin_nowhere")
            .flag("--settings", ASKS)
            .turn(&writes),
        edits("rules_of_later_settings_begin_at_the_project")
            .control(change.clone())
            .turn(&writes),
        edits("rules_of_later_settings_behind_a_text")
            .flag("--settings", few)
            .control(change.clone())
            .turn(&writes),
        edits("rules_of_later_settings_behind_a_file")
            .file("conf/some.json", few)
            .flag("--settings", "conf/some.json")
            .control(change)
            .turn(&writes),
        Scenario::new("rules_of_flags_begin_at_the_project")
            .flags("--permission-mode acceptEdits --disallowedTools Edit(/x.txt)")
            .answer("can_use_tool", allow)
            .turn(&writes),
        Scenario::new("rules_of_the_user_that_allow")
            .file("../home/.claude/settings.json", r#"{"permissions": {"allow": ["Edit(/x.txt)", "Edit(sub/x.txt)"]}}"#)
            .answer("can_use_tool", allow)
            .turn(&writes),
        Scenario::new("a_rule_asks_before_a_file_is_read")
            .file("x.txt", "a")
            .file("y.txt", "a")
            .flag("--settings", r#"{"permissions": {"ask": ["Read(x.txt)"]}}"#)
            .answer("can_use_tool", allow)
            .turn(concat!(
                "%tool Edit {\"file_path\": \"x.txt\", \"old_string\": \"a\", \"new_string\": \"b\"}\n",
                "%tool Write {\"file_path\": \"x.txt\", \"content\": \"b\"}\n",
                "%tool Read {\"file_path\": \"x.txt\"}\n",
                "%tool Edit {\"file_path\": \"x.txt\", \"old_string\": \"a\", \"new_string\": \"b\"}\n",
                "%tool Edit {\"file_path\": \"y.txt\", \"old_string\": \"a\", \"new_string\": \"b\"}\n%say done",
            )),
    ]
}

/// What `initialize` brings in place of flags.
pub(super) fn in_initialize() -> Vec<Scenario> {
    let fields = json!({
        "hooks": null, "disallowedTools": ["Write", "Bash(rm *)"],
        "settings": {"permissions": {"deny": ["Read(/x.txt)"], "ask": ["Bash(echo:*)"]}, "env": {"OUTRIGGER_GREETING": "hello"}},
    });
    let begun = |name: &str, fields: &Value| {
        Scenario::with_initialize(name, fields.clone())
            .flags("--await-initialize --allowedTools Bash,mcp__two")
            .file("x.txt", "x")
            .answer("can_use_tool", allow)
    };
    let calls = format!(
        "{WRITE}\n{ECHO}\n{}\n{}\n%tool Read {{\"file_path\": \"x.txt\"}}\n%say done",
        "%tool Bash {\"command\": \"rm x.txt\"}",
        "%tool Bash {\"command\": \"test $OUTRIGGER_GREETING = hello\"}",
    );
    let asked = |scenario: Scenario| {
        scenario
            .control(json!({"subtype": "get_settings"}))
            .control(json!({"subtype": "list_permission_rules"}))
    };
    let refused = |name: &str, flags: &str| Scenario::bare(name).flags(flags);
    let alone = |name: &str, flags: &str, fields: Value| {
        let mut request = fields;
        request["subtype"] = json!("initialize");
        let frame = json!({"type": "control_request", "request_id": "first", "request": request});
        Scenario::bare(name).flags(flags).send(frame)
    };
    const AWAIT: &str = "--await-initialize";
    let named = |name: &str| format!("{AWAIT} --initialize-fields {name}");
    let touch = format!("{TOUCH}\n%say done");
    let trusting = |name: &str, directory: &str, accepted: bool| {
        let trust = json!({"workspaceTrust": {"accepted": accepted, "directory": directory}});
        Scenario::with_initialize(name, trust)
            .file(
                ".claude/settings.json",
                r#"{"permissions": {"allow": ["Bash(touch:*)"], "additionalDirectories": ["/usr/share"]}}"#,
            )
            .answer("can_use_tool", allow)
            .turn(&touch)
            .control(json!({"subtype": "list_permission_rules"}))
    };
    let none = json!({"mcpServers": {"one": {"type": "stdio"}, "other": {"type": "sdk", "name": "other"}}});
    vec![
        asked(begun("settings_in_initialize", &fields).flags("--initialize-fields settings,disallowedTools").turn(&calls)),
        asked(begun("tools_in_initialize", &fields).flags("--initialize-fields disallowedTools").turn(&calls)),
        asked(begun("fields_that_no_flag_names", &fields).turn(&calls)),
        asked(Scenario::with_initialize("fields_that_nobody_awaits", fields.clone()).answer("can_use_tool", allow).turn("%say done")),
        begun(
            "mode_and_model_in_initialize",
            &json!({"settings": {"model": "claude-haiku-4-5-20251001", "permissions": {"defaultMode": "acceptEdits"}}}),
        )
        .flags("--initialize-fields settings")
        .turn(&format!("{WRITE}\n%say done")),
        alone("settings_in_initialize_that_are_none", &named("settings"), json!({"settings": 7})),
        alone("settings_that_are_not_in_initialize", &named("settings"), json!({})),
        alone("tools_in_initialize_that_are_no_list", &named("disallowedTools"), json!({"disallowedTools": "Write"})),
        alone("servers_in_initialize_that_are_none", AWAIT, json!({"mcpServers": 7})),
        alone("plugins_in_initialize_that_are_none", AWAIT, json!({"plugins": 7})),
        refused("fields_that_the_cli_does_not_take", &named("settings,nonsense")),
        refused("fields_without_initialize", "--initialize-fields settings"),
        refused("settings_given_twice", &format!("{} --settings {{}}", named("settings"))),
        refused("tools_given_twice", &format!("{} --disallowedTools Read", named("disallowedTools"))),
        trusting("a_project_that_a_person_trusts", "{project}", true).then_process().turn(&touch),
        trusting("a_directory_that_a_person_trusts", "{root}", true),
        trusting("a_project_that_nobody_trusts", "{project}", false),
        begun("servers_in_initialize_that_cannot_be", &none).turn("%say done"),
    ]
}
