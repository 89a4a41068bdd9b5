//! A web service: sessions, their events for any number of browsers, and approvals that outlive the service.
//!
//! `cargo run -p outrigger-fleet --example web_service -- DIRECTORY [ADDRESS]`
//!
//! | request | reply |
//! |---|---|
//! | `POST /sessions` | 201, the id of a new session |
//! | `POST /sessions/{id}/prompts`, the text as the body | 202 |
//! | `GET /sessions/{id}/events` | the events from the start; with `Last-Event-ID`, from there on |
//! | `GET /approvals` | the calls that somebody has to decide |
//! | `POST /approvals/{id}` with `{"allow": {}}` or `{"deny": {"message": "…"}}` | 204; 404 if there is none, 410 if it is too late |
//!
//! The directory keeps the approvals. The service may be killed at any time: the next one goes on with its sessions and approvals.
//! Whoever reaches the address may do all of this, so it is for the loopback; docs/host.md is about more.

#![expect(clippy::print_stderr, reason = "an example talks to a terminal")]

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Json, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{ErrorResponse, IntoResponse, Result, Sse, sse};
use axum::routing::{Router, get, post};
use futures_util::{FutureExt as _, stream};
use outrigger::{Agent, Options, Position, Session, SessionId, Tail, TailItem, TailLimits, TailStep};
use outrigger_fleet::approvals::{Approval, ApprovalFiles, ApprovalId, Approvals, DecideError, Decision};
use tokio::sync::{Mutex, watch};

struct Service {
    agent: Options,
    approvals: Approvals,
    /// The tail of the newest process of each session.
    sessions: Mutex<Sessions>,
}

type Sessions = HashMap<SessionId, watch::Sender<Tail>>;
type Shared = State<Arc<Service>>;
type Id = Path<SessionId>;

fn failed(error: impl ToString) -> ErrorResponse {
    (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into()
}

/// Lets the readers of a session go on with a new process.
fn keep(sessions: &mut Sessions, id: &SessionId, session: &Session) {
    let tail = session.tail(TailLimits::default());
    let new = watch::Sender::new(tail.clone());
    sessions.entry(id.clone()).or_insert(new).send_replace(tail);
}

impl Service {
    /// The session, which is resumed if this service has no process of it.
    async fn tail(&self, id: &SessionId) -> Result<watch::Receiver<Tail>> {
        let mut sessions = self.sessions.lock().await;
        let is_over =
            |kept: &watch::Sender<Tail>| kept.borrow().session().wait_ended().now_or_never().is_some();
        if sessions.get(id).is_none_or(is_over) {
            let resumed = self.approvals.resume(self.agent.clone(), id).await;
            let resumed = resumed.map_err(failed)?;
            keep(&mut sessions, id, resumed.session());
            resumed.asked().await.map_err(failed)?;
        }
        Ok(sessions[id].subscribe())
    }

    /// Has the decisions carried out: a process that is resumed asks about its open call.
    async fn carry_out(&self) -> Result<()> {
        for approval in self.approvals.waiting().await.map_err(failed)? {
            let old = self.tail(&approval.session_id).await?.borrow().session().clone();
            // Perhaps that process has carried it out already.
            let now = self.approvals.get(&approval.id).await.map_err(failed)?;
            if now.is_some_and(|now| now.waits_for_session()) {
                drop(old.close().await);
                self.tail(&approval.session_id).await?;
            }
        }
        Ok(())
    }
}

async fn begin(State(service): Shared) -> Result<(StatusCode, String)> {
    let id = SessionId::from(uuid::Uuid::new_v4());
    let options = service.approvals.ask_in(service.agent.clone());
    let session = options.session_id(id.to_string()).start().await.map_err(failed)?;
    keep(&mut *service.sessions.lock().await, &id, &session);
    Ok((StatusCode::CREATED, id.to_string()))
}

async fn prompt(State(service): Shared, Path(id): Id, text: String) -> Result<StatusCode> {
    let session = service.tail(&id).await?.borrow().session().clone();
    // The session goes on without the calls that wait for an approval.
    service.approvals.supersede(&id).await.map_err(failed)?;
    drop(session.prompt(text).await.map_err(failed)?);
    Ok(StatusCode::ACCEPTED)
}

async fn events(State(service): Shared, Path(id): Id, headers: HeaderMap) -> Result<impl IntoResponse> {
    let last = headers.get("last-event-id");
    let last = last.and_then(|last| last.to_str().ok()?.parse().ok());
    let last = last.unwrap_or(Position::start());
    let mut tails = service.tail(&id).await?;
    let reader = tails.borrow_and_update().after(&last);
    let stream = stream::unfold((tails, reader), async |(mut tails, mut reader)| {
        loop {
            if let Some(Ok(step)) = reader.next().await {
                return Some((sent(step), (tails, reader)));
            }
            // The process has ended; the next one goes on.
            tails.changed().await.ok()?;
            reader = tails.borrow_and_update().after(&reader.position());
        }
    });
    Ok(Sse::new(stream).keep_alive(sse::KeepAlive::default()))
}

fn sent(step: TailStep) -> Result<sse::Event, axum::Error> {
    let event = sse::Event::default().id(step.position.to_string());
    match step.item {
        TailItem::Events(events) => event.event("events").json_data(events),
        TailItem::TurnEnded(outcome) => event.event("turn_ended").json_data(outcome),
        other => Ok(event.event("missed").data(format!("{other:?}"))),
    }
}

async fn pending(State(service): Shared) -> Result<Json<Vec<Approval>>> {
    Ok(Json(service.approvals.pending().await.map_err(failed)?))
}

async fn decide(
    State(service): Shared,
    Path(id): Path<ApprovalId>,
    Json(decision): Json<Decision>,
) -> Result<StatusCode> {
    match service.approvals.decide(&id, decision, "a browser").await {
        Ok(_) => {
            if service.carry_out().await.is_err() {
                eprintln!("{id}: carried out with the next decision, or by the next start");
            }
            Ok(StatusCode::NO_CONTENT)
        }
        Err(DecideError::Unknown(_)) => Ok(StatusCode::NOT_FOUND),
        Err(DecideError::TooLate(late)) => Err((StatusCode::GONE, late.to_string()).into()),
        Err(error) => Err(failed(error)),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("the first argument is a directory")?;
    let address = arguments.next().unwrap_or("127.0.0.1:8080".to_owned());
    let service = Arc::new(Service {
        agent: Agent::builder(),
        approvals: Approvals::new(ApprovalFiles::new(directory)).matcher("Bash|Edit|Write"),
        sessions: Mutex::default(),
    });
    if service.carry_out().await.is_err() {
        eprintln!("not all decisions are carried out");
    }
    let routes = Router::new()
        .route("/sessions", post(begin))
        .route("/sessions/{id}/prompts", post(prompt))
        .route("/sessions/{id}/events", get(events))
        .route("/approvals", get(pending))
        .route("/approvals/{id}", post(decide));
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, routes.with_state(service)).await?)
}
