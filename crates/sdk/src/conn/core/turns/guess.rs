//! Attributes a turn when the CLI does not report whose it is: to the oldest prompt. If the CLI announced such reports, the frames
//! are held back until it had the time to send one.

use outrigger_protocol::Frame;

use super::super::Output;
use super::{PromptStage, RunningTurn, Turns, deliver_to};
use crate::outcome::Outcome;

/// A result that is only a guess to be a prompt's.
#[derive(Debug)]
pub(super) struct Unsure {
    /// The number of the turn.
    pub(super) number: u64,
    /// The frames of the turn, the result among them.
    pub(super) frames: Vec<Frame>,
    /// The outcome if the turn answers the prompt.
    pub(super) theirs: Outcome,
    /// The outcome if the turn is ambient.
    pub(super) nobodys: Outcome,
}

/// How many frames of a guessed turn are held back; with more, the guess is confirmed.
pub(super) const MAX_HELD_BACK: usize = 1024;

impl Turns {
    /// A CLI that does not report the life of prompts runs them in order.
    ///
    /// A CLI that announced such reports and has not sent one yet may be in an ambient turn; its next report decides.
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
            running.assumed = Some(id);
            if self.has_lifecycle {
                running.guessed = Some(Vec::new());
                self.out.push(Output::Unsure(running.number));
            }
        }
    }

    /// The CLI does report the life of prompts, so it would have reported the guessed prompt of the running turn.
    pub(super) fn correct_guess(&mut self) {
        if let Some(unsure) = self.unsure.take() {
            self.out.extend(unsure.frames.into_iter().map(Output::Ambient));
            self.out.push(Output::AmbientEnded(unsure.nobodys));
        }
        self.take_back_guess();
    }

    /// The CLI reports that this prompt of the running turn has begun: if another one was guessed, that goes on waiting.
    pub(super) fn has_begun(&mut self, id: &str) {
        let guessed = self
            .running
            .as_ref()
            .and_then(|running| running.assumed.as_deref());
        if guessed.is_some_and(|guessed| guessed != id) {
            self.take_back_guess();
        }
    }

    /// The guessed prompt goes on waiting. Prompts that the CLI has named stay.
    pub(super) fn take_back_guess(&mut self) {
        let Some(running) = &mut self.running else { return };
        let Some(guessed) = running.assumed.take() else {
            return;
        };
        let nobodys = running.guessed.take().into_iter().flatten();
        self.out.extend(nobodys.map(Output::Ambient));
        running.keep(|prompt| *prompt != guessed);
        for slot in self.slots.iter_mut().filter(|slot| slot.id == guessed) {
            slot.stage = PromptStage::Sent;
        }
    }

    /// A frame of the running turn that names prompts decides: these get the held-back frames, and a guessed prompt that is not
    /// named goes on waiting. That also holds if the guess was confirmed and the result is of foreign origin, since such a result
    /// belongs only to prompts that it names.
    pub(super) fn named(&mut self, frame: &Frame, foreign: bool) {
        let is_open =
            |running: &&mut RunningTurn| running.guessed.is_some() || (foreign && running.assumed.is_some());
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
        running.keep(is_named);
        running.assumed = None;
        for id in names {
            self.join(id);
        }
        self.release();
    }

    /// Confirms the guess for that turn, or for any. Returns whether a result was a guess.
    ///
    /// A CLI that announced reports of prompts and answers one without a report does not send them.
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
        unsure
            .frames
            .iter()
            .for_each(|frame| self.deliver_frame(theirs, frame));
        for id in theirs {
            self.end(id, unsure.theirs.clone());
        }
        true
    }

    /// Confirms the guess for the running turn: delivers its held-back frames.
    pub(super) fn release(&mut self) {
        let Some(running) = &mut self.running else { return };
        let Some(held) = running.guessed.take() else {
            return;
        };
        (self.has_lifecycle, self.lacks_lifecycle) = (false, true);
        for frame in &held {
            deliver_to(&self.slots, &running.prompts, frame, &mut self.out);
        }
    }
}
