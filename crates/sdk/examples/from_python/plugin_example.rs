//! A plugin in a directory: `plugin_example.py`.

use std::fs;

use outrigger::Prompt;
use outrigger::options::PluginConfig;

use crate::support::{Result, Stage};

pub(crate) async fn run(stage: &Stage) -> Result {
    let plugin = stage.project().join("demo-plugin");
    for (file, content) in [
        (
            ".claude-plugin/plugin.json",
            r#"{"name": "demo-plugin", "version": "1.0.0", "description": "Greets"}"#,
        ),
        (
            "commands/greet.md",
            "---\ndescription: Greet somebody\n---\nGreet $ARGUMENTS.\n%say Ahoy, $ARGUMENTS!\n",
        ),
    ] {
        let path = plugin.join(file);
        fs::create_dir_all(path.parent().unwrap_or(&plugin))?;
        fs::write(path, content)?;
    }
    let session = stage
        .agent()
        .plugins([PluginConfig::local(plugin.display().to_string())])
        .start()
        .await?;
    // A command of the plugin is a slash command. `prompt` takes text as it is; `Prompt::command` runs the command.
    let mut turn = session
        .prompt(Prompt::command("demo-plugin:greet", "captain"))
        .await?;
    println!("Claude: {}", turn.answer().await?);
    for plugin in session.init().map(|init| init.plugins).unwrap_or_default() {
        println!("plugin: {}", plugin.name);
    }
    session.close().await?;
    Ok(())
}
