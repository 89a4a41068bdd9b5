//! Rejects requests for foreign host names and from foreign origins, and too many of one token or of one stranger; answers browsers that ask first.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::time::Instant;

use crate::api;
use crate::front_state::FrontState;
use crate::peer::Peer;
use crate::problem::{Problem, Refusal};

/// A monitor of the operator may ask as often as it likes: a host that did not answer it could be taken for dead, and it costs nothing.
const ALIVE: &str = "/healthz";

/// Marks the answer to a request above the limit, which the operator's log must not have at a level that is on.
#[derive(Debug, Clone, Copy)]
pub(super) struct AboveLimit;

/// How long a token has to wait whose request is above its limit.
#[derive(Debug, Clone, Copy)]
struct TooFast(Duration);

/// Lets no token ask as often as it likes, and no address without one, whatever they ask for. A valid token is looked at first, so that nobody who has
/// one is locked out by others at the same address.
pub(super) async fn limit(
    State(shared): State<Arc<FrontState>>,
    mut request: Request,
    next: Next,
) -> Response {
    // What a browser asks first has no token; the guard answers it.
    if request.method() == Method::OPTIONS {
        return next.run(request).await;
    }
    if let Ok(token) = api::token(&shared, request.headers()) {
        let rate = shared.limits.of_tokens();
        if request.uri().path() != ALIVE
            && let Err(wait) = shared.rates.take(token.id, rate, Instant::now())
        {
            // The guard refuses it: a page can read the answer only if the guard knows its origin.
            request.extensions_mut().insert(TooFast(wait));
        }
        let mut response = next.run(request).await;
        // For the audit.
        response.extensions_mut().insert(token);
        return response;
    }
    // Each connection has one.
    let Some(peer) = request.extensions().get::<Peer>().copied() else {
        return Refusal::from(Problem::HostFailed).into_response();
    };
    let peer = match shared.proxied {
        true => peer.behind_proxy(request.headers()),
        false => peer,
    };
    let rate = shared.limits.of_strangers();
    let Err(wait) = shared.strangers.take(peer, rate, Instant::now()) else {
        return next.run(request).await;
    };
    let mut response = match request.uri().path() {
        ALIVE => next.run(request).await,
        _ => Refusal::from(Problem::TooManyRequests)
            .retry_after(wait)
            .into_response(),
    };
    response.extensions_mut().insert(AboveLimit);
    response
}

/// What holds for each answer: nobody keeps it, and no browser takes it for something else than it says it is.
pub(super) async fn label(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// Answers what the guard lets pass.
async fn answer(request: Request, next: Next) -> Response {
    match request.extensions().get::<TooFast>() {
        Some(TooFast(wait)) => Refusal::from(Problem::TooManyRequests)
            .retry_after(*wait)
            .into_response(),
        None => next.run(request).await,
    }
}

/// A page of another site cannot reach the front by a name that resolves to this machine (DNS rebinding), nor by its address.
pub(super) async fn guard(State(shared): State<Arc<FrontState>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let Some(host) = only(headers, header::HOST).map(str::to_ascii_lowercase) else {
        return Refusal::from(Problem::ForeignHost).into_response();
    };
    // A target may have a name of its own, which outranks the header.
    let target = request
        .uri()
        .authority()
        .map(|target| target.as_str().to_ascii_lowercase());
    let mut names = std::iter::once(&host).chain(&target);
    if !names.all(|host| shared.names.contains(name(host))) {
        return Refusal::from(Problem::ForeignHost).into_response();
    }
    if !headers.contains_key(header::ORIGIN) {
        return answer(request, next).await;
    }
    let origin = only(headers, header::ORIGIN).map(str::to_ascii_lowercase);
    let allowed = origin.filter(|origin| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        shared.origins.contains(origin) || authority == Some(&host)
    });
    let Some(origin) = allowed.and_then(|origin| HeaderValue::from_str(&origin).ok()) else {
        return Refusal::from(Problem::ForeignOrigin).into_response();
    };
    let asks = request.method() == Method::OPTIONS;
    let mut response = if asks {
        StatusCode::NO_CONTENT.into_response()
    } else {
        answer(request, next).await
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Retry-After"),
    );
    if asks {
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, POST, PATCH, DELETE"),
        );
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static(
                "Authorization, Content-Type, Last-Event-ID, Idempotency-Key, Cache-Control, Accept",
            ),
        );
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
    response
}

/// The value of a header that is there once.
fn only(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// The name in `name:port`.
fn name(host: &str) -> &str {
    let colon = host
        .rfind(':')
        .filter(|colon| host[*colon..].bytes().skip(1).all(|byte| byte.is_ascii_digit()));
    colon.map_or(host, |colon| &host[..colon])
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn a_port_is_no_part_of_the_name() {
        for (host, expected) in [
            ("localhost", "localhost"),
            ("localhost:80", "localhost"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("localhost:80@evil.example", "localhost:80@evil.example"),
        ] {
            assert_eq!(name(host), expected);
        }
    }
}
