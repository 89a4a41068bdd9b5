//! The process that a session talks to: its streams, its life and its end.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

/// A boxed future, as the object-safe traits of this crate return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a [`Transport`](crate::transport::Transport) gives a session.
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

    /// Ends the peer and all that it started, by SIGTERM or at once.
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

/// The kind of signal that ends a process.
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

    /// Whether the process ended with code 0.
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
