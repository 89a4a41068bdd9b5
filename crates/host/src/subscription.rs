//! Reading a session from a cursor, and on.

use std::collections::VecDeque;
use std::sync::Arc;

use outrigger::SessionId;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::error::{HostError, Result};
use crate::event::LogEvent;
use crate::log::{Live, SqliteLog};

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
    log: Arc<SqliteLog>,
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
    pub(crate) async fn new(log: Arc<SqliteLog>, session: SessionId, after: u64) -> Result<Self> {
        // First the ear, then the eye: nothing falls between them.
        let live = log.hub().listen(&session);
        let head = log.session(&session).await?.head_seq;
        log.hub().has_read(&session, head);
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
    /// When the log fails; a new subscription from the [cursor](Self::cursor) misses nothing. [`HostError::NoSession`] when the session was deleted, for good:
    /// a session that gets its id is another one.
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
                Err(RecvError::Closed) => return Err(HostError::NoSession(self.session.clone())),
            }
        }
    }

    /// Reads a page, up to the newest event that was there when the reading began.
    async fn catch_up(&mut self, head: u64) -> Result<()> {
        let page = self.log.events(&self.session, self.cursor, PAGE).await?;
        if self.live.is_closed() {
            // The page is of another session, which has got the id.
            return Err(HostError::NoSession(self.session.clone()));
        }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use futures_util::FutureExt as _;
    use serde_json::json;

    use super::*;
    use crate::event::{SessionRecord, SessionState, Source};
    use crate::log::{NewEvent, SqliteLog, Write};

    fn record(id: &SessionId) -> SessionRecord {
        SessionRecord {
            id: id.clone(),
            state: SessionState::Idle,
            cwd: "/".to_owned(),
            worktree: None,
            adopted: false,
            forked_from: None,
            title: None,
            model: None,
            permission_mode: None,
            epoch: 0,
            head_seq: 0,
            trimmed_seq: 0,
            has_history: false,
            pending_approvals: 0,
            created_at: 0,
            created_by: None,
        }
    }

    async fn log_of_a_session() -> (tempfile::TempDir, Arc<SqliteLog>, SessionId) {
        let dir = tempfile::tempdir().unwrap();
        let log = Arc::new(SqliteLog::open(dir.path().join("host.db")).unwrap());
        let id = SessionId::random();
        let create = Write::Create {
            record: Box::new(record(&id)),
            request: String::new(),
        };
        log.write(&id, vec![create]).await.unwrap();
        (dir, log, id)
    }

    /// A reader that catches up from the log has the whole of a text before it reads the pieces of it, which were published before.
    #[tokio::test]
    async fn a_piece_never_comes_behind_the_whole_that_it_is_of() {
        let (_dir, log, id) = log_of_a_session().await;
        let whole = |text: &str| {
            let payload = json!({"type": "assistant", "text": text});
            Write::Append(NewEvent::new(Source::Worker, "assistant", payload.into()))
        };
        let mut reader = Subscription::new(Arc::clone(&log), id.clone(), 0).await.unwrap();
        log.write(&id, vec![whole("before")]).await.unwrap();
        log.hub().publish_ephemeral(&id, "a piece of one");
        log.write(&id, vec![whole("one")]).await.unwrap();
        log.hub().publish_ephemeral(&id, "a piece of two");
        let head = log.session(&id).await.unwrap().head_seq;
        // It was slow: all of this is in the log by now.
        reader.behind = Some(head);
        let mut told = Vec::new();
        while told.last().is_none_or(|last| last != "a piece of two") {
            told.push(match reader.next().await.unwrap() {
                Delivered::Event(event) => event.payload.to_value().unwrap()["text"].to_string(),
                Delivered::Ephemeral(frame) => frame.to_string(),
                Delivered::Synced { .. } => continue,
                Delivered::Truncated { .. } => panic!("nothing was removed"),
            });
        }
        let texts: Vec<_> = told.iter().filter(|text| *text != "null").collect();
        assert_eq!(texts, ["\"before\"", "\"one\"", "a piece of two"]);
    }

    #[tokio::test]
    async fn the_first_reader_gets_pieces_of_a_text_that_has_begun() {
        let (_dir, log, id) = log_of_a_session().await;
        log.hub().publish_ephemeral(&id, "a piece that nobody reads");
        let mut reader = Subscription::new(Arc::clone(&log), id.clone(), 0).await.unwrap();
        while !matches!(reader.next().await.unwrap(), Delivered::Synced { .. }) {}
        log.hub().publish_ephemeral(&id, "a piece");
        let next = reader.next().now_or_never().unwrap().unwrap();
        assert!(
            matches!(&next, Delivered::Ephemeral(frame) if **frame == *"a piece"),
            "{next:?}"
        );
    }
}
