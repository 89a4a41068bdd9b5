//! How far the CLI has come with getting ready.

use std::collections::HashSet;

use outrigger_protocol::Frame;

use crate::fields::Fields;

/// How many hooks are told apart; there are a handful.
const MAX_HOOKS: usize = 1024;

/// What is known of a process before it has answered `initialize`.
#[derive(Debug, Default)]
pub(crate) struct Startup {
    /// The last thing that it said it had done.
    mark: Option<String>,
    /// The hooks that run and were to run before the session.
    hooks: HashSet<String>,
}

impl Startup {
    /// Notes the mark that a `keep_alive` carries, if any.
    pub(crate) fn on_keep_alive(&mut self, frame: &Frame) {
        if let Some(mark) = Fields::of(frame).get("startup_mark") {
            self.mark = Some(mark);
        }
    }

    /// Notes a `hook_started` or `hook_response`.
    pub(crate) fn on_hook(&mut self, frame: &Frame) {
        let fields = Fields::of(frame);
        let event: Option<String> = fields.get("hook_event");
        if !matches!(event.as_deref(), Some("SessionStart" | "Setup")) {
            return;
        }
        let Some(id) = fields.get::<String>("hook_id") else {
            return;
        };
        if frame.subtype() == Some("hook_response") {
            self.hooks.remove(&id);
        } else if self.hooks.len() < MAX_HOOKS {
            self.hooks.insert(id);
        }
    }

    /// Whether it waits for hooks of the user's.
    pub(crate) fn runs_hooks(&self) -> bool {
        !self.hooks.is_empty()
    }

    /// The last thing that it said it had done.
    pub(crate) fn mark(&self) -> Option<&str> {
        self.mark.as_deref()
    }
}
