//! Answering what the CLI asks: each request once, and never after it was withdrawn.

use std::sync::Arc;

use outrigger_protocol::Frame;
use outrigger_protocol::outbound::{
    ControlResponse, ElicitationResult, HostAuthTokenAnswer, OauthTokenAnswer, UserDialogResult, encode_line,
};
use outrigger_protocol::shared::{PermissionResult, RequestId};
use serde::Serialize;
use tokio::sync::mpsc::error::TrySendError;
use tracing::Instrument;

use super::Conn;
use crate::permissions::{PermissionHandler, PermissionRequest};

/// The program's side of the conversation: what answers the CLI's requests.
pub(crate) struct Host {
    pub(crate) permissions: Arc<dyn PermissionHandler>,
}

/// The answer that refuses, in the way that this kind of request understands as a refusal.
fn refusal(id: &RequestId, subtype: &str, why: &str) -> ControlResponse {
    match subtype {
        "can_use_tool" => success(id, &PermissionResult::deny(why)),
        "elicitation" => success(id, &ElicitationResult::Decline),
        "request_user_dialog" => success(id, &UserDialogResult::Cancelled),
        "oauth_token_refresh" => success(
            id,
            &OauthTokenAnswer {
                access_token: None,
                reason: None,
            },
        ),
        "host_auth_token_refresh" => success(
            id,
            &HostAuthTokenAnswer {
                auth_token: None,
                material_unchanged: None,
            },
        ),
        "hook_callback" | "mcp_message" => ControlResponse::error(id.clone(), why),
        other => ControlResponse::unsupported(id.clone(), other),
    }
}

fn success<T: Serialize>(id: &RequestId, payload: &T) -> ControlResponse {
    ControlResponse::success(id.clone(), payload).unwrap_or_else(|error| {
        ControlResponse::error(id.clone(), format!("the answer could not be written: {error}"))
    })
}

impl Host {
    async fn answer(&self, id: &RequestId, frame: &Frame) -> ControlResponse {
        let subtype = frame.subtype().unwrap_or_default();
        let why = match subtype {
            "can_use_tool" => match PermissionRequest::read(frame) {
                Ok(request) => return success(id, &self.permissions.decide(request).await),
                Err(reason) => {
                    format!("the permission request could not be read, so it is refused: {reason}")
                }
            },
            "hook_callback" => "no hook callback has this id".to_owned(),
            "mcp_message" => "SDK MCP server not found".to_owned(),
            _ => String::new(),
        };
        refusal(id, subtype, &why)
    }
}

/// Refuses a request for which there is no room.
pub(super) fn refuse(conn: &Arc<Conn>, id: String, wire_id: RequestId, frame: &Frame) {
    Responder::new(conn, id, wire_id, frame).refuse("too many requests are open at once");
}

/// Has a request answered in a task of its own.
pub(super) fn spawn(conn: &Arc<Conn>, host: &Arc<Host>, id: String, wire_id: RequestId, frame: Frame) {
    let responder = Responder::new(conn, id.clone(), wire_id, &frame);
    let host = Arc::clone(host);
    let span = tracing::debug_span!(
        parent: &conn.span,
        "asked",
        subtype = %responder.subtype,
        id = %responder.id
    );
    let answering = async move {
        let answer = host.answer(&responder.wire_id, &frame).await;
        responder.give(&answer);
        tracing::debug!("answered");
    };
    let task = tokio::spawn(answering.instrument(span));
    // It is withdrawn by frames, which come to the task that runs this, or by the session's end meanwhile.
    if !conn.router().asked.answering(&id, task.abort_handle()) {
        // Or it has been answered already, which makes this do nothing.
        task.abort();
    }
}

/// The right to answer one request. Dropped without an answer (a handler panicked) it refuses.
struct Responder {
    conn: Arc<Conn>,
    id: String,
    wire_id: RequestId,
    subtype: String,
}

impl Responder {
    fn new(conn: &Arc<Conn>, id: String, wire_id: RequestId, frame: &Frame) -> Self {
        Self {
            conn: Arc::clone(conn),
            id,
            wire_id,
            subtype: frame.subtype().unwrap_or_default().to_owned(),
        }
    }

    /// Answers, unless the request was answered or withdrawn before.
    fn give(&self, answer: &ControlResponse) {
        let wakes_watchdog = {
            let mut router = self.conn.router();
            if !router.claim_answer(&self.id) {
                return;
            }
            router.watchdog_rests
        };
        let line = |answer: &ControlResponse| {
            encode_line(&Line {
                kind: "control_response",
                answer,
            })
        };
        let bytes = line(answer).or_else(|error| {
            let why = format!("the answer could not be written: {error}");
            line(&ControlResponse::error(self.wire_id.clone(), why))
        });
        match bytes {
            Ok(bytes) => self.write(bytes),
            // An error made of text can always be written.
            Err(_) => self.conn.router().asked.written(&self.id),
        }
        self.conn.changed.notify_waiters();
        if wakes_watchdog {
            self.conn.watched.notify_one();
        }
    }

    fn write(&self, bytes: Vec<u8>) {
        if let Err(TrySendError::Full(line)) = self.conn.control.try_send(bytes) {
            let (conn, id) = (Arc::clone(&self.conn), self.id.clone());
            // Bounded by the number of requests that may be open, which this one is until then.
            tokio::spawn(async move {
                // A writer that is gone needs no answer.
                let _ = conn.control.send(line).await;
                conn.router().asked.written(&id);
                conn.changed.notify_waiters();
            });
        } else {
            self.conn.router().asked.written(&self.id);
        }
    }

    fn refuse(&self, why: &str) {
        self.give(&refusal(&self.wire_id, &self.subtype, why));
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        // Withdrawn and answered requests can't be claimed, so this is a handler that panicked.
        if !std::thread::panicking() {
            return;
        }
        self.refuse("the handler of this request failed, so it is refused");
    }
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    answer: &'a ControlResponse,
}
