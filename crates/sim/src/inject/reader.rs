//! The reading end of a stream to which faults are done.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Sleep;

use super::at::FrameDirection;
use super::engine::Action;
use super::schedule::Stage;
use super::wire::Wire;

/// How long a frame waits for those that should come before it, where none come.
const IDLE: Duration = Duration::from_millis(100);

/// How often a slow stream delivers bytes.
const TICK: Duration = Duration::from_millis(10);

/// How much is read at once, in bytes.
const CHUNK: usize = 64 * 1024;

/// A stream to which faults are done; see [`Wire::reader`].
#[derive(Debug)]
pub struct FaultyReader<R> {
    wire: Wire,
    direction: FrameDirection,
    /// `None` once the stream has ended, by itself or by a fault.
    inner: Option<R>,
    buffer: Box<[u8]>,
    /// The current bytes, and how many of them were read.
    current: (Vec<u8>, usize),
    pause: Option<Pin<Box<Sleep>>>,
    idle: Option<Pin<Box<Sleep>>>,
    rate: Option<u64>,
    stalled: bool,
    /// All that was written is in.
    finished: bool,
}

impl<R> FaultyReader<R> {
    pub(super) fn new(wire: Wire, direction: FrameDirection, inner: R) -> Self {
        Self {
            wire,
            direction,
            inner: Some(inner),
            buffer: vec![0; CHUNK].into_boxed_slice(),
            current: (Vec::new(), 0),
            pause: None,
            idle: None,
            rate: None,
            stalled: false,
            finished: false,
        }
    }

    fn end(&mut self) {
        self.inner = None;
        self.current = (Vec::new(), 0);
        self.pause = None;
    }

    /// Takes the next action; false if there is none.
    fn begin(&mut self) -> bool {
        // Not in the `match`, where the lock would be held.
        let next = self.wire.lock().engine(self.direction).next();
        match next {
            None => return false,
            Some(Action::Bytes(bytes)) => self.current = (bytes, 0),
            Some(Action::Pause(time)) => self.pause = Some(Box::pin(tokio::time::sleep(time))),
            Some(Action::Stall) => self.stalled = true,
            Some(Action::Rate(rate)) => self.rate = Some(rate),
            Some(Action::End) => self.end(),
            Some(Action::Over(exit)) => {
                self.end();
                self.wire.end(exit);
            }
            Some(Action::Survive) => {
                self.wire.survive();
                if self.wire.stage() == Stage::Process {
                    super::grandchild::survive_in_runtime();
                }
            }
            Some(Action::Grandchild(grandchild)) => super::grandchild::leave(grandchild),
            Some(Action::Stderr(bytes)) => self.wire.lock().flood(bytes),
        }
        true
    }

    /// Delivers the available bytes.
    fn give(&mut self, into: &mut ReadBuf<'_>) {
        let (bytes, given) = &mut self.current;
        let mut size = into.remaining().min(bytes.len() - *given);
        if let Some(rate) = self.rate {
            let at_once = (u128::from(rate) * TICK.as_millis() / 1000).max(1);
            size = size.min(usize::try_from(at_once).unwrap_or(usize::MAX));
            let time = Duration::from_secs_f64(size as f64 / rate as f64);
            self.pause = Some(Box::pin(tokio::time::sleep(time)));
        }
        into.put_slice(&bytes[*given..*given + size]);
        *given += size;
        if *given == bytes.len() {
            self.current = (Vec::new(), 0);
        }
    }
}

impl<R: AsyncRead + Unpin> FaultyReader<R> {
    /// Reads more; false at the end.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let Some(inner) = &mut self.inner else {
            return Poll::Ready(Ok(false));
        };
        let mut buffer = ReadBuf::new(&mut self.buffer);
        ready!(Pin::new(inner).poll_read(context, &mut buffer))?;
        let read = buffer.filled();
        if read.is_empty() {
            return Poll::Ready(Ok(false));
        }
        if !self.stalled {
            self.wire.lock().feed(self.direction, read);
        }
        Poll::Ready(Ok(true))
    }

    /// Nothing comes until the process has ended.
    fn poll_stalled(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        {
            let mut state = self.wire.lock();
            // Between two plain streams the end of the process is unknown.
            let closed = state.closed[self.direction.index()] && self.wire.stage() == Stage::Streams;
            if state.over || closed {
                drop(state);
                self.end();
                return Poll::Ready(Ok(()));
            }
            state.wait(self.direction.index(), context);
        }
        // A CLI that stands still writes nothing; one that reads nothing lets the pipe fill.
        if self.direction == FrameDirection::Output {
            while ready!(self.poll_more(context))? {}
            self.end();
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for FaultyReader<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            if this.inner.is_none() {
                return Poll::Ready(Ok(()));
            }
            if this.stalled {
                return this.poll_stalled(context);
            }
            if this.wire.ending().is_some() {
                // The process was ended in the other direction.
                this.end();
                return Poll::Ready(Ok(()));
            }
            if let Some(pause) = &mut this.pause {
                if pause.as_mut().poll(context).is_pending() {
                    this.wire.lock().wait(this.direction.index(), context);
                    return Poll::Pending;
                }
                this.pause = None;
            }
            if this.current.1 < this.current.0.len() {
                this.give(into);
                return Poll::Ready(Ok(()));
            }
            {
                let mut state = this.wire.lock();
                if this.direction == FrameDirection::Output && state.is_flooded() && !state.over {
                    state.wait(this.direction.index(), context);
                    return Poll::Pending;
                }
            }
            if this.begin() {
                continue;
            }
            if this.finished {
                this.end();
                return Poll::Ready(Ok(()));
            }
            match this.poll_more(context)? {
                Poll::Ready(true) => this.idle = None,
                Poll::Ready(false) => {
                    this.finished = true;
                    this.wire.lock().finish(this.direction);
                }
                Poll::Pending => {
                    let mut state = this.wire.lock();
                    state.wait(this.direction.index(), context);
                    if !state.engine(this.direction).holds() {
                        return Poll::Pending;
                    }
                    drop(state);
                    let idle = this
                        .idle
                        .get_or_insert_with(|| Box::pin(tokio::time::sleep(IDLE)));
                    ready!(idle.as_mut().poll(context));
                    this.idle = None;
                    this.wire.lock().engine(this.direction).release();
                }
            }
        }
    }
}

/// A CLI's stderr, with floods; see [`Wire::stderr`].
#[derive(Debug)]
pub struct FloodedReader<R> {
    wire: Wire,
    inner: R,
    ended: bool,
}

impl<R> FloodedReader<R> {
    pub(super) fn new(wire: Wire, inner: R) -> Self {
        Self {
            wire,
            inner,
            ended: false,
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for FloodedReader<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut state = this.wire.lock();
        if state.is_flooded() && !this.ended {
            let bytes = state.take_flood(into.remaining().min(CHUNK));
            into.put_slice(&bytes);
            return Poll::Ready(Ok(()));
        }
        state.wait(2, context);
        drop(state);
        let before = into.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(context, into))?;
        if into.filled().len() == before {
            this.ended = true;
            this.wire.lock().no_stderr();
        }
        Poll::Ready(Ok(()))
    }
}

impl<R> Drop for FloodedReader<R> {
    fn drop(&mut self) {
        // Nothing waits for a flood that nobody reads.
        self.wire.lock().no_stderr();
    }
}
