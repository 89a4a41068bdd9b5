//! How much clients may take.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use crate::rate::Rate;

/// What clients may take of the front.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of a body. 1 MiB by default. A larger one is answered with 413.
    pub body_bytes: usize,
    /// How long a body may take to arrive. 30 s by default, then the answer is 408.
    pub body_patience: Duration,
    /// How long the head of a request may take to arrive, and how long a connection without a request is kept. 15 s by default. A TLS
    /// handshake may take as long.
    pub head_patience: Duration,
    /// How long a client may take to read nothing of what waits for it. 30 s by default, then the connection is closed.
    pub write_patience: Duration,
    /// Connections at once. 4096 by default. Further ones wait to be accepted.
    pub connections: usize,
    /// Streams at once, and transcripts that are being read. 2048 by default. A further one is answered with 429.
    pub streams: usize,
    /// Streams and transcripts of one token at once. 64 by default. A further one is answered with 429.
    pub streams_per_token: usize,
    /// Requests of one token that are answered at once. 1000 by default. Further ones are answered with 429 until
    /// [`requests_per_second`](Self::requests_per_second) lets them in. At least 1.
    pub burst: u32,
    /// Requests of one token in a second, on average. 200 by default. At least 1.
    pub requests_per_second: u32,
    /// Requests of one address without a valid token that are answered at once. 100 by default. Further ones are answered with 429 until
    /// [`strangers_per_second`](Self::strangers_per_second) lets them in. Who has a valid token is never concerned. At least 1.
    ///
    /// Of IPv6, the first 64 bits are an address. Behind a proxy, it is the last one in `X-Forwarded-For`, which the proxy has to set: without
    /// it, all clients count as one.
    pub stranger_burst: u32,
    /// Requests of one address without a valid token in a second, on average. 10 by default. At least 1.
    pub strangers_per_second: u32,
    /// Connections of one address at once. 1024 by default. A further one is closed. Does not hold behind a proxy, which has all of them.
    pub connections_per_address: usize,
    /// Events of a page, at most and by default. 256.
    pub page: usize,
    /// How often a stream without events emits a comment, so that neither the client nor a proxy takes it for dead. 15 s by
    /// default; the official client gives up on a silent stream after 45 s.
    pub keep_alive: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 1 << 20,
            body_patience: Duration::from_secs(30),
            head_patience: Duration::from_secs(15),
            write_patience: Duration::from_secs(30),
            connections: 4096,
            streams: 2048,
            streams_per_token: 64,
            burst: 1000,
            requests_per_second: 200,
            stranger_burst: 100,
            strangers_per_second: 10,
            connections_per_address: 1024,
            page: 256,
            keep_alive: Duration::from_secs(15),
        }
    }
}

impl Limits {
    pub(crate) fn of_tokens(&self) -> Rate {
        Rate {
            burst: self.burst,
            per_second: self.requests_per_second,
        }
    }

    pub(crate) fn of_strangers(&self) -> Rate {
        Rate {
            burst: self.stranger_burst,
            per_second: self.strangers_per_second,
        }
    }
}

/// Counts the open streams.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenStreams(Arc<Mutex<HashMap<Uuid, usize>>>);

/// An open stream of a token, until it is dropped.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    open: OpenStreams,
    token: Uuid,
}

impl OpenStreams {
    /// A slot, unless there are as many as the limits allow.
    pub(crate) fn enter(&self, token: Uuid, limits: &Limits) -> Option<StreamSlot> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.values().sum();
        let own = open.get(&token).copied().unwrap_or(0);
        if all >= limits.streams || own >= limits.streams_per_token {
            return None;
        }
        open.insert(token, own + 1);
        drop(open);
        Some(StreamSlot {
            open: self.clone(),
            token,
        })
    }
}

impl OpenStreams {
    pub(crate) fn count(&self) -> usize {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.values().sum()
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.open.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.get_mut(&self.token) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.token);
            }
        }
    }
}
