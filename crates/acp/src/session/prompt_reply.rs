//! What a prompt is owed, which is where the versions of the protocol differ most.

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v2::schema as draft;
use agent_client_protocol::{Error, RequestCancellation};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::answer::Answer;
use crate::outcome::{self, End};

/// What a prompt is owed.
pub(crate) struct PromptReply {
    what: What,
    /// Until it was given, for whoever watches whether the editor takes the prompt back.
    open: Option<DropGuard>,
}

enum What {
    /// The first version: an answer at the end of the turn, which says how it ended.
    AtEnd(Answer<acp::PromptResponse>),
    /// The draft of the second: an answer as soon as the prompt is part of the conversation.
    AtBegin(Begin),
    /// Nothing: what asked for it was answered. What is said to it comes as updates.
    Nothing,
    /// That answer was given. How the turn ended is told as the state of the session.
    End,
}

/// What becomes of a prompt of the second version when it becomes part of the conversation.
pub(super) struct Begin {
    /// Says under which id it is part of it.
    pub(super) answer: Answer<draft::PromptResponse>,
    /// What was said, which is told back.
    pub(super) said: Vec<draft::ContentBlock>,
}

impl From<Answer<acp::PromptResponse>> for PromptReply {
    fn from(answer: Answer<acp::PromptResponse>) -> Self {
        Self::new(What::AtEnd(answer))
    }
}

impl PromptReply {
    fn new(what: What) -> Self {
        let open = Some(CancellationToken::new().drop_guard());
        Self { what, open }
    }

    /// Of one that is owed nothing.
    pub(super) fn nothing() -> Self {
        Self::new(What::Nothing)
    }

    /// Of a prompt of the second version.
    pub(crate) fn at_begin(answer: Answer<draft::PromptResponse>, said: Vec<draft::ContentBlock>) -> Self {
        Self::new(What::AtBegin(Begin { answer, said }))
    }

    /// The prompt becomes part of the conversation: what has to be told then, once.
    pub(super) fn begin(&mut self) -> Option<Begin> {
        if !matches!(self.what, What::AtBegin(_)) {
            return None;
        }
        self.open = None;
        match std::mem::replace(&mut self.what, What::End) {
            What::AtBegin(begin) => Some(begin),
            _ => None,
        }
    }

    /// Its turn ended, or it never had one. Returns how it ended if that is to be told as the state of the session.
    pub(super) fn settle(self, end: End, is_cancelled: bool) -> Option<End> {
        match self.what {
            What::AtEnd(answer) => answer.give(end),
            What::End => return Some(end),
            What::Nothing => {
                if let Err(error) = end {
                    tracing::warn!(%error, "what was said while the model worked came to nothing");
                }
            }
            // It never was part of the conversation.
            What::AtBegin(Begin { answer, .. }) => answer.refuse(match end {
                Err(error) if !is_cancelled => error,
                _ => Error::request_cancelled(),
            }),
        }
        None
    }

    /// Refuses it.
    pub(crate) fn refuse(self, error: Error) {
        drop(self.settle(Err(error), false));
    }

    /// It came to nothing, since the editor wants it so.
    pub(super) fn cancel(self) {
        drop(self.settle(Ok(outcome::cancelled(None)), true));
    }

    /// Resolves to `true` when the editor takes the prompt back, and to `false` when it can't any more.
    pub(super) fn withdrawn(&self) -> impl Future<Output = bool> + Send + use<> {
        let cancellation: Option<RequestCancellation> = match &self.what {
            What::AtEnd(answer) => Some(answer.cancellation()),
            What::AtBegin(begin) => Some(begin.answer.cancellation()),
            What::End | What::Nothing => None,
        };
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
