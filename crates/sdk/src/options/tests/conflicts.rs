//! What contradicts is found, and the error says what to do.

use outrigger_protocol::RawJson;
use outrigger_protocol::settings::{SandboxSettings, Settings};
use outrigger_protocol::shared::{
    AgentDefinition, JsonObject, McpRemoteServerConfig, McpSdkServerConfig, McpServerConfig,
    McpStdioServerConfig, OutputFormat, PermissionMode, PluginConfig, SystemPrompt, ThinkingConfig,
};
use serde_json::json;

use super::super::*;
use super::{TestHome, bare};
use crate::usage::SessionUsage;

const ID: &str = "01234567-89ab-4cde-8f01-23456789abcd";

fn check(options: &Options) -> Result<(), OptionsError> {
    options.check_in(&TestHome::new().surroundings, Host::default())
}

#[track_caller]
fn refused(options: Options) -> OptionsError {
    let error = check(&options).unwrap_err();
    // Every error says something, and nothing of the key.
    let text = error.to_string();
    assert!(text.len() > 20 && !text.contains("sk-test-key"), "{text}");
    error
}

#[track_caller]
fn conflict(options: Options, pair: [&str; 2]) {
    match refused(options) {
        OptionsError::Conflict { options, .. } => assert_eq!(options, pair),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn requires(options: Options, pair: [&str; 2]) {
    match refused(options) {
        OptionsError::Requires { option, needs, .. } => assert_eq!([option, needs], pair),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn invalid(options: Options, name: &str) {
    match refused(options) {
        OptionsError::Invalid { option, .. } => assert_eq!(option, name),
        other => panic!("{other:?}"),
    }
}

#[test]
fn sound_options_pass() {
    assert_eq!(check(&bare()), Ok(()));
    assert_eq!(check(&Options::new(Auth::Inherit)), Ok(()));
    assert_eq!(check(&bare().model("a").fallback_model("b, c")), Ok(()));
}

#[test]
fn conflicts() {
    let mut sandbox = SandboxSettings::default();
    sandbox.enabled = Some(true);
    let thinking = ThinkingConfig::Disabled;
    conflict(
        bare().resume(ID).continue_conversation(true),
        ["resume", "continue_conversation"],
    );
    conflict(bare().model("a").fallback_model("a"), ["fallback_model", "model"]);
    conflict(
        bare().model("a").fallback_model("b, a"),
        ["fallback_model", "model"],
    );
    conflict(
        bare().thinking(thinking).max_thinking_tokens(1u64),
        ["thinking", "max_thinking_tokens"],
    );
    conflict(
        bare().system_prompt(SystemPrompt::PRESET).system_prompt_file("f"),
        ["system_prompt", "system_prompt_file"],
    );
    conflict(
        bare().settings(PathBuf::from("f")).sandbox(sandbox),
        ["settings", "sandbox"],
    );
    conflict(
        bare().isolation(Isolation::Hermetic).env("HOME", "/h"),
        ["isolation", "environment"],
    );
    let many = (0..600).map(|n| format!("mcp__server__tool_number_{n}"));
    conflict(
        bare().settings(PathBuf::from("f")).allowed_tools(many),
        ["allowed_tools", "settings"],
    );

    let asked = bare().permission_prompt_tool_name("mcp__a__b");
    let error = asked
        .check_in(&TestHome::new().surroundings, Host::answering_permissions())
        .unwrap_err();
    assert!(
        matches!(
            error,
            OptionsError::Conflict {
                options: ["permission_prompt_tool_name", _],
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn requirements() {
    let bypass = PermissionMode::BypassPermissions;
    requires(
        bare().permission_mode(bypass),
        ["permission_mode", "allow_dangerously_skip_permissions"],
    );
    requires(bare().session_id(ID).resume(ID), ["session_id", "fork_session"]);
    requires(
        bare().session_id(ID).continue_conversation(true),
        ["session_id", "fork_session"],
    );
    requires(bare().fork_session(true), ["fork_session", "resume"]);
    requires(
        bare().usage_so_far(SessionUsage::default()),
        ["usage_so_far", "resume"],
    );
    requires(bare().resume_session_at(ID), ["resume_session_at", "resume"]);
    requires(
        bare().continue_conversation(true).resume_session_at(ID),
        ["resume_session_at", "resume"],
    );
    requires(
        bare().resume(ID).resume_drops_turn(ID),
        ["resume_drops_turn", "resume_session_at"],
    );
    requires(bare().hermetic_home("/h"), ["hermetic_home", "isolation"]);
    requires(
        bare().isolation(Isolation::Hermetic).resume(ID),
        ["resume", "hermetic_home"],
    );
    let hermetic = bare().isolation(Isolation::Hermetic);
    requires(
        hermetic.clone().continue_conversation(true),
        ["continue_conversation", "hermetic_home"],
    );
    assert_eq!(check(&hermetic.hermetic_home("/h").resume(ID)), Ok(()));
}

#[test]
fn root_may_not_skip_permissions_unless_in_a_sandbox() {
    let mut stage = TestHome::new();
    stage.surroundings.uid = Some(0);
    let check = |options: &Options| options.check_in(&stage.surroundings, Host::default());
    let leave = bare().allow_dangerously_skip_permissions(true);
    let bypass = leave.clone().permission_mode(PermissionMode::BypassPermissions);
    assert_eq!(check(&leave), Err(OptionsError::BypassAsRoot));
    assert_eq!(check(&bypass), Err(OptionsError::BypassAsRoot));
    assert_eq!(check(&bypass.clone().assume_sandbox(true)), Ok(()));
    assert_eq!(check(&bypass.clone().env("IS_SANDBOX", "1")), Ok(()));
    assert_eq!(
        check(&bypass.clone().user(RunAs { uid: 1000, gid: 1000 })),
        Ok(())
    );
    // A sandbox that happens to be declared around us is no decision of this program.
    stage.surroundings.env.insert("IS_SANDBOX".into(), "1".into());
    assert_eq!(
        bypass.check_in(&stage.surroundings, Host::default()),
        Err(OptionsError::BypassAsRoot)
    );
    stage.surroundings.uid = Some(1000);
    assert_eq!(bypass.check_in(&stage.surroundings, Host::default()), Ok(()));
}

/// It becomes a new session, and learns where it works, only when it is claimed.
#[test]
fn what_no_spare_can_have() {
    let host = Host {
        awaits_claim: true,
        ..Host::default()
    };
    let stage = TestHome::new();
    for (name, options) in [
        ("resume", bare().resume(ID)),
        ("continue_conversation", bare().continue_conversation(true)),
        ("worktree", bare().worktree("w")),
    ] {
        match options.check_in(&stage.surroundings, host) {
            Err(OptionsError::Invalid { option, .. }) => assert_eq!(option, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(bare().check_in(&stage.surroundings, host), Ok(()));
}

#[test]
fn bad_values() {
    for (name, options) in [
        ("session_id", bare().session_id("x")),
        ("resume_session_at", bare().resume(ID).resume_session_at("--x")),
        ("resume", bare().resume("")),
        ("resume", bare().resume(" \n")),
        ("model", bare().model("")),
        ("model", bare().model("a\0b")),
        ("agent", bare().agent("")),
        ("fallback_model", bare().fallback_model("a,,b")),
        (
            "thinking",
            bare().thinking(ThinkingConfig::Enabled {
                budget_tokens: Some(0),
                display: None,
            }),
        ),
        ("max_turns", bare().max_turns(0u64)),
        ("max_budget_usd", bare().max_budget_usd(0.0)),
        ("max_budget_usd", bare().max_budget_usd(-1.0)),
        ("max_budget_usd", bare().max_budget_usd(f64::NAN)),
        ("max_budget_usd", bare().max_budget_usd(f64::INFINITY)),
        ("task_budget", bare().task_budget(0u64)),
        ("betas", bare().betas(["a,b"])),
        ("betas", bare().betas([""])),
        ("tools", bare().tools(Tools::only(["Bash Read"]))),
        ("tools", bare().tools(Tools::only([""]))),
        ("skills", bare().skills(Skills::named(["a), Bash(*"]))),
        ("skills", bare().skills(Skills::named(["*"]))),
        ("tool_aliases", bare().tool_aliases("", "Bash")),
        ("channels", bare().channels(["a b"])),
        (
            "permission_prompt_tool_name",
            bare().permission_prompt_tool_name("stdio"),
        ),
        ("agents", bare().agents(" ", AgentDefinition::new("d", "p"))),
        (
            "mcp_servers",
            bare().mcp_servers(
                "s",
                McpServerConfig::Stdio(McpStdioServerConfig::new("", [""; 0])),
            ),
        ),
        (
            "mcp_servers",
            bare().mcp_servers("s", McpServerConfig::Http(McpRemoteServerConfig::new(""))),
        ),
        (
            "mcp_servers",
            bare().mcp_servers("s", McpServerConfig::Sdk(McpSdkServerConfig::new("s"))),
        ),
        (
            "mcp_servers",
            bare().mcp_servers("", McpServerConfig::Http(McpRemoteServerConfig::new("https://m"))),
        ),
        ("plugins", bare().plugins([PluginConfig::local("")])),
        ("additional_directories", bare().additional_directories([""])),
        ("client_app", bare().client_app("a\nb")),
        ("workload", bare().workload("")),
        ("worktree", bare().worktree("")),
        ("worktree", bare().worktree("Fix the test")),
        ("title", bare().title("")),
        ("plan_mode_instructions", bare().plan_mode_instructions("")),
        ("max_line_bytes", bare().max_line_bytes(0usize)),
        ("debug_file", bare().debug_file("")),
        ("environment", bare().env("", "x")),
        ("environment", bare().env("A=B", "x")),
        ("environment", bare().env("A", "x\0")),
        ("environment", bare().env("HOME", "relative")),
        ("environment", bare().env("HOME", "")),
        ("executable_args", bare().executable_args(["a\0"])),
        ("auth", bare().auth(Auth::ApiKey("".into()))),
        ("auth", bare().auth(Auth::ApiKey("sk-1\n".into()))),
    ] {
        invalid(options, name);
    }
}

#[test]
fn schemas_and_agents_the_cli_would_drop_silently() {
    let schema = |value| OutputFormat::JsonSchema {
        schema: JsonObject::try_from(value).unwrap(),
    };
    invalid(bare().output_format(schema(json!({"type": 7}))), "output_format");
    invalid(
        bare().output_format(schema(json!({"properties": {"a": {"type": "strin"}}}))),
        "output_format",
    );
    match refused(
        bare()
            .agents("good", AgentDefinition::new("d", "p"))
            .agents("bad", AgentDefinition::new("", "p")),
    ) {
        OptionsError::Agent { name, problem } => {
            assert_eq!((name.as_str(), problem.field), ("bad", "description"))
        }
        other => panic!("{other:?}"),
    }
}

/// The CLI goes by these entries in another way than they look, and says nothing.
#[test]
fn tools_that_an_agent_would_keep() {
    let without = |text: &str| {
        let mut agent = AgentDefinition::new("d", "p");
        agent.disallowed_tools = Some(vec!["Read".to_owned(), text.to_owned()]);
        bare().agents("a", agent)
    };
    for text in [
        "Bash",
        "Bash(*)",
        "Task",
        "Write",
        "mcp__*",
        "mcp__srv",
        "mcp__srv__*",
        "mcp__srv__read",
    ] {
        assert_eq!(check(&without(text)), Ok(()), "{text}");
    }
    for text in [
        "",
        "bash",
        "*",
        "B*",
        "Edit(src/**)",
        "Write(src/**)",
        "Bash(rm *)",
        "Read,bash",
        "Bash Read",
        "mcp__",
        "mcp__srv__",
        "mcp__srv__re*",
        "mcp__*__read",
        "mcp__s*",
        "mcp__srv(x)",
        "mcp__my.srv",
    ] {
        let error = refused(without(text));
        assert!(
            matches!(error, OptionsError::Rule { option: "agents", .. }),
            "{error}"
        );
    }
    let with = |text: &str| bare().agents("a", AgentDefinition::new("d", "p").tools([text]));
    for text in ["Bash", "*", "Agent(x)", "Task(x, y)", "Bash(*)"] {
        assert_eq!(check(&with(text)), Ok(()), "{text}");
    }
    for text in ["Bash(git *)", "Read(src/**)"] {
        let error = refused(with(text));
        assert!(
            matches!(error, OptionsError::Rule { option: "agents", .. }),
            "{error}"
        );
    }
}

#[test]
fn settings_may_not_skip_permissions_unless_that_is_meant() {
    let settings = |mode: &str| {
        let json = json!({"permissions": {"defaultMode": mode}});
        bare().settings(serde_json::from_value::<Settings>(json).unwrap())
    };
    let bypass = || settings("bypassPermissions");
    requires(bypass(), ["settings", "allow_dangerously_skip_permissions"]);
    assert_eq!(check(&bypass().allow_dangerously_skip_permissions(true)), Ok(()));
    for mode in ["default", "plan", "acceptEdits", "auto"] {
        assert_eq!(check(&settings(mode)), Ok(()), "{mode}");
    }
}

#[test]
fn accounts() {
    let variable = |options: Options| match refused(options) {
        OptionsError::AuthVariable { name, .. } => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        variable(bare().env("ANTHROPIC_API_KEY", "k")),
        "ANTHROPIC_API_KEY"
    );
    assert_eq!(
        variable(bare().auth(Auth::Login).env("CLAUDE_CODE_USE_BEDROCK", "1")),
        "CLAUDE_CODE_USE_BEDROCK"
    );
    let passed = crate::env::Environment::listed().pass("ANTHROPIC_AUTH_TOKEN");
    assert_eq!(variable(bare().environment(passed)), "ANTHROPIC_AUTH_TOKEN");
    let gateway = Auth::Gateway {
        base_url: "https://g".into(),
        token: "t".into(),
    };
    assert_eq!(
        variable(bare().auth(gateway).env("ANTHROPIC_BASE_URL", "x")),
        "ANTHROPIC_BASE_URL"
    );
    assert_eq!(check(&bare().env("ANTHROPIC_BASE_URL", "https://x")), Ok(()));
    assert_eq!(
        check(&bare().auth(Auth::Inherit).env("ANTHROPIC_API_KEY", "k")),
        Ok(())
    );

    let hermetic = bare().isolation(Isolation::Hermetic);
    assert_eq!(
        refused(hermetic.clone().auth(Auth::Login)),
        OptionsError::AuthNotReachable { auth: "Login" }
    );
    assert_eq!(check(&hermetic.auth(Auth::Login).hermetic_home("/h")), Ok(()));
}

#[test]
fn deliveries() {
    let delivery = |options: Options, name: &str| match refused(options) {
        OptionsError::Delivery { option, .. } => assert_eq!(option, name),
        other => panic!("{other:?}"),
    };
    let secret = McpServerConfig::Stdio(McpStdioServerConfig::new("c", [""; 0]).env("K", "v"));
    delivery(
        bare()
            .mcp_servers("s", secret)
            .mcp_servers_delivery(Delivery::CommandLine),
        "mcp_servers",
    );
    delivery(
        bare()
            .plugins([PluginConfig::local("/p")])
            .plugin_delivery(Delivery::File),
        "plugins",
    );
    delivery(
        bare()
            .disallowed_tools(["A"])
            .disallowed_tools_delivery(Delivery::File),
        "disallowed_tools",
    );
    delivery(
        bare()
            .settings(PathBuf::from("f"))
            .settings_delivery(Delivery::Initialize),
        "settings",
    );
    delivery(
        bare()
            .managed_settings(Settings::default())
            .managed_settings_delivery(Delivery::File),
        "managed_settings",
    );
    let mut settings = Settings::default();
    settings.env = Some([("K".to_owned(), "v".to_owned())].into());
    delivery(
        bare().settings(settings).settings_delivery(Delivery::CommandLine),
        "settings",
    );
    let long = (0..600).map(|n| format!("mcp__server__tool_number_{n}"));
    let error = refused(
        bare()
            .disallowed_tools(long)
            .disallowed_tools_delivery(Delivery::CommandLine),
    );
    assert!(
        matches!(
            error,
            OptionsError::TooLong {
                option: "disallowed_tools",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn hatches_do_not_lead_around_the_checks() {
    for flag in [
        "model",
        "print",
        "--chrome",
        "dangerously-skip-permissions",
        "input-format",
        "p",
        "a b",
        "x=y",
        "",
    ] {
        let error = refused(bare().extra_arg(flag, Some("x")));
        assert!(matches!(error, OptionsError::ExtraArg { .. }), "{error:?}");
    }
    let twice = refused(bare().extra_arg("chrome", None).extra_arg("chrome", None));
    assert!(matches!(twice, OptionsError::ExtraArg { .. }), "{twice:?}");
    let null = || RawJson::null();
    for (name, options) in [
        ("hooks", bare().initialize_field("hooks", null())),
        ("subtype", bare().initialize_field("subtype", null())),
        ("", bare().initialize_field("", null())),
        ("title", bare().title("t").initialize_field("title", null())),
    ] {
        match refused(options) {
            OptionsError::InitializeField { name: found, .. } => assert_eq!(found, name),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn values_in_errors_are_short() {
    let text = refused(bare().session_id("x".repeat(10_000))).to_string();
    assert!(text.len() < 300, "{}", text.len());
}

#[test]
fn debug_hides_what_may_be_secret() {
    let mut settings = Settings::default();
    settings.env = Some([("K".to_owned(), "hunter2".to_owned())].into());
    let server = McpServerConfig::Stdio(McpStdioServerConfig::new("c", [""; 0]).env("K", "hunter2"));
    let options = Options::new(Auth::ApiKey("hunter2".into()))
        .settings(settings.clone())
        .managed_settings(settings)
        .mcp_servers("s", server)
        .env("K", "hunter2")
        .extra_arg("thing", Some("hunter2"))
        .initialize_field("thing", RawJson::encode("hunter2").unwrap())
        .model("opus");
    let text = format!("{options:?}");
    assert!(
        !text.contains("hunter2") && text.contains("opus") && !text.contains("resume"),
        "{text}"
    );
    let stage = TestHome::new();
    let launched = stage.launch(&options);
    let text = format!(
        "{launched:?} {:?}",
        stage.launch(&options.extra_arg("thing", Some("hunter2")))
    );
    assert!(launched.is_ok() && !text.contains("hunter2"), "{text}");
}

#[test]
fn calls_that_nobody_is_asked_about() {
    let unasked = |options: Options| {
        options
            .never_asked()
            .into_iter()
            .map(|n| format!("{} {}", n.calls, n.option))
            .collect::<Vec<_>>()
    };
    let rules = ["Read", "Bash(git log:*)", "Edit(*)"];
    assert_eq!(
        unasked(bare().allowed_tools(rules).skills(Skills::All)),
        ["Read allowed_tools", "Edit allowed_tools", "Skill skills"]
    );
    assert_eq!(
        unasked(bare().permission_mode(PermissionMode::DontAsk)),
        ["* permission_mode"]
    );
    assert_eq!(
        unasked(bare().permission_prompts(PermissionPrompts::None)),
        ["* permission_prompts"]
    );
    assert_eq!(unasked(bare()), [""; 0]);
}
