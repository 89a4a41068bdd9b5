use outrigger_protocol::shared::McpServerConfig;
use serde_json::json;

use super::*;

fn base() -> Options {
    Options::new(Auth::ApiKey(Secret::new("k")))
}

fn prepared(claim: Claim, base: &Options) -> Prepared {
    claim.prepare(base).unwrap()
}

fn error(claim: Claim, base: &Options) -> String {
    let error = claim.prepare(base).unwrap_err();
    assert!(error.is_invalid());
    error.to_string()
}

fn settings(json: serde_json::Value) -> Settings {
    serde_json::from_value(json).unwrap()
}

#[test]
fn options_that_a_directory_decides_about_are_named() {
    let http = json!({"type": "http", "url": "https://example.com"});
    let server = |json| serde_json::from_value::<McpServerConfig>(json).unwrap();
    let free = base()
        .cwd("beside")
        .additional_directories(["/more"])
        .env("CLAUDE_CONFIG_DIR", "/config")
        .mcp_servers("web", server(http));
    assert_eq!(free.bound_to_directory(), None);
    for (options, name) in [
        (
            free.clone().additional_directories(["/more", "less"]),
            "additional_directories",
        ),
        (free.clone().system_prompt_file("prompt.md"), "system_prompt_file"),
        (free.clone().env("CLAUDE_CONFIG_DIR", "config"), "environment"),
        (
            free.clone()
                .mcp_servers("near", server(json!({"command": "/bin/server"}))),
            "mcp_servers",
        ),
        (
            free.clone().mcp_config_files(["/servers.json"]),
            "mcp_config_files",
        ),
    ] {
        assert_eq!(options.bound_to_directory(), Some(name));
    }
}

#[test]
fn secrets_of_a_claim_are_known() {
    let place = tempfile::tempdir().unwrap();
    let agent = json!({
        "description": "d", "prompt": "p", "mcpServers": [{"s": {"command": "c", "env": {"K": "of an agent"}}}],
    });
    let claim = Claim::new(place.path())
        .settings(settings(
            json!({"env": {"SERVICE_PW": "of settings", "PORT": "80"}}),
        ))
        .agent("a", serde_json::from_value(agent).unwrap())
        .session_access_token(Secret::new("a long token"));
    let mut secrets = prepared(claim, &base()).secrets;
    secrets.sort_unstable();
    assert_eq!(secrets, ["a long token", "of an agent", "of settings"]);
}

#[test]
fn everything_of_a_claim_goes_one_way_or_the_other() {
    let place = tempfile::tempdir().unwrap();
    let cwd = place.path().to_str().unwrap();
    std::fs::create_dir(place.path().join("more")).unwrap();
    let claim = Claim::new(cwd)
        .permission_mode(PermissionMode::Plan)
        .model("haiku")
        .max_thinking_tokens(100)
        .settings(settings(
            json!({"effortLevel": "high", "permissions": {"deny": ["Bash"]}}),
        ))
        .additional_directories(["more"])
        .append_system_prompt("Be brief.")
        .title("A title")
        .session_access_token("access")
        .host_session_id("host");
    let prepared = prepared(claim, &base());
    let sent = serde_json::to_value(&prepared.request).unwrap();
    assert_eq!(
        sent,
        json!({
            "cwd": cwd, "permission_mode": "plan", "additional_directories": ["more"],
            "append_system_prompt": "Be brief.", "title": "A title", "include_initialize": true,
            "env": {"CLAUDE_CODE_SESSION_ACCESS_TOKEN": "access", "CLAUDE_CODE_HOST_SESSION_ID": "host"},
        })
    );
    // What decides which servers start goes ahead; what the CLI takes from sessions only, behind.
    assert_eq!(prepared.early.unwrap().get(), r#"{"effortLevel":"high"}"#);
    assert_eq!(
        prepared.late.unwrap().get(),
        r#"{"permissions":{"deny":["Bash"]}}"#
    );
    assert_eq!(prepared.model.as_deref(), Some("haiku"));
    assert_eq!(prepared.max_thinking_tokens, Some(100));

    // And all of it is in what is started without a spare.
    let cold = prepared.cold.options;
    assert_eq!(cold.permission_mode, Some(PermissionMode::Plan));
    assert_eq!(
        (cold.model.as_deref(), cold.max_thinking_tokens),
        (Some("haiku"), Some(100))
    );
    assert_eq!(cold.title.as_deref(), Some("A title"));
    assert_eq!(cold.system_prompt, Some(SystemPrompt::preset_and("Be brief.")));
    assert_eq!(cold.additional_directories, [PathBuf::from("more")]);
    let Some(SettingsInput::Inline(merged)) = &cold.settings else {
        panic!("no settings");
    };
    let merged = merged.json().unwrap().to_value().unwrap();
    assert_eq!(
        merged,
        json!({"effortLevel": "high", "permissions": {"deny": ["Bash"]}})
    );
    let set = cold.environment.own();
    assert_eq!(set[std::ffi::OsStr::new(HOST_SESSION_ID)], "host");
    assert_eq!(set[std::ffi::OsStr::new(SESSION_ACCESS_TOKEN)], "access");
}

#[test]
fn settings_are_merged_by_key_and_a_file_stays_a_file() {
    let place = tempfile::tempdir().unwrap();
    let claim = || Claim::new(place.path()).settings(settings(json!({"effortLevel": "low"})));
    let inline = base().settings(settings(json!({"effortLevel": "high", "cleanupPeriodDays": 5})));
    let cold = prepared(claim(), &inline).cold;
    assert!(cold.overlay.is_none());
    let Some(SettingsInput::Inline(merged)) = cold.options.settings else {
        panic!("no settings");
    };
    let merged = merged.json().unwrap().to_value().unwrap();
    assert_eq!(merged, json!({"effortLevel": "low", "cleanupPeriodDays": 5}));

    let cold = prepared(claim(), &base().settings(SettingsInput::File("/s.json".into()))).cold;
    assert_eq!(cold.overlay.unwrap().get(), r#"{"effortLevel":"low"}"#);
    assert!(matches!(cold.options.settings, Some(SettingsInput::File(_))));
}

#[test]
fn paths_of_the_settings_begin_in_the_directory_of_the_claim() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path().canonicalize().unwrap();
    let rules =
        json!({"permissions": {"deny": ["Read(/a)"]}, "sandbox": {"filesystem": {"denyRead": ["b"]}}});
    let claim = Claim::new(place.path()).settings(settings(rules));
    let claim = prepared(claim, &base().settings(SettingsInput::File("/s.json".into())));
    let rules = json!({"permissions": {"deny": [format!("Read(/{}/a)", here.display())]}});
    let sandbox = json!({"sandbox": {"filesystem": {"denyRead": [here.join("b")]}}});
    let value = |settings: &JsonObject| settings.as_raw().to_value().unwrap();
    assert_eq!(value(&claim.late.unwrap()), rules);
    assert_eq!(value(&claim.early.unwrap()), sandbox);
    let mut all = rules;
    all["sandbox"] = sandbox["sandbox"].clone();
    assert_eq!(value(&claim.cold.overlay.unwrap()), all);
}

#[test]
fn what_a_claim_cannot_carry_is_refused_before_anything_is_sent() {
    let place = tempfile::tempdir().unwrap();
    let here = || Claim::new(place.path());
    let hooks = here().settings(settings(json!({"disableAllHooks": true})));
    assert!(error(hooks, &base()).contains("decides about hooks"));
    let file = base().settings(SettingsInput::File("/s.json".into()));
    for base in [base(), file] {
        let rules = here().settings(settings(json!({"permissions": {"deny": ["bash(rm *)"]}})));
        let said = error(rules, &base);
        assert!(
            said.contains("`settings`") && said.contains("write `Bash`"),
            "{said}"
        );
    }
    let appended = base().system_prompt(SystemPrompt::preset_and("A."));
    let said = error(here().append_system_prompt("B."), &appended);
    assert!(
        said.contains("`append_system_prompt` and `system_prompt`"),
        "{said}"
    );
    assert!(error(here().oauth_token("t"), &base()).contains("which account pays"));
    assert!(error(here().additional_directories(["nowhere"]), &base()).contains("nowhere"));
    assert!(error(Claim::new(place.path().join("nowhere")), &base()).contains("does not exist"));
    let bypass = here().permission_mode(PermissionMode::BypassPermissions);
    assert!(error(bypass, &base()).contains("allow_dangerously_skip_permissions"));
    assert!(error(here().agent("a", AgentDefinition::default()), &base()).contains("agents"));
    let fresh = here().oauth_token("fresh-token");
    let same = prepared(fresh, &Options::new(Auth::OAuthToken(Secret::new("old-token"))));
    assert_eq!(
        same.cold.options.auth,
        Auth::OAuthToken(Secret::new("fresh-token"))
    );
    assert_eq!(same.request.env.unwrap()[OAUTH_TOKEN], "fresh-token");
}

#[test]
fn the_cli_names_its_reasons() {
    let refused = ClaimProblem::refused("cwd_not_found: the claim cwd does not exist", None);
    assert_eq!(
        refused,
        ClaimProblem::Refused {
            code: "cwd_not_found".into(),
            message: "the claim cwd does not exist".into()
        }
    );
    let unnamed = ClaimProblem::refused("Something else: really", None);
    assert_eq!(
        unnamed.to_string(),
        "the CLI refused the claim: Something else: really"
    );
}
