//! The foreground state of a session: idle, running, or waiting for the user. Editors of the draft of version 2 get it.
//!
//! A state machine without I/O. Its inputs are prompts, turns of the CLI's own and questions to the user; [`Activity::news`] returns the
//! changes to report. `E` is the result of foreground work.

use crate::event::State;
use crate::reduce::BackgroundCall;

/// A change to report.
#[derive(Debug, PartialEq)]
pub(crate) struct News<E> {
    pub(crate) doing: State,
    /// The result of the work, if this is its end.
    pub(crate) end: Option<E>,
    /// All background work.
    pub(crate) background: Vec<BackgroundCall>,
}

#[derive(Debug)]
pub(super) struct Activity<E> {
    /// The number of prompts in the conversation whose turns have not ended.
    begun: usize,
    /// Whether a turn without a prompt runs: the CLI continues by itself with the result of background work.
    own: bool,
    /// The number of open questions to the user.
    asked: usize,
    /// The last result, until it is reported.
    end: Option<E>,
    reported: State,
    reported_background: Vec<BackgroundCall>,
}

impl<E> Default for Activity<E> {
    fn default() -> Self {
        Self {
            begun: 0,
            own: false,
            asked: 0,
            end: None,
            reported: State::Idle,
            reported_background: Vec::new(),
        }
    }
}

impl<E> Activity<E> {
    /// A prompt became part of the conversation.
    pub(super) fn begins(&mut self) {
        self.begun += 1;
    }

    /// The turn of such a prompt ended.
    pub(super) fn ends(&mut self, end: E) {
        self.begun = self.begun.saturating_sub(1);
        self.end = Some(end);
    }

    /// The CLI begins a turn of its own. The turn of a prompt may have ended, but not the prompt.
    pub(super) fn turn_begins(&mut self) {
        self.own = true;
    }

    /// The turn of the CLI's own ended, if there was one. Otherwise `end` is not called: prompts report their own results.
    pub(super) fn turn_ends(&mut self, end: impl FnOnce() -> E) {
        if std::mem::take(&mut self.own) {
            self.end = Some(end());
        }
    }

    /// Whether a turn of the CLI's own runs.
    pub(super) fn has_own(&self) -> bool {
        self.own
    }

    /// Sets the number of open questions.
    pub(super) fn asks(&mut self, questions: usize) {
        self.asked = questions;
    }

    /// The change to report, if there is one. `background` is the current background work.
    pub(super) fn news(&mut self, background: Vec<BackgroundCall>) -> Option<News<E>> {
        let doing = match (self.begun > 0 || self.own, self.asked) {
            (false, _) => State::Idle,
            (true, 0) => State::Running,
            (true, _) => State::RequiresAction,
        };
        if doing == self.reported && background == self.reported_background {
            // Work that began and ended between two reports is reported by its prompt.
            return None;
        }
        // The work ends with the last prompt.
        let end = self
            .end
            .take_if(|_| doing == State::Idle && self.reported != State::Idle);
        self.reported = doing;
        self.reported_background.clone_from(&background);
        Some(News {
            doing,
            end,
            background,
        })
    }
}

#[cfg(test)]
mod tests;
