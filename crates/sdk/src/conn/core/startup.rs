//! How far the start of the CLI has come.

use std::collections::HashSet;

use outrigger_protocol::Frame;

use crate::fields::Fields;

/// How many hooks are tracked; usually there are few.
const MAX_HOOKS: usize = 1024;

/// The state of a process before its reply to `initialize`.
#[derive(Debug, Default)]
pub(crate) struct Startup {
    /// The last step that the CLI reported.
    mark: Option<String>,
    /// The startup hooks that run.
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

    /// Whether the CLI waits for hooks of the user.
    pub(crate) fn runs_hooks(&self) -> bool {
        !self.hooks.is_empty()
    }

    /// The last step that the CLI reported.
    pub(crate) fn mark(&self) -> Option<&str> {
        self.mark.as_deref()
    }
}
