//! The events of a session as they become durable.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{debug, error};

use super::reading::{known, stream_cursor};
use super::{SessionId, Shared, sse};
use crate::host::{Host, Subscription};
use crate::limits::StreamSlot;
use crate::problem::{Problem, Refusal};
use crate::token::{Scope, TokenRecord};

/// When a client that got no stream may try again.
const RETRY: Duration = Duration::from_secs(5);

#[derive(Debug, Deserialize)]
pub(super) struct StreamQuery {
    after: Option<String>,
}

pub(super) async fn open<H: Host>(
    State(shared): State<Arc<Shared<H>>>,
    SessionId(session): SessionId,
    query: Result<Query<StreamQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let token = shared.authorize(&headers, [Scope::Read])?;
    let revocations = shared.tokens.revocations();
    let Query(query) = query.map_err(|error| Problem::InvalidRequest.because(error.body_text()))?;
    let cursor = stream_cursor(&headers, query.after.as_deref())?;
    let slot = shared.streams.enter(token.id, &shared.limits);
    let slot = slot.ok_or_else(|| Refusal::from(Problem::TooManyStreams).retry_after(RETRY))?;
    let subscription = shared.host.subscribe(&session).await?;
    // Not after the answer has begun: then there would be no status to tell it by.
    known(cursor, &shared.host.events(&session, cursor, 1).await?)?;
    let watermark = *subscription.head.borrow();
    let closing = shared.closing.clone();
    let stream = EventStream {
        shared,
        session,
        token,
        subscription,
        revocations,
        closing,
        cursor,
        watermark,
        synced: false,
        ready: VecDeque::from([Bytes::from_static(b": stream\n\n")]),
        _slot: slot,
    };
    let body = futures_util::stream::unfold(stream, async |mut stream| {
        let bytes = stream.next().await?;
        Some((Ok::<_, Infallible>(bytes), stream))
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
struct EventStream<H> {
    shared: Arc<Shared<H>>,
    session: String,
    token: TokenRecord,
    subscription: Subscription,
    revocations: watch::Receiver<()>,
    closing: watch::Receiver<bool>,
    /// The last event in `ready`, or that was emitted.
    cursor: u64,
    /// What was the head at the start.
    watermark: u64,
    synced: bool,
    ready: VecDeque<Bytes>,
    _slot: StreamSlot,
}

/// Why a stream ends. The client resumes from its cursor, if it may.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("the token is no longer valid")]
    Token,
    #[error("the front shuts down")]
    Closing,
    #[error("the reader is too slow")]
    Slow,
    #[error("the session is gone")]
    Gone,
    #[error("the host failed")]
    Host,
}

impl<H: Host> EventStream<H> {
    /// The next bytes; `None` when the stream ends.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            // Also when bytes are ready: a client with a revoked token does not get the rest of a page.
            let more = match self.check() {
                Err(ended) => Err(ended),
                Ok(()) => match self.ready.pop_front() {
                    Some(bytes) => return Some(bytes),
                    None => self.fill().await,
                },
            };
            if let Err(reason) = more {
                debug!(session = self.session, cursor = self.cursor, %reason, "a stream ended");
                return None;
            }
        }
    }

    fn check(&self) -> Result<(), Ended> {
        if *self.closing.borrow() {
            return Err(Ended::Closing);
        }
        let valid = self.shared.tokens.valid(&self.token.hash, SystemTime::now());
        valid.map(drop).map_err(|_| Ended::Token)
    }

    /// Waits for something to emit, or for a reason to end. Durable events come first.
    async fn fill(&mut self) -> Result<(), Ended> {
        if !self.synced && self.cursor >= self.watermark {
            self.synced = true;
            self.ready.push_back(encoded(sse::synced(self.watermark))?);
            // What came during the replay is older than what the replay ended with.
            self.subscription.ephemeral = self.subscription.ephemeral.resubscribe();
            return Ok(());
        }
        if self.cursor < *self.subscription.head.borrow_and_update() {
            return self.read_page().await;
        }
        let expiry = self
            .token
            .expires
            .map(|expires| expires.duration_since(SystemTime::now()).unwrap_or_default());
        tokio::select! {
            biased;
            _ = self.closing.changed() => Ok(()),
            _ = self.revocations.changed() => Ok(()),
            changed = self.subscription.head.changed() => changed.map_err(|_| Ended::Gone),
            received = self.subscription.ephemeral.recv() => match received {
                Ok(event) => {
                    self.ready.push_back(encoded(sse::ephemeral(&event))?);
                    Ok(())
                }
                Err(RecvError::Lagged(_)) => Err(Ended::Slow),
                Err(RecvError::Closed) => Err(Ended::Gone),
            },
            () = sleep(expiry.unwrap_or_default()), if expiry.is_some() => Ok(()),
            () = sleep(self.shared.limits.keep_alive) => {
                self.ready.push_back(Bytes::from_static(b": keep-alive\n\n"));
                Ok(())
            }
        }
    }

    async fn read_page(&mut self) -> Result<(), Ended> {
        let limit = self.shared.limits.page;
        let page = self
            .shared
            .host
            .events(&self.session, self.cursor, limit)
            .await
            .map_err(|error| {
                error!(session = self.session, %error, "the events of a stream cannot be read");
                Ended::Host
            })?;
        if self.cursor + 1 < page.first {
            self.ready.push_back(encoded(sse::truncated(page.first))?);
            self.cursor = page.first - 1;
        }
        let before = self.cursor;
        for event in &page.events {
            // A stream that went on over a hole would hide that an event was lost.
            if event.seq != self.cursor + 1 {
                error!(
                    session = self.session,
                    after = self.cursor,
                    found = event.seq,
                    "the log is not dense"
                );
                return Err(Ended::Host);
            }
            self.ready.push_back(encoded(sse::durable(event))?);
            self.cursor = event.seq;
        }
        if self.cursor == before {
            error!(
                session = self.session,
                cursor = self.cursor,
                "the host says there are events, and has none"
            );
            return Err(Ended::Host);
        }
        Ok(())
    }
}

fn encoded(bytes: Result<Bytes, serde_json::Error>) -> Result<Bytes, Ended> {
    bytes.map_err(|error| {
        error!(%error, "an event cannot be encoded");
        Ended::Host
    })
}
