//! Text as it is written: `include_partial_messages.py`.

use std::io::{self, Write as _};

use outrigger::Event;

use crate::support::{Result, Stage};

pub(crate) async fn run(stage: &Stage) -> Result {
    let session = stage
        .agent()
        .include_partial_messages(true)
        .model("sonnet")
        .max_turns(2_u64)
        .max_thinking_tokens(8000_u64)
        .start()
        .await?;
    let script =
        "%think Three jokes. The second is best.\n%+say Why did the crab never share? It was shellfish.";
    let mut turn = session
        .prompt(stage.prompt("Think of three jokes and tell one.", script))
        .await?;
    let mut pieces = 0;
    while let Some(event) = turn.next().await {
        match event? {
            Event::Thinking(text) => print!("[{text}]"),
            Event::Text(text) => {
                pieces += 1;
                print!("{text}");
                io::stdout().flush()?;
            }
            _ => {}
        }
    }
    println!("\nin pieces: {}", pieces > 1);
    turn.answer().await?;
    session.close().await?;
    Ok(())
}
