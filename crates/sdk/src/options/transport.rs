//! The seam between a session and the process that it talks to.
//!
//! A [`Transport`] turns a [`Launch`] into byte streams and an exit. [`Local`](crate::Local)
//! starts a process on this machine; your own may reach into a container, over ssh, or to a scripted peer in memory. The
//! session code is the same for all of them.

use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

use super::Launch;
pub use crate::peer::{BoxFuture, Connection, Exit, Process, Signal, Signaller};

/// Starts the peer of a session.
pub trait Transport: Send + Sync + 'static {
    /// Starts what `launch` describes and returns its streams.
    ///
    /// The session drops this future when starting takes longer than its deadline; an implementation must not leave a
    /// process behind then.
    ///
    /// # Errors
    /// When it cannot be started. The session reports the error with the command and the working directory.
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>>;

    /// Whether the CLI runs on this machine, so that it can be looked for and the working directory checked before it is
    /// started. False unless said otherwise: the program is then `cli_path`, or `claude`, taken as it is.
    fn is_local(&self) -> bool {
        false
    }

    /// Whether it can start another peer, to go on with a session whose peer ended. True unless said otherwise.
    fn can_reopen(&self) -> bool {
        true
    }
}

/// A transport over streams that are there already: a peer in memory, a socket, the pipes of a process that somebody else
/// started. Good for one session.
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
    /// Speaks over these streams. The peer counts as ended once it is signalled; to have its real end seen, use
    /// [`with_process`](Self::with_process).
    pub fn new(
        stdin: impl AsyncWrite + Send + Unpin + 'static,
        stdout: impl AsyncRead + Send + Unpin + 'static,
    ) -> Self {
        Self::with_process(stdin, stdout, None, Unseen::default())
    }

    /// Speaks over these streams, with a process to be watched and signalled, and its stderr if there is one.
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

/// A peer whose end can't be seen: it ends when it is told to.
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
