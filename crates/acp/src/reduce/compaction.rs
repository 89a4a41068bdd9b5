//! Compactions: from their start to the summary.

use std::sync::Arc;

use outrigger::protocol::inbound::system::{CompactResult, Status as CliStatus, StatusKind};

use super::step::Steps;
use crate::event::{Compaction, Event, Status};
use crate::tool;

#[derive(Debug, Default)]
pub(super) struct Compactions {
    /// The last compaction.
    id: Option<Arc<str>>,
    is_running: bool,
    /// Whether only the summary of the compaction is missing. It is reported with the end.
    awaits_summary: bool,
}

impl Compactions {
    /// The CLI reports its status.
    pub(super) fn status(&mut self, status: &CliStatus, steps: &mut Steps) {
        let has_failed =
            status.compact_result == Some(CompactResult::Failed) || status.compact_error.is_some();
        if status.status == Some(StatusKind::Compacting) || has_failed {
            self.goes_on(steps);
        }
        if status.status == Some(StatusKind::Compacting) && !self.is_running {
            self.begin(&status.uuid, steps);
        }
        if has_failed {
            if !self.is_running {
                self.begin(&status.uuid, steps);
            }
            self.end(Status::Failed, None, status.compact_error.clone(), steps);
        }
    }

    /// The CLI reports the new beginning of the conversation.
    pub(super) fn boundary(&mut self, uuid: &str, steps: &mut Steps) {
        self.goes_on(steps);
        if !self.is_running {
            self.begin(uuid, steps);
        }
        self.awaits_summary = true;
    }

    /// The conversation goes on: a summary that has not come yet does not come.
    pub(super) fn goes_on(&mut self, steps: &mut Steps) {
        if std::mem::take(&mut self.awaits_summary) {
            self.end(Status::Completed, None, None, steps);
        }
    }

    /// Whether the next synthetic text is the summary.
    pub(super) fn awaits_summary(&self) -> bool {
        self.awaits_summary
    }

    /// The summary that replaces the conversation.
    pub(super) fn summary(&mut self, text: &str, uuid: Option<&str>, steps: &mut Steps) {
        if !self.is_running {
            self.begin(uuid.unwrap_or("compaction"), steps);
        }
        self.awaits_summary = false;
        self.end(Status::Completed, Some(essence(text)), None, steps);
    }

    /// The turn has ended, with its compaction.
    pub(super) fn turn_over(&mut self, steps: &mut Steps) {
        self.goes_on(steps);
        if self.is_running {
            self.end(Status::Cancelled, None, None, steps);
        }
    }

    fn begin(&mut self, uuid: &str, steps: &mut Steps) {
        self.id = Some(uuid.into());
        self.is_running = true;
        self.report(Status::InProgress, None, None, steps);
    }

    fn end(&mut self, status: Status, summary: Option<String>, error: Option<String>, steps: &mut Steps) {
        self.is_running = false;
        self.report(status, summary, error, steps);
    }

    fn report(&self, status: Status, summary: Option<String>, error: Option<String>, steps: &mut Steps) {
        if let Some(id) = self.id.clone() {
            steps.event(Event::Compaction(Compaction {
                id,
                status,
                summary,
                error,
            }));
        }
    }
}

/// The summary without the CLI's notes to the model.
fn essence(text: &str) -> String {
    let text = tool::without_reminders(text);
    let text = text.trim();
    let rest = match text.strip_prefix("This session is being continued from a previous conversation") {
        // The note is a line of its own.
        Some(rest) => rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start(),
        None => text,
    };
    let rest = rest.strip_prefix("Summary:\n").unwrap_or(rest);
    let end = rest.find("If you need specific details from before compaction");
    rest[..end.unwrap_or(rest.len())].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_without_what_is_for_the_model() {
        let begin = "This session is being continued from a previous conversation that ran out of context. The summary below \
            covers the earlier portion of the conversation.\n\n";
        let reminder = "<system-reminder>\n<tools-used-before-summary>Bash</tools-used-before-summary>\n</system-reminder>\n";
        let end = "\n\nIf you need specific details from before compaction (like exact code snippets), read the transcript.";
        for text in [
            format!("{begin}{reminder}Summary:\nWe built it.{end}"),
            format!("{begin}{reminder}We built it.{end}"),
            format!("{begin}We built it.\n\n{reminder}"),
            format!("{reminder}We built it."),
            "We built it.".to_owned(),
        ] {
            assert_eq!(essence(&text), "We built it.", "{text}");
        }
        // What is no part of the frame stays.
        assert_eq!(
            essence("Done:\nSummary:\nall of it"),
            "Done:\nSummary:\nall of it"
        );
    }
}
