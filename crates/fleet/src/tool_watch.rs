//! Whether a tool may have run in a turn.

use std::collections::HashSet;

use outrigger::{BlockKind, Event};

/// The tool by which the model gives structured output. It does nothing.
pub(crate) const STRUCTURED_OUTPUT: &str = "StructuredOutput";

/// Reads the events of a turn.
#[derive(Debug, Default)]
pub(crate) struct ToolWatch {
    ran: bool,
    /// Calls for structured output.
    outputs: HashSet<String>,
}

impl ToolWatch {
    /// Whether the event is the first that shows that a tool may have run.
    pub(crate) fn observe(&mut self, event: &Event) -> bool {
        let runs = match event {
            // The call itself follows, before the tool runs.
            Event::ContentBlockStart { kind, .. } | Event::ContentBlockStop { kind, .. }
                if *kind == BlockKind::ToolUse =>
            {
                false
            }
            Event::ToolInput { .. } => false,
            Event::ToolUse(call) if call.name == STRUCTURED_OUTPUT => {
                self.outputs.insert(call.id.clone());
                false
            }
            Event::ToolResult(result) => !self.outputs.contains(&result.tool_use_id),
            event => event.may_run_tools(),
        };
        let is_first = runs && !self.ran;
        self.ran |= runs;
        is_first
    }

    pub(crate) fn ran(&self) -> bool {
        self.ran
    }
}
