//! The writing end of a stream to which faults are done.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};

use super::at::FrameDirection;
use super::wire::Wire;

/// How much may wait between the writer and the task that passes it on, in bytes: a quarter of a pipe of Linux.
const ROOM: usize = 16 * 1024;

/// How much is passed on at once, in bytes.
const CHUNK: usize = 64 * 1024;

/// A stream to which faults are done; see [`Wire::writer`].
#[derive(Debug)]
pub struct FaultyWriter {
    wire: Wire,
    direction: FrameDirection,
    pipe: DuplexStream,
}

impl FaultyWriter {
    pub(super) fn new<W>(wire: Wire, direction: FrameDirection, inner: W) -> Self
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (pipe, end) = tokio::io::duplex(ROOM);
        let passing = WriterGuard(wire.clone());
        wire.writing(|writing| *writing += 1);
        let mut reader = wire.reader(direction, end);
        tokio::spawn(async move {
            let _passing = passing;
            let mut inner = inner;
            // The writer notices a failure by the end of the pipe.
            let _ = pass_on(&mut reader, &mut inner).await;
        });
        Self {
            wire,
            direction,
            pipe,
        }
    }
}

async fn pass_on(
    reader: &mut super::FaultyReader<DuplexStream>,
    inner: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = reader.read(&mut buffer).await?;
        if read == 0 {
            return inner.shutdown().await;
        }
        inner.write_all(&buffer[..read]).await?;
        inner.flush().await?;
    }
}

/// Counts one writer less at its end, whatever that is.
struct WriterGuard(Wire);

impl Drop for WriterGuard {
    fn drop(&mut self) {
        self.0.writing(|writing| *writing -= 1);
    }
}

impl AsyncWrite for FaultyWriter {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().pipe).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().pipe).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().pipe).poll_shutdown(context)
    }
}

impl Drop for FaultyWriter {
    fn drop(&mut self) {
        self.wire.lock().close(self.direction);
    }
}
