//! Where each frame goes. No I/O and no waiting: the reader calls it for every frame, holding one lock.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::drift::{Drift, DriftKind};
use outrigger_protocol::inbound::Message;
use outrigger_protocol::inbound::system::SystemMessage;
use outrigger_protocol::shared::RequestId;
use outrigger_protocol::{Frame, MisfitKind, RawJson};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tracing::Span;

use super::asked::{Arrival, Asked};
use super::beside::Mirroring;
use super::budget::Budget;
use super::changes::Changes;
use super::evidence::Recent;
use super::lane::LaneIn;
use super::startup::Startup;
use super::turns::{Route, Turns};
use super::watchdog::{Patience, Watchdog};
use super::withdrawn::Withdrawn;
use crate::error::{Error, Kind, Refusal};
use crate::fields::Fields;
use crate::ledger::Ledger;
use crate::lost::Lost;
use crate::outcome::{Outcome, is_result};
use crate::phase::Stall;
use crate::stats::Stats;
use crate::usage::{Meter, TurnUsage};

/// How many control requests of ours may be unanswered at once.
pub(crate) const MAX_REQUESTS: usize = 1024;

/// How long after the end of its last background agent a CLI that never reports its state may take to begin a turn.
const SETTLE: Duration = Duration::from_secs(2);

/// How many kinds of drift are counted apart; the rest is counted together.
const MAX_DRIFT_KINDS: usize = 256;

/// How many session ids are remembered.
const MAX_SESSION_IDS: usize = 64;

/// What the caller of [`Router::on_frame`] has to do.
#[derive(Debug)]
pub(crate) enum Action {
    /// A request of the CLI: have it answered, under the id as the CLI wrote it.
    Ask {
        id: String,
        wire_id: RequestId,
        frame: Frame,
        /// Fires when it is withdrawn.
        withdrawn: Withdrawn,
    },
    /// What the CLI lists as still open in its answer to `initialize`: what is not known yet is to be answered.
    Listed(Vec<Frame>),
    /// A request of the CLI for which there is no room.
    Refuse {
        id: String,
        wire_id: RequestId,
        frame: Frame,
    },
    /// There are too many of those.
    Flood,
    /// A prompt may be sent now.
    Dispatch,
    /// Something else is waited for now.
    Watch,
    /// This turn was taken for a prompt's: settle it, unless the CLI says otherwise soon.
    Unsure(u64),
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

#[derive(Debug)]
pub(crate) struct Router {
    pub(crate) turns: Turns,
    watchdog: Watchdog,
    pub(crate) startup: Startup,
    pub(crate) changes: Changes,
    /// Secrets that the process got after it was started.
    pub(crate) secrets: Vec<String>,
    /// What was open at the end.
    pub(crate) lost: Lost,
    /// Whether another session goes on with this one's conversation.
    pub(crate) revived: bool,
    pub(crate) ledger: Ledger,
    pub(crate) meter: Meter,
    pub(crate) stats: Stats,
    pending: HashMap<String, (String, oneshot::Sender<Result<RawJson, Error>>)>,
    pub(crate) asked: Asked,
    /// Whether the watchdog waits for nothing, so that it has to be woken when there is something.
    pub(crate) watchdog_rests: bool,
    taps: Vec<LaneIn>,
    ambient: Vec<LaneIn>,
    pub(crate) state: watch::Sender<Option<SessionState>>,
    pub(crate) init: watch::Sender<Option<Frame>>,
    pub(crate) commands: watch::Sender<Option<Frame>>,
    session_ids: VecDeque<String>,
    /// The id of the last message of the main conversation; empty before the first.
    last_told: String,
    /// Since when the main conversation has said nothing and nobody decided anything; from the first result on.
    pub(crate) quiet_since: Option<Instant>,
    /// When the last background agent ended, until the turn begins that this begins.
    agents_ended: Option<Instant>,
    pub(crate) last_result: Option<Outcome>,
    pub(crate) recent: Recent,
    /// Takes what the CLI writes to its transcripts, if there is a store for it.
    mirror: Option<Arc<dyn Mirroring>>,
    /// Set at the end: whoever comes later gets it.
    pub(crate) ended: Option<Error>,
}

impl Router {
    pub(crate) fn new(
        patience: Patience,
        room: usize,
        span: Span,
        mirror: Option<Arc<dyn Mirroring>>,
    ) -> Self {
        Self {
            watchdog: Watchdog::new(patience, Instant::now()),
            startup: Startup::default(),
            changes: Changes::default(),
            secrets: Vec::new(),
            lost: Lost::default(),
            revived: false,
            turns: Turns::new(span),
            ledger: Ledger::default(),
            meter: Meter::default(),
            stats: Stats::default(),
            pending: HashMap::new(),
            asked: Asked::new(room),
            watchdog_rests: false,
            taps: Vec::new(),
            ambient: Vec::new(),
            state: watch::channel(None).0,
            init: watch::channel(None).0,
            commands: watch::channel(None).0,
            session_ids: VecDeque::new(),
            last_told: String::new(),
            quiet_since: None,
            agents_ended: None,
            last_result: None,
            recent: Recent::default(),
            mirror,
            ended: None,
        }
    }

    pub(crate) fn on_frame(&mut self, frame: &Frame, now: Instant) -> Option<Action> {
        self.stats.frames += 1;
        self.stats.bytes += frame.bytes().len() as u64;
        self.recent.on_frame(frame);
        self.note_drift(frame);
        let is_report = frame.kind() == "transcript_mirror";
        if let Some(mirror) = &self.mirror
            && (is_report || may_be_a_report(frame))
        {
            mirror.offer(frame);
            if is_report {
                return None;
            }
        }
        self.taps.retain_mut(|tap| tap.give(frame));
        match frame.kind() {
            "control_response" => self.on_response(frame),
            "control_request" => self.on_request(frame),
            "control_cancel_request" => {
                self.on_cancel(frame);
                self.on_unblocked(now)
            }
            "keep_alive" => {
                self.startup.on_keep_alive(frame);
                None
            }
            "transcript_mirror" => None,
            _ => self.on_message(frame, now),
        }
    }

    /// Tells something of our own, as if the CLI had. It is no sign of its life.
    pub(crate) fn tell(&mut self, frame: &Frame) {
        self.taps.retain_mut(|tap| tap.give(frame));
        let (route, _) = self.turns.on_frame(frame, None, |_| TurnUsage::default());
        if route == Route::Ambient {
            self.ambient.retain_mut(|lane| lane.give(frame));
        }
    }

    /// Hands the frames to those who read them: once for all that came together, before the lock is let go.
    pub(crate) fn flush(&mut self) {
        let lanes = self.taps.iter_mut().chain(&mut self.ambient);
        lanes.chain(self.turns.lanes()).for_each(LaneIn::flush);
    }

    /// Registers a request of ours.
    pub(crate) fn expect(
        &mut self,
        id: &str,
        subtype: &str,
    ) -> Result<oneshot::Receiver<Result<RawJson, Error>>, Error> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone());
        }
        if self.pending.len() >= MAX_REQUESTS {
            return Err(Error::new(Kind::Busy {
                what: "unanswered control requests",
                limit: MAX_REQUESTS,
            }));
        }
        let (tx, rx) = oneshot::channel();
        self.pending.insert(id.to_owned(), (subtype.to_owned(), tx));
        Ok(rx)
    }

    /// Forgets a request of ours; whether it was still open.
    pub(crate) fn forget(&mut self, id: &str) -> bool {
        self.pending.remove(id).is_some()
    }

    /// Claims the right to answer a request: true once, and never after it was withdrawn.
    pub(crate) fn claim_answer(&mut self, id: &str) -> bool {
        let claimed = self.asked.claim(id);
        if claimed && !self.asked.is_deciding() {
            self.unblocked(Instant::now());
        }
        claimed
    }

    /// The same in the place of a callback, which is stopped.
    pub(crate) fn take_over(&mut self, id: &str) -> bool {
        let claimed = self.asked.take_over(id);
        if claimed && !self.asked.is_deciding() {
            self.unblocked(Instant::now());
        }
        claimed
    }

    /// Leaves a request to be answered by others.
    pub(crate) fn leave(&mut self, id: &str) {
        self.asked.leave(id);
        if !self.asked.is_deciding() {
            self.unblocked(Instant::now());
        }
    }

    pub(crate) fn tap(&mut self, mut lane: LaneIn) {
        if self.ended.is_some() {
            lane.close()
        } else {
            self.taps.push(lane)
        }
    }

    pub(crate) fn listen(&mut self, mut lane: LaneIn) {
        if self.ended.is_some() {
            lane.close()
        } else {
            self.ambient.push(lane)
        }
    }

    /// The ids that the conversation had, the current one last.
    pub(crate) fn session_ids(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.session_ids.iter().map(String::as_str)
    }

    /// The id of the last message of the main conversation that the CLI told.
    pub(crate) fn last_told(&self) -> Option<&str> {
        Some(self.last_told.as_str()).filter(|uuid| !uuid.is_empty())
    }

    pub(crate) fn stats(&self, budget: &Budget) -> Stats {
        let mirrored = self.mirror.as_ref().map(|mirror| mirror.counts());
        Stats {
            held_bytes: budget.held(),
            spilled_bytes: budget.spilled(),
            lagging_frames: budget.waiting(),
            left_out: budget.left_out(),
            open_prompts: self.turns.open(),
            held_prompt_bytes: self.turns.held_bytes(),
            unanswered_by_cli: self.pending.len(),
            unanswered_by_us: self.asked.len(),
            mirrored_entries: mirrored.as_ref().map_or(0, |mirrored| mirrored.entries),
            mirror_errors: mirrored.as_ref().map_or(0, |mirrored| mirrored.errors),
            mirror_waiting_bytes: mirrored.as_ref().map_or(0, |mirrored| mirrored.waiting_bytes),
            store_lag: mirrored.and_then(|mirrored| mirrored.lag),
            ..self.stats.clone()
        }
    }

    /// Whether the run is over: nothing of ours waits, no turn runs, no agent that would begin another is left.
    pub(crate) fn is_run_over(&self) -> bool {
        if self.turns.any_open() || self.turns.is_running() || !self.asked.is_empty() {
            return false;
        }
        match *self.state.borrow() {
            // The CLI says so itself.
            Some(state) => state == SessionState::Idle && !self.ledger.has_background_agents(),
            // One that never reports its state: by the tasks that it reported.
            None => !self.ledger.has_background_agents() && self.settles_at().is_none(),
        }
    }

    /// Until when a CLI that never reports its state may take to begin the turn in which an agent that has ended reports.
    pub(crate) fn settles_at(&self) -> Option<Instant> {
        let is_told = self.state.borrow().is_some();
        let at = self.agents_ended.filter(|_| !is_told)? + SETTLE;
        (at > Instant::now()).then_some(at)
    }

    /// Whether only background work keeps the run from ending: no turn runs, none waits, and nobody is asked.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.turns.is_running()
            && !self.turns.any_open()
            && self.asked.is_empty()
            && *self.state.borrow() != Some(SessionState::RequiresAction)
    }

    /// The end: whoever waits for anything gets `error`.
    pub(crate) fn end(&mut self, error: &Error) {
        for (_, (_, waiting)) in self.pending.drain() {
            // The caller may have gone; then nobody waits.
            let _ = waiting.send(Err(error.clone()));
        }
        if self.ended.is_none() {
            let tasks = self.ledger.tasks();
            self.lost = Lost {
                prompts: self.turns.open_prompts(),
                tasks: tasks.running().cloned().collect(),
                questions: self.asked.undecided(),
                ..Lost::default()
            };
        }
        self.ended.get_or_insert_with(|| error.clone());
        self.asked.end();
        self.turns.fail_all(error);
        self.watchdog.tools.clear();
        self.ledger.end();
        for mut lane in self.taps.drain(..).chain(self.ambient.drain(..)) {
            lane.close();
        }
    }

    fn on_response(&mut self, frame: &Frame) -> Option<Action> {
        let waiting = frame.request_id().and_then(|id| self.pending.remove(id));
        let Some((request, waiting)) = waiting else {
            // Ours to nobody: an answer to what was given up, or an echo of our own answer.
            self.stats.unmatched_responses += 1;
            return None;
        };
        let body = Fields::of(frame).get::<RawJson>("response").unwrap_or_default();
        let body: HashMap<String, RawJson> = body.decode().unwrap_or_default();
        let text = |key: &str| body.get(key).and_then(|value| value.decode::<String>().ok());
        let listed = if request == "initialize" {
            listed(&body)
        } else {
            Vec::new()
        };
        let outcome = if frame.subtype() == Some("success") {
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
        // The caller may have gone meanwhile; then nobody waits.
        let _ = waiting.send(outcome);
        (!listed.is_empty()).then_some(Action::Listed(listed))
    }

    /// A request that the CLI lists as open. It has come before unless it was asked of a program that was here earlier.
    pub(crate) fn on_listed(&mut self, frame: &Frame) -> Option<Action> {
        let id = frame.request_id()?;
        if self.asked.is_open(id) || self.asked.was_answered(id) {
            return None;
        }
        self.on_request(frame)
    }

    fn on_request(&mut self, frame: &Frame) -> Option<Action> {
        // An oversized line is no JSON, but its beginning may have shown the id.
        let shown = || frame.request_id().map(RequestId::from);
        let Some(wire_id) = frame.written_request_id().or_else(shown) else {
            self.stats.misfits += 1;
            return None;
        };
        let id = frame.request_id().unwrap_or(wire_id.as_str()).to_owned();
        let frame = frame.clone();
        match self.asked.arrive(&id, &wire_id, frame.bytes().len()) {
            Arrival::New => {
                let withdrawn = self.asked.keep(&id, &frame);
                Some(Action::Ask {
                    id,
                    wire_id,
                    frame,
                    withdrawn,
                })
            }
            Arrival::TooMany => Some(Action::Refuse { id, wire_id, frame }),
            Arrival::Flood => Some(Action::Flood),
            Arrival::Duplicate => {
                self.stats.duplicate_requests += 1;
                None
            }
        }
    }

    fn on_cancel(&mut self, frame: &Frame) {
        if let Some(id) = frame.request_id() {
            self.asked.withdraw(id);
        }
    }

    fn on_message(&mut self, frame: &Frame, now: Instant) -> Option<Action> {
        if let Some(mirror) = self.mirror.as_ref().filter(|_| is_result(frame)) {
            // Whoever is told of the turn's end waits for this.
            mirror.want();
        }
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
        let (frames, outcome_of_nobody) = self.turns.disowned();
        for frame in &frames {
            self.ambient.retain_mut(|lane| lane.give(frame));
        }
        if let Some(outcome) = outcome_of_nobody {
            self.ambient
                .iter_mut()
                .for_each(|lane| lane.push_outcome(&outcome));
        }
        if route == Route::Ambient {
            self.ambient.retain_mut(|lane| lane.give(frame));
            if let Some(outcome) = &outcome {
                let ambient = self.ambient.iter_mut();
                ambient.for_each(|lane| lane.push_outcome(outcome));
            }
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
        let watch = self.watch(frame, now, ended);
        if let Some(number) = self.turns.new_guess() {
            return Some(Action::Unsure(number));
        }
        if ended || frame.kind() == "command_lifecycle" {
            Some(Action::Dispatch)
        } else {
            watch.then_some(Action::Watch)
        }
    }

    /// Enough was waited for the CLI to say that this turn's result is nobody's; whether that changes anything.
    pub(crate) fn confirm(&mut self, number: u64, now: Instant) -> bool {
        let confirmed = self.turns.confirm(Some(number));
        self.flush();
        if confirmed {
            self.watchdog.on_turn_end(now, self.turns.any_sent());
        }
        confirmed
    }

    /// Tells the watchdog; whether it has something else to wait for now.
    fn watch(&mut self, frame: &Frame, now: Instant, ended: bool) -> bool {
        let blocked = self.watchdog.tools.is_running();
        self.watchdog.tools.on_frame(frame, self.turns.span());
        if ended {
            self.watchdog.on_turn_end(now, self.turns.any_sent());
            return true;
        }
        // A subagent's life is not the conversation's: it is a tool that runs.
        frame.parent_tool_use_id().is_none() && self.watchdog.on_frame(frame, now)
            || blocked && !self.watchdog.tools.is_running()
    }

    /// Nothing is asked any more; the time in which it was does not count.
    fn unblocked(&mut self, now: Instant) {
        self.watchdog.on_unblocked(now);
        self.quiet_since = self.quiet_since.map(|_| now);
    }

    fn on_unblocked(&mut self, now: Instant) -> Option<Action> {
        if self.asked.is_deciding() {
            return None;
        }
        self.unblocked(now);
        self.watchdog_rests.then_some(Action::Watch)
    }

    /// Until when something has to happen, and what it means if it does not.
    pub(crate) fn due(&self) -> Option<(Instant, Stall)> {
        let in_turn = self.turns.is_running() || self.turns.any_sent();
        let host_decides =
            self.asked.is_deciding() || *self.state.borrow() == Some(SessionState::RequiresAction);
        self.watchdog.due(in_turn, host_decides)
    }

    /// The line of the next prompt that may be sent.
    pub(crate) fn next_to_send(&mut self, now: Instant) -> Option<Vec<u8>> {
        let (_, line) = self.turns.next_to_send()?;
        self.watchdog.on_sent(now);
        Some(line)
    }

    fn on_system(&mut self, frame: &Frame, now: Instant) {
        match frame.subtype() {
            Some("hook_started" | "hook_response") => self.startup.on_hook(frame),
            Some("status") => self.changes.on_status(frame),
            Some("init") => {
                if let Some(id) = frame.session_id() {
                    self.note_session_id(id);
                }
                self.changes.on_init(frame);
                self.init.send_replace(Some(frame.clone()));
            }
            Some("commands_changed") => {
                self.commands.send_replace(Some(frame.clone()));
            }
            Some("session_state_changed") => {
                let state = match frame.state() {
                    Some("idle") => Some(SessionState::Idle),
                    Some("running") => Some(SessionState::Running),
                    Some("requires_action") => Some(SessionState::RequiresAction),
                    _ => None,
                };
                if state.is_some() {
                    let before = self.state.send_replace(state);
                    if before == Some(SessionState::RequiresAction) {
                        self.unblocked(now);
                    }
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

    /// Notes the id that the session is going to have, unless the CLI has told one.
    pub(crate) fn expect_session_id(&mut self, id: &str) {
        if self.session_ids.is_empty() {
            self.note_session_id(id);
        }
    }

    pub(crate) fn note_session_id(&mut self, id: &str) {
        if self.session_ids.back().is_some_and(|current| current == id) {
            return;
        }
        if self.session_ids.len() == MAX_SESSION_IDS {
            self.session_ids.pop_front();
        }
        self.turns.session.record("session_id", id);
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
    pub(crate) fn note_decoded(&mut self, drift: &[Drift], misfit: bool) {
        self.stats.misfits += u64::from(misfit);
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

/// Whether it is a line that was too long to be kept, and whose beginning does not say what it was.
fn may_be_a_report(frame: &Frame) -> bool {
    frame.kind().is_empty()
        && frame
            .flaw()
            .is_some_and(|flaw| matches!(flaw.kind, MisfitKind::Oversized(_)))
}

fn note(unknown: &mut BTreeMap<String, u64>, what: String) {
    if unknown.len() >= MAX_DRIFT_KINDS && !unknown.contains_key(&what) {
        *unknown.entry("others".to_owned()).or_default() += 1;
    } else {
        *unknown.entry(what).or_default() += 1;
    }
}
