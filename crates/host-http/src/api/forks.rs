//! Sessions that begin as copies of others.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use outrigger::SessionId;
use outrigger_host::{NewFork, SessionRecord};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::entries::Made;
use super::unread::{ScopedReply, reply};
use crate::extract::{Body, Caller, InSession};
use crate::front_state::FrontState;
use crate::problem::{Problem, Refusal};

/// What the fork is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fork {
    /// The id; random if it is not there. The same fork with the same id again is the session that is there.
    id: Option<Uuid>,
    /// The title; that of the other session if it is not there.
    title: Option<String>,
}

pub(super) async fn fork(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
    InSession(session): InSession,
    Body(body): Body<Fork>,
) -> Result<(StatusCode, Extension<Made>, ScopedReply<SessionRecord>), Refusal> {
    let mut new = NewFork::default();
    let id = body.id.map(|id| SessionId::new(&id.to_string())).transpose();
    new.id = id.map_err(|error| Problem::InvalidRequest.because(error.to_string()))?;
    new.title = body.title;
    let fork = shared.host.fork(&session, new, &*token.label).await?;
    Ok((
        StatusCode::CREATED,
        Extension(Made(fork.id.to_string())),
        reply(&token, fork),
    ))
}
