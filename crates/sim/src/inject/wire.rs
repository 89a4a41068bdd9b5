//! A schedule at work on the streams of one peer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::at::FrameDirection;
use super::engine::{Armed, WireEngine};
use super::random::Random;
use super::reader::FaultyReader;
use super::schedule::{Fault, Schedule, Stage, Unfit};
use super::strike::{Strike, Strikes};
use super::writer::FaultyWriter;
use crate::running::Exit;

/// How long a line of a flood on stderr is, in bytes.
const FLOOD_LINE: usize = 80;

/// Faults between a client and its CLI: wraps their streams and applies a schedule to them.
///
/// Either side can be wrapped: the client's ends of the pipes, or the CLI's. Frames are held until they are whole, written bytes may
/// wait here up to the size of a pipe, and everything else passes unchanged.
///
/// Handles are cheap clones.
///
/// ```
/// use outrigger_sim::fault::{At, FrameDirection, Effect, Schedule, Stage, Wire};
/// use tokio::io::AsyncReadExt as _;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schedule = Schedule::new(1).with(Effect::Drop {}, At::anywhere().nth(2));
/// let wire = Wire::new(&schedule, Stage::Streams)?;
/// let mut stdout = wire.reader(FrameDirection::Output, &b"{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n"[..]);
/// let mut text = String::new();
/// stdout.read_to_string(&mut text).await?;
/// assert_eq!(text, "{\"a\":1}\n{\"c\":3}\n");
/// assert_eq!(wire.strikes()[0].frame, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Wire(Arc<WireShared>);

#[derive(Debug)]
pub(super) struct WireShared {
    stage: Stage,
    state: Mutex<WireState>,
    ending: watch::Sender<Option<Exit>>,
    survives: watch::Sender<bool>,
    /// How many writers have not passed on all that they were given.
    writing: watch::Sender<usize>,
}

#[derive(Debug)]
pub(super) struct WireState {
    armed: Vec<Armed>,
    engines: [WireEngine; 2],
    strikes: Strikes,
    /// The process is gone.
    pub(super) over: bool,
    /// The client has closed its end of a direction.
    pub(super) closed: [bool; 2],
    /// How much of a flood was not read, in bytes.
    flood: u64,
    /// Whether anybody reads stderr.
    stderr: bool,
    /// Who waits, by stream: output, input, stderr.
    wakers: [Option<Waker>; 3],
    schedule: Schedule,
}

impl Wire {
    /// Applies the schedule to streams that are wrapped from now on.
    ///
    /// # Errors
    /// When a fault cannot be done there: see [`Fault::check`].
    pub fn new(schedule: &Schedule, stage: Stage) -> Result<Self, Unfit> {
        schedule.check(stage)?;
        let faults = schedule.faults.iter().cloned().enumerate();
        Ok(Self(Arc::new(WireShared {
            stage,
            state: Mutex::new(WireState {
                armed: faults.map(|(index, fault)| Armed::new(index, fault)).collect(),
                engines: [
                    WireEngine::new(FrameDirection::Output, schedule.seed),
                    WireEngine::new(FrameDirection::Input, schedule.seed),
                ],
                strikes: Strikes::default(),
                over: false,
                closed: [false; 2],
                flood: 0,
                stderr: false,
                wakers: [None, None, None],
                schedule: schedule.clone(),
            }),
            ending: watch::Sender::new(None),
            survives: watch::Sender::new(false),
            writing: watch::Sender::new(0),
        })))
    }

    /// Wraps the reading end of a direction's stream: the CLI's stdout for its client, the CLI's stdin for the CLI.
    ///
    /// Each direction has one stream; a second one would get part of the frames.
    pub fn reader<R>(&self, direction: FrameDirection, inner: R) -> FaultyReader<R> {
        FaultyReader::new(self.clone(), direction, inner)
    }

    /// Wraps the writing end of a direction's stream: the CLI's stdin for its client, the CLI's stdout for the CLI.
    ///
    /// Must be called inside a tokio runtime: a task passes written bytes on, so that writing does not wait for slow
    /// faults. Dropping the writer ends the stream after the written bytes.
    pub fn writer<W>(&self, direction: FrameDirection, inner: W) -> FaultyWriter
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        FaultyWriter::new(self.clone(), direction, inner)
    }

    /// Wraps the CLI's stderr, for floods.
    pub fn stderr<R: AsyncRead>(&self, inner: R) -> super::reader::FloodedReader<R> {
        self.lock().stderr = true;
        super::reader::FloodedReader::new(self.clone(), inner)
    }

    /// Adds a fault. Its counts start here.
    ///
    /// # Errors
    /// When the fault cannot be done here.
    pub fn arm(&self, fault: Fault) -> Result<(), Unfit> {
        fault.check(self.0.stage)?;
        let mut state = self.lock();
        let index = state.armed.len();
        state.armed.push(Armed::new(index, fault.clone()));
        state.schedule.faults.push(fault);
        Ok(())
    }

    /// The faults that are at work, and their seed.
    pub fn schedule(&self) -> Schedule {
        self.lock().schedule.clone()
    }

    /// The strikes so far: the first thousand.
    pub fn strikes(&self) -> Vec<Strike> {
        self.lock().strikes.first.clone()
    }

    /// How often faults struck.
    pub fn struck(&self) -> u64 {
        self.lock().strikes.total
    }

    /// Waits until a fault ends the process, and returns how: the owner of the process must end it then. Without such a fault it never
    /// resolves.
    ///
    /// Can be dropped and called again.
    pub async fn ended(&self) -> Exit {
        let mut ending = self.0.ending.subscribe();
        let ended = ending.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
        match ended {
            Some(exit) => exit,
            // The sender lives as long as this handle.
            None => std::future::pending().await,
        }
    }

    /// How a fault ended the process, if one did.
    pub fn ending(&self) -> Option<Exit> {
        *self.0.ending.borrow()
    }

    /// Whether a fault has SIGTERM ignored.
    pub fn ignores_term(&self) -> bool {
        *self.0.survives.borrow()
    }

    /// Reports that the process is gone, which ends all stalls. Needed if the streams do not end by themselves.
    pub fn over(&self) {
        let mut state = self.lock();
        state.over = true;
        state.wake();
    }

    /// Waits until the writers have passed on all bytes and were dropped. Can be dropped and called again.
    pub async fn drained(&self) {
        let mut writing = self.0.writing.subscribe();
        // An error would mean that the sender is gone, and this handle has it.
        let _ = writing.wait_for(|writing| *writing == 0).await;
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, WireState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stage(&self) -> Stage {
        self.0.stage
    }

    pub(super) fn end(&self, exit: Exit) {
        self.0.ending.send_if_modified(|ending| {
            let first = ending.is_none();
            ending.get_or_insert(exit);
            first
        });
        self.over();
    }

    pub(super) fn survive(&self) {
        self.0.survives.send_replace(true);
    }

    pub(super) fn writing(&self, change: impl FnOnce(&mut usize)) {
        self.0.writing.send_modify(change);
    }
}

impl WireState {
    pub(super) fn engine(&mut self, direction: FrameDirection) -> &mut WireEngine {
        &mut self.engines[direction.index()]
    }

    pub(super) fn feed(&mut self, direction: FrameDirection, bytes: &[u8]) {
        self.engines[direction.index()].feed(bytes, &mut self.armed, &mut self.strikes);
    }

    pub(super) fn finish(&mut self, direction: FrameDirection) {
        self.engines[direction.index()].finish(&mut self.armed, &mut self.strikes);
    }

    pub(super) fn close(&mut self, direction: FrameDirection) {
        self.closed[direction.index()] = true;
        self.wake();
    }

    pub(super) fn wait(&mut self, stream: usize, context: &Context<'_>) {
        match &mut self.wakers[stream] {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
    }

    fn wake(&mut self) {
        for waker in self.wakers.iter_mut().filter_map(Option::take) {
            waker.wake();
        }
    }

    /// Begins a flood, if anybody could read it.
    pub(super) fn flood(&mut self, bytes: u64) {
        if self.stderr {
            self.flood += bytes;
            self.wake();
        }
    }

    pub(super) fn is_flooded(&self) -> bool {
        self.flood > 0
    }

    /// Takes some of the flood, at most this much.
    pub(super) fn take_flood(&mut self, room: usize) -> Vec<u8> {
        let take = self.flood.min(room as u64) as usize;
        // Something to read, the same in every run.
        let mut random = Random::new(self.flood);
        let mut bytes = Vec::with_capacity(take);
        while bytes.len() < take {
            let left = take - bytes.len();
            let line = format!("[Debug] a flood of words, {:016x} ", random.next());
            let mut line = line.into_bytes();
            line.resize(FLOOD_LINE - 1, b'.');
            line.push(b'\n');
            line.truncate(left);
            bytes.extend(line);
        }
        self.flood -= take as u64;
        if self.flood == 0 {
            self.wake();
        }
        bytes
    }

    /// Nobody reads stderr any more.
    pub(super) fn no_stderr(&mut self) {
        self.stderr = false;
        self.flood = 0;
        self.wake();
    }
}
