//! How turns end, and what ends them.

use outrigger::protocol::Frame;
use outrigger::{Outcome, Turn};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Actor;
use crate::session::process::{Process, Running};
use crate::session::prompt_reply::PromptReply;
use crate::session::prompts::{Attempt, Ended};
use crate::{outcome, sdk_error};

/// A turn that ended, and what of.
pub(super) type TurnEnd = (Attempt, outrigger::Result<Outcome>);

impl Actor {
    pub(super) fn cancel_all(&mut self) {
        let ended = self.prompts.cancel_all(Instant::now());
        self.answer_cancelled(ended);
        self.cancel_own();
    }

    pub(super) fn answer_cancelled(&mut self, ended: impl IntoIterator<Item = Ended<PromptReply>>) {
        for ended in ended {
            self.finish(ended, Ok(outcome::cancelled(None)));
        }
    }

    /// The CLI has not ended a turn that was cancelled: it is answered for, and the process is ended, so that nothing goes on unseen.
    pub(super) async fn floor_reached(&mut self) {
        let updates = self.updates.cancelled();
        self.tell(updates);
        let ended = self.prompts.give_up_cancelled();
        tracing::warn!(
            prompts = ended.len(),
            "the CLI did not end a turn that was cancelled; its process is ended"
        );
        self.answer_cancelled(ended);
        if let Process::Running(Running { session, .. }) = &self.process {
            let session = session.clone();
            tokio::spawn(async move {
                if let Err(error) = session.kill().await {
                    tracing::warn!(%error, "a process was not seen ending");
                }
            });
        }
    }

    pub(super) fn turn_ended(&mut self, end: TurnEnd) {
        let is_there = match &end.1 {
            Ok(outcome) => match outcome.frame().and_then(Frame::uuid) {
                Some(uuid) => self.results.iter().any(|seen| seen == uuid),
                None => true,
            },
            // The frames of a process that ended come first; then its end is told, for all turns.
            Err(error) if error.is_closed() => return,
            Err(_) => true,
        };
        if is_there {
            self.settle(end);
        } else {
            self.ending.push(end);
        }
    }

    /// Answers a prompt whose turn ended.
    pub(super) fn settle(&mut self, (attempt, ended): TurnEnd) {
        if self.goes_on_anew(attempt) {
            return;
        }
        let Some(prompt) = self.prompts.end(attempt) else {
            return;
        };
        let was_cancelled = prompt.cancelled
            || (self.stopped_by_answer && ended.as_ref().is_ok_and(|told| !told.is_success()));
        if was_cancelled {
            let updates = self.updates.cancelled();
            self.tell(updates);
        }
        self.stopped_by_answer = false;
        let told = match &ended {
            told if was_cancelled => Ok(outcome::cancelled(told.as_ref().ok())),
            Ok(outcome) => outcome::of(outcome).map_err(|error| self.failed(error)),
            Err(error) => Err(self.failed(sdk_error::of_sdk(error))),
        };
        self.finish(prompt, told);
    }

    pub(super) fn settle_all(&mut self) {
        for end in std::mem::take(&mut self.ending) {
            self.settle(end);
        }
    }
}

/// A turn until its end; `stop` ends it.
pub(super) async fn run(attempt: Attempt, mut turn: Turn, stop: CancellationToken) -> TurnEnd {
    tokio::select! {
        outcome = turn.outcome() => return (attempt, outcome),
        () = stop.cancelled() => {}
    }
    if let Err(error) = turn.cancel().await {
        tracing::warn!(%error, "a turn was not ended as asked");
    }
    (attempt, turn.outcome().await)
}
