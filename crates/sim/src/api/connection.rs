//! Connections that a script can break.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// Breaks one connection: both directions fail from then on, and the server closes the socket.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    broken: AtomicBool,
    reader: Mutex<Option<Waker>>,
}

impl Breaker {
    pub(super) fn trip(&self) {
        self.broken.store(true, Ordering::SeqCst);
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    fn check(&self) -> io::Result<()> {
        if self.broken.load(Ordering::SeqCst) {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "broken by the script",
            ));
        }
        Ok(())
    }
}

/// The breakers of all connections of a server.
#[derive(Debug, Clone, Default)]
pub(super) struct Breakers(Arc<Mutex<Vec<Weak<Breaker>>>>);

impl Breakers {
    fn add(&self) -> Arc<Breaker> {
        let breaker = Arc::new(Breaker::default());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|breaker| breaker.strong_count() > 0);
        all.push(Arc::downgrade(&breaker));
        breaker
    }

    pub(super) fn trip_all(&self) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for breaker in all.iter().filter_map(Weak::upgrade) {
            breaker.trip();
        }
    }
}

/// Accepts connections and gives each one a breaker.
pub(super) struct BreakableListener {
    pub(super) inner: TcpListener,
    pub(super) breakers: Breakers,
}

impl Listener for BreakableListener {
    type Io = BreakableStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (BreakableStream, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.inner).await;
        // Small deltas must not wait for each other. Using a closed socket fails later.
        let _ = stream.set_nodelay(true);
        let breaker = self.breakers.add();
        (BreakableStream { stream, breaker }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

pub(super) struct BreakableStream {
    stream: TcpStream,
    breaker: Arc<Breaker>,
}

/// Which connection a request came on.
#[derive(Debug, Clone)]
pub(super) struct RequestConnection(pub(super) Arc<Breaker>);

impl Connected<IncomingStream<'_, BreakableListener>> for RequestConnection {
    fn connect_info(stream: IncomingStream<'_, BreakableListener>) -> Self {
        Self(Arc::clone(&stream.io().breaker))
    }
}

impl AsyncRead for BreakableStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // First the waker, then the flag: a trip in between is seen either way.
        *this.breaker.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        this.breaker.check()?;
        Pin::new(&mut this.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for BreakableStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.breaker.check()?;
        Pin::new(&mut this.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.breaker.check()?;
        Pin::new(&mut this.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
