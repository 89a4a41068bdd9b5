//! The simulated `claude` as an executable: name it where a program expects the CLI.
//!
//! It takes the CLI's flags and speaks stream-json on stdin and stdout; what its model says stands in the prompts, in the
//! language of [`outrigger_sim::directive`]. Nothing leaves this machine and no account is needed.

use std::io::Write as _;
use std::process::ExitCode;

use outrigger_sim::peer::{CommandLine, Exit, Refusal, Running, Signal, Surroundings};

fn main() -> ExitCode {
    match start() {
        Ok(code) => code,
        Err(refusal) => {
            // There is nobody to tell if these fail.
            let _ = std::io::stdout().write_all(refusal.stdout.as_bytes());
            let _ = std::io::stderr().write_all(refusal.stderr.as_bytes());
            ExitCode::from(refusal.code as u8)
        }
    }
}

fn start() -> Result<ExitCode, Refusal> {
    let line = CommandLine::read(std::env::args_os().skip(1))?;
    let env = std::env::vars_os();
    let env = env.map(|(key, value)| {
        (
            key.to_string_lossy().into_owned(),
            value.to_string_lossy().into_owned(),
        )
    });
    let agent = line
        .agent(&Surroundings::new(
            std::env::current_dir().unwrap_or_default(),
            env,
        ))?
        .build();
    if let Some(warning) = line.warning() {
        let _ = writeln!(std::io::stderr(), "{warning}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "cannot start: {error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    let exit = runtime.block_on(async {
        let running = agent.spawn(tokio::io::stdin(), tokio::io::stdout(), tokio::io::stderr());
        listen(&running);
        running.exit().await
    });
    // A thread may hang in a read of stdin; it does not keep the process.
    runtime.shutdown_background();
    Ok(match exit {
        Exit::Code(code) => ExitCode::from(code as u8),
        Exit::Signal(number) => ExitCode::from((128 + number) as u8),
    })
}

/// Hands signals on.
#[cfg(unix)]
fn listen(running: &Running) {
    use tokio::signal::unix::{SignalKind, signal};
    for (kind, meaning) in [
        (SignalKind::terminate(), Signal::Term),
        (SignalKind::interrupt(), Signal::Int),
        (SignalKind::hangup(), Signal::Hup),
    ] {
        // Without a handler the signal ends the process, as it does any.
        if let Ok(mut signals) = signal(kind) {
            let running = running.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    running.signal(meaning);
                }
            });
        }
    }
}

/// Only Unix has these signals.
#[cfg(not(unix))]
fn listen(_: &Running) {}
