//! What the model is told before the conversation: `system_prompt.py`.

use outrigger::options::SystemPrompt;

use crate::support::{Result, Stage};

pub(crate) async fn run(stage: &Stage) -> Result {
    for (what, prompt) in [
        // Nothing set is the prompt of Claude Code here; in the Python SDK it is an empty one, as in the line below.
        ("unset", None),
        ("empty", Some(SystemPrompt::Text(String::new()))),
        (
            "text",
            Some(SystemPrompt::Text("You are a pirate. Speak like one.".to_owned())),
        ),
        (
            "preset and more",
            Some(SystemPrompt::preset_and("End each answer with a fun fact.")),
        ),
    ] {
        let mut agent = stage.agent();
        if let Some(prompt) = prompt {
            agent = agent.system_prompt(prompt);
        }
        let answer = agent
            .query_text(stage.prompt("What is 2 + 2?", "%say 4."))
            .await?;
        println!("{what}: {answer}");
    }
    Ok(())
}
