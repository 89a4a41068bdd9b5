//! The reply of a prompt, in which the versions of the protocol differ most.

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v2::schema as draft;
use agent_client_protocol::{Error, RequestCancellation};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::outcome::{self, End};
use crate::response_sender::ResponseSender;

/// The reply of a prompt.
pub(crate) struct PromptReply {
    what: ReplyTime,
    /// Dropped with the reply, so that [`withdrawn`](Self::withdrawn) resolves.
    open: Option<DropGuard>,
}

enum ReplyTime {
    /// Version 1: an answer at the end of the turn, with its result.
    AtEnd(ResponseSender<acp::PromptResponse>),
    /// Version 2: an answer as soon as the prompt is part of the conversation.
    AtBegin(Begin),
    /// None: the request behind the prompt was answered, and the model's answer comes as updates.
    Nothing,
    /// The answer of version 2 was sent. The result of the turn is sent as the state of the session.
    End,
}

/// What to send when a prompt of version 2 becomes part of the conversation.
pub(super) struct Begin {
    /// The answer, with the id of the message.
    pub(super) answer: ResponseSender<draft::PromptResponse>,
    /// The content, which is sent back as an update.
    pub(super) said: Vec<draft::ContentBlock>,
}

impl From<ResponseSender<acp::PromptResponse>> for PromptReply {
    fn from(answer: ResponseSender<acp::PromptResponse>) -> Self {
        Self::new(ReplyTime::AtEnd(answer))
    }
}

impl PromptReply {
    fn new(what: ReplyTime) -> Self {
        let open = Some(CancellationToken::new().drop_guard());
        Self { what, open }
    }

    pub(super) fn nothing() -> Self {
        Self::new(ReplyTime::Nothing)
    }

    /// For a prompt of version 2.
    pub(crate) fn at_begin(
        answer: ResponseSender<draft::PromptResponse>,
        said: Vec<draft::ContentBlock>,
    ) -> Self {
        Self::new(ReplyTime::AtBegin(Begin { answer, said }))
    }

    /// Whether the editor waits for the end of the prompt's turn.
    pub(super) fn is_awaited(&self) -> bool {
        !matches!(self.what, ReplyTime::Nothing)
    }

    /// The prompt becomes part of the conversation. Returns what to send then, once.
    pub(super) fn begin(&mut self) -> Option<Begin> {
        if !matches!(self.what, ReplyTime::AtBegin(_)) {
            return None;
        }
        self.open = None;
        match std::mem::replace(&mut self.what, ReplyTime::End) {
            ReplyTime::AtBegin(begin) => Some(begin),
            _ => None,
        }
    }

    /// The turn ended, or there was none. Returns the result if the state of the session reports it.
    pub(super) fn settle(self, end: End, is_cancelled: bool) -> Option<End> {
        match self.what {
            ReplyTime::AtEnd(answer) => answer.give(end),
            ReplyTime::End => return Some(end),
            ReplyTime::Nothing => {
                if let Err(error) = end {
                    tracing::warn!(%error, "what was said while the model worked came to nothing");
                }
            }
            // The prompt never was part of the conversation.
            ReplyTime::AtBegin(Begin { answer, .. }) => answer.refuse(match end {
                Err(error) if !is_cancelled => error,
                _ => Error::request_cancelled(),
            }),
        }
        None
    }

    pub(crate) fn refuse(self, error: Error) {
        drop(self.settle(Err(error), false));
    }

    /// The editor cancelled the prompt before it was sent.
    pub(super) fn cancel(self) {
        drop(self.settle(Ok(outcome::cancelled(None)), true));
    }

    /// Whether the editor has cancelled the request of the prompt; `None` if it no longer can.
    pub(super) fn cancellation(&self) -> Option<RequestCancellation> {
        match &self.what {
            ReplyTime::AtEnd(answer) => Some(answer.cancellation()),
            ReplyTime::AtBegin(begin) => Some(begin.answer.cancellation()),
            ReplyTime::End | ReplyTime::Nothing => None,
        }
    }

    /// Resolves to `true` when the editor cancels the request of the prompt, and to `false` when it no longer can.
    pub(super) fn withdrawn(&self) -> impl Future<Output = bool> + Send + use<> {
        let cancellation = self.cancellation();
        let over = self.open.as_ref().map(|open| open.token().clone());
        async move {
            let (Some(cancellation), Some(over)) = (cancellation, over) else {
                return false;
            };
            tokio::select! {
                () = cancellation.cancelled() => true,
                () = over.cancelled() => false,
            }
        }
    }
}
