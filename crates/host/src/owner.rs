//! The task that owns a session while it has something to do.
//!
//! It writes first and acts then. When the log fails, it ends the process and itself: the next prompt begins from what the log has.

mod call;
mod output;
mod process;
mod requests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use outrigger::protocol::shared::{PermissionResult, RequestId};
use outrigger::protocol::{Frame, RawJson};
use outrigger::{
    Ambient, ElicitationResult, Frames, Lag, Session, SessionId, SessionUsage, Tokens, UserDialogResult,
};
use outrigger_fleet::GuardedTurn;
use serde_json::{Value, json};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

pub(crate) use self::call::give_up_interrupted;
use crate::admission::{self, BudgetQueue, Granted, RunningTurn, Turns};
use crate::approval::{Approval, ApprovalKind, ApprovalState};
use crate::clock::now;
use crate::core::{Admission, CoreEffect, Input, LiveState, Process, WaitingCall, transition};
use crate::error::{HostError, Result};
use crate::event::{Delivery, SessionState};
use crate::handler::HookRequest;
use crate::log::{NewEvent, SqliteLog, Update, Write};
use crate::memory;
use crate::policy::HostPolicy;
use crate::spares::Spares;
use crate::wire;
use crate::workspace;

/// The most frames that are appended at once.
const BATCH: usize = 64;

/// The most requests for people that wait for the owner.
const REQUESTS: usize = 64;

/// How long a process that was started for a decision has to ask about its call. The CLI asks first of all, and once its MCP servers have started.
const ASKS_WITHIN: Duration = Duration::from_secs(120);

/// How long a start waits before it tries a lease again.
const LEASE_POLL: Duration = Duration::from_millis(200);

/// How long a start waits for a place before it asks again for one.
const ROOM_POLL: Duration = Duration::from_millis(250);

/// How long the owner keeps what a process still said, once the process has ended: one that wrote without end has left more than anybody waits for.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Why something that takes long ended when a client stopped or interrupted the session.
const STOPPED: &str = "stopped by a client";

/// Something that a client wants now.
pub(crate) enum Command {
    Interrupt(oneshot::Sender<Result<()>>),
    /// A request for the CLI. A process is started for it if there is none.
    Ask(ClientControlRequest),
    Stop(oneshot::Sender<()>),
    /// The log has another model or permission mode.
    Apply(Update),
    /// The host closes: the process ends, and prompts that wait stay in the log.
    Shutdown(oneshot::Sender<()>),
}

impl Command {
    /// Whether a start, or the record of the files before a turn, ends for it, since the owner takes no command meanwhile.
    pub(crate) fn ends_start(&self) -> bool {
        matches!(self, Self::Stop(_) | Self::Interrupt(_))
    }
}

/// A control request of a client, and who waits for the answer.
pub(crate) struct ClientControlRequest {
    pub(crate) subtype: &'static str,
    pub(crate) fields: Value,
    /// Whether the request must not come in the way of a turn.
    pub(crate) needs_rest: bool,
    pub(crate) reply: oneshot::Sender<Result<RawJson>>,
}

/// What the host and the owner of a session share.
pub(crate) struct Contact {
    pub(crate) wake: Notify,
    /// How often the session was woken, so that no owner ends with news unread.
    pub(crate) calls: AtomicU64,
    pub(crate) seen: AtomicU64,
    pub(crate) commands: mpsc::Sender<Command>,
    /// Whether a client wants a process.
    pub(crate) is_wanted: AtomicBool,
    /// Whether the process has nothing to do, and since which tick of the host.
    pub(crate) is_idle: AtomicBool,
    pub(crate) idle_since: AtomicU64,
    /// Whether the process was told to give its place to another session, and has the place still.
    pub(crate) is_leaving: AtomicBool,
    pub(crate) release: Notify,
    /// Stops and interrupts that wait. They end a start, and the record of the files before a turn.
    pub(crate) stops: watch::Sender<usize>,
}

impl Contact {
    /// Puts a command into the queue of the owner.
    pub(crate) fn tell(&self, command: Command) -> Result<(), mpsc::error::TrySendError<Command>> {
        let is_stop = command.ends_start();
        if is_stop {
            self.stops.send_modify(|stops| *stops += 1);
        }
        let sent = self.commands.try_send(command);
        if is_stop && sent.is_err() {
            self.stop_taken();
        }
        sent
    }

    /// The owner has a stop or an interrupt, or none will come.
    pub(crate) fn stop_taken(&self) {
        self.stops.send_modify(|stops| *stops = stops.saturating_sub(1));
    }
}

/// What all owners share.
pub(crate) struct OwnerContext {
    pub(crate) log: Arc<SqliteLog>,
    pub(crate) policy: HostPolicy,
    /// Those who wait get them in the order in which they asked.
    pub(crate) places: Arc<Semaphore>,
    /// How many starts wait for a place.
    pub(crate) waiting_starts: Arc<AtomicUsize>,
    pub(crate) spares: Arc<Spares>,
    pub(crate) ticks: AtomicU64,
    pub(crate) turns: Arc<Turns>,
    pub(crate) budget_queue: BudgetQueue,
    /// Held while a worktree is planned, and while git makes or removes one.
    pub(crate) worktrees: tokio::sync::Mutex<()>,
    /// Whether the host closes.
    pub(crate) closing: watch::Sender<bool>,
    /// Asks the owner that was idle for longest to end its process, unless a process ends already for each start that waits.
    pub(crate) make_room: Box<dyn Fn() + Send + Sync>,
}

/// The place of a session's process among those of the host.
struct Place {
    /// `None` only while it is dropped.
    permit: Option<OwnedSemaphorePermit>,
    contact: Arc<Contact>,
}

impl Drop for Place {
    fn drop(&mut self) {
        // Until then it is one that is about to be free.
        drop(self.permit.take());
        self.contact.is_leaving.store(false, Ordering::Release);
    }
}

struct RunningProcess {
    session: Session,
    frames: Frames,
    turn: Option<oneshot::Receiver<TurnEnd>>,
    /// The turn of a call that waited, until it is taken up.
    ambient: Option<Ambient>,
    /// Gives that turn what was granted, once the process goes on with it.
    goes_on: Option<oneshot::Sender<Granted>>,
    /// Whether the process can ask about a call that an earlier process left open.
    may_ask: bool,
    /// What clients asked of the process.
    asked: JoinSet<ControlResult>,
    /// Each request of a client that waits for the CLI's answer has a clone.
    asks: Arc<()>,
    place: Place,
}

/// How a turn ended: with the call that it left open, if it did; or with an error, and what has become of the process.
type TurnEnd = Result<Option<String>, (String, AfterTurn)>;

/// What a turn that failed leaves of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterTurn {
    Running,
    Ended,
    /// The turn exceeded the budget, and could not be interrupted.
    Killed,
}

impl AfterTurn {
    fn of(error: &outrigger::Error) -> Self {
        match error.end() {
            Some(_) => Self::Ended,
            None => Self::Running,
        }
    }
}

/// What became of a request of a client, or of a change that clients may make.
struct ControlResult {
    /// The event of the request; none of a change.
    id: Option<Uuid>,
    result: Result<RawJson, String>,
    /// What holds for later processes, too, if the CLI did it.
    update: Option<Update>,
}

pub(crate) struct Owner {
    shared: Arc<OwnerContext>,
    id: SessionId,
    contact: Arc<Contact>,
    state: LiveState,
    running: Option<RunningProcess>,
    prompts: HashMap<Uuid, RawJson>,
    /// Up to here it knows what clients sent: what waits of it is in `prompts` and `requests`.
    read_to: u64,
    /// Requests of clients that have no response yet: their events, and their ids.
    requests: HashMap<Uuid, String>,
    /// What the process has used, as far as the log knows.
    counted: SessionUsage,
    /// The answer to whether the next turn may begin, while it is waited for. Dropped, nobody waits any more.
    admission: Option<JoinSet<Result<Granted, String>>>,
    /// What the next turn has.
    granted: Granted,
    /// The turn of `State::has_turn`.
    turn: Option<RunningTurn>,
    /// The ids of requests that are for people, from the permission handler.
    for_people: (mpsc::Sender<String>, mpsc::Receiver<String>),
    /// The call of `State::call`.
    call: Option<Approval>,
    /// When the process that was started for the decision has to have asked about the call.
    offered_until: Option<Instant>,
    /// The call that the process has taken up, until it has the decision.
    taken_up: Option<call::TakenUp>,
    /// The request of the process that got the decision about that call.
    given: Option<String>,
    /// Calls that are about to be made, from the hook.
    hooks: (mpsc::Sender<HookRequest>, mpsc::Receiver<HookRequest>),
    /// Requests about tools whose handler has not said yet that they are for people. The operator's code may decide.
    undecided: HashMap<String, (Write, Approval)>,
    /// Requests that are for people, and whose frames have not come yet.
    early: HashSet<String>,
    /// The approvals that wait for a person, and when they expire.
    expiring: VecDeque<(Instant, Approval)>,
    /// When the memory is measured next.
    measure_at: Instant,
    /// Since when the process has nothing to do.
    idle_from: Option<Instant>,
    /// Whether the last thing that was done was to take in what the process says.
    had_frames: bool,
    /// Why the last try to begin a turn or to start a process failed: nothing is tried before the session is woken.
    failure: Option<String>,
}

/// What the loop of an owner woke up for.
enum Woke {
    Frame(Option<Result<Frame, Lag>>),
    Turn(TurnEnd),
    Replied(ControlResult),
    Command(Option<Command>),
    News,
    /// Another session needs the place of the process.
    MakeRoom,
    /// The process was idle for long enough.
    Release,
    /// The process is not at work any more.
    AtRest,
    Admitted(Result<Granted, String>),
    Expire,
    Measure,
    ForPeople(String),
    Hook(HookRequest),
    NotAsked,
}

impl Owner {
    pub(crate) fn new(shared: Arc<OwnerContext>, id: SessionId, contact: Arc<Contact>) -> Self {
        Self {
            shared,
            id,
            contact,
            state: LiveState::default(),
            running: None,
            prompts: HashMap::new(),
            read_to: 0,
            requests: HashMap::new(),
            counted: SessionUsage::default(),
            admission: None,
            granted: Granted::default(),
            turn: None,
            for_people: mpsc::channel(REQUESTS),
            call: None,
            offered_until: None,
            taken_up: None,
            given: None,
            hooks: mpsc::channel(REQUESTS),
            undecided: HashMap::new(),
            early: HashSet::new(),
            expiring: VecDeque::new(),
            measure_at: Instant::now(),
            idle_from: None,
            had_frames: false,
            failure: None,
        }
    }

    /// Runs until nothing is left to do and there is no process.
    pub(crate) async fn run(&mut self, commands: &mut mpsc::Receiver<Command>) -> Result<()> {
        let result = self.work(commands).await;
        if let Some(running) = self.running.take() {
            // The log failed: the process must not do what nobody will know of.
            drop(running.session.kill().await);
        }
        result
    }

    async fn work(&mut self, commands: &mut mpsc::Receiver<Command>) -> Result<()> {
        let waiting = self.shared.log.waiting(&self.id, 0).await?;
        let call = self.recover_call(&waiting);
        let mut ended = Vec::new();
        for received in waiting.processing {
            if received.kind == "user" {
                // The host may have been killed between the result and the mark.
                match call == WaitingCall::None && self.shared.log.has_result(&self.id, &received).await? {
                    true => ended.push(Write::Mark(received.id, Delivery::Processed)),
                    false => self.state.running = Some(received.id),
                }
            } else if let Ok(request) = wire::request(&received.payload) {
                self.requests.insert(received.id, request.request_id);
            }
        }
        let record = self.shared.log.session(&self.id).await?;
        let was_busy = matches!(
            record.state,
            SessionState::Starting | SessionState::Running | SessionState::RequiresAction
        );
        ended.extend(self.lose_requests());
        self.feed(Input::Recovered { was_busy, call }, ended).await?;
        self.read_news().await?;
        loop {
            // Without a process it waits only to be asked, or for the time when nobody may decide any more.
            let may_expire = self.state.call == WaitingCall::Waits && !self.expiring.is_empty();
            if self.running.is_none() && self.admission.is_none() && !may_expire {
                // A client may want a process.
                match commands.try_recv() {
                    Ok(command) => self.command(Some(command)).await?,
                    Err(_) => return Ok(()),
                }
                continue;
            }
            let works = self.works();
            if works != self.state.works {
                self.feed(Input::Works(works), Vec::new()).await?;
                continue;
            }
            let running = self.running.as_ref();
            let asks = running.map_or(0, |running| Arc::strong_count(&running.asks));
            let is_idle = asks == 1
                && !works
                && !self.state.is_busy()
                && self.state.queue.is_empty()
                && self.state.open.is_empty()
                && self.requests.is_empty();
            if !is_idle {
                self.idle_from = None;
            } else if self.idle_from.is_none() {
                self.idle_from = Some(Instant::now());
                let tick = self.shared.ticks.fetch_add(1, Ordering::Relaxed);
                self.contact.idle_since.store(tick, Ordering::Relaxed);
            }
            self.contact.is_idle.store(is_idle, Ordering::Release);
            let woke = self.wait(commands, is_idle).await;
            // A session that has no process, or waits for a place, has none to give. Chosen once, it would be chosen again and again.
            self.contact.is_idle.store(false, Ordering::Release);
            self.had_frames = matches!(woke, Woke::Frame(_));
            match woke {
                Woke::Frame(frame) => self.frames(frame).await?,
                Woke::Turn(outcome) => self.turn_ended(outcome).await?,
                Woke::Replied(reply) => self.reply(reply).await?,
                Woke::News => self.read_news().await?,
                Woke::Release => self.feed(Input::Release, Vec::new()).await?,
                Woke::MakeRoom => {
                    if is_idle && self.contact.is_leaving.load(Ordering::Acquire) {
                        self.feed(Input::Release, Vec::new()).await?;
                    }
                    // If it did not end, it is needed again.
                    self.contact.is_leaving.store(false, Ordering::Release);
                }
                Woke::AtRest => {}
                Woke::Command(command) => self.command(command).await?,
                Woke::Admitted(answer) => self.admitted(answer).await?,
                Woke::ForPeople(request) => self.ask_people(request).await?,
                Woke::Hook(asked) => self.hook(asked).await?,
                Woke::NotAsked => {
                    let why = "the process did not ask about the call";
                    self.feed(Input::Dropped(why), Vec::new()).await?;
                }
                Woke::Expire => self.expire().await?,
                Woke::Measure => self.measure().await?,
            }
        }
    }

    /// Whether the process is at work, for a prompt or in the background. Commands in the background do not count: they may run for ever.
    fn works(&self) -> bool {
        let running = self.running.as_ref();
        self.state.process == Process::Up
            && running.is_some_and(|running| {
                let at_rest = running.session.wait_run_end(None::<Duration>).now_or_never();
                at_rest.is_none()
            })
    }

    async fn wait(&mut self, commands: &mut mpsc::Receiver<Command>, is_idle: bool) -> Woke {
        let is_measured = self.running.is_some() && self.shared.policy.memory.is_some();
        let (frames, turn, asked, at_work) = match &mut self.running {
            Some(running) => (
                Some(&mut running.frames),
                running.turn.as_mut(),
                Some(&mut running.asked),
                Some(&running.session).filter(|_| self.state.works),
            ),
            None => (None, None, None, None),
        };
        let frame = async {
            match frames {
                Some(frames) => frames.next().await,
                None => std::future::pending().await,
            }
        };
        let turn = async {
            match turn {
                // Its task ends only with a result.
                Some(turn) => turn.await.unwrap_or(Ok(None)),
                None => std::future::pending().await,
            }
        };
        let replied = async {
            match asked {
                Some(asked) => match asked.join_next().await {
                    Some(Ok(reply)) => reply,
                    // The task of a request neither panics nor is it aborted while the process runs.
                    Some(Err(_)) | None => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        };
        let admitted = async {
            match &mut self.admission {
                Some(admission) => match admission.join_next().await {
                    Some(Ok(answer)) => answer,
                    Some(Err(error)) => Err(error.to_string()),
                    None => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        };
        let at_rest = async {
            match at_work {
                Some(session) => drop(session.wait_run_end(None::<Duration>).await),
                None => std::future::pending().await,
            }
        };
        let expires = self.expiring.front().map(|(at, _)| *at);
        let offered = self.offered_until;
        let (contact, measure_at) = (&self.contact, self.measure_at);
        // What the process says meanwhile is no work.
        let idle_for = self.idle_from.map(|from| from.elapsed()).unwrap_or_default();
        let idle_left = self.shared.policy.idle.saturating_sub(idle_for);
        // What must not wait for the end of what a process says.
        let urgent = async {
            tokio::select! {
                biased;
                command = commands.recv() => Woke::Command(command),
                () = contact.wake.notified() => Woke::News,
                () = tokio::time::sleep_until(expires.unwrap_or(measure_at)), if expires.is_some() => Woke::Expire,
                () = tokio::time::sleep_until(measure_at), if is_measured => Woke::Measure,
                () = contact.release.notified() => Woke::MakeRoom,
                () = tokio::time::sleep(idle_left), if is_idle => Woke::Release,
            }
        };
        let mut urgent = std::pin::pin!(urgent);
        // A process that writes without end has a frame each time.
        if self.had_frames
            && let Some(woke) = urgent.as_mut().now_or_never()
        {
            return woke;
        }
        tokio::select! {
            biased;
            frame = frame => Woke::Frame(frame),
            outcome = turn => Woke::Turn(outcome),
            reply = replied => Woke::Replied(reply),
            woke = urgent => woke,
            answer = admitted => Woke::Admitted(answer),
            Some(request) = self.for_people.1.recv() => Woke::ForPeople(request),
            Some(asked) = self.hooks.1.recv() => Woke::Hook(asked),
            () = tokio::time::sleep_until(offered.unwrap_or(measure_at)), if offered.is_some() => Woke::NotAsked,
            () = at_rest => Woke::AtRest,
        }
    }

    async fn write(&self, steps: Vec<Write>) -> Result<()> {
        if steps.is_empty() {
            return Ok(());
        }
        self.shared.log.write(&self.id, steps).await.map(drop)
    }

    /// One input, and what follows from it: first everything that is written, in one transaction with `steps`; then what is done.
    async fn feed(&mut self, input: Input, mut steps: Vec<Write>) -> Result<()> {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            if matches!(input, Input::Exited) {
                steps.extend(self.lose_requests());
            }
            // Counted now, and not when it was asked for: the end of the process before it may come first, and with it that of another turn.
            if matches!(input, Input::Admitted)
                && self.state.admission == Admission::Waiting
                && !self.begin_turn()
            {
                self.granted = Granted::default();
                continue;
            }
            let (state, effects) = transition(std::mem::take(&mut self.state), input);
            self.state = state;
            if !self.state.has_turn() {
                self.turn = None;
            } else if self.state.works && self.turn.is_none() {
                self.turn = Some(self.shared.turns.join());
            }
            let mut steps = std::mem::take(&mut steps);
            let mut acts = Vec::new();
            for effect in effects {
                match effect {
                    CoreEffect::Mark(id, delivery) => steps.push(Write::Mark(id, delivery)),
                    CoreEffect::Supersede => steps.push(Write::SupersedeAll),
                    CoreEffect::Enter(state) => steps.push(Write::Enter(state)),
                    CoreEffect::Apply => steps.extend(self.call.as_ref().map(|call| Write::Applied(call.id))),
                    CoreEffect::GiveUp(why) => {
                        self.give_back();
                        steps.extend(self.call.take().map(|call| Write::GiveUp {
                            id: call.id,
                            reason: why.to_owned(),
                        }));
                    }
                    act => acts.push(act),
                }
            }
            self.write(steps).await?;
            // In boxes: the future of a start is large, and this one is a part of almost all others of the session.
            for act in acts {
                match act {
                    CoreEffect::Admit => inputs.extend(Box::pin(self.admit()).await?),
                    CoreEffect::Yield => (self.admission, self.granted) = (None, Granted::default()),
                    CoreEffect::Start => inputs.push_back(Box::pin(self.start()).await?),
                    CoreEffect::Deliver(id) => inputs.extend(Box::pin(self.deliver(id)).await?),
                    CoreEffect::Close => {
                        Box::pin(self.close()).await?;
                        inputs.push_back(Input::Exited);
                    }
                    CoreEffect::TakeUp => self.take_up(),
                    CoreEffect::Mark(..)
                    | CoreEffect::Supersede
                    | CoreEffect::Enter(_)
                    | CoreEffect::Apply
                    | CoreEffect::GiveUp(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Reads what clients have sent since.
    async fn read_news(&mut self) -> Result<()> {
        self.contact
            .seen
            .store(self.contact.calls.load(Ordering::Acquire), Ordering::Release);
        let waiting = self.shared.log.waiting(&self.id, self.read_to).await?;
        if let Some(last) = waiting.received.last() {
            self.read_to = last.seq;
        }
        if waiting.is_ended {
            self.state.queue.clear();
            self.prompts.clear();
        }
        self.compare_call(&waiting).await?;
        if waiting.is_ended {
            // What waits for the budget or at the gate would wait on, and another session that gets the id would have this owner.
            self.feed(Input::Archived, Vec::new()).await?;
        }
        if self.contact.is_wanted.swap(false, Ordering::AcqRel) {
            self.want().await?;
        }
        // What failed before was another try.
        self.failure = None;
        if let Some(first) = self.state.queue.front().copied() {
            self.feed(Input::Accepted(first), Vec::new()).await?;
        }
        for received in waiting.received {
            match received.kind.as_str() {
                "user" if waiting.is_ended => {}
                "user" => {
                    self.prompts.insert(received.id, received.payload);
                    match self.failure {
                        None => self.feed(Input::Accepted(received.id), Vec::new()).await?,
                        // One try for each time that the session is woken.
                        Some(_) => self.state.queue.push_back(received.id),
                    }
                }
                "control_request" => self.request(received).await?,
                _ => self.cancel(received).await?,
            }
        }
        for approval in waiting.decided {
            if approval.deferred {
                self.decided(approval).await?;
            } else {
                self.apply(approval).await?;
            }
        }
        Ok(())
    }

    /// A client wants a process. A session that was archived gets none.
    async fn want(&mut self) -> Result<()> {
        if self.shared.log.session(&self.id).await?.state == SessionState::Ended {
            return Ok(());
        }
        self.feed(Input::Wanted, Vec::new()).await
    }

    /// Gives a decision to the process that asked. It is marked first: a crash in between loses it with that process, and it is never given twice.
    async fn apply(&mut self, approval: Approval) -> Result<()> {
        let Some(running) = &self.running else {
            return Ok(());
        };
        let session = running.session.clone();
        self.write(vec![Write::Applied(approval.id)]).await?;
        let failed = send_decision(&session, &approval.request_id, &approval).await?;
        self.feed(Input::Closed(approval.request_id), failed.into_iter().collect())
            .await
    }

    /// Asks whether a turn may begin.
    async fn admit(&mut self) -> Result<Option<Input>> {
        let (gate, budget) = (self.shared.policy.gate.clone(), self.shared.policy.budget.clone());
        if gate.is_none() && budget.is_none() {
            return Ok(Some(Input::Admitted));
        }
        let model = self.shared.log.session(&self.id).await?.model;
        let log = Arc::clone(&self.shared.log);
        let mut asked = JoinSet::new();
        asked.spawn(admission::wait_for_turn(
            gate,
            budget,
            Arc::clone(&self.shared.budget_queue),
            log,
            self.id.clone(),
            model,
        ));
        self.admission = Some(asked);
        Ok(None)
    }

    /// Counts the turn that may begin. If none may, because the host is drained, it waits for the next host.
    fn begin_turn(&mut self) -> bool {
        let turn = self.shared.turns.begin();
        let begins = turn.is_some();
        if begins {
            self.turn = turn;
        } else {
            let mut never = JoinSet::new();
            never.spawn(std::future::pending());
            self.admission = Some(never);
        }
        begins
    }

    async fn admitted(&mut self, answer: Result<Granted, String>) -> Result<()> {
        self.admission = None;
        match answer {
            Ok(granted) => {
                self.granted = granted;
                self.feed(Input::Admitted, Vec::new()).await
            }
            Err(error) => {
                let payload = json!({"type": "turn_not_admitted", "error": error});
                self.failure = Some(error);
                let event = NewEvent::host("turn_not_admitted", payload);
                self.feed(Input::Refused, vec![Write::Append(event)]).await
            }
        }
    }

    /// Sets when nobody may decide any more.
    fn expire_later(&mut self, approval: Approval) {
        let Some(patience) = self.shared.policy.approvals_expire else {
            return;
        };
        let age = match approval.opened_at {
            0 => Duration::ZERO,
            opened => Duration::from_millis(now().saturating_sub(opened)),
        };
        self.expiring
            .push_back((Instant::now() + patience.saturating_sub(age), approval));
    }

    /// Opens an approval.
    fn open(&mut self, approval: Approval, steps: &mut Vec<Write>) -> Input {
        self.expire_later(approval.clone());
        let request = approval.request_id.clone();
        steps.push(Write::Open(Box::new(approval)));
        Input::Asked(request)
    }

    /// The handler says that a request is for people.
    async fn ask_people(&mut self, request: String) -> Result<()> {
        match self.undecided.remove(&request) {
            Some((_, approval)) if self.is_taken_up(&approval) => {
                let session = self.running.as_ref().map(|running| running.session.clone());
                match session {
                    Some(session) => self.give_decision(&session).await,
                    None => Ok(()),
                }
            }
            Some((frame, approval)) => {
                let mut steps = vec![frame];
                let input = self.open(approval, &mut steps);
                self.feed(input, steps).await
            }
            None => {
                self.early.insert(request);
                Ok(())
            }
        }
    }

    /// Nobody decided in time.
    async fn expire(&mut self) -> Result<()> {
        let Some((_, approval)) = self.expiring.pop_front() else {
            return Ok(());
        };
        let waits = self.state.call == WaitingCall::Waits
            && self.call.as_ref().is_some_and(|call| call.id == approval.id);
        if !waits && !self.state.open.contains(&approval.request_id) {
            return Ok(());
        }
        let error = "nobody decided in time".to_owned();
        let decision = Write::Decide {
            id: approval.id,
            state: ApprovalState::Expired,
            actor: None,
            decision: Some(wire::refusal(approval.kind, error)),
            // A person may just have decided.
            must_be_first: false,
        };
        self.write(vec![decision]).await?;
        self.read_news().await
    }

    /// Looks at the memory of the process.
    async fn measure(&mut self) -> Result<()> {
        let (Some(running), Some(limits)) = (&self.running, &self.shared.policy.memory) else {
            return Ok(());
        };
        self.measure_at = Instant::now() + limits.every.max(Duration::from_millis(100));
        let Some(pid) = running.session.pid() else {
            return Ok(());
        };
        let measured = tokio::task::spawn_blocking(move || memory::of_tree(pid)).await;
        let Ok(Some(bytes)) = measured else { return Ok(()) };
        let (soft, hard) = (limits.soft, limits.hard);
        let told = |action: &str, limit: u64| {
            let payload = json!({"type": "memory_limit", "bytes": bytes, "limit": limit, "action": action});
            Write::Append(NewEvent::host("memory_limit", payload))
        };
        if let Some(limit) = hard.filter(|limit| bytes > *limit) {
            self.end_process(true).await?;
            let payload = json!({"type": "process_exited", "reason": format!("killed: it had {bytes} bytes of memory, and may have {limit}")});
            let exited = Write::Append(NewEvent::host("process_exited", payload));
            return self
                .feed(Input::Exited, vec![told("killed", limit), exited])
                .await;
        }
        match soft.filter(|limit| bytes > *limit && !self.state.retire) {
            Some(limit) => self.feed(Input::Retire, vec![told("retired", limit)]).await,
            None => Ok(()),
        }
    }

    async fn deliver(&mut self, id: Uuid) -> Result<Option<Input>> {
        let record = self.shared.log.session(&self.id).await?;
        if record.state == SessionState::Ended {
            // It was archived since the owner has read its news.
            self.granted = Granted::default();
            self.write(vec![Write::Mark(id, Delivery::NotBegun)]).await?;
            return Ok(Some(Input::TurnEnded { deferred: false }));
        }
        if let Some(workspaces) = &self.shared.policy.workspaces
            && workspaces.snapshots
        {
            // The turn is worth more than its diff, and what ends it or interrupts it has to reach it.
            let files = || self.shared.policy.files_of(&record);
            let mut closing = self.shared.closing.subscribe();
            let mut stops = self.contact.stops.subscribe();
            let taken = tokio::select! {
                taken = workspace::begin_turn(workspaces, &record, files) => taken,
                _ = closing.wait_for(|closing| *closing) => Err("the host closes".to_owned()),
                _ = stops.wait_for(|stops| *stops > 0) => Err(STOPPED.to_owned()),
            };
            if let Err(error) = taken {
                let payload = json!({"type": "snapshot_failed", "event_id": id, "error": error});
                self.write(vec![Write::Append(NewEvent::host("snapshot_failed", payload))])
                    .await?;
            }
        }
        let (Some(running), Some(payload)) = (&mut self.running, self.prompts.remove(&id)) else {
            return Ok(None);
        };
        let told = |error: outrigger::Error| (error.to_string(), AfterTurn::of(&error));
        // It is sent before the owner does anything else, so that what a client asks for next is about this turn.
        let turn = match wire::prompt(&payload, id) {
            Ok(prompt) => running.session.prompt(prompt).await.map_err(told),
            Err(error) => Err((error.to_string(), AfterTurn::Running)),
        };
        let Granted { pass, reservation } = std::mem::take(&mut self.granted);
        let session = running.session.clone();
        let turn = async move {
            let mut turn = turn?;
            let reservation = reservation.take();
            let left_open = |outcome: outrigger::Outcome| outcome.deferred().map(|call| call.id.clone());
            if pass.is_none() && reservation.is_none() {
                return turn.outcome().await.map(left_open).map_err(told);
            }
            let mut turn = GuardedTurn::new(turn);
            if let Some(pass) = pass {
                turn = turn.pass(pass);
            }
            if let Some(reservation) = reservation {
                turn = turn.reservation(reservation);
            }
            let outcome = match turn.outcome().await {
                // The turn cannot be interrupted, and would spend on.
                Err(error) => match turn.exhausted() {
                    Some(exhausted) if error.end().is_none() => {
                        drop(session.kill().await);
                        return Err((exhausted.to_string(), AfterTurn::Killed));
                    }
                    _ => return Err(told(error)),
                },
                Ok(outcome) => outcome,
            };
            match turn.exhausted() {
                Some(exhausted) => Err((exhausted.to_string(), AfterTurn::Running)),
                None => Ok(left_open(outcome)),
            }
        };
        let (ended, outcome) = oneshot::channel();
        running.turn = Some(outcome);
        tokio::spawn(async move {
            // An owner that is gone has marked the turn already.
            drop(ended.send(turn.await));
        });
        Ok(None)
    }
}

/// Gives a decision to the process that asks for it. If that fails, there is an event of it.
async fn send_decision(session: &Session, request: &str, approval: &Approval) -> Result<Option<Write>> {
    // The CLI gets its id as it wrote it, which may be a number.
    let pending = session.pending();
    let mut open = pending.iter().map(|open| open.id().clone());
    let id = open
        .find(|id| id.as_str() == request)
        .unwrap_or_else(|| RequestId::from(request));
    let Some(decision) = &approval.decision else {
        return Ok(None);
    };
    let invalid = |error: serde_json::Error| HostError::Invalid(error.to_string());
    let told = match approval.kind {
        ApprovalKind::Form => {
            session
                .answer_elicitation(&id, decision.decode::<ElicitationResult>().map_err(invalid)?)
                .await
        }
        ApprovalKind::Dialog => {
            session
                .answer_dialog(&id, decision.decode::<UserDialogResult>().map_err(invalid)?)
                .await
        }
        _ => {
            session
                .decide(&id, decision.decode::<PermissionResult>().map_err(invalid)?)
                .await
        }
    };
    let failed = told.err().map(|error| {
        let payload =
            json!({"type": "decision_not_applied", "approval_id": approval.id, "error": error.to_string()});
        Write::Append(NewEvent::host("decision_not_applied", payload))
    });
    Ok(failed)
}

/// What was used since.
fn difference(now: &SessionUsage, before: &SessionUsage) -> SessionUsage {
    let mut spent = SessionUsage::default();
    spent.results = now.results.saturating_sub(before.results);
    spent.cost_usd = (now.cost_usd - before.cost_usd).max(0.0);
    for (model, now) in &now.by_model {
        let before = before.by_model.get(model).copied().unwrap_or_default();
        let mut tokens = Tokens::default();
        tokens.input = now.input.saturating_sub(before.input);
        tokens.output = now.output.saturating_sub(before.output);
        tokens.cache_read = now.cache_read.saturating_sub(before.cache_read);
        tokens.cache_creation = now.cache_creation.saturating_sub(before.cache_creation);
        tokens.web_searches = now.web_searches.saturating_sub(before.web_searches);
        tokens.cost_usd = (now.cost_usd - before.cost_usd).max(0.0);
        if tokens != Tokens::default() {
            spent.by_model.insert(model.clone(), tokens);
        }
    }
    spent
}
