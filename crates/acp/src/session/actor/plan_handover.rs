//! An approved plan that is implemented in a new conversation.
//!
//! The user approved the plan and wants an empty context. The answer to the CLI's question ends the turn, and that turn, or the process,
//! ends the conversation. A new process of the same session gets the plan as its first prompt. The editor's prompt stays open until the
//! end of that new turn.

use std::time::Duration;

use outrigger::Prompt;
use outrigger::protocol::shared::PermissionMode;
use tokio::time::Instant;

use super::Actor;
use crate::ask::Approved;
use crate::outcome;
use crate::session::process::Process;
use crate::session::prompts::Attempt;
use crate::session::rewinding::go_back;

/// How long the turn may take to end before its process is ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// A plan that waits for the end of its turn.
pub(super) struct PlanHandover {
    /// The attempt of the prompt that stays open.
    attempt: Attempt,
    plan: String,
    mode: PermissionMode,
    until: Instant,
}

impl PlanHandover {
    pub(super) fn until(&self) -> Instant {
        self.until
    }
}

impl Actor {
    /// The user wants the plan of a call implemented in a new conversation. The answer to the CLI ends the turn.
    pub(super) fn approved(&mut self, call: &str, approved: Approved) {
        // The prompt was cancelled meanwhile: the end of its turn reports that.
        let Some(attempt) = self.prompts.hold_others() else {
            return;
        };
        self.show(|updates| updates.approved(call));
        let Approved { plan, mode } = approved;
        self.handover = Some(PlanHandover {
            attempt,
            plan,
            mode,
            until: Instant::now() + PATIENCE,
        });
    }

    /// A turn ended. Returns whether its prompt continues in a new conversation.
    pub(super) fn hand_over(&mut self, attempt: Attempt) -> bool {
        let handover = self.handover.take_if(|handover| handover.attempt == attempt);
        handover.is_some_and(|handover| self.begin_handover(handover))
    }

    /// The turn did not end in time.
    pub(super) fn handover_is_late(&mut self) {
        if let Some(handover) = self.handover.take()
            && self.begin_handover(handover)
        {
            tracing::warn!("the CLI did not end a turn whose plan was approved; its process is ended");
        }
    }

    /// Begins the new conversation in a new process, unless the prompt was cancelled. Returns whether it did.
    pub(super) fn begin_handover(&mut self, handover: PlanHandover) -> bool {
        let prompt = Prompt::text(format!("Implement this plan:\n\n{}", handover.plan));
        if !self.prompts.replace(handover.attempt, prompt.from_person()) {
            return false;
        }
        self.show(|updates| updates.cancelled());
        self.process_over();
        // No process reports the ends of their turns.
        let cancelled = self.prompts.give_up_cancelled();
        self.answer_cancelled(cancelled);
        self.activity.turn_ends(|| Ok(outcome::cancelled(None)));
        self.show(|updates| updates.begins_anew());
        // The new process gets the mode, with all other choices, before its first prompt.
        self.mode_is(handover.mode.as_str());
        self.conversation.start_over();
        let ended = self.process.session().clone();
        let revival = Box::pin(go_back(ended.clone(), &self.conversation));
        self.process = Process::Reviving { ended, revival };
        true
    }
}
