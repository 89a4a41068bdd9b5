//! The events of a session as they become durable.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use outrigger_host::{Delivered, HostError, Subscription};
use schemars::JsonSchema;
use serde::Deserialize;

use super::feed::{self, Source, StreamEnd};
use super::reading::{check_cursor, stream_cursor};
use super::sse;
use crate::extract::{Caller, InSession, Params};
use crate::front_state::FrontState;
use crate::problem::Refusal;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct StreamQuery {
    /// The number after which the stream begins, if there is no `Last-Event-ID`.
    #[schemars(with = "Option<u64>")]
    after: Option<String>,
}

pub(super) async fn open(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
    InSession(session): InSession,
    Params(query): Params<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let cursor = stream_cursor(&headers, query.after.as_deref())?;
    // Not after the answer has begun: then there would be no status to tell it by.
    check_cursor(cursor, &shared.host.events(&session, cursor, 1).await?)?;
    let subscription = shared.host.subscribe(&session, cursor).await?;
    feed::answer(shared, token, Events(subscription))
}

struct Events(Subscription);

impl Source for Events {
    async fn next(&mut self, ready: &mut VecDeque<Bytes>) -> Result<(), StreamEnd> {
        match self.0.next().await {
            Ok(Delivered::Event(event)) => {
                // Before the event, which moves the cursor: a stream that ends between the two tells it again, and does not leave it out.
                if let Some(delivery) = sse::delivery(&event) {
                    ready.push_back(feed::encoded(delivery)?);
                }
                ready.push_back(feed::encoded(sse::durable(&event))?);
            }
            Ok(Delivered::Ephemeral(frame)) => ready.push_back(feed::encoded(sse::ephemeral(&frame))?),
            Ok(Delivered::Synced { seq }) => ready.push_back(feed::encoded(sse::synced(Some(seq)))?),
            Ok(Delivered::Truncated { seq }) => ready.push_back(feed::encoded(sse::truncated(seq + 1))?),
            Ok(_) => {}
            Err(HostError::NoSession(_)) => return Err(StreamEnd::Gone),
            Err(error) => return Err(StreamEnd::Host(error)),
        }
        Ok(())
    }
}
