//! What is read from `_meta`, and which fields are rejected.

use outrigger::Agent;
use outrigger::options::{SettingsInput, Skills, Tools, Worktree};
use outrigger::protocol::Frame;
use outrigger::protocol::shared::{Effort, PermissionMode, SystemPrompt};
use serde_json::{Value, json};

use super::SessionMeta;

fn given(meta: &Value) -> Result<SessionMeta, agent_client_protocol::Error> {
    SessionMeta::of(meta.as_object())
}

fn options(options: Value) -> Result<outrigger::Options, agent_client_protocol::Error> {
    given(&json!({"claudeCode": {"options": options}}))?.put(Agent::builder())
}

/// The parameter that the error names.
fn wrong<T>(told: Result<T, agent_client_protocol::Error>) -> String {
    let error = told.err().expect("it is refused");
    assert_eq!(i32::from(error.code), -32602);
    let data = error.data.expect("it says what");
    data["parameter"].as_str().expect("by its name").to_owned()
}

#[test]
fn options_of_the_sdk_are_taken_by_their_names() {
    let taken = options(json!({
        "model": "opus", "effort": "high", "maxTurns": 3, "maxBudgetUsd": 1, "taskBudget": {"total": 9},
        "thinking": {"type": "enabled", "budgetTokens": 2000},
        "tools": ["Read"], "allowedTools": ["Read"], "disallowedTools": ["Bash"], "skills": "all",
        "permissionMode": "plan", "agents": {"a": {"description": "d", "prompt": "p"}},
        "mcpServers": {"m": {"type": "stdio", "command": "c"}},
        "settings": {"model": "haiku"}, "settingSources": ["user"],
        "env": {"A": "1", "B": null}, "extraArgs": {"flag": null, "value": "v"},
        "outputFormat": {"type": "json_schema", "schema": {"type": "object"}},
        "additionalDirectories": ["/x"], "plugins": [{"type": "local", "path": "/p"}],
        "worktree": "feature", "title": null, "cwd": "/elsewhere", "abortController": {}, "includePartialMessages": false,
    }));
    let taken = taken.expect("they are all known");
    assert_eq!(taken.model.as_deref(), Some("opus"));
    assert_eq!(taken.effort, Some(Effort::High));
    assert_eq!((taken.max_turns, taken.max_budget_usd), (Some(3), Some(1.0)));
    assert_eq!(taken.task_budget, Some(9));
    assert!(taken.thinking.is_some());
    assert_eq!(taken.tools, Some(Tools::Only(vec!["Read".to_owned()])));
    assert_eq!(taken.disallowed_tools, ["Bash"]);
    assert_eq!(taken.skills, Some(Skills::All));
    assert_eq!(taken.permission_mode, Some(PermissionMode::Plan));
    assert!(taken.agents.contains_key("a") && taken.mcp_servers.contains_key("m"));
    assert!(matches!(taken.settings, Some(SettingsInput::Inline(_))));
    assert!(taken.output_format.is_some());
    assert_eq!(taken.plugins.len(), 1);
    assert_eq!(taken.extra_args.len(), 2);
    // Options of the agent itself stay as they were.
    assert_eq!((taken.cwd, taken.title), (None, None));
    let file = options(json!({"settings": "/a.json"})).expect("a file");
    assert!(matches!(file.settings, Some(SettingsInput::File(_))));
    assert_eq!(taken.worktree, Some(Worktree::Named("feature".to_owned())));
    let unnamed = options(json!({"worktree": true})).expect("any worktree");
    assert_eq!(unnamed.worktree, Some(Worktree::Unnamed));
}

#[test]
fn permissions_can_not_be_widened() {
    let allowed = options(json!({"allowDangerouslySkipPermissions": true})).expect("a known option");
    assert!(!allowed.allow_dangerously_skip_permissions);
    let mut base = Agent::builder();
    base.allow_dangerously_skip_permissions = true;
    let meta = json!({"claudeCode": {"options": {"allowDangerouslySkipPermissions": false}}});
    let given_up = given(&meta)
        .and_then(|given| given.put(base))
        .expect("a known option");
    assert!(!given_up.allow_dangerously_skip_permissions);
}

#[test]
fn what_is_wrong_is_named() {
    for (option, value) in [
        ("colour", json!("red")),
        ("maxTurns", json!("three")),
        ("maxTurns", json!(-1)),
        ("effort", json!("enormous")),
        ("permissionMode", json!("yolo")),
        ("tools", json!({"type": "preset", "preset": "mine"})),
        ("outputFormat", json!({"type": "xml", "schema": {}})),
        ("resume", json!("an id")),
        ("sessionId", json!("an id")),
        ("permissionPromptToolName", json!("mcp__a__b")),
        ("hooks", json!({})),
        ("env", json!({"A": 1})),
        ("worktree", json!(false)),
    ] {
        let named = format!("_meta.claudeCode.options.{option}");
        assert_eq!(wrong(options(json!({ option: value }))), named);
    }
    assert_eq!(wrong(given(&json!({"claudeCode": 1}))), "_meta.claudeCode");
    assert_eq!(wrong(given(&json!({"systemPrompt": 1}))), "_meta.systemPrompt");
    assert_eq!(wrong(given(&json!({"systemPrompt": " "}))), "_meta.systemPrompt");
    assert_eq!(
        wrong(given(&json!({"systemPrompt": {"prepend": "a"}}))),
        "_meta.systemPrompt.prepend"
    );
    assert_eq!(
        wrong(given(
            &json!({"claudeCode": {"emitRawSDKMessages": [{"kind": "user"}]}})
        )),
        "_meta.claudeCode.emitRawSDKMessages"
    );
}

#[test]
fn the_system_prompt_is_a_text_or_follows_claude_code_s() {
    let prompt = |prompt: Value| {
        given(&json!({ "systemPrompt": prompt }))
            .expect("a prompt")
            .system_prompt
    };
    assert_eq!(
        prompt(json!("Be a parrot.")),
        Some(SystemPrompt::Text("Be a parrot.".to_owned()))
    );
    let Some(SystemPrompt::Preset { append, .. }) = prompt(json!({"append": "Be brief."})) else {
        panic!("it is no preset");
    };
    assert_eq!(append.as_deref(), Some("Be brief."));
    assert_eq!(prompt(Value::Null), None);
}

#[test]
fn messages_are_told_to_those_who_want_them() {
    let frame = |json: Value| Frame::from_line(json.to_string()).pop().expect("a frame");
    let wants = |wanted: Value, told: Value| {
        let meta = json!({"claudeCode": {"emitRawSDKMessages": wanted}});
        let message = given(&meta).expect("a filter").raw.message(&frame(told.clone()));
        if let Some(message) = &message {
            assert_eq!(*message, told);
        }
        message.is_some()
    };
    let init = json!({"type": "system", "subtype": "init", "session_id": "s"});
    assert!(wants(json!(true), init.clone()));
    assert!(!wants(json!(false), init.clone()));
    assert!(wants(json!([{"type": "system"}]), init.clone()));
    assert!(wants(
        json!([{"type": "user"}, {"type": "system", "subtype": "init"}]),
        init.clone()
    ));
    assert!(!wants(json!([{"type": "system", "subtype": "status"}]), init));
    let user = json!({"type": "user", "origin": {"kind": "human"}});
    assert!(wants(json!([{"type": "user", "origin": "human"}]), user.clone()));
    assert!(!wants(json!([{"type": "user", "origin": "peer"}]), user));
    let asked = json!({"type": "control_request", "request_id": "1", "request": {"subtype": "can_use_tool"}});
    assert!(!wants(json!(true), asked));
}
