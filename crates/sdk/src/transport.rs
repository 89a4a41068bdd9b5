//! The seam between a session and the process that it talks to.
//!
//! A [`Transport`] turns a [`Launch`] into byte streams and an exit. [`Local`](crate::Local)
//! starts a process on this machine; your own may reach into a container, over ssh, or to a scripted peer in memory. The
//! session code is the same for all of them.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

use crate::options::Launch;

/// A boxed future, as the object-safe traits of this crate return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

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

/// What a [`Transport`] gives a session.
pub struct Connection {
    /// Where the session writes lines. Dropping it must close the peer's stdin.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Where the session reads lines.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Diagnostics, if the transport keeps them apart. Always drained; the tail is kept for errors.
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// The peer's life.
    pub process: Box<dyn Process>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("pid", &self.process.id())
            .finish_non_exhaustive()
    }
}

/// The life of the peer. Dropping it must end the peer at once, without a runtime.
pub trait Process: Send + 'static {
    /// The process id, where there is one on this machine.
    fn id(&self) -> Option<u32>;

    /// Waits for the end and reaps. Must be cancel safe, and answer again after the end.
    ///
    /// # Errors
    /// When the peer's end can't be observed; the session then counts it as ended.
    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>>;

    /// Asks the peer and all that it started to end, in an orderly way or at once.
    ///
    /// # Errors
    /// When the signal can't be delivered. A peer that is gone already is no error.
    fn signal(&mut self, signal: Signal) -> io::Result<()>;

    /// What signals the peer from elsewhere, for a session that is dropped where its runtime does not run: on a runtime of one
    /// thread that nobody drives, none of the session's tasks would end it. `None`, the default, where there is no such way.
    fn signaller(&self) -> Option<Box<dyn Signaller>> {
        None
    }

    /// Whether the system killed processes for lack of memory where the peer ran, since it was started: asked once, after the
    /// end, to tell why. `None`, the default, where that cannot be seen.
    fn killed_for_memory(&self) -> Option<bool> {
        None
    }
}

/// Signals a peer from any thread, without a runtime.
pub trait Signaller: Send + Sync {
    /// As [`Process::signal`].
    ///
    /// # Errors
    /// When the signal can't be delivered. A peer that is gone already is no error.
    fn signal(&self, signal: Signal) -> io::Result<()>;

    /// Whether the peer has ended.
    fn is_gone(&self) -> bool;
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

/// How firmly a process is told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// SIGTERM where there are signals.
    Terminate,
    /// SIGKILL, or what comes closest.
    Kill,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Exit {
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl Exit {
    /// The end with an exit code.
    pub const fn with_code(code: i32) -> Self {
        Self {
            code: Some(code),
            signal: None,
        }
    }

    /// The end by a signal.
    pub const fn with_signal(signal: i32) -> Self {
        Self {
            code: None,
            signal: Some(signal),
        }
    }

    /// Whether it ended with code 0.
    pub fn success(self) -> bool {
        self.code == Some(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, Some(signal)) => write!(f, "signal {signal}"),
            (None, None) => f.write_str("an unknown end"),
        }
    }
}

impl From<std::process::ExitStatus> for Exit {
    fn from(status: std::process::ExitStatus) -> Self {
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let signal = None;
        Self {
            code: status.code(),
            signal,
        }
    }
}
