//! The README's first program, as it stands there. Unlike the other examples it is for the installed `claude` and the account that it
//! finds: with a key in `ANTHROPIC_API_KEY`, or a login, `cargo run -p outrigger --example readme` asks the real model.

#![allow(clippy::print_stdout, reason = "it is a program for a terminal")]

use outrigger::{Agent, Event, Policy};

#[tokio::main]
async fn main() -> outrigger::Result<()> {
    let session = Agent::builder()
        .model("sonnet")
        .cwd(".")
        .permissions(Policy::read_only())
        .start()
        .await?;
    let mut turn = session.prompt("Why does the build fail?").await?;
    while let Some(event) = turn.next().await {
        if let Event::Text(text) = event? {
            print!("{text}");
        }
    }
    println!("\n${:.4}", turn.outcome().await?.cost());
    session.close().await?;
    Ok(())
}
