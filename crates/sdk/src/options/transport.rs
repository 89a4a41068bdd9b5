//! Transports: how a session reaches its CLI.
//!
//! A [`Transport`] turns a [`Launch`] into byte streams and an exit. [`Local`](crate::Local)
//! starts a process on this machine; your own may start one in a container or over ssh, or connect to a scripted peer in memory.
//! The session code is the same for all of them.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

use super::Launch;
pub use crate::peer::{BoxFuture, Connection, Exit, Process, Signal, Signaller};

/// Starts the peer of a session.
pub trait Transport: Send + Sync + 'static {
    /// Starts the launch and returns its streams.
    ///
    /// The session drops this future at its deadline; then an implementation must not leave a process behind.
    ///
    /// # Errors
    /// When the process does not start. The session reports the error with the command and the working directory.
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>>;

    /// Whether the CLI runs on this machine, so that the SDK can search for it and check the working directory. The default is
    /// false: then the program is `cli_path`, or `claude`, and not checked.
    fn is_local(&self) -> bool {
        false
    }

    /// The home directory of its CLI, where that is another than this program's. The CLI then gets it as `HOME`, without this
    /// program's `CLAUDE_CONFIG_DIR`; what the options set, and a hermetic session, outrank it. The default is `None`.
    fn home(&self) -> Option<&Path> {
        None
    }

    /// Whether the transport can start another process, to revive a session. The default is true.
    fn can_reopen(&self) -> bool {
        true
    }
}

/// A transport over existing streams: a peer in memory, a socket, the pipes of a running process. It serves one session.
///
/// ```
/// use outrigger::transport::Pipes;
///
/// let (ours, theirs) = tokio::io::duplex(64 * 1024);
/// let (stdout, stdin) = tokio::io::split(ours);
/// let transport = Pipes::new(stdin, stdout);
/// # let _ = (theirs, transport);
/// ```
pub struct Pipes(Mutex<Option<Connection>>);

impl Pipes {
    /// Uses these streams. The peer counts as ended once it is signalled; [`with_process`](Self::with_process) observes its real
    /// end.
    pub fn new(
        stdin: impl AsyncWrite + Send + Unpin + 'static,
        stdout: impl AsyncRead + Send + Unpin + 'static,
    ) -> Self {
        Self::with_process(stdin, stdout, None, Unseen::default())
    }

    /// Uses these streams, a process to observe and signal, and its stderr if there is one.
    pub fn with_process(
        stdin: impl AsyncWrite + Send + Unpin + 'static,
        stdout: impl AsyncRead + Send + Unpin + 'static,
        stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
        process: impl Process,
    ) -> Self {
        let connection = Connection {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr,
            process: Box::new(process),
        };
        Self(Mutex::new(Some(connection)))
    }
}

impl fmt::Debug for Pipes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pipes")
    }
}

impl Transport for Pipes {
    fn open<'a>(&'a self, _: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let used = || io::Error::other("these pipes were used by another session");
        Box::pin(std::future::ready(connection.ok_or_else(used)))
    }

    fn can_reopen(&self) -> bool {
        false
    }
}

/// A peer whose end cannot be observed: it counts as ended when it is signalled.
#[derive(Debug, Default)]
struct Unseen {
    ended: bool,
    told: Notify,
}

impl Process for Unseen {
    fn id(&self) -> Option<u32> {
        None
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async move {
            if !self.ended {
                // The signal leaves a permit, so one that came before is not missed.
                self.told.notified().await;
                self.ended = true;
            }
            Ok(Exit::default())
        })
    }

    fn signal(&mut self, _: Signal) -> io::Result<()> {
        self.told.notify_one();
        Ok(())
    }
}
