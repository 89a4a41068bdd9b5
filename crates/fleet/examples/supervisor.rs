//! A helper that lives on: each line of stdin is a prompt of one conversation, which outlives the CLI and this program.
//!
//! `cargo run -p outrigger-fleet --example supervisor -- DIRECTORY [TOKENS]`
//!
//! The directory keeps the id of the conversation. When the CLI dies in a turn, another goes on with the turn. When the conversation is
//! larger than that many tokens, 150,000 by default, it is compacted.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example talks to a terminal"
)]

use std::error::Error;

use outrigger::{Agent, Detached, Local, Policy};
use outrigger_fleet::supervise::{AfterLoss, IdFiles, Rotation, SuperviseError, Supervised, Supervision};
use tokio::io::{AsyncBufReadExt as _, BufReader};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("the first argument is a directory")?;
    let tokens = arguments.next().map_or(Ok(150_000), |tokens| tokens.parse())?;

    let agent = Agent::builder()
        .permissions(Policy::allow_list(["Bash", "Read", "Edit", "Write"]))
        .transport(Local::new().detached(Detached::End));
    let supervision = Supervision::new()
        .after_loss(AfterLoss::go_on())
        .rotate(Rotation::compact().above_tokens(tokens));
    let helper = Supervised::new("helper", agent, supervision, IdFiles::new(directory));

    let mut changes = helper.changes();
    tokio::spawn(async move {
        while changes.changed().await.is_ok() {
            let health = changes.borrow_and_update().clone();
            eprintln!(
                "{:?}, process {:?}, {} turns, {}, {} deaths, {} rotations",
                health.state, health.pid, health.turns, health.spent.usd, health.deaths, health.rotations
            );
        }
    });
    let mut prompts = BufReader::new(tokio::io::stdin()).lines();
    while let Some(prompt) = prompts.next_line().await? {
        match helper.turn(prompt).await {
            Ok(outcome) => match outcome.answer() {
                Ok(answer) => println!("{answer}"),
                Err(error) => println!("no answer: {error}"),
            },
            Err(error @ SuperviseError::GaveUp { .. }) => return Err(error.into()),
            Err(error) => println!("no answer: {error}"),
        }
    }
    helper.close().await?;
    Ok(())
}
