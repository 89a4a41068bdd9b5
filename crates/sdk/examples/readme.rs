//! The README's first program, as it stands there. Unlike the other examples it is for the installed `claude` and the account that it
//! finds: with a key in `ANTHROPIC_API_KEY`, or a login, `cargo run -p outrigger --example readme` asks the real model.

#![allow(clippy::print_stdout, reason = "it is a program for a terminal")]

use outrigger::{Agent, BlockKind, Event, Policy};

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
        match event? {
            Event::Text(text) => print!("{text}"),
            Event::ContentBlockStop {
                kind: BlockKind::Text,
                ..
            } => println!(),
            _ => {}
        }
    }
    println!("${:.4}", turn.answer().await?.cost());
    session.close().await?;
    Ok(())
}
