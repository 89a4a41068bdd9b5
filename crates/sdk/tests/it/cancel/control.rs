//! The control requests: every method that sends one.

use std::collections::BTreeMap;
use std::time::Duration;

use outrigger::protocol::RawJson;
use outrigger::protocol::outbound::control::{McpStatus, Sentiment, WritableSettings};
use outrigger::protocol::shared::{JsonObject, PermissionMode};
use serde_json::json;

use super::{Case, case, survives};

fn object() -> JsonObject {
    JsonObject::encode(&json!({})).unwrap()
}

macro_rules! methods {
    ($($name:ident($($argument:expr),*);)+) => {
        vec![$(
            case(concat!("Session::", stringify!($name)), |session, cancel| async move {
                // Many of them the simulated CLI refuses, which is an answer, too.
                cancel.of(session.$name($($argument),*)).await.is_some()
            })
        ),+]
    };
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = methods! {
        request(&McpStatus::new());
        request_within(&McpStatus::new(), Duration::from_secs(5));
        raw_request("mcp_status", json!({}));
        stop_task("t");
        background_tasks();
        get_task_output("t");
        start_shell_task("true");
        side_question("?");
        set_model(None);
        list_models();
        set_max_thinking_tokens(None);
        set_permission_mode(PermissionMode::Default);
        list_permission_rules();
        mcp_status();
        mcp_ready(Vec::<String>::new(), std::time::Duration::from_secs(1));
        mcp_set_servers(BTreeMap::new());
        mcp_reconnect("s");
        mcp_toggle("s", true);
        mcp_call("mcp__s__t", object());
        mcp_read_resource("s", "ui://r");
        mcp_message("s", RawJson::encode(&json!({"jsonrpc": "2.0", "method": "ping", "id": 1})).unwrap());
        mcp_authenticate("s");
        mcp_oauth_callback_url("s", "u");
        mcp_clear_auth("s");
        channel_enable("s");
        reload_connectors();
        set_mcp_permission_mode_override("s", None);
        rewind_files("u");
        read_file("f");
        list_directory("d");
        file_suggestions("q");
        seed_read_state("f", 0.0);
        seed_read_state_of("Cargo.toml");
        register_repo_root("d");
        set_cwd("d");
        get_workspace_diff();
        rename_session("t");
        generate_session_title("d");
        set_color("c");
        claim_session("d");
        export_conversation();
        get_plan();
        set_has_subscribers(Some(true));
        set_message_waiting(false);
        prompt_draft_activity();
        set_prompt_suggestions_paused(true);
        remote_control(false);
        get_context_usage();
        get_session_cost();
        get_usage();
        get_binary_version();
        get_settings();
        apply_flag_settings(object());
        update_settings(WritableSettings::LocalSettings, object());
        get_hooks_listing();
        reload_plugins();
        reload_skills();
        reload_output_styles();
        claude_authenticate();
        claude_oauth_callback("c", "s");
        claude_oauth_wait_for_completion();
        message_rated("u", Sentiment::Positive);
        submit_feedback("d");
        get_status();
        get_memory_dialog();
        get_skills_dialog();
        get_sandbox_dialog();
        get_chrome_dialog();
        get_chrome_browsers();
        select_chrome_browser("d");
    };
    cases.push(
        case("Session::end_session", |session, cancel| async move {
            cancel.of(session.end_session()).await.is_some()
        })
        .ends_the_session(),
    );
    cases
}

#[tokio::test(start_paused = true)]
async fn control_requests() {
    for case in cases() {
        survives(&case).await;
    }
}
