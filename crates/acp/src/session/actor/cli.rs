//! Handles what comes from the CLI: frames, questions, and the end and the revival of its process.

use agent_client_protocol::{Error, RequestCancellation};
use outrigger::Session;
use outrigger::protocol::Frame;
use tokio::task::JoinSet;

use super::Actor;
use super::changes::{Change, ChangeKind, ReplyTo};
use crate::ask::{self, Decision, EditorQuestion, SentQuestion};
use crate::session::lookups::Lookups;
use crate::session::process::{self, Process, RunningProcess};
use crate::session::prompt_reply::PromptReply;
use crate::{outcome, sdk_error};

/// How many processes in a row may end before they have made all changes.
pub(super) const UNPROVEN: u32 = 2;

impl Actor {
    pub(super) fn frame(&mut self, frame: &Frame) {
        self.prompts.process_reacted();
        if let Some(message) = self.raw.message(frame) {
            self.client.sdk_message(&self.id, message);
        }
        self.follow(frame);
        self.show(|updates| updates.frame(frame));
        if self.updates.wants_size() {
            self.look_up_context();
        }
        self.follow_conversation(frame);
        self.follow_auth(frame);
        if frame.kind() != "result" {
            return;
        }
        self.turn_is_over(frame);
        self.look_up_after(frame);
        self.look_up_title();
        if let Some(uuid) = frame.uuid() {
            for end in self.turns.reported(uuid) {
                self.settle(end);
            }
        }
    }

    /// Ends what ran in the process.
    pub(in crate::session) fn process_over(&mut self) {
        self.show(|updates| updates.ended());
        self.settle_all();
        self.generation += 1;
        self.changes.requeue_lost();
        self.own_cancelled = false;
        self.lost_end = None;
        // The attempts end with the process.
        self.turns.running = JoinSet::new();
        self.turns.open.clear();
        self.lookups = Lookups::new();
    }

    pub(super) async fn ended(&mut self, why: &outrigger::Error) {
        if let Some(handover) = self.handover.take()
            && self.begin_handover(handover)
        {
            return;
        }
        // While the editor was behind, nobody looked at the ends of turns. All turns end with their process.
        while let Some(end) = self.turns.running.join_next().await {
            match end {
                Ok(end) => self.turn_ended(end),
                Err(why) => tracing::error!(%why, "the end of a turn is not known"),
            }
        }
        self.process_over();
        self.process.give_up();
        let lost = self.prompts.lose();
        if !lost.is_empty() {
            tracing::warn!(%why, prompts = lost.len(), "the CLI's process ended in the middle of a turn");
        }
        self.activity.turn_ends(|| Err(process::lost(why)));
        for ended in lost {
            let told = if ended.cancelled {
                Ok(outcome::cancelled(None))
            } else {
                Err(process::lost(why))
            };
            self.finish(ended, told);
        }
        if self.unproven >= UNPROVEN {
            tracing::warn!(%why, "the CLI ends before it has made all changes; nothing waits for it any more");
            self.fail_waiting(why);
        }
    }

    pub(super) fn revived(&mut self, session: Session) {
        let now = self.choices.renewed(session.initialized());
        let chosen = std::mem::replace(&mut self.choices, now);
        self.process = Process::Running(RunningProcess::new(session));
        self.unproven += 1;
        if let Some(link) = &self.link {
            link.go();
        }
        self.modes.set(self.choices.mode_ids());
        // A conversation without messages starts from nothing: its choices are made again. Not every model has each mode.
        let mut again = Vec::new();
        if chosen.model() != self.choices.model() {
            again.push(ChangeKind::Model(chosen.model().to_owned()));
        }
        self.missing_mode = None;
        if chosen.mode() != self.choices.mode() {
            if self.link.is_none() {
                self.choices.mode_is(chosen.mode());
                self.missing_mode = Some(chosen.mode().to_owned());
            }
            again.extend(self.choices.find_mode(chosen.mode()).map(ChangeKind::Mode));
        }
        if let Some(effort) = chosen.effort() {
            again.push(ChangeKind::Effort(Some(effort)));
        }
        again.extend(chosen.fast_chosen().map(ChangeKind::Fast));
        match chosen.agent() {
            Some(agent) => again.push(ChangeKind::Agent(Some(agent.to_owned()))),
            None if self.choices.has_agents() => again.push(ChangeKind::WhichAgent),
            None => {}
        }
        again.extend(self.mcp.again().map(ChangeKind::Mcp));
        for what in again.into_iter().rev() {
            self.changes.push_first(Change::new(what, ReplyTo::Nobody));
        }
        self.rewound(None);
    }

    pub(super) fn not_revived(&mut self, why: &outrigger::Error) {
        tracing::warn!(%why, "the CLI did not come back");
        self.process.give_up();
        self.conversation.behind = None;
        self.rewound(Some(why));
        self.fail_waiting(why);
    }

    /// No process does what waits for one.
    fn fail_waiting(&mut self, why: &outrigger::Error) {
        self.fail_prompts(&sdk_error::of_sdk(why));
        for change in self.changes.take_waiting() {
            self.change_failed(change, sdk_error::of_sdk(why));
        }
    }

    /// All open prompts fail; none of them was sent.
    pub(super) fn fail_prompts(&mut self, why: &Error) {
        for ended in self.prompts.take_all() {
            let told = if ended.cancelled {
                Ok(outcome::cancelled(None))
            } else {
                Err(self.failed(why.clone()))
            };
            self.finish(ended, told);
        }
    }

    /// The requests of the prompts in the turn that runs; `None` if the turn is cancelled.
    fn asked_in(&self) -> Option<Vec<RequestCancellation>> {
        let is_cancelled = self.own_cancelled || self.prompts.is_turn_cancelled();
        let answers = self.prompts.of_turn();
        (!is_cancelled).then(|| answers.filter_map(PromptReply::cancellation).collect())
    }

    pub(super) fn ask(&mut self, ask: EditorQuestion) {
        match ask {
            EditorQuestion::Permission {
                request,
                mut options,
                reply,
            } => {
                let Some(prompts) = self.asked_in() else {
                    return drop(reply.send(None));
                };
                let can_clear = self.prompts.running().is_some();
                ask::permission_options::fit_clearing(&mut options, can_clear, self.updates.fullness());
                let (updates, shown) = self.updates.asked(&request);
                self.send_updates(updates);
                let agent = request.agent_id.as_deref();
                let child = agent.and_then(|agent| self.updates.child(agent));
                // If nobody waits for the answer any more, the drop withdraws the question from the editor.
                let session = child.as_ref().unwrap_or(&self.id);
                let asked = self.client.ask_permission(session, shown, options.clone());
                let answer = self
                    .questions
                    .put(agent, Box::pin(async move { Ok((asked.await?, options)) }));
                drop(reply.send(Some(SentQuestion { answer, prompts })));
            }
            EditorQuestion::Elicitation {
                mut request,
                agent,
                reply,
            } => {
                let Some(prompts) = self.asked_in() else {
                    return drop(reply.send(None));
                };
                self.show(|updates| updates.flush());
                let agent = agent.as_deref();
                if let Some(child) = agent.and_then(|agent| self.updates.child(agent)) {
                    ask::address(&mut request, child);
                }
                let answer = self.questions.put(agent, self.client.elicit(*request));
                drop(reply.send(Some(SentQuestion { answer, prompts })));
            }
            EditorQuestion::Decided {
                call,
                decision,
                handled: _handled,
            } => {
                if let Decision::Rejected { ends_turn: true } | Decision::Denied { ends_turn: true } =
                    decision
                {
                    self.prompts.turn_stopped();
                }
                self.show(|updates| updates.decided(&call, decision));
            }
            EditorQuestion::Approved {
                call,
                approved,
                handled: _handled,
            } => self.approved(&call, approved),
        }
    }
}

pub(super) enum ProcessEvent {
    Frame(Frame),
    /// Frames were dropped.
    Lag,
    Ended(outrigger::Error),
    Revived(Result<Session, outrigger::Error>),
}

/// Waits for the next event of the process.
pub(super) async fn next(process: &mut Process) -> ProcessEvent {
    match process {
        Process::Running(RunningProcess { session, frames }) => match frames.next().await {
            Some(Ok(frame)) => ProcessEvent::Frame(frame),
            Some(Err(lag)) => {
                tracing::warn!(?lag, "the editor is so far behind that updates were dropped");
                ProcessEvent::Lag
            }
            None => ProcessEvent::Ended(session.wait_ended().await),
        },
        Process::Reviving { revival, .. } => ProcessEvent::Revived(revival.await),
        Process::Ended(_) => std::future::pending().await,
    }
}
