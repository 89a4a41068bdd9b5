//! Which settings files count: `setting_sources.py`.

use std::fs;

use outrigger::options::SettingSource;

use crate::support::{Result, Stage};

pub(crate) async fn run(stage: &Stage) -> Result {
    let commands = stage.project().join(".claude/commands");
    fs::create_dir_all(&commands)?;
    fs::write(
        commands.join("deploy.md"),
        "---\ndescription: Deploy\n---\nDeploy it.\n",
    )?;

    for (what, sources) in [
        // The default here, and what an empty list is in Python.
        ("none", vec![]),
        ("user", vec![SettingSource::User]),
        (
            "user and project",
            vec![SettingSource::User, SettingSource::Project],
        ),
    ] {
        let session = stage.agent().setting_sources(sources).start().await?;
        let mut turn = session.prompt(stage.prompt("What is 2 + 2?", "%say 4.")).await?;
        turn.answer().await?;
        let commands = session.init().map(|init| init.slash_commands).unwrap_or_default();
        println!(
            "{what}: /deploy {}",
            if commands.iter().any(|name| name == "deploy") {
                "is there"
            } else {
                "is not there"
            }
        );
        session.close().await?;
    }
    Ok(())
}
