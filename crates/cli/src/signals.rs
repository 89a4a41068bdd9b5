//! Ctrl-C and its kin.

use std::io;

use outrigger::Session;
use tokio::sync::watch;

use crate::exit::Status;

/// A wish from outside that this program should end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, or the terminal went away.
    Terminate,
}

/// The signals, caught from when this is made.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Begins to catch them.
    pub(crate) fn catch() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next one. Cancel safe.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.hangup.recv() => Signal::Terminate,
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Begins to catch them.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self {})
    }

    /// The next one. Cancel safe.
    pub(crate) async fn next(&mut self) -> Signal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::Interrupt,
            // Nothing can be caught here; then nothing is.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Signal {
    /// The exit status that tells of it.
    pub(crate) fn status(self) -> Status {
        match self {
            Self::Interrupt => Status::Interrupted,
            Self::Terminate => Status::Terminated,
        }
    }
}

/// Ends a session's turn when a signal comes, apart from the task that writes the answer (which may wait for a slow reader).
#[derive(Debug, Clone)]
pub(crate) struct Watchman {
    state: watch::Receiver<State>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    signal: Option<Signal>,
    /// The turn has ended, or the session has.
    done: bool,
}

impl Watchman {
    /// Watches over a session: the first signal interrupts the turn (SIGTERM also closes the session), the second kills it.
    pub(crate) fn post(mut signals: Signals, session: Session, note: impl Fn(&str) + Send + 'static) -> Self {
        let (tx, rx) = watch::channel(State::default());
        tokio::spawn(async move {
            let first = signals.next().await;
            tx.send_modify(|state| state.signal = Some(first));
            if first == Signal::Interrupt {
                note("interrupting; Ctrl-C again ends it at once");
            }
            let gently = async {
                let interrupted = session.interrupt().await;
                if first == Signal::Terminate || interrupted.is_err() {
                    // How it ended is told by whoever reads the turn.
                    let _ = session.clone().close().await;
                }
            };
            tokio::select! {
                () = gently => {}
                second = signals.next() => {
                    tx.send_modify(|state| state.signal = Some(second));
                    let _ = session.clone().kill().await;
                }
            }
            tx.send_modify(|state| state.done = true);
            // Whatever hangs now hangs in this program.
            signals.next().await;
            std::process::exit(first.status() as i32);
        });
        Self { state: rx }
    }

    /// The status of the signal that came.
    pub(crate) fn status(&self) -> Option<Status> {
        self.state.borrow().signal.map(Signal::status)
    }

    /// Waits until a signal came and did its work. Cancel safe.
    pub(crate) async fn done(&mut self) {
        if self.state.wait_for(|state| state.done).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
