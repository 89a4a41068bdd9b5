//! Which built-in tools there are at all: `tools_option.py`.

use outrigger::options::Tools;

use crate::support::{Result, Stage};

pub(crate) async fn run(stage: &Stage) -> Result {
    for (what, tools) in [
        ("some", Tools::only(["Read", "Glob", "Grep"])),
        ("none", Tools::NONE),
        ("preset", Tools::Preset),
    ] {
        let session = stage.agent().tools(tools).max_turns(1_u64).start().await?;
        let mut turn = session
            .prompt(stage.prompt("Which tools do you have?", "%say See the list."))
            .await?;
        turn.answer().await?;
        let tools = session.init().map(|init| init.tools).unwrap_or_default();
        match tools.len() {
            0..=5 => println!("{what}: {}", tools.join(", ")),
            many => println!("{what}: more than five: {}", many > 5),
        }
        session.close().await?;
    }
    Ok(())
}
