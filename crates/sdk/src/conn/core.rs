//! The protocol of a session, as a state machine: no I/O, no tasks, no waiting, no clock of its own.
//!
//! What happens comes in by [`Core::handle`], and what has to be done about it comes out by [`Core::outputs`]. Two things are fetched
//! when there is room or time for them: the next prompt to be written ([`Core::poll_send`]) and what is overdue
//! ([`Core::poll_stall`]). Everything else is a question that changes nothing. The driver around it (`conn/driver.rs`) has the readers,
//! those who wait for replies, and the callbacks, by the numbers and ids that are here.

mod open_requests;
mod recent;
mod running_tools;
mod startup;
mod turns;
mod watchdog;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use outrigger_protocol::drift::{Drift, DriftKind};
use outrigger_protocol::inbound::Message;
use outrigger_protocol::inbound::system::SystemMessage;
use outrigger_protocol::shared::RequestId;
use outrigger_protocol::{Frame, RawJson};
use tracing::Span;

use self::open_requests::{Arrival, OpenRequests};
use self::recent::Recent;
use self::startup::Startup;
use self::turns::{Route, Turns};
use self::watchdog::Watchdog;
use crate::end::FrameNote;
use crate::error::{Error, Kind, Refusal};
use crate::fields::Fields;
use crate::ledger::{Ledger, Tasks};
use crate::lost::Lost;
use crate::outcome::{Outcome, is_result};
use crate::phase::Stall;
use crate::stats::Stats;
use crate::usage::{Meter, SessionUsage, TurnUsage};

pub(crate) use self::open_requests::Serial;
pub(crate) use self::turns::{Accept, Dispatch, SentPrompt};
pub(crate) use self::watchdog::Patience;

/// How many control requests of ours may be unanswered at once.
pub(crate) const MAX_REQUESTS: usize = 1024;

/// How long after the end of its last background agent a CLI that never reports its state may take to begin a turn.
const SETTLE: Duration = Duration::from_secs(2);

/// How many kinds of drift are counted apart; the rest is counted together.
const MAX_DRIFT_KINDS: usize = 256;

/// How many session ids are remembered.
const MAX_SESSION_IDS: usize = 64;

/// All that can happen.
#[derive(Debug)]
pub(crate) enum Input<'a> {
    /// The CLI wrote a line.
    Frame(&'a Frame),
    /// Something of our own is told as if the CLI had written it. It is no sign of the CLI's life.
    Own(&'a Frame),
    /// What was decoded of frames has this many misfits, and parts without a type.
    Decoded { misfits: u64, drift: &'a [Drift] },
    /// The CLI announced that it reports the life of prompts.
    Lifecycle,
    /// The session has this id.
    SessionId(&'a str),
    /// The session is going to have this id, unless the CLI has told one.
    ExpectedSessionId(&'a str),
    /// A prompt is to be sent. `number` is greater than that of any before, and what outputs call it.
    Prompt { number: u64, prompt: Accept },
    /// A prompt is not wanted any more: takes it back if it was not sent.
    TakeBack { prompt: &'a str },
    /// The CLI has taken a prompt back.
    TakenBack { prompt: &'a str },
    /// Prompts wait for something else (`true`), or do no longer.
    HoldBack(bool),
    /// An interrupt begins to be carried out (`true`), or was: no prompt is sent meanwhile.
    Gate(bool),
    /// The CLI is asked to end the turn that runs, or the next one.
    Interrupt,
    /// It refused to end the turn of this number.
    InterruptRefused { turn: Option<u64> },
    /// Enough was waited for the CLI to say whose turn this is.
    Confirm { turn: u64 },
    /// A request of ours is about to be sent.
    Request { id: &'a str, subtype: &'a str },
    /// Nobody waits for the reply to it any more.
    Forget { id: &'a str },
    /// A request of the CLI was decided. Refused if it was decided or withdrawn before: then nothing may be written.
    Claim(Serial),
    /// The answer was handed over to be written.
    Written(Serial),
    /// Another program answers the request.
    Leave(Serial),
    /// It is over, for this reason.
    End(&'a Error),
}

/// What has to be done.
#[derive(Debug)]
pub(crate) enum Output {
    /// This is for the reader of a prompt's turn.
    Deliver { prompt: u64, frame: Frame },
    /// The prompt has ended: the last of it.
    Settle {
        prompt: u64,
        settled: Result<Outcome, Error>,
    },
    /// This belongs to no prompt.
    Ambient(Frame),
    /// A turn of no prompt has ended.
    AmbientEnded(Outcome),
    /// A turn has begun, and the CLI told about the session.
    Init(Frame),
    /// The reply to a request of ours: the last of it.
    Reply {
        id: String,
        reply: Result<RawJson, Error>,
    },
    /// A request of the CLI: have it answered, under the id as the CLI wrote it.
    CliRequest {
        serial: Serial,
        id: RequestId,
        frame: Frame,
    },
    /// A request of the CLI for which there is no room.
    RefuseRequest {
        serial: Serial,
        id: RequestId,
        frame: Frame,
    },
    /// There are too many of those.
    Flood,
    /// Nobody waits for the answer to this request any more.
    Withdrawn(Serial),
    /// A prompt may be ready to be sent.
    Dispatch,
    /// Something else is waited for now.
    Watch,
    /// Nobody here keeps the CLI waiting any more.
    Unblocked,
    /// The state of the run may have changed.
    Changed,
    /// This turn was taken for a prompt's: confirm it, unless the CLI says otherwise soon.
    Unsure(u64),
    /// Nothing more comes.
    Ended,
}

/// What the CLI says it is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionState {
    /// Nothing runs, except perhaps shells in the background.
    Idle,
    /// A turn runs, or background agents do.
    Running,
    /// A question to the host is open.
    RequiresAction,
}

/// How far the run is from its end.
#[derive(Debug)]
pub(crate) struct RunState {
    /// Nothing of ours waits, no turn runs, no agent that would begin another is left.
    pub(crate) is_over: bool,
    /// Only background work keeps the run from ending: no turn runs, none waits, and nobody is asked.
    pub(crate) is_quiet: bool,
    /// Since when the main conversation has said nothing and nobody decided anything; from the first result on.
    pub(crate) quiet_since: Option<Instant>,
    /// Until when a CLI that never reports its state may take to begin the turn in which an agent that has ended reports.
    pub(crate) settles_at: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Core {
    turns: Turns,
    watchdog: Watchdog,
    startup: Startup,
    ledger: Ledger,
    meter: Meter,
    stats: Stats,
    /// The requests of ours that are open, by id, with their subtypes.
    pending: HashMap<String, String>,
    open_requests: OpenRequests,
    /// How many bytes may wait: of prompts, and of the CLI's requests.
    room: usize,
    state: Option<SessionState>,
    /// What the CLI said last about its commands.
    commands: Option<Frame>,
    session: Span,
    session_ids: VecDeque<String>,
    /// The id of the last message of the main conversation; empty before the first.
    last_told: String,
    quiet_since: Option<Instant>,
    /// When the last background agent ended, until the turn begins that this begins.
    agents_ended: Option<Instant>,
    last_result: Option<Outcome>,
    recent: Recent,
    /// What was open at the end.
    lost: Lost,
    /// Set at the end: whoever comes later gets it.
    ended: Option<Error>,
    out: Vec<Output>,
}

impl Core {
    pub(crate) fn new(patience: Patience, room: usize, session: Span, now: Instant) -> Self {
        Self {
            turns: Turns::new(session.clone()),
            watchdog: Watchdog::new(patience, now),
            startup: Startup::default(),
            ledger: Ledger::default(),
            meter: Meter::default(),
            stats: Stats::default(),
            pending: HashMap::new(),
            open_requests: OpenRequests::new(room),
            room,
            state: None,
            commands: None,
            session,
            session_ids: VecDeque::new(),
            last_told: String::new(),
            quiet_since: None,
            agents_ended: None,
            last_result: None,
            recent: Recent::default(),
            lost: Lost::default(),
            ended: None,
            out: Vec::new(),
        }
    }

    /// Takes what happened.
    ///
    /// # Errors
    /// Why that can't be: after the end, beyond a bound, of a request that is not open. Then nothing has changed.
    pub(crate) fn handle(&mut self, input: Input<'_>, now: Instant) -> Result<(), Error> {
        match &self.ended {
            // Readers decode what came before the end.
            Some(ended) if !matches!(input, Input::Decoded { .. }) => return Err(ended.clone()),
            _ => {}
        }
        match input {
            Input::Frame(frame) => self.on_frame(frame, now),
            Input::Own(frame) => {
                if self.turns.on_frame(frame, None, |_| TurnUsage::default()).0 == Route::Ambient {
                    self.out.push(Output::Ambient(frame.clone()));
                }
            }
            Input::Decoded { misfits, drift } => self.note_decoded(misfits, drift),
            Input::Lifecycle => self.turns.has_lifecycle = true,
            Input::SessionId(id) => self.note_session_id(id),
            Input::ExpectedSessionId(id) => {
                if self.session_ids.is_empty() {
                    self.note_session_id(id);
                }
            }
            Input::Prompt { number, prompt } => self.turns.accept(number, prompt, self.room)?,
            Input::TakeBack { prompt } => {
                self.turns.take_back(prompt);
                self.out.push(Output::Dispatch);
            }
            Input::TakenBack { prompt } => {
                self.turns.cancelled(prompt);
                self.out.push(Output::Dispatch);
            }
            Input::HoldBack(is_held) => {
                self.turns.held_back = is_held;
                self.out.extend((!is_held).then_some(Output::Dispatch));
            }
            Input::Gate(true) => self.turns.interrupting += 1,
            Input::Gate(false) => {
                self.turns.interrupting = self.turns.interrupting.saturating_sub(1);
                self.out.push(Output::Dispatch);
            }
            Input::Interrupt => self.turns.interrupt(),
            Input::InterruptRefused { turn } => {
                // Another turn was not asked to end.
                if self.turns.current() == turn {
                    self.turns.interrupt_refused();
                }
            }
            Input::Confirm { turn } => {
                if self.turns.confirm(Some(turn)) {
                    self.watchdog.on_turn_end(now, self.turns.any_sent());
                    self.out.extend([Output::Dispatch, Output::Changed]);
                }
            }
            Input::Request { id, subtype } => self.expect(id, subtype)?,
            Input::Forget { id } => drop(self.pending.remove(id)),
            Input::Claim(serial) => {
                if !self.open_requests.claim(serial) {
                    return Err(Error::new(Kind::NotOpen {
                        id: serial.to_string(),
                    }));
                }
                self.unblocked(now);
            }
            Input::Written(serial) => {
                self.open_requests.written(serial);
                self.out.push(Output::Changed);
            }
            Input::Leave(serial) => {
                self.open_requests.leave(serial);
                self.out.push(Output::Changed);
                self.unblocked(now);
            }
            Input::End(error) => self.end(error),
        }
        Ok(())
    }

    /// What came of it, in its order for each reader. To be taken after each [`handle`](Self::handle).
    pub(crate) fn outputs(&mut self) -> impl Iterator<Item = Output> {
        self.turns.outputs().chain(self.out.drain(..))
    }

    /// The line of the next prompt that may be sent.
    pub(crate) fn poll_send(&mut self, now: Instant) -> Option<Vec<u8>> {
        let line = self.turns.next_to_send()?;
        self.watchdog.on_sent(now);
        Some(line)
    }

    /// What did not happen in time, if it is time for that: then the turn counts as ended for this reason, should it be aborted.
    pub(crate) fn poll_stall(&mut self, now: Instant) -> Option<Stall> {
        // Frames move the deadline without waking anybody.
        let (_, stall) = self.due().filter(|(at, _)| *at <= now)?;
        self.turns.stall(stall);
        Some(stall)
    }

    fn on_frame(&mut self, frame: &Frame, now: Instant) {
        self.stats.frames += 1;
        self.stats.bytes += frame.bytes().len() as u64;
        self.recent.on_frame(frame);
        self.note_drift(frame);
        match frame.kind() {
            "control_response" => self.on_response(frame),
            "control_request" => self.on_request(frame),
            "control_cancel_request" => self.on_cancel(frame, now),
            "keep_alive" => self.startup.on_keep_alive(frame),
            "transcript_mirror" => {}
            _ => self.on_message(frame, now),
        }
    }

    /// Registers a request of ours.
    fn expect(&mut self, id: &str, subtype: &str) -> Result<(), Error> {
        if self.pending.len() >= MAX_REQUESTS {
            return Err(Error::new(Kind::Busy {
                what: "unanswered control requests",
                limit: MAX_REQUESTS,
            }));
        }
        self.pending.insert(id.to_owned(), subtype.to_owned());
        Ok(())
    }

    // ---- Questions ----------------------------------------------------------------------------------------------

    /// Why it is over, if it is.
    pub(crate) fn ended(&self) -> Option<&Error> {
        self.ended.as_ref()
    }

    /// What was open at the end.
    pub(crate) fn lost(&self) -> &Lost {
        &self.lost
    }

    /// What the CLI says it is doing; `None` before it said anything.
    pub(crate) fn state(&self) -> Option<SessionState> {
        self.state
    }

    /// What the CLI said last about its commands, if they changed.
    pub(crate) fn commands(&self) -> Option<&Frame> {
        self.commands.as_ref()
    }

    /// Background work, subagents and tasks.
    pub(crate) fn tasks(&self) -> Tasks {
        self.ledger.tasks()
    }

    pub(crate) fn usage(&self) -> SessionUsage {
        self.meter.session()
    }

    /// The last result, whoever's it was.
    pub(crate) fn last_result(&self) -> Option<&Outcome> {
        self.last_result.as_ref()
    }

    /// The kinds of the last frames.
    pub(crate) fn recent(&self) -> Vec<FrameNote> {
        self.recent.notes()
    }

    /// Whether the CLI, before it has answered `initialize`, waits for hooks of the user's.
    pub(crate) fn runs_hooks(&self) -> bool {
        self.startup.runs_hooks()
    }

    /// The last thing that the CLI said it had done for its start.
    pub(crate) fn startup_mark(&self) -> Option<&str> {
        self.startup.mark()
    }

    /// The number of the turn that is running.
    pub(crate) fn current_turn(&self) -> Option<u64> {
        self.turns.current()
    }

    /// Whether a turn runs, or a prompt waits.
    pub(crate) fn is_mid_turn(&self) -> bool {
        self.turns.any_open() || self.turns.is_running()
    }

    /// The prompts that an interrupt now is about, by number and id.
    pub(crate) fn interruptible(&self) -> Vec<(u64, String)> {
        self.turns.interruptible()
    }

    /// Where a prompt is that was sent; `None` once it has ended.
    pub(crate) fn place(&self, prompt: &str) -> Option<SentPrompt> {
        self.turns.place(prompt)
    }

    /// The requests of the CLI that nobody has decided yet.
    pub(crate) fn undecided(&self) -> impl Iterator<Item = (Serial, &RequestId, &Frame)> {
        self.open_requests.undecided()
    }

    /// One of them.
    pub(crate) fn request(&self, id: &str) -> Option<(Serial, &RequestId, &Frame)> {
        self.open_requests.request(id)
    }

    /// The ids that the conversation had, the current one last.
    pub(crate) fn session_ids(&self) -> impl Iterator<Item = &str> {
        self.session_ids.iter().map(String::as_str)
    }

    /// The id that the conversation has now.
    pub(crate) fn session_id(&self) -> Option<&str> {
        self.session_ids.back().map(String::as_str)
    }

    /// The id of the last message of the main conversation that the CLI told.
    pub(crate) fn last_told(&self) -> Option<&str> {
        Some(self.last_told.as_str()).filter(|uuid| !uuid.is_empty())
    }

    /// What is counted here.
    pub(crate) fn stats(&self) -> Stats {
        Stats {
            open_prompts: self.turns.open(),
            held_prompt_bytes: self.turns.held_bytes(),
            unanswered_by_cli: self.pending.len(),
            unanswered_by_us: self.open_requests.len(),
            ..self.stats.clone()
        }
    }

    /// How far the run is from its end.
    pub(crate) fn run(&self, now: Instant) -> RunState {
        let is_idle = !self.is_mid_turn() && self.open_requests.is_empty();
        let settles_at = self
            .agents_ended
            .filter(|_| self.state.is_none())
            .map(|ended| ended + SETTLE)
            .filter(|at| *at > now);
        let is_still = match self.state {
            // The CLI says so itself.
            Some(state) => state == SessionState::Idle,
            // One that never reports its state: by the tasks that it reported.
            None => settles_at.is_none(),
        };
        RunState {
            is_over: is_idle && is_still && !self.ledger.has_background_agents(),
            is_quiet: is_idle && self.state != Some(SessionState::RequiresAction),
            quiet_since: self.quiet_since,
            settles_at,
        }
    }

    /// Until when something has to happen, and what it means if it does not.
    pub(crate) fn due(&self) -> Option<(Instant, Stall)> {
        let in_turn = self.turns.is_running() || self.turns.any_sent();
        let host_decides =
            self.open_requests.is_deciding() || self.state == Some(SessionState::RequiresAction);
        self.watchdog.due(in_turn, host_decides)
    }

    // ---- What comes in ------------------------------------------------------------------------------------------

    /// The end: whoever waits for anything gets `error`.
    fn end(&mut self, error: &Error) {
        self.lost = Lost {
            prompts: self.turns.open_prompts(),
            tasks: self.ledger.tasks().running().cloned().collect(),
            questions: self.undecided().map(|(_, _, frame)| frame.clone()).collect(),
            ..Lost::default()
        };
        self.ended = Some(error.clone());
        self.turns.fail_all(error);
        self.watchdog.end();
        self.ledger.end();
        let replies = self.pending.drain().map(|(id, _)| Output::Reply {
            id,
            reply: Err(error.clone()),
        });
        self.out.extend(replies);
        self.out.extend(self.open_requests.end().map(Output::Withdrawn));
        self.out.push(Output::Ended);
    }

    fn on_response(&mut self, frame: &Frame) {
        let request = frame.request_id().and_then(|id| self.pending.remove_entry(id));
        let Some((id, request)) = request else {
            // Ours to nobody: an answer to what was given up, or an echo of our own answer.
            self.stats.unmatched_responses += 1;
            return;
        };
        let body = Fields::of(frame).get::<RawJson>("response").unwrap_or_default();
        let body: HashMap<String, RawJson> = body.decode().unwrap_or_default();
        let text = |key: &str| body.get(key).and_then(|value| value.decode::<String>().ok());
        let listed = if request == "initialize" {
            listed(&body)
        } else {
            Vec::new()
        };
        let reply = if frame.subtype() == Some("success") {
            // A plain acknowledgement has no payload.
            Ok(body.get("response").cloned().unwrap_or_default())
        } else {
            let message = text("error").unwrap_or_else(|| "the CLI gave no reason".to_owned());
            Err(Error::new(Kind::Refusal(Refusal {
                request,
                message,
                code: text("error_code"),
            })))
        };
        self.out.push(Output::Reply { id, reply });
        // What the CLI lists as open has come before, unless it was asked of a program that was here earlier.
        for frame in listed {
            if frame.request_id().is_some_and(|id| !self.open_requests.knows(id)) {
                self.on_request(&frame);
            }
        }
    }

    fn on_request(&mut self, frame: &Frame) {
        // An oversized line is no JSON, but its beginning may have shown the id.
        let shown = || frame.request_id().map(RequestId::from);
        let Some(id) = frame.written_request_id().or_else(shown) else {
            self.stats.misfits += 1;
            return;
        };
        let arrival = self.open_requests.arrive(&id, frame);
        let frame = frame.clone();
        self.out.push(match arrival {
            Arrival::New(serial) => Output::CliRequest { serial, id, frame },
            Arrival::TooMany(serial) => Output::RefuseRequest { serial, id, frame },
            Arrival::Flood => Output::Flood,
            Arrival::Duplicate => {
                self.stats.duplicate_requests += 1;
                return;
            }
        });
    }

    fn on_cancel(&mut self, frame: &Frame, now: Instant) {
        if let Some(id) = frame.request_id() {
            let withdrawn = self.open_requests.withdraw(id);
            self.out.extend(withdrawn.map(Output::Withdrawn));
        }
        self.unblocked(now);
    }

    fn on_message(&mut self, frame: &Frame, now: Instant) {
        if matches!(frame.kind(), "assistant" | "user") {
            if let Some(uuid) = frame.uuid().filter(|_| frame.parent_tool_use_id().is_none()) {
                self.last_told.clear();
                self.last_told.push_str(uuid);
            }
        } else if frame.kind() == "system" {
            self.on_system(frame, now);
        } else if is_result(frame) && frame.session_id().is_some() {
            // The `new_conversation_id` of a `conversation_reset` is another id: no other frame ever carries it, and no session
            // can be resumed by it. The `init` that follows has the new one.
            self.note_session_id(frame.session_id().unwrap_or_default());
        }
        let child_of = frame
            .parent_tool_use_id()
            .and_then(|tool| self.ledger.turn_of(tool));
        let meter = &mut self.meter;
        let (route, outcome) = self
            .turns
            .on_frame(frame, child_of, |result| meter.on_result(result));
        if route == Route::Ambient {
            self.out.push(Output::Ambient(frame.clone()));
            self.out.extend(outcome.clone().map(Output::AmbientEnded));
        }
        let ended = outcome.is_some();
        if let Some(outcome) = outcome {
            self.last_result = Some(outcome);
        }
        if ended {
            self.quiet_since = Some(now);
        }
        if self.turns.is_running() {
            self.agents_ended = None;
        }
        let is_watched_anew = self.watchdog.on_frame(frame, self.turns.span(), now);
        if ended {
            self.watchdog.on_turn_end(now, self.turns.any_sent());
        }
        if ended || frame.kind() == "command_lifecycle" {
            self.out.push(Output::Dispatch);
        } else if is_watched_anew {
            self.out.push(Output::Watch);
        }
    }

    /// If nothing is asked any more, the time in which it was does not count.
    fn unblocked(&mut self, now: Instant) {
        if !self.open_requests.is_deciding() {
            self.watchdog.on_unblocked(now);
            self.quiet_since = self.quiet_since.map(|_| now);
            self.out.push(Output::Unblocked);
        }
    }

    fn on_system(&mut self, frame: &Frame, now: Instant) {
        match frame.subtype() {
            Some("hook_started" | "hook_response") => self.startup.on_hook(frame),
            Some("init") => {
                if let Some(id) = frame.session_id() {
                    self.note_session_id(id);
                }
                self.out.push(Output::Init(frame.clone()));
            }
            Some("commands_changed") => {
                self.commands = Some(frame.clone());
            }
            Some("session_state_changed") => {
                let state = match frame.state() {
                    Some("idle") => Some(SessionState::Idle),
                    Some("running") => Some(SessionState::Running),
                    Some("requires_action") => Some(SessionState::RequiresAction),
                    _ => None,
                };
                if let Some(state) = state
                    && self.state.replace(state) == Some(SessionState::RequiresAction)
                {
                    self.unblocked(now);
                }
            }
            _ => {
                let had_agents = self.ledger.has_background_agents();
                self.ledger.on_frame(frame, self.turns.current());
                if had_agents && !self.ledger.has_background_agents() {
                    self.agents_ended = Some(now);
                }
            }
        }
    }

    fn note_session_id(&mut self, id: &str) {
        if self.session_ids.back().is_some_and(|current| current == id) {
            return;
        }
        if self.session_ids.len() == MAX_SESSION_IDS {
            self.session_ids.pop_front();
        }
        self.session.record("session_id", id);
        self.session_ids.push_back(id.to_owned());
    }

    fn note_drift(&mut self, frame: &Frame) {
        let unknown = if frame.flaw().is_some() {
            self.stats.misfits += 1;
            return;
        } else if !Message::KNOWN.contains(&frame.kind()) {
            frame.kind().to_owned()
        } else if frame.kind() == "system"
            && !frame
                .subtype()
                .is_some_and(|tag| SystemMessage::KNOWN.contains(&tag))
        {
            format!("system/{}", frame.subtype().unwrap_or_default())
        } else {
            return;
        };
        note(&mut self.stats.unknown, unknown);
    }

    /// Counts what decoding had no type for.
    fn note_decoded(&mut self, misfits: u64, drift: &[Drift]) {
        self.stats.misfits += misfits;
        // Whole frames of unknown kinds were counted as they came, whoever reads them or not.
        let counted = |drift: &Drift| {
            drift.kind == DriftKind::UnknownTag && matches!(drift.place, "Message" | "SystemMessage")
        };
        for drift in drift.iter().filter(|drift| !counted(drift)) {
            note(&mut self.stats.unknown, drift.to_string());
        }
    }
}

/// The requests that stand beside the answer to `initialize`.
fn listed(body: &HashMap<String, RawJson>) -> Vec<Frame> {
    const LISTS: [&str; 3] = [
        "pending_permission_requests",
        "pending_user_dialog_requests",
        "pending_elicitation_requests",
    ];
    let lists = LISTS.iter().filter_map(|list| body.get(*list));
    let requests = lists.flat_map(|list| list.decode::<Vec<RawJson>>().unwrap_or_default());
    requests
        .flat_map(|request| Frame::from_line(request.get()))
        .filter(|frame| frame.kind() == "control_request")
        .collect()
}

fn note(unknown: &mut BTreeMap<String, u64>, what: String) {
    if unknown.len() >= MAX_DRIFT_KINDS && !unknown.contains_key(&what) {
        *unknown.entry("others".to_owned()).or_default() += 1;
    } else {
        *unknown.entry(what).or_default() += 1;
    }
}

#[cfg(test)]
mod laws;
