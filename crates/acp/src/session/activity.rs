//! What a session does in the foreground, as the draft of the second version has it told: it idles, runs, or waits for the user.
//!
//! This is a plain state machine without I/O. Prompts begin and end, the CLI takes turns of its own, the user is asked; [`Activity::news`]
//! says what there is to tell of that. `E` is how foreground work ended.

use crate::event::Doing;
use crate::reduce::Going;

/// What there is to tell.
#[derive(Debug, PartialEq)]
pub(crate) struct News<E> {
    pub(crate) doing: Doing,
    /// How the work ended, if this ends any.
    pub(crate) end: Option<E>,
    /// What goes on in the background: all of it.
    pub(crate) going: Vec<Going>,
}

/// The foreground of a session.
#[derive(Debug)]
pub(super) struct Activity<E> {
    /// Prompts that are part of the conversation, and whose turns have not ended.
    begun: usize,
    /// A turn runs that nobody prompted: the CLI goes on by itself, with what came of work in the background.
    own: bool,
    /// Questions that the user has not answered.
    asked: usize,
    /// How what ended last ended, until that is told.
    end: Option<E>,
    told: Doing,
    told_going: Vec<Going>,
}

impl<E> Default for Activity<E> {
    fn default() -> Self {
        Self {
            begun: 0,
            own: false,
            asked: 0,
            end: None,
            told: Doing::Idle,
            told_going: Vec::new(),
        }
    }
}

impl<E> Activity<E> {
    /// A prompt became part of the conversation.
    pub(super) fn begins(&mut self) {
        self.begun += 1;
    }

    /// The turn of one that did ended.
    pub(super) fn ends(&mut self, end: E) {
        self.begun = self.begun.saturating_sub(1);
        self.end = Some(end);
    }

    /// The CLI begins a turn. It is its own if no prompt is what it is about.
    pub(super) fn turn_begins(&mut self) {
        self.own |= self.begun == 0;
    }

    /// The turn of the CLI's own ended, if there was one. `end` is not called otherwise: prompts tell their ends themselves.
    pub(super) fn turn_ends(&mut self, end: impl FnOnce() -> E) {
        if std::mem::take(&mut self.own) {
            self.end = Some(end());
        }
    }

    /// Whether a turn of the CLI's own runs.
    pub(super) fn has_own(&self) -> bool {
        self.own
    }

    /// So many questions wait for the user.
    pub(super) fn asks(&mut self, questions: usize) {
        self.asked = questions;
    }

    /// What there is to tell, if anything changed. `going` is what goes on in the background now.
    pub(super) fn news(&mut self, going: Vec<Going>) -> Option<News<E>> {
        let doing = match (self.begun > 0 || self.own, self.asked) {
            (false, _) => Doing::Idle,
            (true, 0) => Doing::Running,
            (true, _) => Doing::RequiresAction,
        };
        if doing == self.told && going == self.told_going {
            // What began and ended unseen is told of by whoever made it begin.
            return None;
        }
        // One that ended while another still runs does not end the work.
        let end = self
            .end
            .take_if(|_| doing == Doing::Idle && self.told != Doing::Idle);
        self.told = doing;
        self.told_going.clone_from(&going);
        Some(News { doing, end, going })
    }
}

#[cfg(test)]
mod tests;
