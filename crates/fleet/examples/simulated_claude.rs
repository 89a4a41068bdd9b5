//! A `claude` that is simulated, for trying the other examples without an account: its model does what the prompts say.
//!
//! `OUTRIGGER_CLAUDE=target/debug/examples/simulated_claude ANTHROPIC_API_KEY=none target/debug/examples/supervisor /tmp/helper`
//!
//! A prompt such as `%say hello` is answered with `hello`; `outrigger_sim::directive` has the others. `outrigger-sim` is this with options.

#![expect(clippy::print_stderr, reason = "it says what the CLI says")]

use std::process::ExitCode;

use outrigger_sim::peer::{Agent, CommandLine, Exit, Refusal, Surroundings};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(Some(Exit::Code(code))) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Ok(_) => ExitCode::FAILURE,
        Err(refusal) => {
            eprint!("{}", refusal.stderr);
            ExitCode::from(u8::try_from(refusal.code).unwrap_or(1))
        }
    }
}

async fn run() -> Result<Option<Exit>, Refusal> {
    let line = CommandLine::read(std::env::args_os().skip(1))?;
    let variables = std::env::vars();
    let around = Surroundings::new(std::env::current_dir().unwrap_or_default(), variables);
    let agent = line.agent_from(Agent::builder(), &around)?.owns_process(true);
    let running = agent.build();
    let running = running.spawn(tokio::io::stdin(), tokio::io::stdout(), tokio::io::stderr());
    Ok(running.join().await.exit)
}
