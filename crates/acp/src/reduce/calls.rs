//! The open tool calls: each is reported once, grows, runs, and ends once.

mod open_call;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger::protocol::RawJson;

use self::open_call::OpenCall;
use super::BackgroundCall;
use super::recent_set::RecentSet;
use super::step::{Effect, Steps};
use crate::event::{CallChange, CallContent, Content, Status, TerminalEvent};
use crate::tool::{self, Background, Partial, Printed, Role, ToolResultView, WorkDir};

/// A call without a permission request for this time counts as running: the CLI does not report the start of a call.
///
/// A `PreToolUse` hook would not help. The CLI calls it before it decides whether to ask the user, which takes it 25 ms as a rule and
/// sometimes 300 ms, so a guess would remain; and each call would wait about 3 ms for the hook.
const PRESUMED: Duration = Duration::from_millis(250);

/// How long to wait for the rest of a command's output after its end.
const LAST_OUTPUT: Duration = Duration::from_secs(2);

/// How many calls may be open. The oldest is ended first.
const MOST: usize = 4096;

#[derive(Debug)]
pub(super) struct Calls {
    open: HashMap<Arc<str>, OpenCall>,
    ended: RecentSet<Arc<str>>,
    begun: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallEnd {
    pub(super) status: Status,
    pub(super) code: Option<i32>,
    /// The report of the task.
    pub(super) report: Option<String>,
}

/// The result of a call.
pub(super) struct CallResult {
    pub(super) shown: ToolResultView,
    pub(super) status: Status,
    /// Whether the call ran at all.
    pub(super) ran: bool,
}

impl Calls {
    pub(super) fn new() -> Self {
        Self {
            open: HashMap::new(),
            ended: RecentSet::new(MOST),
            begun: 0,
        }
    }

    pub(super) fn tool(&self, id: &str) -> Option<Arc<str>> {
        self.open.get(id).map(|call| call.tool.clone())
    }

    /// The call of a task.
    pub(super) fn of_task(&self, task: &str) -> Option<Arc<str>> {
        let mut calls = self.open.values();
        calls
            .find(|call| call.task.as_deref() == Some(task))
            .map(|call| call.id.clone())
    }

    pub(super) fn is_open(&self, id: &str) -> bool {
        self.open.contains_key(id)
    }

    /// Keeps the input of a call whose result is incomplete without it.
    pub(super) fn keep_input(&mut self, id: &str, input: &RawJson) {
        if let Some(call) = self.open.get_mut(id) {
            call.input = Some(input.clone());
        }
    }

    pub(super) fn input(&self, id: &str) -> Option<RawJson> {
        self.open.get(id)?.input.clone()
    }

    /// The model begins to write a call. Returns false if the call is known.
    pub(super) fn begin(
        &mut self,
        id: &str,
        tool: &str,
        parent: Option<Arc<str>>,
        now: Instant,
        steps: &mut Steps,
    ) -> bool {
        if self.open.contains_key(id) || self.ended.contains(id) {
            return false;
        }
        if self.open.len() >= MOST
            && let Some(oldest) = self.in_order().first().cloned()
        {
            self.drop_call(&oldest, Status::Cancelled, steps);
        }
        let id: Arc<str> = id.into();
        self.begun += 1;
        let call = OpenCall {
            id: id.clone(),
            tool: tool.into(),
            parent,
            number: self.begun,
            since: now,
            partial: Partial::default(),
            view: None,
            input: None,
            sealed: None,
            reported: false,
            content_reported: false,
            running: false,
            waiting: false,
            rejected: false,
            role: tool::role(tool),
            task: None,
            background: false,
            tailed: false,
            ending: None,
            early: None,
        };
        self.open.insert(id, call);
        true
    }

    pub(super) fn piece(&mut self, id: &str, text: &str, dir: &WorkDir, steps: &mut Steps) {
        let Some(call) = self.open.get_mut(id).filter(|call| call.sealed.is_none()) else {
            return;
        };
        if !call.partial.push(text) || call.is_hidden() {
            return;
        }
        if let Some(input) = call.partial.fields() {
            call.refresh(tool::view(&call.tool, &input, dir), steps);
        }
    }

    /// The input is complete.
    pub(super) fn seal(&mut self, id: &str, input: &RawJson, dir: &WorkDir, now: Instant, steps: &mut Steps) {
        let Some(call) = self.open.get_mut(id).filter(|call| call.sealed.is_none()) else {
            return;
        };
        call.sealed = Some(now);
        call.partial = Partial::default();
        let view = tool::view(&call.tool, input, dir);
        if call.is_hidden() {
            call.view = Some(view);
            return;
        }
        call.refresh(view, steps);
        call.open_terminal(dir, input, steps);
    }

    /// The user is about to be asked: reports the call. The CLI may have changed the input by now.
    pub(super) fn asked(
        &mut self,
        id: &str,
        input: &RawJson,
        dir: &WorkDir,
        now: Instant,
        steps: &mut Steps,
    ) {
        self.seal(id, input, dir, now, steps);
        let Some(call) = self.open.get_mut(id) else {
            return;
        };
        call.waiting = true;
        let mut view = tool::view(&call.tool, input, dir);
        // The question about a plan lacks the plan that the model wrote into the input.
        if view.content.is_empty()
            && let Some(known) = call.view.as_ref().filter(|known| !known.content.is_empty())
        {
            view.content.clone_from(&known.content);
            view.input.clone_from(&known.input);
        }
        if call.is_hidden() {
            call.view = Some(view);
            call.announce(steps);
        } else {
            call.refresh(view, steps);
        }
    }

    /// The CLI checks the call itself, or has finished that.
    pub(super) fn checked(&mut self, id: &str, is_waiting: bool, now: Instant) {
        if let Some(call) = self.open.get_mut(id) {
            call.waiting = is_waiting;
            if !is_waiting {
                call.sealed = call.sealed.map(|_| now);
            }
        }
    }

    pub(super) fn run(&mut self, id: &str, dir: &WorkDir, steps: &mut Steps) {
        if let Some(call) = self.open.get_mut(id) {
            call.run(dir, steps);
        }
    }

    pub(super) fn reject(&mut self, id: &str) {
        if let Some(call) = self.open.get_mut(id) {
            call.rejected = true;
        }
    }

    /// Whether the user rejected the call.
    pub(super) fn is_rejected(&self, id: &str) -> bool {
        self.open.get(id).is_some_and(|call| call.rejected)
    }

    /// A plan was approved, whatever its result reports.
    pub(super) fn approve(&mut self, id: &str, dir: &WorkDir, steps: &mut Steps) {
        self.run(id, dir, steps);
        self.drop_call(id, Status::Completed, steps);
    }

    /// The call has run for so many seconds.
    pub(super) fn progress(&mut self, id: &str, elapsed: f64, dir: &WorkDir, steps: &mut Steps) {
        if let Some(call) = self.open.get_mut(id).filter(|call| !call.is_hidden()) {
            call.run(dir, steps);
            let elapsed = Some(elapsed);
            steps.change(CallChange {
                elapsed,
                ..call.change()
            });
        }
    }

    /// The CLI started a task for the call.
    pub(super) fn task(
        &mut self,
        id: &str,
        task: &str,
        background: Option<bool>,
        dir: &WorkDir,
        steps: &mut Steps,
    ) {
        if let Some(call) = self.open.get_mut(id) {
            call.task = Some(task.to_owned());
            call.background |= background.unwrap_or(false);
            call.run(dir, steps);
        }
    }

    /// The task of the call went to the background.
    pub(super) fn moves_to_background(&mut self, id: &str) {
        if let Some(call) = self.open.get_mut(id) {
            call.background = true;
        }
    }

    /// Takes the result of a call.
    pub(super) fn result(
        &mut self,
        id: &str,
        result: CallResult,
        dir: &WorkDir,
        now: Instant,
        steps: &mut Steps,
    ) {
        let Some(call) = self.open.get_mut(id) else {
            return;
        };
        if result.ran {
            call.run(dir, steps);
        } else {
            call.report(dir, steps);
        }
        let CallResult {
            mut shown,
            status,
            ran,
        } = result;
        if let (false, Some(why), Some(view)) = (ran, &mut shown.content, &call.view) {
            // The rejected content stays, with the reason.
            why.splice(0..0, view.content.iter().cloned());
        }
        let Some(background) = shown.background.clone() else {
            call.finish(status, shown, dir, steps);
            return self.close(id);
        };
        self.continue_in_background(id, background, shown, dir, now, steps);
    }

    /// The result reports only that the call continues in the background.
    fn continue_in_background(
        &mut self,
        id: &str,
        background: Background,
        shown: ToolResultView,
        dir: &WorkDir,
        now: Instant,
        steps: &mut Steps,
    ) {
        let Some(call) = self.open.get_mut(id) else {
            return;
        };
        call.background = true;
        call.task = Some(background.task);
        call.run(dir, steps);
        if let Some(content) = shown.content {
            let content = Some(content);
            steps.change(CallChange {
                content,
                ..call.change()
            });
        }
        if let Some(file) = background.file
            && !call.tailed
        {
            call.tailed = true;
            let call = call.id.clone();
            steps.effect(Effect::Tail { call, file });
        }
        if let Some(ending) = call.early.take() {
            self.ended_task(id, ending, dir, now, steps);
        }
    }

    /// The task of a call has ended.
    pub(super) fn ended_task(
        &mut self,
        id: &str,
        ending: CallEnd,
        dir: &WorkDir,
        now: Instant,
        steps: &mut Steps,
    ) {
        let Some(call) = self.open.get_mut(id).filter(|call| call.ending.is_none()) else {
            return;
        };
        if !call.background {
            // The result follows, with more data.
            call.early = Some(ending);
            return;
        }
        if call.tailed {
            call.ending = Some((ending, now + LAST_OUTPUT));
            let call = call.id.clone();
            return steps.effect(Effect::Untail { call });
        }
        self.end(id, ending, dir, steps);
    }

    /// More output of a background command.
    pub(super) fn output(&mut self, id: &str, bytes: Vec<u8>, steps: &mut Steps) {
        if let Some(call) = self
            .open
            .get(id)
            .filter(|call| call.reported && !bytes.is_empty())
        {
            call.terminal(TerminalEvent::Output { bytes, is_live: true }, steps);
        }
    }

    /// The output of a background command is complete.
    pub(super) fn tail_ended(&mut self, id: &str, dir: &WorkDir, steps: &mut Steps) {
        let Some(call) = self.open.get_mut(id) else {
            return;
        };
        call.tailed = false;
        if let Some((ending, _)) = call.ending.take() {
            self.end(id, ending, dir, steps);
        }
    }

    fn end(&mut self, id: &str, ending: CallEnd, dir: &WorkDir, steps: &mut Steps) {
        let Some(call) = self.open.get_mut(id) else {
            return;
        };
        let shown = match call.role {
            Role::Shell => ToolResultView {
                printed: Some(Printed {
                    text: String::new(),
                    code: ending.code,
                }),
                ..ToolResultView::default()
            },
            _ => ToolResultView {
                content: ending
                    .report
                    .map(|report| vec![CallContent::Content(Content::Text(report))]),
                ..ToolResultView::default()
            },
        };
        call.finish(ending.status, shown, dir, steps);
        self.close(id);
    }

    /// Ends the calls that can't continue: all but the background at the end of a turn, all at the end of the process.
    pub(super) fn give_up(&mut self, with_background: bool, status: Status, steps: &mut Steps) {
        for id in self.in_order() {
            if with_background || !self.outlives_its_turn(&id) {
                self.drop_call(&id, status, steps);
            }
        }
    }

    /// Ends the calls of the subagent that this call started, except those in the background.
    pub(super) fn give_up_below(&mut self, call: &str, status: Status, steps: &mut Steps) {
        for id in self.in_order() {
            let is_below = self
                .open
                .get(&id)
                .is_some_and(|open| !open.background && open.parent.as_deref() == Some(call));
            if is_below {
                self.drop_call(&id, status, steps);
            }
        }
    }

    /// Whether the call or one of its parents is in the background.
    fn outlives_its_turn(&self, id: &str) -> bool {
        let mut at = self.open.get(id);
        // Bounded, in case parents form a circle.
        for _ in 0..64 {
            match at {
                Some(call) if call.background => return true,
                Some(call) => at = call.parent.as_ref().and_then(|parent| self.open.get(parent)),
                None => return false,
            }
        }
        false
    }

    fn drop_call(&mut self, id: &str, status: Status, steps: &mut Steps) {
        let Some(call) = self.open.get_mut(id) else {
            return;
        };
        if call.reported {
            let status = Some(match call.rejected {
                true => Status::Failed,
                false => status,
            });
            if call.role == Role::Shell {
                call.terminal(
                    TerminalEvent::Exited {
                        code: None,
                        signal: None,
                    },
                    steps,
                );
            }
            steps.change(CallChange {
                status,
                ..call.change()
            });
        }
        if call.tailed {
            let call = call.id.clone();
            steps.effect(Effect::Untail { call });
        }
        self.close(id);
    }

    fn close(&mut self, id: &str) {
        if let Some((id, _)) = self.open.remove_entry(id) {
            self.ended.insert(id);
        }
    }

    fn in_order(&self) -> Vec<Arc<str>> {
        let mut calls: Vec<_> = self.open.values().collect();
        calls.sort_by_key(|call| call.number);
        calls.iter().map(|call| call.id.clone()).collect()
    }

    /// The calls in the background, oldest first.
    pub(super) fn background(&self) -> Vec<BackgroundCall> {
        let ids = self.in_order().into_iter();
        ids.filter_map(|id| {
            let call = self
                .open
                .get(&id)
                .filter(|call| call.background && call.reported)?;
            let is_terminal = call.role == Role::Shell;
            Some(BackgroundCall {
                call: id,
                is_terminal,
            })
        })
        .collect()
    }

    /// When to call [`tick`](Self::tick).
    pub(super) fn due(&self) -> Option<Instant> {
        let holds = self.open.values().filter_map(OpenCall::held_until);
        let endings = self.open.values().filter_map(|call| call.ending.as_ref());
        let presumed = self
            .next_ones()
            .into_iter()
            .filter_map(|id| self.presumed_at(&id));
        holds
            .chain(endings.map(|(_, until)| *until))
            .chain(presumed)
            .min()
    }

    pub(super) fn tick(&mut self, now: Instant, dir: &WorkDir, steps: &mut Steps) {
        for id in self.in_order() {
            let Some(call) = self.open.get_mut(&id) else {
                continue;
            };
            if call.held_until().is_some_and(|until| until <= now) {
                call.report(dir, steps);
            }
            let is_over = matches!(call.ending, Some((_, until)) if until <= now);
            if is_over && let Some((ending, _)) = call.ending.take() {
                self.end(&id, ending, dir, steps);
            }
        }
        for id in self.next_ones() {
            if self.presumed_at(&id).is_some_and(|at| at <= now) {
                self.run(&id, dir, steps);
            }
        }
    }

    /// For each conversation the first call outside of the background: the one that may be running.
    fn next_ones(&self) -> Vec<Arc<str>> {
        let mut first: HashMap<Option<&Arc<str>>, &OpenCall> = HashMap::new();
        for call in self.open.values().filter(|call| !call.background) {
            let dir = first.entry(call.parent.as_ref()).or_insert(call);
            if call.number < dir.number {
                *dir = call;
            }
        }
        let mut first: Vec<_> = first.into_values().collect();
        first.sort_by_key(|call| call.number);
        first.iter().map(|call| call.id.clone()).collect()
    }

    fn presumed_at(&self, id: &str) -> Option<Instant> {
        let call = self.open.get(id)?;
        let is_idle = call.reported && !call.running && !call.waiting;
        call.sealed.filter(|_| is_idle).map(|sealed| sealed + PRESUMED)
    }
}
