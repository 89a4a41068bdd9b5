//! A transport to a simulated CLI in memory.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_sim::peer::agent::Builder;
use outrigger_sim::peer::{self, ClientIo, CommandLine, Exit as PeerExit, Report, Running, Surroundings};
use outrigger_sim::script::{Flaws, Gates, Progress, Script, ScriptError};
use tempfile::TempDir;

use crate::env::{self, Variables};
use crate::options::{Auth, Launch, Options, Secret};
use crate::start::Agent;
use crate::transport::{BoxFuture, Connection, Exit, Process, Signal, Transport};

/// Starts a simulated CLI in memory, one for each session.
///
/// A session against it behaves as one against the real CLI would: the same messages, in the same order. The prompts script the
/// model ([directives](outrigger_sim::directive)), or the test does.
///
/// ```
/// use outrigger::testing::Simulated;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> outrigger::Result<()> {
/// let cli = Simulated::agent(|agent| agent);
/// let session = cli.options().start().await?;
/// assert_eq!(session.prompt("%say hello").await?.answer().await?.text(), "hello");
/// session.close().await?;
/// assert!(cli.report().is_some_and(|seen| seen.sent_kinds().contains(&"result/success".to_owned())));
/// # Ok(())
/// # }
/// ```
///
/// It is a handle: clones share what was started, so that one can go into the options and another be asked for the
/// [`report`](Self::report). A session needs a tokio runtime with time, and so does this.
///
/// It has a temporary home of its own, in the place of the user's: its sessions are stored there, and the user's settings and
/// sessions are not read. The home is removed with the last clone. `HOME`, `CLAUDE_CONFIG_DIR` and
/// [`hermetic_home`](Options::hermetic_home) name another place.
#[derive(Clone)]
pub struct Simulated(Arc<SimulatedInner>);

struct SimulatedInner {
    start: Box<Start>,
    started: Mutex<Vec<Running>>,
    /// The script that all sessions play, if there is one.
    script: Option<(Script, Progress)>,
    gates: Gates,
    /// An error is reported when a session starts.
    home: io::Result<TempDir>,
}

/// Starts the peer of this number, counted from 0, in this environment.
type Start = dyn Fn(&Launch, &Variables, usize) -> (ClientIo, Running) + Send + Sync;

impl Simulated {
    /// A CLI that follows its flags and its environment. `configure` changes each one: `|agent| agent.replies([…])` scripts the
    /// model, with `|agent| agent` the directives in the prompts do.
    ///
    /// It rejects flags and values that the real one rejects, with the same messages. Nothing outside of it and its home is touched
    /// unless [`real_tools`](Builder::real_tools) says so. Its ids are the same in each run.
    pub fn agent(configure: impl Fn(Builder) -> Builder + Send + Sync + 'static) -> Self {
        Self::new(move |launch, env, number| {
            by_command_line(launch, env, peer::Agent::builder(), |agent| {
                configure(agent.seed(number as u64))
            })
        })
    }

    /// A CLI whose model plays this script. All sessions play it together: a rule that one has used is used, and
    /// [`verdict`](Self::verdict) says in the end what the script did not like. `RealCli` has the same door.
    pub fn script(script: Script) -> Self {
        let (progress, gates) = (Progress::new(), Gates::default());
        let played = (script.clone(), progress.clone(), gates.clone());
        let start = move |launch: &Launch, env: &Variables, number| {
            let (script, progress, gates) = &played;
            let setting = script.setting();
            by_command_line(launch, env, setting, |agent| {
                let seed = script.seed.unwrap_or(number as u64);
                agent.seed(seed).script_in(script, gates, progress)
            })
        };
        Self::playing(start, Some((script, progress)), gates)
    }

    /// A CLI whose model plays the script in this file; see [`script`](Self::script). It waits for nothing, and is `async` so that it
    /// can be exchanged with that of `RealCli`.
    ///
    /// # Cancel safety
    /// The future is ready at its first poll.
    ///
    /// # Errors
    /// When the file cannot be read, or is not a script.
    pub async fn script_file(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        Ok(Self::script(Script::from_file(path)?))
    }

    /// The gates for which the [script](Self::script) waits.
    pub fn gates(&self) -> &Gates {
        &self.0.gates
    }

    /// What the [script](Self::script), or what else plays, did not like so far; what must have happened in the end counts, so ask
    /// once all sessions are closed.
    ///
    /// # Errors
    /// All that was wrong, each with its place in the script.
    pub fn verdict(&self) -> Result<(), Flaws> {
        let reports: Vec<Report> = self.0.started().iter().map(Running::report).collect();
        match &self.0.script {
            Some((script, progress)) => Flaws::none_in(script.judge(progress, &reports)),
            None => {
                let flaws = reports.iter().filter_map(|report| report.content().err());
                Flaws::none_in(flaws.flat_map(|flaws| flaws.0))
            }
        }
    }

    /// A CLI that runs these steps and refuses everything else; `make` returns them for each CLI.
    pub fn steps(make: impl Fn() -> peer::Steps + Send + Sync + 'static) -> Self {
        Self::start(move |_, _| make().spawn_in_memory())
    }

    /// Whatever `start` makes of the launch and of the number of those that were started before.
    pub fn start(start: impl Fn(&Launch, usize) -> (ClientIo, Running) + Send + Sync + 'static) -> Self {
        Self::new(move |launch, _, number| start(launch, number))
    }

    fn new(
        start: impl Fn(&Launch, &Variables, usize) -> (ClientIo, Running) + Send + Sync + 'static,
    ) -> Self {
        Self::playing(start, None, Gates::default())
    }

    fn playing(
        start: impl Fn(&Launch, &Variables, usize) -> (ClientIo, Running) + Send + Sync + 'static,
        script: Option<(Script, Progress)>,
        gates: Gates,
    ) -> Self {
        Self(Arc::new(SimulatedInner {
            start: Box::new(start),
            started: Mutex::default(),
            script,
            gates,
            home: tempfile::Builder::new().prefix("outrigger-simulated-").tempdir(),
        }))
    }

    /// Options that reach it, with a key that is none. The place to set what else the test is about.
    pub fn options(&self) -> Options {
        Agent::builder()
            .auth(Auth::ApiKey(Secret::new("simulated")))
            .transport(self.clone())
    }

    /// The CLIs that were started, in order; a test can observe and signal them.
    pub fn started(&self) -> Vec<Running> {
        self.0.started().clone()
    }

    /// What went through the one that was started last, up to now; `None` if none was.
    pub fn report(&self) -> Option<Report> {
        self.0.started().last().map(Running::report)
    }
}

/// The CLI that a command line wants, over these settings, or what refuses the command line.
fn by_command_line(
    launch: &Launch,
    env: &Variables,
    base: Builder,
    configure: impl FnOnce(Builder) -> Builder,
) -> (ClientIo, Running) {
    let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    let env = env.iter().map(|(name, value)| (text(name), text(value)));
    let around = Surroundings::new(&launch.cwd, env);
    match CommandLine::read(&launch.args).and_then(|line| line.agent_from(base, &around)) {
        Ok(agent) => configure(agent).spawn_in_memory(),
        Err(refusal) => peer::Steps::new()
            .send_raw(refusal.stdout)
            .complain(refusal.stderr.trim_end())
            .exit(refusal.code)
            .spawn_in_memory(),
    }
}

impl SimulatedInner {
    /// The environment of a launch. A transport around this one may not pass [`Transport::home`] on: then the launch has the
    /// user's home, which the simulated CLI must not write to.
    fn env(&self, launch: &Launch) -> io::Result<Variables> {
        let home = self.home.as_ref().map_err(|error| {
            let what = format!("cannot create a home for the simulated CLI: {error}");
            io::Error::new(error.kind(), what)
        })?;
        let mut around = env::Surroundings::of_this_process();
        let users = ["HOME", "CLAUDE_CONFIG_DIR"].iter().any(|name| {
            let inherited = env::get(&launch.env, name);
            inherited.is_some() && inherited == around.var(name)
        });
        around.env.clone_from(&launch.env);
        if users {
            around.move_home(home.path());
        }
        Ok(around.env)
    }

    fn started(&self) -> MutexGuard<'_, Vec<Running>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for Simulated {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let env = self.0.env(launch)?;
            let mut started = self.0.started();
            let (io, running) = (self.0.start)(launch, &env, started.len());
            started.push(running.clone());
            Ok(Connection {
                stdin: Box::new(io.stdin),
                stdout: Box::new(io.stdout),
                stderr: Some(Box::new(io.stderr)),
                process: Box::new(SimulatedProcess(running)),
            })
        })
    }

    fn home(&self) -> Option<&Path> {
        self.0.home.as_ref().ok().map(TempDir::path)
    }
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulated")
            .field("started", &self.0.started().len())
            .finish_non_exhaustive()
    }
}

/// The life of a simulated CLI.
pub(super) struct SimulatedProcess(pub(super) Running);

impl Process for SimulatedProcess {
    fn id(&self) -> Option<u32> {
        None
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async move {
            Ok(match self.0.exit().await {
                PeerExit::Code(code) => Exit::with_code(code),
                PeerExit::Signal(signal) => Exit::with_signal(signal),
            })
        })
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        self.0.signal(match signal {
            Signal::Terminate => peer::Signal::Term,
            Signal::Kill => peer::Signal::Kill,
        });
        Ok(())
    }
}

impl Drop for SimulatedProcess {
    fn drop(&mut self) {
        self.0.signal(peer::Signal::Kill);
    }
}
