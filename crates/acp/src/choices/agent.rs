//! The leading agent: Claude Code itself, or one of the user's agents.
//!
//! The CLI keeps the system prompt of the first turn for the whole conversation, so the agent is chosen before it.

use agent_client_protocol::v1::schema as acp;
use outrigger::protocol::outbound::InitializeReply;

use super::{AGENT, DEFAULT};

/// The CLI's own agents, which are made for single tasks. The CLI lists them with the user's.
const BUILT_IN: [&str; 7] = [
    "claude",
    "claude-code-guide",
    "Explore",
    "general-purpose",
    "output-style-setup",
    "Plan",
    "statusline-setup",
];

/// The user's agents, and the leading one.
#[derive(Debug, Clone)]
pub(super) struct Agents {
    /// The known agents with their descriptions.
    known: Vec<(String, String)>,
    current: Option<String>,
    /// Whether the conversation has begun.
    is_settled: bool,
}

impl Agents {
    pub(super) fn new(told: &InitializeReply) -> Self {
        let own = told.agents.iter();
        let own = own.filter(|agent| agent.name != DEFAULT && !BUILT_IN.contains(&agent.name.as_str()));
        Self {
            known: own
                .map(|agent| (agent.name.clone(), agent.description.clone()))
                .collect(),
            current: None,
            is_settled: false,
        }
    }

    /// Whether there is a choice.
    pub(super) fn are_there(&self) -> bool {
        !self.known.is_empty() || self.current.is_some()
    }

    /// The conversation has begun. Returns whether that removes the choice.
    pub(super) fn settle(&mut self) -> bool {
        let was_open = !self.is_settled && self.are_there();
        self.is_settled = true;
        was_open
    }

    pub(super) fn is_settled(&self) -> bool {
        self.is_settled
    }

    pub(super) fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// The CLI reports the leading agent. Returns whether it is new.
    pub(super) fn is(&mut self, agent: Option<String>) -> bool {
        let is_news = self.current != agent;
        self.current = agent;
        is_news
    }

    /// The setting for an id, if there is such a choice.
    pub(super) fn find(&self, id: &str) -> Option<Option<String>> {
        if !self.are_there() {
            return None;
        }
        if self.is_settled {
            return (self.current() == Some(id)).then(|| self.current.clone());
        }
        let is_known = self.known.iter().any(|(name, _)| name == id) || self.current() == Some(id);
        match id {
            DEFAULT => Some(None),
            id => is_known.then(|| Some(id.to_owned())),
        }
    }

    pub(super) fn option(&self) -> Option<acp::SessionConfigOption> {
        if !self.are_there() || self.is_settled && self.current.is_none() {
            return None;
        }
        let own = acp::SessionConfigSelectOption::new(DEFAULT, "Default")
            .description("Claude Code, or as the settings say".to_owned());
        let mut agents = vec![own];
        agents.extend(self.known.iter().map(|(name, what)| {
            acp::SessionConfigSelectOption::new(name.clone(), name.as_str()).description(what.clone())
        }));
        if self.is_settled {
            agents.clear();
        }
        let current = self.current().unwrap_or(DEFAULT);
        if !agents.iter().any(|agent| agent.value.0.as_ref() == current) {
            agents.push(acp::SessionConfigSelectOption::new(current.to_owned(), current));
        }
        Some(
            acp::SessionConfigOption::select(AGENT, "Agent", current.to_owned(), agents)
                .description("Who leads the conversation, from its first prompt on".to_owned()),
        )
    }
}
