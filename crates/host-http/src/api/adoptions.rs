//! Sessions that the CLI left on the machine of the host.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use outrigger::SessionId;
use outrigger_host::{Adoptable, SessionRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::entries::Made;
use super::sessions::limit;
use super::unread::{ScopedReply, reply};
use crate::extract::{Body, Caller, Params};
use crate::front_state::FrontState;
use crate::problem::{Problem, Refusal};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AdoptionsQuery {
    /// Only sessions of this directory.
    cwd: Option<PathBuf>,
    /// How many at most.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

/// Sessions that can be adopted, the newest first.
#[derive(Serialize, JsonSchema)]
pub(super) struct AdoptableList {
    sessions: Vec<Adoptable>,
}

pub(super) async fn list(
    State(shared): State<Arc<FrontState>>,
    Params(query): Params<AdoptionsQuery>,
) -> Result<Json<AdoptableList>, Refusal> {
    let limit = limit(query.limit, shared.limits.page)?;
    let sessions = shared.host.adoptable(query.cwd, limit).await?;
    Ok(Json(AdoptableList { sessions }))
}

/// Which session.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Adopt {
    session_id: Uuid,
    /// The directory that the session is stored for; any if it is not there.
    cwd: Option<PathBuf>,
}

pub(super) async fn adopt(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
    Body(body): Body<Adopt>,
) -> Result<(StatusCode, Extension<Made>, ScopedReply<SessionRecord>), Refusal> {
    let id = SessionId::new(&body.session_id.to_string());
    let id = id.map_err(|error| Problem::InvalidRequest.because(error.to_string()))?;
    let session = shared.host.adopt(&id, body.cwd, &*token.label).await?;
    Ok((
        StatusCode::CREATED,
        Extension(Made(session.id.to_string())),
        reply(&token, session),
    ))
}
