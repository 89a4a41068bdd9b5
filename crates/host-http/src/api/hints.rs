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
    let overview = Overview {
        host: shared.host.clone(),
        hints: shared.host.hints(),
        listing: Some(None),
    };
    feed::answer(shared, token, overview)
}

struct Overview {
    host: SessionHost,
    hints: Hints,
    /// After which session the list goes on; `None` when all were listed.
    listing: Option<Option<SessionId>>,
}

impl Source for Overview {
    async fn next(&mut self, ready: &mut VecDeque<Bytes>) -> Result<(), StreamEnd> {
        let Some(after) = self.listing.take() else {
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
        match sessions.last() {
            Some(last) if sessions.len() == PAGE => self.listing = Some(Some(last.id.clone())),
            _ => ready.push_back(feed::encoded(sse::synced(None))?),
        }
        Ok(())
    }
}
