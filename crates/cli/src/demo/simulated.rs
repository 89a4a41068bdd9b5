//! The agent of the demo where there is no CLI: simulated, with real tools.

use std::io;

use outrigger::options::{Auth, Secret};
use outrigger::transport::{BoxFuture, Exit, Pipes, Process, Signal};
use outrigger::{Agent, Options};
use outrigger_sim::claude::Sandbox;
use outrigger_sim::peer;

/// A simulated CLI as the session's process.
struct Peer(peer::Running);

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

/// Options that reach a simulated agent. It does what the directives in the prompts say.
pub(super) fn options(sandbox: &Sandbox) -> Options {
    let (pipes, running) = peer::Agent::builder()
        .directives()
        .sdk_reads_session_state()
        .partial_messages(true)
        .real_tools(true)
        .cwd(sandbox.project())
        .home(sandbox.home().to_string_lossy())
        .spawn_in_memory();
    let transport = Pipes::with_process(
        pipes.stdin,
        pipes.stdout,
        Some(Box::new(pipes.stderr)),
        Peer(running),
    );
    Agent::builder()
        .auth(Auth::ApiKey(Secret::new("simulated")))
        .cwd(sandbox.project())
        .transport(transport)
}
