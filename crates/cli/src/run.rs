//! `outrigger run`: one prompt, one answer.

use std::io::Write as _;

use outrigger::Agent;

use crate::exit::{CommandResult, Status};

/// What `outrigger run` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to ask.
    prompt: String,
}

/// Asks, and prints the answer.
pub(crate) async fn run(args: Args) -> CommandResult {
    let text = Agent::builder().query_text(args.prompt).await?;
    writeln!(std::io::stdout(), "{text}")?;
    Ok(Status::Success)
}
