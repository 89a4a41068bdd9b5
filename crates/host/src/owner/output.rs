//! What the process says, and what the log gets of it.

use futures_util::FutureExt as _;
use outrigger::protocol::{Frame, RawJson};
use outrigger::{Frames, Lag, Session};
use outrigger_fleet::budget::Amount;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{AfterTurn, BATCH, LAST_WORDS, Owner, TurnEnd, difference};
use crate::core::Input;
use crate::error::Result;
use crate::event::Source;
use crate::log::{NewEvent, Write};
use crate::wire;

impl Owner {
    /// Appends this frame, and those that are there already.
    pub(super) async fn frames(&mut self, first: Option<Result<Frame, Lag>>) -> Result<()> {
        let mut next = Some(first);
        let mut taken = 0;
        let mut steps = Vec::new();
        let mut asked = Vec::new();
        let Some(session) = self.running.as_ref().map(|running| running.session.clone()) else {
            return Ok(());
        };
        while let Some(item) = next.take() {
            taken += 1;
            match item {
                None => {
                    self.write(std::mem::take(&mut steps)).await?;
                    return self.exited().await;
                }
                Some(Err(lag)) => steps.push(lost(&lag)),
                Some(Ok(frame)) if is_ephemeral(&frame) => {
                    self.write(std::mem::take(&mut steps)).await?;
                    self.shared.log.hub().publish_ephemeral(&self.id, &frame.text());
                }
                Some(Ok(frame)) => {
                    if frame.kind() == "system" && frame.subtype() == Some("init") && !self.is_ours(&frame) {
                        self.write(steps).await?;
                        return self.wrong_session(&frame).await;
                    }
                    let asks_people = wire::asks_people(&frame);
                    if asks_people || frame.kind() == "control_cancel_request" {
                        // What it repeats or withdraws may have been asked in the same batch.
                        self.feed_all(&mut asked, &mut steps).await?;
                    }
                    if asks_people && self.is_repeated(&session, &frame).await? {
                        tracing::debug!(session = %self.id, "the CLI repeats a request");
                    } else if let Some(input) = self.note(&session, &frame, &mut steps) {
                        asked.push(input);
                    }
                }
            }
            if taken < BATCH
                && let Some(running) = &mut self.running
            {
                next = running.frames.next().now_or_never();
            }
        }
        self.feed_all(&mut asked, &mut steps).await?;
        self.give_decision(&session).await?;
        // What is not kept is not waited for, and there may be no end of it.
        tokio::task::coop::consume_budget().await;
        Ok(())
    }

    /// Keeps what a process that has ended still said.
    pub(super) async fn last_frames(&mut self, session: &Session, frames: &mut Frames) -> Result<()> {
        let until = Instant::now() + LAST_WORDS;
        let mut steps = Vec::new();
        while let Some(item) = frames.next().await {
            match item {
                Ok(frame) if is_ephemeral(&frame) => {}
                Ok(frame) => drop(self.note(session, &frame, &mut steps)),
                Err(lag) => steps.push(lost(&lag)),
            }
            if Instant::now() >= until {
                let payload = json!({"type": "frames_lost", "reason": "the process had written more than could be kept in time"});
                steps.push(Write::Append(NewEvent::host("frames_lost", payload)));
                break;
            }
            if steps.len() >= BATCH {
                self.write(std::mem::take(&mut steps)).await?;
            }
            tokio::task::coop::consume_budget().await;
        }
        self.write(steps).await
    }

    /// Writes what is to be written, and takes in what the CLI has asked.
    async fn feed_all(&mut self, asked: &mut Vec<Input>, steps: &mut Vec<Write>) -> Result<()> {
        for input in asked.drain(..) {
            self.feed(input, std::mem::take(steps)).await?;
        }
        self.write(std::mem::take(steps)).await
    }

    /// Whether the CLI repeats a request that it has made already and that has its reply, or gets it. One that it makes anew after the reply is another
    /// question.
    async fn is_repeated(&self, session: &Session, frame: &Frame) -> Result<bool> {
        let Some(request) = frame.written_request_id() else {
            return Ok(false);
        };
        let request = request.as_str();
        if self.state.open.contains(request) {
            return Ok(true);
        }
        let was_asked = self.given.as_deref() == Some(request)
            || match self.shared.log.approval_of(&self.id, request).await? {
                Some(before) => before.epoch == self.shared.log.session(&self.id).await?.epoch,
                None => false,
            };
        // The SDK ignores what is repeated before the reply.
        Ok(was_asked && !session.pending().iter().any(|open| open.id().as_str() == request))
    }

    pub(super) fn is_ours(&self, init: &Frame) -> bool {
        init.session_id().is_none_or(|id| self.id == *id)
    }

    /// What a frame means for the log. Frames between the CLI and the host itself are not part of the conversation.
    pub(super) fn note(&mut self, session: &Session, frame: &Frame, steps: &mut Vec<Write>) -> Option<Input> {
        let payload = RawJson::from_text(frame.text()).unwrap_or_else(|_| RawJson::from(json!(frame.text())));
        let append = |kind: &str| Write::Append(NewEvent::new(Source::Worker, kind, payload));
        match frame.kind() {
            "control_response" | "transcript_mirror" => None,
            "control_request" => {
                let approval = wire::approval(&self.id, frame)?;
                let request = &approval.request_id;
                if self.shared.policy.decides_first.is_none() && self.is_taken_up(&approval) {
                    return None;
                }
                let may_be_decided = self.shared.policy.decides_first.is_some()
                    && frame.subtype() == Some("can_use_tool")
                    && !self.early.remove(request);
                if may_be_decided {
                    let request = request.clone();
                    // Those that the code has decided since, nobody is asked about.
                    let open: Vec<_> = session
                        .pending()
                        .iter()
                        .map(|open| open.id().to_string())
                        .collect();
                    self.undecided.retain(|id, _| open.contains(id));
                    self.undecided
                        .insert(request, (append("control_request"), approval));
                    return None;
                }
                steps.push(append("control_request"));
                Some(self.open(approval, steps))
            }
            "control_cancel_request" => {
                let request = frame.written_request_id()?.to_string();
                self.undecided.remove(&request);
                if !self.state.open.contains(&request) {
                    return None;
                }
                steps.push(append("control_cancel_request"));
                steps.push(Write::Withdraw(request.clone()));
                Some(Input::Closed(request))
            }
            "result" => {
                steps.push(append("result"));
                steps.push(Write::HasHistory);
                // With the result, so that a host that is killed counts it once.
                let usage = session.usage();
                let spent = difference(&usage, &self.counted);
                self.counted = usage;
                // A turn that a prompt began is charged by its reservation.
                if let Some(budget) = &self.shared.policy.budget
                    && self
                        .running
                        .as_ref()
                        .is_some_and(|running| running.turn.is_none())
                {
                    budget.budget.charge(Amount::from(&spent));
                }
                steps.push(Write::Spend(spent));
                self.ended_unfollowed(frame)
            }
            kind => {
                steps.push(append(kind));
                None
            }
        }
    }

    /// The end of a turn that background work began, which nobody follows, if a call waits.
    fn ended_unfollowed(&self, result: &Frame) -> Option<Input> {
        let call = self.call.as_ref()?.tool_use_id.as_ref()?;
        if self.running.as_ref()?.turn.is_some() {
            return None;
        }
        let result = RawJson::from_text(result.text()).ok()?.to_value().ok()?;
        let deferred = result["deferred_tool_use"]["id"] == **call;
        Some(Input::TurnEnded { deferred })
    }

    pub(super) async fn turn_ended(&mut self, outcome: TurnEnd) -> Result<()> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        // The process may have ended as well.
        let (again, turn) = oneshot::channel();
        drop(again.send(outcome.clone()));
        running.turn = Some(turn);
        if let Some(frame) = running.frames.next().now_or_never() {
            self.frames(frame).await?;
        }
        if let Err((_, AfterTurn::Ended | AfterTurn::Killed)) = outcome {
            return self.exited().await;
        }
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        running.turn = None;
        let mut steps: Vec<Write> = self.lose_decision().into_iter().collect();
        let left_open = match outcome {
            Ok(left_open) => left_open,
            Err((error, _)) => {
                let payload =
                    json!({"type": "prompt_failed", "event_id": self.state.running, "error": error});
                steps.push(Write::Append(NewEvent::host("prompt_failed", payload)));
                None
            }
        };
        let call = self.call.as_ref().and_then(|call| call.tool_use_id.as_ref());
        let deferred = left_open.is_some() && left_open.as_ref() == call;
        self.feed(Input::TurnEnded { deferred }, steps).await
    }
}

fn lost(lag: &Lag) -> Write {
    let payload = json!({"type": "frames_lost", "frames": lag.frames, "bytes": lag.bytes});
    Write::Append(NewEvent::host("frames_lost", payload))
}

fn is_ephemeral(frame: &Frame) -> bool {
    matches!(frame.kind(), "stream_event" | "keep_alive")
}
