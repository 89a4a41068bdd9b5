//! One open tool call, and its updates.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger::protocol::RawJson;

use super::super::step::Steps;
use super::CallEnd;
use crate::event::{CallChange, CallContent, Event, NewToolCall, Status, TerminalChange, TerminalEvent};
use crate::tool::{self, CallView, Partial, Role, ToolResultView, WorkDir};

/// How long a call without a known target is held back: simple clients keep the first title.
const HOLD: Duration = Duration::from_millis(150);

#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) id: Arc<str>,
    pub(super) tool: Arc<str>,
    pub(super) parent: Option<Arc<str>>,
    /// The position of the call in the order of calls.
    pub(super) number: u64,
    pub(super) since: Instant,
    pub(super) partial: Partial,
    pub(super) view: Option<CallView>,
    pub(super) input: Option<RawJson>,
    /// When the call's input was complete.
    pub(super) sealed: Option<Instant>,
    pub(super) reported: bool,
    /// Whether the call's content was reported, and not only its title.
    pub(super) content_reported: bool,
    /// Whether `InProgress` was reported.
    pub(super) running: bool,
    /// Whether a decision about it is pending.
    pub(super) waiting: bool,
    /// Whether the user rejected it.
    pub(super) rejected: bool,
    pub(super) role: Role,
    pub(super) task: Option<String>,
    pub(super) background: bool,
    /// Whether the call's output file is followed.
    pub(super) tailed: bool,
    /// The call ended, and waits until then for the rest of its output.
    pub(super) ending: Option<(CallEnd, Instant)>,
    /// The call's task ended before the result that put it in the background.
    pub(super) early: Option<CallEnd>,
}

impl OpenCall {
    /// Whether the call is shown in another way.
    pub(super) fn is_hidden(&self) -> bool {
        !self.reported && matches!(self.role, Role::Plan | Role::Internal)
    }

    pub(super) fn held_until(&self) -> Option<Instant> {
        (!self.reported && !self.is_hidden()).then(|| self.since + HOLD)
    }

    pub(super) fn change(&self) -> CallChange {
        CallChange {
            id: self.id.clone(),
            tool: self.tool.clone(),
            parent: self.parent.clone(),
            ..CallChange::default()
        }
    }

    pub(super) fn terminal(&self, what: TerminalEvent, steps: &mut Steps) {
        let id = self.id.clone();
        let call = self.id.clone();
        steps.event(Event::Terminal(TerminalChange { id, call, what }));
    }

    /// Updates the view of a call, and reports the differences.
    pub(super) fn refresh(&mut self, view: CallView, steps: &mut Steps) {
        let is_whole = self.sealed.is_some();
        let before = self.view.replace(view);
        let Some(view) = &self.view else { return };
        if !self.reported {
            if view.named || is_whole {
                self.announce(steps);
            }
            return;
        }
        // A partial diff is of little use, and repeating it for each piece is expensive.
        let before_whole = before.as_ref().filter(|_| self.content_reported);
        let content = differs(before_whole.map(|before| &before.content), &view.content);
        let has_content = self.role != Role::Shell && (self.content_reported || !view.content.is_empty());
        let input = differs(before_whole.map(|before| &before.input), &view.input);
        let change = CallChange {
            title: differs(before.as_ref().map(|before| &before.title), &view.title),
            locations: differs(before.as_ref().map(|before| &before.locations), &view.locations),
            content: content.filter(|_| is_whole && has_content),
            input: input.filter(|_| is_whole),
            ..self.change()
        };
        self.content_reported |= is_whole;
        if change != self.change() {
            steps.change(change);
        }
    }

    /// Reports the call, if it was not.
    pub(super) fn report(&mut self, dir: &WorkDir, steps: &mut Steps) {
        if self.reported {
            return;
        }
        if self.view.is_none() {
            let input = self.partial.fields();
            let empty = || RawJson::from(serde_json::Value::Object(serde_json::Map::new()));
            self.view = Some(tool::view(&self.tool, &input.unwrap_or_else(empty), dir));
        }
        self.announce(steps);
    }

    pub(super) fn announce(&mut self, steps: &mut Steps) {
        let Some(view) = &self.view else { return };
        let is_whole = self.sealed.is_some();
        let content = match self.role {
            Role::Shell => vec![CallContent::Terminal(self.id.clone())],
            _ if is_whole => view.content.clone(),
            _ => Vec::new(),
        };
        self.reported = true;
        self.content_reported = is_whole;
        steps.event(Event::Call(Box::new(NewToolCall {
            id: self.id.clone(),
            tool: self.tool.clone(),
            parent: self.parent.clone(),
            title: view.title.clone(),
            kind: view.kind,
            status: Status::Pending,
            content,
            locations: view.locations.clone(),
            input: is_whole.then(|| view.input.clone()),
        })));
    }

    /// Opens the terminal of a command.
    pub(super) fn open_terminal(&self, dir: &WorkDir, input: &RawJson, steps: &mut Steps) {
        if self.role == Role::Shell && self.reported {
            let command = tool::Fields::of(input).text(&["command"]).unwrap_or_default();
            let cwd = Some(dir.cwd.clone());
            self.terminal(TerminalEvent::Opened { command, cwd }, steps);
        }
    }

    pub(super) fn run(&mut self, dir: &WorkDir, steps: &mut Steps) {
        self.waiting = false;
        if self.running || self.is_hidden() {
            return;
        }
        self.report(dir, steps);
        self.running = true;
        let status = Some(Status::InProgress);
        steps.change(CallChange {
            status,
            ..self.change()
        });
    }

    pub(super) fn finish(&mut self, status: Status, shown: ToolResultView, dir: &WorkDir, steps: &mut Steps) {
        if self.is_hidden() {
            return;
        }
        self.report(dir, steps);
        if let Some(printed) = &shown.printed {
            if !printed.text.is_empty() {
                let bytes = printed.text.clone().into_bytes();
                self.terminal(
                    TerminalEvent::Output {
                        bytes,
                        is_live: false,
                    },
                    steps,
                );
            }
            let code = printed.code;
            self.terminal(TerminalEvent::Exited { code, signal: None }, steps);
        }
        steps.change(CallChange {
            status: Some(status),
            content: shown.content,
            locations: shown.locations,
            output: shown.output,
            ..self.change()
        });
    }
}

fn differs<T: PartialEq + Clone>(before: Option<&T>, now: &T) -> Option<T> {
    (before != Some(now)).then(|| now.clone())
}
