//! Answering what the CLI asks: each request once, and never after it was withdrawn.

use std::sync::Arc;

use outrigger_protocol::outbound::encode_line;
use outrigger_protocol::shared::PermissionResult;
use outrigger_protocol::{Frame, RawJson};
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;

use super::Conn;
use crate::permissions::{PermissionHandler, PermissionRequest};

/// The program's side of the conversation: what answers the CLI's requests.
pub(crate) struct Host {
    pub(crate) permissions: Arc<dyn PermissionHandler>,
}

/// What is written back.
#[derive(Debug)]
enum Answer {
    Success(RawJson),
    Error {
        message: String,
        code: Option<&'static str>,
    },
}

impl Answer {
    fn of<T: Serialize>(payload: &T) -> Self {
        match RawJson::encode(payload) {
            Ok(payload) => Self::Success(payload),
            Err(error) => Self::Error {
                message: format!("the answer could not be written: {error}"),
                code: None,
            },
        }
    }

    /// The answer that refuses, in the way that this kind of request understands as a refusal.
    fn refusal(subtype: &str, why: &str) -> Self {
        match subtype {
            "can_use_tool" => Self::of(&PermissionResult::deny(why)),
            "elicitation" => Self::of(&json!({"action": "decline"})),
            "request_user_dialog" => Self::of(&json!({"behavior": "cancelled"})),
            "oauth_token_refresh" => Self::of(&json!({"accessToken": null})),
            "host_auth_token_refresh" => Self::of(&json!({"authToken": null})),
            "hook_callback" | "mcp_message" => Self::Error {
                message: why.to_owned(),
                code: None,
            },
            other => Self::Error {
                message: format!("Unsupported control request subtype: {other}"),
                code: Some("unsupported_request"),
            },
        }
    }
}

impl Host {
    async fn answer(&self, frame: &Frame) -> Answer {
        let subtype = frame.subtype().unwrap_or_default();
        let why = match subtype {
            "can_use_tool" => match PermissionRequest::read(frame) {
                Ok(request) => return Answer::of(&self.permissions.decide(request).await),
                Err(reason) => {
                    format!("the permission request could not be read, so it is refused: {reason}")
                }
            },
            "hook_callback" => "no hook callback has this id".to_owned(),
            "mcp_message" => "SDK MCP server not found".to_owned(),
            _ => String::new(),
        };
        Answer::refusal(subtype, &why)
    }
}

/// Has a request answered in a task of its own.
pub(super) fn spawn(conn: &Arc<Conn>, host: &Arc<Host>, id: String, raw_id: RawJson, frame: Frame) {
    let responder = Responder {
        conn: Arc::clone(conn),
        id: id.clone(),
        raw_id,
        subtype: frame.subtype().unwrap_or_default().to_owned(),
    };
    if conn.router().is_overasked() {
        responder.give(Answer::refusal(
            &responder.subtype,
            "too many requests are open at once",
        ));
        return;
    }
    let host = Arc::clone(host);
    let (begin, begun) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        // Until the way to withdraw it is known, nothing is done.
        if begun.await.is_ok() {
            let answer = host.answer(&frame).await;
            responder.give(answer);
        }
    });
    if conn.router().answering(&id, task.abort_handle()) {
        // The task can't have gone: it waits for this.
        let _ = begin.send(());
    } else {
        task.abort();
    }
}

/// The right to answer one request. Dropped without an answer (a handler panicked) it refuses.
struct Responder {
    conn: Arc<Conn>,
    id: String,
    raw_id: RawJson,
    subtype: String,
}

impl Responder {
    /// Answers, unless the request was answered or withdrawn before.
    fn give(&self, answer: Answer) {
        if !self.conn.router().claim_answer(&self.id) {
            return;
        }
        let bytes = match self.line(&answer) {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::error!(%error, request = %self.id, "an answer could not be written");
                return;
            }
        };
        match self.conn.control.try_send(bytes) {
            Ok(()) | Err(TrySendError::Closed(_)) => {}
            Err(TrySendError::Full(line)) => {
                let control = self.conn.control.clone();
                // Bounded by the number of requests that may be open. A writer that is gone needs no answer.
                tokio::spawn(async move {
                    let _ = control.send(line).await;
                });
            }
        }
        self.conn.changed.notify_waiters();
    }

    fn line(&self, answer: &Answer) -> Result<Vec<u8>, serde_json::Error> {
        let id = &self.raw_id;
        let response = match answer {
            Answer::Success(payload) => Body {
                subtype: "success",
                request_id: id,
                response: Some(payload),
                error: None,
                error_code: None,
            },
            Answer::Error { message, code } => Body {
                subtype: "error",
                request_id: id,
                response: None,
                error: Some(message),
                error_code: *code,
            },
        };
        encode_line(&Response {
            kind: "control_response",
            response,
        })
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        // Withdrawn and answered requests can't be claimed, so this is a handler that panicked.
        if !std::thread::panicking() {
            return;
        }
        self.give(Answer::refusal(
            &self.subtype,
            "the handler of this request failed, so it is refused",
        ));
    }
}

#[derive(Serialize)]
struct Response<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    response: Body<'a>,
}

#[derive(Serialize)]
struct Body<'a> {
    subtype: &'static str,
    request_id: &'a RawJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<&'static str>,
}
