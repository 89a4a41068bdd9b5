//! What all sessions of a host do.

use std::sync::Arc;
use std::time::Duration;

use crate::document::SessionHint;
use crate::error::{Error, Result};
use crate::exchange::Exchange;
use crate::feed::{Feed, FeedItem};
use crate::stream::read;

/// Something about the sessions of a host.
#[derive(Debug)]
#[non_exhaustive]
pub enum OverviewItem {
    /// What a session does now.
    Session(SessionHint),
    /// Each session was told, except for those that are archived. What follows are changes.
    Synced,
    /// The connection broke. With the next one each session is told again: what the reader knows may be old by then.
    Disconnected {
        /// The error of the connection.
        error: Error,
        /// When the next connection is made.
        retry_in: Duration,
    },
    /// A kind of event that this version does not know.
    Other {
        /// The name of the event.
        name: String,
        /// The data of the event.
        data: String,
    },
}

/// What all sessions of a host do: first each of them, then each change. Several changes of one session may come as one. It connects on the first call of
/// [`next`](Self::next), and again whenever the connection breaks.
#[derive(Debug)]
pub struct OverviewStream {
    feed: Feed,
}

impl OverviewStream {
    pub(crate) fn new(exchange: Arc<Exchange>) -> Self {
        Self {
            feed: Feed::new(exchange),
        }
    }

    /// The next item. Without a deadline: sessions may do nothing for days.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    ///
    /// # Errors
    /// When the host refuses for good, was never reached, or is none. After an error the stream has ended.
    pub async fn next(&mut self) -> Result<OverviewItem> {
        let event = match self.feed.next(|| "/v1/stream".to_owned()).await? {
            FeedItem::Broken { error, retry_in } => {
                return Ok(OverviewItem::Disconnected { error, retry_in });
            }
            FeedItem::Event(event) => event,
        };
        match event.name.as_str() {
            "session" => match read(event) {
                Ok(hint) => Ok(OverviewItem::Session(hint)),
                Err(error) => {
                    self.feed.end();
                    Err(error)
                }
            },
            "synced" => Ok(OverviewItem::Synced),
            _ => Ok(OverviewItem::Other {
                name: event.name,
                data: event.data,
            }),
        }
    }
}
