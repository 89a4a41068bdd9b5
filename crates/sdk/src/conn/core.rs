//! The protocol of a session, as a state machine: no I/O, no tasks, no waiting, no clock of its own.
//!
//! [`Core::handle`] takes an input, and [`Core::outputs`] returns what the driver has to do. The driver polls for two more: the
//! next prompt to write ([`Core::poll_send`]) and a stall ([`Core::poll_stall`]). All other methods only read. The driver
//! (`conn/driver.rs`) maps the numbers and ids of the core to readers, waiting callers and callbacks.

mod control_frames;
mod counting;
mod io;
mod open_requests;
mod recent;
mod running_tools;
mod startup;
mod state;
mod turns;
mod watchdog;

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use outrigger_protocol::Frame;
use tracing::Span;

use self::open_requests::OpenRequests;
use self::recent::Recent;
use self::startup::Startup;
use self::turns::{Route, Turns};
use self::watchdog::{Watchdog, goes_on};
use crate::error::{Error, Kind};
use crate::ledger::Ledger;
use crate::lost::Lost;
use crate::outcome::{Outcome, is_result};
use crate::phase::Stall;
use crate::stats::Stats;
use crate::usage::{Meter, TurnUsage};

pub(crate) use self::io::{Input, Output};
pub(crate) use self::open_requests::Serial;
pub use self::state::SessionState;
pub(crate) use self::turns::{Accept, Dispatch, SentPrompt};
pub(crate) use self::watchdog::Patience;

/// How many SDK requests may be open at once.
pub(crate) const MAX_REQUESTS: usize = 1024;

/// How many session ids are remembered.
const MAX_SESSION_IDS: usize = 64;

#[derive(Debug)]
pub(crate) struct Core {
    turns: Turns,
    watchdog: Watchdog,
    startup: Startup,
    ledger: Ledger,
    meter: Meter,
    stats: Stats,
    /// The open SDK requests, by id, with their subtypes.
    pending: HashMap<String, String>,
    open_requests: OpenRequests,
    /// How many bytes of prompts may wait, and how many of CLI requests.
    room: usize,
    state: Option<SessionState>,
    /// The last `commands_changed`.
    commands: Option<Frame>,
    session: Span,
    session_ids: VecDeque<String>,
    /// The id of the last message of the main conversation; empty before the first.
    last_told: String,
    quiet_since: Option<Instant>,
    /// Since when the CLI waits for this program.
    blocked_since: Option<Instant>,
    /// When the last background agent ended, until its turn begins.
    agents_ended: Option<Instant>,
    last_result: Option<Outcome>,
    recent: Recent,
    /// What was open at the end.
    lost: Lost,
    /// Set at the end: the error of all later inputs.
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
            blocked_since: None,
            agents_ended: None,
            last_result: None,
            recent: Recent::default(),
            lost: Lost::default(),
            ended: None,
            out: Vec::new(),
        }
    }

    /// Takes an input.
    ///
    /// # Errors
    /// After the end, beyond a limit, or for a request that is not open. Then nothing has changed.
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
            Input::UsedEarlier(usage) => self.meter.add_earlier(usage),
            Input::ExpectedSessionId(id) => {
                if self.session_ids.is_empty() {
                    self.note_session_id(id);
                }
            }
            Input::Prompt { number, prompt } => self.turns.accept(number, prompt, self.room)?,
            Input::TakeBack { prompt } => {
                self.turns.take_back(prompt);
                self.out.extend([Output::Dispatch, Output::Changed]);
            }
            Input::TakenBack { prompt } => {
                self.turns.cancelled(prompt);
                self.rest_watchdog(now);
                self.out.extend([Output::Dispatch, Output::Changed]);
            }
            Input::HoldBack(is_held) => {
                self.turns.held_back = is_held;
                self.out.extend((!is_held).then_some(Output::Dispatch));
            }
            Input::Closing => self.turns.is_closing = true,
            Input::Gate(true) => self.turns.interrupting += 1,
            Input::Gate(false) => {
                self.turns.interrupting = self.turns.interrupting.saturating_sub(1);
                self.out.push(Output::Dispatch);
            }
            Input::Interrupt => {
                self.turns.interrupt();
                self.out.push(Output::Changed);
            }
            Input::InterruptByReply => self.turns.interrupt_running(),
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
            Input::RunDeadline(time) => {
                self.watchdog.set_run(time, now);
                self.out.push(Output::Watch);
            }
            Input::Request { id, subtype } => self.expect(id, subtype)?,
            Input::Forget { id } => drop(self.pending.remove(id)),
            Input::Claim(serial) => {
                if !self.open_requests.claim(serial) {
                    return Err(Error::new(Kind::NotOpen {
                        id: serial.to_string(),
                    }));
                }
            }
            Input::Written(serial) => {
                self.open_requests.written(serial);
                self.out.push(Output::Changed);
            }
            Input::Leave(serial) => {
                self.open_requests.leave(serial);
                self.out.push(Output::Changed);
            }
            Input::End(error) => self.end(error),
        }
        self.note_blocked(now);
        Ok(())
    }

    /// The outputs since the last call, in order for each reader. Call it after each [`handle`](Self::handle).
    pub(crate) fn outputs(&mut self) -> impl Iterator<Item = Output> {
        self.turns.outputs().chain(self.out.drain(..))
    }

    /// The line of the next prompt that may be sent.
    pub(crate) fn poll_send(&mut self, now: Instant) -> Option<Vec<u8>> {
        let was_busy = self.turns.is_busy();
        let line = self.turns.next_to_send()?;
        if !was_busy {
            self.watchdog.on_sent(now);
        }
        Some(line)
    }

    /// The stall, if a deadline has passed. If the turn is aborted after this, the stall is its cause.
    pub(crate) fn poll_stall(&mut self, now: Instant) -> Option<Stall> {
        // Frames move the deadline without waking anybody.
        let (_, stall) = self.due().filter(|(at, _)| *at <= now)?;
        self.turns.stall(stall);
        self.watchdog.on_stall(stall.phase, now);
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
            "control_cancel_request" => self.on_cancel(frame),
            "keep_alive" => self.startup.on_keep_alive(frame),
            "transcript_mirror" => {}
            _ => self.on_message(frame, now),
        }
    }

    /// Ends the session: all that waits gets `error`.
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
        let (meter, before) = (&mut self.meter, self.turns.current());
        let (route, outcome) = self
            .turns
            .on_frame(frame, child_of, |result| meter.on_result(result));
        if route == Route::Ambient {
            self.out.push(Output::Ambient(frame.clone()));
            self.out.extend(outcome.clone().map(Output::AmbientEnded));
        }
        // The turn that ran may have ended without a result.
        let is_left = outcome.is_none() && before.is_some() && before != self.turns.current();
        let ended = is_left || outcome.is_some();
        if outcome.is_some() {
            self.last_result = outcome;
        }
        if ended {
            self.quiet_since = Some(now);
        }
        if is_left {
            self.watchdog.on_turn_end(now, self.turns.any_sent());
        }
        if self.turns.is_running() {
            self.agents_ended = None;
        }
        let is_watched_anew = self.watchdog.on_frame(frame, self.turns.span(), now);
        if ended {
            // The result of another turn ends nothing that the running turn waits for.
            if !self.turns.is_running() {
                self.watchdog.on_turn_end(now, self.turns.any_sent());
            }
            self.out.push(Output::Dispatch);
        } else if frame.kind() == "command_lifecycle" {
            self.rest_watchdog(now);
            self.out.push(Output::Dispatch);
        } else if is_watched_anew {
            self.out.push(Output::Watch);
        }
    }

    /// A prompt may have ended without a result: if it was the last one, nothing is waited for any more.
    fn rest_watchdog(&mut self, now: Instant) {
        if !self.turns.is_busy() {
            self.watchdog.on_turn_end(now, false);
        }
    }

    /// Stops the clocks while the CLI waits for this program.
    fn note_blocked(&mut self, now: Instant) {
        match self.blocked_since {
            _ if self.ended.is_some() => {}
            None => self.blocked_since = self.host_decides().then_some(now),
            Some(stopped) if !self.host_decides() => {
                self.blocked_since = None;
                self.watchdog.on_unblocked(stopped, now);
                self.quiet_since = self.quiet_since.map(|since| goes_on(since, stopped, now));
                self.out.push(Output::Unblocked);
            }
            Some(_) => {}
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
                self.state = state.or(self.state);
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
}

/// Whether a frame may change the state of the run without [`Output::Changed`]: these wake whoever waits for it once for all
/// frames that came together.
pub(crate) fn changes_run(frame: &Frame) -> bool {
    match frame.kind() {
        "stream_event" | "assistant" | "user" => false,
        "system" | "command_lifecycle" | "control_response" => true,
        _ => is_result(frame),
    }
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod laws;
