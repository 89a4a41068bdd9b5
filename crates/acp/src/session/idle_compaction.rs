//! Compacts a large conversation that nobody goes on with, after an announcement. Only if the configuration wants it, as it costs.
//!
//! [`Idle`] is a state machine without I/O: [`Idle::follow`] is told after each step whether the session works, and
//! [`Idle::reached`] decides at the time that [`Idle::due`] names.

use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use tokio::time::Instant;

use super::actor::Actor;
use super::prompt_reply::PromptReply;
use crate::config::IdleCompaction;

/// How long before a compaction it is announced, at most half of the idle time.
const NOTICE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Idle {
    settings: Option<IdleCompaction>,
    state: IdleState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdleState {
    /// The session works, or began.
    Working,
    /// Nothing works. The compaction is announced then.
    Resting { announce: Instant },
    /// The compaction is announced, and comes then.
    Announced { compact: Instant },
    /// Nothing is done until the next prompt of the user.
    Spent,
}

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
enum IdleAction {
    /// Tell the user that the conversation is compacted after this time.
    Announce {
        tokens: u64,
        after: Duration,
    },
    Compact,
}

impl Idle {
    pub(super) fn new(settings: Option<IdleCompaction>) -> Self {
        let state = IdleState::Working;
        Self { settings, state }
    }

    /// The user sent a prompt.
    pub(super) fn prompted(&mut self) {
        self.state = IdleState::Working;
    }

    /// The user cancelled, which calls an announced compaction off.
    pub(super) fn cancelled(&mut self) {
        if matches!(self.state, IdleState::Announced { .. }) {
            self.state = IdleState::Spent;
        }
    }

    /// Whether anything works, now.
    pub(super) fn follow(&mut self, is_busy: bool, now: Instant) {
        let Some(settings) = self.settings else { return };
        match (self.state, is_busy) {
            (IdleState::Working, false) => {
                let announce = now + (settings.after - notice(settings));
                self.state = IdleState::Resting { announce };
            }
            (IdleState::Resting { .. } | IdleState::Announced { .. }, true) => {
                self.state = IdleState::Working
            }
            _ => {}
        }
    }

    /// When to call [`reached`](Self::reached).
    pub(super) fn due(&self) -> Option<Instant> {
        match self.state {
            IdleState::Resting { announce: at } | IdleState::Announced { compact: at } => Some(at),
            IdleState::Working | IdleState::Spent => None,
        }
    }

    /// The time is reached; the context has so many tokens, if that is known.
    fn reached(&mut self, tokens: Option<u64>, now: Instant) -> Option<IdleAction> {
        let settings = self.settings?;
        let tokens = tokens.filter(|tokens| *tokens >= settings.from_tokens);
        match (self.state, tokens) {
            (IdleState::Resting { announce }, Some(tokens)) if announce <= now => {
                let after = notice(settings);
                self.state = IdleState::Announced { compact: now + after };
                Some(IdleAction::Announce { tokens, after })
            }
            (IdleState::Announced { compact }, Some(_)) if compact <= now => {
                self.state = IdleState::Spent;
                Some(IdleAction::Compact)
            }
            (IdleState::Resting { announce: at } | IdleState::Announced { compact: at }, None)
                if at <= now =>
            {
                self.state = IdleState::Spent;
                None
            }
            _ => None,
        }
    }
}

fn notice(settings: IdleCompaction) -> Duration {
    NOTICE.min(settings.after / 2)
}

impl Actor {
    /// Follows whether the session works.
    pub(super) fn follow_idleness(&mut self) {
        // Work in the background would lose its context.
        let works = self.is_busy() || self.questions.waiting() > 0 || !self.updates.background().is_empty();
        self.idle.follow(works, Instant::now());
    }

    /// The session was idle for long enough.
    pub(super) fn idle_for_long(&mut self) {
        match self.idle.reached(self.updates.used(), Instant::now()) {
            Some(IdleAction::Announce { tokens, after }) => {
                self.show(|updates| updates.will_compact(tokens, after));
            }
            Some(IdleAction::Compact) => {
                let compact = vec![acp::ContentBlock::from("/compact")];
                self.prompt(
                    acp::PromptRequest::new(self.id.clone(), compact),
                    PromptReply::nothing(),
                );
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
