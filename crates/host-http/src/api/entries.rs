//! Who did what, as a resource; and what keeps it.

use std::sync::Arc;

use axum::Json;
use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use outrigger_host::AuditEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sessions::limit;
use crate::extract::{Params, id_of};
use crate::front_state::FrontState;
use crate::problem::Refusal;
use crate::token::TokenRecord;

/// The route whose requests are events of a session, with their actor.
const EVENTS: &str = "/v1/sessions/{id}/events";

/// The id of what a request made, for the audit.
#[derive(Debug, Clone)]
pub(super) struct Made(pub(super) String);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditQuery {
    /// The number before which the page begins; the newest entries if it is not there.
    before: Option<u64>,
    /// How many at most.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

/// A page of the audit, the newest entry first.
#[derive(Serialize, JsonSchema)]
pub(super) struct AuditPage {
    entries: Vec<AuditEntry>,
    /// The number before which the next page begins; null on the last page.
    next: Option<u64>,
}

pub(super) async fn list(
    State(shared): State<Arc<FrontState>>,
    Params(query): Params<AuditQuery>,
) -> Result<Json<AuditPage>, Refusal> {
    let limit = limit(query.limit, shared.limits.page)?;
    let mut entries = shared.host.event_log().audited(query.before, limit + 1).await?;
    let has_more = entries.len() > limit;
    entries.truncate(limit);
    let last = entries.last().map(|entry| entry.number);
    Ok(Json(AuditPage {
        entries,
        next: last.filter(|_| has_more),
    }))
}

/// Answers a request, and keeps who made it if it changed something or was refused. What is an event of a session is not kept twice.
pub(super) async fn audited(
    shared: Arc<FrontState>,
    token: TokenRecord,
    mut request: Request,
    next: Next,
) -> Response {
    let entry = entry(&token, &mut request).await;
    let response = next.run(request).await;
    let made = response.extensions().get::<Made>().cloned();
    keep(&shared, entry, response.status(), made).await;
    response
}

/// What is known before there is an answer.
pub(super) async fn entry(token: &TokenRecord, request: &mut Request) -> AuditEntry {
    let object = id_of(request).await;
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("none", MatchedPath::as_str);
    let mut entry = AuditEntry::new(token.id, &*token.label, request.method().as_str(), route, 0);
    entry.object = object.map(|id| id.to_string());
    entry
}

/// Keeps an entry with what became of its request.
pub(super) async fn keep(shared: &FrontState, mut entry: AuditEntry, status: StatusCode, made: Option<Made>) {
    let is_event = entry.route == EVENTS && status.is_success();
    let is_read = matches!(&*entry.method, "GET" | "HEAD") && status != StatusCode::FORBIDDEN;
    // Who asks too fast would push out what they did.
    if is_event || is_read || status == StatusCode::TOO_MANY_REQUESTS {
        return;
    }
    entry.status = status.as_u16();
    if let Some(Made(id)) = made {
        entry.object = Some(id);
    }
    if let Err(error) = shared.host.event_log().audit(entry).await {
        // It was done, and the operator's log has it.
        tracing::error!(%error, "the audit could not be written");
    }
}
