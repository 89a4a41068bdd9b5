//! Ctrl-C and its kin, and the end of the time that `--timeout` allows.

use std::io;
use std::time::Duration;

use outrigger::Session;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::exit::Status;

/// A wish from outside that this program should end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, or the terminal went away.
    Terminate,
    /// The time of `--timeout` is over.
    OutOfTime,
}

/// How long a step of the end may take once the time of `--timeout` is over: the interrupt, then the kill.
const GRACE: Duration = Duration::from_secs(10);

/// The signals, caught from when this is made.
pub(crate) struct Signals {
    /// When the time is over.
    deadline: Option<Instant>,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Begins to catch signals.
    pub(crate) fn catch() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            deadline: None,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next signal. Cancel safe.
    async fn caught(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.hangup.recv() => Signal::Terminate,
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Begins to catch signals.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self { deadline: None })
    }

    /// The next signal. Cancel safe.
    async fn caught(&mut self) -> Signal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::Interrupt,
            // Nothing can be caught here; then nothing is.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Signals {
    /// Counts the end of this time as a signal, too. It comes again, after a grace each time, until the program has ended.
    pub(crate) fn within(mut self, time: Option<Duration>) -> Self {
        // A time that no clock can tell never ends.
        self.deadline = time.and_then(|time| Instant::now().checked_add(time));
        self
    }

    /// The same for a session that ends itself when the time is over: this comes only if that does not help.
    pub(crate) fn later(mut self) -> Self {
        self.deadline = self.deadline.and_then(|deadline| deadline.checked_add(4 * GRACE));
        self
    }

    /// The next signal. Cancel safe.
    pub(crate) async fn next(&mut self) -> Signal {
        let Some(deadline) = self.deadline else {
            return self.caught().await;
        };
        tokio::select! {
            signal = self.caught() => signal,
            () = tokio::time::sleep_until(deadline) => {
                self.deadline = Some(Instant::now() + GRACE);
                Signal::OutOfTime
            }
        }
    }
}

impl Signal {
    /// The exit status that tells of it.
    pub(crate) fn status(self) -> Status {
        match self {
            Self::Interrupt => Status::Interrupted,
            Self::Terminate => Status::Terminated,
            Self::OutOfTime => Status::TimedOut,
        }
    }
}

/// Ends a session's turn when a signal comes, apart from the task that writes the answer (which may wait for a slow reader).
#[derive(Debug, Clone)]
pub(crate) struct Watchman {
    state: watch::Receiver<SignalState>,
}

#[derive(Debug, Clone, Copy, Default)]
struct SignalState {
    signal: Option<Signal>,
    /// The turn has ended, or the session has.
    done: bool,
}

impl Watchman {
    /// Watches over a session: the first signal interrupts the turn (all but Ctrl-C also close the session), the second kills it.
    pub(crate) fn post(mut signals: Signals, session: Session, note: impl Fn(&str) + Send + 'static) -> Self {
        let (tx, rx) = watch::channel(SignalState::default());
        tokio::spawn(async move {
            let first = signals.next().await;
            tx.send_modify(|state| state.signal = Some(first));
            if first == Signal::Interrupt {
                note("interrupting; Ctrl-C again ends it at once");
            } else if first == Signal::OutOfTime {
                note("the time is over; interrupting");
            }
            let gently = async {
                let interrupted = session.interrupt().await;
                if first != Signal::Interrupt || interrupted.is_err() {
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
