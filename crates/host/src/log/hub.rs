//! Who hears of what was committed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger::SessionId;
use serde::Serialize;
use tokio::sync::broadcast;

use crate::event::{LogEvent, SessionRecord, SessionState};

/// How many events of a session wait in memory for each reader. A slower reader reads them from the log.
const SESSION_EVENTS: usize = 256;

/// So many sessions may be in the table before those that nobody reads are looked for. A session there takes the room for its events.
const SESSIONS: usize = 64;

/// How many hints wait for each reader.
const HINTS: usize = 1024;

/// Something new of a session.
#[derive(Debug, Clone)]
pub(crate) enum Live {
    Durable(Arc<LogEvent>),
    /// The frame of the CLI, which is not kept.
    Ephemeral {
        frame: Arc<str>,
        /// The durable event that was the newest when it was published. A reader that is behind that one already has what the frame is a piece of.
        after: u64,
    },
}

/// A session has news. Whoever wants them reads the session.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct Hint {
    /// The session.
    #[schemars(with = "uuid::Uuid")]
    pub session_id: SessionId,
    /// What the session does.
    pub state: SessionState,
    /// The session's newest event; 0 if the session was deleted.
    pub head_seq: u64,
    /// How many approvals of the session are pending.
    pub pending_approvals: u64,
}

impl Hint {
    /// The session was deleted. Another one may get its id.
    pub(crate) fn gone(session: &SessionId) -> Self {
        Self {
            session_id: session.clone(),
            state: SessionState::Ended,
            head_seq: 0,
            pending_approvals: 0,
        }
    }

    /// Whether the session was deleted.
    pub fn is_gone(&self) -> bool {
        self.head_seq == 0
    }
}

impl From<&SessionRecord> for Hint {
    fn from(session: &SessionRecord) -> Self {
        Self {
            session_id: session.id.clone(),
            state: session.state,
            head_seq: session.head_seq,
            pending_approvals: session.pending_approvals,
        }
    }
}

/// Publishes committed events to the readers in this process.
#[derive(Debug)]
pub struct Hub {
    sessions: Mutex<Sessions>,
    hints: broadcast::Sender<Hint>,
}

/// The sessions that somebody reads, or has read.
#[derive(Debug)]
struct Sessions {
    readers: HashMap<SessionId, Readers>,
    /// With so many, those that nobody reads are removed.
    most: usize,
}

/// The readers of a session.
#[derive(Debug)]
struct Readers {
    live: broadcast::Sender<Live>,
    /// The newest durable event that they were sent, or that one of them has read in the log; 0 before the first.
    head: u64,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            sessions: Mutex::new(Sessions {
                readers: HashMap::new(),
                most: SESSIONS,
            }),
            hints: broadcast::Sender::new(HINTS),
        }
    }
}

impl Hub {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is published of a session. Closed when the session was deleted, and not before.
    pub(crate) fn listen(&self, session: &SessionId) -> broadcast::Receiver<Live> {
        let mut sessions = self.sessions();
        if sessions.readers.len() >= sessions.most {
            // Most of them publish nothing any more, which would show that nobody listens.
            sessions
                .readers
                .retain(|_, readers| readers.live.receiver_count() > 0);
            sessions.most = SESSIONS.max(2 * sessions.readers.len());
        }
        sessions
            .readers
            .entry(session.clone())
            .or_insert_with(|| Readers {
                live: broadcast::Sender::new(SESSION_EVENTS),
                head: 0,
            })
            .live
            .subscribe()
    }

    /// A reader that listens has read that this is the newest durable event. It was published before the reader listened, or is about to be: what is
    /// published from now on is no piece of it.
    pub(crate) fn has_read(&self, session: &SessionId, head: u64) {
        if let Some(readers) = self.sessions().readers.get_mut(session) {
            readers.head = readers.head.max(head);
        }
    }

    pub(crate) fn publish(&self, event: &Arc<LogEvent>) {
        self.send(&event.session_id, |head| {
            *head = event.seq;
            Live::Durable(Arc::clone(event))
        });
    }

    /// Passes on a frame that is not kept.
    pub(crate) fn publish_ephemeral(&self, session: &SessionId, frame: &str) {
        self.send(session, |head| Live::Ephemeral {
            frame: frame.into(),
            after: *head,
        });
    }

    fn send(&self, session: &SessionId, live: impl FnOnce(&mut u64) -> Live) {
        let mut sessions = self.sessions();
        if let Some(readers) = sessions.readers.get_mut(session)
            && readers.live.send(live(&mut readers.head)).is_err()
        {
            // Nobody listens any more.
            sessions.readers.remove(session);
        }
    }

    /// Tells of a session. If it was deleted, its readers are at their end.
    pub(crate) fn hint(&self, hint: Hint) {
        if hint.is_gone() {
            self.sessions().readers.remove(&hint.session_id);
        }
        // Without readers nobody needs it.
        drop(self.hints.send(hint));
    }

    /// The hints from now on.
    pub fn hints(&self) -> Hints {
        Hints(self.hints.subscribe())
    }
}

/// Hints about all sessions of a host.
#[derive(Debug)]
pub struct Hints(broadcast::Receiver<Hint>);

impl Hints {
    /// The next hint. `None` if the reader was too slow and hints were dropped: it has to list the sessions anew, and goes on.
    ///
    /// # Cancel safety
    /// No hint is lost.
    pub async fn next(&mut self) -> Option<Hint> {
        match self.0.recv().await {
            Ok(hint) => Some(hint),
            Err(broadcast::error::RecvError::Lagged(_)) => None,
            // The log is closed: there is nothing to come.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn sessions_that_nobody_reads_any_more_take_no_memory_and_the_others_are_read_on() {
        let hub = Hub::default();
        let (read, mut readers): (Vec<_>, Vec<_>) = (0..100)
            .map(|_| SessionId::random())
            .map(|id| (id.clone(), hub.listen(&id)))
            .unzip();
        for _ in 0..10_000 {
            drop(hub.listen(&SessionId::random()));
        }
        let kept = hub.sessions().readers.len();
        assert!(kept <= 2 * read.len(), "{kept}");
        for (session, reader) in read.iter().zip(&mut readers) {
            hub.publish_ephemeral(session, "a piece");
            assert!(matches!(reader.try_recv().unwrap(), Live::Ephemeral { .. }));
        }
        drop(readers);
        for _ in 0..200 {
            drop(hub.listen(&SessionId::random()));
        }
        assert!(hub.sessions().readers.len() <= SESSIONS);
    }
}
