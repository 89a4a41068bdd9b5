//! The sessions of subagents, for an editor with the capability `subagents`: which event belongs to which session.
//!
//! Nothing is guessed. A subagent whose call or whose place in the tree is unknown has no session of its own: its events stay where editors
//! without the capability get them, in the session that they are of, with their call.

use std::collections::HashMap;
use std::sync::Arc;

use agent_client_protocol::v1::schema as acp;

use crate::event::{
    ChildSession, ChildState, ChildWork, Event, PeerMessage, RecordedAgent, Status, Subagent,
};

/// How many subagents of a session have a session of their own.
pub(crate) const MOST: usize = 1024;

/// How many calls are remembered.
const MOST_CALLS: usize = 8192;

/// Longer than any chain of subagents.
const DEEPEST: usize = 64;

/// The id of the session of a subagent. It is the same in a replay.
fn id(root: &str, agent: &str) -> Arc<str> {
    format!("{root}.{agent}").into()
}

/// The session and the subagent with this id of a session; `None` if it has another form.
pub(crate) fn split(id: &str) -> Option<(&str, &str)> {
    id.rsplit_once('.')
        .filter(|(root, agent)| !root.is_empty() && is_plain(agent))
}

/// Whether the id of an agent can be a part of another id.
fn is_plain(agent: &str) -> bool {
    let mut letters = agent.chars();
    !agent.is_empty() && letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
}

/// An event, and the session that it belongs to.
#[derive(Debug, PartialEq)]
pub(crate) struct Addressed {
    /// `None` for the session itself.
    pub(crate) child: Option<acp::SessionId>,
    pub(crate) event: Event,
}

/// The subagents of one session.
#[derive(Debug)]
pub(crate) struct Children {
    root: Arc<str>,
    /// The subagents by their ids.
    agents: HashMap<Arc<str>, Child>,
    /// The subagent that a call started, or started again.
    started_by: HashMap<Arc<str>, Arc<str>>,
    /// The open calls, each with the subagent that made it; `None` for the main conversation.
    calls: HashMap<Arc<str>, Option<Arc<str>>>,
}

#[derive(Debug)]
struct Child {
    session: Arc<str>,
    /// The subagent that this one belongs to; `None` for the main conversation.
    parent: Option<Arc<str>>,
    /// The call that started it first.
    call: Arc<str>,
    title: Option<String>,
    kind: Option<String>,
    is_announced: bool,
    is_working: bool,
    /// Whether the editor was told that it waits for the user.
    is_waiting: bool,
    /// Whether the subagent is being cancelled.
    is_stopping: bool,
}

impl Child {
    fn announcement(&self, can_cancel: Option<bool>) -> Event {
        let title = self.title.clone().filter(|title| !title.trim().is_empty());
        let title = title.or_else(|| self.kind.clone());
        Event::Child(Box::new(ChildSession {
            id: self.session.clone(),
            description: self.kind.clone().filter(|kind| title.as_ref() != Some(kind)),
            title,
            can_cancel,
        }))
    }
}

impl Children {
    pub(crate) fn new(root: &acp::SessionId) -> Self {
        Self {
            root: root.0.clone(),
            agents: HashMap::new(),
            started_by: HashMap::new(),
            calls: HashMap::new(),
        }
    }

    /// The subagents of the stored session, which can be started again. `agents` has each behind the one that started it.
    pub(crate) fn knows(&mut self, agents: Vec<RecordedAgent>) {
        for agent in agents {
            self.recorded(agent);
        }
    }

    /// The session that an event belongs to, and what the editor has to know before it.
    pub(crate) fn route(&mut self, event: Event) -> Vec<Addressed> {
        let mut out = Vec::new();
        match event {
            Event::Subagent(agent) => self.changed(*agent, &mut out),
            Event::RecordedAgent(agent) => {
                if let Some(agent) = self.recorded(*agent) {
                    self.announce(&agent, None, &mut out);
                }
            }
            Event::AgentPrompt(prompt) => {
                if let Some(agent) = self.of(Some(&prompt.call)) {
                    self.send_message(&agent, prompt.message_id, prompt.text, &mut out);
                }
            }
            Event::Text(mut chunk) => {
                let agent = self.enter(&mut chunk.parent, &mut out);
                self.put(agent.as_ref(), Event::Text(chunk), &mut out);
            }
            Event::Thought(mut chunk) => {
                let agent = self.enter(&mut chunk.parent, &mut out);
                self.put(agent.as_ref(), Event::Thought(chunk), &mut out);
            }
            Event::Call(mut call) => {
                let is_known = call.parent.is_none() || self.of(call.parent.as_ref()).is_some();
                let agent = self.enter(&mut call.parent, &mut out);
                if is_known && self.calls.len() < MOST_CALLS {
                    self.calls.insert(call.id.clone(), agent.clone());
                }
                self.put(agent.as_ref(), Event::Call(call), &mut out);
            }
            Event::CallChanged(mut change) => {
                let agent = self.enter(&mut change.parent, &mut out);
                let is_over = matches!(
                    change.status,
                    Some(Status::Completed | Status::Failed | Status::Cancelled)
                );
                if is_over {
                    self.calls.remove(&change.id);
                }
                self.put(agent.as_ref(), Event::CallChanged(change), &mut out);
            }
            Event::Terminal(change) => {
                let agent = self.calls.get(&change.call).cloned().flatten();
                self.put(agent.as_ref(), Event::Terminal(change), &mut out);
            }
            Event::Extra(extra) => {
                let call = extra.call.as_ref();
                let agent = call.and_then(|call| self.calls.get(call).cloned().flatten());
                self.put(agent.as_ref(), Event::Extra(extra), &mut out);
            }
            event => self.put(None, event, &mut out),
        }
        out
    }

    /// The process ended, and all subagents with it.
    pub(crate) fn over(&mut self) -> Vec<Addressed> {
        let mut out = Vec::new();
        for agent in self.working(None) {
            self.ends(&agent, None, None, &mut out);
        }
        out
    }

    /// All that work, for an editor that may have forgotten them.
    pub(crate) fn again(&mut self) -> Vec<Addressed> {
        let mut out = Vec::new();
        for agent in self.working(None) {
            for agent in self.line(&agent) {
                if let Some(child) = self.agents.get_mut(&agent) {
                    child.is_announced = false;
                }
            }
        }
        for agent in self.working(None) {
            self.announce(&agent, Some(true), &mut out);
            self.state(&agent, ChildWork::Running, &mut out);
        }
        out
    }

    /// The number of open questions of each subagent: reports those that begin or end to wait for the user.
    pub(crate) fn wait(&mut self, questions: &HashMap<Arc<str>, usize>) -> Vec<Addressed> {
        let mut out = Vec::new();
        for agent in self.working(None) {
            let asks = questions.contains_key(&agent);
            let Some(child) = self.agents.get_mut(&agent) else {
                continue;
            };
            // What is being cancelled does not run again.
            if child.is_waiting == asks || (!asks && child.is_stopping) {
                continue;
            }
            child.is_waiting = asks;
            let work = match asks {
                true => ChildWork::RequiresAction,
                false => ChildWork::Running,
            };
            self.state(&agent, work, &mut out);
        }
        out
    }

    /// The session of a subagent and the call that started it, if the subagent has one.
    pub(crate) fn session_of(&self, agent: &str) -> Option<(acp::SessionId, Arc<str>)> {
        let child = self.agents.get(agent).filter(|child| child.is_announced)?;
        Some((acp::SessionId::new(child.session.clone()), child.call.clone()))
    }

    /// The editor cancels a subagent, or all of them: those that work, each before those that it started. Their ends are reported when
    /// they have ended.
    pub(crate) fn stop(&mut self, agent: Option<&str>) -> Vec<Arc<str>> {
        let working = self.working(agent);
        for agent in &working {
            if let Some(child) = self.agents.get_mut(agent) {
                child.is_stopping = true;
            }
        }
        working
    }

    fn changed(&mut self, changed: Subagent, out: &mut Vec<Addressed>) {
        let begins = changed.status == Status::InProgress;
        let known = match (&changed.task, begins) {
            (Some(agent), true) => self.begins(agent.clone(), &changed),
            (Some(agent), false) if self.agents.contains_key(agent) => Some(agent.clone()),
            _ => self.started_by.get(&changed.call).cloned(),
        };
        let Some(agent) = known else {
            return self.put(None, Event::Subagent(Box::new(changed)), out);
        };
        if !begins {
            return self.ends(&agent, Some(changed.status), changed.more.failure, out);
        }
        if self.agents.get(&agent).is_some_and(|child| child.is_working) {
            return;
        }
        self.announce(&agent, Some(true), out);
        if let Some(prompt) = changed.more.prompt {
            self.send_message(&agent, changed.call, prompt, out);
        }
        if let Some(child) = self.agents.get_mut(&agent) {
            (child.is_working, child.is_waiting, child.is_stopping) = (true, false, false);
        }
        self.state(&agent, ChildWork::Running, out);
    }

    /// A subagent begins to work. Returns it if it has a session.
    fn begins(&mut self, agent: Arc<str>, changed: &Subagent) -> Option<Arc<str>> {
        if !self.agents.contains_key(&agent) {
            let parent = self.calls.get(&changed.call)?.clone();
            self.insert(RecordedAgent {
                agent: agent.clone(),
                call: changed.call.clone(),
                parent,
                title: Some(changed.title.clone()),
                kind: changed.more.kind.clone(),
            })?;
        }
        if self.started_by.len() < MOST_CALLS {
            self.started_by.insert(changed.call.clone(), agent.clone());
        }
        Some(agent)
    }

    fn ends(
        &mut self,
        agent: &Arc<str>,
        status: Option<Status>,
        failure: Option<String>,
        out: &mut Vec<Addressed>,
    ) {
        let Some(child) = self.agents.get_mut(agent).filter(|child| child.is_working) else {
            return;
        };
        (child.is_working, child.is_waiting, child.is_stopping) = (false, false, false);
        self.state(agent, ChildWork::Idle(status, failure), out);
    }

    /// A subagent of the stored session. Returns it if it has a session.
    fn recorded(&mut self, agent: RecordedAgent) -> Option<Arc<str>> {
        let id = agent.agent.clone();
        match self.agents.contains_key(&id) {
            true => Some(id),
            false => self.insert(agent),
        }
    }

    fn insert(&mut self, agent: RecordedAgent) -> Option<Arc<str>> {
        let RecordedAgent {
            agent,
            call,
            parent,
            title,
            kind,
        } = agent;
        let is_placed = parent
            .as_ref()
            .is_none_or(|parent| self.agents.contains_key(parent));
        if !is_placed || !is_plain(&agent) || self.agents.len() >= MOST {
            return None;
        }
        self.started_by.insert(call.clone(), agent.clone());
        let child = Child {
            session: id(&self.root, &agent),
            parent,
            call,
            title,
            kind,
            is_announced: false,
            is_working: false,
            is_waiting: false,
            is_stopping: false,
        };
        self.agents.insert(agent.clone(), child);
        Some(agent)
    }

    /// Announces a subagent, and those that it belongs to before it, unless the editor knows them.
    fn announce(&mut self, agent: &Arc<str>, can_cancel: Option<bool>, out: &mut Vec<Addressed>) {
        for known in self.line(agent) {
            let can_cancel = can_cancel.filter(|_| known == *agent);
            let Some(child) = self.agents.get_mut(&known) else {
                continue;
            };
            // One that was only known from a stored session can be cancelled now.
            if child.is_announced && can_cancel.is_none() {
                continue;
            }
            child.is_announced = true;
            let (parent, event) = (child.parent.clone(), child.announcement(can_cancel));
            self.put(parent.as_ref(), event, out);
        }
    }

    fn state(&self, agent: &Arc<str>, work: ChildWork, out: &mut Vec<Addressed>) {
        if let Some(child) = self.agents.get(agent) {
            let id = child.session.clone();
            self.put(
                child.parent.as_ref(),
                Event::ChildState(Box::new(ChildState { id, work })),
                out,
            );
        }
    }

    /// The message of its parent to a subagent.
    fn send_message(
        &mut self,
        agent: &Arc<str>,
        message_id: Arc<str>,
        text: String,
        out: &mut Vec<Addressed>,
    ) {
        let Some(child) = self.agents.get(agent) else {
            return;
        };
        let parent = child.parent.as_ref().and_then(|parent| self.agents.get(parent));
        let from = parent.map_or_else(|| self.root.clone(), |parent| parent.session.clone());
        let to = child.session.clone();
        self.put(
            Some(agent),
            Event::Told(Box::new(PeerMessage {
                message_id,
                from,
                to,
                text,
            })),
            out,
        );
    }

    /// The subagent that a call started.
    fn of(&self, call: Option<&Arc<str>>) -> Option<Arc<str>> {
        self.started_by.get(call?).cloned()
    }

    /// The subagent of an event with this call. In its session the event has none.
    fn enter(&mut self, call: &mut Option<Arc<str>>, out: &mut Vec<Addressed>) -> Option<Arc<str>> {
        let agent = self.of(call.as_ref())?;
        *call = None;
        self.announce(&agent, None, out);
        Some(agent)
    }

    fn put(&self, agent: Option<&Arc<str>>, event: Event, out: &mut Vec<Addressed>) {
        let child = agent.and_then(|agent| self.agents.get(agent));
        let child = child.map(|child| acp::SessionId::new(child.session.clone()));
        out.push(Addressed { child, event });
    }

    /// A subagent behind all that it belongs to.
    fn line(&self, agent: &Arc<str>) -> Vec<Arc<str>> {
        let mut line = vec![agent.clone()];
        let mut at = self.agents.get(agent);
        while let Some(parent) = at.and_then(|child| child.parent.as_ref())
            && line.len() < DEEPEST
        {
            line.push(parent.clone());
            at = self.agents.get(parent);
        }
        line.reverse();
        line
    }

    /// The subagents that work, of all or of one and those below it. Each comes behind the one that started it.
    fn working(&self, agent: Option<&str>) -> Vec<Arc<str>> {
        let working = self.agents.iter().filter(|(_, child)| child.is_working);
        let mut lines: Vec<_> = working.map(|(id, _)| self.line(id)).collect();
        lines.retain(|line| agent.is_none_or(|agent| line.iter().any(|id| **id == *agent)));
        lines.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
        lines
            .into_iter()
            .filter_map(|line| line.last().cloned())
            .collect()
    }
}

#[cfg(test)]
mod tests;
