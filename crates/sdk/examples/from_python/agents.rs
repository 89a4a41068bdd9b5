//! Subagents that the program defines: `agents.py`.

use outrigger::Event;
use outrigger::options::AgentDefinition;

use crate::support::{Result, Stage};

/// What the scripted model does: it starts the reviewer, which says something, and repeats the words.
const SCRIPT: &str = r#"%tool Agent {"subagent_type": "code-reviewer", "description": "Review", "run_in_background": false, "prompt": "%say Line 3 leaks a handle."}
%say The reviewer found a leak."#;

pub(crate) async fn run(stage: &Stage) -> Result {
    let reviewer = AgentDefinition::new(
        "Reviews code for mistakes",
        "You review code: mistakes, speed, security. Say what to change.",
    )
    .tools(["Read", "Grep"])
    .model("sonnet");
    let writer = AgentDefinition::new(
        "Writes documentation",
        "You write clear documentation with examples.",
    )
    .tools(["Read", "Write", "Edit"]);
    let session = stage
        .agent()
        .agents("code-reviewer", reviewer)
        .agents("doc-writer", writer)
        .forward_subagent_text(true)
        .start()
        .await?;
    let prompt = stage.prompt("Have the code-reviewer look at src/main.rs.", SCRIPT);
    let mut turn = session.prompt(prompt).await?;
    while let Some(event) = turn.next().await {
        match event? {
            Event::ToolUse(call) => println!("starts: {}", call.name),
            Event::Subagent(inner) => {
                if let Event::Text(text) = &inner.event {
                    println!("subagent: {text}");
                }
            }
            _ => {}
        }
    }
    let answer = turn.answer().await?;
    println!("Claude: {answer}\nCost: ${:.4}", answer.cost());
    session.close().await?;
    Ok(())
}
