//! What all sessions do.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use outrigger::SessionId;
use outrigger_host::log::{Hint, Hints};
use outrigger_host::{SessionHost, SessionState};

use super::feed::{self, Source, StreamEnd};
use super::sse;
use crate::extract::Caller;
use crate::front_state::FrontState;
use crate::problem::Refusal;

/// How many sessions are read at once.
const PAGE: usize = 500;

pub(super) async fn open(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
) -> Result<Response, Refusal> {
    let overview = Overview::new(shared.host.clone());
    feed::answer(shared, token, overview)
}

struct Overview {
    host: SessionHost,
    hints: Hints,
    /// After which session the list goes on; `None` when all were listed.
    listing: Option<Option<SessionId>>,
}

impl Overview {
    fn new(host: SessionHost) -> Self {
        Self {
            hints: host.hints(),
            host,
            listing: Some(None),
        }
    }
}

impl Source for Overview {
    async fn next(&mut self, ready: &mut VecDeque<Bytes>) -> Result<(), StreamEnd> {
        // It moves on only when a page was read: a stream that has something else to do drops this in the middle, and asks again.
        let Some(after) = &self.listing else {
            return match self.hints.next().await {
                Some(hint) => {
                    ready.push_back(feed::encoded(sse::session(&hint))?);
                    Ok(())
                }
                // It comes back, and is told all sessions anew.
                None => Err(StreamEnd::Slow),
            };
        };
        let sessions = self
            .host
            .sessions(after.as_ref(), PAGE)
            .await
            .map_err(StreamEnd::Host)?;
        for session in sessions
            .iter()
            .filter(|session| session.state != SessionState::Ended)
        {
            ready.push_back(feed::encoded(sse::session(&Hint::from(session)))?);
        }
        self.listing = match sessions.last() {
            Some(last) if sessions.len() == PAGE => Some(Some(last.id.clone())),
            _ => {
                ready.push_back(feed::encoded(sse::synced(None))?);
                None
            }
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a test fails by panicking"
    )]

    use std::time::Duration;

    use outrigger::testing::Simulated;
    use outrigger_host::log::SqliteLog;
    use outrigger_host::{HostPolicy, NewSession};

    use super::*;

    #[tokio::test]
    async fn a_list_that_is_cut_off_in_the_middle_is_told_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let cli = Simulated::agent(|agent| agent.directives());
        let policy = HostPolicy::new(cli.options(), [dir.path()]);
        let log = SqliteLog::open(dir.path().join("host.db")).unwrap();
        let host = SessionHost::open(policy, log).await.unwrap();
        let session = host.create(NewSession::new(dir.path()), "ada").await.unwrap();
        let mut overview = Overview::new(host);
        let mut ready = VecDeque::new();
        // What a revocation and a keep-alive do while the log is read.
        let told = async {
            tokio::select! {
                biased;
                told = overview.next(&mut ready) => told,
                () = std::future::ready(()) => overview.next(&mut ready).await,
            }
        };
        let told = tokio::time::timeout(Duration::from_secs(60), told).await;
        told.expect("the list goes on").unwrap();
        let told: Vec<_> = ready.iter().map(|bytes| String::from_utf8_lossy(bytes)).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains(session.id.as_str()), "{told:?}");
        assert!(told[1].starts_with("event: synced\n"), "{told:?}");
    }
}
