//! Runs a program with a player in the place of its CLI, and judges.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::{Child, Command};

use super::{PROGRESS, Stage, project, recorded};
use crate::api::{MessagesApi, StartError};
use crate::claude::{DUMMY_KEY, FetchError, LEADS_ELSEWHERE, Sandbox, executable};
use crate::flaw::Flaw;
use crate::peer::{Exit, Report};
use crate::script::{Progress, Script, ScriptError};

/// How long a CLI may go on once the program has ended, before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// What the tools of languages keep below the home, with the variable that says where it is.
const TOOLS: &[(&str, &str)] = &[
    ("CARGO_HOME", ".cargo"),
    ("RUSTUP_HOME", ".rustup"),
    ("PYTHONUSERBASE", ".local"),
];

/// The variables with the path of the player.
const NAMES: &[&str] = &["OUTRIGGER_CLAUDE", "CLAUDE_CODE_EXECUTABLE"];

/// Who plays the CLI.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Player {
    /// The simulated CLI.
    Simulated,
    /// The real CLI, with a scripted Messages API.
    Real {
        /// The executable; the pinned version unless given.
        cli: Option<PathBuf>,
    },
}

/// A program to run with a script.
#[derive(Debug, Clone)]
#[must_use]
pub struct Play {
    own: PathBuf,
    player: Player,
    script: PathBuf,
    gates: Option<PathBuf>,
    project: Option<PathBuf>,
    real_tools: bool,
    aside: bool,
    program: OsString,
    arguments: Vec<OsString>,
}

/// How it went.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlayedRun {
    /// How the program ended.
    pub exit: Exit,
    /// What the script expected in vain, or did not expect.
    pub flaws: Vec<Flaw>,
    /// What went through the pipes of each process of the player, in the order in which they were started. The end of a process is
    /// known only of the simulated CLI, and only if it was not killed.
    pub processes: Vec<Report>,
    /// The directory of the run, which is another one each time, and is no longer there.
    pub root: PathBuf,
    /// The processes that did not end within some seconds after the program, and were killed.
    pub killed: usize,
}

/// The program could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The script cannot be used.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The script waits for a gate, and nobody can open it.
    #[error("{}: it waits for the gate `{gate}`: say with --gates or OUTRIGGER_SIM_GATES in which directory it is opened", script.display())]
    Gate {
        /// The script.
        script: PathBuf,
        /// The gate.
        gate: String,
    },
    /// The script waits for a gate, and the real CLI plays it.
    #[error("{}: it waits for the gate `{gate}`, which only --sim can open", script.display())]
    GateOfReal {
        /// The script.
        script: PathBuf,
        /// The gate.
        gate: String,
    },
    /// The real CLI cannot be had.
    #[error("the real CLI cannot be had; `--cli PATH` names one that is there")]
    Fetch(#[from] FetchError),
    /// The scripted API does not start.
    #[error(transparent)]
    Api(#[from] StartError),
    /// The program cannot be started.
    #[error("cannot run {program}")]
    Program {
        /// Its name.
        program: String,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// The place for the run cannot be used.
    #[error("cannot {doing}")]
    Place {
        /// What failed.
        doing: &'static str,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

fn place(doing: &'static str) -> impl FnOnce(io::Error) -> PlayError {
    move |cause| PlayError::Place { doing, cause }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A script, loaded by the player that plays it.
enum Loaded {
    Simulated(Box<Script>, Progress),
    Real(MessagesApi),
}

impl Play {
    /// The program with its arguments, with a script file. `own` is the path of `outrigger-sim`, which becomes the player.
    pub fn new(
        own: impl Into<PathBuf>,
        player: Player,
        script: impl Into<PathBuf>,
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Self {
        Self {
            own: own.into(),
            player,
            script: script.into(),
            gates: None,
            project: None,
            real_tools: false,
            aside: false,
            program: program.into(),
            arguments: arguments.into_iter().collect(),
        }
    }

    /// Sets the directory in which the gates of the script are opened.
    pub fn gates(mut self, directory: Option<PathBuf>) -> Self {
        self.gates = directory;
        self
    }

    /// Runs the program in a copy of this directory, in place of the working directory.
    pub fn project(mut self, directory: Option<PathBuf>) -> Self {
        self.project = directory;
        self
    }

    /// Lets the simulated CLI really run tools, as the real one does, whatever the script says.
    pub fn real_tools(mut self, real: bool) -> Self {
        self.real_tools = real;
        self
    }

    /// Writes what the program has for stdout to stderr, so that stdout is the caller's alone.
    pub fn stdout_aside(mut self, aside: bool) -> Self {
        self.aside = aside;
        self
    }

    /// Runs it to its end. Signals that come meanwhile are passed on; the second one kills the program.
    ///
    /// # Errors
    /// When it cannot be run. What the script does not like is no error, see [`PlayedRun::flaws`].
    pub async fn run(&self) -> Result<PlayedRun, PlayError> {
        let sandbox = Sandbox::new().map_err(place("make a place for the program"))?;
        let (bin, run) = (sandbox.path().join("bin"), sandbox.path().join("run"));
        for directory in [&bin, &run] {
            fs::create_dir_all(directory).map_err(place("make a place for the program"))?;
        }
        let progress = run.join("progress");
        let (loaded, stage) = self.load(&sandbox, &progress).await?;
        let claude = stage.write(&self.own, &run, &bin).map_err(place(
            "put the player in the place of `claude`, which takes a Unix shell",
        ))?;
        let project = match &self.project {
            Some(directory) => {
                project::copy(directory, &sandbox.project()).map_err(place("copy the project"))?;
                sandbox.project()
            }
            None => std::env::current_dir().map_err(place("find the working directory"))?,
        };
        let program = self.program.to_string_lossy().into_owned();
        let named = |cause| PlayError::Program { program, cause };
        // Before the program is started, so that a signal finds it caught.
        let mut signals = signals::Signals::catch().map_err(place("catch signals"))?;
        let mut command = self.command(&sandbox, &stage, &claude);
        let child = command.current_dir(project).spawn().map_err(named)?;
        let status = wait(child, &mut signals)
            .await
            .map_err(place("wait for the program"))?;
        let killed = end_of_players(&run)
            .await
            .map_err(place("wait for the processes of the CLI"))?;
        let files = recorded::files(&run).map_err(place("read what was recorded"))?;
        let processes = files.iter().map(|file| recorded::read(file));
        let processes: Vec<_> = processes
            .collect::<io::Result<_>>()
            .map_err(place("read what was recorded"))?;
        let flaws = match loaded {
            Loaded::Simulated(script, progress) => {
                let mut flaws = script.judge(&progress, &processes);
                // The processes know the script by its absolute path.
                let (known, named) = (absolute(&self.script), self.script.to_string_lossy());
                for text in flaws
                    .iter_mut()
                    .flat_map(|flaw| [&mut flaw.place, &mut flaw.what])
                {
                    *text = text.replace(&*known.to_string_lossy(), &named);
                }
                flaws
            }
            Loaded::Real(api) => {
                let flaws = api.verdict().err().map(|flaws| flaws.0).unwrap_or_default();
                api.shutdown().await;
                flaws
            }
        };
        Ok(PlayedRun {
            exit: exit_of(status),
            flaws,
            processes,
            root: sandbox.path().to_owned(),
            killed,
        })
    }

    /// Reads the script, and prepares the player.
    async fn load(&self, sandbox: &Sandbox, progress: &Path) -> Result<(Loaded, Stage), PlayError> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut set = BTreeMap::new();
        let mut unset: Vec<String> = LEADS_ELSEWHERE.iter().map(|name| (*name).to_owned()).collect();
        let (loaded, cli) = match &self.player {
            Player::Simulated => {
                let script = Script::from_file(&self.script)?;
                let gates = self.gates.as_deref().map(absolute);
                if let (Some(gate), None) = (script.gate_names().into_iter().next(), &gates) {
                    let script = self.script.clone();
                    return Err(PlayError::Gate { script, gate });
                }
                set.insert("OUTRIGGER_SIM_SCRIPT".to_owned(), text(&absolute(&self.script)));
                set.insert(PROGRESS.to_owned(), text(progress));
                let gates = gates.map(|gates| ("OUTRIGGER_SIM_GATES".to_owned(), text(&gates)));
                set.extend(gates);
                if self.real_tools {
                    set.insert("OUTRIGGER_SIM_REAL_TOOLS".to_owned(), "1".to_owned());
                }
                // The run has its own.
                unset.push("OUTRIGGER_SIM_REPORT".to_owned());
                (
                    Loaded::Simulated(Box::new(script), Progress::in_file(progress)),
                    self.own.clone(),
                )
            }
            Player::Real { cli } => {
                let script = Script::from_file(&self.script)?;
                // Nobody could open it, and the run would not end.
                if let Some(gate) = script.gate_names().into_iter().next() {
                    let script = self.script.clone();
                    return Err(PlayError::GateOfReal { script, gate });
                }
                let cli = match cli {
                    Some(cli) => absolute(cli),
                    None => executable().await?,
                };
                let api = MessagesApi::builder()
                    .home(text(&sandbox.home()))
                    .script_of_one_run(script)?
                    .start()
                    .await?;
                set.extend(sandbox.env(&api.base_url()));
                for name in ["PATH", "HOME", "CLAUDE_CONFIG_DIR", "TMPDIR", "ANTHROPIC_API_KEY"] {
                    set.remove(name);
                }
                set.insert("DISABLE_ERROR_REPORTING".to_owned(), "1".to_owned());
                // A proxy could not reach this machine's loopback.
                set.insert("NO_PROXY".to_owned(), "127.0.0.1".to_owned());
                (Loaded::Real(api), cli)
            }
        };
        let defaults = [
            ("HOME", text(&sandbox.home())),
            ("CLAUDE_CONFIG_DIR", text(&sandbox.config())),
            ("ANTHROPIC_API_KEY", DUMMY_KEY.to_owned()),
        ];
        let defaults = defaults.map(|(name, value)| (name.to_owned(), value));
        let stage = Stage {
            cli,
            set,
            defaults: defaults.into(),
            unset,
        };
        Ok((loaded, stage))
    }

    /// The program, with the player where it looks for the CLI.
    fn command(&self, sandbox: &Sandbox, stage: &Stage, claude: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).kill_on_drop(true);
        if self.aside {
            command.stdout(io::stderr());
        }
        for name in stage
            .unset
            .iter()
            .map(String::as_str)
            .chain(["ANTHROPIC_BASE_URL"])
        {
            command.env_remove(name);
        }
        if let Some(home) = std::env::home_dir() {
            for (name, below) in TOOLS {
                let place = home.join(below);
                if std::env::var_os(name).is_none() && place.is_dir() {
                    command.env(name, place);
                }
            }
        }
        command
            .env("HOME", sandbox.home())
            .env("CLAUDE_CONFIG_DIR", sandbox.config())
            .env("ANTHROPIC_API_KEY", DUMMY_KEY);
        let to_the_api = stage
            .set
            .iter()
            .filter(|(name, _)| !name.starts_with("OUTRIGGER_SIM_"));
        command.envs(to_the_api);
        for name in NAMES {
            command.env(name, claude);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let bin = claude.parent().map(Path::to_owned);
        let path = std::env::join_paths(bin.into_iter().chain(std::env::split_paths(&path)));
        if let Ok(path) = path {
            command.env("PATH", path);
        }
        command
    }
}

/// Waits until nothing goes through the pipes of the players any more, and kills those that do not end. Gives how many.
async fn end_of_players(run: &Path) -> io::Result<usize> {
    let mut killed = 0;
    for file in recorded::files(run)? {
        let waited = || {
            let file = file.clone();
            tokio::task::spawn_blocking(move || recorded::wait_for_end(&file))
        };
        match tokio::time::timeout(GRACE, waited()).await {
            Ok(ended) => ended.map_err(io::Error::other)??,
            Err(_) => {
                killed += 1;
                if let Some(id) = recorded::process_id(&file) {
                    kill(id);
                }
                // A process that the player left behind may hold its pipes for ever.
                let _ = tokio::time::timeout(GRACE, waited()).await;
            }
        }
    }
    Ok(killed)
}

#[cfg(unix)]
fn kill(id: i32) {
    use rustix::process::{Pid, Signal, kill_process};
    if let Some(id) = Pid::from_raw(id) {
        // One that has ended just now needs no signal.
        let _ = kill_process(id, Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill(_: i32) {}

/// Waits for the end of the program. The first signal is passed on, the second kills it.
async fn wait(mut child: Child, signals: &mut signals::Signals) -> io::Result<ExitStatus> {
    let first = tokio::select! {
        status = child.wait() => return status,
        signal = signals.next() => signal,
    };
    // Ctrl-C at a terminal reaches the program by itself.
    if !(first.is_interrupt() && io::stdin().is_terminal()) {
        first.pass_on(&child);
    }
    tokio::select! {
        status = child.wait() => return status,
        _ = signals.next() => {}
    }
    child.start_kill()?;
    child.wait().await
}

fn exit_of(status: ExitStatus) -> Exit {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = status.signal() {
            return Exit::Signal(signal);
        }
    }
    Exit::Code(status.code().unwrap_or(1))
}

/// Ctrl-C and its kin.
#[cfg(unix)]
mod signals {
    use std::io;

    use tokio::process::Child;
    use tokio::signal::unix::{Signal, SignalKind, signal};

    pub(super) struct Signals {
        interrupt: Signal,
        terminate: Signal,
        hangup: Signal,
    }

    #[derive(Clone, Copy)]
    pub(super) struct Caught(rustix::process::Signal);

    impl Signals {
        /// Begins to catch them.
        pub(super) fn catch() -> io::Result<Self> {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hangup: signal(SignalKind::hangup())?,
            })
        }

        /// The next one.
        pub(super) async fn next(&mut self) -> Caught {
            use rustix::process::Signal as Number;
            Caught(tokio::select! {
                _ = self.interrupt.recv() => Number::INT,
                _ = self.terminate.recv() => Number::TERM,
                _ = self.hangup.recv() => Number::HUP,
            })
        }
    }

    impl Caught {
        pub(super) fn is_interrupt(self) -> bool {
            self.0 == rustix::process::Signal::INT
        }

        pub(super) fn pass_on(self, child: &Child) {
            let id = child.id().and_then(|id| i32::try_from(id).ok());
            if let Some(id) = id.and_then(rustix::process::Pid::from_raw) {
                // One that has ended just now needs no signal.
                let _ = rustix::process::kill_process(id, self.0);
            }
        }
    }
}

/// Only Unix has signals.
#[cfg(not(unix))]
mod signals {
    use std::io;

    use tokio::process::Child;

    pub(super) struct Signals;

    pub(super) struct Caught;

    impl Signals {
        pub(super) fn catch() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) async fn next(&mut self) -> Caught {
            std::future::pending().await
        }
    }

    impl Caught {
        pub(super) fn is_interrupt(&self) -> bool {
            true
        }

        pub(super) fn pass_on(&self, _: &Child) {}
    }
}
