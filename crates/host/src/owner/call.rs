//! A call that outlives its process: from the hook of the CLI to a person, and to the process that carries the decision out.

use std::sync::Arc;

use outrigger::protocol::shared::{PermissionDeny, PermissionResult};
use outrigger::{Ambient, AmbientEvent, Session};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{ASKS_WITHIN, AfterTurn, Owner, TurnEnd};
use crate::admission::Granted;
use crate::approval::{Approval, ApprovalState};
use crate::core::{Input, Process, WaitingCall};
use crate::error::Result;
use crate::event::{SessionRecord, Source};
use crate::handler::{HookReply, HookRequest};
use crate::log::{NewEvent, PendingWork, Write};
use crate::stored::Transcript;

/// No call of the turn is carried out.
pub(crate) fn give_up_interrupted() -> Write {
    Write::GiveUpAll {
        reason: "the turn was interrupted".to_owned(),
    }
}

/// What became of the decision that a process has taken up.
#[derive(Debug, Clone)]
pub(super) struct TakenUp {
    approval: Approval,
    /// The CLI's request for the decision, once it is there.
    request: Option<String>,
}

impl Owner {
    /// The call that waits, as the log has it.
    pub(super) fn recover_call(&mut self, waiting: &PendingWork) -> WaitingCall {
        let decided = waiting.decided.iter().rfind(|approval| approval.deferred);
        let (call, state) = match (waiting.deferred.last(), decided) {
            (Some(pending), _) => (pending, WaitingCall::Waits),
            (None, Some(decided)) => (decided, WaitingCall::Decided),
            (None, None) => return WaitingCall::None,
        };
        if state == WaitingCall::Waits {
            self.expire_later(call.clone());
        }
        self.call = Some(call.clone());
        state
    }

    /// The hook of the CLI asks about a call that the operator's code leaves to people.
    pub(super) async fn hook(&mut self, asked: HookRequest) -> Result<()> {
        let HookRequest {
            approval,
            is_of_subagent,
            has_prompt,
            withdrawn,
            reply,
        } = asked;
        // The turn of the call may be over, and nothing would close an approval that is opened now. The CLI withdraws its request before it ends the turn,
        // and a process that has ended asks nothing.
        if withdrawn.is_cancelled() {
            return Ok(());
        }
        let known = self
            .call
            .as_ref()
            .filter(|call| call.tool_use_id == approval.tool_use_id);
        let is_same = known.is_some_and(|call| call.input_hash == approval.input_hash);
        let answer = match self.state.call {
            WaitingCall::Offered if is_same => {
                // Written as applied before the CLI is told anything: a crash in between loses the decision, and it is never given twice.
                let call = self.call.clone();
                self.offered_until = None;
                self.go_on();
                self.feed(Input::TakenUp, Vec::new()).await?;
                if self.state.taken_up {
                    self.call = None;
                    self.taken_up = call.map(|approval| TakenUp {
                        approval,
                        request: None,
                    });
                }
                HookReply::Ask
            }
            WaitingCall::Waits if is_same => HookReply::Defer,
            WaitingCall::Offered if known.is_some() => {
                let why = "the process asks about the call with another input";
                self.offered_until = None;
                self.go_on();
                self.feed(Input::Dropped(why), Vec::new()).await?;
                HookReply::Ask
            }
            // A call that an earlier process left open comes before the prompt that this one has, and would be dropped for the prompt.
            WaitingCall::None
                if self.state.process == Process::Up
                    && !is_of_subagent
                    && (has_prompt || self.state.taken_up || self.state.running.is_none()) =>
            {
                let mut steps = vec![Write::Append(NewEvent::new(
                    Source::Host,
                    "control_request",
                    approval.request.clone(),
                ))];
                steps.push(Write::Open(approval.clone()));
                self.expire_later((*approval).clone());
                self.call = Some(*approval);
                self.feed(Input::Deferred, steps).await?;
                HookReply::Defer
            }
            // People are asked while the process waits.
            _ => HookReply::Ask,
        };
        // A process that has ended does not wait for it.
        drop(reply.send(answer));
        Ok(())
    }

    /// The decision about the call is durable.
    pub(super) async fn decided(&mut self, decided: Approval) -> Result<()> {
        if self.state.call == WaitingCall::Waits
            && self.call.as_ref().is_some_and(|call| call.id == decided.id)
        {
            self.call = Some(decided);
            self.feed(Input::Decided, Vec::new()).await?;
        }
        Ok(())
    }

    /// Drops the call if the log does not have it any more: the session was archived, or the turn was interrupted.
    pub(super) async fn compare_call(&mut self, waiting: &PendingWork) -> Result<()> {
        let Some(call) = &self.call else { return Ok(()) };
        let mut known = waiting.deferred.iter().chain(&waiting.decided);
        if known.any(|approval| approval.id == call.id) {
            return Ok(());
        }
        self.feed(Input::Dropped("the host has given it up"), Vec::new())
            .await
    }

    /// Whether a request of the CLI is about the call that this process has taken up. If so, it is answered by the decision, and nobody is asked.
    pub(super) fn is_taken_up(&mut self, asked: &Approval) -> bool {
        match &mut self.taken_up {
            Some(taken_up) if taken_up.approval.tool_use_id == asked.tool_use_id => {
                taken_up.request = Some(asked.request_id.clone());
                true
            }
            _ => false,
        }
    }

    /// Gives the decision to the process that asks for it.
    pub(super) async fn give_decision(&mut self, session: &Session) -> Result<()> {
        let is_asked = self.taken_up.as_ref().is_some_and(|call| call.request.is_some());
        if let Some(TakenUp {
            approval,
            request: Some(request),
        }) = self.taken_up.take_if(|_| is_asked)
        {
            let told = super::send_decision(session, &request, &approval).await?;
            self.given = Some(request);
            self.write(told.into_iter().collect()).await?;
        }
        Ok(())
    }

    /// The turn ended, and the CLI never asked for the decision.
    pub(super) fn lose_decision(&mut self) -> Option<Write> {
        let approval = self.taken_up.take()?.approval;
        let error =
            "the CLI did not ask for the decision: a rule, or code of the operator, decided about the call";
        let payload = json!({"type": "decision_not_applied", "approval_id": approval.id, "error": error});
        Some(Write::Append(NewEvent::host("decision_not_applied", payload)))
    }

    /// Denies the call that waits, because its turn is interrupted, or gives up its decision, which no process has got. `false` if none waits. The log has the
    /// news then.
    pub(super) async fn interrupt_call(&mut self) -> Result<bool> {
        let call = match (self.state.call, &self.call) {
            (WaitingCall::Waits, Some(call)) => call,
            (WaitingCall::Decided, Some(_)) => {
                self.write(vec![give_up_interrupted()]).await?;
                return Ok(true);
            }
            _ => return Ok(false),
        };
        let mut deny = PermissionDeny::new("The turn was interrupted while this call waited for a decision.");
        deny.interrupt = Some(true);
        let decision = serde_json::to_value(PermissionResult::Deny(deny))
            .map_err(|error| crate::error::HostError::Invalid(error.to_string()))?;
        let step = Write::Decide {
            id: call.id,
            state: ApprovalState::Denied,
            actor: None,
            decision: Some(decision.into()),
            // A person may just have decided.
            must_be_first: false,
        };
        self.write(vec![step]).await?;
        Ok(true)
    }

    /// What the CLI has noted of the call: whether it is open. `None` if it was killed before it noted that it left the call open. What is not on this disk
    /// may be so, and what was not read to its end because a client stops the session, or the host closes.
    pub(super) async fn note_of_call(&self, record: &SessionRecord) -> Option<bool> {
        let id = self.call.as_ref().and_then(|call| call.tool_use_id.clone())?;
        let (shared, record) = (Arc::clone(&self.shared), record.clone());
        let note = async {
            let opened = tokio::task::spawn_blocking(move || Transcript::open(&shared.policy, &record)).await;
            let Ok(Ok(transcript)) = opened else {
                return Some(true);
            };
            transcript.open_call(&id).await.unwrap_or(Some(true))
        };
        let mut closing = self.shared.closing.subscribe();
        let mut stops = self.contact.stops.subscribe();
        tokio::select! {
            note = note => note,
            _ = closing.wait_for(|closing| *closing) => Some(true),
            _ = stops.wait_for(|stops| *stops > 0) => Some(true),
        }
    }

    /// The matcher of the hook: the tools of the policy, and that of a call that was left open when the policy was another one.
    pub(super) fn deferred_tools(&self) -> Option<String> {
        let policy = self.shared.policy.deferred.clone();
        let call = self
            .call
            .as_ref()
            .filter(|_| self.state.call == WaitingCall::Decided);
        let Some(tool) = call.and_then(|call| call.tool_name.clone()) else {
            return policy;
        };
        Some(match policy {
            None => tool,
            Some(tools) if ["", "*"].contains(&&*tools) || tools.split('|').any(|name| name == tool) => tools,
            Some(tools) => format!("{tools}|{tool}"),
        })
    }

    /// The process goes on with the turn of the call, and spends what was granted.
    fn go_on(&mut self) {
        if let Some(goes_on) = self.running.as_mut().and_then(|running| running.goes_on.take()) {
            drop(goes_on.send(std::mem::take(&mut self.granted)));
        }
    }

    /// The process does not ask about the call, if it was to: the turn costs nothing, and keeps no other from its place at the gate.
    pub(super) fn give_back(&mut self) {
        if self.offered_until.take().is_some() {
            self.granted = Granted::default();
            if let Some(running) = &mut self.running {
                (running.turn, running.goes_on) = (None, None);
            }
        }
    }

    /// Waits for the process to ask about the call, and for the end of its turn.
    pub(super) fn take_up(&mut self) {
        let Some(running) = &mut self.running else { return };
        let Some(ambient) = running.ambient.take() else {
            return;
        };
        let patience = if running.may_ask {
            ASKS_WITHIN
        } else {
            std::time::Duration::ZERO
        };
        self.offered_until = Some(Instant::now() + patience);
        let session = running.session.clone();
        let (ended, outcome) = oneshot::channel();
        running.turn = Some(outcome);
        let (goes_on, granted) = oneshot::channel();
        running.goes_on = Some(goes_on);
        tokio::spawn(async move {
            let end = follow(session, ambient, granted).await;
            // An owner that is gone has marked the turn already.
            drop(ended.send(end));
        });
    }
}

/// The turn of a call that was taken up, to its end. No prompt of this process began it.
async fn follow(session: Session, mut ambient: Ambient, mut granted: oneshot::Receiver<Granted>) -> TurnEnd {
    let (mut pass, mut reservation) = (None, None);
    let mut exceeded = None;
    let mut after = AfterTurn::Running;
    loop {
        let next = ambient.next().await;
        if let Ok(granted) = granted.try_recv() {
            (pass, reservation) = (granted.pass, granted.reservation.take());
        }
        match next {
            Some(AmbientEvent::Event(event)) => {
                if let Some(pass) = &pass {
                    pass.observe(&event);
                }
                if exceeded.is_none()
                    && let Some(reservation) = &mut reservation
                    && let Err(exhausted) = reservation.observe(&event)
                {
                    exceeded = Some(exhausted.to_string());
                    // Not interrupted, it would spend on.
                    if let Err(error) = session.interrupt().await {
                        tracing::warn!(%error, "a turn that exceeds the budget cannot be interrupted, and its process is killed");
                        after = AfterTurn::Killed;
                        drop(session.clone().kill().await);
                    }
                }
            }
            Some(AmbientEvent::TurnEnded(outcome)) => {
                if let Some(pass) = pass {
                    pass.finish(&outcome);
                }
                if let Some(reservation) = reservation {
                    reservation.settle(&outcome);
                }
                return match exceeded {
                    Some(exhausted) => Err((exhausted, after)),
                    None => Ok(outcome.deferred().map(|call| call.id.clone())),
                };
            }
            Some(_) => {}
            None => {
                let error = session.wait_ended().await;
                return Err(match exceeded {
                    Some(exhausted) if after == AfterTurn::Killed => (exhausted, after),
                    _ => (error.to_string(), AfterTurn::Ended),
                });
            }
        }
    }
}
