//! A transport that records the frames of another one, for assertions.

use std::fmt;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use outrigger_protocol::framer::{Framed, LineFramer};
use outrigger_sim::assert::Trace;
use outrigger_sim::peer::{Exit as PeerExit, Line, Report};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::options::Launch;
use crate::transport::{BoxFuture, Connection, Exit, Process, Signal, Signaller, Transport};

/// Keeps what each session of another transport says and hears, as it is, for what [`assert`](mod@super::assert) asks: the real CLI's
/// [`Local`](crate::Local) too.
///
/// ```
/// use outrigger::Policy;
/// use outrigger::testing::assert::{question, tool};
/// use outrigger::testing::{Simulated, Traced};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Or `Traced::new(outrigger::Local::new())`, for a session of the real CLI.
/// let cli = Simulated::agent(|agent| agent);
/// let traced = Traced::new(cli.clone());
/// let options = cli.options().permissions(Policy::read_only()).transport(traced.clone());
/// let session = options.start().await?;
/// session.prompt("%tool Bash {\"command\": \"rm -r /\"}\n%say It may not.").await?.answer().await?;
///
/// // At any time, of what went through so far.
/// let trace = traced.trace();
/// trace.called([tool("Bash")])?;
/// trace.asked([question("Bash").denied()])?;
/// trace.cost_below(0.01)?;
/// trace.turns_below(3)?;
/// trace.all_answered()?;
/// trace.nothing_unknown()?;
/// session.close().await?;
/// # Ok(())
/// # }
/// ```
///
/// All of it is kept in memory, as long as there is a handle. Clones share it.
pub struct Traced<T>(Arc<TracedInner<T>>);

struct TracedInner<T> {
    transport: T,
    sessions: Mutex<Vec<TracedFrames>>,
}

impl<T> Traced<T> {
    /// Listens to what passes through `transport`.
    pub fn new(transport: T) -> Self {
        Self(Arc::new(TracedInner {
            transport,
            sessions: Mutex::default(),
        }))
    }

    /// The transport inside.
    pub fn inner(&self) -> &T {
        &self.0.transport
    }

    /// What went through in the session that was started last, so far; nothing if there was none.
    pub fn trace(&self) -> Trace {
        self.traces().pop().unwrap_or_default()
    }

    /// What went through in each session so far, in the order in which they were started.
    pub fn traces(&self) -> Vec<Trace> {
        self.sessions().iter().map(TracedFrames::trace).collect()
    }

    /// What went through in the session that was started last, so far, and how its process ended; `None` if there was none.
    pub fn report(&self) -> Option<Report> {
        let sessions = self.sessions();
        let kept = sessions.last()?;
        let exit = *kept.exit.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Report::new(kept.trace().lines().iter().cloned(), exit))
    }

    fn sessions(&self) -> MutexGuard<'_, Vec<TracedFrames>> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Traced<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Traced<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traced")
            .field("sessions", &self.sessions().len())
            .finish_non_exhaustive()
    }
}

impl<T: Transport> Transport for Traced<T> {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let inner = self.0.transport.open(launch).await?;
            let kept = TracedFrames::default();
            self.sessions().push(kept.clone());
            Ok(Connection {
                stdin: Box::new(Heard::new(inner.stdin, &kept, true)),
                stdout: Box::new(Heard::new(inner.stdout, &kept, false)),
                stderr: inner.stderr,
                process: Box::new(TracedProcess {
                    process: inner.process,
                    exit: kept.exit,
                }),
            })
        })
    }

    fn is_local(&self) -> bool {
        self.0.transport.is_local()
    }

    fn home(&self) -> Option<&Path> {
        self.0.transport.home()
    }

    fn can_reopen(&self) -> bool {
        self.0.transport.can_reopen()
    }
}

/// A line: when it came, whether the client wrote it, and its text.
type Spoken = (Instant, bool, Vec<u8>);

/// The frames of a session, as undecoded lines.
#[derive(Debug, Clone)]
struct TracedFrames {
    began: Instant,
    lines: Arc<Mutex<Vec<Spoken>>>,
    exit: Arc<Mutex<Option<PeerExit>>>,
}

impl Default for TracedFrames {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            lines: Arc::default(),
            exit: Arc::default(),
        }
    }
}

impl TracedFrames {
    fn lines(&self) -> MutexGuard<'_, Vec<Spoken>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trace(&self) -> Trace {
        let lines = self.lines();
        Trace::new(lines.iter().map(|(at, from_client, text)| {
            let text = String::from_utf8_lossy(text);
            let mut line = Line::of_text(*from_client, &text);
            line.at = at.saturating_duration_since(self.began);
            line
        }))
    }
}

/// A process whose end is kept.
struct TracedProcess {
    process: Box<dyn Process>,
    exit: Arc<Mutex<Option<PeerExit>>>,
}

impl Process for TracedProcess {
    fn id(&self) -> Option<u32> {
        self.process.id()
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async move {
            let exit = self.process.wait().await?;
            let ended = exit
                .code
                .map(PeerExit::Code)
                .or(exit.signal.map(PeerExit::Signal));
            *self.exit.lock().unwrap_or_else(PoisonError::into_inner) = ended;
            Ok(exit)
        })
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        self.process.signal(signal)
    }

    fn signaller(&self) -> Option<Box<dyn Signaller>> {
        self.process.signaller()
    }

    fn killed_for_memory(&self) -> Option<bool> {
        self.process.killed_for_memory()
    }
}

/// A way, and the lines that go it.
struct Heard<S> {
    inner: S,
    kept: TracedFrames,
    from_client: bool,
    framer: LineFramer,
}

impl<S> Heard<S> {
    fn new(inner: S, kept: &TracedFrames, from_client: bool) -> Self {
        Self {
            inner,
            kept: kept.clone(),
            from_client,
            framer: LineFramer::new(LineFramer::DEFAULT_CAP),
        }
    }

    /// Takes what passed; nothing of it is the end.
    fn hear(framer: &mut LineFramer, lines: &mut Vec<Spoken>, from_client: bool, bytes: &[u8]) {
        let now = Instant::now();
        let keep = |framed| {
            let line = match framed {
                Framed::Line(line) => line,
                Framed::Oversized { head, .. } => head,
                _ => return,
            };
            lines.push((now, from_client, line));
        };
        if bytes.is_empty() {
            framer.finish(keep);
        } else {
            framer.feed(bytes, keep);
        }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Heard<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        // Held over the write: an answer to what is written must not stand ahead of it.
        let mut lines = this.kept.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let written = ready!(Pin::new(&mut this.inner).poll_write(cx, bytes))?;
        if let Some(passed @ [_, ..]) = bytes.get(..written) {
            Self::hear(&mut this.framer, &mut lines, this.from_client, passed);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Heard<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let room = buffer.remaining();
        ready!(Pin::new(&mut this.inner).poll_read(cx, buffer))?;
        let passed = buffer.filled().get(before..).unwrap_or_default();
        // A buffer without room says nothing of the end.
        if room > 0 {
            Self::hear(&mut this.framer, &mut this.kept.lines(), this.from_client, passed);
        }
        Poll::Ready(Ok(()))
    }
}
