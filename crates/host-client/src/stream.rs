//! The events of a session.

use std::sync::Arc;
use std::time::Duration;

use outrigger_json::RawJson;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::document::Envelope;
use crate::error::{Error, Result};
use crate::exchange::Exchange;
use crate::feed::{Feed, FeedItem};
use crate::sse::SseEvent;

/// Something that a reader of a session gets.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamItem {
    /// The next durable event. Its `sequence_num` is the new cursor.
    Event(Envelope),
    /// A frame that is not kept, such as a piece of a text (`stream_event`). It is lost when the connection breaks.
    Ephemeral(RawJson),
    /// How far a prompt got (`delivery_update`).
    Delivery {
        /// The id of the prompt.
        event_id: String,
        /// `DELIVERY_STATUS_RECEIVED`, `DELIVERY_STATUS_PROCESSING` or `DELIVERY_STATUS_PROCESSED`.
        status: String,
    },
    /// The events before this one are no longer kept, and the reader has not seen all of them. The stream goes on with it.
    Truncated {
        /// The first event that is kept.
        first_sequence_num: u64,
    },
    /// All that was there when the connection was made has come; what follows is new. It comes once for each connection.
    Synced {
        /// The newest event then.
        seq: u64,
    },
    /// The connection broke, or could not be made. The stream goes on from its cursor after this time. Nothing durable is lost.
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

/// The durable events of a session from a cursor on, each once and in order, and what happens beside them. It connects on the first call of
/// [`next`](Self::next), and again whenever the connection breaks.
///
/// It holds one connection, and one unfinished event. A reader that does not read lets the host wait, which disconnects it after a while; the stream then
/// goes on from its cursor.
#[derive(Debug)]
pub struct SessionStream {
    feed: Feed,
    path: String,
    cursor: u64,
    /// The gap at which the connection before was given up.
    gap: Option<u64>,
}

impl SessionStream {
    pub(crate) fn new(exchange: Arc<Exchange>, path: String, after: u64) -> Self {
        Self {
            feed: Feed::new(exchange),
            path,
            cursor: after,
            gap: None,
        }
    }

    /// The sequence number of the last durable event that was emitted.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The next item. Without a deadline: a session may say nothing for days. While the host is away, it tries again for ever, and tells each time.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    ///
    /// # Errors
    /// When the host refuses for good (no such session, no valid token, …), when it was never reached, when it leaves events out, or when it is none. After
    /// an error the stream has ended.
    pub async fn next(&mut self) -> Result<StreamItem> {
        loop {
            let (path, cursor) = (&self.path, self.cursor);
            let item = self.feed.next(|| format!("{path}?after={cursor}")).await?;
            let read = match item {
                FeedItem::Broken { error, retry_in } => {
                    return Ok(StreamItem::Disconnected { error, retry_in });
                }
                FeedItem::Event(event) => self.take(event),
            };
            match read {
                Ok(Some(item)) => return Ok(item),
                Ok(None) => {}
                // What a proxy lost comes with another connection; what the host lost does not.
                Err(error @ Error::Gap { after, .. }) if self.gap != Some(after) => {
                    self.gap = Some(after);
                    let FeedItem::Broken { error, retry_in } = self.feed.reopen(error) else {
                        continue;
                    };
                    return Ok(StreamItem::Disconnected { error, retry_in });
                }
                Err(error) => {
                    self.feed.end();
                    return Err(error);
                }
            }
        }
    }

    /// The item that an event is; `None` if it came before.
    fn take(&mut self, event: SseEvent) -> Result<Option<StreamItem>> {
        #[derive(Deserialize)]
        struct Ephemeral {
            payload: RawJson,
        }
        #[derive(Deserialize)]
        struct Delivery {
            event_id: String,
            status: String,
        }
        #[derive(Deserialize)]
        struct Truncated {
            first_sequence_num: u64,
        }
        #[derive(Deserialize)]
        struct Synced {
            seq: u64,
        }
        Ok(Some(match event.name.as_str() {
            "client_event" => {
                let event: Envelope = read(event)?;
                let found = event.sequence_num;
                if found <= self.cursor {
                    return Ok(None);
                }
                if found != self.cursor + 1 {
                    return Err(Error::Gap {
                        after: self.cursor,
                        found,
                    });
                }
                self.cursor = found;
                self.feed.progress();
                StreamItem::Event(event)
            }
            "ephemeral_event" => StreamItem::Ephemeral(read::<Ephemeral>(event)?.payload),
            "delivery_update" => {
                let Delivery { event_id, status } = read(event)?;
                StreamItem::Delivery { event_id, status }
            }
            "catch_up_truncated" => {
                let Truncated { first_sequence_num } = read(event)?;
                let removed = first_sequence_num.saturating_sub(1);
                if removed <= self.cursor {
                    return Ok(None);
                }
                self.cursor = removed;
                StreamItem::Truncated { first_sequence_num }
            }
            "synced" => StreamItem::Synced {
                seq: read::<Synced>(event)?.seq,
            },
            _ => StreamItem::Other {
                name: event.name,
                data: event.data,
            },
        }))
    }
}

/// Reads the data of an event.
pub(crate) fn read<T: DeserializeOwned>(event: SseEvent) -> Result<T> {
    let SseEvent { name, data } = event;
    serde_json::from_str(&data)
        .map_err(|error| Error::Unexpected(format!("an event `{name}` that cannot be read: {error}")))
}
