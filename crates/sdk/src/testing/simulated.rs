//! A transport to a simulated CLI in memory.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_sim::peer::agent::Builder;
use outrigger_sim::peer::{
    self, ClientIo, CommandLine, Exit as PeerExit, Report, Running, Script, Surroundings,
};
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
pub struct Simulated(Arc<Inner>);

struct Inner {
    start: Box<Start>,
    started: Mutex<Vec<Running>>,
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
            let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
            let env = env.iter().map(|(name, value)| (text(name), text(value)));
            let around = Surroundings::new(&launch.cwd, env);
            match CommandLine::read(&launch.args).and_then(|line| line.agent(&around)) {
                Ok(agent) => configure(agent.seed(number as u64)).spawn_in_memory(),
                Err(refusal) => Script::new()
                    .send_raw(refusal.stdout)
                    .complain(refusal.stderr.trim_end())
                    .exit(refusal.code)
                    .spawn_in_memory(),
            }
        })
    }

    /// A CLI that runs the steps of a script; `make` returns one for each CLI.
    pub fn script(make: impl Fn() -> Script + Send + Sync + 'static) -> Self {
        Self::start(move |_, _| make().spawn_in_memory())
    }

    /// Whatever `start` makes of the launch and of the number of those that were started before.
    pub fn start(start: impl Fn(&Launch, usize) -> (ClientIo, Running) + Send + Sync + 'static) -> Self {
        Self::new(move |launch, _, number| start(launch, number))
    }

    fn new(
        start: impl Fn(&Launch, &Variables, usize) -> (ClientIo, Running) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            start: Box::new(start),
            started: Mutex::default(),
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

impl Inner {
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
                process: Box::new(Life(running)),
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
pub(super) struct Life(pub(super) Running);

impl Process for Life {
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

impl Drop for Life {
    fn drop(&mut self) {
        self.0.signal(peer::Signal::Kill);
    }
}
