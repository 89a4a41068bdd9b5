//! One question, options, and a tool: `quick_start.py`.

use serde_json::json;

use crate::support::{Result, Stage};

pub(crate) async fn run(stage: &Stage) -> Result {
    let answer = stage
        .agent()
        .query_text(stage.prompt("What is 2 + 2?", "%say 4."))
        .await?;
    println!("Claude: {answer}");

    let answer = stage
        .agent()
        .system_prompt("You explain things in simple words.")
        .max_turns(1_u64)
        .query_text(stage.prompt(
            "What is Rust, in one sentence?",
            "%say A language that looks after memory.",
        ))
        .await?;
    println!("Claude: {answer}");

    let file = stage.project().join("hello.txt");
    let script = format!(
        "%tool Write {}\n%say It is written.",
        json!({"file_path": file, "content": "Hello, World!"})
    );
    let answer = stage
        .agent()
        .allowed_tools(["Read", "Write"])
        .query_text(stage.prompt("Write 'Hello, World!' to hello.txt.", &script))
        .await?;
    println!("Claude: {answer}\nCost: ${:.4}", answer.cost());
    Ok(())
}
