//! Every control request of a host, as it should be and as it should not.

use serde_json::{Value, json};

use super::{calc, mcp_server, nothing};
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
        json!({"subtype": "get_session_cost"}),
        json!({"subtype": "list_models"}),
        json!({"subtype": "get_usage", "skip_behaviors": true}),
        json!({"subtype": "get_binary_version"}),
        json!({"subtype": "file_suggestions", "query": "READ"}),
        json!({"subtype": "cancel_async_message", "message_uuid": NOBODY}),
        json!({"subtype": "read_file", "path": "README.md"}),
        json!({"subtype": "read_file", "path": "README.md", "encoding": "base64", "max_bytes": 4}),
        json!({"subtype": "seed_read_state", "path": "{project}/README.md", "mtime": 1_795_296_322_384_u64}),
        json!({"subtype": "register_repo_root", "directory": "{project}/sub"}),
        json!({"subtype": "reload_plugins"}),
        json!({"subtype": "reload_skills"}),
        json!({"subtype": "reload_output_styles"}),
        json!({"subtype": "set_has_subscribers", "has_subscribers": true}),
        json!({"subtype": "stop_task", "task_id": "nothing"}),
        json!({"subtype": "background_tasks"}),
        json!({"subtype": "apply_flag_settings", "settings": {"permissions": {"allow": ["Bash(touch:*)"]}}}),
        json!({"subtype": "get_settings"}),
        json!({"subtype": "get_hooks_listing"}),
        json!({"subtype": "update_settings", "source": "localSettings", "settings": {"outputStyle": "Explanatory"}}),
        json!({"subtype": "list_permission_rules"}),
        json!({"subtype": "set_mcp_permission_mode_override", "serverName": "calc", "mode": "default"}),
        json!({"subtype": "set_prompt_suggestions_paused", "paused": true}),
        json!({"subtype": "remote_control", "enabled": false}),
        json!({"subtype": "submit_feedback", "description": "x"}),
        json!({"subtype": "generate_session_title", "description": "fix the bug", "persist": false}),
        json!({"subtype": "side_question", "question": "%say what is up"}),
        json!({"subtype": "get_memory_dialog"}),
        json!({"subtype": "get_skills_dialog"}),
        json!({"subtype": "get_sandbox_dialog"}),
        json!({"subtype": "get_plan"}),
        json!({"subtype": "export_conversation"}),
        json!({"subtype": "message_rated", "messageUuid": NOBODY, "sentiment": "positive", "surface": "assistant_text", "cleared": false}),
        json!({"subtype": "list_directory", "path": "{project}"}),
        json!({"subtype": "get_workspace_diff"}),
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
        json!({"subtype": "mcp_read_resource", "serverName": "calc", "uri": "other://x"}),
        json!({"subtype": "mcp_authenticate", "serverName": "calc"}),
        json!({"subtype": "mcp_clear_auth", "serverName": "calc"}),
        json!({"subtype": "channel_enable", "serverName": "calc"}),
        json!({"subtype": "rewind_files"}),
        json!({"subtype": "rename_session"}),
        json!({"subtype": "cancel_async_message"}),
        json!({"subtype": "read_file", "path": "/etc/hostname"}),
        json!({"subtype": "read_file", "path": "missing.txt"}),
        json!({"subtype": "register_repo_root", "directory": "/tmp"}),
        json!({"subtype": "stop_task"}),
        json!({"subtype": "get_task_output", "task_id": "nothing"}),
        json!({"subtype": "apply_flag_settings", "settings": null}),
        json!({"subtype": "update_settings", "source": "localSettings", "settings": {"model": "x"}}),
        json!({"subtype": "message_rated", "messageUuid": NOBODY, "sentiment": "positive"}),
        json!({"subtype": "list_directory", "path": "nowhere"}),
        json!({"subtype": "set_cwd"}),
        json!({"subtype": "set_cwd", "path": "{project}/missing"}),
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
        Scenario::with_initialize("another_directory", json!({"hooks": {"CwdChanged": [{"hookCallbackIds": ["hook_0"]}]}}))
            .answer("hook_callback", nothing)
            .file("sub/x.txt", "x\n")
            .turn("%say one")
            .control(json!({"subtype": "set_cwd", "path": "{project}/sub"}))
            .control(json!({"subtype": "set_cwd", "path": "{project}/sub", "trust_accepted": true, "trusted_directory": "{project}/sub"}))
            .until("command_lifecycle/completed")
            .turn("%tool Bash {\"command\": \"pwd\"}\n%say two")
            .control(json!({"subtype": "set_cwd", "path": "sub"}))
            .control(json!({"subtype": "set_cwd", "path": "{project}/sub/x.txt"})),
        Scenario::new("difference_in_a_repository")
            .flags("--allowedTools Bash")
            .file("x.txt", "one\ntwo\n")
            .turn(concat!(
                "%tool Bash {\"command\": \"git init -q; git add .; git -c user.name=a -c user.email=a@b commit -qm x; ",
                "echo three >> x.txt; echo new > new.txt\"}\n%say done",
            ))
            .control(json!({"subtype": "get_workspace_diff"})),
        Scenario::new("title_of_a_session")
            .turn("%say one")
            .control(json!({"subtype": "export_conversation"}))
            .turn("%tool Bash {\"command\": \"echo hi\"}\n%say two\n%+say three")
            .control(json!({"subtype": "export_conversation"})),
    ]
}
