//! Errors as HTTP answers.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// An error as the client gets it: a problem document (RFC 9457).
///
/// Its `type` is `urn:outrigger:problem:` and the kind in kebab case, such as `urn:outrigger:problem:cursor-ahead`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// The `Host` header is none that the front serves (421).
    ForeignHost,
    /// The `Origin` is none that the front allows (403).
    ForeignOrigin,
    /// There is no valid token in `Authorization: Bearer` (401).
    Unauthorized,
    /// The token lacks the scope for this, or the host does not allow it (403).
    Forbidden,
    /// There is no such session (404).
    UnknownSession,
    /// There is no such route (404).
    UnknownRoute,
    /// The route has no such method (405).
    MethodNotAllowed,
    /// The cursor is no sequence number (400).
    InvalidCursor,
    /// The cursor is beyond the last event of the session, so it belongs to another log (409).
    CursorAhead,
    /// The body or the query is not what the route takes (400).
    InvalidRequest,
    /// The body did not arrive in time (408).
    BodyTimeout,
    /// The body is larger than the limit (413).
    BodyTooLarge,
    /// There are as many streams as the limits allow (429, with `Retry-After`).
    TooManyStreams,
    /// The host cannot do it now (503, with `Retry-After`).
    Unavailable,
    /// The host failed (500).
    HostFailed,
}

impl Problem {
    fn facts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::ForeignHost => (
                StatusCode::MISDIRECTED_REQUEST,
                "foreign-host",
                "The host name is not served here",
            ),
            Self::ForeignOrigin => (
                StatusCode::FORBIDDEN,
                "foreign-origin",
                "The origin is not allowed",
            ),
            Self::Unauthorized => (
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "A valid token is needed",
            ),
            Self::Forbidden => (StatusCode::FORBIDDEN, "forbidden", "This is not allowed"),
            Self::UnknownSession => (
                StatusCode::NOT_FOUND,
                "unknown-session",
                "There is no such session",
            ),
            Self::UnknownRoute => (StatusCode::NOT_FOUND, "unknown-route", "There is no such route"),
            Self::MethodNotAllowed => (
                StatusCode::METHOD_NOT_ALLOWED,
                "method-not-allowed",
                "The route has no such method",
            ),
            Self::InvalidCursor => (
                StatusCode::BAD_REQUEST,
                "invalid-cursor",
                "The cursor is no sequence number",
            ),
            Self::CursorAhead => (
                StatusCode::CONFLICT,
                "cursor-ahead",
                "The cursor is beyond the last event",
            ),
            Self::InvalidRequest => (
                StatusCode::BAD_REQUEST,
                "invalid-request",
                "The request is not valid",
            ),
            Self::BodyTimeout => (
                StatusCode::REQUEST_TIMEOUT,
                "body-timeout",
                "The body did not arrive in time",
            ),
            Self::BodyTooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "body-too-large",
                "The body is too large",
            ),
            Self::TooManyStreams => (
                StatusCode::TOO_MANY_REQUESTS,
                "too-many-streams",
                "There are too many streams",
            ),
            Self::Unavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "The host cannot do this now",
            ),
            Self::HostFailed => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "host-failed",
                "The host failed",
            ),
        }
    }

    /// The status of the answer.
    pub fn status(self) -> StatusCode {
        self.facts().0
    }

    /// The kind in kebab case, as at the end of `type`.
    pub fn code(self) -> &'static str {
        self.facts().1
    }

    pub(crate) fn because(self, detail: impl Into<String>) -> Refusal {
        Refusal {
            problem: self,
            detail: Some(detail.into()),
            retry_after: None,
        }
    }
}

/// A problem with what this request has of it.
#[derive(Debug)]
pub(crate) struct Refusal {
    problem: Problem,
    detail: Option<String>,
    retry_after: Option<Duration>,
}

impl Refusal {
    pub(crate) fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self {
            problem,
            detail: None,
            retry_after: None,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, code, title) = self.problem.facts();
        let mut document = json!({
            "type": format!("urn:outrigger:problem:{code}"),
            "title": title,
            "status": status.as_u16(),
        });
        if let Some(detail) = self.detail {
            document["detail"] = detail.into();
        }
        let mut response = (status, document.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(wait) = self.retry_after {
            // Whole seconds, and never 0: a client that came back at once would be told the same.
            headers.insert(header::RETRY_AFTER, wait.as_secs().max(1).into());
        }
        if self.problem == Problem::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
