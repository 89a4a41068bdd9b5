//! Carries out the outputs of the core: for readers of frames, callers that wait for replies, and callbacks. One lock guards all
//! of this and the core; it is never held during a wait or while user code runs.

use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use outrigger_protocol::shared::RequestId;
use outrigger_protocol::{Frame, MisfitKind, RawJson};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::attachments::Mirroring;
use super::changes::Changes;
use super::core::{Accept, Core, Input, Output, Serial};
use super::lane::{LaneIn, LaneItem, LaneOut, lane};
use super::{Conn, OutgoingLine, Withdrawn, tasks};
use crate::error::{Error, Result};
use crate::observer::Observer;
use crate::outcome::{Outcome, is_result};
use crate::phase::Stall;
use crate::stats::Stats;

/// The state for which a turn handle waits.
pub(crate) type Settled = Option<Result<Outcome>>;

/// The reader of a prompt's turn.
struct Reader {
    prompt: u64,
    lane: LaneIn,
    settled: watch::Sender<Settled>,
}

/// A callback that works on a request of the CLI.
#[derive(Default)]
struct CallbackWork {
    /// Tells the callback that the request was withdrawn.
    withdrawn: Withdrawn,
    stage: CallbackStage,
}

#[derive(Default)]
enum CallbackStage {
    #[default]
    Begins,
    /// The handle that stops it.
    Runs(AbortHandle),
    /// The callback left the request open, for a later reply.
    Parked,
}

impl CallbackWork {
    fn stop(&self) {
        self.withdrawn.cancel();
        if let CallbackStage::Runs(task) = &self.stage {
            task.abort();
        }
    }
}

/// Observers of everything that happens, called under the driver's lock.
#[derive(Default)]
struct Observers {
    /// Observers for as long as others keep them.
    weak: Vec<Weak<dyn Observer>>,
    /// Observers to the end of the session.
    kept: Vec<Arc<dyn Observer>>,
}

impl Observers {
    fn is_empty(&self) -> bool {
        self.weak.is_empty() && self.kept.is_empty()
    }

    /// Drops those that panic: a step of the driver is never left half done.
    fn notify_observers(&mut self, tell: impl Fn(&dyn Observer)) {
        let is_told = |observer: &dyn Observer| {
            let told = catch_unwind(AssertUnwindSafe(|| tell(observer)));
            told.inspect_err(|_| tracing::error!("an observer panicked; nothing more is reported to it"))
                .is_ok()
        };
        self.weak
            .retain(|observer| observer.upgrade().is_some_and(|observer| is_told(&*observer)));
        self.kept.retain(|observer| is_told(&**observer));
    }
}

/// How many bytes of an ambient turn are kept for the first who listens.
const EARLY: usize = 1024 * 1024;

/// The ambient turn that began before anybody listened: that of a call which an earlier process left open.
#[derive(Default)]
struct EarlyTurn {
    items: Vec<LaneItem>,
    bytes: usize,
}

impl EarlyTurn {
    /// Adds this frame; `None` if that is too much.
    fn with(mut self, frame: &Frame) -> Option<Self> {
        self.bytes += frame.bytes().len();
        self.items.push(LaneItem::Frame(frame.clone()));
        (self.bytes <= EARLY).then_some(self)
    }
}

pub(super) struct Driver {
    core: Core,
    /// The readers, sorted by their numbers.
    readers: VecDeque<Reader>,
    /// The number of the next prompt.
    next: u64,
    taps: Vec<LaneIn>,
    observers: Observers,
    ambient: Vec<LaneIn>,
    /// Until somebody listens, or there is a prompt.
    early: Option<EarlyTurn>,
    replies: HashMap<String, oneshot::Sender<Result<RawJson>>>,
    work: HashMap<Serial, CallbackWork>,
    init: watch::Sender<Option<Frame>>,
    /// The mirror, if there is a store.
    mirror: Option<Arc<dyn Mirroring>>,
    /// What `revive` has to repeat.
    changes: Changes,
    /// Secrets that the process got after its start.
    pub(super) secrets: Vec<String>,
    /// Whether the watchdog has no deadline for silence, so that a new one has to wake it.
    watchdog_rests: bool,
    /// What to do once the lock is released.
    deeds: Vec<Output>,
}

impl Driver {
    pub(super) fn new(core: Core, mirror: Option<Arc<dyn Mirroring>>) -> Self {
        Self {
            core,
            readers: VecDeque::new(),
            next: 0,
            taps: Vec::new(),
            observers: Observers::default(),
            ambient: Vec::new(),
            early: Some(EarlyTurn::default()),
            replies: HashMap::new(),
            work: HashMap::new(),
            init: watch::channel(None).0,
            mirror,
            changes: Changes::default(),
            secrets: Vec::new(),
            watchdog_rests: false,
            deeds: Vec::new(),
        }
    }

    pub(super) fn core(&self) -> &Core {
        &self.core
    }

    /// Passes an input to the core, and carries out its outputs; what needs the lock released waits for [`flush`](Self::flush).
    pub(super) fn step(&mut self, input: Input<'_>, now: Instant) -> Result<()> {
        let taken = self.core.handle(input, now.into_std());
        let is_mid_turn = self.core.current_turn().is_some();
        for output in self.core.outputs() {
            match output {
                Output::Deliver { prompt, frame } => {
                    if let Some(reader) = at(&self.readers, prompt).and_then(|at| self.readers.get_mut(at)) {
                        reader.lane.give(frame);
                    }
                }
                Output::Settle { prompt, settled } => {
                    // As for a result, which may not have come.
                    if let Some(mirror) = &self.mirror {
                        mirror.want();
                    }
                    if let Some(mut reader) = at(&self.readers, prompt).and_then(|at| self.readers.remove(at))
                    {
                        let outcome = settled.as_ref().map_or_else(Error::outcome_of_stall, Some);
                        if let Some(outcome) = outcome {
                            self.observers
                                .notify_observers(|observer| observer.turn_ended(outcome));
                        }
                        reader.settled.send_replace(Some(settled));
                        reader.lane.close();
                    }
                }
                Output::Ambient(frame) => {
                    self.ambient.retain_mut(|lane| lane.give(frame.clone()));
                    if is_mid_turn || is_result(&frame) {
                        self.early = self.early.take().and_then(|early| early.with(&frame));
                    }
                }
                Output::AmbientEnded(outcome) => {
                    if let Some(early) = &mut self.early {
                        early.items.push(LaneItem::Outcome(outcome.clone()));
                    }
                    let ambient = self.ambient.iter_mut();
                    ambient.for_each(|lane| lane.push_outcome(&outcome));
                    self.observers
                        .notify_observers(|observer| observer.turn_ended(&outcome));
                }
                Output::Init(frame) => drop(self.init.send_replace(Some(frame))),
                Output::Reply { id, reply } => {
                    if let Some(waiting) = self.replies.remove(&id) {
                        // The caller may have dropped its future.
                        let _ = waiting.send(reply);
                    }
                }
                Output::Withdrawn(serial) => {
                    if let Some(work) = self.work.remove(&serial) {
                        work.stop();
                    }
                }
                Output::Ended => {
                    let lanes = self.taps.drain(..).chain(self.ambient.drain(..));
                    lanes.for_each(|mut lane| lane.close());
                    std::mem::take(&mut self.observers).notify_observers(|observer| observer.session_ended());
                }
                Output::Unblocked if self.watchdog_rests => self.deeds.push(Output::Watch),
                Output::Unblocked => {}
                Output::CliRequest { serial, .. } => {
                    self.work.insert(serial, CallbackWork::default());
                    self.deeds.push(output);
                }
                Output::RefuseRequest { .. }
                | Output::Flood
                | Output::Dispatch
                | Output::Watch
                | Output::Changed
                | Output::Unsure(_) => self.deeds.push(output),
            }
        }
        taken
    }

    /// The deadline of the watchdog.
    pub(super) fn due(&mut self) -> Option<Instant> {
        let due = self.core.due();
        self.watchdog_rests = due.is_none_or(|(_, stall)| stall.phase.is_in_all());
        due.map(|(at, _)| Instant::from_std(at))
    }

    /// Takes a line of the CLI. Returns whether something has to be done before the next one.
    pub(super) fn on_frame(&mut self, frame: &Frame, now: Instant) -> bool {
        let is_report = frame.kind() == "transcript_mirror";
        if let Some(mirror) = &self.mirror {
            if is_report || may_be_a_report(frame) {
                mirror.offer(frame);
            } else if is_result(frame) {
                // The reader of the turn waits for this at its end.
                mirror.want();
            }
        }
        if !is_report || self.mirror.is_none() {
            self.tap(frame);
            self.changes.on_frame(frame);
        }
        // After the end there is nothing to do.
        let _ = self.step(Input::Frame(frame), now);
        !self.deeds.is_empty()
    }

    /// Gives a frame to those who read all of them.
    fn tap(&mut self, frame: &Frame) {
        self.taps.retain_mut(|tap| tap.give(frame.clone()));
        self.observers.notify_observers(|observer| observer.frame(frame));
    }

    /// Delivers the frames to their readers, once for all that came together, and returns what is left to do.
    pub(super) fn flush(&mut self, deeds: &mut Vec<Output>) {
        let readers = self.readers.iter_mut().map(|reader| &mut reader.lane);
        let lanes = self.taps.iter_mut().chain(&mut self.ambient);
        lanes.chain(readers).for_each(LaneIn::flush);
        deeds.append(&mut self.deeds);
    }

    /// The prompts that an interrupt would end now, and their watches.
    pub(super) fn interruptible(&self) -> Vec<(String, watch::Receiver<Settled>)> {
        let prompts = self.core.interruptible().into_iter();
        let reader = |number| self.readers.get(at(&self.readers, number)?);
        prompts
            .filter_map(|(number, id)| Some((id, reader(number)?.settled.subscribe())))
            .collect()
    }

    pub(super) fn expect(&mut self, id: &str, subtype: &str) -> Result<oneshot::Receiver<Result<RawJson>>> {
        self.step(Input::Request { id, subtype }, Instant::now())?;
        let (reply, waiting) = oneshot::channel();
        self.replies.insert(id.to_owned(), reply);
        Ok(waiting)
    }

    /// Forgets an SDK request. Returns whether it was open.
    pub(super) fn forget(&mut self, id: &str) -> bool {
        // After the end none is open.
        let _ = self.step(Input::Forget { id }, Instant::now());
        self.replies.remove(id).is_some()
    }

    // ---- Work on the CLI's requests -----------------------------------------------------------------------------

    /// The token that fires when a request is withdrawn; `None` if it was withdrawn or answered already.
    pub(super) fn withdrawn(&self, serial: Serial) -> Option<Withdrawn> {
        self.work.get(&serial).map(|work| work.withdrawn.clone())
    }

    /// Stores the handle of the running callback; `false` if the request was withdrawn or answered meanwhile.
    pub(super) fn works(&mut self, serial: Serial, task: AbortHandle) -> bool {
        match self.work.get_mut(&serial) {
            Some(work) => {
                // The callback may have finished already.
                if matches!(work.stage, CallbackStage::Begins) {
                    work.stage = CallbackStage::Runs(task);
                }
                true
            }
            None => false,
        }
    }

    /// The callback leaves the request open; it still counts as undecided.
    pub(super) fn park(&mut self, serial: Serial) {
        if let Some(work) = self.work.get_mut(&serial) {
            work.stage = CallbackStage::Parked;
        }
    }

    /// Another caller has claimed the right to answer: stops the callback, if it still works, and tells what it has left behind.
    pub(super) fn take_over(&mut self, serial: Serial) {
        if let Some(work) = self.work.get(&serial) {
            work.stop();
        }
    }

    /// Tells of a reply; `None` is an error.
    pub(super) fn tell_reply(&mut self, id: &str, reply: Option<&RawJson>) {
        self.observers
            .notify_observers(|observer| observer.replied(id, reply));
    }

    /// The reply was passed to the writer, or another program replies.
    pub(super) fn done(&mut self, input: Input<'_>, serial: Serial) {
        self.work.remove(&serial);
        // After the end no reply is needed.
        let _ = self.step(input, Instant::now());
    }
}

impl Conn {
    pub(super) fn driver(&self) -> MutexGuard<'_, Driver> {
        // The driver is valid after every line, and no code of this crate panics under the lock.
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the core, for reading.
    pub(crate) fn core(&self) -> CoreGuard<'_> {
        CoreGuard(self.driver())
    }

    /// Passes an input to the core, and carries out its outputs.
    pub(super) fn step(self: &Arc<Self>, input: Input<'_>) -> Result<(), Error> {
        self.with(|driver| driver.step(input, Instant::now()))
    }

    /// The same for inputs that have no effect after the end.
    pub(crate) fn note(self: &Arc<Self>, input: Input<'_>) {
        let _ = self.step(input);
    }

    /// Runs `f` under the lock, and then carries out what needs the lock released.
    pub(super) fn with<T>(self: &Arc<Self>, work: impl FnOnce(&mut Driver) -> T) -> T {
        let mut deeds = Vec::new();
        let mut driver = self.driver();
        let done = work(&mut driver);
        driver.flush(&mut deeds);
        drop(driver);
        deeds.into_iter().for_each(|deed| self.act(deed));
        done
    }

    /// Carries out what needs the lock released, except CLI requests, which only the reader handles.
    pub(super) fn act(self: &Arc<Self>, deed: Output) {
        match deed {
            Output::Flood => self.kill_now("it asks without end and does not read the answers"),
            Output::Dispatch => {
                self.dispatch();
                self.watched.notify_one();
            }
            Output::Watch => self.watched.notify_one(),
            Output::Changed => self.changed.notify_waiters(),
            Output::Unsure(turn) => {
                self.watched.notify_one();
                tasks::confirm_later(self, turn);
            }
            // The driver's, and the reader's.
            _ => {}
        }
    }

    /// Accepts a prompt. Returns the lane and the watch of its turn.
    pub(crate) fn accept(
        self: &Arc<Self>,
        prompt: Accept,
    ) -> Result<(LaneOut, watch::Receiver<Settled>), Error> {
        let (lane, frames) = lane(&self.budget);
        let settled = self.with(|driver| {
            let number = driver.next;
            driver.step(Input::Prompt { number, prompt }, Instant::now())?;
            driver.next += 1;
            driver.early = None;
            let (settled, waiting) = watch::channel(None);
            driver.readers.push_back(Reader {
                prompt: number,
                lane,
                settled,
            });
            Ok::<_, Error>(waiting)
        })?;
        self.send_ready_now();
        Ok((frames, settled))
    }

    /// The line of the next prompt that may be sent.
    pub(super) fn poll_send(&self) -> Option<OutgoingLine> {
        let mut driver = self.driver();
        let line = driver.core.poll_send(Instant::now().into_std())?;
        if !driver.observers.is_empty() {
            for frame in Frame::from_line(line.trim_ascii_end()) {
                driver
                    .observers
                    .notify_observers(|observer| observer.prompt(&frame));
            }
        }
        Some(line)
    }

    /// The stall, if a deadline has passed.
    pub(super) fn poll_stall(&self) -> Option<Stall> {
        self.driver().core.poll_stall(Instant::now().into_std())
    }

    /// Every frame from now on.
    pub(crate) fn tap(&self) -> LaneOut {
        self.listen_to(|driver, _| &mut driver.taps)
    }

    /// Adds an observer that somebody else keeps.
    pub(crate) fn follow(&self, observer: Weak<dyn Observer>) {
        let mut driver = self.driver();
        if driver.core.ended().is_none() {
            driver.observers.weak.push(observer);
        } else if let Some(observer) = observer.upgrade() {
            observer.session_ended();
        }
    }

    /// Adds an observer, and keeps it until the end.
    pub(crate) fn observe(&self, observer: Arc<dyn Observer>) {
        let mut driver = self.driver();
        if driver.core.ended().is_none() {
            driver.observers.kept.push(observer);
        } else {
            observer.session_ended();
        }
    }

    /// The ambient events from now on, and before them, for the first who listens, those of the turn that began already.
    pub(crate) fn listen(&self) -> LaneOut {
        self.listen_to(|driver, lane| {
            for item in driver.early.take().into_iter().flat_map(|early| early.items) {
                match item {
                    LaneItem::Frame(frame) => drop(lane.give(frame)),
                    LaneItem::Outcome(outcome) => lane.push_outcome(&outcome),
                    LaneItem::Lag(_) => {}
                }
            }
            &mut driver.ambient
        })
    }

    fn listen_to(&self, lanes: for<'a> fn(&'a mut Driver, &mut LaneIn) -> &'a mut Vec<LaneIn>) -> LaneOut {
        let (mut lane, frames) = lane(&self.budget);
        let mut driver = self.driver();
        let is_over = driver.core.ended().is_some();
        let lanes = lanes(&mut driver, &mut lane);
        lane.flush();
        match is_over {
            true => lane.close(),
            false => lanes.push(lane),
        }
        frames
    }

    /// Emits a frame that the SDK makes. `line` makes it from the session's id.
    pub(crate) fn emit_own(self: &Arc<Self>, line: impl FnOnce(&str) -> String) {
        self.with(|driver| {
            let line = line(driver.core.session_id().unwrap_or_default());
            for frame in Frame::from_line(line) {
                driver.tap(&frame);
                // After the end there are no readers.
                let _ = driver.step(Input::Own(&frame), Instant::now());
            }
        });
    }

    /// The latest `system/init`.
    pub(crate) fn init(&self) -> watch::Receiver<Option<Frame>> {
        self.driver().init.subscribe()
    }

    /// The undecided CLI requests of these kinds.
    pub(crate) fn pending(&self, subtypes: &[&str]) -> Vec<(RequestId, Frame, Withdrawn)> {
        let driver = self.driver();
        let is_wanted = |frame: &Frame| subtypes.contains(&frame.subtype().unwrap_or_default());
        let wanted = driver.core.undecided().filter(|(_, _, frame)| is_wanted(frame));
        wanted
            .filter_map(|(serial, id, frame)| Some((id.clone(), frame.clone(), driver.withdrawn(serial)?)))
            .collect()
    }

    /// Locks the changes that are remembered for `revive`.
    pub(crate) fn changes<T>(&self, with: impl FnOnce(&mut Changes) -> T) -> T {
        with(&mut self.driver().changes)
    }

    /// Adds secrets that the process got after its start.
    pub(crate) fn add_secrets(&self, secrets: Vec<String>) {
        self.driver().secrets.extend(secrets);
    }

    pub(crate) fn stats(&self) -> Stats {
        let mirrored = self.mirror.as_ref().map(|mirror| mirror.counts());
        let budget = &self.budget;
        Stats {
            held_bytes: budget.held(),
            spilled_bytes: budget.spilled(),
            lagging_frames: budget.waiting(),
            left_out: budget.left_out(),
            mirrored_entries: mirrored.as_ref().map_or(0, |mirrored| mirrored.entries),
            mirror_errors: mirrored.as_ref().map_or(0, |mirrored| mirrored.errors),
            mirror_waiting_bytes: mirrored.as_ref().map_or(0, |mirrored| mirrored.waiting_bytes),
            store_lag: mirrored.and_then(|mirrored| mirrored.lag),
            ..self.core().stats()
        }
    }
}

/// Whether the frame is an oversized line whose beginning does not show its kind.
fn may_be_a_report(frame: &Frame) -> bool {
    frame.kind().is_empty()
        && frame
            .flaw()
            .is_some_and(|flaw| matches!(flaw.kind, MisfitKind::Oversized(_)))
}

/// The index of a prompt's reader.
fn at(readers: &VecDeque<Reader>, prompt: u64) -> Option<usize> {
    readers.binary_search_by_key(&prompt, |reader| reader.prompt).ok()
}

/// The locked core, for reading. Do not hold it for long.
pub(crate) struct CoreGuard<'a>(pub(super) MutexGuard<'a, Driver>);

impl Deref for CoreGuard<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.0.core
    }
}
