//! The process's stdin: lines are written whole, one after the other, from any task.
//!
//! Lines wait for the writer in queues. If no line waits, a reply is written at once by its own task, which saves a task switch;
//! the writer writes what the pipe does not take of it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::AsyncWrite;
use tokio::sync::mpsc;

use super::OutgoingLine;

type Stdin = Box<dyn AsyncWrite + Send + Unpin>;

#[derive(Default)]
pub(super) struct StdinWriter(Mutex<Pipe>);

#[derive(Default)]
struct Pipe {
    /// `None` before the writer runs, and after the last line.
    stdin: Option<Stdin>,
    /// The current line, and how much of it is written.
    line: OutgoingLine,
    written: usize,
    unflushed: bool,
    /// The error of a write, until the writer takes it.
    failed: Option<io::Error>,
    /// Wakes the writer, if it waits for lines.
    writer: Option<Waker>,
}

impl Pipe {
    fn is_idle(&self) -> bool {
        self.line.is_empty() && !self.unflushed && self.failed.is_none()
    }

    fn begin(&mut self, line: OutgoingLine) {
        (self.line, self.written, self.unflushed) = (line, 0, true);
    }

    /// Writes more of the current line.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Err(error));
        }
        let Some(stdin) = &mut self.stdin else {
            return Poll::Ready(Ok(()));
        };
        while let rest @ [_, ..] = self.line.get(self.written..).unwrap_or_default() {
            match ready!(Pin::new(&mut *stdin).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                more => self.written += more,
            }
        }
        self.line = OutgoingLine::new();
        if self.unflushed {
            ready!(Pin::new(stdin).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }
}

impl StdinWriter {
    fn pipe(&self) -> MutexGuard<'_, Pipe> {
        // The rest of a line stays valid, even if a transport panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens `stdin` for writing, until the returned value is dropped.
    pub(super) fn open(&self, stdin: Stdin) -> OpenStdin<'_> {
        self.pipe().stdin = Some(stdin);
        OpenStdin(self)
    }

    /// Writes a line at once, as far as possible without waiting. If other lines are before it, returns it. It must not overtake
    /// the lines in `queue`.
    pub(super) fn write_now(
        &self,
        line: OutgoingLine,
        queue: &mpsc::Sender<OutgoingLine>,
    ) -> Result<(), OutgoingLine> {
        let Ok(mut pipe) = self.0.try_lock() else {
            return Err(line);
        };
        let none_waits = queue.capacity() == queue.max_capacity();
        if pipe.stdin.is_none() || !pipe.is_idle() || !none_waits {
            return Err(line);
        }
        pipe.begin(line);
        // Only the writer waits for the pipe.
        let mut cx = Context::from_waker(Waker::noop());
        let written = catch_unwind(AssertUnwindSafe(|| pipe.poll_rest(&mut cx)));
        if let Ok(Poll::Ready(Ok(()))) = written {
            return Ok(());
        }
        if let Ok(Poll::Ready(Err(error))) = written {
            pipe.failed = Some(error);
        }
        let writer = pipe.writer.take();
        drop(pipe);
        if let Some(writer) = writer {
            writer.wake();
        }
        Ok(())
    }
}

/// The writer's handle of the pipe, which closes when it is dropped.
pub(super) struct OpenStdin<'o>(&'o StdinWriter);

impl OpenStdin<'_> {
    /// Waits for a line, and takes it out of the queues: replies first.
    pub(super) fn poll_begin(
        &self,
        cx: &mut Context<'_>,
        control: &mut mpsc::Receiver<OutgoingLine>,
        prompts: &mut mpsc::Receiver<OutgoingLine>,
    ) -> Poll<()> {
        // A line is never between a queue and the pipe, where another could overtake it.
        let mut pipe = self.0.pipe();
        if pipe.is_idle() {
            for queue in [control, prompts] {
                // The queues stay open as long as anybody holds the connection, and the writer's task does.
                if let Poll::Ready(Some(line)) = queue.poll_recv(cx) {
                    pipe.begin(line);
                    return Poll::Ready(());
                }
            }
            pipe.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Writes the rest of the current line.
    pub(super) async fn write(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.0.pipe().poll_rest(cx)).await
    }

    /// Takes the pipe, so that no other line begins, and the rest of the last line.
    pub(super) fn take(&self) -> Option<(Stdin, OutgoingLine)> {
        let mut pipe = self.0.pipe();
        let stdin = pipe.stdin.take()?;
        let written = pipe.written.min(pipe.line.len());
        Some((stdin, pipe.line.split_off(written)))
    }
}

impl Drop for OpenStdin<'_> {
    fn drop(&mut self) {
        let closed = std::mem::take(&mut *self.0.pipe());
        drop(closed);
    }
}

#[cfg(test)]
mod tests;
