//! The events of a session for any number of readers, from its history to what happens now.

mod log;
mod position;

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::Frame;
use uuid::Uuid;

use self::log::{LogEntry, LogRead, TailLog};
pub use self::position::{Position, PositionError};
use crate::error::{Error, Result};
use crate::event::{Event, Reducer};
use crate::history::History;
use crate::observer::Observer;
use crate::outcome::Outcome;
use crate::session::Session;

/// How much a [`Tail`] keeps in memory for its readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TailLimits {
    /// The number of frames; 8192 by default.
    pub frames: usize,
    /// Their bytes; 16 MiB by default. A frame that is longer is kept alone.
    pub bytes: usize,
}

impl Default for TailLimits {
    fn default() -> Self {
        Self {
            frames: 8192,
            bytes: 16 << 20,
        }
    }
}

impl TailLimits {
    /// At most this many frames, and this many bytes of them.
    pub fn new(frames: usize, bytes: usize) -> Self {
        Self { frames, bytes }
    }
}

/// The events of one session for any number of readers, each at its own pace: from its history, from a position, or from now on.
///
/// A tail keeps the last frames of the session in memory ([`TailLimits`]), whether anybody reads or not. What is older comes from the
/// history ([`Session::history`]). So a reader that is slow, or that comes back with the [`Position`] of what it had last, gets
/// everything that the memory or the transcript still has, in order and once; and where there is neither, it is told
/// ([`TailItem::Missed`]).
///
/// It has the events of all turns, ambient turns included, and of what happens between turns; the prompts of this session, as
/// [`Event::Message`]s, when they are sent; and the end of each turn. The history has less: only the messages of the main
/// conversation. What the CLI repeats of its input (`isReplay`) is left out.
///
/// A clone shares the memory. A tail and its readers keep the session alive.
///
/// ```no_run
/// # async fn example(session: outrigger::Session) -> outrigger::Result<()> {
/// use outrigger::{Event, TailItem, TailLimits};
///
/// let tail = session.tail(TailLimits::default());
/// let mut reader = tail.from_start();
/// while let Some(step) = reader.next().await {
///     let step = step?;
///     // What a client sends back when it comes again; see `Tail::after`.
///     println!("id: {}", step.position);
///     match step.item {
///         TailItem::Events(events) => println!("{} events", events.len()),
///         TailItem::TurnEnded(outcome) => println!("{}", outcome.verdict()),
///         TailItem::Missed(missed) => println!("{missed}"),
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Tail(Arc<TailInner>);

#[derive(Debug)]
struct TailInner {
    session: Session,
    log: Arc<TailLog>,
}

/// What a [`TailReader`] reads at once: what one frame brings.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TailStep {
    /// Where the reader is after this: [`Tail::after`] goes on behind it.
    pub position: Position,
    /// What happened.
    pub item: TailItem,
}

/// What happened in a session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TailItem {
    /// At least one event. All of them are of one frame.
    Events(Vec<Event>),
    /// A turn has ended.
    TurnEnded(Outcome),
    /// Something is missing here.
    Missed(Missed),
}

/// What a reader misses at a point. Messages and blocks that had begun before are over; their ends are not told if the reader was not
/// there for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Missed {
    /// The number of frames that neither the memory has any more nor, except for messages of the main conversation, the history.
    /// `None` if it is not known: the position is of another tail, so at least what was only told live since then is missing.
    pub frames: Option<u64>,
    /// The position is no part of the conversation any more (it was cleared or compacted), so the reader begins at its start.
    pub restarts: bool,
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.frames {
            Some(frames) => write!(f, "{frames} frames were missed")?,
            None => f.write_str("what was only told live was missed")?,
        }
        if self.restarts {
            f.write_str("; the conversation begins anew")?;
        }
        Ok(())
    }
}

impl Session {
    /// Keeps the events of this session from now on for any number of readers; see [`Tail`].
    ///
    /// Call it before the first prompt to have all of it.
    pub fn tail(&self, limits: TailLimits) -> Tail {
        let told = self
            .conn()
            .core()
            .last_told()
            .and_then(|id| Uuid::try_parse(id).ok());
        let log = Arc::new(TailLog::new(limits, told));
        let observer: Arc<dyn Observer> = Arc::clone(&log) as _;
        self.conn().follow(Arc::downgrade(&observer));
        Tail(Arc::new(TailInner {
            session: self.clone(),
            log,
        }))
    }
}

impl Tail {
    /// Reads what happens from now on.
    pub fn live(&self) -> TailReader {
        let mut reader = TailReader::new(self.clone());
        let next = self.0.log.next();
        reader.replay_until(next);
        reader
    }

    /// Reads the conversation from its start, and goes on with what happens.
    pub fn from_start(&self) -> TailReader {
        let mut reader = TailReader::new(self.clone());
        reader.open_history(None);
        reader
    }

    /// Goes on behind a position, which may be of a reader of another process.
    ///
    /// If the memory has what follows, nothing is missing. Else the reader goes on in the history behind the last whole message
    /// before the position, after [`TailItem::Missed`]: a message that was being written is told anew.
    pub fn after(&self, position: &Position) -> TailReader {
        let mut reader = TailReader::new(self.clone());
        let log = &self.0.log;
        let oldest = log.beginning().0;
        let is_ours = position.log == Some(log.id);
        if is_ours && (oldest..=log.next()).contains(&position.next) {
            reader.replay_until(position.next);
            return reader;
        }
        // A position in a history has nothing that was only told live.
        reader.missed = position.log.map(|_| Missed {
            frames: is_ours.then(|| oldest.saturating_sub(position.next)),
            restarts: false,
        });
        match position.message.and_then(|message| log.place_of(message)) {
            Some(at) => reader.replay_until(at + 1),
            None => {
                reader.message = position.message;
                reader.looks = if is_ours { LOOKS } else { 0 };
                reader.open_history(position.message);
            }
        }
        reader
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.0.session
    }
}

type Opening = Pin<Box<dyn Future<Output = Result<History>> + Send>>;

/// Where a reader reads.
enum ReaderStage {
    /// The history is being opened.
    Opening(Opening, Option<Seam>),
    /// The history is read.
    History(Box<Joining>),
    /// The memory is read.
    Live,
    Over,
}

/// A history that is read up to what the memory has.
struct Joining {
    history: History,
    seam: Seam,
}

/// Where a history goes over into the memory. It is known before the history is opened, so that the history has what the memory has not
/// any more.
struct Seam {
    /// The messages in the memory, and from where on.
    known: HashSet<Uuid>,
    from: u64,
    /// Whether one of them came.
    seen: bool,
    /// The message behind which the reader goes on, until it comes.
    after: Option<Uuid>,
    /// The last message that the memory had and has not any more, until it comes.
    gone: Option<Uuid>,
}

/// A reader of a [`Tail`].
pub struct TailReader {
    tail: Tail,
    stage: ReaderStage,
    reducer: Reducer,
    /// The number of the next entry of the memory.
    next: u64,
    /// The last message that was read whole.
    message: Option<Uuid>,
    /// How often the reader looks again for what the transcript lacks.
    looks: u8,
    /// The id that the API gave the last answer of the model in the history.
    last_answer: Option<String>,
    /// The last messages that came from the history, which the memory may get a moment later.
    told: VecDeque<Uuid>,
    /// Told before anything else.
    missed: Option<Missed>,
    /// Whether something was missed before the history is read: then all that was begun is over.
    is_cut: bool,
}

/// How often a reader looks again for a message that the memory had and the transcript has not yet: the CLI writes it a moment later.
const LOOKS: u8 = 20;

/// How long a reader waits before it looks again.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// How many messages of a history may come live a moment later.
const TOLD: usize = 64;

impl fmt::Debug for TailReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TailReader")
            .field("next", &self.next)
            .field("message", &self.message)
            .field("is_live", &matches!(self.stage, ReaderStage::Live))
            .finish_non_exhaustive()
    }
}

impl TailReader {
    fn new(tail: Tail) -> Self {
        Self {
            tail,
            stage: ReaderStage::Live,
            reducer: Reducer::default(),
            next: 0,
            message: None,
            looks: 0,
            last_answer: None,
            told: VecDeque::new(),
            missed: None,
            is_cut: false,
        }
    }

    /// The position behind what was read last.
    pub fn position(&self) -> Position {
        Position {
            log: matches!(self.stage, ReaderStage::Live | ReaderStage::Over).then_some(self.tail.0.log.id),
            next: self.next,
            message: self.message,
        }
    }

    /// How many frames the memory has that this reader has not read yet; those of a history are not counted.
    pub fn behind(&self) -> u64 {
        self.tail.0.log.next().saturating_sub(self.next)
    }

    /// Reads the memory up to an entry, and tells nothing of it: what follows depends on what was told of a message already.
    fn replay_until(&mut self, end: u64) {
        let log = Arc::clone(&self.tail.0.log);
        (self.next, self.message) = log.beginning();
        while self.next < end
            && let LogRead::Entry(entry) = log.read(self.next)
        {
            drop(self.take(&entry));
            self.next += 1;
        }
        self.next = end;
    }

    fn open_history(&mut self, after: Option<Uuid>) {
        self.open_history_in(Duration::ZERO, after);
    }

    fn open_history_in(&mut self, pause: Duration, after: Option<Uuid>) {
        let session = self.tail.0.session.clone();
        let (from, gone, known) = self.tail.0.log.seam();
        let seam = Seam {
            known,
            from,
            seen: false,
            after,
            gone: gone.filter(|gone| after != Some(*gone)),
        };
        let opening = async move {
            tokio::time::sleep(pause).await;
            session.history().await
        };
        self.stage = ReaderStage::Opening(Box::pin(opening), Some(seam));
    }

    /// What happened next; `None` when the session has ended and everything was read. [`Session::wait_ended`] tells how it ended.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was not returned is returned by the next call.
    ///
    /// # Errors
    /// When the history cannot be read, as [`Session::history`]. The error is the last element.
    pub async fn next(&mut self) -> Option<Result<TailStep>> {
        loop {
            if let Some(missed) = self.missed.take() {
                self.is_cut = true;
                return Some(Ok(self.step(TailItem::Missed(missed))));
            }
            let events = match &mut self.stage {
                ReaderStage::Over => return None,
                ReaderStage::Opening(opening, seam) => {
                    let opened = opening.as_mut().await;
                    match (opened, seam.take()) {
                        (Ok(history), Some(seam)) => {
                            self.stage = ReaderStage::History(Box::new(Joining { history, seam }));
                        }
                        (Ok(_), None) => self.stage = ReaderStage::Over,
                        (Err(error), _) => return Some(Err(self.fail(error))),
                    }
                    Vec::new()
                }
                ReaderStage::History(joining) => match joining.history.next_frame().await {
                    Some(Ok(frame)) => self.on_history(&frame),
                    Some(Err(error)) => return Some(Err(self.fail(error))),
                    None => self.history_is_over(),
                },
                ReaderStage::Live => match self.tail.0.log.read_or_wait(self.next).await {
                    LogRead::Entry(entry) => {
                        self.next += 1;
                        match self.take(&entry) {
                            Some(TailItem::Events(events)) => events,
                            Some(item) => return Some(Ok(self.step(item))),
                            None => Vec::new(),
                        }
                    }
                    LogRead::Gone(frames) => {
                        self.missed = Some(Missed {
                            frames: Some(frames),
                            restarts: false,
                        });
                        let events = self.lose();
                        self.looks = LOOKS;
                        self.open_history(self.message);
                        events
                    }
                    LogRead::Ended => {
                        self.reducer.end();
                        self.stage = ReaderStage::Over;
                        self.events()
                    }
                },
            };
            if !events.is_empty() {
                return Some(Ok(self.step(TailItem::Events(events))));
            }
        }
    }

    fn fail(&mut self, error: Error) -> Error {
        self.stage = ReaderStage::Over;
        error
    }

    fn step(&self, item: TailItem) -> TailStep {
        TailStep {
            position: self.position(),
            item,
        }
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.reducer.pop()).collect()
    }

    /// Reads an entry of the memory.
    fn take(&mut self, entry: &LogEntry) -> Option<TailItem> {
        match entry {
            LogEntry::Frame(frame) => {
                let id = message_id(frame);
                if id.is_some_and(|id| self.told.contains(&id)) {
                    return None;
                }
                self.reducer.push(frame);
                self.message = id.or(self.message);
            }
            LogEntry::Outcome(outcome) => return Some(TailItem::TurnEnded(outcome.clone())),
        }
        let events = self.events();
        (!events.is_empty()).then_some(TailItem::Events(events))
    }

    /// Ends what was begun, since its rest is missing.
    fn lose(&mut self) -> Vec<Event> {
        self.reducer.end();
        let events = self.events();
        self.reducer = Reducer::default();
        events
    }

    /// Reads a message of the history.
    fn on_history(&mut self, frame: &Frame) -> Vec<Event> {
        let ReaderStage::History(joining) = &mut self.stage else {
            return Vec::new();
        };
        let seam = &mut joining.seam;
        let id = message_id(frame);
        if seam.gone == id {
            seam.gone = None;
        }
        if let Some(after) = seam.after {
            let is_found = id == Some(after);
            if is_found {
                seam.after = None;
            }
            // A message ends when the next one begins.
            self.reducer.push(frame);
            self.last_answer = answer_id(frame).or(self.last_answer.take());
            if is_found && self.is_cut {
                self.reducer.end();
            }
            drop(self.events());
            return Vec::new();
        }
        let is_known = id.is_some_and(|id| seam.known.contains(&id));
        seam.seen |= is_known;
        // What follows a message of the memory comes from there, unless it is a prompt that waited and is gone since before the seam.
        let comes = || id.is_some_and(|id| self.tail.0.log.came_since(seam.from, id));
        if is_known || (seam.seen && (!is_prompt(frame) || comes())) {
            return Vec::new();
        }
        self.reducer.push(frame);
        self.message = id.or(self.message);
        self.last_answer = answer_id(frame).or(self.last_answer.take());
        if self.told.len() == TOLD {
            self.told.pop_front();
        }
        self.told.extend(id);
        self.events()
    }

    /// Whether the memory begins in the middle of the message that was read last.
    fn goes_on_with(&self, from: u64) -> bool {
        let LogRead::Entry(LogEntry::Frame(first)) = self.tail.0.log.read(from) else {
            return false;
        };
        match first.kind() {
            "stream_event" => true,
            "assistant" => self.last_answer.is_some() && answer_id(&first) == self.last_answer,
            _ => false,
        }
    }

    fn history_is_over(&mut self) -> Vec<Event> {
        let ReaderStage::History(joining) = &self.stage else {
            return Vec::new();
        };
        let Seam {
            from, gone, after, ..
        } = &joining.seam;
        let (from, gone, after) = (*from, *gone, *after);
        let is_late = after.is_some() || gone.is_some();
        if is_late && self.looks > 0 && !joining.history.is_empty() {
            self.looks -= 1;
            let events = self.lose();
            self.open_history_in(LOOK_PAUSE, after.or(self.message));
            // Up to the message that it looks for, nothing was told.
            return if after.is_none() { events } else { Vec::new() };
        }
        if after.is_some() && !joining.history.is_empty() {
            self.missed = Some(Missed {
                frames: None,
                restarts: true,
            });
            self.message = None;
            self.reducer = Reducer::default();
            self.open_history(None);
            return Vec::new();
        }
        self.next = from;
        self.stage = ReaderStage::Live;
        self.is_cut = false;
        if gone.is_none() {
            if !self.goes_on_with(from) {
                // A transcript does not say where a message ends. Said now, it is said alike to a reader that begins here.
                self.reducer.end();
            }
            return self.events();
        }
        // The transcript lacks what the memory had.
        self.missed = Some(Missed {
            frames: Some(from),
            restarts: false,
        });
        self.lose()
    }
}

/// The id of a message of the main conversation.
fn message_id(frame: &Frame) -> Option<Uuid> {
    let is_message = matches!(frame.kind(), "assistant" | "user") && frame.parent_tool_use_id().is_none();
    Uuid::try_parse(frame.uuid().filter(|_| is_message)?).ok()
}

/// The id that the API gave an answer of the model in the main conversation.
fn answer_id(frame: &Frame) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct AssistantLine {
        message: AssistantMessage,
    }
    #[derive(serde::Deserialize)]
    struct AssistantMessage {
        id: Option<String>,
    }
    let is_answer = frame.kind() == "assistant" && frame.parent_tool_use_id().is_none();
    if !is_answer {
        return None;
    }
    let line: AssistantLine = serde_json::from_slice(frame.bytes()).ok()?;
    line.message.id
}

/// Whether the frame is a message of the user, and no result of a tool.
fn is_prompt(frame: &Frame) -> bool {
    #[derive(serde::Deserialize)]
    struct UserLine {
        #[serde(rename = "toolUseResult", alias = "tool_use_result")]
        result: Option<serde::de::IgnoredAny>,
    }
    let line: Option<UserLine> = serde_json::from_slice(frame.bytes()).ok();
    frame.kind() == "user" && line.is_none_or(|line| line.result.is_none())
}
