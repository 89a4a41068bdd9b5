//! What the outputs of the core reach: the readers of frames, those who wait for replies, and callbacks at work. Everything here and the
//! core itself are behind one lock, which is never held while anything waits or any code of a user runs.

use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::{Arc, MutexGuard, PoisonError};

use outrigger_protocol::shared::RequestId;
use outrigger_protocol::{Frame, MisfitKind, RawJson};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::attachments::Mirroring;
use super::changes::Changes;
use super::core::{Accept, Core, Input, Output, Serial};
use super::lane::{LaneIn, LaneOut, lane};
use super::{Conn, Line, Withdrawn, tasks};
use crate::error::{Error, Result};
use crate::outcome::{Outcome, is_result};
use crate::phase::Stall;
use crate::stats::Stats;

/// What a turn handle waits for.
pub(crate) type Settled = Option<Result<Outcome>>;

/// Who waits for a prompt's turn.
struct Reader {
    prompt: u64,
    lane: LaneIn,
    settled: watch::Sender<Settled>,
}

/// A callback that works on a request of the CLI.
#[derive(Default)]
struct Work {
    /// Tells whoever works on the answer that nobody waits for it any more.
    withdrawn: Withdrawn,
    stage: CallbackStage,
}

#[derive(Default)]
enum CallbackStage {
    #[default]
    Begins,
    /// How to stop it.
    Runs(AbortHandle),
    /// It has left the request open, for somebody to answer later.
    Parked,
}

impl Work {
    fn stop(&self) {
        self.withdrawn.cancel();
        if let CallbackStage::Runs(task) = &self.stage {
            task.abort();
        }
    }
}

pub(super) struct Driver {
    core: Core,
    /// In the order of their numbers.
    readers: VecDeque<Reader>,
    /// The number of the next prompt.
    next: u64,
    taps: Vec<LaneIn>,
    ambient: Vec<LaneIn>,
    replies: HashMap<String, oneshot::Sender<Result<RawJson>>>,
    work: HashMap<Serial, Work>,
    init: watch::Sender<Option<Frame>>,
    /// Takes what the CLI writes to its transcripts, if there is a store for it.
    mirror: Option<Arc<dyn Mirroring>>,
    /// For `revive`.
    changes: Changes,
    /// Secrets that the process got after it was started.
    pub(super) secrets: Vec<String>,
    /// Whether the watchdog waits for nothing, so that it has to be woken when there is something.
    watchdog_rests: bool,
    /// What is to be done once the lock is let go.
    deeds: Vec<Output>,
}

impl Driver {
    pub(super) fn new(core: Core, mirror: Option<Arc<dyn Mirroring>>) -> Self {
        Self {
            core,
            readers: VecDeque::new(),
            next: 0,
            taps: Vec::new(),
            ambient: Vec::new(),
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

    /// Has the core take what happened, and hands on what came of it; what is to be done without the lock is kept for
    /// [`flush`](Self::flush).
    pub(super) fn step(&mut self, input: Input<'_>, now: Instant) -> Result<()> {
        let taken = self.core.handle(input, now.into_std());
        for output in self.core.outputs() {
            match output {
                Output::Deliver { prompt, frame } => {
                    if let Some(reader) = at(&self.readers, prompt).and_then(|at| self.readers.get_mut(at)) {
                        reader.lane.give(frame);
                    }
                }
                Output::Settle { prompt, settled } => {
                    if let Some(mut reader) = at(&self.readers, prompt).and_then(|at| self.readers.remove(at))
                    {
                        reader.settled.send_replace(Some(settled));
                        reader.lane.close();
                    }
                }
                Output::Ambient(frame) => self.ambient.retain_mut(|lane| lane.give(frame.clone())),
                Output::AmbientEnded(outcome) => {
                    let ambient = self.ambient.iter_mut();
                    ambient.for_each(|lane| lane.push_outcome(&outcome));
                }
                Output::Init(frame) => drop(self.init.send_replace(Some(frame))),
                Output::Reply { id, reply } => {
                    if let Some(waiting) = self.replies.remove(&id) {
                        // The caller may have gone; then nobody waits.
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
                }
                Output::Unblocked if self.watchdog_rests => self.deeds.push(Output::Watch),
                Output::Unblocked => {}
                Output::CliRequest { serial, .. } => {
                    self.work.insert(serial, Work::default());
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

    /// Until when the watchdog waits.
    pub(super) fn due(&mut self) -> Option<Instant> {
        let due = self.core.due().map(|(at, _)| Instant::from_std(at));
        self.watchdog_rests = due.is_none();
        due
    }

    /// Takes a line of the CLI; whether something is to be done before the next one.
    pub(super) fn on_frame(&mut self, frame: &Frame, now: Instant) -> bool {
        let is_report = frame.kind() == "transcript_mirror";
        if let Some(mirror) = &self.mirror {
            if is_report || may_be_a_report(frame) {
                mirror.offer(frame);
            } else if is_result(frame) {
                // Whoever is told of the turn's end waits for this.
                mirror.want();
            }
        }
        if !is_report || self.mirror.is_none() {
            self.taps.retain_mut(|tap| tap.give(frame.clone()));
            self.changes.on_frame(frame);
        }
        // After the end nothing is left to be done about it.
        let _ = self.step(Input::Frame(frame), now);
        !self.deeds.is_empty()
    }

    /// Hands the frames to those who read them, once for all that came together, and gives what is left to be done.
    pub(super) fn flush(&mut self, deeds: &mut Vec<Output>) {
        let readers = self.readers.iter_mut().map(|reader| &mut reader.lane);
        let lanes = self.taps.iter_mut().chain(&mut self.ambient);
        lanes.chain(readers).for_each(LaneIn::flush);
        deeds.append(&mut self.deeds);
    }

    /// The prompts that an interrupt now is about, and who waits for their ends.
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

    /// Forgets a request of ours; whether it was still open.
    pub(super) fn forget(&mut self, id: &str) -> bool {
        // After the end none is open.
        let _ = self.step(Input::Forget { id }, Instant::now());
        self.replies.remove(id).is_some()
    }

    // ---- Work on the CLI's requests -----------------------------------------------------------------------------

    /// What fires when a request is withdrawn; `None` if it was, or was answered.
    pub(super) fn withdrawn(&self, serial: Serial) -> Option<Withdrawn> {
        self.work.get(&serial).map(|work| work.withdrawn.clone())
    }

    /// Says how to stop the work, once it has begun; `false` when the request was withdrawn or answered meanwhile.
    pub(super) fn works(&mut self, serial: Serial, task: AbortHandle) -> bool {
        match self.work.get_mut(&serial) {
            Some(work) => {
                // The callback may have been quicker.
                if matches!(work.stage, CallbackStage::Begins) {
                    work.stage = CallbackStage::Runs(task);
                }
                true
            }
            None => false,
        }
    }

    /// The callback leaves the request open; it goes on counting as undecided.
    pub(super) fn park(&mut self, serial: Serial) {
        if let Some(work) = self.work.get_mut(&serial) {
            work.stage = CallbackStage::Parked;
        }
    }

    /// Somebody else has the right to answer: stops the callback, if it still works.
    pub(super) fn take_over(&mut self, serial: Serial) {
        if let Some(work) = self.work.get(&serial)
            && matches!(work.stage, CallbackStage::Runs(_))
        {
            work.stop();
        }
    }

    /// The answer was handed to the writer, or another program gives it.
    pub(super) fn done(&mut self, input: Input<'_>, serial: Serial) {
        self.work.remove(&serial);
        // After the end nobody waits for it.
        let _ = self.step(input, Instant::now());
    }
}

impl Conn {
    pub(super) fn driver(&self) -> MutexGuard<'_, Driver> {
        // The driver is valid after every line, and nothing of ours panics while it is held.
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known, to be asked.
    pub(crate) fn core(&self) -> CoreGuard<'_> {
        CoreGuard(self.driver())
    }

    /// Has the core take what happened, and does what is to be done about it.
    pub(super) fn step(self: &Arc<Self>, input: Input<'_>) -> Result<(), Error> {
        self.with(|driver| driver.step(input, Instant::now()))
    }

    /// The same for what changes nothing after the end.
    pub(crate) fn note(self: &Arc<Self>, input: Input<'_>) {
        let _ = self.step(input);
    }

    /// Works with the driver, and then does without its lock what is to be done.
    pub(super) fn with<T>(self: &Arc<Self>, work: impl FnOnce(&mut Driver) -> T) -> T {
        let mut deeds = Vec::new();
        let mut driver = self.driver();
        let done = work(&mut driver);
        driver.flush(&mut deeds);
        drop(driver);
        deeds.into_iter().for_each(|deed| self.act(deed));
        done
    }

    /// Does what is to be done without the lock; all but the answering, which only the reader does.
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

    /// Accepts a prompt: gives what its turn will bring, and its end.
    pub(crate) fn accept(
        self: &Arc<Self>,
        prompt: Accept,
    ) -> Result<(LaneOut, watch::Receiver<Settled>), Error> {
        let (lane, frames) = lane(&self.budget);
        let settled = self.with(|driver| {
            let number = driver.next;
            driver.step(Input::Prompt { number, prompt }, Instant::now())?;
            driver.next += 1;
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
    pub(super) fn poll_send(&self) -> Option<Line> {
        self.driver().core.poll_send(Instant::now().into_std())
    }

    /// What did not happen in time.
    pub(super) fn poll_stall(&self) -> Option<Stall> {
        self.driver().core.poll_stall(Instant::now().into_std())
    }

    /// Every frame from now on.
    pub(crate) fn tap(&self) -> LaneOut {
        self.listen_to(|driver| &mut driver.taps)
    }

    /// What belongs to no prompt, from now on.
    pub(crate) fn listen(&self) -> LaneOut {
        self.listen_to(|driver| &mut driver.ambient)
    }

    fn listen_to(&self, lanes: fn(&mut Driver) -> &mut Vec<LaneIn>) -> LaneOut {
        let (mut lane, frames) = lane(&self.budget);
        let mut driver = self.driver();
        match driver.core.ended() {
            Some(_) => lane.close(),
            None => lanes(&mut driver).push(lane),
        }
        frames
    }

    /// Tells something of our own, as if the CLI had. `line` makes it, of the session's id.
    pub(crate) fn tell(self: &Arc<Self>, line: impl FnOnce(&str) -> String) {
        self.with(|driver| {
            let line = line(driver.core.session_id().unwrap_or_default());
            for frame in Frame::from_line(line) {
                driver.taps.retain_mut(|tap| tap.give(frame.clone()));
                // After the end nobody listens.
                let _ = driver.step(Input::Own(&frame), Instant::now());
            }
        });
    }

    /// The latest `system/init`.
    pub(crate) fn init(&self) -> watch::Receiver<Option<Frame>> {
        self.driver().init.subscribe()
    }

    /// The undecided requests of the CLI of these kinds.
    pub(crate) fn pending(&self, subtypes: &[&str]) -> Vec<(RequestId, Frame, Withdrawn)> {
        let driver = self.driver();
        let is_wanted = |frame: &Frame| subtypes.contains(&frame.subtype().unwrap_or_default());
        let wanted = driver.core.undecided().filter(|(_, _, frame)| is_wanted(frame));
        wanted
            .filter_map(|(serial, id, frame)| Some((id.clone(), frame.clone(), driver.withdrawn(serial)?)))
            .collect()
    }

    /// Changes what is remembered for `revive`, or gives it.
    pub(crate) fn changes<T>(&self, with: impl FnOnce(&mut Changes) -> T) -> T {
        with(&mut self.driver().changes)
    }

    /// The process has got these, too: they are not to be shown.
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

/// Whether it is a line that was too long to be kept, and whose beginning does not say what it was.
fn may_be_a_report(frame: &Frame) -> bool {
    frame.kind().is_empty()
        && frame
            .flaw()
            .is_some_and(|flaw| matches!(flaw.kind, MisfitKind::Oversized(_)))
}

/// Where the reader of a prompt is.
fn at(readers: &VecDeque<Reader>, prompt: u64) -> Option<usize> {
    readers.binary_search_by_key(&prompt, |reader| reader.prompt).ok()
}

/// The core, to be asked. Nothing changes while this is held, so it is not held for long.
pub(crate) struct CoreGuard<'a>(pub(super) MutexGuard<'a, Driver>);

impl Deref for CoreGuard<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.0.core
    }
}
