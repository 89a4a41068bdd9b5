//! Answers what the model asks: choices by number, or own words.
//!
//! The model gets the tool to ask with only because there is somebody who answers.
//! `cargo run --example question`, and with `-- --real` against the installed `claude`.

#![expect(
    clippy::print_stdout,
    reason = "an example talks to the person at the terminal"
)]

mod support;

use outrigger::permissions::{Answers, QuestionRequest};

/// What the scripted model does.
const SCRIPT: &str = r#"%tool AskUserQuestion {"questions": [{"question": "Which roof?", "header": "Roof", "multiSelect": false, "options": [{"label": "Tiles", "description": "heavy"}, {"label": "Thatch", "description": "light"}]}]}
%say {{last}}"#;

/// An error here, such as a choice that there is not, is told to the model as no answer at all.
async fn answer(asked: QuestionRequest) -> support::Result<Answers> {
    let mut answers = asked.answers();
    for (number, question) in asked.questions.iter().enumerate() {
        println!("{}", question.question);
        for (choice, option) in question.options.iter().enumerate() {
            println!("  {}. {} ({})", choice + 1, option.label, option.description);
        }
        let line = support::ask("A number, or your own words:").await?;
        answers = match line.parse::<usize>() {
            Ok(choice) => answers.choose(number, choice.checked_sub(1))?,
            Err(_) => answers.write(number, line)?,
        };
    }
    Ok(answers)
}

#[tokio::main]
async fn main() -> support::Result {
    let stage = support::Stage::open().await?;
    let session = stage.agent().questions(answer).start().await?;
    let prompt = stage.prompt("Ask me which roof I want.", SCRIPT);
    support::show(&session, prompt).await?;
    session.close().await?;
    Ok(())
}
