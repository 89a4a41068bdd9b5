//! Lines in, and bytes out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::framer::{Framed, LineFramer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::running::{Log, read_json};

/// Reads lines from a byte stream. Dropping a pending [`next`](Self::next) loses nothing.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    reader: R,
    framer: LineFramer,
    ready: VecDeque<String>,
    ended: bool,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            framer: LineFramer::new(LineFramer::DEFAULT_CAP),
            ready: VecDeque::new(),
            ended: false,
            buffer: vec![0; 64 * 1024],
        }
    }

    /// The next line; `None` once the stream has ended or failed.
    ///
    /// Bytes that are not UTF-8 come as replacement characters, as in the CLI.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(line);
            }
            if self.ended {
                return None;
            }
            // `read` is cancel safe, and its result is kept without another await.
            let got = self.reader.read(&mut self.buffer).await.unwrap_or(0);
            let ready = &mut self.ready;
            let keep = |framed| match framed {
                Framed::Line(line) => ready.push_back(String::from_utf8_lossy(&line).into_owned()),
                Framed::Oversized { head, length } => {
                    ready.push_back(format!("{} … ({length} bytes)", String::from_utf8_lossy(&head)))
                }
                _ => {}
            };
            if got == 0 {
                self.ended = true;
                self.framer.finish(keep);
            } else {
                self.framer.feed(&self.buffer[..got], keep);
            }
        }
    }

    /// Gives a line back, to be read again.
    pub(super) fn put_back(&mut self, line: String) {
        self.ready.push_front(line);
    }
}

/// How many lines may wait for a step that takes them.
const WAITING: usize = 100_000;

/// The pipes of a peer that takes the client's lines one by one. Lines that come while it writes or waits are kept.
#[derive(Debug)]
pub(crate) struct Pipes<I, O, E> {
    stdin: LineReader<I>,
    /// The output; none once it is closed, or the client has gone.
    pub(crate) stdout: Option<O>,
    stderr: E,
    early: VecDeque<String>,
    /// Whether the client's lines are read.
    pub(crate) reading: bool,
    /// Whether the input has ended.
    pub(crate) ended: bool,
    log: Option<Arc<Log>>,
}

/// Why there is no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoLine {
    /// The input has ended.
    End,
    /// Nothing came in time.
    Late,
}

impl<I, O, E> Pipes<I, O, E>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin,
    E: AsyncWrite + Unpin,
{
    pub(crate) fn new(stdin: I, stdout: O, stderr: E) -> Self {
        Self {
            stdin: LineReader::new(stdin),
            stdout: Some(stdout),
            stderr,
            early: VecDeque::new(),
            reading: true,
            ended: false,
            log: None,
        }
    }

    /// Notes lines here as soon as they come.
    pub(crate) fn logged(mut self, log: Arc<Log>) -> Self {
        self.log = Some(log);
        self
    }

    fn came(&mut self, line: Option<String>) -> Option<String> {
        match &line {
            None => self.ended = true,
            Some(line) => {
                if let Some(log) = &self.log {
                    log.add(true, read_json(line));
                }
            }
        }
        line
    }

    /// Whether only the client can tell what comes next.
    pub(crate) fn is_empty(&self) -> bool {
        self.early.is_empty() && !self.ended
    }

    /// The next line; none at the end of the input.
    pub(crate) async fn next(&mut self) -> Option<String> {
        if let Some(line) = self.early.pop_front() {
            return Some(line);
        }
        if self.ended {
            return None;
        }
        let line = self.stdin.next().await;
        self.came(line)
    }

    /// The same, if it comes in time.
    pub(crate) async fn take(&mut self, patience: Duration) -> Result<String, NoLine> {
        let next = tokio::time::timeout(patience, self.next()).await;
        next.map_err(|_| NoLine::Late)?.ok_or(NoLine::End)
    }

    /// Waits for a future and keeps lines that come meanwhile.
    pub(crate) async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            let listen = self.reading && !self.ended && self.early.len() < WAITING;
            tokio::select! {
                biased;
                line = self.stdin.next(), if listen => {
                    let line = self.came(line);
                    self.early.extend(line);
                }
                done = &mut work => return done,
            }
        }
    }

    /// Writes to stdout. A client that has gone takes nothing more; what it does then shows what that means.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let Some(mut stdout) = self.stdout.take() else {
            return;
        };
        let written = self
            .meanwhile(async {
                stdout.write_all(bytes).await?;
                stdout.flush().await
            })
            .await;
        if written.is_ok() {
            self.stdout = Some(stdout);
        }
    }

    /// Writes to stderr. A client that does not read it any more is no reason to stop.
    pub(crate) async fn complain(&mut self, bytes: &[u8]) {
        let _ = self.stderr.write_all(bytes).await;
        let _ = self.stderr.flush().await;
    }
}
