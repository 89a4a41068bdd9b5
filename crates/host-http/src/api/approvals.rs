//! Approvals as resources.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use outrigger::SessionId;
use outrigger::protocol::RawJson;
use outrigger_host::{Approval, ApprovalState, HostError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sessions::limit;
use super::unread::{ScopedReply, reply};
use crate::extract::{Body, Caller, Of, Params};
use crate::front_state::FrontState;
use crate::problem::{Problem, Refusal};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApprovalsQuery {
    /// Only approvals in this state, such as `pending`.
    state: Option<String>,
    /// Only approvals of this session.
    session: Option<String>,
    /// The number after which the page begins.
    after: Option<u64>,
    /// How many at most.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

/// A page of approvals, the oldest first.
#[derive(Serialize, JsonSchema)]
pub(super) struct ApprovalPage {
    approvals: Vec<Approval>,
    /// The number after which the next page begins; null on the last page.
    next: Option<u64>,
}

pub(super) async fn list(
    State(shared): State<Arc<FrontState>>,
    Params(query): Params<ApprovalsQuery>,
) -> Result<Json<ApprovalPage>, Refusal> {
    let limit = limit(query.limit, shared.limits.page)?;
    let state = match query.state.as_deref() {
        None => None,
        Some(name) => Some(
            ApprovalState::of_name(name)
                .ok_or_else(|| Problem::InvalidRequest.because(format!("there is no state `{name}`")))?,
        ),
    };
    let session = query.session.as_deref().map(SessionId::new).transpose();
    let session = session.map_err(|_| Problem::UnknownSession)?;
    let mut approvals = shared
        .host
        .approvals(session.as_ref(), state, query.after, limit + 1)
        .await?;
    let has_more = approvals.len() > limit;
    approvals.truncate(limit);
    let last = approvals.last().map(|approval| approval.number);
    Ok(Json(ApprovalPage {
        approvals,
        next: last.filter(|_| has_more),
    }))
}

pub(super) async fn read(
    State(shared): State<Arc<FrontState>>,
    Of(id): Of,
) -> Result<Json<Approval>, Refusal> {
    Ok(Json(shared.host.approval(id).await?))
}

pub(super) async fn decide(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
    Of(id): Of,
    Body(answer): Body<RawJson>,
) -> Result<ScopedReply<Approval>, Refusal> {
    match shared.host.decide(id, answer, &*token.label).await {
        Ok(approval) => Ok(reply(&token, approval)),
        Err(HostError::TooLate(approval)) => {
            let detail = HostError::TooLate(approval.clone()).to_string();
            let Json(approval) = reply(&token, *approval);
            Err(Problem::TooLate.because(detail).with("approval", &approval))
        }
        Err(error) => Err(error.into()),
    }
}
