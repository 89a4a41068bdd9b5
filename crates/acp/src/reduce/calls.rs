//! The open tool calls: each is reported once, grows, runs, and ends once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger::protocol::RawJson;

use super::BackgroundCall;
use super::seen::Seen;
use super::step::{Effect, Steps};
use crate::event::{Call, CallChange, CallContent, Content, Event, Status, TerminalChange, TerminalEvent};
use crate::tool::{self, Background, CallView, Partial, Printed, Role, Shown, WorkDir};

/// How long a call without a known target is held back: simple clients keep the first title.
const HOLD: Duration = Duration::from_millis(150);

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
    open: HashMap<Arc<str>, Open>,
    ended: Seen<Arc<str>>,
    begun: u64,
}

#[derive(Debug)]
struct Open {
    id: Arc<str>,
    tool: Arc<str>,
    parent: Option<Arc<str>>,
    /// Its position in the order of calls.
    number: u64,
    since: Instant,
    partial: Partial,
    view: Option<CallView>,
    input: Option<RawJson>,
    /// When its input was complete.
    sealed: Option<Instant>,
    told: bool,
    /// Whether its content was reported, and not only its title.
    told_whole: bool,
    /// Whether `InProgress` was reported.
    running: bool,
    /// Whether a decision about it is pending.
    waiting: bool,
    /// Whether the user rejected it.
    rejected: bool,
    role: Role,
    task: Option<String>,
    background: bool,
    /// Whether its output file is followed.
    tailed: bool,
    /// It ended, and waits until then for the rest of its output.
    ending: Option<(Ending, Instant)>,
    /// Its task ended before the result that put it in the background.
    early: Option<Ending>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ending {
    pub(super) status: Status,
    pub(super) code: Option<i32>,
    /// The report of the task.
    pub(super) report: Option<String>,
}

/// The result of a call.
pub(super) struct Given {
    pub(super) shown: Shown,
    pub(super) status: Status,
    /// Whether the call ran at all.
    pub(super) ran: bool,
}

impl Calls {
    pub(super) fn new() -> Self {
        Self {
            open: HashMap::new(),
            ended: Seen::new(MOST),
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
        let call = Open {
            id: id.clone(),
            tool: tool.into(),
            parent,
            number: self.begun,
            since: now,
            partial: Partial::default(),
            view: None,
            input: None,
            sealed: None,
            told: false,
            told_whole: false,
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
    pub(super) fn given(&mut self, id: &str, given: Given, dir: &WorkDir, now: Instant, steps: &mut Steps) {
        let Some(call) = self.open.get_mut(id) else {
            return;
        };
        if given.ran {
            call.run(dir, steps);
        } else {
            call.tell(dir, steps);
        }
        let Given {
            mut shown,
            status,
            ran,
        } = given;
        if let (false, Some(why), Some(view)) = (ran, &mut shown.content, &call.view) {
            // The rejected content stays, with the reason.
            why.splice(0..0, view.content.iter().cloned());
        }
        let Some(background) = shown.background.clone() else {
            call.finish(status, shown, dir, steps);
            return self.close(id);
        };
        self.goes_on(id, background, shown, dir, now, steps);
    }

    /// The result reports only that the call continues in the background.
    fn goes_on(
        &mut self,
        id: &str,
        background: Background,
        shown: Shown,
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
        ending: Ending,
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
        if let Some(call) = self.open.get(id).filter(|call| call.told && !bytes.is_empty()) {
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

    fn end(&mut self, id: &str, ending: Ending, dir: &WorkDir, steps: &mut Steps) {
        let Some(call) = self.open.get_mut(id) else {
            return;
        };
        let shown = match call.role {
            Role::Shell => Shown {
                printed: Some(Printed {
                    text: String::new(),
                    code: ending.code,
                }),
                ..Shown::default()
            },
            _ => Shown {
                content: ending
                    .report
                    .map(|report| vec![CallContent::Content(Content::Text(report))]),
                ..Shown::default()
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
        if call.told {
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
            let call = self.open.get(&id).filter(|call| call.background && call.told)?;
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
        let holds = self.open.values().filter_map(Open::held_until);
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
                call.tell(dir, steps);
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
        let mut first: HashMap<Option<&Arc<str>>, &Open> = HashMap::new();
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
        let is_idle = call.told && !call.running && !call.waiting;
        call.sealed.filter(|_| is_idle).map(|sealed| sealed + PRESUMED)
    }
}

impl Open {
    /// Whether the call is shown in another way.
    fn is_hidden(&self) -> bool {
        !self.told && matches!(self.role, Role::Plan | Role::Internal)
    }

    fn held_until(&self) -> Option<Instant> {
        (!self.told && !self.is_hidden()).then(|| self.since + HOLD)
    }

    fn change(&self) -> CallChange {
        CallChange {
            id: self.id.clone(),
            tool: self.tool.clone(),
            parent: self.parent.clone(),
            ..CallChange::default()
        }
    }

    fn terminal(&self, what: TerminalEvent, steps: &mut Steps) {
        let id = self.id.clone();
        let call = self.id.clone();
        steps.event(Event::Terminal(TerminalChange { id, call, what }));
    }

    /// Updates the view of a call, and reports the differences.
    fn refresh(&mut self, view: CallView, steps: &mut Steps) {
        let is_whole = self.sealed.is_some();
        let before = self.view.replace(view);
        let Some(view) = &self.view else { return };
        if !self.told {
            if view.named || is_whole {
                self.announce(steps);
            }
            return;
        }
        // A partial diff is of little use, and repeating it for each piece is expensive.
        let before_whole = before.as_ref().filter(|_| self.told_whole);
        let content = differs(before_whole.map(|before| &before.content), &view.content);
        let has_content = self.role != Role::Shell && (self.told_whole || !view.content.is_empty());
        let input = differs(before_whole.map(|before| &before.input), &view.input);
        let change = CallChange {
            title: differs(before.as_ref().map(|before| &before.title), &view.title),
            locations: differs(before.as_ref().map(|before| &before.locations), &view.locations),
            content: content.filter(|_| is_whole && has_content),
            input: input.filter(|_| is_whole),
            ..self.change()
        };
        self.told_whole |= is_whole;
        if change != self.change() {
            steps.change(change);
        }
    }

    /// Reports the call, if it was not.
    fn tell(&mut self, dir: &WorkDir, steps: &mut Steps) {
        if self.told {
            return;
        }
        if self.view.is_none() {
            let input = self.partial.fields();
            let empty = || RawJson::from(serde_json::Value::Object(serde_json::Map::new()));
            self.view = Some(tool::view(&self.tool, &input.unwrap_or_else(empty), dir));
        }
        self.announce(steps);
    }

    fn announce(&mut self, steps: &mut Steps) {
        let Some(view) = &self.view else { return };
        let is_whole = self.sealed.is_some();
        let content = match self.role {
            Role::Shell => vec![CallContent::Terminal(self.id.clone())],
            _ if is_whole => view.content.clone(),
            _ => Vec::new(),
        };
        self.told = true;
        self.told_whole = is_whole;
        steps.event(Event::Call(Box::new(Call {
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
    fn open_terminal(&self, dir: &WorkDir, input: &RawJson, steps: &mut Steps) {
        if self.role == Role::Shell && self.told {
            let command = tool::Fields::of(input).text(&["command"]).unwrap_or_default();
            let cwd = Some(dir.cwd.clone());
            self.terminal(TerminalEvent::Opened { command, cwd }, steps);
        }
    }

    fn run(&mut self, dir: &WorkDir, steps: &mut Steps) {
        self.waiting = false;
        if self.running || self.is_hidden() {
            return;
        }
        self.tell(dir, steps);
        self.running = true;
        let status = Some(Status::InProgress);
        steps.change(CallChange {
            status,
            ..self.change()
        });
    }

    fn finish(&mut self, status: Status, shown: Shown, dir: &WorkDir, steps: &mut Steps) {
        if self.is_hidden() {
            return;
        }
        self.tell(dir, steps);
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
