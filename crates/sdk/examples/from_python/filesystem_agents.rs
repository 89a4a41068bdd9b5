//! Agents that are files of the project: `filesystem_agents.py`.

use std::fs;

use outrigger::options::SettingSource;

use crate::support::{Result, Stage};

const AGENT: &str =
    "---\nname: test-agent\ndescription: Runs the tests\n---\nYou run the tests and report what failed.\n";

pub(crate) async fn run(stage: &Stage) -> Result {
    // The Python example finds this file in its own checkout.
    let directory = stage.project().join(".claude/agents");
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("test-agent.md"), AGENT)?;

    // Without setting sources no file of the project is read: a checkout that nobody trusts can change nothing.
    let session = stage
        .agent()
        .setting_sources([SettingSource::Project])
        .start()
        .await?;
    let mut turn = session
        .prompt(stage.prompt("Say hello in three words.", "%say Hello to you."))
        .await?;
    println!("Claude: {}", turn.answer().await?);
    let agents = session.init().and_then(|init| init.agents).unwrap_or_default();
    println!(
        "test-agent found: {}",
        agents.iter().any(|agent| agent == "test-agent")
    );
    session.close().await?;
    Ok(())
}
