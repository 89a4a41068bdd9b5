//! Turns whose result was lost: how that is noticed, and how their prompts end.

use outrigger_protocol::Frame;

use super::super::Output;
use super::{Slot, Turns, around};
use crate::outcome::{Outcome, Verdict};

impl Turns {
    /// A turn begins. If the running one has not ended, its result was lost: its prompts end, except those that begin the new one.
    pub(super) fn leave_turn(&mut self) {
        let Some(running) = self.running.as_ref().filter(|running| running.began.is_some()) else {
            return;
        };
        let is_fresh = |id: &String| running.fresh.contains(id);
        let (fresh, left): (Vec<_>, Vec<_>) = running.prompts.iter().cloned().partition(is_fresh);
        let is_through = !left.is_empty() && left.iter().all(|id| self.is_through(id));
        if self.is_closing || (fresh.is_empty() && !is_through) {
            return;
        }
        self.lose(&left);
        for id in fresh {
            self.join(&id);
        }
    }

    /// A result has come. If the CLI is through with the running turn, and the result is another one's, that of the running turn was
    /// lost.
    pub(super) fn leave_turn_behind(&mut self, named: &[String], foreign: bool) {
        let Some(running) = &self.running else { return };
        let began = running.began.as_deref().unwrap_or_default();
        let mut own = running.prompts.iter().filter(|id| began.contains(id)).peekable();
        let is_over = own.peek().is_some() && own.all(|id| self.is_through(id));
        let is_anothers = foreign || named.iter().any(|id| !began.contains(id));
        let is_left = |id: &String| self.is_through(id) && !named.contains(id);
        let (left, rest): (Vec<_>, Vec<_>) = running.prompts.iter().cloned().partition(is_left);
        if self.is_closing || !is_over || !is_anothers || left.is_empty() {
            return;
        }
        self.lose(&left);
        for id in rest {
            self.join(&id);
        }
    }

    /// The CLI is idle. A turn that runs all the same has ended, and its result was lost.
    pub(super) fn end_without_result(&mut self) {
        if self.is_closing {
            return;
        }
        if self
            .running
            .as_ref()
            .is_some_and(|running| running.guessed.is_some())
        {
            self.take_back_guess();
        }
        if let Some(running) = &self.running {
            let prompts = running.prompts.clone();
            self.lose(&prompts);
        }
    }

    /// Ends the running turn, whose result was lost, and these prompts of it.
    fn lose(&mut self, prompts: &[String]) {
        let Some(running) = self.running.take() else {
            return;
        };
        let around = around(&self.slots, prompts, running.interrupted, &self.before);
        let verdict = if around.interrupted {
            Verdict::Interrupted
        } else {
            Verdict::NoResult
        };
        tracing::warn!(parent: &running.span, %verdict, "ended, and its result did not come");
        let outcome = Outcome::without_result(verdict, prompts.iter().map(String::as_str));
        if prompts.is_empty() {
            self.out.push(Output::AmbientEnded(outcome.clone()));
        }
        for id in prompts {
            self.end(id, outcome.clone());
        }
        self.before.next_turn();
    }

    /// Whether a result that names no open prompt belongs to another turn than the running one: a late or repeated result, or that
    /// of background work.
    pub(super) fn is_of_another_turn(&self, frame: &Frame, foreign: bool) -> bool {
        let Some(running) = self
            .running
            .as_ref()
            .filter(|running| !running.prompts.is_empty())
        else {
            return false;
        };
        // The CLI may name only a prompt of the turn that has ended before it.
        let names_others = frame
            .user_message_uuids()
            .any(|id| !running.settled.iter().any(|settled| settled == id));
        // A prompt that was folded into a turn of foreign origin is completed before the result.
        let none_through = !running.prompts.iter().any(|id| self.is_completed(id));
        names_others || (foreign && self.has_lifecycle && none_through)
    }

    /// Whether the CLI reported that it is through with the prompt.
    fn is_through(&self, id: &str) -> bool {
        let is_through = |slot: &Slot| slot.id == id && (slot.completed || slot.cancelled);
        self.slots.iter().any(is_through)
    }
}
