//! The files of a session: what changed in them, and taking changes back.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use outrigger_host::{DiffFrom, WorkspaceDiff};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::unread::{Rewound, ScopedReply, reply};
use crate::extract::{Body, Caller, InSession, Params};
use crate::front_state::FrontState;
use crate::problem::{Problem, Refusal};

/// Since when.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Since {
    /// Since the last turn began.
    Turn,
    /// Since the first turn began, or since the commit that the worktree was made from.
    Start,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DiffQuery {
    /// Since when; `turn` if it is not there.
    from: Option<Since>,
}

pub(super) async fn diff(
    State(shared): State<Arc<FrontState>>,
    InSession(session): InSession,
    Params(query): Params<DiffQuery>,
) -> Result<Json<WorkspaceDiff>, Refusal> {
    let from = match query.from {
        Some(Since::Start) => DiffFrom::Start,
        Some(Since::Turn) | None => DiffFrom::Turn,
    };
    Ok(Json(shared.host.diff(&session, from).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveQuery {
    /// Whether changes and commits may be lost. A branch with commits stays all the same.
    #[serde(default)]
    force: bool,
}

pub(super) async fn remove(
    State(shared): State<Arc<FrontState>>,
    InSession(session): InSession,
    Params(query): Params<RemoveQuery>,
) -> Result<StatusCode, Refusal> {
    match shared.host.remove_workspace(&session, query.force).await? {
        None => Ok(StatusCode::NO_CONTENT),
        Some(why) => Err(Problem::WorkspaceKept.because(why)),
    }
}

/// To which prompt.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rewind {
    /// The `uuid` of the prompt.
    event_id: Uuid,
    /// Whether nothing is to be changed.
    #[serde(default)]
    dry_run: bool,
}

pub(super) async fn rewind(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
    InSession(session): InSession,
    Body(body): Body<Rewind>,
) -> Result<ScopedReply<Rewound>, Refusal> {
    let answer = shared
        .host
        .rewind(&session, body.event_id, body.dry_run, &*token.label)
        .await?;
    Ok(reply(&token, Rewound(answer)))
}
