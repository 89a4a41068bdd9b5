//! Faults around any transport.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use outrigger_sim::fault::{Case, FrameDirection, Stage, Unfit, Wire};
use outrigger_sim::peer;

use crate::options::Launch;
use crate::transport::{BoxFuture, Connection, Exit, Process, Signal, Signaller, Transport};

/// A transport with the faults of a [`Schedule`](outrigger_sim::fault::Schedule), between the session and the peer of the inner
/// transport, a simulated CLI or the real one.
///
/// What it does to a real process is limited by what a transport can do: an exit code or a signal is what the session is told,
/// and the process is killed for it; SIGTERM is ignored by not being passed on. A process that the CLI leaves behind takes a
/// CLI that starts one: [`new`](Self::new) refuses that.
///
/// ```
/// use outrigger::testing::{Faulty, Simulated};
/// use outrigger::testing::sim::fault::{At, Effect, Phase, Schedule};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // The CLI dies before the result.
/// let schedule = Schedule::new(1).with(Effect::Signal { signal: 9 }, At::phase(Phase::Result));
/// let cli = Simulated::agent(|agent| agent);
/// let faulty = Faulty::new(cli.clone(), &schedule)?;
/// let session = cli.options().transport(faulty.clone()).start().await?;
/// let error = session.prompt("%say hello").await?.answer().await.unwrap_err();
/// assert!(error.is_closed(), "{error}, {}", faulty.story());
/// # Ok(())
/// # }
/// ```
///
/// Each connection that is opened has the whole schedule before it. It is a handle: clones share what was struck.
pub struct Faulty<T> {
    inner: Arc<T>,
    case: Case,
}

impl<T> Faulty<T> {
    /// Has these faults strike what goes over `inner`. For a test under [`chaos`](fn@outrigger_sim::fault::chaos), hand it the case.
    ///
    /// # Errors
    /// When a fault takes more than a transport.
    pub fn new(inner: T, case: impl Into<Case>) -> Result<Self, Unfit> {
        let case = case.into();
        case.schedule().check(Stage::Transport)?;
        Ok(Self {
            inner: Arc::new(inner),
            case,
        })
    }

    /// The transport inside.
    pub fn inner(&self) -> &T {
        &self.inner
    }

    /// The faults, their seed, and what was struck so far: for the text of a failure.
    pub fn story(&self) -> String {
        self.case.story()
    }

    /// What was struck so far.
    pub fn strikes(&self) -> Vec<outrigger_sim::fault::Strike> {
        self.case.strikes()
    }
}

impl<T> Clone for Faulty<T> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            case: self.case.clone(),
        }
    }
}

impl<T> fmt::Debug for Faulty<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty")
            .field("case", &self.case)
            .finish_non_exhaustive()
    }
}

impl<T: Transport> Transport for Faulty<T> {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let wire = self.case.wire(Stage::Transport).map_err(io::Error::other)?;
            let inner = self.inner.open(launch).await?;
            let stderr = inner
                .stderr
                .map(|stderr| -> Box<dyn tokio::io::AsyncRead + Send + Unpin> {
                    Box::new(wire.stderr(stderr))
                });
            Ok(Connection {
                stdin: Box::new(wire.writer(FrameDirection::Input, inner.stdin)),
                stdout: Box::new(wire.reader(FrameDirection::Output, inner.stdout)),
                stderr,
                process: Box::new(FaultyProcess {
                    inner: inner.process,
                    wire,
                    ended: None,
                }),
            })
        })
    }

    fn is_local(&self) -> bool {
        self.inner.is_local()
    }

    fn home(&self) -> Option<&Path> {
        self.inner.home()
    }

    fn can_reopen(&self) -> bool {
        self.inner.can_reopen()
    }
}

/// The life of the process inside, as far as the faults let it be.
struct FaultyProcess {
    inner: Box<dyn Process>,
    wire: Wire,
    ended: Option<Exit>,
}

impl Process for FaultyProcess {
    fn id(&self) -> Option<u32> {
        self.inner.id()
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async move {
            if let Some(ended) = self.ended {
                return Ok(ended);
            }
            let exit = tokio::select! {
                biased;
                exit = self.inner.wait() => {
                    let exit = exit?;
                    self.wire.ending().map_or(exit, exit_of)
                }
                ending = self.wire.ended() => {
                    // It is not told from the fault's own end, as it would not be if it had done this itself.
                    self.inner.signal(Signal::Kill)?;
                    self.inner.wait().await?;
                    exit_of(ending)
                }
            };
            self.ended = Some(exit);
            self.wire.over();
            Ok(exit)
        })
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        if signal == Signal::Terminate && self.wire.ignores_term() {
            return Ok(());
        }
        self.inner.signal(signal)
    }

    fn signaller(&self) -> Option<Box<dyn Signaller>> {
        let inner = self.inner.signaller()?;
        let wire = self.wire.clone();
        Some(Box::new(FaultySignaller { inner, wire }))
    }

    fn killed_for_memory(&self) -> Option<bool> {
        self.inner.killed_for_memory()
    }
}

impl Drop for FaultyProcess {
    fn drop(&mut self) {
        // Nothing may stand still for a process that is gone.
        self.wire.over();
    }
}

fn exit_of(exit: peer::Exit) -> Exit {
    match exit {
        peer::Exit::Code(code) => Exit::with_code(code),
        peer::Exit::Signal(signal) => Exit::with_signal(signal),
    }
}

struct FaultySignaller {
    inner: Box<dyn Signaller>,
    wire: Wire,
}

impl Signaller for FaultySignaller {
    fn signal(&self, signal: Signal) -> io::Result<()> {
        if signal == Signal::Terminate && self.wire.ignores_term() {
            return Ok(());
        }
        self.inner.signal(signal)
    }

    fn is_gone(&self) -> bool {
        self.inner.is_gone()
    }
}
