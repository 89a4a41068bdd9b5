//! Whose a turn is when the CLI does not say: it is taken for the oldest prompt's, and if the CLI announced to say so, what it told
//! is held back until it had the time to.

use outrigger_protocol::Frame;

use super::super::Output;
use super::{PromptStage, Running, Turns, tell};
use crate::outcome::Outcome;

/// A result that was taken for a prompt's.
#[derive(Debug)]
pub(super) struct Unsure {
    /// The number of the turn.
    pub(super) number: u64,
    /// The frames of the turn, the result among them.
    pub(super) frames: Vec<Frame>,
    /// As the prompt's.
    pub(super) theirs: Outcome,
    /// As nobody's.
    pub(super) nobodys: Outcome,
}

/// How many frames are held back of a turn that is not sure to be a prompt's; with more it is taken to be.
pub(super) const MAX_HELD_BACK: usize = 1024;

impl Turns {
    /// A CLI that does not report the life of prompts runs them in the order in which they came.
    ///
    /// One that announces to report it and has not done so yet may be in a turn that is nobody's; what it says next tells.
    pub(super) fn adopt_without_lifecycle(&mut self) {
        if self.saw_lifecycle
            || self
                .running
                .as_ref()
                .is_none_or(|running| !running.prompts.is_empty())
        {
            return;
        }
        let oldest = self
            .slots
            .iter()
            .find(|slot| !matches!(slot.stage, PromptStage::Held { .. }));
        if let Some(id) = oldest.map(|slot| slot.id.clone()) {
            self.join(&id);
            let Some(running) = &mut self.running else { return };
            running.assumed = true;
            if self.has_lifecycle {
                running.guessed = Some(Vec::new());
                self.out.push(Output::Unsure(running.number));
            }
        }
    }

    /// The CLI does report the life of prompts, so it would have reported that of the one which was taken for the running
    /// turn's.
    pub(super) fn correct_guess(&mut self) {
        if let Some(unsure) = self.unsure.take() {
            self.out.extend(unsure.frames.into_iter().map(Output::Ambient));
            self.out.push(Output::AmbientEnded(unsure.nobodys));
        }
        let Some(running) = &mut self.running else { return };
        if !std::mem::take(&mut running.assumed) {
            return;
        }
        let nobodys = running.guessed.take().into_iter().flatten();
        self.out.extend(nobodys.map(Output::Ambient));
        let guessed = std::mem::take(&mut running.prompts);
        for slot in self.slots.iter_mut().filter(|slot| guessed.contains(&slot.id)) {
            slot.stage = PromptStage::Sent;
        }
    }

    /// A frame of the running turn that tells whose that is, if it names prompts: those get what was held back, and the one that
    /// was taken for its own without being named goes on waiting; also when that was sure already and the result is of foreign
    /// origin, which is no prompt's that it does not name.
    pub(super) fn named(&mut self, frame: &Frame, foreign: bool) {
        let is_open = |running: &&mut Running| running.guessed.is_some() || (foreign && running.assumed);
        let Some(running) = self.running.as_mut().filter(is_open) else {
            return;
        };
        let is_sent = |id: &str| {
            let mut slots = self.slots.iter();
            slots.any(|slot| slot.id == id && !matches!(slot.stage, PromptStage::Held { .. }))
        };
        let names: Vec<&str> = frame.user_message_uuids().filter(|id| is_sent(id)).collect();
        if names.is_empty() {
            return;
        }
        let is_named = |id: &String| names.contains(&id.as_str());
        for slot in &mut self.slots {
            if running.prompts.contains(&slot.id) && !is_named(&slot.id) {
                slot.stage = PromptStage::Sent;
            }
        }
        running.prompts.retain(is_named);
        running.assumed = false;
        for id in names {
            self.join(id);
        }
        self.release();
    }

    /// Enough was waited: that turn, or whichever is unsure, is the prompt's. Tells whether a result was unsure.
    ///
    /// A CLI that announces to report the life of prompts, answers one, and has said nothing of it, does not report it.
    pub(crate) fn confirm(&mut self, number: Option<u64>) -> bool {
        let is_meant = |turn: u64| number.is_none_or(|number| number == turn);
        if self
            .running
            .as_ref()
            .is_some_and(|running| is_meant(running.number))
        {
            self.release();
        }
        let Some(unsure) = self.unsure.take_if(|unsure| is_meant(unsure.number)) else {
            return false;
        };
        (self.has_lifecycle, self.lacks_lifecycle) = (false, true);
        let theirs = unsure.theirs.prompts();
        unsure.frames.iter().for_each(|frame| self.tell(theirs, frame));
        for id in theirs {
            self.end(id, unsure.theirs.clone());
        }
        true
    }

    /// The running turn is the prompt's that it was taken for: what was held back of it is told.
    pub(super) fn release(&mut self) {
        let Some(running) = &mut self.running else { return };
        let Some(held) = running.guessed.take() else {
            return;
        };
        (self.has_lifecycle, self.lacks_lifecycle) = (false, true);
        for frame in &held {
            tell(&self.slots, &running.prompts, frame, &mut self.out);
        }
    }
}
