//! Reading a session from a cursor, and on.

use std::collections::VecDeque;
use std::sync::Arc;

use outrigger::SessionId;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::error::{HostError, Result};
use crate::event::LogEvent;
use crate::log::{Live, Log};

/// How many events are read from the log at once.
const PAGE: usize = 500;

/// Something that a reader of a session gets.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Delivered {
    /// The next event. Its `seq` is the new cursor.
    Event(Arc<LogEvent>),
    /// A frame of the CLI that is not kept, such as a piece of a text (`stream_event`). It does not move the cursor, and a slow reader does not get
    /// all of them. It never comes behind an event that was written after it.
    Ephemeral(Arc<str>),
    /// All that was there when the subscription began was delivered; what follows is new.
    Synced {
        /// The newest event then.
        seq: u64,
    },
    /// The events after the cursor and up to this one were removed by retention (`catch_up_truncated`). The reader has to get the session anew.
    Truncated {
        /// The last event that was removed.
        seq: u64,
    },
}

/// The events of a session from a cursor on: each once, in order, without gaps. A reader that is slow reads from the log what it missed.
pub struct Subscription {
    log: Arc<dyn Log>,
    session: SessionId,
    live: Receiver<Live>,
    cursor: u64,
    ready: VecDeque<Delivered>,
    /// Up to where the log has to be read.
    behind: Option<u64>,
    /// Whether `Synced` is still due.
    first: bool,
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("session", &self.session)
            .field("cursor", &self.cursor)
            .finish_non_exhaustive()
    }
}

impl Subscription {
    pub(crate) async fn new(log: Arc<dyn Log>, session: SessionId, after: u64) -> Result<Self> {
        // First the ear, then the eye: nothing falls between them.
        let live = log.hub().listen(&session);
        let head = log.session(&session).await?.head_seq;
        if after > head {
            return Err(HostError::Invalid(format!(
                "the cursor {after} is after the newest event, {head}"
            )));
        }
        Ok(Self {
            log,
            session,
            live,
            cursor: after,
            ready: VecDeque::new(),
            behind: Some(head),
            first: true,
        })
    }

    /// The `seq` of the last event that was delivered.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The next item. Waits for as long as there is nothing new.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    ///
    /// # Errors
    /// When the log fails, or the session was deleted. A new subscription from the [cursor](Self::cursor) misses nothing.
    pub async fn next(&mut self) -> Result<Delivered> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                if let Delivered::Event(event) = &ready {
                    self.cursor = event.seq;
                }
                return Ok(ready);
            }
            if let Some(head) = self.behind {
                self.catch_up(head).await?;
                continue;
            }
            match self.live.recv().await {
                // What the frame is a piece of was read from the log.
                Ok(Live::Ephemeral { after, .. }) if after < self.cursor => {}
                Ok(Live::Ephemeral { frame, .. }) => return Ok(Delivered::Ephemeral(frame)),
                Ok(Live::Durable(event)) if event.seq <= self.cursor => {}
                Ok(Live::Durable(event)) if event.seq == self.cursor + 1 => {
                    self.ready.push_back(Delivered::Event(event))
                }
                Ok(Live::Durable(event)) => self.behind = Some(event.seq),
                Err(RecvError::Lagged(_)) => self.behind = Some(u64::MAX),
                Err(RecvError::Closed) => {
                    self.live = self.log.hub().listen(&self.session);
                    self.behind = Some(u64::MAX);
                }
            }
        }
    }

    /// Reads a page, up to the newest event that was there when the reading began.
    async fn catch_up(&mut self, head: u64) -> Result<()> {
        let page = self.log.events(&self.session, self.cursor, PAGE).await?;
        let head = head.min(page.head_seq);
        if page.trimmed_seq > self.cursor {
            self.cursor = page.trimmed_seq;
            self.behind = Some(head);
            self.ready.push_back(Delivered::Truncated {
                seq: page.trimmed_seq,
            });
            return Ok(());
        }
        let last = page.events.last().map_or(self.cursor, |event| event.seq);
        self.ready.extend(page.events.into_iter().map(Delivered::Event));
        self.behind = (last < head).then_some(head);
        if self.behind.is_none() && std::mem::take(&mut self.first) {
            self.ready.push_back(Delivered::Synced { seq: last });
        }
        Ok(())
    }
}
