//! Every control request of a host, as it should be and as it should not.

use serde_json::{Value, json};

use super::{calc, mcp_server};
use crate::scenario::Scenario;

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// Requests that protocol descriptions declare, with what they need, and further ones that the CLI understands.
fn well_formed() -> Vec<Value> {
    vec![
        json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}),
        json!({"subtype": "set_permission_mode", "mode": "manual"}),
        json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": null}),
        json!({"subtype": "mcp_status"}),
        json!({"subtype": "mcp_message", "server_name": "calc", "message": {"jsonrpc": "2.0", "method": "notifications/message"}}),
        json!({"subtype": "mcp_call", "tool": "mcp__calc__add", "arguments": {"a": 1, "b": 2}}),
        json!({"subtype": "mcp_reconnect", "serverName": "calc"}),
        json!({"subtype": "mcp_toggle", "serverName": "calc", "enabled": false}),
        json!({"subtype": "mcp_toggle", "serverName": "calc", "enabled": true}),
        json!({"subtype": "mcp_set_servers", "servers": {}}),
        json!({"subtype": "rewind_files", "user_message_id": NOBODY, "dry_run": true}),
        json!({"subtype": "rename_session", "title": "Tea"}),
        json!({"subtype": "set_color", "color": "red"}),
        json!({"subtype": "list_models"}),
        json!({"subtype": "get_binary_version"}),
        json!({"subtype": "cancel_async_message", "message_uuid": NOBODY}),
        json!({"subtype": "seed_read_state", "path": "{project}/README.md", "mtime": 1_795_296_322_384_u64}),
        json!({"subtype": "set_has_subscribers", "has_subscribers": true}),
        json!({"subtype": "stop_task", "task_id": "nothing"}),
        json!({"subtype": "background_tasks"}),
        json!({"subtype": "apply_flag_settings", "settings": {"permissions": {"allow": ["Bash(touch:*)"]}}}),
        json!({"subtype": "get_settings"}),
        json!({"subtype": "list_permission_rules"}),
        json!({"subtype": "set_prompt_suggestions_paused", "paused": true}),
        json!({"subtype": "list_directory", "path": "{project}"}),
        json!({"subtype": "interrupt"}),
    ]
}

/// The same ones without what they need, or about what is not there.
fn misshapen() -> Vec<Value> {
    vec![
        json!({"subtype": "set_permission_mode"}),
        json!({"subtype": "set_model", "model": 5}),
        json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": "many"}),
        json!({"subtype": "mcp_message", "server_name": "nobody", "message": {"jsonrpc": "2.0", "method": "notifications/message"}}),
        json!({"subtype": "mcp_call", "tool": "mcp__nobody__add", "arguments": {}}),
        json!({"subtype": "mcp_call", "tool": "mcp__calc__fail", "arguments": {}}),
        json!({"subtype": "mcp_call"}),
        json!({"subtype": "mcp_reconnect", "serverName": "nobody"}),
        json!({"subtype": "mcp_toggle", "serverName": "nobody", "enabled": true}),
        json!({"subtype": "mcp_set_servers", "servers": 5}),
        json!({"subtype": "rewind_files"}),
        json!({"subtype": "rename_session"}),
        json!({"subtype": "cancel_async_message"}),
        json!({"subtype": "stop_task"}),
        json!({"subtype": "get_task_output", "task_id": "nothing"}),
        json!({"subtype": "apply_flag_settings", "settings": null}),
        json!({"subtype": "list_directory", "path": "nowhere"}),
        json!({"subtype": "claim_session"}),
        json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "x"}),
        json!({"subtype": "hook_callback", "callback_id": "hook_0", "input": {}}),
        json!({"subtype": "elicitation", "mcp_server_name": "x", "message": "y"}),
        json!({"subtype": "request_user_dialog", "dialog_kind": "x", "payload": {}}),
        json!({"subtype": "oauth_token_refresh"}),
    ]
}

fn ask(scenario: Scenario, requests: Vec<Value>) -> Scenario {
    requests.into_iter().fold(scenario, Scenario::control)
}

pub(super) fn requests() -> Vec<Scenario> {
    let with_calc = |name| {
        mcp_server(name)
            .answer("mcp_message", calc)
            .file("README.md", "# readme\n")
            .file("sub/x.txt", "x\n")
            .turn("%say one")
    };
    vec![
        ask(with_calc("every_request"), well_formed()),
        ask(with_calc("every_request_misshapen"), misshapen()),
    ]
}
