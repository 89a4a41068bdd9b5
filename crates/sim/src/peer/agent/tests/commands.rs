//! Slash commands.

use super::*;

#[tokio::test(start_paused = true)]
async fn what_is_unknown_is_for_the_model() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt("/nosuchcommand x").await;
    let result = hand.until("result/success").await;
    assert_eq!(
        (&result["result"], &result["num_turns"]),
        (&json!("ok"), &json!(1))
    );
}

#[tokio::test(start_paused = true)]
async fn or_left_to_the_model_on_demand() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt_with("/cost", json!({"client_composed": true})).await;
    assert_eq!(hand.until("result/success").await["result"], "ok");
    let mut hand = Hand::ready(Agent::builder().disable_slash_commands(true)).await;
    hand.prompt("/cost").await;
    assert_eq!(hand.until("result/success").await["result"], "ok");
}

#[tokio::test(start_paused = true)]
async fn clear_begins_another_session() {
    let home = tempfile::tempdir().unwrap();
    let mut hand = Hand::ready(Agent::builder().config_dir(home.path())).await;
    hand.prompt("%say one").await;
    let first = hand.until("result/success").await;
    hand.prompt_with("/clear", uuid(5)).await;
    let reset = hand.until("conversation_reset").await;
    assert_eq!(reset["session_id"], first["session_id"]);
    assert_eq!(reset["user_message_uuid"], uuid(5)["uuid"]);
    let result = hand.until("result/success").await;
    assert_ne!(result["session_id"], first["session_id"]);
    assert_eq!(dollars(&result["total_cost_usd"]), 0.0);
    hand.prompt("%say two").await;
    assert_eq!(
        dollars(&hand.until("result/success").await["total_cost_usd"]),
        0.00014
    );
    let (_, kinds) = hand.end().await;
    assert_eq!(
        kinds[3..10],
        [
            "command_lifecycle/queued",
            "command_lifecycle/started",
            "conversation_reset",
            "system/background_tasks_changed",
            "system/init",
            "result/success",
            "command_lifecycle/completed"
        ]
    );
    let files = std::fs::read_dir(home.path().join("projects/-home-user-project")).unwrap();
    assert_eq!(files.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_is_not_simulated_is_an_error_with_its_name() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt("/recap").await;
    let result = hand.until("result/error_during_execution").await;
    assert_eq!(result["is_error"], true);
    assert!(
        result["errors"][0]
            .as_str()
            .unwrap()
            .contains("/recap is not simulated")
    );
    let flaws = hand.agent.report().flaws;
    assert!(flaws[0].to_string().contains("outrigger mock-api"), "{flaws:?}");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_a_prompt_names_is_an_error_unless_the_prompt_is_taken_as_it_is() {
    let project = tempfile::tempdir().unwrap();
    std::fs::write(project.path().join("notes.md"), "x").unwrap();
    let mut hand = Hand::ready(Agent::builder().cwd(project.path())).await;
    hand.prompt("Read @nothing.md, ask ada@notes.md.").await;
    hand.until("result/success").await;
    hand.prompt_with("Read @notes.md", json!({"client_composed": true}))
        .await;
    hand.until("result/success").await;
    hand.prompt("Read @notes.md, please").await;
    let result = hand.until("result/error_during_execution").await;
    let error = result["errors"][0].as_str().unwrap();
    assert!(error.contains("`@` is not simulated"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn servers_of_configuration_files_are_errors_where_the_cli_reads_the_files() {
    let place = tempfile::tempdir().unwrap();
    let (project, config) = (place.path().join("a/b"), place.path().join("config"));
    std::fs::create_dir_all(&project).unwrap();
    std::fs::create_dir_all(&config).unwrap();
    let servers = json!({"mcpServers": {"calc": {"command": "false"}}});
    let of_project = json!({"projects": {project.to_str().unwrap(): servers}});
    let disabled = json!({"disabledMcpjsonServers": ["calc"]});
    let (shared, own) = (place.path().join("a/.mcp.json"), config.join(".claude.json"));
    for (file, content, source, settings, strict, is_named) in [
        (&shared, &servers, "project", json!({}), false, true),
        (&shared, &servers, "project", json!({}), true, false),
        (&shared, &servers, "project", disabled.clone(), false, false),
        (&shared, &servers, "user", json!({}), false, false),
        (&shared, &json!({}), "project", json!({}), false, false),
        (&own, &servers, "user", json!({}), false, true),
        (&own, &servers, "user", disabled, false, true),
        (&own, &servers, "project", json!({}), false, false),
        (&own, &of_project, "local", json!({}), false, true),
        (&own, &of_project, "user", json!({}), false, false),
    ] {
        std::fs::write(file, content.to_string()).unwrap();
        let agent = Agent::builder().cwd(&project).config_dir(&config);
        let agent = agent.setting_sources([source]).settings(&settings, None);
        let mut hand = Hand::ready(agent.strict_mcp_config(strict)).await;
        hand.prompt("hello").await;
        match is_named {
            true => {
                let result = hand.until("result/error_during_execution").await;
                let error = result["errors"][0].as_str().unwrap();
                assert!(error.starts_with("an MCP server of"), "{error}");
            }
            false => drop(hand.until("result/success").await),
        }
        std::fs::remove_file(file).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_settings_bring_and_skills_are_errors() {
    let hooks = json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "false"}]}]}});
    let off = json!({"hooks": hooks["hooks"], "disableAllHooks": true, "enabledPlugins": {"a@b": false}});
    for (settings, named) in [
        (hooks, Some("a hook in settings")),
        (json!({"enabledPlugins": {"a@b": true}}), Some("a plugin")),
        (
            json!({"sandbox": {"enabled": true}}),
            Some("commands in a sandbox"),
        ),
        (json!({"sandbox": {"enabled": false}}), None),
        (
            json!({"availableModels": ["haiku"]}),
            Some("a list of the models"),
        ),
        (
            json!({"deniedMcpServers": [{"serverName": "x"}]}),
            Some("a list of the MCP servers"),
        ),
        (json!({"deniedMcpServers": []}), None),
        (off, None),
    ] {
        let mut hand = Hand::ready(Agent::builder().settings(&settings, None)).await;
        hand.prompt("hello").await;
        match named {
            Some(name) => {
                let result = hand.until("result/error_during_execution").await;
                assert!(
                    result["errors"][0].as_str().unwrap().starts_with(name),
                    "{result}"
                );
            }
            None => drop(hand.until("result/success").await),
        }
    }

    let project = tempfile::tempdir().unwrap();
    let skill = project.path().join(".claude/skills/deploy");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: deploy\n---\nDeploy.").unwrap();
    let agent = Agent::builder().cwd(project.path()).setting_sources(["project"]);
    let mut hand = Hand::ready(agent).await;
    hand.prompt("hello").await;
    hand.until("result/success").await;
    hand.prompt("/deploy now").await;
    let result = hand.until("result/error_during_execution").await;
    assert!(
        result["errors"][0]
            .as_str()
            .unwrap()
            .starts_with("a skill is not simulated"),
        "{result}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_may_be_too_long_is_an_error() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(&format!("%say done\n{}", "x".repeat(2_000_000)))
        .await;
    let result = hand.until("result/error_during_execution").await;
    let said = result.to_string();
    assert!(
        said.contains("a prompt of more than two million characters is not simulated"),
        "{said}"
    );
    hand.end().await;
}
