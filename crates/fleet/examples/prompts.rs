//! A batch: many prompts, four at once, each with one result, also when this program is killed and run again.
//!
//! `cargo run -p outrigger-fleet --example prompts -- PROMPTS RESULTS [DOLLARS]`
//!
//! Both files have an object a line: `{"id": "…", "prompt": "…"}`, and `{"id": "…", "text": "…"}` or `{"id": "…", "error": "…"}`. Beside
//! the results is a journal; to begin anew, remove it.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example talks to a terminal"
)]

use std::error::Error;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::time::Duration;

use futures_util::stream;
use outrigger::{Agent, Policy, Retry};
use outrigger_fleet::batch::{Batch, BatchJob, Journal};
use outrigger_fleet::budget::{Amount, Budget, Cap, Usd};
use outrigger_fleet::gate::{Gate, GateLimits};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Line {
    id: String,
    prompt: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(prompts), Some(results)) = (arguments.next(), arguments.next()) else {
        return Err("the arguments are two files".into());
    };
    let dollars = arguments.next().map_or(Ok(5.0), |dollars| dollars.parse())?;
    let mut jobs = Vec::new();
    for line in BufReader::new(File::open(prompts)?).lines() {
        let line: Line = serde_json::from_str(&line?)?;
        jobs.push(BatchJob::new(line.id, line.prompt));
    }

    let agent = Agent::builder()
        .permissions(Policy::read_only())
        .turn_deadline(Duration::from_secs(600));
    let budget = Budget::new("batch", Cap::usd(Usd::from_dollars(dollars)?));
    let batch = Batch::new(agent)
        .jobs(4)
        .retry(Retry::new().tries(4))
        .gate(Gate::new(GateLimits::default()), None)
        .budget(budget, Amount::usd(Usd::from_cents(10)))
        .journal(Journal::open(format!("{results}.journal")).await?);

    // What an earlier run has done is emitted again.
    let mut results = File::create(results)?;
    let mut run = batch.run(stream::iter(jobs))?;
    while let Some(ended) = run.next().await {
        let line = match &ended.result {
            Ok(done) => json!({"id": ended.id, "text": done.text}),
            Err(failure) => json!({"id": ended.id, "error": failure.message}),
        };
        writeln!(results, "{line}")?;
        let progress = run.monitor().progress();
        let left = progress.estimate().unwrap_or_default();
        eprintln!(
            "{} done, {} failed, {} retries, {} s left",
            progress.done,
            progress.failed,
            progress.retries,
            left.as_secs()
        );
    }
    println!("{}", run.finish().await?);
    Ok(())
}
