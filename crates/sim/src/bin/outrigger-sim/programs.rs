//! `play` and `conform`: a program with the CLI in place.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use outrigger_sim::conform::{Comparison, Conversation};
use outrigger_sim::peer::Exit;
use outrigger_sim::players::{Play, PlayError, PlayedProcess, PlayedRun, Player};
use serde_json::{Value, json};

use super::report::{exit_json, flaws_json, lines_json};
use super::{DISCONTENT, NO_SCRIPT};

/// The program to run, and where.
#[derive(Debug, clap::Args)]
struct Program {
    /// The script, a YAML file. Without one, the prompts say what the model says.
    script: Option<PathBuf>,
    /// Runs the program and the CLI in a copy of this directory, a new one each time, which is removed afterwards.
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// The program and its arguments, behind `--`.
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

/// Which CLI plays.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["sim", "real"])))]
pub(crate) struct Which {
    /// The simulated CLI plays.
    #[arg(long)]
    sim: bool,
    /// The real CLI plays; the model's words come from the script.
    #[arg(long)]
    real: bool,
    /// With --real: the CLI, in place of the version that this program is tested with, which npm fetches.
    #[arg(long, value_name = "PATH", requires = "real")]
    cli: Option<PathBuf>,
}

impl Which {
    /// The player, and what reports call it.
    pub(crate) fn player(&self) -> (Player, &'static str) {
        let cli = self.cli.clone();
        match self.real {
            true => (Player::Real { cli }, "real"),
            false => (Player::Simulated, "sim"),
        }
    }
}

/// outrigger-sim play: runs a program with a script and a CLI in place. One word says which CLI it is.
///
/// All processes that the program starts play one script together: a rule that one has used is used. What the script expects is
/// judged once, when the program has ended.
///
/// The program finds the CLI as `claude` in its PATH, and its path in OUTRIGGER_CLAUDE and CLAUDE_CODE_EXECUTABLE. It has a home of
/// its own (HOME, CLAUDE_CONFIG_DIR), which is removed afterwards, a key that is none, and with --real the address of an API on
/// loopback. The Python SDK prefers the CLI that it brings: pass it CLAUDE_CODE_EXECUTABLE of os.environ as `cli_path`.
///
/// Tools really run with both, unless the script says `real_tools: false`, which only --sim can play. A CLI that is started in the
/// working directory works in a temporary one in its place, where the files of the script are.
///
/// Examples:
///   outrigger-sim play --sim clean-up.yaml -- python3 agent.py
///   outrigger-sim play --real clean-up.yaml -- python3 agent.py
///   outrigger-sim play --sim clean-up.yaml --report report.json -- npm test
///
/// Exit codes: that of the program, 128 and the signal if one ended it, 97 if the script was not content (stderr says why), 98 if
/// the script cannot be used, 127 if the program cannot be run, 1 if the CLI or the place for it cannot be had.
#[derive(Debug, clap::Parser)]
#[command(name = "outrigger-sim play", verbatim_doc_comment)]
struct PlayLine {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    program: Program,
    /// Writes what went through and what was wrong, as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Where gates of the script are opened: `NAME.reached` appears when it waits for the gate NAME, which opens once there is a
    /// file NAME. The program finds the directory in OUTRIGGER_SIM_GATES, also without this option.
    #[arg(long, value_name = "DIR")]
    gates: Option<PathBuf>,
}

/// outrigger-sim conform: runs a program once with the real CLI and once with the simulated one, and shows where they part.
///
/// Both play the same script. What is compared, of the CLI and of the program: the kinds of frames in their order, the fields of the
/// frames of each kind, and by value the inputs of tools and all words of the protocol, numbers and flags. Differences that are known
/// to occur with any script are shown with the reason, and do not count. Tools really run with both. What the program writes to
/// stdout goes to stderr; stdout has the differences. Gates are opened by the program, in OUTRIGGER_SIM_GATES.
///
/// Example:
///   outrigger-sim conform clean-up.yaml --project . -- python3 agent.py
///
/// Exit codes: 0 if nothing differs, 1 with the differences, 97 if nothing differs and the script was not content, 98 if the script
/// cannot be used, 127 if the program cannot be run. 2 if the CLI or the place for it cannot be had.
#[derive(Debug, clap::Parser)]
#[command(name = "outrigger-sim conform", verbatim_doc_comment)]
struct ConformLine {
    #[command(flatten)]
    program: Program,
    /// The real CLI, in place of the version that this program is tested with, which npm fetches.
    #[arg(long, value_name = "PATH")]
    cli: Option<PathBuf>,
}

/// Reads a command line.
///
/// # Errors
/// The exit code, once stderr says why it cannot be read, or stdout how it is written.
pub(crate) fn read<L: clap::Parser>(arguments: impl Iterator<Item = OsString>) -> Result<L, ExitCode> {
    let line = L::try_parse_from(std::iter::once(OsString::new()).chain(arguments));
    line.map_err(|error| {
        let printed = error.print().and_then(|()| std::io::stdout().flush());
        ExitCode::from((error.exit_code() as u8).max(printed.is_err().into()))
    })
}

impl Program {
    /// Runs it.
    ///
    /// # Errors
    /// The exit code, once stderr says what is wrong; `otherwise` if it is neither the script nor the program.
    fn run(
        &self,
        how: impl FnOnce(Play) -> Play,
        player: Player,
        otherwise: u8,
    ) -> Result<PlayedRun, ExitCode> {
        let failed = |what: String| {
            say(&format!("error: {what}\n"));
            ExitCode::from(otherwise)
        };
        let own = std::env::current_exe();
        let own = own.map_err(|error| failed(format!("cannot find this program: {error}")))?;
        let program = self.program.split_first();
        let (program, arguments) = program.ok_or_else(|| failed("the program is missing".to_owned()))?;
        let play = Play::new(
            own,
            player,
            self.script.clone(),
            program,
            arguments.iter().cloned(),
        );
        let play = how(play.project(self.project.clone()));
        let run = block_on(async { play.run().await });
        run.map_err(|error| failed(format!("cannot start: {error}")))?
            .map_err(|error| {
                say(&format!("{}\n", causes(&error)));
                ExitCode::from(code_of(&error, otherwise))
            })
    }
}

pub(crate) fn say(text: &str) {
    // A failed write can't be reported.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Why the program cannot be run, a cause a line.
pub(crate) fn causes(error: &PlayError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text += &format!("\n  caused by: {cause}");
        source = cause.source();
    }
    text
}

pub(crate) fn code_of(error: &PlayError, otherwise: u8) -> u8 {
    match error {
        PlayError::Script(_) => NO_SCRIPT,
        PlayError::Program { .. } => 127,
        _ => otherwise,
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, std::io::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let value = runtime.block_on(future);
    // A thread may wait for a process that does not end.
    runtime.shutdown_background();
    Ok(value)
}

/// So many processes.
fn processes(count: usize) -> String {
    match count {
        1 => "1 process of the CLI".to_owned(),
        _ => format!("{count} processes of the CLI"),
    }
}

/// What there is to say about a run besides the verdict.
fn tell(run: &PlayedRun) {
    if run.processes.is_empty() {
        say(
            "note: the program started no CLI. It is `claude` in the PATH, and its path is in OUTRIGGER_CLAUDE and \
             CLAUDE_CODE_EXECUTABLE; the Python SDK needs cli_path=os.environ[\"CLAUDE_CODE_EXECUTABLE\"]\n",
        );
    }
    if run.killed > 0 {
        say(&format!(
            "note: {} went on after the program had ended: killed\n",
            processes(run.killed)
        ));
    }
    for flaw in &run.flaws {
        say(&format!("{flaw}\n"));
    }
    if !run.flaws.is_empty() && run.exit != Exit::Code(0) {
        say(&format!("the program ended with {}\n", shown(run.exit)));
    }
}

fn shown(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(number) => format!("signal {number}"),
    }
}

/// The processes of a report.
pub(crate) fn processes_json(processes: &[PlayedProcess]) -> Vec<Value> {
    let json = processes.iter().map(|process| {
        json!({
            "pid": process.id,
            "arguments": process.arguments,
            "cwd": process.cwd.display().to_string(),
            "started_ms": process.began.as_secs_f64() * 1000.0,
            "running": process.running,
            "exit": exit_json(process.report.exit),
            "lines": lines_json(&process.report),
        })
    });
    json.collect()
}

fn report(run: &PlayedRun, player: &str, script: Option<&std::path::Path>) -> Value {
    json!({
        "content": run.flaws.is_empty(),
        "flaws": flaws_json(&run.flaws),
        "script": script.map(|script| script.display().to_string()),
        "player": player,
        "exit": exit_json(Some(run.exit)),
        "processes": processes_json(&run.processes),
    })
}

/// `outrigger-sim play`.
pub(crate) fn play(arguments: impl Iterator<Item = OsString>) -> Result<ExitCode, ExitCode> {
    let line: PlayLine = read(arguments)?;
    let (player, name) = line.which.player();
    let gates = || std::env::var_os("OUTRIGGER_SIM_GATES").filter(|gates| !gates.is_empty());
    let gates = line.gates.or_else(|| gates().map(PathBuf::from));
    let run = line.program.run(|play| play.gates(gates), player, 1)?;
    tell(&run);
    let mut lost = false;
    if let Some(path) = &line.report {
        let report = report(&run, name, line.program.script.as_deref());
        if let Err(error) = std::fs::write(path, format!("{report}\n")) {
            say(&format!("cannot write {}: {error}\n", path.display()));
            lost = true;
        }
    }
    Ok(ExitCode::from(match run.exit {
        _ if !run.flaws.is_empty() => DISCONTENT,
        Exit::Code(0) if lost => 1,
        Exit::Code(code) => code as u8,
        Exit::Signal(number) => 128_u8.wrapping_add(number as u8),
    }))
}

/// `outrigger-sim conform`.
pub(crate) fn conform(arguments: impl Iterator<Item = OsString>) -> Result<ExitCode, ExitCode> {
    let ConformLine { program, cli } = read(arguments)?;
    let run = |player: Player, name: &str| {
        let run = program.run(|play| play.stdout_aside(true), player, 2)?;
        say(&format!(
            "with {name}: the program ended with {}\n",
            shown(run.exit)
        ));
        tell(&run);
        Ok::<_, ExitCode>(run)
    };
    // First what may not be there, so that nothing has run when it is not.
    let real = run(Player::Real { cli }, "the real CLI")?;
    let simulated = run(Player::Simulated, "the simulated CLI")?;
    let conversation = |run: &PlayedRun| {
        let roots: Vec<_> = run.roots.iter().map(|root| root.to_string_lossy()).collect();
        let places: Vec<_> = roots.iter().map(|root| (&**root, "{root}")).collect();
        let reports: Vec<_> = run
            .processes
            .iter()
            .map(|process| process.report.clone())
            .collect();
        Conversation::new(&reports, &places)
    };
    let comparison = Comparison::new(&conversation(&real), &conversation(&simulated));
    let comparison = comparison.map_err(|error| {
        say(&format!(
            "the list of known differences cannot be read: {error}\n"
        ));
        ExitCode::from(2)
    })?;
    let mut text = comparison.text();
    let same_end = simulated.exit == real.exit;
    if !same_end {
        let ends = (shown(real.exit), shown(simulated.exit));
        text += &format!(
            "The program ended with {} with the real CLI, and with {} with the simulated one.\n",
            ends.0, ends.1
        );
    }
    let equal = comparison.is_equal() && same_end;
    if equal {
        let processes = processes(simulated.processes.len());
        text += &format!("Nothing differs that is not known, in {processes}.\n");
    }
    let content = simulated.flaws.is_empty() && real.flaws.is_empty();
    let printed = std::io::stdout().write_all(text.as_bytes()).is_ok();
    Ok(ExitCode::from(match (equal && printed, content) {
        (true, true) => 0,
        (true, false) => DISCONTENT,
        _ => 1,
    }))
}
