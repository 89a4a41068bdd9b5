//! Answers CLI requests: each once, and never after it was withdrawn.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

use outrigger_protocol::outbound::{ControlResponse, encode_line};
use outrigger_protocol::shared::RequestId;
use outrigger_protocol::{Frame, RawJson};
use serde::Serialize;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;

use super::core::{Input, Serial};
use super::driver::Driver;
use super::{Conn, Context};
use crate::error::{Error, Kind};
use crate::fields::Fields;
use crate::peer::BoxFuture;
use crate::spawn::{spawn_in, spawn_on};

/// Answers one kind of CLI requests.
pub(crate) trait Answerer: Send + Sync + 'static {
    /// Accepts a request.
    ///
    /// The reader's task calls this, in the order of the requests: it must not run user code or wait. The future runs in its own
    /// task, which is dropped when the request is withdrawn.
    fn accept(&self, asking: CliRequest) -> BoxFuture<'static, CliReply>;

    /// The reply if that future panics, or if there is no room for the request: the rejection in the form of its kind. It must not
    /// run user code.
    fn refuse(&self, frame: &Frame, why: &str) -> CliReply;
}

/// A CLI request to answer.
pub(crate) struct CliRequest {
    pub(crate) frame: Frame,
    pub(crate) context: Context,
}

/// The reply to a CLI request.
#[derive(Debug)]
pub(crate) enum CliReply {
    /// Success, with this payload.
    Success(RawJson),
    /// An error.
    Error(String),
    /// This build does not know the kind of request.
    Unsupported,
    /// None yet: the request stays open, for a later reply by its id.
    Parked,
    /// None: another program that is connected to the CLI replies.
    NotOurs,
}

impl CliReply {
    pub(crate) fn success<T: Serialize + ?Sized>(payload: &T) -> Self {
        match RawJson::encode(payload) {
            Ok(payload) => Self::Success(payload),
            Err(error) => Self::Error(format!("the answer could not be written: {error}")),
        }
    }
}

/// The answerers of a session, by kind of request.
pub(crate) struct Answerers {
    pub(crate) permissions: Arc<dyn Answerer>,
    pub(crate) hooks: Arc<dyn Answerer>,
    pub(crate) mcp: Arc<dyn Answerer>,
    pub(crate) elicitation: Arc<dyn Answerer>,
    pub(crate) dialogs: Arc<dyn Answerer>,
    pub(crate) tokens: Arc<dyn Answerer>,
    pub(crate) others: Arc<dyn Answerer>,
}

impl Answerers {
    fn answerer(&self, subtype: &str) -> &Arc<dyn Answerer> {
        match subtype {
            "can_use_tool" => &self.permissions,
            "hook_callback" => &self.hooks,
            "mcp_message" => &self.mcp,
            "elicitation" => &self.elicitation,
            "request_user_dialog" => &self.dialogs,
            "oauth_token_refresh" | "host_auth_token_refresh" => &self.tokens,
            _ => &self.others,
        }
    }
}

/// Answers requests of other kinds.
pub(crate) struct Others;

impl Others {
    fn answer(frame: &Frame) -> CliReply {
        match frame.subtype() {
            // They are for another connected program that hosts remote tools, and a reply from here would take them away.
            Some(
                "remote_tool_call"
                | "remote_plumbing_call"
                | "remote_tools_probe"
                | "remote_tools_reannounce",
            ) => CliReply::NotOurs,
            _ => CliReply::Unsupported,
        }
    }
}

impl Answerer for Others {
    fn accept(&self, asking: CliRequest) -> BoxFuture<'static, CliReply> {
        Box::pin(std::future::ready(Self::answer(&asking.frame)))
    }

    fn refuse(&self, frame: &Frame, _: &str) -> CliReply {
        Self::answer(frame)
    }
}

/// Rejects a request for which there is no room.
pub(super) fn refuse(conn: &Arc<Conn>, host: &Answerers, serial: Serial, id: &RequestId, frame: &Frame) {
    let answerer = host.answerer(frame.subtype().unwrap_or_default());
    let answer = answerer.refuse(frame, "too many requests are open at once");
    conn.give(serial, id, frame.subtype(), answer);
}

/// Answers a request in its own task.
pub(super) fn spawn(conn: &Arc<Conn>, host: &Answerers, serial: Serial, id: RequestId, frame: Frame) {
    let Some(withdrawn) = conn.driver().withdrawn(serial) else {
        // The session has ended meanwhile.
        return;
    };
    let answerer = Arc::clone(host.answerer(frame.subtype().unwrap_or_default()));
    let span = tracing::debug_span!(
        parent: &conn.span,
        "asked",
        subtype = frame.subtype().unwrap_or_default(),
        %id
    );
    let context = Context::new(id.clone(), withdrawn, Arc::downgrade(conn));
    let answering = span.in_scope(|| {
        answerer.accept(CliRequest {
            frame: frame.clone(),
            context,
        })
    });
    let task = {
        let conn = Arc::clone(conn);
        async move {
            let answer = match unwinding(answering).await {
                Some(answer) => answer,
                None => {
                    tracing::error!("the callback panicked; the request is refused");
                    answerer.refuse(&frame, "the callback for this request panicked")
                }
            };
            conn.give(serial, &id, frame.subtype(), answer);
        }
    };
    let task = spawn_in(span, task);
    // It is withdrawn by frames, which come to the task that runs this, or by the session's end meanwhile.
    if !conn.driver().works(serial, task.abort_handle()) {
        // Or it has been answered already, which makes this do nothing.
        task.abort();
    }
}

/// Runs a future; `None` if it panics.
async fn unwinding<T>(mut future: BoxFuture<'static, T>) -> Option<T> {
    std::future::poll_fn(move |cx| {
        // The future is never polled again after a panic, and its state is only visible through its own locks.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        }
    })
    .await
}

impl Conn {
    /// Sends the reply, unless the request was answered or withdrawn before.
    fn give(self: &Arc<Self>, serial: Serial, id: &RequestId, subtype: Option<&str>, answer: CliReply) {
        let response = match &answer {
            CliReply::Success(payload) => Response::Success(payload),
            CliReply::Error(why) => Response::Other(ControlResponse::error(id.clone(), why)),
            CliReply::Unsupported => Response::Other(ControlResponse::unsupported(
                id.clone(),
                subtype.unwrap_or_default(),
            )),
            CliReply::Parked => {
                tracing::debug!("left open");
                return self.driver().park(serial);
            }
            CliReply::NotOurs => {
                tracing::debug!("left to others");
                return self.with(|driver| driver.done(Input::Leave(serial), serial));
            }
        };
        if self.step(Input::Claim(serial)).is_ok() {
            self.write_answer(serial, id, &response);
        }
    }

    /// Answers a request in place of its callback, and stops the callback if it still works.
    pub(crate) fn settle(self: &Arc<Self>, id: &str, subtype: &str, payload: &RawJson) -> Result<(), Error> {
        let (serial, id) = self.with(|driver| {
            let core = driver.core();
            if let Some(ended) = core.ended() {
                return Err(ended.clone());
            }
            let not_open = || Error::new(Kind::NotOpen { id: id.to_owned() });
            let (serial, id, frame) = core.request(id).ok_or_else(not_open)?;
            let is = frame.subtype().unwrap_or_default();
            if is != subtype {
                return Err(Error::invalid(format!(
                    "answer: the request `{id}` is of the kind `{is}`, not `{subtype}`"
                )));
            }
            let id = id.clone();
            driver.step(Input::Claim(serial), Instant::now())?;
            driver.take_over(serial);
            Ok((serial, id))
        })?;
        self.write_answer(serial, &id, &Response::Success(payload));
        Ok(())
    }

    fn write_answer(self: &Arc<Self>, serial: Serial, id: &RequestId, response: &Response<'_>) {
        if response.is_interrupt() {
            self.note(Input::InterruptByReply);
        }
        let bytes = response.line(id).or_else(|error| {
            let why = format!("the answer could not be written: {error}");
            Response::Other(ControlResponse::error(id.clone(), why)).line(id)
        });
        tracing::debug!("answered");
        self.driver().tell_reply(id.as_str(), response.payload());
        let written = move |driver: &mut Driver| driver.done(Input::Written(serial), serial);
        // An error made of text can always be written.
        if let Ok(bytes) = bytes
            && let Err(TrySendError::Full(line)) = self.send_answer(bytes)
        {
            let conn = Arc::clone(self);
            // Bounded by the number of requests that may be open, which this one is until then.
            // A decision may come from outside of any runtime.
            spawn_on(&self.runtime, async move {
                // A writer that is gone needs no answer.
                let _ = conn.control.send(line).await;
                conn.with(written);
            });
        } else {
            self.with(written);
        }
    }

    /// Writes a reply at once if possible, else passes it to the writer.
    fn send_answer(&self, bytes: Vec<u8>) -> Result<(), TrySendError<Vec<u8>>> {
        match self.stdin.write_now(bytes, &self.control) {
            Ok(()) => Ok(()),
            Err(bytes) => self.control.try_send(bytes),
        }
    }
}

/// The line of the reply.
enum Response<'a> {
    Success(&'a RawJson),
    Other(ControlResponse),
}

impl Response<'_> {
    /// What a reply that is no error carries.
    fn payload(&self) -> Option<&RawJson> {
        match self {
            Self::Success(payload) => Some(payload),
            Self::Other(_) => None,
        }
    }

    /// Whether the reply denies a tool call and ends the turn with that.
    fn is_interrupt(&self) -> bool {
        let Self::Success(payload) = self else {
            return false;
        };
        if !payload.get().contains("\"interrupt\"") {
            return false;
        }
        let fields = Fields::of_object(payload);
        fields.get("interrupt") == Some(true) && fields.get("behavior") == Some("deny".to_owned())
    }

    fn line(&self, wire_id: &RequestId) -> Result<Vec<u8>, serde_json::Error> {
        #[derive(Serialize)]
        struct ReplyLine<T> {
            #[serde(rename = "type")]
            kind: &'static str,
            response: T,
        }
        #[derive(Serialize)]
        struct Success<'a> {
            subtype: &'static str,
            request_id: &'a RequestId,
            response: &'a RawJson,
        }
        let kind = "control_response";
        match self {
            Self::Success(response) => encode_line(&ReplyLine {
                kind,
                response: Success {
                    subtype: "success",
                    request_id: wire_id,
                    response,
                },
            }),
            Self::Other(other) => encode_line(&ReplyLine {
                kind,
                response: &other.response,
            }),
        }
    }
}
