//! The simulated `claude` as an executable: name it where a program expects the CLI.
//!
//! It takes the CLI's flags and speaks stream-json on stdin and stdout; what its model says stands in the prompts, in the
//! language of [`outrigger_sim::directive`]. Nothing leaves this machine and no account is needed.
//!
//! `OUTRIGGER_SIM_LOG` names a file to which it appends what it was started with and what went through its pipes, as recorded
//! conversations are written: a client that only takes a path to a CLI can be judged by it.

use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;

use outrigger_sim::peer::{CommandLine, Exit, Refusal, Report, Running, Signal, Surroundings};
use serde_json::{Value, json};

fn main() -> ExitCode {
    let log = match open_log() {
        Ok(log) => log,
        Err(refusal) => return refuse(&refusal),
    };
    let (lines, code) = match run() {
        Ok(Some(report)) => {
            let (code, signal) = match report.exit {
                Some(Exit::Code(code)) => (code, None),
                Some(Exit::Signal(number)) => (128 + number, Some(number)),
                None => (1, None),
            };
            (went_through(&report, signal), ExitCode::from(code as u8))
        }
        // There was no runtime to run in.
        Ok(None) => (String::new(), ExitCode::FAILURE),
        Err(refusal) => {
            let said = json!({"raw": refusal.stderr.trim_end()});
            let exit = json!({"exit_code": refusal.code, "exit_signal": null});
            (
                entry(0.0, "err", &said) + &entry(0.0, "meta", &exit),
                refuse(&refusal),
            )
        }
    };
    // In one piece, since other processes may log to the same file.
    if let Some(mut log) = log
        && let Err(error) = log.write_all((start() + &lines).as_bytes())
    {
        let _ = writeln!(std::io::stderr(), "cannot write OUTRIGGER_SIM_LOG: {error}");
    }
    code
}

fn refuse(refusal: &Refusal) -> ExitCode {
    // There is nobody to tell if these fail.
    let _ = std::io::stdout().write_all(refusal.stdout.as_bytes());
    let _ = std::io::stderr().write_all(refusal.stderr.as_bytes());
    ExitCode::from(refusal.code as u8)
}

fn run() -> Result<Option<Report>, Refusal> {
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
            return Ok(None);
        }
    };
    let report = runtime.block_on(async {
        let running = agent.spawn(tokio::io::stdin(), tokio::io::stdout(), tokio::io::stderr());
        listen(&running);
        running.join().await
    });
    // A thread may hang in a read of stdin; it does not keep the process.
    runtime.shutdown_background();
    Ok(Some(report))
}

/// The file that `OUTRIGGER_SIM_LOG` names.
fn open_log() -> Result<Option<File>, Refusal> {
    let Some(path) = std::env::var_os("OUTRIGGER_SIM_LOG").filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let opened = File::options().append(true).create(true).open(&path);
    opened.map(Some).map_err(|error| {
        Refusal::new(format!(
            "OUTRIGGER_SIM_LOG: cannot write {}: {error}",
            path.display()
        ))
    })
}

/// How this process was started, as a line of the log.
fn start() -> String {
    let arguments: Vec<_> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let cwd = std::env::current_dir().unwrap_or_default();
    entry(
        0.0,
        "meta",
        &json!({"argv": arguments, "cwd": cwd.to_string_lossy()}),
    )
}

/// What went through the pipes, and how it ended, as lines of the log.
fn went_through(report: &Report, signal: Option<i32>) -> String {
    let mut text = String::new();
    let mut end = 0.0;
    for line in &report.lines {
        end = line.at.as_secs_f64();
        text += &entry(end, if line.from_client { "in" } else { "out" }, &line.json);
    }
    let code = match report.exit {
        Some(Exit::Code(code)) => Some(code),
        _ => None,
    };
    text + &entry(end, "meta", &json!({"exit_code": code, "exit_signal": signal}))
}

fn entry(at: f64, direction: &str, message: &Value) -> String {
    format!("{}\n", json!({"t": at, "dir": direction, "msg": message}))
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
