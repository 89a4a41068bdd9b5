//! What the reducer has to say: events for the client, and things to do for the session.

use std::path::PathBuf;
use std::sync::Arc;

use crate::event::{CallChange, Event};

/// One thing that follows from a frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// To be told to the client.
    Event(Event),
    /// To be done.
    Effect(Effect),
}

/// Something that the session has to do, since reducing does no I/O.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Follow a file that a command in the background writes to: hand what is in it, and what is added, to
    /// [`tailed`](super::Reducer::tailed).
    Tail {
        /// The call that it belongs to.
        call: Arc<str>,
        /// The file.
        file: PathBuf,
    },
    /// The command has ended: read what is left, hand it over, and say [`tail_ended`](super::Reducer::tail_ended).
    Untail {
        /// The call that it belonged to.
        call: Arc<str>,
    },
}

/// Steps in order.
#[derive(Debug, Default)]
pub(crate) struct Steps(pub(crate) Vec<Step>);

impl Steps {
    pub(super) fn event(&mut self, event: Event) {
        self.0.push(Step::Event(event));
    }

    pub(super) fn change(&mut self, change: CallChange) {
        self.event(Event::CallChanged(Box::new(change)));
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.0.push(Step::Effect(effect));
    }
}
