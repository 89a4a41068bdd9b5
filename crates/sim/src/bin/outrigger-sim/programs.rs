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

pub(crate) const PLAY_HELP: &str = "\
outrigger-sim play: runs a program with a script and a CLI in place. One word says which CLI it is.

  outrigger-sim play --sim [SCRIPT] [OPTIONS] -- PROGRAM [ARGUMENTS]    the simulated CLI
  outrigger-sim play --real [SCRIPT] [OPTIONS] -- PROGRAM [ARGUMENTS]   the real CLI; the model's words come from the script

All processes that the program starts play one script together: a rule that one has used is used. What the script expects is
judged once, when the program has ended. Without a SCRIPT, the prompts say what the model says.

The program finds the CLI as `claude` in its PATH, and its path in OUTRIGGER_CLAUDE and CLAUDE_CODE_EXECUTABLE. It has a home of
its own (HOME, CLAUDE_CONFIG_DIR), which is removed afterwards, a key that is none, and with --real the address of an API on
loopback. The Python SDK prefers the CLI that it brings: pass it cli_path=os.environ[\"CLAUDE_CODE_EXECUTABLE\"].

Tools really run with both, unless the script says `real_tools: false`, which only --sim can play. A CLI that is started in the working
directory works in a temporary one in its place, where the files of the script are.

Options:
  --report FILE    Writes what went through and what was wrong, as JSON.
  --gates DIR      Where gates of the script are opened: `NAME.reached` appears when it waits for the gate NAME, which opens once
                   there is a file NAME. The program finds the directory in OUTRIGGER_SIM_GATES, also without this option.
  --project DIR    Runs the program and the CLI in a copy of this directory, which is removed afterwards.
  --cli PATH       With --real: the CLI, in place of the version that this program is tested with, which npm fetches.
  --help           Prints this.

Examples:
  outrigger-sim play --sim clean-up.yaml -- python3 agent.py
  outrigger-sim play --real clean-up.yaml -- python3 agent.py
  outrigger-sim play --sim clean-up.yaml --report report.json -- npm test

Exit codes: that of the program, 128 and the signal if one ended it, 97 if the script was not content (stderr says why), 98 if
the script cannot be used, 127 if the program cannot be run, 1 if the CLI or the place for it cannot be had.
";

pub(crate) const CONFORM_HELP: &str = "\
outrigger-sim conform: runs a program once with the real CLI and once with the simulated one, and shows where they part.

  outrigger-sim conform SCRIPT [OPTIONS] -- PROGRAM [ARGUMENTS]

Both play the same script. What is compared, of the CLI and of the program: the kinds of frames in their order, the fields of the
frames of each kind, and the inputs of tools. Differences that are known to occur with any script are shown with the reason, and do
not count. Tools really run with both. What the program writes to stdout goes to stderr; stdout has the differences.

Options:
  --project DIR    Runs the program in a copy of this directory, a new one each time, so that the second run does not find what
                   the first one did.
  --cli PATH       As for `outrigger-sim play`. Gates are opened by the program, in OUTRIGGER_SIM_GATES.
  --help           Prints this.

Example:
  outrigger-sim conform clean-up.yaml --project . -- python3 agent.py

Exit codes: 0 if nothing differs, 1 with the differences, 97 if nothing differs and the script was not content, 98 if the script
cannot be used, 127 if the program cannot be run. 2 if the CLI or the place for it cannot be had.
";

/// What stands behind `play` or `conform`.
#[derive(Debug, Default)]
struct Line {
    sim: bool,
    real: bool,
    help: bool,
    report: Option<PathBuf>,
    gates: Option<PathBuf>,
    project: Option<PathBuf>,
    cli: Option<PathBuf>,
    script: Option<PathBuf>,
    program: Vec<OsString>,
}

impl Line {
    fn read(mut arguments: impl Iterator<Item = OsString>, plays: bool) -> Result<Self, String> {
        let mut line = Self::default();
        while let Some(argument) = arguments.next() {
            let text = argument.to_string_lossy().into_owned();
            let (name, attached) = match text.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(OsString::from(value))),
                _ => (text.as_str(), None),
            };
            let place = match name {
                "--sim" if plays => {
                    line.sim = true;
                    continue;
                }
                "--real" if plays => {
                    line.real = true;
                    continue;
                }
                "--help" | "-h" => {
                    line.help = true;
                    return Ok(line);
                }
                "--report" if plays => &mut line.report,
                "--gates" if plays => &mut line.gates,
                "--project" => &mut line.project,
                "--cli" => &mut line.cli,
                "--" => {
                    line.program = arguments.collect();
                    break;
                }
                _ if name.starts_with('-') => return Err(format!("unknown option '{name}'")),
                _ if line.script.is_none() => {
                    line.script = Some(argument.into());
                    continue;
                }
                _ => {
                    return Err(format!(
                        "`--` is missing ahead of the program: '{name}' is no second script"
                    ));
                }
            };
            let value = attached.or_else(|| arguments.next());
            *place = Some(
                value
                    .ok_or_else(|| format!("option '{name}' argument missing"))?
                    .into(),
            );
        }
        if line.program.is_empty() {
            return Err("the program is missing: it stands behind `--`".to_owned());
        }
        if plays && line.sim == line.real {
            return Err("say which CLI plays: --sim or --real".to_owned());
        }
        if line.sim && line.cli.is_some() {
            return Err("--cli goes with --real".to_owned());
        }
        if line.gates.is_none() && plays {
            let gates = std::env::var_os("OUTRIGGER_SIM_GATES").filter(|gates| !gates.is_empty());
            line.gates = gates.map(PathBuf::from);
        }
        Ok(line)
    }

    fn play(&self, player: Player) -> Result<Play, String> {
        let own = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let (program, arguments) = self.program.split_first().ok_or("the program is missing")?;
        let play = Play::new(
            own,
            player,
            self.script.clone(),
            program,
            arguments.iter().cloned(),
        );
        Ok(play.gates(self.gates.clone()).project(self.project.clone()))
    }
}

pub(crate) fn say(text: &str) {
    // A failed write can't be reported.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

pub(crate) fn print(text: &str) -> ExitCode {
    let written = std::io::stdout().write_all(text.as_bytes());
    ExitCode::from(u8::from(written.is_err()))
}

/// The exit code of something that kept the program from being run.
fn cannot(error: &PlayError, otherwise: u8) -> ExitCode {
    say(&format!("{}\n", causes(error)));
    ExitCode::from(code_of(error, otherwise))
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
            "note: {} processes of the CLI went on after the program had ended, and were killed\n",
            run.killed
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
pub(crate) fn play(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let line = match Line::read(arguments, true) {
        Ok(line) if line.help => return print(PLAY_HELP),
        Ok(line) => line,
        Err(error) => {
            say(&format!(
                "error: {error}; `outrigger-sim play --help` shows how\n"
            ));
            return ExitCode::from(2);
        }
    };
    let (player, name) = if line.sim {
        (Player::Simulated, "sim")
    } else {
        let cli = line.cli.clone();
        (Player::Real { cli }, "real")
    };
    let played = line.play(player).map(|play| block_on(async { play.run().await }));
    let run = match played {
        Ok(Ok(Ok(run))) => run,
        Ok(Ok(Err(error))) => return cannot(&error, 1),
        Ok(Err(error)) => {
            say(&format!("cannot start: {error}\n"));
            return ExitCode::FAILURE;
        }
        Err(error) => {
            say(&format!("error: {error}\n"));
            return ExitCode::FAILURE;
        }
    };
    tell(&run);
    let mut lost = false;
    if let Some(path) = &line.report {
        let report = report(&run, name, line.script.as_deref());
        if let Err(error) = std::fs::write(path, format!("{report}\n")) {
            say(&format!("cannot write {}: {error}\n", path.display()));
            lost = true;
        }
    }
    let code = match run.exit {
        _ if !run.flaws.is_empty() => DISCONTENT,
        Exit::Code(0) if lost => 1,
        Exit::Code(code) => code as u8,
        Exit::Signal(number) => 128_u8.wrapping_add(number as u8),
    };
    ExitCode::from(code)
}

/// `outrigger-sim conform`.
pub(crate) fn conform(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let line = match Line::read(arguments, false) {
        Ok(line) if line.help => return print(CONFORM_HELP),
        Ok(line) => line,
        Err(error) => {
            say(&format!(
                "error: {error}; `outrigger-sim conform --help` shows how\n"
            ));
            return ExitCode::from(2);
        }
    };
    let real = Player::Real {
        cli: line.cli.clone(),
    };
    let mut runs = Vec::new();
    for player in [Player::Simulated, real] {
        let name = match player {
            Player::Simulated => "the simulated CLI",
            _ => "the real CLI",
        };
        let play = line.play(player).map(|play| play.stdout_aside(true));
        let played = play.map(|play| block_on(async { play.run().await }));
        let run = match played {
            Ok(Ok(Ok(run))) => run,
            Ok(Ok(Err(error))) => return cannot(&error, 2),
            Ok(Err(error)) => {
                say(&format!("cannot start: {error}\n"));
                return ExitCode::from(2);
            }
            Err(error) => {
                say(&format!("error: {error}\n"));
                return ExitCode::from(2);
            }
        };
        say(&format!(
            "with {name}: the program ended with {}\n",
            shown(run.exit)
        ));
        tell(&run);
        runs.push(run);
    }
    let [simulated, real] = &runs[..] else {
        return ExitCode::from(2);
    };
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
    let comparison = match Comparison::new(&conversation(real), &conversation(simulated)) {
        Ok(comparison) => comparison,
        Err(error) => {
            say(&format!(
                "the list of known differences cannot be read: {error}\n"
            ));
            return ExitCode::from(2);
        }
    };
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
        let processes = simulated.processes.len();
        text += &format!("Nothing differs that is not known, in {processes} processes of the CLI.\n");
    }
    let content = runs.iter().all(|run| run.flaws.is_empty());
    let printed = std::io::stdout().write_all(text.as_bytes()).is_ok();
    ExitCode::from(match (equal && printed, content) {
        (true, true) => 0,
        (true, false) => DISCONTENT,
        _ => 1,
    })
}
