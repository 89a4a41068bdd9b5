//! Lines in.

use std::collections::VecDeque;

use outrigger_protocol::framer::{Framed, LineFramer};
use tokio::io::{AsyncRead, AsyncReadExt as _};

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
