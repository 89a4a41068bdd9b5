//! One row for each option: what is set, and what of it reaches the CLI.

use std::collections::BTreeSet;

use outrigger_protocol::RawJson;
use outrigger_protocol::outbound::WorkspaceTrust;
use outrigger_protocol::settings::{PermissionSettings, SandboxSettings, Settings};
use outrigger_protocol::shared::{
    AgentDefinition, Effort, JsonObject, McpRemoteServerConfig, McpServerConfig, McpStdioServerConfig,
    OutputFormat, PermissionMode, PluginConfig, SettingSource, SystemPrompt, ThinkingConfig, ThinkingDisplay,
};
use serde_json::{Value, json};

use super::super::*;
use super::{TestHome, bare};
use crate::env::Environment;
use crate::permissions::Policy;

/// Where a row's options end up, apart from what a launch always has.
#[derive(Debug, PartialEq)]
struct Wire {
    args: Vec<String>,
    initialize: Value,
    env: Vec<(String, String)>,
}

fn wire(stage: &TestHome, options: &Options) -> Wire {
    let (plain, launch) = (stage.launch(&bare()).unwrap(), stage.launch(options).unwrap());
    let mut args = super::args(&launch);
    args.drain(..3);
    let env = launch
        .env
        .iter()
        .filter(|(name, value)| plain.env.get(*name) != Some(value))
        .map(|(name, value)| {
            (
                name.to_str().unwrap().to_owned(),
                value.to_str().unwrap().to_owned(),
            )
        })
        .collect();
    Wire {
        args,
        initialize: serde_json::to_value(&launch.initialize).unwrap(),
        env,
    }
}

pub(super) struct Row {
    pub(super) name: &'static str,
    options: Options,
    pub(super) args: Vec<String>,
    initialize: Value,
    env: Vec<(&'static str, String)>,
}

fn row(name: &'static str, options: Options) -> Row {
    Row {
        name,
        options,
        args: Vec::new(),
        initialize: json!({}),
        env: Vec::new(),
    }
}

impl Row {
    fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    fn init(mut self, initialize: Value) -> Self {
        self.initialize = initialize;
        self
    }

    fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }
}

const ID: &str = "01234567-89ab-4cde-8f01-23456789abcd";
const OTHER: &str = "11234567-89ab-4cde-8f01-23456789abcd";

fn stdio(args: &[&str]) -> McpServerConfig {
    McpServerConfig::Stdio(McpStdioServerConfig::new("tool", args.iter().copied()))
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.model = Some("opus".into());
    settings
}

fn sandbox_that_denies(path: &str) -> SandboxSettings {
    let mut sandbox = sandbox();
    let filesystem = sandbox.filesystem.get_or_insert_default();
    filesystem.deny_read = Some(vec![path.to_owned()]);
    sandbox
}

fn sandbox() -> SandboxSettings {
    let mut sandbox = SandboxSettings::default();
    sandbox.enabled = Some(true);
    sandbox
}

fn schema() -> OutputFormat {
    OutputFormat::JsonSchema {
        schema: JsonObject::try_from(json!({"type": "object"})).unwrap(),
    }
}

fn preset(append: Option<&str>, exclude: Option<bool>, snapshot: Option<bool>) -> SystemPrompt {
    SystemPrompt::Preset {
        append: append.map(Into::into),
        exclude_dynamic_sections: exclude,
        snapshot,
    }
}

fn place_rows(stage: &TestHome) -> Vec<Row> {
    let work = stage.path("work");
    std::fs::create_dir_all(work.join("below")).unwrap();
    vec![
        row("auth", bare().auth(Auth::OAuthToken("tok".into()))).env("CLAUDE_CODE_OAUTH_TOKEN", "tok"),
        row("isolation", bare().isolation(Isolation::Plain))
            .args(["--setting-sources=", "--strict-mcp-config"])
            .env("CLAUDE_CODE_DISABLE_CRON", "1"),
        row("isolation", bare().isolation(Isolation::Project)).args(["--setting-sources=project,local"]),
        row("isolation", bare().isolation(Isolation::Interactive)),
        row(
            "environment",
            bare().environment(Environment::listed().set("A", "b")),
        )
        .env("A", "b"),
        row("cwd", bare().cwd("below")).env("PWD", work.join("below").to_str().unwrap()),
        row("assume_sandbox", bare().assume_sandbox(true)).env("IS_SANDBOX", "1"),
        row("disable_autoupdater", bare().disable_autoupdater(true)).env("DISABLE_AUTOUPDATER", "1"),
        row("client_app", bare().client_app("my-app/1.0")).env("CLAUDE_AGENT_SDK_CLIENT_APP", "my-app/1.0"),
        row("project_config_root", bare().project_config_root("../home"))
            .args(["--project-config-root=../home"]),
        row(
            "additional_directories",
            bare().additional_directories(["/a", "-b"]),
        )
        .args(["--add-dir=/a", "--add-dir=-b"]),
    ]
}

fn model_rows(stage: &TestHome) -> Vec<Row> {
    let prompt = stage.path("prompt.md");
    std::fs::write(&prompt, "Be brief.").unwrap();
    vec![
        row("model", bare().model("opus")).args(["--model=opus"]),
        row("fallback_model", bare().fallback_model("a,b")).args(["--fallback-model=a,b"]),
        row("effort", bare().effort(Effort::XHigh)).args(["--effort=xhigh"]),
        row("thinking", bare().thinking(ThinkingConfig::Adaptive { display: None })).args(["--thinking=adaptive"]),
        row("thinking", bare().thinking(ThinkingConfig::Enabled { budget_tokens: Some(9), display: Some(ThinkingDisplay::Omitted) }))
            .args(["--max-thinking-tokens=9", "--thinking-display=omitted"]),
        row("thinking", bare().thinking(ThinkingConfig::Enabled { budget_tokens: None, display: Some(ThinkingDisplay::Summarized) }))
            .args(["--thinking=adaptive", "--thinking-display=summarized"]),
        row("thinking", bare().thinking(ThinkingConfig::Disabled)).args(["--thinking=disabled"]),
        row("max_thinking_tokens", bare().max_thinking_tokens(7u64)).args(["--max-thinking-tokens=7"]),
        row("max_thinking_tokens", bare().max_thinking_tokens(0u64)).args(["--thinking=disabled"]),
        row("betas", bare().betas(["a-1", "b-2"])).args(["--betas=a-1,b-2"]),
        row("max_turns", bare().max_turns(3u64)).args(["--max-turns=3"]),
        row("max_budget_usd", bare().max_budget_usd(0.25)).args(["--max-budget-usd=0.25"]),
        row("task_budget", bare().task_budget(20_000u64)).args(["--task-budget=20000"]),
        row("system_prompt", bare().system_prompt("Be brief.")).init(json!({"systemPrompt": ["Be brief."]})),
        row("system_prompt", bare().system_prompt("")).init(json!({"systemPrompt": [""]})),
        row("system_prompt", bare().system_prompt(vec!["a".to_owned(), "b".to_owned()])).init(json!({"systemPrompt": ["a", "b"]})),
        row("system_prompt", bare().system_prompt(SystemPrompt::Custom { prompt: vec!["a".into()], snapshot: Some(false) }))
            .init(json!({"systemPrompt": ["a"], "systemPromptSnapshot": false})),
        row("system_prompt", bare().system_prompt(SystemPrompt::PRESET)),
        row("system_prompt", bare().system_prompt(preset(Some("More."), Some(true), Some(true))))
            .init(json!({"appendSystemPrompt": "More.", "excludeDynamicSections": true, "systemPromptSnapshot": true})),
        row("system_prompt_file", bare().system_prompt_file("../prompt.md"))
            .args([format!("--system-prompt-file={}", stage.path("work/../prompt.md").display())]),
        row("append_subagent_system_prompt", bare().append_subagent_system_prompt("Hurry."))
            .init(json!({"appendSubagentSystemPrompt": "Hurry."})),
        row("output_format", bare().output_format(schema()))
            .args([r#"--json-schema={"type":"object"}"#])
            .init(json!({"jsonSchema": {"type": "object"}})),
    ]
}

fn tool_rows() -> Vec<Row> {
    vec![
        row("tools", bare().tools(Tools::Preset)).args(["--tools=default"]),
        row("tools", bare().tools(Tools::NONE)).args(["--tools="]),
        row("tools", bare().tools(Tools::only(["Read", "Bash"]))).args(["--tools=Read,Bash"]),
        row("allowed_tools", bare().allowed_tools(["Read", "Bash(git log:*)"]))
            .args(["--allowedTools=Read,Bash(git log:*)"]),
        row("disallowed_tools", bare().disallowed_tools(["Write"])).args(["--disallowedTools=Write"]),
        row(
            "disallowed_tools_delivery",
            bare()
                .disallowed_tools(["Write"])
                .disallowed_tools_delivery(Delivery::Initialize),
        )
        .args(["--await-initialize", "--initialize-fields=disallowedTools"])
        .init(json!({"disallowedTools": ["Write"]})),
        row("tool_aliases", bare().tool_aliases("Shell", "Bash"))
            .init(json!({"toolAliases": {"Shell": "Bash"}})),
        row(
            "code_running_mcp_tools",
            bare().code_running_mcp_tools("srv", vec!["run".to_owned()]),
        )
        .init(json!({"codeRunningMcpTools": {"srv": ["run"]}})),
        row("skills", bare().allowed_tools(["Read"]).skills(Skills::All)).args(["--allowedTools=Read,Skill"]),
        row("skills", bare().skills(Skills::named(["pdf", "my skill"])))
            .args(["--allowedTools=Skill(pdf),Skill(my skill)"])
            .init(json!({"skills": ["pdf", "my skill"]})),
        row("skills", bare().skills(Skills::Named(Vec::new()))).init(json!({"skills": []})),
        row(
            "permission_mode",
            bare().permission_mode(PermissionMode::AcceptEdits),
        )
        .args(["--permission-mode=acceptEdits"]),
        row(
            "allow_dangerously_skip_permissions",
            bare().allow_dangerously_skip_permissions(true),
        )
        .args(["--allow-dangerously-skip-permissions"]),
        row(
            "permission_prompt_tool_name",
            bare().permission_prompt_tool_name("mcp__a__ask"),
        )
        .args(["--permission-prompt-tool=mcp__a__ask"]),
        row(
            "permission_prompts",
            bare().permission_prompts(PermissionPrompts::None),
        )
        .args(["--permission-prompts=none"]),
        row(
            "permission_prompts",
            bare().permission_prompts(PermissionPrompts::Host),
        )
        .args(["--permission-prompts=host"]),
        row("plan_mode_instructions", bare().plan_mode_instructions("Think."))
            .init(json!({"planModeInstructions": "Think."})),
        row(
            "question_preview_format",
            bare().question_preview_format(QuestionPreviewFormat::Html),
        )
        .env("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", "html"),
        row(
            "question_preview_format",
            bare().question_preview_format(QuestionPreviewFormat::Markdown),
        )
        .env("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", "markdown"),
        row("question_extended", bare().question_extended(true)).env("CLAUDE_CODE_QUESTION_EXTENDED", "1"),
        row(
            "question_optional_descriptions",
            bare().question_optional_descriptions(true),
        )
        .env("CLAUDE_CODE_QUESTION_OPTIONAL_DESCRIPTIONS", "1"),
        row("agent", bare().agent("reviewer")).args(["--agent=reviewer"]),
        row("agents", bare().agents("r", AgentDefinition::new("d", "p")))
            .init(json!({"agents": {"r": {"description": "d", "prompt": "p"}}})),
    ]
}

fn server_rows(stage: &TestHome) -> Vec<Row> {
    let file = stage.path("mcp.json");
    std::fs::write(&file, r#"{"mcpServers":{}}"#).unwrap();
    let with_env = McpServerConfig::Stdio(McpStdioServerConfig::new("tool", ["x"]).env("K", "v"));
    let with_header = McpServerConfig::Http(McpRemoteServerConfig::new("https://m").header("H", "v"));
    let with_query = McpServerConfig::Sse(McpRemoteServerConfig::new("https://m?k=v"));
    vec![
        row("mcp_servers", bare().mcp_servers("s", stdio(&["x"])))
            .args([r#"--mcp-config={"mcpServers":{"s":{"type":"stdio","command":"tool","args":["x"]}}}"#]),
        row("mcp_servers", bare().mcp_servers("s", with_env.clone()))
            .args(["--await-initialize"])
            .init(json!({"mcpServers": {"s": {"type": "stdio", "command": "tool", "args": ["x"], "env": {"K": "v"}}}})),
        row("mcp_servers", bare().mcp_servers("s", with_header))
            .args(["--await-initialize"])
            .init(json!({"mcpServers": {"s": {"type": "http", "url": "https://m", "headers": {"H": "v"}}}})),
        row("mcp_servers", bare().mcp_servers("s", with_query))
            .args(["--await-initialize"])
            .init(json!({"mcpServers": {"s": {"type": "sse", "url": "https://m?k=v"}}})),
        row("mcp_servers", bare().mcp_servers("s", stdio(&["--api-key=k"])))
            .args(["--await-initialize"])
            .init(json!({"mcpServers": {"s": {"type": "stdio", "command": "tool", "args": ["--api-key=k"]}}})),
        row("mcp_servers_delivery", bare().mcp_servers("s", stdio(&[])).mcp_servers_delivery(Delivery::Initialize))
            .args(["--await-initialize"])
            .init(json!({"mcpServers": {"s": {"type": "stdio", "command": "tool", "args": []}}})),
        row("mcp_config_files", bare().mcp_config_files(["../mcp.json"]))
            .args([format!("--mcp-config={}", stage.path("work/../mcp.json").display())]),
        row("strict_mcp_config", bare().strict_mcp_config(true)).args(["--strict-mcp-config"]),
        row("strict_mcp_config", bare().isolation(Isolation::Plain).strict_mcp_config(false)).args(["--setting-sources="]).env("CLAUDE_CODE_DISABLE_CRON", "1"),
        row("plugins", bare().plugins([PluginConfig::local("/p"), PluginConfig::local("/q").skip_mcp_discovery()]))
            .args(["--plugin-dir=/p", "--plugin-dir-no-mcp=/q"]),
        row("plugin_delivery", bare().plugins([PluginConfig::local("/q").skip_mcp_discovery()]).plugin_delivery(Delivery::Initialize))
            .args(["--await-initialize"])
            .init(json!({"plugins": [{"type": "local", "path": "/q", "skipMcpDiscovery": true}]})),
    ]
}

fn settings_rows(stage: &TestHome) -> Vec<Row> {
    let file = stage.path("settings.json");
    std::fs::write(&file, "{}").unwrap();
    let mut secret = settings();
    secret.env = Some([("K".to_owned(), "v".to_owned())].into());
    vec![
        row("settings", bare().settings(settings())).args([r#"--settings={"model":"opus"}"#]),
        row("settings", bare().settings(file.clone())).args([format!("--settings={}", file.display())]),
        row("settings", bare().settings(secret.clone()))
            .args(["--await-initialize", "--initialize-fields=settings"])
            .init(json!({"settings": {"env": {"K": "v"}, "model": "opus"}})),
        row(
            "settings_delivery",
            bare()
                .settings(settings())
                .settings_delivery(Delivery::Initialize),
        )
        .args(["--await-initialize", "--initialize-fields=settings"])
        .init(json!({"settings": {"model": "opus"}})),
        row("sandbox", bare().sandbox(sandbox()))
            .args([r#"--settings={"sandbox":{"enabled":true,"failIfUnavailable":true}}"#]),
        row("sandbox", bare().settings(settings()).sandbox(sandbox()))
            .args([r#"--settings={"model":"opus","sandbox":{"enabled":true,"failIfUnavailable":true}}"#]),
        row("sandbox", bare().cwd("/").sandbox(sandbox_that_denies("./a")))
            .args([r#"--settings={"sandbox":{"enabled":true,"failIfUnavailable":true,"filesystem":{"denyRead":["/./a"]}}}"#]).env("PWD", "/"),
        row("managed_settings", bare().managed_settings(settings()))
            .args([r#"--managed-settings={"model":"opus"}"#]),
        row("managed_settings", bare().managed_settings(secret))
            .args(["--await-initialize", "--managed-settings-in-initialize"])
            .init(json!({"managedSettings": {"env": {"K": "v"}, "model": "opus"}})),
        row(
            "managed_settings_delivery",
            bare()
                .managed_settings(settings())
                .managed_settings_delivery(Delivery::Initialize),
        )
        .args(["--await-initialize", "--managed-settings-in-initialize"])
        .init(json!({"managedSettings": {"model": "opus"}})),
        row(
            "setting_sources",
            bare().setting_sources(vec![SettingSource::User, SettingSource::Local]),
        )
        .args(["--setting-sources=user,local"]),
        row("setting_sources", bare().setting_sources(Vec::new())).args(["--setting-sources="]).env("CLAUDE_CODE_DISABLE_CRON", "1"),
    ]
}

fn session_rows() -> Vec<Row> {
    vec![
        row("worktree", bare().worktree("feature/one")).args(["--worktree=feature/one"]),
        row("worktree", bare().worktree(Worktree::Unnamed)).args(["--worktree"]),
        row("continue_conversation", bare().continue_conversation(true)).args(["--continue"]),
        row("resume", bare().resume("--version")).args(["--resume=--version"]),
        row("session_id", bare().session_id(ID)).args([format!("--session-id={ID}")]),
        row(
            "fork_session",
            bare().resume(ID).fork_session(true).session_id(OTHER),
        )
        .args([
            format!("--resume={ID}"),
            format!("--session-id={OTHER}"),
            "--fork-session".into(),
        ]),
        row("resume_session_at", bare().resume(ID).resume_session_at(OTHER))
            .args([format!("--resume={ID}"), format!("--resume-session-at={OTHER}")]),
        row(
            "resume_drops_turn",
            bare().resume(ID).resume_session_at(OTHER).resume_drops_turn(""),
        )
        .args([
            format!("--resume={ID}"),
            format!("--resume-session-at={OTHER}"),
            "--resume-drops-turn=".into(),
        ]),
        row("persist_session", bare().persist_session(false)).args(["--no-session-persistence"]),
        row("persist_session", bare().persist_session(true)),
        row("title", bare().title("Tidy up")).init(json!({"title": "Tidy up"})),
    ]
}

fn stream_rows() -> Vec<Row> {
    let trust = WorkspaceTrust {
        accepted: true,
        directory: "/w".into(),
    };
    vec![
        row("include_partial_messages", bare().include_partial_messages(true))
            .args(["--include-partial-messages"]),
        row("include_hook_events", bare().include_hook_events(true)).args(["--include-hook-events"]),
        row("forward_subagent_text", bare().forward_subagent_text(true))
            .init(json!({"forwardSubagentText": true})),
        row(
            "forward_nested_subagent_tool_calls",
            bare().forward_nested_subagent_tool_calls(true),
        )
        .init(json!({"forwardNestedSubagentToolCalls": true})),
        row("prompt_suggestions", bare().prompt_suggestions(true)).init(json!({"promptSuggestions": true})),
        row("agent_progress_summaries", bare().agent_progress_summaries(true))
            .init(json!({"agentProgressSummaries": true})),
        row("per_task_stop_affordance", bare().per_task_stop_affordance(true))
            .init(json!({"perTaskStopAffordance": true})),
        row("rapid_followup_preempt", bare().rapid_followup_preempt(true))
            .init(json!({"rapidFollowupPreempt": true})),
        row(
            "enable_file_checkpointing",
            bare().enable_file_checkpointing(true),
        )
        .env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true"),
        row("await_initialize", bare().await_initialize(true)).args(["--await-initialize"]),
        row(
            "offers_bypass_switch_back",
            bare().offers_bypass_switch_back(true),
        )
        .init(json!({"offersBypassSwitchBack": true})),
        row("keeps_bypass_held", bare().keeps_bypass_held(true)).init(json!({"keepsBypassHeld": true})),
        row(
            "web_search_isolation_exempt_mcp_servers",
            bare().web_search_isolation_exempt_mcp_servers(["s"]),
        )
        .init(json!({"webSearchIsolationExemptMcpServers": ["s"]})),
        row("workspace_trust", bare().workspace_trust(trust))
            .init(json!({"workspaceTrust": {"accepted": true, "directory": "/w"}})),
        row("workload", bare().workload("cron")).args(["--workload=cron"]),
        row("channels", bare().channels(["server:a", "plugin:b@c"]))
            .args(["--channels=server:a", "--channels=plugin:b@c"]),
        row("debug", bare().debug(true)).args(["--debug"]),
        row("debug_file", bare().debug(true).debug_file("/d.log")).args(["--debug-file=/d.log"]),
        row(
            "extra_args",
            bare().extra_arg("chrome", None).extra_arg("from-pr", Some("-1")),
        )
        .args(["--chrome", "--from-pr=-1"]),
        row(
            "initialize_fields",
            bare().initialize_field("proactivity", RawJson::from_text("[1]").unwrap()),
        )
        .init(json!({"proactivity": [1]})),
    ]
}

/// All rows.
pub(super) fn rows(stage: &TestHome) -> impl Iterator<Item = Row> {
    let rows = [
        place_rows(stage),
        model_rows(stage),
        tool_rows(),
        server_rows(stage),
        settings_rows(stage),
        session_rows(),
        stream_rows(),
    ];
    rows.into_iter().flatten()
}

#[test]
fn every_option_reaches_the_cli_as_listed() {
    let stage = TestHome::new();
    let mut seen = BTreeSet::new();
    for row in rows(&stage) {
        seen.insert(row.name);
        let expected = Wire {
            args: row.args,
            initialize: row.initialize,
            env: row
                .env
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        };
        let mut got = wire(&stage, &row.options);
        // Another account takes the place of the usual one.
        got.env.retain(|(name, _)| name != "ANTHROPIC_API_KEY");
        assert_eq!(got, expected, "{}", row.name);
    }
    // These have tests of their own in `launch`: they change what is started and not what it is told.
    let elsewhere = [
        "hermetic_home",
        "cli_path",
        "executable",
        "executable_args",
        "user",
        "verbatim_prompts",
        "max_line_bytes",
    ];
    seen.extend(elsewhere);
    let all: BTreeSet<&str> = Options::NAMES.iter().copied().collect();
    assert_eq!(
        all.symmetric_difference(&seen).collect::<Vec<_>>(),
        Vec::<&&str>::new()
    );
}

#[test]
fn fixed_part() {
    let stage = TestHome::new();
    let launch = stage.launch(&bare()).unwrap();
    assert_eq!(
        super::args(&launch),
        [
            "--output-format=stream-json",
            "--verbose",
            "--input-format=stream-json"
        ]
    );
    assert_eq!(serde_json::to_value(&launch.initialize).unwrap(), json!({}));
    assert!(!launch.await_initialize && launch.confirmations.is_empty());
    let names: Vec<&str> = launch.env.keys().map(|name| name.to_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "ANTHROPIC_API_KEY",
            "BUN_ENABLE_CRASH_REPORTING",
            "CLAUDE_AGENT_SDK_VERSION",
            "CLAUDE_CODE_ENTRYPOINT",
            "CLAUDE_CODE_SDK_READS_SESSION_STATE",
            "CLAUDE_CODE_SDK_READS_STARTUP_MARKS",
            "CLAUDE_CODE_STARTUP_FAILURE_RESULTS",
            "HOME",
            "NoDefaultCurrentDirectoryInExePath",
            "PATH",
            "PWD",
        ]
    );
    assert_eq!(super::var(&launch, "CLAUDE_CODE_ENTRYPOINT"), Some("sdk-rust"));
    assert_eq!(
        super::var(&launch, "CLAUDE_AGENT_SDK_VERSION"),
        Some(env!("CARGO_PKG_VERSION"))
    );
    for (name, value, reports) in [
        ("A", "1", Some("0")),
        ("BUN_ENABLE_CRASH_REPORTING", "", Some("0")),
        ("BUN_ENABLE_CRASH_REPORTING", "1", Some("1")),
        ("BUN_CRASH_REPORT_URL", "http://localhost/", None),
    ] {
        let launch = bare()
            .env(name, value)
            .launch(&stage.surroundings, Host::default())
            .unwrap();
        assert_eq!(
            super::var(&launch, "BUN_ENABLE_CRASH_REPORTING"),
            reports,
            "{name}"
        );
    }
    let asked = bare()
        .launch(&stage.surroundings, Host::answering_permissions())
        .unwrap();
    assert_eq!(super::args(&asked)[3..], ["--permission-prompt-tool=stdio"]);
}

/// Whoever starts in plan mode, or whose model enters it, still has the handler asked.
#[test]
fn a_classifier_decides_in_plan_mode_only_if_settings_say_so() {
    let stage = TestHome::new();
    let asked = || bare().permissions(Policy::read_only());
    let of = |options: &Options| {
        let launch = stage.launch(options).unwrap();
        let text = launch.args.iter().find_map(|argument| {
            let text = argument.to_str().unwrap().strip_prefix("--settings=")?;
            serde_json::from_str::<Value>(text).ok()
        });
        text.map(|settings| settings["useAutoModeDuringPlan"].clone())
    };
    let with = |json| {
        let settings: Settings = serde_json::from_value(json).unwrap();
        asked().settings(settings)
    };
    assert_eq!(of(&bare()), None);
    assert_eq!(of(&asked()), Some(json!(false)));
    assert_eq!(
        of(&asked().permission_mode(PermissionMode::Plan)),
        Some(json!(false))
    );
    // Which may be left for another one.
    assert_eq!(
        of(&asked().permission_mode(PermissionMode::Auto)),
        Some(json!(false))
    );
    assert_eq!(of(&with(json!({"model": "m"}))), Some(json!(false)));
    assert_eq!(
        of(&with(json!({"useAutoModeDuringPlan": true}))),
        Some(json!(true))
    );
}

#[test]
fn files_of_the_user_bypass_nothing_unless_that_is_meant() {
    let stage = TestHome::new();
    let asked = || bare().permissions(Policy::read_only());
    let of = |options: &Options| {
        let launch = stage.launch(options).unwrap();
        let text = launch.args.iter().find_map(|argument| {
            let text = argument.to_str().unwrap().strip_prefix("--settings=")?;
            serde_json::from_str::<Value>(text).ok()
        });
        text.and_then(|settings| {
            settings["permissions"]
                .get("disableBypassPermissionsMode")
                .cloned()
        })
    };
    let forbidden = Some(json!("disable"));
    assert_eq!(of(&bare()), None);
    assert_eq!(of(&asked()), forbidden);
    assert_eq!(of(&asked().permission_mode(PermissionMode::Auto)), forbidden);
    assert_eq!(of(&asked().setting_sources([SettingSource::User])), forbidden);
    assert_eq!(of(&asked().allow_dangerously_skip_permissions(true)), None);
    assert_eq!(of(&asked().isolation(Isolation::Plain)), None);
    let settings: Settings = serde_json::from_value(json!({"permissions": {"ask": ["Bash(rm *)"]}})).unwrap();
    let launch = stage.launch(&asked().settings(settings)).unwrap();
    let all = launch
        .args
        .iter()
        .find(|argument| argument.to_str().unwrap().contains("disableBypass"));
    assert!(all.unwrap().to_str().unwrap().contains("Bash(rm *)"));
}

#[test]
fn what_is_long_leaves_the_command_line() {
    let stage = TestHome::new();
    let many: Vec<String> = (0..600)
        .map(|n| format!("mcp__server__tool_number_{n}"))
        .collect();

    let launch = stage.launch(&bare().disallowed_tools(many.clone())).unwrap();
    assert_eq!(
        super::args(&launch)[3..],
        ["--await-initialize", "--initialize-fields=disallowedTools"]
    );
    assert_eq!(launch.confirmations, [Confirmation::DisallowedTools]);
    assert_eq!(json!(launch.initialize.disallowed_tools), json!(many));

    // Rules that allow have no field of their own; settings are their way in. What was there stays.
    let mut settings = settings();
    let mut permissions = PermissionSettings::default();
    permissions.allow = Some(vec!["Read".into()]);
    settings.permissions = Some(permissions);
    let launch = stage
        .launch(&bare().settings(settings).allowed_tools(many.clone()))
        .unwrap();
    assert_eq!(
        super::args(&launch)[3..],
        ["--await-initialize", "--initialize-fields=settings"]
    );
    let sent = json!(launch.initialize.settings);
    assert_eq!(sent["model"], "opus");
    let rules = sent["permissions"]["allow"].as_array().unwrap();
    assert_eq!(
        (rules.len(), &rules[0], &rules[600]),
        (601, &json!("Read"), &json!(many[599]))
    );

    let long = json!({"type": "object", "description": "x".repeat(9000)});
    let format = OutputFormat::JsonSchema {
        schema: JsonObject::try_from(long.clone()).unwrap(),
    };
    let launch = stage.launch(&bare().output_format(format)).unwrap();
    assert_eq!(super::args(&launch).len(), 3);
    assert_eq!(json!(launch.initialize.json_schema), long);

    // The CLI has no schema of the draft, and refuses a schema that names one.
    let named = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"b":{"const":1e2},"a":{}}}"#;
    let format = OutputFormat::JsonSchema {
        schema: serde_json::from_str(named).unwrap(),
    };
    let launch = stage.launch(&bare().output_format(format)).unwrap();
    let plain = r#"{"properties":{"b":{"const":1e2},"a":{}},"type":"object"}"#;
    assert_eq!(
        launch.initialize.json_schema.as_ref().unwrap().as_raw().get(),
        plain
    );
    assert!(
        super::args(&launch).iter().any(|arg| arg.contains(plain)),
        "{:?}",
        super::args(&launch)
    );

    let plugins: Vec<_> = (0..300)
        .map(|n| PluginConfig::local(format!("/somewhere/far/away/plugin-{n}")))
        .collect();
    let launch = stage.launch(&bare().plugins(plugins)).unwrap();
    assert_eq!(super::args(&launch)[3..], ["--await-initialize"]);
    assert_eq!(launch.confirmations, [Confirmation::Plugins]);

    let error = stage.launch(&bare().tools(Tools::Only(many))).unwrap_err();
    assert!(
        matches!(error, OptionsError::TooLong { option: "tools", .. }),
        "{error}"
    );
}
