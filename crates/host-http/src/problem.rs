//! Errors as HTTP answers.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use outrigger_host::HostError;
use schemars::JsonSchema;
use serde::Serialize;

/// Makes [`Problem`] of lines: the variant, its status, its kind and what that means.
macro_rules! problems {
    ($( #[$doc:meta] $name:ident: $status:ident $code:literal $title:literal, )+) => {
        /// An error as the client gets it: a problem document (RFC 9457).
        ///
        /// Its `type` is `urn:outrigger:problem:` and the kind in kebab case, such as `urn:outrigger:problem:cursor-ahead`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Problem { $( #[$doc] $name ),+ }

        impl Problem {
            fn facts(self) -> (StatusCode, &'static str, &'static str) {
                match self { $( Self::$name => (StatusCode::$status, $code, $title) ),+ }
            }
        }
    };
}

problems! {
    /// The `Host` header is none that the front serves (421).
    ForeignHost: MISDIRECTED_REQUEST "foreign-host" "The host name is not served here",
    /// The `Origin` is none that the front allows (403).
    ForeignOrigin: FORBIDDEN "foreign-origin" "The origin is not allowed",
    /// There is no valid token in `Authorization: Bearer` (401).
    Unauthorized: UNAUTHORIZED "unauthorized" "A valid token is needed",
    /// The token lacks the scope for this, or the host does not allow it (403).
    Forbidden: FORBIDDEN "forbidden" "This is not allowed",
    /// There is no such session (404).
    UnknownSession: NOT_FOUND "unknown-session" "There is no such session",
    /// There is nothing with this id (404).
    NotFound: NOT_FOUND "not-found" "There is nothing with this id",
    /// There is no such route (404).
    UnknownRoute: NOT_FOUND "unknown-route" "There is no such route",
    /// The route has no such method (405).
    MethodNotAllowed: METHOD_NOT_ALLOWED "method-not-allowed" "The route has no such method",
    /// The cursor is no sequence number (400).
    InvalidCursor: BAD_REQUEST "invalid-cursor" "The cursor is no sequence number",
    /// The cursor is beyond the last event of the session, so it belongs to another log (409).
    CursorAhead: CONFLICT "cursor-ahead" "The cursor is beyond the last event",
    /// Somebody else decided first; the document has the `approval` (409).
    TooLate: CONFLICT "too-late" "The approval is not pending any more",
    /// The id or the key was used before, for something else (409).
    Reused: CONFLICT "reused" "The id or the key was used for something else",
    /// The session was archived (409).
    Archived: CONFLICT "archived" "The session was archived",
    /// A turn of the session runs, and would be disturbed (409).
    TurnRuns: CONFLICT "turn-runs" "A turn of the session runs",
    /// Another process drives the session (409).
    InUse: CONFLICT "in-use" "Another process drives the session",
    /// There is work in the worktree, or another session works in it (409).
    WorkspaceKept: CONFLICT "workspace-kept" "The workspace is kept",
    /// The CLI did not do what it was asked to do (409).
    CliRefused: CONFLICT "cli-refused" "The CLI refused",
    /// The body or the query is not what the route takes (400).
    InvalidRequest: BAD_REQUEST "invalid-request" "The request is not valid",
    /// The body did not arrive in time (408).
    BodyTimeout: REQUEST_TIMEOUT "body-timeout" "The body did not arrive in time",
    /// The body is larger than the limit (413).
    BodyTooLarge: PAYLOAD_TOO_LARGE "body-too-large" "The body is too large",
    /// There are as many streams as the limits allow (429, with `Retry-After`).
    TooManyStreams: TOO_MANY_REQUESTS "too-many-streams" "There are too many streams",
    /// The token, or the address without one, asks faster than the limits allow (429, with `Retry-After`).
    TooManyRequests: TOO_MANY_REQUESTS "too-many-requests" "Requests come too fast",
    /// The host cannot do it now (503, with `Retry-After`).
    Unavailable: SERVICE_UNAVAILABLE "unavailable" "The host cannot do this now",
    /// The host failed (500).
    HostFailed: INTERNAL_SERVER_ERROR "host-failed" "The host failed",
}

impl Problem {
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
            member: None,
        }
    }
}

/// A problem with what this request has of it.
#[derive(Debug)]
pub(crate) struct Refusal {
    problem: Problem,
    detail: Option<String>,
    retry_after: Option<Duration>,
    /// A member of the document that only this kind has.
    member: Option<Box<(&'static str, serde_json::Value)>>,
}

impl Refusal {
    pub(crate) fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// With a member that only this kind has.
    pub(crate) fn with(mut self, name: &'static str, value: &impl Serialize) -> Self {
        let value = serde_json::to_value(value).ok();
        self.member = value.map(|value| Box::new((name, value)));
        self
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self {
            problem,
            detail: None,
            retry_after: None,
            member: None,
        }
    }
}

/// When a client may try again, if the log failed.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// When a client may try again, if too much waits.
const BUSY: Duration = Duration::from_secs(1);

impl From<HostError> for Refusal {
    fn from(error: HostError) -> Self {
        let detail = error.to_string();
        match error {
            HostError::NoSession(_) => Problem::UnknownSession.into(),
            HostError::NoApproval(_) | HostError::NoWebhook(_) | HostError::NoSchedule(_) => {
                Problem::NotFound.because(detail)
            }
            HostError::NotStored(_) => Problem::NotFound.because(detail),
            HostError::TurnRuns(_) => Problem::TurnRuns.because(detail),
            HostError::InUse(..) => Problem::InUse.because(detail),
            HostError::Cli(_) => Problem::CliRefused.because(detail),
            // Whether its approval may be shown, the handler knows.
            HostError::TooLate(_) => Problem::TooLate.because(detail),
            HostError::NotAllowed(_) => Problem::Forbidden.because(detail),
            HostError::Invalid(_) => Problem::InvalidRequest.because(detail),
            HostError::Reused(_) => Problem::Reused.because(detail),
            HostError::Archived(_) => Problem::Archived.because(detail),
            HostError::Busy(_) => Problem::Unavailable.because(detail).retry_after(BUSY),
            HostError::Closed => Problem::Unavailable.because(detail).retry_after(AFTER_FAILURE),
            HostError::Log(_) => {
                // The text has paths of the operator, so that it goes to the operator's log alone.
                tracing::error!(error = detail, "the log of the host failed");
                Self::from(Problem::Unavailable).retry_after(AFTER_FAILURE)
            }
            _ => {
                tracing::error!(error = detail, "the host failed");
                Problem::HostFailed.into()
            }
        }
    }
}

/// A problem document (RFC 9457).
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProblemDocument {
    /// `urn:outrigger:problem:` and the kind, which is stable.
    r#type: String,
    /// What the kind means.
    title: String,
    /// The status of the answer.
    status: u16,
    /// What the problem is in this case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    detail: Option<String>,
    /// What only some kinds have.
    #[serde(flatten)]
    #[schemars(skip)]
    member: BTreeMap<&'static str, serde_json::Value>,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, code, title) = self.problem.facts();
        let document = ProblemDocument {
            r#type: format!("urn:outrigger:problem:{code}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: self.detail,
            member: self.member.map(|member| *member).into_iter().collect(),
        };
        let mut response = (status, Json(document)).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(wait) = self.retry_after {
            // Whole seconds, and never 0: a client that came back too early would be told the same.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, seconds.max(1).into());
        }
        if self.problem == Problem::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
