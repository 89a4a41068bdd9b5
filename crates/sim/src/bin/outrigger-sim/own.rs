//! What only the simulator has: its own flags, and the questions that it answers itself.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use outrigger_sim::peer::{CommandLine, Refusal, Report};
use outrigger_sim::script::{GateFiles, Gates, Script, ScriptPlayer, json_schema};

use super::NO_SCRIPT;

const HELP: &str = "\
outrigger-sim: a simulated claude. Name it where a program expects the path of the CLI.

It takes the CLI's flags, and speaks stream-json on stdin and stdout as the CLI does:

  outrigger-sim --script FILE --output-format stream-json --input-format stream-json --verbose ...

To run a program with one script for all the processes that it starts, and to let the real CLI play the same script:

  outrigger-sim play --sim SCRIPT -- PROGRAM [ARGUMENTS]
  outrigger-sim play --real SCRIPT -- PROGRAM [ARGUMENTS]
  outrigger-sim conform SCRIPT -- PROGRAM [ARGUMENTS]      shows where the program goes another way with one than with the other

What its model says stands in a script. Without one it stands in the prompts: a line `%say TEXT` is said, a line
`%tool NAME {JSON}` calls a tool, and so on.

Its own flags, before or among those of the CLI:
  --script FILE   Plays this script, a YAML file.
  --report FILE   Writes what went through and what was wrong, as JSON. In a directory the file is called by the process id,
                  and is empty as long as the process runs.
  --gates DIR     Where gates of the script are opened: `NAME.reached` appears when it waits for the gate NAME, which opens
                  once there is a file NAME.
  --check FILE    Says what is wrong with a script, and does nothing else.
  --schema        Prints the JSON schema of scripts.
  --help          Prints this.

Environment:
  OUTRIGGER_SIM_SCRIPT, OUTRIGGER_SIM_REPORT, OUTRIGGER_SIM_GATES   As the flags, which win.
  OUTRIGGER_SIM_LOG         A file to which it appends how it was started and what went through.
  OUTRIGGER_SIM_SEED        A number from which ids are made, so that they repeat.
  OUTRIGGER_SIM_CLOCK       With `virtual`, times are counted and not measured, so that they repeat.
  OUTRIGGER_SIM_REAL_TOOLS  With 1, tools really run.

Exit codes: those of the CLI, 97 if the script was not content with the client (stderr says why), 98 if the script cannot
be used.
";

/// The simulator's own flags.
#[derive(Debug)]
pub(crate) struct Own {
    started: SystemTime,
    script: Option<PathBuf>,
    report: Option<PathBuf>,
    reserved: bool,
    gates: Option<PathBuf>,
    check: Option<PathBuf>,
    schema: bool,
    help: bool,
}

impl Own {
    /// Takes them out of the arguments, and gives those that are the CLI's.
    pub(crate) fn read(arguments: impl Iterator<Item = OsString>) -> Result<(Self, Vec<OsString>), Refusal> {
        let env = |name| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let mut own = Self {
            script: env("OUTRIGGER_SIM_SCRIPT"),
            report: env("OUTRIGGER_SIM_REPORT"),
            gates: env("OUTRIGGER_SIM_GATES"),
            started: SystemTime::now(),
            reserved: false,
            check: None,
            schema: false,
            help: false,
        };
        let mut rest = Vec::new();
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let text = argument.to_string_lossy().into_owned();
            let (name, attached) = match text.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (text.as_str(), None),
            };
            let place = match name {
                "--script" => &mut own.script,
                "--report" => &mut own.report,
                "--gates" => &mut own.gates,
                "--check" => &mut own.check,
                "--schema" => {
                    own.schema = true;
                    continue;
                }
                "--help" | "-h" => {
                    own.help = true;
                    continue;
                }
                _ => {
                    let takes_next = CommandLine::takes_next(&text);
                    rest.push(argument);
                    if takes_next {
                        rest.extend(arguments.next());
                    }
                    continue;
                }
            };
            let value = attached.or_else(|| arguments.next());
            let missing = || Refusal::new(format!("error: option '{name} <path>' argument missing"));
            *place = Some(value.ok_or_else(missing)?.into());
        }
        Ok((own, rest))
    }

    /// Answers what can be answered without playing the CLI.
    pub(crate) fn answer(&self) -> Option<ExitCode> {
        let print = |text: &str| {
            let written = std::io::stdout().write_all(text.as_bytes());
            ExitCode::from(u8::from(written.is_err()))
        };
        if self.help {
            return Some(print(HELP));
        }
        if self.schema {
            return Some(print(&format!("{:#}\n", json_schema())));
        }
        let path = self.check.as_ref()?;
        let players = |script: Script| {
            [ScriptPlayer::Simulator, ScriptPlayer::Api, ScriptPlayer::RealCli]
                .map(|player| script.check(player).err())
        };
        let flaws = match Script::from_file(path).map(players) {
            Ok([Some(simulator), Some(api), Some(_)]) => format!("{simulator}\n{api}\n"),
            Ok(limits) => {
                let limits = limits.into_iter().flatten();
                let notes: String = limits.map(|limit| format!("note: {limit}\n")).collect();
                return Some(print(&format!("{}: nothing is wrong\n{notes}", path.display())));
            }
            Err(error) => format!("{error}\n"),
        };
        let _ = std::io::stderr().write_all(flaws.as_bytes());
        Some(ExitCode::from(NO_SCRIPT))
    }

    /// The script to play, if there is one.
    pub(crate) fn script(&self) -> Result<Option<Script>, Refusal> {
        let Some(path) = &self.script else { return Ok(None) };
        let refuse = |what: String| {
            let mut refusal = Refusal::new(what);
            refusal.code = NO_SCRIPT.into();
            refusal
        };
        let script = Script::from_file(path);
        let script = script.and_then(|script| script.check(ScriptPlayer::Simulator).map(|()| script));
        let script = script.map_err(|error| refuse(error.to_string()))?;
        if let (Some(name), None) = (script.gate_names().first(), &self.gates) {
            let how = "say with --gates or OUTRIGGER_SIM_GATES in which directory it is opened";
            return Err(refuse(format!(
                "{}: it waits for the gate `{name}`: {how}",
                path.display()
            )));
        }
        Ok(Some(script))
    }

    /// What the script is called on a command line.
    pub(crate) fn script_name(&self) -> String {
        let path = self.script.as_deref();
        path.map_or_else(|| "SCRIPT".to_owned(), |path| path.display().to_string())
    }

    /// Opens the gates of a script as soon as there are files for them.
    pub(crate) fn open_gates(&self, script: &Script, gates: &Gates) {
        let Some(directory) = &self.gates else { return };
        for name in script.gate_names() {
            let (gate, files) = (gates.gate(&name), GateFiles::new(directory));
            tokio::spawn(async move {
                gate.arrival().await;
                if let Err(error) = files.reached(&name) {
                    let _ = writeln!(
                        std::io::stderr(),
                        "cannot say that the gate {name} is reached: {error}"
                    );
                }
                files.opened(&name).await;
                gate.open();
            });
        }
    }

    /// In a directory for reports, creates the empty file of this process: whoever reads the directory knows then that there is a
    /// process whose report is still to come, or that was killed.
    pub(crate) fn reserve_report(&mut self) -> Result<(), Refusal> {
        let Some(directory) = self.report.as_ref().filter(|path| path.is_dir()) else {
            return Ok(());
        };
        let path = directory.join(format!("{}.json", std::process::id()));
        std::fs::write(&path, "")
            .map_err(|error| Refusal::new(format!("cannot write the report {}: {error}", path.display())))?;
        self.report = Some(path);
        self.reserved = true;
        Ok(())
    }

    /// Writes the report, if one is wanted.
    pub(crate) fn write_report(&self, report: &Report) -> Result<(), String> {
        let Some(path) = &self.report else { return Ok(()) };
        let text = super::report::to_json(report, self.script.as_deref(), self.started);
        // A reader of the directory finds the whole report or none.
        let file = if self.reserved {
            path.with_extension("part")
        } else {
            path.clone()
        };
        std::fs::write(&file, format!("{text}\n"))
            .and_then(|()| {
                if self.reserved {
                    std::fs::rename(&file, path)
                } else {
                    Ok(())
                }
            })
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}
