//! Who did what, for the operator's log.

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

use super::guard::AboveLimit;
use crate::extract::id_of;
use crate::token::TokenRecord;

/// The target of the events.
const TARGET: &str = "outrigger_host_http::audit";

/// Reports each request when its answer begins: an event of `tracing` with the target `outrigger_host_http::audit`. It has the token, the method, the
/// route, the session, and the status; never a body, a query, or a secret. Requests that change something, and those that were refused, have the level
/// `INFO`, the rest `DEBUG`. So have those that anybody may send as often as they like: who has no token must not fill a disk.
pub(super) async fn audit(mut request: Request, next: Next) -> Response {
    let method = request.method().clone();
    // Not the address itself: what is no route may be anything.
    let route = request.extensions().get::<MatchedPath>().cloned();
    let id = id_of(&mut request).await;
    let response = next.run(request).await;
    let token = response.extensions().get::<TokenRecord>();
    let status = response.status();
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    let session = id
        .filter(|_| route.starts_with("/v1/sessions/{id}"))
        .map(tracing::field::display);
    let changes = token.is_some() && !matches!(method, Method::GET | Method::HEAD | Method::OPTIONS);
    let (token_id, actor) = match token {
        Some(token) => (Some(tracing::field::display(token.id)), Some(&*token.label)),
        None => (None, None),
    };
    let (method, status_code) = (method.as_str(), status.as_u16());
    let is_free = token_id.is_none()
        && (method == Method::OPTIONS.as_str() || response.extensions().get::<AboveLimit>().is_some());
    if (changes || !status.is_success()) && !is_free {
        tracing::info!(target: TARGET, token_id, actor, method, route, session, status = status_code, "request");
    } else {
        tracing::debug!(target: TARGET, token_id, actor, method, route, session, status = status_code, "request");
    }
    response
}
