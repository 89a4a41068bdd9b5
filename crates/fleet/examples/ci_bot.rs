//! A bot for CI: reviews a diff, and fails the build for what it finds.
//!
//! `git diff origin/main | cargo run -p outrigger-fleet --example ci_bot -- [DOLLARS [SECONDS]]`
//!
//! It may read and nothing else, spend a dollar, and take ten minutes, unless the arguments say otherwise. Exit status: 0 if there is
//! nothing to change, 10 if there is, 3 if the CLI does not start, 4 if the API fails, 5 if the dollars are spent, 6 if the answer has
//! not the shape of a review, 124 if the time is over, 1 for anything else.

#![expect(clippy::print_stderr, reason = "an example talks to a build log")]

use std::process::ExitCode;
use std::time::Duration;

use outrigger::{Agent, Cause, Policy};
use schemars::JsonSchema;
use serde::Deserialize;

/// The answer. Its schema, with these comments, is what the model sees.
#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The diff in one sentence.
    summary: String,
    /// What has to be changed before this is merged, as FILE:LINE: TEXT.
    findings: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse());
    let dollars = arguments.next().unwrap_or(Ok(1.0))?;
    let seconds = arguments.next().unwrap_or(Ok(600.0))?;
    let diff = std::io::read_to_string(std::io::stdin())?;

    let agent = Agent::builder()
        .permissions(Policy::read_only())
        .max_budget_usd(dollars)
        .turn_deadline(Duration::try_from_secs_f64(seconds)?);
    let prompt = format!("Review this diff.\n\n{diff}");
    let status = match agent.query_as::<Review>(prompt).await {
        Ok(answer) => {
            let Review { summary, findings } = answer.value();
            eprintln!("{summary} (${:.2})\n{}", answer.cost(), findings.join("\n"));
            if findings.is_empty() { 0 } else { 10 }
        }
        Err(error) => {
            eprintln!("no review: {error}");
            match error.cause() {
                Some(Cause::Budget) => 5,
                Some(Cause::DeadlinePassed) => 124,
                Some(Cause::StructuredOutput | Cause::NoStructuredOutput) => 6,
                Some(Cause::Api { .. } | Cause::RateLimit | Cause::ConnectionFailed) => 4,
                Some(cause) if cause.is_start() => 3,
                _ => 1,
            }
        }
    };
    Ok(ExitCode::from(status))
}
