//! The routes, from one table: what it says is what is served, who may call it, and what the OpenAPI document has.

mod adoptions;
mod approvals;
mod document;
mod entries;
mod feed;
mod files;
mod forks;
mod hints;
#[cfg(feature = "fuzzing")]
mod laws;
mod reading;
mod schedules;
mod sending;
mod sessions;
mod sse;
mod status;
mod stream;
mod tokens;
mod transcript;
mod unread;
mod usage;
mod webhooks;

use std::sync::Arc;
use std::time::SystemTime;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, delete, get, patch, post};
use outrigger_host::SessionRecord;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use tracing::debug;

pub use self::document::openapi;
#[cfg(feature = "fuzzing")]
pub use self::laws::run as laws;
use crate::front_state::FrontState;
use crate::problem::{Problem, Refusal};
use crate::token::{Scope, TokenRecord};

/// Who may call a route.
#[derive(Debug, Clone, Copy)]
enum Access {
    /// Anybody.
    Open,
    /// Who has a token with this scope.
    Scope(Scope),
    /// Who has a token. The handler looks at its scopes.
    Handler,
}

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What a route answers when all goes well.
enum ResponseBody {
    Nothing,
    Json(SchemaOf),
    Text(&'static str),
}

/// A route, and what the document says of it.
struct Route {
    method: &'static str,
    path: &'static str,
    access: Access,
    summary: &'static str,
    query: Option<SchemaOf>,
    headers: &'static [&'static str],
    body: Option<SchemaOf>,
    status: StatusCode,
    answer: ResponseBody,
    handler: MethodRouter<Arc<FrontState>>,
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl Route {
    fn new(
        method: &'static str,
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: MethodRouter<Arc<FrontState>>,
    ) -> Self {
        Self {
            method,
            path,
            access,
            summary,
            query: None,
            headers: &[],
            body: None,
            status: StatusCode::OK,
            answer: ResponseBody::Nothing,
            handler,
        }
    }

    fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(T::json_schema);
        self
    }

    fn headers(mut self, names: &'static [&'static str]) -> Self {
        self.headers = names;
        self
    }

    fn body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(schema_of::<T>);
        self
    }

    fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    fn json<T: JsonSchema>(mut self) -> Self {
        self.answer = ResponseBody::Json(schema_of::<T>);
        self
    }

    /// A document of a session, of which a token without the scope `read` gets less.
    fn scoped_json<T: unread::Document + JsonSchema>(self) -> Self
    where
        T::Unread: JsonSchema,
    {
        self.json::<unread::ScopedDocument<T, T::Unread>>()
    }

    fn text(mut self, content_type: &'static str) -> Self {
        self.answer = ResponseBody::Text(content_type);
        self
    }
}

/// Makes routes of lines: method, path, who may call it, and what the document says; then the handler, and what else there is to a route.
macro_rules! routes {
    ($( $method:ident $path:literal $access:ident, $summary:literal
        => $handler:path, $( .$set:ident $(::<$of:ty>)? ($( $to:expr )?) )+; )+) => {
        vec![$(
            Route::new(stringify!($method), $path, access!($access), $summary, $method($handler))
                $( .$set $(::<$of>)? ($( $to )?) )+
        ),+]
    };
}

macro_rules! access {
    (Open) => {
        Access::Open
    };
    (Handler) => {
        Access::Handler
    };
    ($scope:ident) => {
        Access::Scope(Scope::$scope)
    };
}

/// All routes, in the order of the document.
fn routes() -> Vec<Route> {
    const ACCEPTED: StatusCode = StatusCode::ACCEPTED;
    const CREATED: StatusCode = StatusCode::CREATED;
    const NO_CONTENT: StatusCode = StatusCode::NO_CONTENT;
    routes! {
        get "/v1/sessions" Read, "Lists the sessions, by id"
            => sessions::list, .query::<sessions::SessionsQuery>().json::<sessions::SessionPage>();
        post "/v1/sessions" Send, "Creates a session"
            => sessions::create, .headers(&["Idempotency-Key"]).body::<sessions::Create>().status(CREATED).scoped_json::<SessionRecord>();
        get "/v1/sessions/{id}" Read, "A session"
            => sessions::read, .json::<SessionRecord>();
        patch "/v1/sessions/{id}" Send, "Changes a session"
            => sessions::update, .body::<outrigger_host::log::Update>().scoped_json::<SessionRecord>();
        delete "/v1/sessions/{id}" Admin, "Ends a session and removes it with its events"
            => sessions::remove, .status(NO_CONTENT);
        post "/v1/sessions/{id}/interrupt" Send, "Interrupts the turn that runs"
            => sessions::interrupt, .scoped_json::<SessionRecord>();
        post "/v1/sessions/{id}/stop" Send, "Ends the process of a session; the next prompt resumes it"
            => sessions::stop, .scoped_json::<SessionRecord>();
        post "/v1/sessions/{id}/resume" Send, "Starts a process, if the session has none"
            => sessions::resume, .status(ACCEPTED).scoped_json::<SessionRecord>();
        post "/v1/sessions/{id}/archive" Send, "Ends a session for good; it can be read"
            => sessions::archive, .scoped_json::<SessionRecord>();
        post "/v1/sessions/{id}/fork" Send, "Makes a session that begins with the conversation of this one"
            => forks::fork, .body::<forks::Fork>().status(CREATED).scoped_json::<SessionRecord>();
        post "/v1/sessions/{id}/rewind" Send, "Brings the files that the CLI changed back to what they were before a prompt; answers what the CLI \
             answers"
            => files::rewind, .body::<files::Rewind>().scoped_json::<unread::Rewound>();
        get "/v1/sessions/{id}/transcript" Read, "What the CLI has stored of a session, one record a line"
            => transcript::read, .text("application/x-ndjson");
        get "/v1/sessions/{id}/diff" Read, "What changed in the files of a session"
            => files::diff, .query::<files::DiffQuery>().json::<outrigger_host::WorkspaceDiff>();
        delete "/v1/sessions/{id}/workspace" Admin, "Removes the git worktree of an archived session, with its branch, and what is kept of its \
             files. One in which work would be lost is kept, and answered with 409, unless `force` is set"
            => files::remove, .query::<files::RemoveQuery>().status(NO_CONTENT);
        get "/v1/sessions/{id}/usage" Read, "What a session has used"
            => usage::of_session, .json::<usage::Usage>();
        get "/v1/usage" Read, "What all sessions have used together"
            => usage::of_all, .json::<usage::Usage>();
        get "/v1/adoptable" Admin, "Sessions that the CLI left on the machine of the host"
            => adoptions::list, .query::<adoptions::AdoptionsQuery>().json::<adoptions::AdoptableList>();
        post "/v1/adoptions" Admin, "Takes over a session that the CLI left"
            => adoptions::adopt, .body::<adoptions::Adopt>().status(CREATED).scoped_json::<SessionRecord>();
        get "/v1/sessions/{id}/events" Read, "The durable events after a cursor"
            => reading::events, .query::<reading::PageQuery>().json::<sse::EventPage<'_>>();
        post "/v1/sessions/{id}/events" Handler, "Sends frames: prompts and requests (scope `send`), decisions (scope `approve`). What is answered \
             with 202 is durable"
            => sending::send, .body::<sending::SentEvents>().status(ACCEPTED).json::<sending::AcceptedAll>();
        get "/v1/sessions/{id}/events/stream" Read, "The events after a cursor and on: `client_event` with the sequence number as id, \
             `ephemeral_event`, `delivery_update`, `catch_up_truncated`, and `synced` where the replay ends"
            => stream::open, .query::<stream::StreamQuery>().headers(&["Last-Event-ID"]).text("text/event-stream");
        get "/v1/stream" Read, "What all sessions do: a `session` for each one that is not archived, `synced`, and a `session` for each change"
            => hints::open, .text("text/event-stream");
        get "/v1/approvals" Read, "The approvals of all sessions, the oldest first"
            => approvals::list, .query::<approvals::ApprovalsQuery>().json::<approvals::ApprovalPage>();
        get "/v1/approvals/{id}" Read, "An approval"
            => approvals::read, .json::<outrigger_host::Approval>();
        post "/v1/approvals/{id}/decision" Approve, "Decides: the body is the response that the CLI gets. The first decision counts, a later one \
             is answered with 409 and the approval"
            => approvals::decide, .body::<serde_json::Map<String, serde_json::Value>>().scoped_json::<outrigger_host::Approval>();
        get "/v1/tokens" Admin, "Lists the tokens"
            => tokens::list, .json::<tokens::TokenList>();
        post "/v1/tokens" Admin, "Issues a token"
            => tokens::issue, .body::<tokens::Issue>().status(CREATED).json::<tokens::Issued>();
        get "/v1/audit" Admin, "Who did what, the newest first"
            => entries::list, .query::<entries::AuditQuery>().json::<entries::AuditPage>();
        delete "/v1/tokens/{id}" Admin, "Revokes a token and ends its streams"
            => tokens::revoke, .status(NO_CONTENT);
        post "/v1/tokens/exchange" Open, "Exchanges the code of the first start for a token, once"
            => tokens::exchange, .body::<tokens::Exchange>().status(CREATED).json::<tokens::Issued>();
        get "/v1/webhooks" Admin, "Lists the webhooks"
            => webhooks::list, .json::<webhooks::WebhookList>();
        post "/v1/webhooks" Admin, "Adds a webhook, which gets the events of all sessions from now on"
            => webhooks::add, .body::<webhooks::AddWebhook>().status(CREATED).json::<webhooks::AddedWebhook>();
        delete "/v1/webhooks/{id}" Admin, "Removes a webhook"
            => webhooks::remove, .status(NO_CONTENT);
        post "/v1/webhooks/{id}/enable" Admin, "Enables a webhook whose address was dead; it gets what it missed"
            => webhooks::enable, .status(NO_CONTENT);
        get "/v1/schedules" Read, "Lists the schedules"
            => schedules::list, .json::<schedules::ScheduleList>();
        post "/v1/schedules" Send, "Adds a schedule, which sends a prompt to a session at times"
            => schedules::add, .body::<schedules::AddSchedule>().status(CREATED).json::<outrigger_host::Schedule>();
        delete "/v1/schedules/{id}" Send, "Removes a schedule"
            => schedules::remove, .status(NO_CONTENT);
        get "/welcome" Open, "A page that exchanges the code in its address"
            => tokens::welcome, .text("text/html");
        get "/metrics" Read, "Metrics for Prometheus"
            => status::metrics, .text("text/plain");
        get "/healthz" Open, "The front accepts connections"
            => status::alive, .status(NO_CONTENT);
        get "/readyz" Open, "The log can be read"
            => status::ready, .status(NO_CONTENT);
        get "/openapi.json" Open, "This document"
            => document::serve, .text("application/json");
    }
}

/// The routes as they are served.
pub(crate) fn router(shared: &Arc<FrontState>) -> Router<Arc<FrontState>> {
    let mut router = Router::new();
    for route in routes() {
        let handler = match route.access {
            Access::Open => route.handler,
            access => route
                .handler
                .route_layer(from_fn_with_state((Arc::clone(shared), access), authorize)),
        };
        router = router.route(route.path, handler);
    }
    router
        .fallback(async || Refusal::from(Problem::UnknownRoute))
        .method_not_allowed_fallback(async || Refusal::from(Problem::MethodNotAllowed))
}

/// Lets a request pass that has a valid token with the scope of the route.
async fn authorize(
    State((shared, access)): State<(Arc<FrontState>, Access)>,
    mut request: Request,
    next: Next,
) -> Response {
    let token = match token(&shared, request.headers()) {
        Ok(token) => token,
        Err(refusal) => return refusal.into_response(),
    };
    let allowed = match access {
        Access::Scope(scope) => allows(&token, scope),
        Access::Open | Access::Handler => Ok(()),
    };
    match allowed {
        Ok(()) => {
            request.extensions_mut().insert(token.clone());
            answer(&shared, &token, next, request).await
        }
        Err(refusal) => {
            let response = refusal.into_response();
            let entry = entries::entry(&token, &mut request).await;
            entries::keep(&shared, entry, response.status(), None).await;
            response
        }
    }
}

/// Answers a request. What changes something is carried through even if its client leaves in the middle: between two steps, a session could
/// be archived and have a process.
async fn answer(shared: &Arc<FrontState>, token: &TokenRecord, next: Next, request: Request) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let kept = entries::audited(Arc::clone(shared), token.clone(), request, next);
    let answered = tokio::spawn(kept).await;
    answered.unwrap_or_else(|error| {
        tracing::error!(%error, "a request was not answered");
        Refusal::from(Problem::HostFailed).into_response()
    })
}

/// Whether a token has a scope.
fn allows(token: &TokenRecord, scope: Scope) -> Result<(), Refusal> {
    if token.scopes.contains(&scope) {
        Ok(())
    } else {
        Err(Problem::Forbidden.because(format!("the token lacks the scope `{}`", scope.as_str())))
    }
}

/// The valid token of a request.
pub(crate) fn token(shared: &FrontState, headers: &HeaderMap) -> Result<TokenRecord, Refusal> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(Problem::Unauthorized.into());
    };
    let token = value
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim())
        .ok_or(Problem::Unauthorized)?;
    shared.tokens.verify(token, SystemTime::now()).map_err(|error| {
        debug!(%error, "a token was rejected");
        Problem::Unauthorized.into()
    })
}
