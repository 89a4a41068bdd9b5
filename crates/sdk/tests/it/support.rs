//! What the tests share.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use outrigger::options::{Auth, Launch, Secret};
use outrigger::transport::{BoxFuture, Connection, Exit, Pipes, Process, Signal, Transport};
use outrigger::{Agent, Options, Session};
use outrigger_sim::peer;

/// A simulated CLI as the session's process.
pub(crate) struct Peer(pub(crate) Arc<peer::Running>);

impl Process for Peer {
    fn id(&self) -> Option<u32> {
        None
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async move {
            Ok(match self.0.exit().await {
                peer::Exit::Code(code) => Exit::with_code(code),
                peer::Exit::Signal(signal) => Exit::with_signal(signal),
            })
        })
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        self.0.signal(match signal {
            Signal::Terminate => peer::Signal::Term,
            _ => peer::Signal::Kill,
        });
        Ok(())
    }
}

/// Starts a simulated CLI as often as it is asked to, which revived sessions need.
pub(crate) struct Again {
    pub(crate) agent: fn() -> peer::agent::Builder,
    /// All that were started.
    pub(crate) started: Arc<std::sync::Mutex<Vec<Arc<peer::Running>>>>,
}

impl Transport for Again {
    fn open<'a>(&'a self, _: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        let (io, running) = (self.agent)()
            .directives()
            .sdk_reads_session_state()
            .spawn_in_memory();
        let running = Arc::new(running);
        self.started.lock().unwrap().push(Arc::clone(&running));
        let connection = Connection {
            stdin: Box::new(io.stdin),
            stdout: Box::new(io.stdout),
            stderr: Some(Box::new(io.stderr)),
            process: Box::new(Peer(running)),
        };
        Box::pin(std::future::ready(Ok(connection)))
    }
}

/// Options that reach a simulated CLI, and that CLI's record.
pub(crate) fn reaching((io, running): (peer::ClientIo, peer::Running)) -> (Options, Arc<peer::Running>) {
    let running = Arc::new(running);
    let pipes = Pipes::with_process(
        io.stdin,
        io.stdout,
        Some(Box::new(io.stderr)),
        Peer(Arc::clone(&running)),
    );
    (
        Agent::builder()
            .auth(Auth::ApiKey(Secret::new("simulated")))
            .transport(pipes),
        running,
    )
}

/// A session with a simulated agent that does what its prompts say.
pub(crate) async fn session(agent: peer::agent::Builder) -> (Session, Arc<peer::Running>) {
    let (options, running) = reaching(agent.directives().sdk_reads_session_state().spawn_in_memory());
    (options.start().await.expect("it starts"), running)
}

/// Longer than anything here takes on a machine that is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
