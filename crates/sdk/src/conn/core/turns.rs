//! Which frame belongs to which prompt. A state machine without I/O.
//!
//! The CLI's turns and the caller's prompts are not one to one: prompts that wait together are merged into one turn,
//! a prompt that comes during a turn may be folded into it, background work begins turns without a prompt, and a
//! prompt may be taken back. So results are never counted. A prompt is matched by its uuid, in `command_lifecycle` frames,
//! in `user_message_uuids`, and a result of foreign origin matches none.

mod guess;
mod lost_result;

use std::collections::{HashSet, VecDeque};

use outrigger_protocol::Frame;
use tracing::Span;

use self::guess::{MAX_HELD_BACK, Unsure};
use super::Output;
use crate::error::Error;
use crate::fields::Fields;
use crate::lost::{LostPrompt, PromptProgress};
use crate::outcome::{Around, FailureEvidence, Outcome, Verdict, is_result};
use crate::phase::Stall;
use crate::prompt::Prompt;
use crate::usage::TurnUsage;

/// How many prompts may wait or run at once.
pub(crate) const MAX_PROMPTS: usize = 1024;

/// When a prompt is sent to the CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dispatch {
    /// Once the CLI has no other prompt of this session, so that the prompt gets its own turn.
    Alone,
    /// At once.
    AtOnce,
}

/// One prompt from when it is accepted until its end is known.
#[derive(Debug)]
struct Slot {
    id: String,
    /// The number of the prompt, for the driver.
    number: u64,
    stage: PromptStage,
    wanted_output: bool,
    /// The CLI reported `completed`; its result is still to come.
    completed: bool,
    /// Likewise `cancelled`.
    cancelled: bool,
    /// Whether this program interrupted the prompt's turn.
    interrupted: bool,
    /// Set once the prompt's turn is interrupted because of a stall.
    stalled: Option<Stall>,
    /// The prompt, to report it as lost if it never ends.
    prompt: Prompt,
}

#[derive(Debug)]
enum PromptStage {
    /// Waits to be sent.
    Held { line: Vec<u8>, dispatch: Dispatch },
    /// Was written, or is about to be.
    Sent,
    /// The CLI reported that its turn began.
    Started,
}

/// The turn that the CLI is running.
#[derive(Debug)]
struct RunningTurn {
    number: u64,
    /// The prompts that the turn answers; none for an ambient turn.
    prompts: Vec<String>,
    /// The prompts of the turn that have ended before it.
    settled: Vec<String>,
    /// The prompts that began the turn, rather than that they were folded into it; `None` before the turn has said anything.
    began: Option<Vec<String>>,
    /// The prompts that have joined since the turn last said anything.
    fresh: Vec<String>,
    /// A result of foreign origin that names no prompt and came meanwhile. It only counts if no other comes.
    doubtful: Option<Outcome>,
    /// Frames that are held back while it is only a guess that this turn answers our prompt (the CLI did not report it).
    guessed: Option<Vec<Frame>>,
    /// The prompt that was guessed to be its own, whether that was confirmed or not.
    assumed: Option<String>,
    /// Whether this program interrupted the turn.
    interrupted: bool,
    /// Lasts as long as the turn.
    span: Span,
}

impl RunningTurn {
    /// The other prompts are none of the turn's.
    fn keep(&mut self, is_its_own: impl Fn(&String) -> bool) {
        for prompts in [&mut self.prompts, &mut self.fresh]
            .into_iter()
            .chain(&mut self.began)
        {
            prompts.retain(&is_its_own);
        }
    }

    /// A prompt of the turn has ended, and the turn goes on.
    fn settle(&mut self, id: &str) {
        self.settled
            .extend(self.prompts.extract_if(.., |prompt| prompt == id));
    }
}

/// Where a frame went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// To the turn of at least one prompt.
    Turn,
    /// To no prompt: it is ambient.
    Ambient,
}

#[derive(Debug)]
pub(crate) struct Turns {
    /// What the turns belong to in the log.
    session: Span,
    slots: VecDeque<Slot>,
    running: Option<RunningTurn>,
    /// Frames of the running turn that would explain a failure.
    before: FailureEvidence,
    numbers: u64,
    /// The ids of all sent prompts: the CLI silently drops a second one of the same id, and its turn would never end.
    used: UsedIds,
    /// The number of interrupts in progress; meanwhile no prompt is sent.
    pub(super) interrupting: usize,
    /// Whether prompts are held back before the first.
    pub(super) held_back: bool,
    /// Whether the CLI's stdin was closed: behind its end, results wait for background agents, and turns run meanwhile.
    pub(super) is_closing: bool,
    /// Whether the CLI reports the life of prompts; learned from its first such frame or its capabilities.
    pub(super) has_lifecycle: bool,
    /// Whether the CLI has sent such a frame.
    saw_lifecycle: bool,
    /// Whether the CLI has answered a prompt without such a frame.
    lacks_lifecycle: bool,
    /// A result that is only a guess to be a prompt's, until it is confirmed.
    unsure: Option<Unsure>,
    out: Vec<Output>,
}

/// How many ids of earlier prompts are remembered; the oldest are forgotten first.
const MAX_USED: usize = 65_536;

/// The ids that were used, up to a bound.
#[derive(Debug, Default)]
struct UsedIds {
    set: HashSet<String>,
    order: VecDeque<String>,
}

impl UsedIds {
    fn insert(&mut self, id: &str) {
        if self.order.len() == MAX_USED
            && let Some(oldest) = self.order.pop_front()
        {
            self.set.remove(&oldest);
        }
        if self.set.insert(id.to_owned()) {
            self.order.push_back(id.to_owned());
        }
    }
}

/// Where a sent prompt is that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentPrompt {
    /// In the CLI's queue: a request can cancel it.
    Queued,
    /// In the running turn: only an interrupt ends it.
    Running,
}

/// A prompt to accept.
#[derive(Debug)]
pub(crate) struct Accept {
    pub(crate) id: String,
    /// The line to write.
    pub(crate) line: Vec<u8>,
    pub(crate) dispatch: Dispatch,
    pub(crate) wanted_output: bool,
    pub(crate) prompt: Prompt,
}

impl Turns {
    pub(crate) fn new(session: Span) -> Self {
        Self {
            session,
            slots: VecDeque::new(),
            running: None,
            before: FailureEvidence::default(),
            numbers: 0,
            used: UsedIds::default(),
            interrupting: 0,
            held_back: false,
            is_closing: false,
            has_lifecycle: false,
            saw_lifecycle: false,
            lacks_lifecycle: false,
            unsure: None,
            out: Vec::new(),
        }
    }

    /// The outputs since the last call.
    pub(super) fn outputs(&mut self) -> std::vec::Drain<'_, Output> {
        self.out.drain(..)
    }

    /// Accepts a prompt. All waiting prompts may have `room` bytes together; a single one may have more.
    pub(super) fn accept(&mut self, number: u64, prompt: Accept, room: usize) -> Result<(), Error> {
        if self.slots.len() >= MAX_PROMPTS {
            return Err(Error::new(crate::error::Kind::Busy {
                what: "prompts at once",
                limit: MAX_PROMPTS,
            }));
        }
        let held = self.held_bytes();
        if held > 0 && held.saturating_add(prompt.line.len()) > room {
            return Err(Error::new(crate::error::Kind::Busy {
                what: "bytes of prompts that wait to be sent",
                limit: room,
            }));
        }
        let id = &prompt.id;
        if self.used.set.contains(id) || self.slots.iter().any(|slot| slot.id == *id) {
            return Err(Error::invalid(format!(
                "prompt: its uuid {id} was used before in this session, and the CLI drops such a prompt; leave the uuid out or take a fresh one"
            )));
        }
        self.slots.push_back(Slot {
            id: prompt.id,
            number,
            stage: PromptStage::Held {
                line: prompt.line,
                dispatch: prompt.dispatch,
            },
            wanted_output: prompt.wanted_output,
            completed: false,
            cancelled: false,
            interrupted: false,
            stalled: None,
            prompt: prompt.prompt,
        });
        Ok(())
    }

    /// The next line that may be written now; prompts of one kind go in the order in which they were accepted.
    pub(crate) fn next_to_send(&mut self) -> Option<Vec<u8>> {
        if self.interrupting > 0 || self.held_back {
            return None;
        }
        let in_flight = self.any_sent();
        for slot in &mut self.slots {
            // A prompt that steers the running turn must not wait behind one that waits for its end.
            if let PromptStage::Held { line, dispatch } = &mut slot.stage
                && (*dispatch == Dispatch::AtOnce || !in_flight)
            {
                let line = std::mem::take(line);
                slot.stage = PromptStage::Sent;
                self.used.insert(&slot.id);
                return Some(line);
            }
        }
        None
    }

    /// Takes a frame that is not control traffic, and delivers it to its turns.
    ///
    /// `child_of` is the number of the turn during which the subagent of this frame was started, if it is a subagent's.
    /// `settle` is called for a result, and computes the usage.
    pub(crate) fn on_frame(
        &mut self,
        frame: &Frame,
        child_of: Option<u64>,
        settle: impl FnOnce(&Frame) -> TurnUsage,
    ) -> (Route, Option<Outcome>) {
        let (route, outcome) = self.route(frame, child_of, settle);
        match &outcome {
            // The result of another turn than the running one changes nothing about that.
            Some(_) if self.running.is_some() => {}
            Some(_) => self.before.next_turn(),
            None => self.before.on_frame(frame),
        }
        (route, outcome)
    }

    fn route(
        &mut self,
        frame: &Frame,
        child_of: Option<u64>,
        settle: impl FnOnce(&Frame) -> TurnUsage,
    ) -> (Route, Option<Outcome>) {
        match (frame.kind(), frame.subtype()) {
            ("command_lifecycle", _) => (self.on_lifecycle(frame), None),
            _ if is_result(frame) => {
                let (route, outcome) = self.on_result(frame, settle);
                (route, Some(outcome))
            }
            ("system", Some("init")) => {
                // The reply to `initialize` does not have it, and the first turn may be ambient.
                self.has_lifecycle =
                    self.has_lifecycle || !self.lacks_lifecycle && announces_lifecycle(frame);
                self.leave_turn();
                self.named(frame, false);
                // Another turn, and still no report of the prompt.
                self.confirm(None);
                self.begin();
                self.join_all(frame);
                self.adopt_without_lifecycle();
                self.note_said();
                (self.deliver(frame), None)
            }
            ("system", Some("session_state_changed")) if frame.state() == Some("idle") => {
                let route = self.deliver(frame);
                self.end_without_result();
                (route, None)
            }
            ("assistant" | "stream_event", _) if frame.parent_tool_use_id().is_none() => {
                self.join_all(frame);
                if self.running.is_none() {
                    self.begin();
                    self.adopt_without_lifecycle();
                }
                self.note_said();
                (self.deliver(frame), None)
            }
            // A background subagent of an earlier turn does not belong to this one.
            _ if child_of.is_some_and(|turn| Some(turn) != self.current()) => (Route::Ambient, None),
            _ => (self.deliver(frame), None),
        }
    }

    /// The number of the turn that is running.
    pub(crate) fn current(&self) -> Option<u64> {
        self.running.as_ref().map(|running| running.number)
    }

    /// The span of the running turn.
    pub(crate) fn span(&self) -> Option<&Span> {
        self.running.as_ref().map(|running| &running.span)
    }

    /// Whether the CLI has a prompt whose turn has not ended.
    pub(crate) fn any_sent(&self) -> bool {
        self.slots
            .iter()
            .any(|slot| !matches!(slot.stage, PromptStage::Held { .. }))
    }

    /// Whether any prompt waits or runs.
    pub(crate) fn any_open(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Whether a turn runs, ambient turns included.
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Whether the CLI has something to do for us: a turn runs, or a prompt was sent whose turn has not ended.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_running() || self.any_sent()
    }

    /// Notes that the current turn is interrupted because of a stall. If the turn ends by itself, without an abort, that end
    /// counts.
    pub(crate) fn stall(&mut self, stall: Stall) {
        self.each_interruptible(|slot| slot.stalled = Some(stall));
    }

    /// Notes that this program interrupts the current turn: some CLIs do not report why a turn ended. Takes the prompt back that an
    /// interrupt means and that was not sent.
    pub(crate) fn interrupt(&mut self) {
        self.note_interrupt(true);
        for (_, id) in self.interruptible() {
            self.take_back(&id);
        }
    }

    /// Notes that a reply of this program ends the running turn, if there is one.
    pub(crate) fn interrupt_running(&mut self) {
        if self.is_running() {
            self.note_interrupt(true);
        }
    }

    /// The CLI rejected the interrupt.
    pub(crate) fn interrupt_refused(&mut self) {
        self.note_interrupt(false);
    }

    fn note_interrupt(&mut self, asked: bool) {
        self.each_interruptible(|slot| slot.interrupted = asked);
        if let Some(running) = &mut self.running {
            running.interrupted = asked;
        }
    }

    /// The prompts that an interrupt would end now, by number and id: those of the running turn, else the first that was sent, else
    /// the first of those that are held back.
    pub(crate) fn interruptible(&self) -> Vec<(u64, String)> {
        let of = |slot: &Slot| (slot.number, slot.id.clone());
        if self.running.is_some() {
            let running = self.slots.iter().filter(|slot| self.is_in_running(&slot.id));
            return running.map(of).collect();
        }
        let mut slots = self.slots.iter();
        let sent = slots.find(|slot| !matches!(slot.stage, PromptStage::Held { .. }));
        let first = sent.or_else(|| self.slots.front().filter(|_| self.held_back));
        first.map(of).into_iter().collect()
    }

    /// Does something to each of them.
    fn each_interruptible(&mut self, change: impl Fn(&mut Slot)) {
        let prompts = self.interruptible();
        let is_meant = |slot: &&mut Slot| prompts.iter().any(|(number, _)| *number == slot.number);
        self.slots.iter_mut().filter(is_meant).for_each(change);
    }

    /// Takes a prompt back if it was not sent.
    pub(super) fn take_back(&mut self, id: &str) {
        let mut slots = self.slots.iter();
        if slots.any(|slot| slot.id == id && matches!(slot.stage, PromptStage::Held { .. })) {
            self.end(id, Outcome::without_result(Verdict::Cancelled, [id]));
        }
    }

    /// Where a sent prompt is; `None` once it has ended.
    pub(crate) fn place(&self, id: &str) -> Option<SentPrompt> {
        let slot = self.slots.iter().find(|slot| slot.id == id)?;
        match slot.stage {
            PromptStage::Held { .. } => None,
            _ if self.is_in_running(id) => Some(SentPrompt::Running),
            _ => Some(SentPrompt::Queued),
        }
    }

    /// The CLI confirmed that a prompt was taken back.
    pub(crate) fn cancelled(&mut self, id: &str) {
        if !self.is_in_running(id) {
            self.end(id, Outcome::without_result(Verdict::Cancelled, [id]));
        }
    }

    /// The prompts that are open.
    pub(crate) fn open_prompts(&self) -> Vec<LostPrompt> {
        let lost = |slot: &Slot| LostPrompt {
            id: slot.id.clone(),
            prompt: slot.prompt.clone().without_id(),
            progress: match slot.stage {
                PromptStage::Held { .. } => PromptProgress::NotSent,
                PromptStage::Sent => PromptProgress::Sent,
                PromptStage::Started => PromptProgress::Begun,
            },
        };
        self.slots.iter().map(lost).collect()
    }

    /// The session ends: all prompts get `error`.
    pub(crate) fn fail_all(&mut self, error: &Error) {
        self.confirm(None);
        self.running = None;
        let all = self.slots.drain(..).map(|slot| Output::Settle {
            prompt: slot.number,
            settled: Err(error.clone()),
        });
        self.out.extend(all);
    }

    /// Bytes of prompts that wait to be sent.
    pub(crate) fn held_bytes(&self) -> usize {
        self.slots
            .iter()
            .map(|slot| match &slot.stage {
                PromptStage::Held { line, .. } => line.len(),
                PromptStage::Sent | PromptStage::Started => 0,
            })
            .sum()
    }

    /// How many prompts wait or run.
    pub(crate) fn open(&self) -> usize {
        self.slots.len()
    }

    fn is_in_running(&self, id: &str) -> bool {
        self.running
            .as_ref()
            .is_some_and(|running| running.prompts.iter().any(|prompt| prompt == id))
    }

    fn begin(&mut self) -> &mut RunningTurn {
        let (numbers, session) = (&mut self.numbers, &self.session);
        self.running.get_or_insert_with(|| {
            *numbers += 1;
            RunningTurn {
                number: *numbers,
                prompts: Vec::new(),
                settled: Vec::new(),
                began: None,
                fresh: Vec::new(),
                doubtful: None,
                guessed: None,
                assumed: None,
                interrupted: false,
                span: {
                    let span = tracing::info_span!(parent: session.id(), "turn", number = *numbers);
                    tracing::debug!(parent: &span, "begun");
                    span
                },
            }
        })
    }

    fn join(&mut self, id: &str) {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.id == id) else {
            return;
        };
        if matches!(slot.stage, PromptStage::Held { .. }) {
            return;
        }
        slot.stage = PromptStage::Started;
        let running = self.begin();
        if !running.prompts.iter().any(|prompt| prompt == id) {
            running.prompts.push(id.to_owned());
            running.fresh.push(id.to_owned());
            self.out.push(Output::Changed);
        }
    }

    fn join_all(&mut self, frame: &Frame) {
        self.named(frame, false);
        for id in frame.user_message_uuids() {
            self.join(id);
        }
    }

    fn on_lifecycle(&mut self, frame: &Frame) -> Route {
        (self.has_lifecycle, self.saw_lifecycle) = (true, true);
        // The prompt that has begun may be in the running turn: then only another one was guessed wrongly.
        match frame.command_uuid().filter(|id| self.is_in_running(id)) {
            Some(id) if frame.state() == Some("started") => self.has_begun(id),
            _ => self.correct_guess(),
        }
        let Some(id) = frame.command_uuid().map(str::to_owned) else {
            return Route::Ambient;
        };
        if !self.slots.iter().any(|slot| slot.id == id) {
            return Route::Ambient;
        }
        match frame.state().unwrap_or_default() {
            "queued" => {}
            "started" => self.join(&id),
            // Its result is still to come if its turn runs: folded prompts are completed before the result.
            "completed" if self.is_in_running(&id) => self.completed_in_running(&id),
            "completed" => self.end(&id, Outcome::without_result(Verdict::NoResult, [&*id])),
            // Likewise: the result of an aborted turn has more evidence.
            "cancelled" if self.is_in_running(&id) => {
                let mut slots = self.slots.iter_mut();
                if let Some(slot) = slots.find(|slot| slot.id == id) {
                    slot.cancelled = true;
                }
            }
            "cancelled" => self.end(&id, Outcome::without_result(Verdict::Cancelled, [&*id])),
            other => {
                let verdict = Verdict::Dropped(other.to_owned());
                if let Some(running) = &mut self.running {
                    running.settle(&id);
                }
                self.end(&id, Outcome::without_result(verdict, [&*id]));
            }
        }
        self.deliver_frame(std::slice::from_ref(&id), frame);
        Route::Turn
    }

    fn on_result(&mut self, frame: &Frame, settle: impl FnOnce(&Frame) -> TurnUsage) -> (Route, Outcome) {
        let is_ours = |id: &str| self.slots.iter().any(|slot| slot.id == id);
        let mut prompts: Vec<String> = frame
            .user_message_uuids()
            .filter(|id| is_ours(id))
            .map(str::to_owned)
            .collect();
        let is_named = !prompts.is_empty();
        let foreign = frame.origin_kind().is_some_and(|kind| kind != "human");
        self.named(frame, foreign);
        if prompts.is_empty() && foreign {
            // So the turn was ambient.
            self.correct_guess();
        }
        self.leave_turn_behind(&prompts, foreign);
        if prompts.is_empty() && self.is_of_another_turn(frame, foreign) {
            let usage = settle(frame);
            if let Some(running) = self.running.as_mut().filter(|_| foreign) {
                // If the turn is theirs after all, the result is theirs, too.
                let theirs = running.prompts.clone();
                let around = around(&self.slots, &theirs, running.interrupted, &self.before);
                running.doubtful = Some(Outcome::of_result(frame, usage.clone(), theirs, &around));
            }
            let outcome = Outcome::of_result(frame, usage, prompts, &Around::default());
            return (Route::Ambient, outcome);
        }
        let running = self.running.take();
        let interrupted = running.as_ref().is_some_and(|running| running.interrupted);
        for id in running.iter().flat_map(|running| &running.prompts) {
            if !prompts.contains(id) {
                prompts.push(id.clone());
            }
        }
        if prompts.is_empty() && !foreign && !self.saw_lifecycle {
            let oldest = self
                .slots
                .iter()
                .find(|slot| !matches!(slot.stage, PromptStage::Held { .. }));
            prompts.extend(oldest.map(|slot| slot.id.clone()));
        }
        let usage = settle(frame);
        let around = around(&self.slots, &prompts, interrupted, &self.before);
        let is_unsure = !is_named && self.has_lifecycle && !self.saw_lifecycle && !prompts.is_empty();
        let nobodys = is_unsure.then(|| {
            let around = Around {
                wanted_output: false,
                ..around.clone()
            };
            Outcome::of_result(frame, usage.clone(), Vec::new(), &around)
        });
        let outcome = Outcome::of_result(frame, usage, prompts.clone(), &around);
        if let Some(running) = &running {
            tracing::debug!(parent: &running.span, verdict = %outcome.verdict(), "ended");
        }
        if let Some(nobodys) = nobodys {
            let mut frames = running.and_then(|running| running.guessed).unwrap_or_default();
            frames.push(frame.clone());
            for slot in self.slots.iter_mut().filter(|slot| prompts.contains(&slot.id)) {
                slot.stage = PromptStage::Sent;
            }
            self.out.push(Output::Unsure(self.numbers));
            self.unsure = Some(Unsure {
                number: self.numbers,
                frames,
                theirs: outcome.clone(),
                nobodys,
            });
            return (Route::Turn, outcome);
        }
        self.deliver_frame(&prompts, frame);
        for id in &prompts {
            self.end(id, outcome.clone());
        }
        (
            if prompts.is_empty() {
                Route::Ambient
            } else {
                Route::Turn
            },
            outcome,
        )
    }

    /// The running turn has said something: what joins it from now on is folded into it, or begins the next one.
    fn note_said(&mut self) {
        if let Some(running) = &mut self.running {
            let fresh = std::mem::take(&mut running.fresh);
            running.began.get_or_insert(fresh);
        }
    }

    fn is_completed(&self, id: &str) -> bool {
        self.slots.iter().any(|slot| slot.id == id && slot.completed)
    }

    /// The CLI reported `completed` for a prompt of the running turn. Its result is still to come, also for folded prompts, unless
    /// the result that came was its own after all.
    fn completed_in_running(&mut self, id: &str) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.id == id) {
            slot.completed = true;
        }
        let Some(running) = &mut self.running else { return };
        // One that joined the turn after that result is not what it was about.
        let is_about = |outcome: &Outcome| outcome.prompts().iter().any(|prompt| prompt == id);
        let Some(outcome) = running.doubtful.clone().filter(is_about) else {
            return;
        };
        running.settle(id);
        if running.prompts.is_empty() {
            self.running = None;
        }
        self.end(id, outcome);
    }

    fn deliver(&mut self, frame: &Frame) -> Route {
        let Some(running) = &mut self.running else {
            return Route::Ambient;
        };
        if let Some(held) = &mut running.guessed {
            held.push(frame.clone());
            if held.len() > MAX_HELD_BACK {
                self.release();
            }
            return Route::Turn;
        }
        if deliver_to(&self.slots, &running.prompts, frame, &mut self.out) {
            Route::Turn
        } else {
            Route::Ambient
        }
    }

    /// Delivers a frame to these prompts.
    fn deliver_frame(&mut self, prompts: &[String], frame: &Frame) {
        deliver_to(&self.slots, prompts, frame, &mut self.out);
    }

    fn end(&mut self, id: &str, outcome: Outcome) {
        if let Some(at) = self.slots.iter().position(|slot| slot.id == id)
            && let Some(slot) = self.slots.remove(at)
        {
            let aborted = matches!(outcome.verdict(), Verdict::Interrupted | Verdict::Cancelled);
            self.out.push(Output::Settle {
                prompt: slot.number,
                settled: match slot.stalled {
                    Some(stall) if aborted => Err(Error::stalled_in(stall, outcome)),
                    _ => Ok(outcome),
                },
            });
        }
    }
}

/// Delivers a frame to the open ones of these prompts. Returns whether there is one.
fn deliver_to(slots: &VecDeque<Slot>, prompts: &[String], frame: &Frame, out: &mut Vec<Output>) -> bool {
    let before = out.len();
    let open = slots.iter().filter(|slot| prompts.contains(&slot.id));
    out.extend(open.map(|slot| Output::Deliver {
        prompt: slot.number,
        frame: frame.clone(),
    }));
    out.len() > before
}

/// The evidence about the turn of these prompts, without its result.
fn around(slots: &VecDeque<Slot>, prompts: &[String], interrupted: bool, before: &FailureEvidence) -> Around {
    let mut theirs = slots.iter().filter(|slot| prompts.contains(&slot.id));
    Around {
        wanted_output: theirs.clone().any(|slot| slot.wanted_output),
        interrupted: interrupted || theirs.any(|slot| slot.interrupted),
        before: before.clone(),
    }
}

fn announces_lifecycle(init: &Frame) -> bool {
    let announced: Option<Vec<String>> = Fields::of(init).get("capabilities");
    announced.is_some_and(|list| list.iter().any(|name| name == "msg_lifecycle_v1"))
}

#[cfg(test)]
mod tests;
