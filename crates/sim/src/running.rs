//! A peer that runs, as the client and as the test see it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;
use tokio::io::DuplexStream;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::flaw::{Flaw, Flaws};

/// How much a pipe of [`ClientIo`] holds before its writer has to wait, in bytes: as much as a pipe of Linux.
pub(crate) const PIPE: usize = 64 * 1024;

/// The client's ends of the three pipes.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClientIo {
    /// Write prompts here; drop it to end the input.
    pub stdin: DuplexStream,
    /// Read messages here.
    pub stdout: DuplexStream,
    /// Read complaints here.
    pub stderr: DuplexStream,
}

/// Pipes in memory: the client's ends, and the peer's.
pub(crate) fn pipes() -> (ClientIo, ClientIo) {
    let (stdin, peer_stdin) = tokio::io::duplex(PIPE);
    let (peer_stdout, stdout) = tokio::io::duplex(PIPE);
    let (peer_stderr, stderr) = tokio::io::duplex(PIPE);
    let client = ClientIo {
        stdin,
        stdout,
        stderr,
    };
    let peer = ClientIo {
        stdin: peer_stdin,
        stdout: peer_stdout,
        stderr: peer_stderr,
    };
    (client, peer)
}

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With an exit code.
    Code(i32),
    /// By a signal, of this number.
    Signal(i32),
}

/// A signal that a peer in memory understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// SIGTERM: an [`Agent`](crate::peer::Agent) exits with 143 at once.
    Term,
    /// SIGINT: an [`Agent`](crate::peer::Agent) aborts the turn, writes its result and exits with 0.
    Int,
    /// SIGHUP: an [`Agent`](crate::peer::Agent) exits with 129 at once.
    Hup,
    /// SIGKILL: nothing more is written.
    Kill,
}

impl Signal {
    /// How a peer ends by it that does nothing else about it.
    pub(crate) fn exit(self) -> Exit {
        match self {
            Self::Term => Exit::Code(143),
            Self::Int => Exit::Code(0),
            Self::Hup => Exit::Code(129),
            Self::Kill => Exit::Signal(9),
        }
    }
}

/// One line that went through.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Line {
    /// When, since the peer began, by tokio's clock.
    pub at: std::time::Duration,
    /// Whether the line came from the client.
    pub from_client: bool,
    /// The line; a JSON string if it is not JSON.
    pub json: Value,
}

impl Line {
    /// A line that came at the very beginning.
    pub fn new(from_client: bool, json: Value) -> Self {
        Self {
            at: std::time::Duration::ZERO,
            from_client,
            json,
        }
    }

    /// A line of text that came at the very beginning. Text that is no JSON is kept as a JSON string.
    pub fn of_text(from_client: bool, text: &str) -> Self {
        Self::new(from_client, read_json(text))
    }

    /// `type`, or `type/subtype`, where the subtype of a control request or response is that of its payload and that of
    /// a `command_lifecycle` its state and that of a `stream_event` the event's type.
    pub fn kind(&self) -> String {
        kind(&self.json)
    }
}

/// See [`Line::kind`].
pub(crate) fn kind(json: &Value) -> String {
    let kind = json["type"].as_str().unwrap_or("?");
    let subtype = match kind {
        "control_request" => &json["request"]["subtype"],
        "control_response" => &json["response"]["subtype"],
        "command_lifecycle" => &json["state"],
        "stream_event" => &json["event"]["type"],
        _ => &json["subtype"],
    };
    match subtype.as_str() {
        Some(subtype) => format!("{kind}/{subtype}"),
        None => kind.to_owned(),
    }
}

/// Where a script and its client disagreed.
#[derive(Clone, PartialEq, thiserror::Error)]
#[error("step {step} of the script\n  EXPECTED {expected}\n  RECEIVED {received}")]
pub struct Mismatch {
    /// Which step failed, counted from 1.
    pub step: usize,
    /// The expectation of the step.
    pub expected: String,
    /// What came instead.
    pub received: String,
}

/// Reads well in the output of `unwrap`.
impl fmt::Debug for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What went through a peer, and how it ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// Every line in both directions, in the order in which the peer handled them.
    pub lines: Vec<Line>,
    /// How the peer ended; `None` while it runs.
    pub exit: Option<Exit>,
    /// Where [`Steps`](crate::peer::Steps) and their client disagreed. An [`Agent`](crate::peer::Agent) has no such opinion.
    pub verdict: Result<(), Mismatch>,
    /// What a [`Script`](crate::script::Script) did not like about its client; complete once it has ended.
    pub flaws: Vec<Flaw>,
}

impl Report {
    /// Of a process that was recorded elsewhere, such as the real CLI; without an opinion on its client.
    pub fn new(lines: impl IntoIterator<Item = Line>, exit: Option<Exit>) -> Self {
        Self {
            lines: lines.into_iter().collect(),
            exit,
            verdict: Ok(()),
            flaws: Vec::new(),
        }
    }

    /// Whether the script was content with its client: neither a [`verdict`](Self::verdict) against it nor
    /// [`flaws`](Self::flaws).
    ///
    /// # Errors
    ///
    /// All that was wrong.
    pub fn content(&self) -> Result<(), Flaws> {
        let mismatch = self.verdict.as_ref().err();
        let mismatch = mismatch.map(|mismatch| Flaw::new("script", mismatch.to_string()));
        Flaws::none_in(mismatch.into_iter().chain(self.flaws.iter().cloned()))
    }

    /// The lines from the client.
    pub fn received(&self) -> impl Iterator<Item = &Value> {
        self.lines
            .iter()
            .filter(|line| line.from_client)
            .map(|line| &line.json)
    }

    /// The lines to the client.
    pub fn sent(&self) -> impl Iterator<Item = &Value> {
        self.lines
            .iter()
            .filter(|line| !line.from_client)
            .map(|line| &line.json)
    }

    /// The kinds of the lines from the client, see [`Line::kind`].
    pub fn received_kinds(&self) -> Vec<String> {
        self.received().map(kind).collect()
    }

    /// The kinds of the lines to the client, see [`Line::kind`].
    pub fn sent_kinds(&self) -> Vec<String> {
        self.sent().map(kind).collect()
    }
}

/// A handle to a peer that runs. Dropping all of them changes nothing: the peer lives until its client hangs up.
#[derive(Debug, Clone)]
pub struct Running {
    pub(crate) log: Arc<Log>,
    pub(crate) exit: watch::Receiver<Option<Exit>>,
    pub(crate) signals: mpsc::Sender<Signal>,
}

impl Running {
    /// Waits for the end. Can be called any number of times, and dropped.
    pub async fn exit(&self) -> Exit {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(Exit::Signal(9)),
            // Its task was aborted together with the runtime.
            Err(_) => Exit::Signal(9),
        }
    }

    /// How the peer ended, if it has.
    pub fn exited(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// Sends a signal. One that comes after the end, or behind seven others that were not handled, is lost.
    pub fn signal(&self, signal: Signal) {
        let _ = self.signals.try_send(signal);
    }

    /// What went through so far.
    pub fn report(&self) -> Report {
        let state = self.log.lock();
        Report {
            lines: state.lines.clone(),
            exit: self.exited(),
            verdict: match &state.mismatch {
                Some(mismatch) => Err(mismatch.clone()),
                None => Ok(()),
            },
            flaws: state.flaws.clone(),
        }
    }

    /// Waits for the end and gives the report.
    pub async fn join(self) -> Report {
        self.exit().await;
        self.report()
    }
}

/// The peer's own side of its handle.
#[derive(Debug)]
pub(crate) struct Reins {
    pub(crate) log: Arc<Log>,
    /// Receives how the peer ended.
    pub(crate) exit: watch::Sender<Option<Exit>>,
    pub(crate) signals: mpsc::Receiver<Signal>,
}

/// A handle, and the peer's side of it.
pub(crate) fn reins() -> (Running, Reins) {
    let log = Log::new();
    let (exit_sender, exit) = watch::channel(None);
    let (signals, signal) = mpsc::channel(8);
    let running = Running {
        log: Arc::clone(&log),
        exit,
        signals,
    };
    let reins = Reins {
        log,
        exit: exit_sender,
        signals: signal,
    };
    (running, reins)
}

/// No time that is counted.
const MEASURED: u64 = u64::MAX;

/// What went through.
#[derive(Debug)]
pub(crate) struct Log {
    start: Instant,
    /// The time in milliseconds, where it is counted; `MEASURED` where it is not.
    counted: AtomicU64,
    state: Mutex<LogState>,
    /// Changes with every new line.
    grown: watch::Sender<()>,
    witness: OnceLock<Witness>,
}

/// Is told each flaw at once.
#[derive(Clone)]
pub(crate) struct Witness(pub(crate) Arc<dyn Fn(&Flaw) + Send + Sync>);

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Witness")
    }
}

#[derive(Debug, Default)]
pub(crate) struct LogState {
    pub(crate) lines: Vec<Line>,
    pub(crate) mismatch: Option<Mismatch>,
    pub(crate) flaws: Vec<Flaw>,
}

impl Log {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            counted: AtomicU64::new(MEASURED),
            state: Mutex::default(),
            grown: watch::Sender::new(()),
            witness: OnceLock::new(),
        })
    }

    pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, from_client: bool, json: Value) {
        // Lines of the client have no fixed moment.
        if !from_client {
            self.skip(std::time::Duration::from_millis(1));
        }
        self.lock().lines.push(Line {
            at: self.elapsed(),
            from_client,
            json,
        });
        self.grown.send_replace(());
    }

    /// Waits until this is true of the lines. The condition is checked after each new line.
    pub(crate) async fn until(&self, ready: &(dyn Fn(&[Line]) -> bool + Send + Sync)) {
        let mut grown = self.grown.subscribe();
        loop {
            if ready(&self.lock().lines) {
                return;
            }
            if grown.changed().await.is_err() {
                // The sender lives as long as `self`.
                return;
            }
        }
    }

    pub(crate) fn flaw(&self, flaw: Flaw) {
        if let Some(witness) = self.witness.get() {
            (witness.0)(&flaw);
        }
        self.lock().flaws.push(flaw);
    }

    /// Tells each flaw from here on at once. The first witness stays.
    pub(crate) fn witness(&self, witness: Witness) {
        let _ = self.witness.set(witness);
    }

    /// Notes where a recording and its client disagreed.
    pub(crate) fn disagree(&self, mismatch: Mismatch) {
        self.lock().mismatch = Some(mismatch);
    }

    /// Since the peer began.
    pub(crate) fn elapsed(&self) -> std::time::Duration {
        match self.counted.load(Ordering::Relaxed) {
            MEASURED => self.start.elapsed(),
            counted => std::time::Duration::from_millis(counted),
        }
    }

    /// Counts times from here on, instead of measuring them.
    pub(crate) fn count(&self) {
        self.counted.store(0, Ordering::Relaxed);
    }

    /// Adds to the time, where it is counted.
    pub(crate) fn skip(&self, time: std::time::Duration) {
        if self.counted.load(Ordering::Relaxed) != MEASURED {
            self.counted.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
        }
    }
}

/// A line as JSON; text that is none as a JSON string.
pub(crate) fn read_json(line: &str) -> Value {
    parse(line).unwrap_or_else(|_| Value::String(line.to_owned()))
}

/// Parses as JavaScript does, which accepts lone surrogates. They become replacement characters.
pub(crate) fn parse(line: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(line).or_else(|error| match outrigger_protocol::repair::lone_surrogates(line) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    })
}
