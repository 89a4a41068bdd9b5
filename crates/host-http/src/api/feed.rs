//! Answers that last: who reads them, and what ends them. Server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use outrigger_host::HostError;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{debug, error};

use crate::front_state::FrontState;
use crate::limits::StreamSlot;
use crate::problem::{Problem, Refusal};
use crate::token::TokenRecord;

/// When a client that got no stream may try again.
const RETRY: Duration = Duration::from_secs(5);

/// Where the events come from.
pub(super) trait Source: Send + 'static {
    /// Waits for events, and adds them to `ready`. Dropped, it loses none.
    fn next(&mut self, ready: &mut VecDeque<Bytes>) -> impl Future<Output = Result<(), StreamEnd>> + Send;
}

/// Why an answer ends. The client of a stream resumes from its cursor, if it may.
#[derive(Debug, thiserror::Error)]
pub(super) enum StreamEnd {
    #[error("the token is no longer valid")]
    Token,
    #[error("the front shuts down")]
    Closing,
    #[error("the reader is too slow")]
    Slow,
    #[error("the session is gone")]
    Gone,
    #[error("an event cannot be encoded: {0}")]
    Encoding(serde_json::Error),
    #[error("the host failed: {0}")]
    Host(HostError),
}

pub(super) fn encoded(bytes: Result<Bytes, serde_json::Error>) -> Result<Bytes, StreamEnd> {
    bytes.map_err(StreamEnd::Encoding)
}

/// Who reads an answer that lasts, and has a place for as long as it does.
pub(super) struct Reader {
    shared: Arc<FrontState>,
    token: TokenRecord,
    _slot: StreamSlot,
}

impl Reader {
    pub(super) fn new(shared: Arc<FrontState>, token: TokenRecord) -> Result<Self, Refusal> {
        let slot = shared.streams.enter(token.id, &shared.limits);
        let slot = slot.ok_or_else(|| Refusal::from(Problem::TooManyStreams).retry_after(RETRY))?;
        Ok(Self {
            shared,
            token,
            _slot: slot,
        })
    }

    /// Whether the reader may go on.
    pub(super) fn check(&self) -> Result<(), StreamEnd> {
        if *self.shared.closing.borrow() {
            return Err(StreamEnd::Closing);
        }
        let valid = self.shared.tokens.valid(&self.token.hash, SystemTime::now());
        valid.map(drop).map_err(|_| StreamEnd::Token)
    }
}

/// A stream of `source` for whoever has this token.
pub(super) fn answer(
    shared: Arc<FrontState>,
    token: TokenRecord,
    source: impl Source,
) -> Result<Response, Refusal> {
    let feed = Feed {
        revocations: shared.tokens.revocations(),
        closing: shared.closing.clone(),
        reader: Reader::new(shared, token)?,
        source,
        ready: VecDeque::from([Bytes::from_static(b": stream\n\n")]),
    };
    let body = futures_util::stream::unfold(feed, async |mut feed| {
        let bytes = feed.next().await?;
        Some((Ok::<_, Infallible>(bytes), feed))
    });
    let mut response = Body::from_stream(body).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A client whose stream ended opens another one; the connection would keep its place in vain.
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    // For nginx, which otherwise holds events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// What one client reads. It is polled only when the connection takes more, so that a slow client holds a page at most.
struct Feed<S> {
    reader: Reader,
    source: S,
    revocations: watch::Receiver<()>,
    closing: watch::Receiver<bool>,
    ready: VecDeque<Bytes>,
}

impl<S: Source> Feed<S> {
    /// The next bytes; `None` when the stream ends.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            // Also when bytes are ready: a client with a revoked token does not get the rest of a page.
            let more = match self.reader.check() {
                Err(ended) => Err(ended),
                Ok(()) => match self.ready.pop_front() {
                    Some(bytes) => return Some(bytes),
                    None => self.fill().await,
                },
            };
            match more {
                Ok(()) => {}
                Err(reason @ (StreamEnd::Host(_) | StreamEnd::Encoding(_))) => {
                    error!(%reason, "a stream ended");
                    return None;
                }
                Err(reason) => {
                    debug!(%reason, "a stream ended");
                    return None;
                }
            }
        }
    }

    /// Waits for something to emit, or for a reason to look again whether the stream ends.
    async fn fill(&mut self) -> Result<(), StreamEnd> {
        let expiry = self
            .reader
            .token
            .expires()
            .map(|expires| expires.duration_since(SystemTime::now()).unwrap_or_default());
        tokio::select! {
            biased;
            _ = self.closing.changed() => Ok(()),
            _ = self.revocations.changed() => Ok(()),
            filled = self.source.next(&mut self.ready) => filled,
            () = sleep(expiry.unwrap_or_default()), if expiry.is_some() => Ok(()),
            () = sleep(self.reader.shared.limits.keep_alive) => {
                self.ready.push_back(Bytes::from_static(b": keep-alive\n\n"));
                Ok(())
            }
        }
    }
}
