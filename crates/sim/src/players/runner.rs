//! Runs a program with a player in the place of its CLI, and judges.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::{Child, Command};

use super::recorded::{self, PlayedProcess};
use super::{Scene, Setting, project};
use crate::api::StartError;
use crate::claude::{FetchError, Sandbox};
use crate::flaw::Flaw;
use crate::peer::Exit;
use crate::script::ScriptError;

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
    script: Option<PathBuf>,
    gates: Option<PathBuf>,
    project: Option<PathBuf>,
    aside: bool,
    program: OsString,
    arguments: Vec<OsString>,
}

/// The result of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlayedRun {
    /// How the program ended.
    pub exit: Exit,
    /// What the script expected in vain, or did not expect.
    pub flaws: Vec<Flaw>,
    /// The processes of the player, in the order in which they were started.
    pub processes: Vec<PlayedProcess>,
    /// The directories of the run, which are others each time, and are no longer there.
    pub roots: Vec<PathBuf>,
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
    /// The real CLI cannot be had.
    #[error("the real CLI cannot be had: name the path of one that is there")]
    Fetch(#[from] FetchError),
    /// The CLI that was named cannot be run.
    #[error("the CLI {} cannot be run: name the path of one that can", path.display())]
    Cli {
        /// The path.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// The scripted API does not start.
    #[error(transparent)]
    Api(#[from] StartError),
    /// The program cannot be started.
    #[error("cannot run {program}")]
    Program {
        /// The name of the program.
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

pub(super) fn place(doing: &'static str) -> impl FnOnce(io::Error) -> PlayError {
    move |cause| PlayError::Place { doing, cause }
}

impl Play {
    /// The program with its arguments, with a script file; without one, the prompts say what the model says. `own` is the path of `outrigger-sim`, which becomes the player.
    pub fn new(
        own: impl Into<PathBuf>,
        player: Player,
        script: Option<PathBuf>,
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Self {
        Self {
            own: own.into(),
            player,
            script,
            gates: None,
            project: None,
            aside: false,
            program: program.into(),
            arguments: arguments.into_iter().collect(),
        }
    }

    /// Runs the program to its end. Signals that come meanwhile are passed on; the second one kills the program.
    ///
    /// # Errors
    /// When it cannot be run. What the script does not like is no error, see [`PlayedRun::flaws`].
    pub async fn run(&self) -> Result<PlayedRun, PlayError> {
        let here = env::current_dir().map_err(place("find the working directory"))?;
        let copy = match &self.project {
            Some(directory) => {
                let copy = Sandbox::new().map_err(place("make a place for the program"))?;
                project::copy(directory, &copy.project()).map_err(place("copy the project"))?;
                Some(copy)
            }
            None => None,
        };
        let setting = Setting {
            script: self.script.clone(),
            gates: self.gates.clone(),
            project: copy.as_ref().map(Sandbox::project),
            moved_from: copy.is_none().then(|| here.clone()),
            ..Setting::default()
        };
        let scene = Scene::set(&self.own, &self.player, setting).await?;
        let cwd = copy.as_ref().map_or(here, Sandbox::project);
        let program = self.program.to_string_lossy().into_owned();
        let named = |cause| PlayError::Program { program, cause };
        // Before the program is started, so that a signal finds it caught.
        let mut signals = signals::Signals::catch().map_err(place("catch signals"))?;
        let mut command = self.command(&scene);
        let child = command.current_dir(cwd).spawn().map_err(named)?;
        let status = wait(child, &mut signals)
            .await
            .map_err(place("wait for the program"))?;
        let killed = end_of_players(scene.run())
            .await
            .map_err(place("wait for the processes of the CLI"))?;
        let processes = scene.processes().map_err(place("read what was recorded"))?;
        let flaws = scene.flaws(&processes);
        let mut roots = vec![scene.root().to_owned()];
        roots.extend(copy.map(|copy| copy.path().to_owned()));
        scene.end().await.map_err(place("end the processes of the CLI"))?;
        Ok(PlayedRun {
            exit: exit_of(status),
            flaws,
            processes,
            roots,
            killed,
        })
    }

    /// The program, with the player where it looks for the CLI.
    fn command(&self, scene: &Scene) -> Command {
        let claude = scene.claude();
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).kill_on_drop(true);
        if self.aside {
            command.stdout(io::stderr());
        }
        for name in scene.unset() {
            command.env_remove(name);
        }
        if let Some(home) = env::home_dir() {
            for (name, below) in TOOLS {
                let place = home.join(below);
                if env::var_os(name).is_none() && place.is_dir() {
                    command.env(name, place);
                }
            }
        }
        command.envs(scene.env());
        for name in NAMES {
            command.env(name, claude);
        }
        let path = env::var_os("PATH").unwrap_or_default();
        let bin = claude.parent().map(Path::to_owned);
        let path = env::join_paths(bin.into_iter().chain(env::split_paths(&path)));
        if let Ok(path) = path {
            command.env("PATH", path);
        }
        command
    }
}

setters! { Play:
    /// Sets the directory in which the gates of the script are opened. Without it, only the program knows the directory, which is in
    /// `OUTRIGGER_SIM_GATES`.
    gates(directory: Option<PathBuf>) = directory;

    /// Runs the program in a copy of this directory, in place of the working directory. The CLI works there, too; without it, a CLI
    /// that is started in the working directory works in a temporary directory in place of that.
    project(directory: Option<PathBuf>) = directory;

    /// Writes what the program has for stdout to stderr, so that stdout is the caller's alone.
    stdout_aside(aside: bool) => aside = aside;
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
                    recorded::kill(id);
                }
                // A process that the player left behind may hold its pipes for ever.
                let _ = tokio::time::timeout(GRACE, waited()).await;
            }
        }
    }
    Ok(killed)
}

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

/// Ctrl-C and similar signals.
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
        /// Begins to catch the signals.
        pub(super) fn catch() -> io::Result<Self> {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hangup: signal(SignalKind::hangup())?,
            })
        }

        /// The next signal.
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
