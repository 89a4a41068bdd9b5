//! Follows when prompts and turns begin and end, and reports the state of the session to editors of the draft of version 2.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v2::schema as draft;
use outrigger::protocol::Frame;
use outrigger::protocol::inbound::CommandState;
use outrigger::protocol::inbound::Message;
use tokio::sync::watch;

use super::actor::Actor;
use super::prompt_reply::{Begin, PromptReply};
use super::prompts::EndedPrompt;
use crate::client::{Connection, EditorReply};
use crate::error;
use crate::outcome::End;
use crate::rewind;

/// Counts the questions that the user has not answered.
#[derive(Debug)]
pub(super) struct Questions {
    waiting: watch::Sender<OpenQuestions>,
    changes: watch::Receiver<OpenQuestions>,
}

/// The number of open questions.
#[derive(Debug, Default)]
struct OpenQuestions {
    all: usize,
    /// The open questions of subagents, by their ids.
    of_agents: HashMap<Arc<str>, usize>,
}

/// A question that is open until this is dropped.
struct OpenQuestion {
    agent: Option<Arc<str>>,
    open: watch::Sender<OpenQuestions>,
}

impl Default for Questions {
    fn default() -> Self {
        let (waiting, changes) = watch::channel(OpenQuestions::default());
        Self { waiting, changes }
    }
}

impl Questions {
    /// Counts a question until it is answered or dropped. `agent` is the subagent that asks.
    pub(super) fn put<T: Send + 'static>(
        &self,
        agent: Option<&str>,
        asked: EditorReply<T>,
    ) -> EditorReply<T> {
        let agent: Option<Arc<str>> = agent.map(Arc::from);
        self.waiting.send_modify(|open| {
            open.all += 1;
            if let Some(agent) = &agent {
                *open.of_agents.entry(agent.clone()).or_default() += 1;
            }
        });
        let open = self.waiting.clone();
        let waiting = OpenQuestion { agent, open };
        Box::pin(async move {
            let _waiting = waiting;
            asked.await
        })
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.borrow().all
    }

    /// The number of open questions of each subagent.
    pub(super) fn of_agents(&self) -> HashMap<Arc<str>, usize> {
        self.waiting.borrow().of_agents.clone()
    }

    /// Waits until the count changes.
    pub(super) async fn changed(&mut self) {
        // The sender is in `self`, so the channel does not close.
        let _ = self.changes.changed().await;
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.open.send_modify(|open| {
            open.all = open.all.saturating_sub(1);
            if let Some(agent) = &self.agent
                && let Some(count) = open.of_agents.get_mut(agent)
            {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    open.of_agents.remove(agent);
                }
            }
        });
    }
}

impl Actor {
    /// Whether the editor gets the state of the session.
    fn sends_state(&self) -> bool {
        matches!(self.client.connection(), Connection::V2(_))
    }

    /// Follows the beginnings of prompts and turns in a frame, before the frame becomes updates.
    pub(super) fn follow(&mut self, frame: &Frame) {
        match (frame.kind(), frame.subtype()) {
            ("command_lifecycle", _) => {
                self.has_lifecycle = true;
                if let Ok(Message::CommandLifecycle(told)) = frame.decode()
                    && told.state == CommandState::Started
                {
                    self.begins(&told.command_uuid);
                }
            }
            ("system", Some("init")) => {
                // A CLI that does not report which prompt it begins takes them in order.
                if !self.has_lifecycle
                    && let Some(id) = self.prompts.oldest_sent().map(str::to_owned)
                {
                    self.begins(&id);
                }
                // A prompt that answers nobody tells nobody of its end: its turn counts as the CLI's own.
                if !self.prompts.of_turn().any(PromptReply::is_awaited) {
                    self.activity.turn_begins();
                }
            }
            _ => {}
        }
    }

    /// The CLI reports the end of a turn. The ends of prompts are handled elsewhere.
    pub(super) fn turn_is_over(&mut self, frame: &Frame) {
        self.prompts.turn_over();
        let is_cancelled = std::mem::take(&mut self.own_cancelled);
        self.activity.turn_ends(|| end_of_own(frame, is_cancelled));
    }

    /// Frames were dropped, perhaps the results of turns.
    pub(super) fn lagged(&mut self) {
        self.results_lost();
        if let Some(session) = self.process.running().cloned() {
            self.lost_end = Some(Box::pin(async move {
                // Background work alone is given no time. The end of the session is handled elsewhere.
                let _ = session.wait_run_end(Duration::ZERO).await;
            }));
        }
    }

    /// No turn runs, and the result of the last one may have been dropped.
    pub(super) fn own_is_over(&mut self) {
        self.lost_end = None;
        let stop = match std::mem::take(&mut self.own_cancelled) {
            true => acp::StopReason::Cancelled,
            false => acp::StopReason::EndTurn,
        };
        self.activity.turn_ends(|| Ok(acp::PromptResponse::new(stop)));
    }

    /// Interrupts the turn of the CLI's own, if one runs.
    pub(super) fn cancel_own(&mut self) {
        if !self.activity.has_own() {
            return;
        }
        self.own_cancelled = true;
        if let Some(session) = self.process.running().cloned() {
            self.cancelling.spawn(async move {
                if let Err(error) = session.interrupt().await {
                    tracing::warn!(%error, "a turn was not ended as asked");
                }
            });
        }
    }

    /// Cancels a subagent with those below it, or all of them. The CLI does not end what an agent started in the background.
    pub(super) fn cancel_children(&mut self, agent: Option<&str>) {
        let tasks = self.updates.stop_children(agent);
        if tasks.is_empty() {
            return;
        }
        let Some(session) = self.process.running().cloned() else {
            return;
        };
        self.cancelling.spawn(async move {
            for task in tasks {
                if let Err(error) = session.stop_task(&task).await {
                    tracing::warn!(%error, "a subagent was not ended as asked");
                }
            }
        });
    }

    /// A prompt became part of the conversation.
    fn begins(&mut self, id: &str) {
        self.prompts.begun(id);
        let begin = self.prompts.answer_of(id).and_then(PromptReply::begin);
        if let Some(begin) = begin {
            self.is_part(id, begin);
        }
    }

    fn is_part(&mut self, id: &str, begin: Begin) {
        self.activity.begins();
        self.send_state();
        // A prompt that joins a turn comes behind what was said before it.
        self.show(|updates| updates.flush());
        if let Some(update) = self.updates.encoder().prompted(id, begin.said) {
            self.client.update(&self.id, update);
        }
        begin.answer.give(Ok(draft::PromptResponse::new(id.to_owned())));
    }

    /// Answers a prompt whose turn ended, or which had none.
    pub(super) fn finish(&mut self, mut ended: EndedPrompt<PromptReply>, mut end: End) {
        if let Some(message) = &ended.message {
            match &mut end {
                Ok(response) => rewind::name_prompt(response, message.clone()),
                Err(error) => rewind::name_failed(error, message.clone()),
            }
        }
        // A successful prompt was part of the conversation, even if the CLI did not report its beginning.
        if !ended.cancelled
            && end
                .as_ref()
                .is_ok_and(|end| end.stop_reason != acp::StopReason::Cancelled)
            && let Some(id) = ended.message.take()
            && let Some(begin) = ended.answer.begin()
        {
            self.is_part(&id, begin);
        }
        // Without a result, the last texts of the turn may still be held.
        self.show(|updates| updates.flush());
        if let Some(end) = ended.answer.settle(end, ended.cancelled) {
            self.activity.ends(end);
        }
    }

    /// Sends the state of the session, and of those of its subagents, if they changed.
    pub(super) fn send_state(&mut self) {
        let questions = self.questions.of_agents();
        self.show(|updates| updates.children_wait(&questions));
        if !self.sends_state() {
            return;
        }
        self.activity.asks(self.questions.waiting());
        let Some(news) = self.activity.news(self.updates.background()) else {
            return;
        };
        // The state follows the updates that it is about.
        self.show(|updates| updates.flush());
        if let Some(update) = self
            .updates
            .encoder()
            .state(news.doing, news.end, news.background)
        {
            self.client.update(&self.id, update);
        }
    }
}

/// The result of a turn of the CLI's own.
fn end_of_own(frame: &Frame, is_cancelled: bool) -> End {
    let answer = acp::PromptResponse::new;
    match frame.decode() {
        _ if is_cancelled => Ok(answer(acp::StopReason::Cancelled)),
        Ok(Message::Result(result)) if result.is_error => {
            let said = match &result.errors {
                Some(errors) if !errors.is_empty() => errors.join("\n"),
                _ => result
                    .result
                    .clone()
                    .unwrap_or_else(|| "the turn failed".to_owned()),
            };
            Err(error::internal(said))
        }
        _ => Ok(answer(acp::StopReason::EndTurn)),
    }
}
