//! The simulated `claude` as an executable: name it where a program expects the CLI.
//!
//! It takes the CLI's flags and reads and writes stream-json on stdin and stdout; its model follows a script
//! ([`outrigger_sim::script`]), or else the prompts, in the language of [`outrigger_sim::directive`]. It uses no
//! network and needs no account. `--help` lists the other flags.

mod death;
mod own;
mod pipe_log;
#[cfg(feature = "players")]
mod programs;
mod report;
#[cfg(feature = "players")]
mod staging;
mod together;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use outrigger_sim::cassette::What;
use outrigger_sim::peer::{Agent, CommandLine, Exit, Refusal, Report, Running, Signal, Surroundings};
use outrigger_sim::script::{Gates, Script};

use own::Own;
use together::Together;

/// The exit code when the script found flaws in the client.
const DISCONTENT: u8 = 97;

/// The exit code when the script cannot be used.
const NO_SCRIPT: u8 = 98;

fn main() -> ExitCode {
    // A fault may leave a process behind, or end this one by a signal: this program again.
    #[cfg(unix)]
    if let Some(end) = outrigger_sim::peer::faulty::be_grandchild().or_else(death::be_dying) {
        return end;
    }
    if let Some(code) = together::answer() {
        return code;
    }
    let (mut own, arguments) = match Own::read(std::env::args_os().skip(1)) {
        Ok(read) => read,
        Err(refusal) => return refuse(&refusal),
    };
    if let Some(code) = own.answer() {
        return code;
    }
    if let Err(refusal) = own.reserve_report() {
        return refuse(&refusal);
    }
    let log = match pipe_log::open() {
        Ok(log) => log,
        Err(refusal) => return refuse(&refusal),
    };
    let together = Together::from_env();
    let (lines, code) = match run(&own, &together, arguments) {
        Ok(Some(report)) => end(&own, &together, &report),
        // There was no runtime to run in.
        Ok(None) => (String::new(), ExitCode::FAILURE),
        Err(refusal) => {
            together.note_end(Exit::Code(refusal.code));
            let code = refuse(&refusal);
            together.hand_over_stdout();
            let said = What::Err(refusal.stderr.trim_end().to_owned());
            let exit = What::from(Exit::Code(refusal.code));
            let lines = [said, exit].map(|what| pipe_log::entry(Duration::ZERO, what));
            (lines.concat(), code)
        }
    };
    // In one piece, since other processes may log to the same file.
    if let Some(mut log) = log
        && let Err(error) = log.write_all((pipe_log::start() + &lines).as_bytes())
    {
        let _ = writeln!(std::io::stderr(), "cannot write OUTRIGGER_SIM_LOG: {error}");
    }
    code
}

/// Whether the user may do everything.
#[cfg(target_os = "linux")]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Elsewhere the system does not tell without a call of its own.
#[cfg(not(target_os = "linux"))]
fn is_root() -> bool {
    false
}

fn refuse(refusal: &Refusal) -> ExitCode {
    // A failed write can't be reported.
    let _ = std::io::stdout().write_all(refusal.stdout.as_bytes());
    let _ = std::io::stderr().write_all(refusal.stderr.as_bytes());
    ExitCode::from(refusal.code as u8)
}

fn run(
    own: &Own,
    together: &Together,
    arguments: Vec<std::ffi::OsString>,
) -> Result<Option<Report>, Refusal> {
    let mut script = own.script()?;
    if let Some(script) = &mut script {
        together.leave_files(script);
    }
    let line = CommandLine::read(arguments)?;
    let env = std::env::vars_os();
    let env = env.map(|(key, value)| {
        (
            key.to_string_lossy().into_owned(),
            value.to_string_lossy().into_owned(),
        )
    });
    let mut around = Surroundings::new(std::env::current_dir().unwrap_or_default(), env);
    around.root = is_root();
    let gates = Gates::default();
    let base = script.as_ref().map_or_else(Agent::builder, Script::setting);
    let mut agent = line.agent_from(base, &around)?;
    if let Some(script) = &script {
        agent = agent.script_in(script, &gates, together.progress());
        let told = std::env::var_os("OUTRIGGER_SIM_SEED").is_some();
        if let (Some(seed), false) = (script.seed, told) {
            agent = agent.seed(seed);
        }
    }
    let agent = together.tell_flaws(agent).owns_process(true).build();
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
    let mut report = runtime.block_on(async {
        let running = agent.spawn(tokio::io::stdin(), tokio::io::stdout(), tokio::io::stderr());
        listen(&running);
        if let Some(script) = &script {
            own.open_gates(script, &gates);
        }
        running.join().await
    });
    // A thread may hang in a read of stdin; it does not keep the process.
    runtime.shutdown_background();
    if let Some(script) = &script {
        together.judge(script, own, &mut report);
    }
    Ok(Some(report))
}

/// Prints the flaws, and returns the lines of the log with the exit code. A signal ends the process here.
fn end(own: &Own, together: &Together, report: &Report) -> (String, ExitCode) {
    let (code, signal) = match report.exit {
        Some(Exit::Code(code)) => (code as u8, None),
        Some(Exit::Signal(number)) => (128_u8.wrapping_add(number as u8), Some(number)),
        None => (1, None),
    };
    if let Some(exit) = report.exit {
        together.note_end(exit);
    }
    // Whoever runs several processes tells of all flaws at the end.
    if together.is_alone() {
        for flaw in &report.flaws {
            let _ = writeln!(std::io::stderr(), "{flaw}");
        }
    }
    if let Err(error) = own.write_report(report) {
        let _ = writeln!(std::io::stderr(), "{error}");
    }
    let lines = pipe_log::went_through(report);
    together.hand_over_stdout();
    if together.is_alone() && !report.flaws.is_empty() {
        return (lines, ExitCode::from(DISCONTENT));
    }
    if let Some(number) = signal {
        death::die(number);
    }
    (lines, ExitCode::from(code))
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
