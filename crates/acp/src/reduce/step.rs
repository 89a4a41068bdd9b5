//! The output of the reducer: events for the client, and effects for the session's task.

use std::path::PathBuf;
use std::sync::Arc;

use outrigger::protocol::RawJson;
use serde::Serialize;

use crate::event::{CallChange, Event, Extra, Notice, Topic};
use crate::tool;

/// One consequence of a frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ReducedStep {
    /// The client gets the event.
    Event(Event),
    /// The session's task does it.
    Effect(Effect),
}

/// I/O for the session's task: the reducer does none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Follow the output file of a background command: pass its bytes to [`tailed`](super::Reducer::tailed) as they come.
    Tail {
        /// The command's call.
        call: Arc<str>,
        file: PathBuf,
    },
    /// The command has ended: pass the rest of its output, then call [`tail_ended`](super::Reducer::tail_ended).
    Untail {
        /// The command's call.
        call: Arc<str>,
    },
}

/// Steps in order.
#[derive(Debug, Default)]
pub(crate) struct Steps(pub(crate) Vec<ReducedStep>);

impl Steps {
    pub(super) fn event(&mut self, event: Event) {
        self.0.push(ReducedStep::Event(event));
    }

    pub(super) fn change(&mut self, change: CallChange) {
        self.event(Event::CallChanged(Box::new(change)));
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.0.push(ReducedStep::Effect(effect));
    }

    /// A notice, with the CLI's message for programs.
    pub(super) fn notice<T: Serialize>(&mut self, notice: Notice, data: &T) {
        self.event(Event::Notice(Notice {
            title: tool::without_keys(&notice.title),
            description: notice.description.map(|text| tool::without_keys(&text)),
            data: RawJson::encode(data).ok(),
            ..notice
        }));
    }

    /// A message for programs only.
    pub(super) fn extra<T: Serialize>(&mut self, topic: Topic, data: &T) {
        self.extra_of(None, topic, data);
    }

    /// A message for programs only, about a call.
    pub(super) fn extra_of<T: Serialize>(&mut self, call: Option<&str>, topic: Topic, data: &T) {
        if let Ok(data) = RawJson::encode(data) {
            let call = call.map(Arc::from);
            self.event(Event::Extra(Box::new(Extra { topic, call, data })));
        }
    }

    /// Raw JSON for programs only.
    pub(super) fn raw_extra(&mut self, topic: Topic, data: RawJson) {
        let call = None;
        self.event(Event::Extra(Box::new(Extra { topic, call, data })));
    }
}
