//! How a question reaches the editor, and what ends it before its answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol::{Error, RequestCancellation};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::EditorQuestion;
use crate::client::EditorReply;
use crate::error;

/// How long the CLI may take to stop a subagent, before the questions of the subagent are answered.
const STOP_TIME: Duration = Duration::from_secs(10);

/// A question that the session's task has sent to the editor.
pub(crate) struct SentQuestion<T> {
    pub(crate) answer: EditorReply<T>,
    /// The requests of the prompts in the turn that asks. The question ends when the editor cancels one of them.
    pub(crate) prompts: Vec<RequestCancellation>,
}

/// Where the session's task puts a question that it has sent; `None` if the turn that asks is cancelled.
pub(crate) type QuestionSlot<T> = oneshot::Sender<Option<SentQuestion<T>>>;

/// Dropped when a decision is handled.
pub(crate) type Handled = oneshot::Sender<()>;

/// Asks the editor, by the session's task. Cheap to clone.
#[derive(Clone)]
pub(super) struct Asker {
    task: mpsc::Sender<EditorQuestion>,
    cancel: QuestionCancel,
}

impl Asker {
    pub(super) fn new(task: mpsc::Sender<EditorQuestion>) -> Self {
        let cancel = QuestionCancel::default();
        Self { task, cancel }
    }

    pub(super) fn cancel(&self) -> QuestionCancel {
        self.cancel.clone()
    }

    /// Tells the session's task of a decision, and waits until the task has handled it: the CLI gets its reply after that, so that what it
    /// writes because of the reply, such as the end of the turn, comes behind the decision. If the task has ended, nobody needs it.
    pub(super) async fn tell(&self, decision: impl FnOnce(Handled) -> EditorQuestion) {
        let (handled, is_handled) = oneshot::channel();
        if self.task.send(decision(handled)).await.is_ok() {
            let _ = is_handled.await;
        }
    }

    /// Asks, and returns the answer; `None` if the question was cancelled. `agent` is the subagent that asks.
    ///
    /// An editor may send a cancel with an answer right behind it. Such an answer must not allow anything, so both are looked at again
    /// once there is an answer.
    ///
    /// A question of a cancelled subagent is not over at once: a reply would let the subagent go on before it is stopped. The CLI takes
    /// the request back when it stops the subagent, and this future is dropped.
    pub(super) async fn ask<T>(
        &self,
        agent: Option<&str>,
        question: impl FnOnce(QuestionSlot<T>) -> EditorQuestion,
    ) -> Result<Option<T>, Error> {
        let cancelled = self.cancel.opened(agent);
        let _over = cancelled.clone().drop_guard();
        let answer = tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            answer = self.answer(question) => answer?,
        };
        if cancelled.is_cancelled() {
            if agent.is_some() {
                tokio::time::sleep(STOP_TIME).await;
            }
            return Ok(None);
        }
        Ok(answer)
    }

    async fn answer<T>(
        &self,
        question: impl FnOnce(QuestionSlot<T>) -> EditorQuestion,
    ) -> Result<Option<T>, Error> {
        let gone = || error::internal("the session is being closed");
        let (reply, sent) = oneshot::channel();
        self.task.send(question(reply)).await.map_err(|_| gone())?;
        let Some(SentQuestion { answer, prompts }) = sent.await.map_err(|_| gone())? else {
            return Ok(None);
        };
        let answer = tokio::select! {
            biased;
            () = withdrawn(&prompts) => return Ok(None),
            answer = answer => answer?,
        };
        let is_withdrawn = prompts.iter().any(RequestCancellation::is_cancelled);
        Ok(Some(answer).filter(|_| !is_withdrawn))
    }
}

/// Waits until one of the requests is cancelled.
async fn withdrawn(prompts: &[RequestCancellation]) {
    let mut cancelled: FuturesUnordered<_> = prompts.iter().map(RequestCancellation::cancelled).collect();
    if cancelled.next().await.is_none() {
        std::future::pending().await
    }
}

/// Cancels the open questions of a session, at once: the session's task may be busy, or behind. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct QuestionCancel(Arc<Mutex<Vec<AwaitedQuestion>>>);

/// A question that waits for its answer, and the subagent that asks.
#[derive(Debug)]
struct AwaitedQuestion {
    agent: Option<String>,
    /// Fires when the question is cancelled, and when it is over.
    cancelled: CancellationToken,
}

impl QuestionCancel {
    /// Cancels the questions of a subagent, or all.
    pub(crate) fn cancel(&self, agent: Option<&str>) {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for question in open.iter() {
            if agent.is_none() || agent == question.agent.as_deref() {
                question.cancelled.cancel();
            }
        }
    }

    /// Returns what cancels a new question. The caller fires it at the end of the question.
    fn opened(&self, agent: Option<&str>) -> CancellationToken {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|question| !question.cancelled.is_cancelled());
        let cancelled = CancellationToken::new();
        open.push(AwaitedQuestion {
            agent: agent.map(str::to_owned),
            cancelled: cancelled.clone(),
        });
        cancelled
    }
}
