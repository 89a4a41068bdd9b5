//! Every control method of a session is answered by the real CLI: with what was asked for, or with a typed refusal.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use outrigger::options::Settings;
use outrigger::protocol::RawJson;
use outrigger::protocol::outbound::control::*;
use outrigger::protocol::shared::{
    JsonObject, McpServerConfig, McpStdioServerConfig, PermissionMode, SettingSource,
};
use outrigger::{Session, Stats};
use outrigger_sim::claude::pin;
use serde_json::json;

use super::rig::{Rig, turn};

/// A session, and the methods that were tried on it.
struct Asked {
    rig: Rig,
    session: Session,
    methods: RefCell<BTreeSet<&'static str>>,
}

/// Calls a method and returns its answer.
macro_rules! ask {
    ($asked:expr, $method:ident($($arg:expr),*)) => {{
        $asked.methods.borrow_mut().insert(stringify!($method));
        match $asked.session.$method($($arg),*).await {
            Ok(answer) => answer,
            Err(error) => panic!("{}: {error}", stringify!($method)),
        }
    }};
}

/// Calls a method that is refused, in these words and with this code.
macro_rules! refused {
    ($asked:expr, $method:ident($($arg:expr),*), $code:expr, $words:expr) => {{
        $asked.methods.borrow_mut().insert(stringify!($method));
        let error = $asked.session.$method($($arg),*).await.expect_err(stringify!($method));
        let refusal = error.as_refusal().unwrap_or_else(|| panic!("{error}"));
        let code: Option<&str> = $code;
        assert_eq!(
            (refusal.request.as_str(), refusal.code.as_deref()),
            (stringify!($method), code),
            "{error}"
        );
        assert!(refusal.message.contains($words), "{error}");
        assert_eq!(error.is_unsupported(), code == UNSUPPORTED);
    }};
}

const UNSUPPORTED: Option<&str> = Some("unsupported_request");

fn object(value: serde_json::Value) -> JsonObject {
    JsonObject::try_from(value).expect("an object")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_is_answered() {
    let rig = Rig::start().await;
    rig.sandbox().write("README.md", "# readme\n").unwrap();
    rig.sandbox().write("sub/deep.txt", "x").unwrap();
    let settings = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}});
    let session = rig
        .options()
        .settings(serde_json::from_value::<Settings>(settings).unwrap())
        .setting_sources([SettingSource::Local])
        .start()
        .await
        .unwrap();
    turn(&session, "%say one").await;
    let asked = Asked {
        rig,
        session,
        methods: RefCell::default(),
    };

    knowledge(&asked).await;
    model_and_permissions(&asked).await;
    mcp(&asked).await;
    files(&asked).await;
    tasks(&asked).await;
    conversation(&asked).await;
    settings_and_plugins(&asked).await;
    account(&asked).await;
    dialogs(&asked).await;
    ask!(asked, end_session());
    let ended = asked.session.wait_ended().await;
    assert_eq!(ended.exit().and_then(|exit| exit.code), Some(0), "{ended}");

    // Each answer was read by its type, and none came for a request that was not made.
    let Stats {
        misfits,
        unanswered_by_cli,
        unmatched_responses,
        duplicate_requests,
        ..
    } = asked.session.stats();
    assert_eq!(
        (
            misfits,
            unanswered_by_cli,
            unmatched_responses,
            duplicate_requests
        ),
        (0, 0, 0, 0)
    );
    let tried = asked.methods.into_inner();
    let declared = include_str!("../../../src/control.rs");
    let missing: Vec<_> = declared
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix('"')?.split_once("\" fn "))
        .map(|(_, signature)| signature.split('(').next().unwrap())
        .filter(|method| !tried.contains(method))
        .collect();
    assert!(missing.is_empty(), "not tried: {missing:?}");
    assert!(tried.len() > 60, "{}", tried.len());
}

async fn knowledge(asked: &Asked) {
    assert_eq!(ask!(asked, get_binary_version()).version, pin().version);

    let context = ask!(asked, get_context_usage());
    assert!(
        context.total_tokens > 0 && context.max_tokens >= context.total_tokens,
        "{context:?}"
    );
    let system = context
        .categories
        .iter()
        .find(|category| category.name == "System prompt");
    assert!(system.is_some_and(|system| system.tokens > 100), "{context:?}");

    assert!(ask!(asked, get_session_cost()).text.contains("$0.0"));
    let usage = ask!(asked, get_usage()).session;
    assert_eq!(usage.model_usage.len(), 1, "{usage:?}");
    assert!(usage.total_cost_usd > 0.0);

    let models = ask!(asked, list_models()).models;
    let default = models.iter().find(|model| model.value == "default").unwrap();
    assert!(default.resolved_model.is_some());

    let settings = ask!(asked, get_settings());
    assert_eq!(
        settings.applied.unwrap().model,
        default.resolved_model.clone().unwrap()
    );
    assert_eq!(settings.sources[0].source, SettingsLayerSource::FlagSettings);
}

async fn model_and_permissions(asked: &Asked) {
    let model = ask!(asked, set_model(Some("claude-haiku-4-5"))).model;
    assert_eq!(model.as_deref(), Some("claude-haiku-4-5"));
    ask!(asked, set_max_thinking_tokens(Some(2000)));

    let mode = ask!(asked, set_permission_mode(PermissionMode::AcceptEdits)).mode;
    assert_eq!(
        mode.and_then(|mode| mode.known()),
        Some(PermissionMode::AcceptEdits)
    );
    refused!(
        asked,
        set_permission_mode(PermissionMode::BypassPermissions),
        Some("bypass_not_launched"),
        "not launched with"
    );
    ask!(
        asked,
        apply_flag_settings(object(json!({"permissions": {"deny": ["Bash(touch:*)"]}})))
    );
    let rules = ask!(asked, list_permission_rules()).state;
    let rule = &rules.rules[0];
    assert_eq!(
        (&rule.behavior, &rule.source, rule.rule.as_str()),
        (
            &RuleBehavior::Deny,
            &PermissionRuleSource::FlagSettings,
            "Bash(touch:*)"
        )
    );
    let project = asked.rig.sandbox().project();
    assert_eq!(rules.original_cwd, project.to_str().unwrap());
}

async fn mcp(asked: &Asked) {
    assert!(ask!(asked, mcp_status()).mcp_servers.is_empty());
    let missing = McpServerConfig::Stdio(McpStdioServerConfig::new("no-such-program", ["--x"]));
    let set = ask!(
        asked,
        mcp_set_servers(BTreeMap::from([("lab".to_owned(), missing)]))
    );
    assert_eq!(set.added, ["lab"]);
    assert!(set.errors["lab"].contains("not found"), "{set:?}");
    let status = ask!(asked, mcp_status()).mcp_servers;
    assert_eq!(
        (status[0].name.as_str(), status[0].status.as_str()),
        ("lab", "failed")
    );
    assert!(status[0].error.is_some());

    refused!(asked, mcp_reconnect("lab"), None, "not found");
    refused!(asked, mcp_reconnect("nope"), None, "Server not found: nope");
    refused!(
        asked,
        mcp_call("mcp__nope__x", object(json!({}))),
        None,
        "not connected: nope"
    );
    refused!(
        asked,
        mcp_read_resource("nope", "ui://x"),
        None,
        "Server not found: nope"
    );
    let notification = RawJson::from(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    assert!(
        ask!(asked, mcp_message("nope", notification))
            .mcp_response
            .is_none()
    );
    refused!(asked, mcp_authenticate("lab"), None, "does not support OAuth");
    refused!(
        asked,
        mcp_oauth_callback_url("lab", "http://127.0.0.1/callback?code=x"),
        None,
        "No active OAuth flow"
    );
    refused!(asked, mcp_clear_auth("lab"), None, "Cannot clear auth");
    refused!(asked, channel_enable("lab"), None, "not connected");
    refused!(asked, reload_connectors(), None, "connectors");
    let overridden = ask!(
        asked,
        set_mcp_permission_mode_override("lab", Some(McpPermissionMode::Default))
    );
    assert_eq!(overridden.warning, None);
    ask!(asked, set_mcp_permission_mode_override("lab", None));
    ask!(asked, mcp_toggle("lab", false));
    assert_eq!(
        ask!(asked, mcp_status()).mcp_servers[0].status.as_str(),
        "disabled"
    );
    refused!(asked, mcp_toggle("nope", true), None, "Server not found: nope");

    let removed = ask!(asked, mcp_set_servers(BTreeMap::new()));
    assert_eq!(
        (removed.removed, removed.errors.len()),
        (vec!["lab".to_owned()], 0)
    );
    assert!(ask!(asked, mcp_status()).mcp_servers.is_empty());
}

async fn files(asked: &Asked) {
    let project = asked.rig.sandbox().project();
    let file = ask!(asked, read_file("README.md"));
    assert_eq!(file.contents, "# readme\n");
    assert_eq!(file.abs_path, project.join("README.md").to_str().unwrap());
    refused!(asked, read_file("missing.txt"), None, "read denied: missing.txt");
    let start = ReadFile::new("README.md")
        .encoding(FileEncoding::Base64)
        .max_bytes(4_u64);
    let start = asked.session.request(&start).await.unwrap();
    assert_eq!(
        (start.contents.as_str(), start.truncated),
        ("IyByZQ==", Some(true))
    );

    refused!(asked, list_directory("."), UNSUPPORTED, "Unsupported");
    let suggested = ask!(asked, file_suggestions("READ"));
    assert_eq!(suggested.cwd.as_deref(), project.to_str());
    ask!(asked, seed_read_state(&file.abs_path, 1.0));
    let root = ask!(asked, register_repo_root("sub"));
    assert_eq!(root.directory, project.join("sub").to_str().unwrap());
    refused!(asked, register_repo_root("/"), None, "not a subdirectory");
    match ask!(asked, set_cwd("sub")) {
        SetCwdReply::NeedsTrust(needs) => assert_eq!(needs.directory, root.directory),
        other => panic!("{other:?}"),
    }
    let diff = ask!(asked, get_workspace_diff());
    assert_eq!(
        (diff.diff.is_none(), diff.no_diff_reason),
        (true, Some(NoDiffReason::NoRepository))
    );
    refused!(asked, rewind_files("nope"), None, "not enabled");
}

async fn tasks(asked: &Asked) {
    ask!(asked, stop_task("nope"));
    assert_eq!(ask!(asked, background_tasks()).backgrounded, None);
    refused!(asked, get_task_output("nope"), None, "no shell or Monitor task");
    refused!(asked, start_shell_task("echo hi"), UNSUPPORTED, "Unsupported");
    let before = asked.session.get_session_cost().await.unwrap();
    let aside = ask!(asked, side_question("%say aside"));
    assert_eq!(
        (aside.response.as_deref(), aside.synthetic),
        (Some("aside"), Some(false))
    );
    assert_ne!(
        ask!(asked, get_session_cost()).text,
        before.text,
        "a side question costs, too"
    );
}

async fn conversation(asked: &Asked) {
    ask!(asked, rename_session("A name"));
    // The model that makes up titles is asked in a form that no directive can answer.
    let title = ask!(asked, generate_session_title("fix the bug")).title;
    assert_eq!(title, None);
    refused!(asked, set_color("blue"), UNSUPPORTED, "Unsupported");
    refused!(asked, claim_session("/"), None, "not_a_spare");
    let exported = ask!(asked, export_conversation());
    assert!(exported.text.contains("%say one") && exported.default_filename.ends_with(".txt"));
    assert!(!ask!(asked, get_plan()).exists);
    ask!(asked, set_has_subscribers(Some(true)));
    ask!(asked, set_message_waiting(true));
    ask!(asked, prompt_draft_activity());
    ask!(asked, set_prompt_suggestions_paused(true));
    assert_eq!(ask!(asked, remote_control(false)).session_url, None);
}

async fn settings_and_plugins(asked: &Asked) {
    let listing = ask!(asked, get_hooks_listing());
    assert!(listing.event_catalog.len() > 10);
    assert_eq!(
        (
            listing.hooks[0].event.as_str(),
            listing.hooks[0].command_text.as_str()
        ),
        ("Stop", "true")
    );
    let style = object(json!({"outputStyle": "Explanatory"}));
    refused!(
        asked,
        update_settings(WritableSettings::UserSettings, style.clone()),
        None,
        "disabled for this session"
    );
    ask!(asked, update_settings(WritableSettings::LocalSettings, style));
    let written = asked.rig.sandbox().project().join(".claude/settings.local.json");
    assert!(std::fs::read_to_string(written).unwrap().contains("Explanatory"));
    refused!(
        asked,
        update_settings(WritableSettings::LocalSettings, object(json!({"model": "x"}))),
        None,
        "keys not allowed: model"
    );

    asked
        .rig
        .sandbox()
        .write(
            ".claude/skills/later/SKILL.md",
            "---\nname: later\ndescription: came later\n---\nx\n",
        )
        .unwrap();
    let plugins = ask!(asked, reload_plugins());
    assert!(plugins.plugins.iter().all(|plugin| plugin.path == "builtin") && plugins.error_count == 0);
    assert!(!ask!(asked, reload_skills()).skills.is_empty());
    assert!(
        ask!(asked, reload_output_styles())
            .available_output_styles
            .contains(&"Explanatory".to_owned())
    );
}

async fn account(asked: &Asked) {
    ask!(
        asked,
        message_rated("00000000-0000-4000-8000-000000000000", Sentiment::Positive)
    );
    let feedback = ask!(asked, submit_feedback("x"));
    assert!(feedback.feedback_id.is_none() && feedback.unavailable_reason.is_some());
    refused!(asked, claude_oauth_callback("code", "state"), None, "No active");
    refused!(asked, claude_oauth_wait_for_completion(), None, "No active");
    let urls = ask!(asked, claude_authenticate());
    assert!(urls.manual_url.unwrap().starts_with("https://"));
}

async fn dialogs(asked: &Asked) {
    let status = ask!(asked, get_status());
    let row = |label: &str| {
        let mut rows = status.sections.iter().flat_map(|section| &section.rows);
        rows.find(|row| row.label.as_deref() == Some(label))
            .map(|row| row.value.clone())
    };
    assert_eq!(row("Version").as_deref(), Some(pin().version.as_str()));
    assert_eq!(row("Session name").as_deref(), Some("A name"));
    assert_eq!(row("Session ID"), asked.session.id().map(String::from));
    let memory = ask!(asked, get_memory_dialog());
    assert!(memory.files.iter().all(|file| !file.exists) && !memory.files.is_empty());
    ask!(asked, get_skills_dialog());
    let sandbox = ask!(asked, get_sandbox_dialog());
    assert_eq!((sandbox.enabled, sandbox.mode), (false, SandboxMode::Disabled));
    assert!(!ask!(asked, get_chrome_dialog()).connected);
    refused!(asked, get_chrome_browsers(), None, "not connected");
    refused!(asked, select_chrome_browser("x"), None, "not connected");
}
