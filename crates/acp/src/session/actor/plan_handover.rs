//! A plan that is carried out in a new conversation, in the place of the prompt that it was made for.
//!
//! The user has approved it and wants the context cleared. The answer to the CLI's question ends the turn; with it, or with the process,
//! the conversation is over. Another one begins in a new process, under the same session, and gets the plan as its first prompt. The
//! prompt of the editor stays open through all of this, and is answered at the end of that turn.

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

/// How long the turn may take to end; its process is ended then.
const PATIENCE: Duration = Duration::from_secs(10);

/// A plan that waits for the end of the turn that made it.
pub(super) struct PlanHandover {
    /// Whose prompt it goes on for.
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
    /// The user wants a plan carried out in a new conversation. The turn ends by the answer to the CLI.
    pub(super) fn approved(&mut self, call: &str, approved: Approved) {
        // It was cancelled meanwhile, and that is told at its end.
        let Some(attempt) = self.prompts.hold_others() else {
            return;
        };
        let updates = self.updates.approved(call);
        self.tell(updates);
        let Approved { plan, mode } = approved;
        self.handover = Some(PlanHandover {
            attempt,
            plan,
            mode,
            until: Instant::now() + PATIENCE,
        });
    }

    /// A turn ended. Returns whether its prompt goes on in a new conversation.
    pub(super) fn goes_on_anew(&mut self, attempt: Attempt) -> bool {
        let handover = self.handover.take_if(|handover| handover.attempt == attempt);
        handover.is_some_and(|handover| self.begin_anew(handover))
    }

    /// The turn does not end.
    pub(super) fn anew_is_late(&mut self) {
        if let Some(handover) = self.handover.take()
            && self.begin_anew(handover)
        {
            tracing::warn!("the CLI did not end a turn whose plan was approved; its process is ended");
        }
    }

    /// Begins the new conversation, in a new process, unless the prompt was cancelled. Returns whether it does.
    pub(super) fn begin_anew(&mut self, handover: PlanHandover) -> bool {
        let prompt = Prompt::text(format!("Implement this plan:\n\n{}", handover.plan));
        if !self.prompts.replace(handover.attempt, prompt.from_person()) {
            return false;
        }
        let updates = self.updates.cancelled();
        self.tell(updates);
        self.process_over();
        self.generation += 1;
        if let Some(change) = self.lost.take() {
            self.changes.push_front(change);
        }
        // Nobody tells of their ends any more.
        let cancelled = self.prompts.give_up_cancelled();
        self.answer_cancelled(cancelled);
        self.activity.turn_ends(|| Ok(outcome::cancelled(None)));
        let updates = self.updates.begins_anew();
        self.tell(updates);
        // It is chosen in the new process before anything is said there, as all that was chosen.
        self.mode_is(handover.mode.as_str());
        self.behind = None;
        self.again.resume = None;
        self.again.session_id = Some(uuid::Uuid::new_v4().to_string());
        let ended = self.process.session().clone();
        let revival = Box::pin(go_back(ended.clone(), None, self.again.clone()));
        self.process = Process::Reviving { ended, revival };
        true
    }
}
