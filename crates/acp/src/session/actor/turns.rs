//! The turns of prompts: how they end, and what ends them.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use outrigger::protocol::Frame;
use outrigger::{Outcome, OutcomeWatch, Turn};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Actor, INTERRUPT};
use crate::session::process::{Process, RunningProcess};
use crate::session::prompt_reply::PromptReply;
use crate::session::prompts::{Attempt, EndedPrompt};
use crate::session::{Rung, SessionCommand};
use crate::{outcome, sdk_error};

/// How many result frames are remembered for turns whose end has not been handled.
const RESULTS: usize = 64;

/// A turn that ended, and its outcome.
pub(super) type TurnEnd = (Attempt, outrigger::Result<Outcome>);

#[derive(Default)]
pub(super) struct Turns {
    /// Each ends with its turn. They are tasks, since a cancelled turn has to end even while the session's task does not look at the
    /// ends of turns: the editor is behind then.
    pub(super) running: JoinSet<TurnEnd>,
    /// The same turns, for an end that is handled right behind its result frame: frames of later turns may wait there, too.
    pub(super) open: Vec<(Attempt, OutcomeWatch)>,
    /// Turns that ended, but whose result frame has not been read.
    ended: Vec<TurnEnd>,
    /// The uuids of the last result frames.
    results: VecDeque<String>,
    /// The last attempt whose result frame may have been dropped.
    lagged: Option<Attempt>,
}

impl Turns {
    /// Whether the result frame of a turn that ended is still to be read.
    fn waits_for_result(&self, end: &TurnEnd) -> bool {
        let is_read = |uuid: &str| self.results.iter().any(|seen| seen == uuid);
        let is_dropped = self.lagged.is_some_and(|last| end.0 <= last);
        !is_dropped && result_uuid(end).is_some_and(|uuid| !is_read(uuid))
    }

    /// A result frame was read: returns the turns that waited for it.
    pub(super) fn reported(&mut self, uuid: &str) -> Vec<TurnEnd> {
        if self.results.len() == RESULTS {
            self.results.pop_front();
        }
        self.results.push_back(uuid.to_owned());
        let is_it = |end: &TurnEnd| result_uuid(end) == Some(uuid);
        let mut reported: Vec<TurnEnd> = self.ended.extract_if(.., |end| is_it(end)).collect();
        let now = self
            .open
            .iter()
            .filter_map(|(attempt, watch)| Some((*attempt, watch.now()?)));
        reported.extend(now.filter(is_it));
        reported
    }
}

fn result_uuid((_, outcome): &TurnEnd) -> Option<&str> {
    outcome.as_ref().ok()?.frame().and_then(Frame::uuid)
}

impl Actor {
    pub(super) fn heed(&mut self, rung: Rung) {
        if rung.all {
            self.cancel_all();
        }
        for agent in rung.agents {
            self.cancel_children(Some(&agent));
        }
    }

    /// Ends on the host what the editor cancelled before it left, as far as that can be done at once. All else goes on there.
    pub(super) async fn end_cancelled(&mut self) {
        if self.inbox.stop.is_cancelled() {
            // The last messages of the editor may be cancels.
            self.inbox.handled.cancelled().await;
        }
        let rung = self.inbox.cancel.take();
        self.heed(rung);
        while let Ok(command) = self.inbox.commands.try_recv() {
            match command {
                SessionCommand::Cancel | SessionCommand::CancelAgent(_) => self.command(command),
                other => other.closed(),
            }
        }
        while let Some(Some(withdrawn)) = self.withdrawn.next().now_or_never() {
            let ended = withdrawn.and_then(|number| self.prompts.cancel(number, Instant::now()));
            self.answer_cancelled(ended);
        }
        self.settle_all();
        let ended = async {
            while self.prompts.floor(Duration::ZERO).is_some()
                && let Some(Ok(end)) = self.turns.running.join_next().await
            {
                self.settle(end);
            }
            self.cancelling.close();
            self.cancelling.wait().await;
        };
        if tokio::time::timeout(INTERRUPT, ended).await.is_err() {
            tracing::debug!("what was cancelled did not end before its session was left");
        }
    }

    pub(super) fn cancel_all(&mut self) {
        self.idle.cancelled();
        let ended = self.prompts.cancel_all(Instant::now());
        self.answer_cancelled(ended);
        self.cancel_own();
        self.cancel_children(None);
    }

    pub(super) fn answer_cancelled(&mut self, ended: impl IntoIterator<Item = EndedPrompt<PromptReply>>) {
        for ended in ended {
            self.finish(ended, Ok(outcome::cancelled(None)));
        }
    }

    /// The CLI did not end a cancelled turn in time: its prompt is answered, and the process is killed, so that no work goes on unseen.
    pub(super) fn floor_reached(&mut self) {
        self.settle_cancelled();
        if self
            .prompts
            .floor(self.cancel_floor)
            .is_none_or(|floor| floor > Instant::now())
        {
            return;
        }
        let runs_on = self.link.is_some() && self.prompts.is_turn_cancelled();
        let ended = self.prompts.give_up_cancelled();
        self.end_cancelled_calls();
        if self.link.is_some() {
            // The host ends its process itself. A prompt that waits behind those of others is interrupted once it runs.
            if runs_on {
                // Until its result comes, the session works, and a cancel asks again.
                self.own_cancelled = true;
                self.activity.turn_begins();
            }
            return self.answer_cancelled(ended);
        }
        tracing::warn!(
            prompts = ended.len(),
            "the CLI did not end a turn that was cancelled; its process is ended"
        );
        self.answer_cancelled(ended);
        if let Process::Running(RunningProcess { session, .. }) = &self.process {
            let session = session.clone();
            tokio::spawn(async move {
                if let Err(error) = session.kill().await {
                    tracing::warn!(%error, "a process could not be closed");
                }
            });
        }
    }

    /// Answers cancelled prompts whose turns ended while the editor was behind. Their result frames may still wait for the editor.
    fn settle_cancelled(&mut self) {
        while let Some(Ok(end)) = self.turns.running.try_join_next() {
            self.turn_ended(end);
        }
        let is_cancelled = |end: &mut TurnEnd| self.prompts.is_cancelled(end.0);
        let cancelled: Vec<TurnEnd> = self.turns.ended.extract_if(.., is_cancelled).collect();
        for end in cancelled {
            self.settle(end);
        }
    }

    /// Ends the calls of a cancelled turn. The prompt may have waited behind another turn, whose calls go on.
    fn end_cancelled_calls(&mut self) {
        if self.prompts.of_turn().next().is_none() && !self.activity.has_own() {
            self.show(|updates| updates.cancelled());
        }
    }

    pub(super) fn turn_ended(&mut self, end: TurnEnd) {
        self.turns.open.retain(|(attempt, _)| *attempt != end.0);
        // If the process ended, its frames come first, and then its own end, which ends all turns.
        if end.1.as_ref().is_err_and(outrigger::Error::is_closed) {
            return;
        }
        match self.turns.waits_for_result(&end) {
            true => self.turns.ended.push(end),
            false => self.settle(end),
        }
    }

    /// Answers a prompt whose turn ended.
    pub(super) fn settle(&mut self, (attempt, ended): TurnEnd) {
        if self.hand_over(attempt) {
            return;
        }
        let Some(prompt) = self.prompts.end(attempt) else {
            return;
        };
        let was_cancelled =
            prompt.cancelled || (prompt.stopped && ended.as_ref().is_ok_and(|told| !told.is_success()));
        if was_cancelled {
            self.end_cancelled_calls();
        }
        let told = match &ended {
            told if was_cancelled => Ok(outcome::cancelled(told.as_ref().ok())),
            Ok(outcome) => outcome::of(outcome).map_err(|error| self.failed(error)),
            Err(error) => Err(self.failed(sdk_error::of_sdk(error))),
        };
        self.finish(prompt, told);
    }

    /// Frames were dropped, perhaps the results of all turns that were begun: they wait for none.
    pub(in crate::session) fn results_lost(&mut self) {
        self.turns.lagged = Some(self.prompts.last_attempt());
        self.settle_all();
    }

    pub(in crate::session) fn settle_all(&mut self) {
        for end in std::mem::take(&mut self.turns.ended) {
            self.settle(end);
        }
    }
}

/// Waits for the end of a turn; `stop` cancels the turn.
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
