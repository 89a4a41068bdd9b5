//! Sessions as resources.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use outrigger::SessionId;
use outrigger_host::log::Update;
use outrigger_host::{NewSession, NewWorktree, SessionRecord, SessionState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::entries::Made;
use super::unread::{ScopedReply, reply};
use crate::extract::{Body, Caller, InSession, Params, single};
use crate::front_state::FrontState;
use crate::problem::{Problem, Refusal};
use crate::token::TokenRecord;

/// The longest `Idempotency-Key`, in bytes.
const KEY: usize = 255;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionsQuery {
    /// The id after which the page begins.
    after: Option<String>,
    /// How many at most.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

/// A page of sessions, in the order of their ids.
#[derive(Serialize, JsonSchema)]
pub(super) struct SessionPage {
    sessions: Vec<SessionRecord>,
    /// The id after which the next page begins; null on the last page.
    next: Option<String>,
}

/// What a new session is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    /// The id; random if it is not there.
    id: Option<Uuid>,
    /// The working directory, which the operator has to allow.
    cwd: PathBuf,
    title: Option<String>,
    /// The model, if the operator lets clients choose it.
    model: Option<String>,
    /// The permission mode, if the operator lets clients choose it.
    permission_mode: Option<String>,
    /// A git worktree to be made for it, of the repository that `cwd` is in.
    worktree: Option<CreateWorktree>,
}

/// A git worktree for a new session.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateWorktree {
    /// The name of the new branch; made from the session's id if it is not there.
    branch: Option<String>,
    /// The commit that the branch begins at; `HEAD` if it is not there.
    base: Option<String>,
}

/// How many items of a page a client gets.
pub(super) fn limit(asked: Option<usize>, most: usize) -> Result<usize, Refusal> {
    match asked {
        None => Ok(most),
        Some(0) => Err(Problem::InvalidRequest.because("`limit` is a number from 1 on")),
        Some(limit) => Ok(limit.min(most)),
    }
}

pub(super) async fn list(
    State(shared): State<Arc<FrontState>>,
    Params(query): Params<SessionsQuery>,
) -> Result<Json<SessionPage>, Refusal> {
    let limit = limit(query.limit, shared.limits.page)?;
    let after = query.after.as_deref().map(SessionId::new).transpose();
    let after = after.map_err(|error| Problem::InvalidRequest.because(format!("`after`: {error}")))?;
    let mut sessions = shared.host.sessions(after.as_ref(), limit + 1).await?;
    let has_more = sessions.len() > limit;
    sessions.truncate(limit);
    let last = sessions.last().map(|session| session.id.as_str().to_owned());
    Ok(Json(SessionPage {
        sessions,
        next: last.filter(|_| has_more),
    }))
}

/// What the host knows a creation under this key by: a repetition creates the same again, which the log knows.
fn id_of_key(token: &TokenRecord, headers: &HeaderMap) -> Result<Option<Uuid>, Refusal> {
    let Some(key) = single(headers, "idempotency-key")? else {
        return Ok(None);
    };
    if key.is_empty() || key.len() > KEY {
        return Err(Problem::InvalidRequest.because(format!("`Idempotency-Key` has 1 to {KEY} bytes")));
    }
    let hash = Sha256::new()
        .chain_update(token.id)
        .chain_update(key.as_bytes())
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    Ok(Some(uuid::Builder::from_random_bytes(bytes).into_uuid()))
}

pub(super) async fn create(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
    headers: HeaderMap,
    Body(body): Body<Create>,
) -> Result<(StatusCode, Extension<Made>, ScopedReply<SessionRecord>), Refusal> {
    let by_key = id_of_key(&token, &headers)?;
    if body.id.is_some() && by_key.is_some() {
        return Err(Problem::InvalidRequest.because("an `id` and an `Idempotency-Key` exclude each other"));
    }
    let mut new = NewSession::new(body.cwd);
    let id_of = |id: Option<Uuid>| {
        let id = id.map(|id| SessionId::new(&id.to_string())).transpose();
        id.map_err(|error| Problem::InvalidRequest.because(error.to_string()))
    };
    (new.id, new.key) = (id_of(body.id)?, id_of(by_key)?);
    new.title = body.title;
    new.model = body.model;
    new.permission_mode = body.permission_mode;
    new.worktree = body.worktree.map(|asked| {
        let mut worktree = NewWorktree::default();
        (worktree.branch, worktree.base) = (asked.branch, asked.base);
        worktree
    });
    let session = shared.host.create(new, &*token.label).await?;
    Ok((
        StatusCode::CREATED,
        Extension(Made(session.id.to_string())),
        reply(&token, session),
    ))
}

pub(super) async fn read(
    State(shared): State<Arc<FrontState>>,
    InSession(session): InSession,
) -> Result<Json<SessionRecord>, Refusal> {
    Ok(Json(shared.host.session(&session).await?))
}

pub(super) async fn update(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
    InSession(session): InSession,
    Body(update): Body<Update>,
) -> Result<ScopedReply<SessionRecord>, Refusal> {
    Ok(reply(&token, shared.host.update(&session, update).await?))
}

pub(super) async fn remove(
    State(shared): State<Arc<FrontState>>,
    InSession(session): InSession,
) -> Result<StatusCode, Refusal> {
    if shared.host.session(&session).await?.state != SessionState::Ended {
        shared.host.archive(&session).await?;
    }
    shared.host.delete(&session).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn interrupt(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
    InSession(session): InSession,
) -> Result<ScopedReply<SessionRecord>, Refusal> {
    shared.host.interrupt(&session).await?;
    Ok(reply(&token, shared.host.session(&session).await?))
}

pub(super) async fn stop(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
    InSession(session): InSession,
) -> Result<ScopedReply<SessionRecord>, Refusal> {
    shared.host.stop(&session).await?;
    Ok(reply(&token, shared.host.session(&session).await?))
}

pub(super) async fn resume(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
    InSession(session): InSession,
) -> Result<(StatusCode, ScopedReply<SessionRecord>), Refusal> {
    shared.host.resume(&session).await?;
    let session = shared.host.session(&session).await?;
    Ok((StatusCode::ACCEPTED, reply(&token, session)))
}

pub(super) async fn archive(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
    InSession(session): InSession,
) -> Result<ScopedReply<SessionRecord>, Refusal> {
    shared.host.archive(&session).await?;
    Ok(reply(&token, shared.host.session(&session).await?))
}
