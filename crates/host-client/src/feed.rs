//! A stream of server-sent events that is opened again when it breaks.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::error::{Error, Result};
use crate::exchange::{Exchange, HostRequest, next_bytes};
use crate::sse::{SseEvent, SseParser};

/// A connection that lasted so long was a good one: the next try does not wait longer for the failures before it.
const STEADY: Duration = Duration::from_secs(30);

type Opening = Pin<Box<dyn Future<Output = Result<Incoming>> + Send>>;

/// What comes next.
pub(crate) enum FeedItem {
    Event(SseEvent),
    /// The connection broke, or could not be made.
    Broken {
        error: Error,
        retry_in: Duration,
    },
}

/// The events of an address, over as many connections as it takes.
pub(crate) struct Feed {
    exchange: Arc<Exchange>,
    state: State,
    /// Connections that failed since the last good one.
    tries: u32,
}

enum State {
    Waiting(Pin<Box<Sleep>>),
    Opening(Opening),
    Open(Box<OpenFeed>),
    Over,
}

struct OpenFeed {
    body: Incoming,
    parser: SseParser,
    /// What the last bytes completed.
    ready: VecDeque<SseEvent>,
    since: Instant,
    /// When bytes came last.
    heard: Instant,
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Waiting(_) => "waiting",
            State::Opening(_) => "opening",
            State::Open(_) => "open",
            State::Over => "over",
        };
        f.write_str(state)
    }
}

impl Feed {
    pub(crate) fn new(exchange: Arc<Exchange>) -> Self {
        Self {
            exchange,
            state: State::Waiting(Box::pin(sleep(Duration::ZERO))),
            tries: 0,
        }
    }

    /// The last connection brought something new.
    pub(crate) fn progress(&mut self) {
        self.tries = 0;
    }

    /// Ends the feed: no later call opens anything.
    pub(crate) fn end(&mut self) {
        self.state = State::Over;
    }

    /// Gives up the connection, and opens another one later.
    pub(crate) fn reopen(&mut self, error: Error) -> FeedItem {
        if let State::Open(open) = &self.state
            && open.since.elapsed() >= STEADY
        {
            self.tries = 0;
        }
        let retry_in = self
            .exchange
            .bounds
            .backoff
            .drawn(self.tries, error.retry_after());
        self.tries = self.tries.saturating_add(1);
        self.state = State::Waiting(Box::pin(sleep(retry_in)));
        FeedItem::Broken { error, retry_in }
    }

    /// The next item. `path` is asked for each time that a connection is made.
    ///
    /// Cancel safe. After an error there are only errors.
    pub(crate) async fn next(&mut self, path: impl Fn() -> String) -> Result<FeedItem> {
        loop {
            let error = match &mut self.state {
                State::Over => return Err(Error::Ended),
                State::Waiting(wait) => {
                    wait.as_mut().await;
                    self.state = State::Opening(open(Arc::clone(&self.exchange), path()));
                    continue;
                }
                State::Opening(opening) => match opening.as_mut().await {
                    Ok(body) => {
                        let now = Instant::now();
                        self.state = State::Open(Box::new(OpenFeed {
                            body,
                            parser: SseParser::new(self.exchange.bounds.event_bytes),
                            ready: VecDeque::new(),
                            since: now,
                            heard: now,
                        }));
                        continue;
                    }
                    Err(error) => error,
                },
                State::Open(open) => {
                    if let Some(event) = open.ready.pop_front() {
                        return Ok(FeedItem::Event(event));
                    }
                    match open.read(self.exchange.bounds.silence).await {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
            };
            if self.exchange.may_pass(&error) {
                return Ok(self.reopen(error));
            }
            self.state = State::Over;
            return Err(error);
        }
    }
}

impl OpenFeed {
    /// Reads the next bytes. What they complete before an error is kept until the connection is given up, which is now: it comes again.
    async fn read(&mut self, silence: Duration) -> Result<()> {
        let left = silence.saturating_sub(self.heard.elapsed());
        match timeout(left, next_bytes(&mut self.body)).await {
            Err(_) => Err(Error::TimedOut(silence)),
            Ok(Err(error)) => Err(error),
            Ok(Ok(None)) => Err(Error::Lost {
                source: "the host ended the stream".into(),
            }),
            Ok(Ok(Some(bytes))) => {
                self.heard = Instant::now();
                self.parser.push(&bytes, &mut self.ready)
            }
        }
    }
}

fn open(exchange: Arc<Exchange>, path: String) -> Opening {
    Box::pin(async move {
        let stream = HeaderValue::from_static("text/event-stream");
        let request = HostRequest::get(path);
        let deadline = exchange.bounds.deadline;
        let response = timeout(deadline, exchange.open(&request, stream)).await;
        let response = response.map_err(|_| Error::TimedOut(deadline))??;
        let kind = response.headers().get(header::CONTENT_TYPE);
        let is_stream = kind
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.trim().to_ascii_lowercase().starts_with("text/event-stream"));
        if !is_stream {
            return Err(Error::Unexpected("it is no stream of events".to_owned()));
        }
        Ok(response.into_body())
    })
}
