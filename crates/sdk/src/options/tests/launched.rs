//! What a launch makes on disk and in the environment.

use outrigger_protocol::outbound::InitializeReply;
use outrigger_protocol::settings::Settings;
use outrigger_protocol::shared::{AgentDefinition, McpServerConfig, McpStdioServerConfig, SettingSource};

use super::super::*;
use super::{TestHome, args, bare, mode, var};
use crate::discover::FindError;
use crate::env::Environment;

fn secret_server() -> McpServerConfig {
    McpServerConfig::Stdio(McpStdioServerConfig::new("c", [""; 0]).env("K", "a long secret"))
}

#[test]
fn nothing_of_the_parent_but_the_list() {
    let mut stage = TestHome::new();
    for name in [
        "CLAUDECODE",
        "CLAUDE_CODE_SESSION_ID",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "NODE_OPTIONS",
        "AWS_REGION",
    ] {
        stage.surroundings.env.insert(name.into(), "parent".into());
    }
    for environment in [Environment::listed(), Environment::inherit_all()] {
        let launch = stage.launch(&bare().environment(environment)).unwrap();
        for name in [
            "CLAUDECODE",
            "CLAUDE_CODE_SESSION_ID",
            "ANTHROPIC_AUTH_TOKEN",
            "NODE_OPTIONS",
            "OUTRIGGER_CLAUDE2",
        ] {
            assert_eq!(var(&launch, name), None, "{name}");
        }
        assert_eq!(var(&launch, "ANTHROPIC_API_KEY"), Some("sk-test-key"));
    }
    let bedrock = stage.launch(&bare().auth(Auth::Bedrock)).unwrap();
    assert_eq!(var(&bedrock, "CLAUDE_CODE_USE_BEDROCK"), Some("1"));
    assert_eq!(var(&bedrock, "AWS_REGION"), Some("parent"));
    assert_eq!(var(&bedrock, "ANTHROPIC_API_KEY"), None);
    // What is set by hand outranks what the SDK sets.
    let own = stage
        .launch(
            &bare()
                .env("CLAUDE_CODE_ENTRYPOINT", "mine")
                .env("HOME", "/elsewhere"),
        )
        .unwrap();
    assert_eq!(var(&own, "CLAUDE_CODE_ENTRYPOINT"), Some("mine"));
    assert_eq!(var(&own, "HOME"), Some("/elsewhere"));
}

#[test]
fn only_a_checkout_that_may_configure_the_session_brings_schedules() {
    const NO_SCHEDULES: &str = "CLAUDE_CODE_DISABLE_CRON";
    let mut stage = TestHome::new();
    let plain = || bare().isolation(Isolation::Plain);
    for (options, is_off) in [
        (plain(), true),
        (bare().isolation(Isolation::Hermetic), true),
        (bare().isolation(Isolation::Project), false),
        (bare().isolation(Isolation::Interactive), false),
        (bare().isolation(Isolation::Project).setting_sources([]), true),
        (plain().setting_sources([SettingSource::User]), true),
        (plain().setting_sources([SettingSource::Local]), false),
    ] {
        let launch = stage.launch(&options).unwrap();
        assert_eq!(var(&launch, NO_SCHEDULES), is_off.then_some("1"), "{options:?}");
    }
    let own = stage.launch(&plain().env(NO_SCHEDULES, "0")).unwrap();
    assert_eq!(var(&own, NO_SCHEDULES), Some("0"));
    stage.surroundings.env.insert(NO_SCHEDULES.into(), "0".into());
    assert_eq!(var(&stage.launch(&plain()).unwrap(), NO_SCHEDULES), Some("1"));
    let unset = Environment::listed().unset(NO_SCHEDULES);
    let launch = stage.launch(&plain().environment(unset)).unwrap();
    assert_eq!(var(&launch, NO_SCHEDULES), None);
}

#[test]
fn what_is_unset_does_not_pass_for_the_account_either() {
    let mut stage = TestHome::new();
    for name in [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_MODEL",
        "AWS_REGION",
        "AWS_PROFILE",
    ] {
        stage.surroundings.env.insert(name.into(), "parent".into());
    }
    let without = |auth: Auth, unset: &[&str]| {
        let unset = unset
            .iter()
            .fold(Environment::listed(), |all, name| all.unset(name));
        stage.launch(&bare().auth(auth).environment(unset))
    };
    for auth in [Auth::Inherit, Auth::Unchecked] {
        let launch = without(auth, &["ANTHROPIC_API_KEY"]).unwrap();
        assert_eq!(var(&launch, "ANTHROPIC_API_KEY"), None);
        assert_eq!(var(&launch, "ANTHROPIC_MODEL"), Some("parent"));
    }
    let launch = without(Auth::Bedrock, &["AWS_PROFILE"]).unwrap();
    assert_eq!(var(&launch, "AWS_PROFILE"), None);
    assert_eq!(var(&launch, "AWS_REGION"), Some("parent"));
    // What the choice sets itself, it has to.
    for (auth, name) in [
        (Auth::ApiKey("sk-test-key".into()), "ANTHROPIC_API_KEY"),
        (Auth::Bedrock, "CLAUDE_CODE_USE_BEDROCK"),
    ] {
        let error = without(auth, &[name]).unwrap_err();
        assert!(
            matches!(&error, OptionsError::Invalid { value, .. } if value == name),
            "{error}"
        );
    }
    assert!(without(Auth::Login, &["ANTHROPIC_API_KEY"]).is_ok());
}

#[test]
fn never_without_a_home() {
    let mut stage = TestHome::new();
    assert_eq!(
        var(
            &stage
                .launch(&bare().environment(Environment::listed().unset("HOME")))
                .unwrap(),
            "HOME"
        ),
        stage.path("home").to_str()
    );
    stage.surroundings.env.remove(std::ffi::OsStr::new("HOME"));
    assert_eq!(stage.launch(&bare()).unwrap_err(), OptionsError::NoHome);
    assert!(
        var(
            &stage.launch(&bare().isolation(Isolation::Hermetic)).unwrap(),
            "HOME"
        )
        .is_some()
    );
    assert_eq!(
        var(&stage.launch(&bare().env("HOME", "/h")).unwrap(), "HOME"),
        Some("/h")
    );
}

#[test]
fn hermetic_home_is_private_and_goes() {
    let mut stage = TestHome::new();
    stage
        .surroundings
        .env
        .insert("CLAUDE_CONFIG_DIR".into(), "/the/users".into());
    stage
        .surroundings
        .env
        .insert("XDG_CONFIG_HOME".into(), "/the/users".into());
    let launch = stage.launch(&bare().isolation(Isolation::Hermetic)).unwrap();
    assert_eq!(args(&launch)[3..], ["--setting-sources=", "--strict-mcp-config"]);
    let root = launch.guard.home().unwrap().to_owned();
    assert_eq!(var(&launch, "HOME"), root.join("home").to_str());
    assert_eq!(
        var(&launch, "CLAUDE_CONFIG_DIR"),
        root.join("home/.claude").to_str()
    );
    assert_eq!(var(&launch, "CLAUDE_CODE_TMPDIR"), root.join("tmp").to_str());
    assert!(launch.env.values().all(|value| value != "/the/users"));
    for below in ["", "home", "home/.claude", "tmp"] {
        assert!(root.join(below).is_dir());
        if cfg!(unix) {
            assert_eq!(mode(&root.join(below)), 0o700, "{below}");
        }
    }
    drop(launch);
    assert!(!root.exists());

    let kept = bare()
        .isolation(Isolation::Hermetic)
        .hermetic_home(stage.path("kept"));
    let launch = stage.launch(&kept).unwrap();
    assert_eq!(launch.guard.home(), None);
    drop(launch);
    assert!(stage.path("kept/home/.claude").is_dir());
}

#[test]
fn files_are_private_and_go() {
    let stage = TestHome::new();
    let mut settings = Settings::default();
    settings.env = Some([("K".to_owned(), "a long secret".to_owned())].into());
    let options = bare()
        .settings(settings)
        .settings_delivery(Delivery::File)
        .mcp_servers("s", secret_server())
        .mcp_servers_delivery(Delivery::File);
    let launch = stage.launch(&options).unwrap();
    assert!(!launch.await_initialize && launch.initialize.mcp_servers.is_none());
    let files: Vec<_> = launch.guard.files().map(ToOwned::to_owned).collect();
    assert_eq!(
        args(&launch)[3..],
        [
            format!("--settings={}", files[0].display()),
            format!("--mcp-config={}", files[1].display())
        ]
    );
    let content = std::fs::read_to_string(&files[1]).unwrap();
    assert_eq!(
        content,
        r#"{"mcpServers":{"s":{"type":"stdio","command":"c","args":[],"env":{"K":"a long secret"}}}}"#
    );
    for file in &files {
        if cfg!(unix) {
            assert_eq!(mode(file), 0o600);
        }
    }
    launch.guard.close().unwrap();
    assert!(files.iter().all(|file| !file.exists()));
}

#[test]
fn a_missing_directory_is_not_a_missing_program() {
    let mut stage = TestHome::new();
    std::fs::write(stage.path("work/file"), "").unwrap();
    for (cwd, expected) in [("gone", "does not exist"), ("file", "not a directory")] {
        match stage.launch(&bare().cwd(cwd)).unwrap_err() {
            OptionsError::Cwd { path, problem } => {
                assert_eq!(path, stage.path("work").join(cwd));
                assert!(problem.contains(expected), "{problem}");
            }
            other => panic!("{other:?}"),
        }
    }
    let error = stage.launch(&bare().cli_path("/no/such/claude")).unwrap_err();
    assert!(
        matches!(&error, OptionsError::Cli(FindError::Unusable { .. })),
        "{error}"
    );
    assert!(
        std::error::Error::source(&error)
            .unwrap()
            .to_string()
            .contains("no such file")
    );
    stage.surroundings.cwd = None;
    assert!(matches!(stage.launch(&bare()), Err(OptionsError::Cwd { .. })));
    assert!(stage.launch(&bare().cwd(stage.path("work"))).is_ok());
}

#[test]
fn missing_files_are_told_before_the_start() {
    let stage = TestHome::new();
    for (name, options) in [
        ("settings", bare().settings(PathBuf::from("gone"))),
        ("system_prompt_file", bare().system_prompt_file("gone")),
        ("mcp_config_files", bare().mcp_config_files(["gone"])),
        ("project_config_root", bare().project_config_root("gone")),
    ] {
        match stage.launch(&options).unwrap_err() {
            OptionsError::File { option, path, .. } => {
                assert_eq!((option, path), (name, stage.path("work/gone")))
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The CLI would go by them, and report nothing.
#[test]
fn a_settings_file_is_checked_as_inline_settings_are() {
    let stage = TestHome::new();
    let file = stage.path("work/own.json");
    let launched = |text: &str, options: Options| {
        std::fs::write(&file, text).unwrap();
        stage
            .launch(&options.settings(PathBuf::from("own.json")))
            .map(drop)
    };
    let hooked = || {
        bare().hook(crate::hooks::stop(|_, _| async {
            crate::hooks::HookOutput::none()
        }))
    };
    let simple = "\u{feff}{\"env\": {\"CLAUDE_CODE_SIMPLE\": true}}";
    assert_eq!(launched(simple, bare()), Ok(()));
    assert!(matches!(
        launched(simple, hooked()),
        Err(OptionsError::Conflict {
            options: ["hook", "settings"],
            ..
        })
    ));
    assert_eq!(launched("{\"model\": \"m\"}", hooked()), Ok(()));
    let bypass = r#"{"permissions": {"defaultMode": "bypassPermissions"}}"#;
    assert!(matches!(
        launched(bypass, bare()),
        Err(OptionsError::Requires {
            option: "settings",
            ..
        })
    ));
    assert_eq!(
        launched(bypass, bare().allow_dangerously_skip_permissions(true)),
        Ok(())
    );
    // The CLI would start without any of them.
    for text in [
        r#"{"permissions": {"deny": ["Read(.env)"]}, "cleanupPeriodDays": "x"}"#,
        r#"{"permissions": {"deny": ["Read(.env)"], "allow": "x"}}"#,
        r#"{"env": 7}"#,
    ] {
        let is_refused = |result| {
            matches!(
                result,
                Err(OptionsError::Invalid {
                    option: "settings",
                    ..
                })
            )
        };
        assert!(is_refused(launched(text, bare())), "{text}");
        if let Ok(inline) = serde_json::from_str::<Settings>(text) {
            assert!(is_refused(bare().settings(inline).check()), "{text}");
        }
    }
    let rule = r#"{"permissions": {"deny": ["bash(rm *)"]}}"#;
    assert!(matches!(
        launched(rule, bare()),
        Err(OptionsError::Rule {
            option: "settings",
            ..
        })
    ));
    for text in ["{", "[]", "// text\n{}", "{\"model\": \"m\",}"] {
        let is_refused = matches!(launched(text, bare()), Err(OptionsError::File { .. }));
        assert!(is_refused, "{text}");
    }
    assert_eq!(launched(" \n", bare()), Ok(()));
}

#[test]
#[cfg(unix)]
fn a_pipe_in_the_place_of_a_file_is_told_before_the_start() {
    let stage = TestHome::new();
    let pipe = stage.path("work/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for options in [
        bare().settings(pipe.clone()),
        bare().system_prompt_file("pipe"),
        bare().mcp_config_files(["pipe"]),
    ] {
        match stage.launch(&options).unwrap_err() {
            OptionsError::File { path, error, .. } => {
                assert_eq!(path, pipe);
                assert!(error.contains("no regular file"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
#[cfg(unix)]
fn a_script_is_run_by_its_runtime() {
    let mut stage = TestHome::new();
    let script = stage.path("cli.js");
    std::fs::write(&script, "console.log(1)").unwrap();
    let options = bare()
        .cli_path(&script)
        .executable(Runtime::Bun)
        .executable_args(["--smol"]);
    stage
        .surroundings
        .env
        .insert("PATH".into(), stage.path("bin").into());
    assert!(matches!(
        stage.launch(&options),
        Err(OptionsError::Runtime { .. })
    ));

    std::fs::create_dir(stage.path("bin")).unwrap();
    outrigger_needs::script(stage.path("bin/bun"), "#!/bin/sh\n").unwrap();
    let launch = stage.launch(&options).unwrap();
    assert_eq!(launch.program, stage.path("bin/bun"));
    assert_eq!(
        args(&launch)[..3],
        ["--smol", script.to_str().unwrap(), "--output-format=stream-json"]
    );

    // A native program takes the arguments before its own.
    let launch = stage.launch(&bare().executable_args(["--first"])).unwrap();
    assert_eq!(args(&launch)[..2], ["--first", "--output-format=stream-json"]);
    assert_eq!(launch.program, std::env::current_exe().unwrap());
}

#[test]
fn what_the_session_has_to_know() {
    let stage = TestHome::new();
    let user = RunAs { uid: 7, gid: 8 };
    let launch = stage
        .launch(&bare().verbatim_prompts(true).max_line_bytes(9usize).user(user))
        .unwrap();
    assert_eq!(
        (launch.verbatim_prompts, launch.max_line_bytes, launch.run_as),
        (true, Some(9), Some(user))
    );
    assert_eq!(launch.auth, Auth::ApiKey("sk-test-key".into()));
    assert_eq!(launch.cwd, stage.path("work"));
    let command = launch.command();
    assert_eq!(command.get_program(), launch.program);
    assert_eq!(command.get_args().count(), launch.args.len());
    assert_eq!(command.get_current_dir(), Some(launch.cwd.as_path()));
    assert_eq!(command.get_envs().count(), launch.env.len());
}

#[test]
fn replies_have_to_confirm() {
    let stage = TestHome::new();
    let reply = |text: &str| serde_json::from_str::<InitializeReply>(text).unwrap();
    let launch = stage.launch(&bare().mcp_servers("s", secret_server())).unwrap();
    assert_eq!(launch.confirmations, [Confirmation::McpServers]);
    assert_eq!(launch.confirm(&reply(r#"{"mcp_servers_applied":true}"#)), Ok(()));
    let ignored = launch.confirm(&reply("{}")).unwrap_err();
    assert!(ignored.ignored && ignored.to_string().contains("mcp_servers_applied"));
    assert!(
        !launch
            .confirm(&reply(r#"{"mcp_servers_applied":false}"#))
            .unwrap_err()
            .ignored
    );
    assert_eq!(stage.launch(&bare()).unwrap().confirm(&reply("{}")), Ok(()));

    // This one is not held back for, and is confirmed by a list.
    let tools = vec!["run".to_owned(), "run".to_owned()];
    let launch = stage.launch(&bare().code_running_mcp_tools("s", tools)).unwrap();
    assert!(!launch.await_initialize);
    assert_eq!(
        launch.confirm(&reply(r#"{"code_running_mcp_tools_applied":{"s":["run"]}}"#)),
        Ok(())
    );
    assert!(
        launch
            .confirm(&reply(r#"{"code_running_mcp_tools_applied":{}}"#))
            .is_err()
    );
}

#[test]
fn secrets_are_known_and_never_shown() {
    let stage = TestHome::new();
    let options = bare()
        .mcp_servers("s", secret_server())
        .env("MY_TOKEN", "another secret")
        .env("PLAIN", "not hidden");
    let launch = stage.launch(&options).unwrap();
    let mut secrets: Vec<&str> = launch.secrets.iter().map(Secret::reveal).collect();
    secrets.sort_unstable();
    assert_eq!(secrets, ["a long secret", "another secret", "sk-test-key"]);
    let text = format!("{launch:?} {:?}", launch.shown());
    for secret in secrets {
        assert!(!text.contains(secret), "{text}");
    }
    for argument in &launch.args {
        assert!(!argument.to_str().unwrap().contains("secret"));
    }
}

#[test]
fn secrets_are_found_wherever_options_have_them() {
    let stage = TestHome::new();
    let settings = |name: &str, value: &str| {
        let mut settings = Settings::default();
        settings.env = Some([(name.to_owned(), value.to_owned())].into());
        settings
    };
    let agent: AgentDefinition = serde_json::from_value(serde_json::json!({
        "description": "d", "prompt": "p",
        "mcpServers": [{"s": {"type": "http", "url": "https://a.example", "headers": {"X-A": "of an agent"}}}],
    }))
    .unwrap();
    let options = bare()
        .settings(settings("SERVICE_PW", "of settings"))
        .managed_settings(settings(
            "ANTHROPIC_CUSTOM_HEADERS",
            "X-B: of managed settings\nX-C: 1",
        ))
        .agents("a", agent)
        .env("ANTHROPIC_CUSTOM_HEADERS", "X-D: of the environment");
    let launch = stage.launch(&options).unwrap();
    let mut secrets: Vec<&str> = launch.secrets.iter().map(Secret::reveal).collect();
    secrets.sort_unstable();
    assert_eq!(
        secrets,
        [
            "of an agent",
            "of managed settings",
            "of settings",
            "of the environment",
            "sk-test-key"
        ]
    );
}

#[test]
fn arguments_without_an_option_are_only_counted() {
    let stage = TestHome::new();
    let options = bare()
        .executable_args([
            "--api-key",
            "plain-value-123",
            "-pplain-value-123",
            "--key=plain-value-123",
        ])
        .model("sonnet");
    let launch = stage.launch(&options).unwrap();
    let shown = launch.shown();
    assert!(!shown.concat().contains("plain-value-123"), "{shown:?}");
    assert_eq!(
        shown[1..5],
        ["(9 bytes)", "(15 bytes)", "(17 bytes)", "--key=(15 bytes)"]
    );
    for plain in ["--verbose", "--model=sonnet"] {
        assert!(shown.iter().any(|argument| argument == plain), "{shown:?}");
    }
}

/// Options are moved by every setter, often inside futures.
#[test]
fn options_stay_small() {
    assert!(
        std::mem::size_of::<Options>() < 2400,
        "{}",
        std::mem::size_of::<Options>()
    );
}
