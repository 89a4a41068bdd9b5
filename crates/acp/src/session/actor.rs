//! The task of a session.
//!
//! What it waits for, in the order in which it looks: orders of the editor, what the CLI says, what the CLI asks, and only then the ends of
//! turns, so that a prompt is answered behind the last update of its turn. While the editor is behind it reads orders and nothing else.

mod changes;
mod plan_handover;
mod turns;

use std::collections::VecDeque;
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use outrigger::protocol::Frame;
use outrigger::{Options, Outcome, Session};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use self::changes::{Change, Changed, Told, What, make};
use self::plan_handover::PlanHandover;
use self::turns::{TurnEnd, run};
use super::activity::Activity;
use super::lifecycle::Questions;
use super::lookups::Lookups;
use super::mcp_servers::Mcp;
use super::process::{self, Process, Running};
use super::prompt_buffers::Read;
use super::prompt_reply::PromptReply;
use super::prompts::{How, MOST, Prompts, ToSend};
use super::rewinding::Rewinding;
use super::updates::{Tell, Updates};
use super::{CancelBell, Order, Stop};
use crate::ask::{self, Ask, Modes};
use crate::choices::Choices;
use crate::client::Client;
use crate::meta::RawMessages;
use crate::outcome::End;
use crate::steer::{Steer, Steered};
use crate::{error, outcome, prompt, sdk_error, steer};

/// How many result frames are remembered for turns whose end was not told yet.
const RESULTS: usize = 64;

/// What a session's task is made of.
pub(crate) struct Parts {
    pub(crate) id: acp::SessionId,
    pub(crate) client: Client,
    pub(crate) session: Session,
    /// To begin anew with, should the process end before the conversation began.
    pub(crate) again: Options,
    /// What the editor was told that can be chosen, which may have been before the session was there.
    pub(crate) told: Choices,
    pub(crate) choices: Choices,
    pub(crate) mcp: Mcp,
    pub(crate) modes: Modes,
    pub(crate) asks: mpsc::Receiver<Ask>,
    /// What was ordered before the session was there.
    pub(crate) early: VecDeque<Order>,
    /// What of the CLI's own messages the editor wants.
    pub(crate) raw: RawMessages,
    pub(crate) orders: mpsc::Receiver<Order>,
    pub(crate) cancel: CancelBell,
    pub(crate) stop: Stop,
    /// How long a prompt that was cancelled may stay open.
    pub(crate) cancel_floor: Duration,
}

/// The task of a session.
pub(crate) struct Actor {
    pub(super) id: acp::SessionId,
    /// The CLI's conversation.
    pub(super) conversation: String,
    pub(super) client: Client,
    pub(super) process: Process,
    pub(super) again: Options,
    /// The answer that the conversation goes on behind, until that is written down.
    pub(super) behind: Option<String>,
    pub(super) rewinding: Rewinding,
    told: Choices,
    choices: Choices,
    mcp: Mcp,
    modes: Modes,
    pub(super) updates: Updates,
    asks: mpsc::Receiver<Ask>,
    early: VecDeque<Order>,
    raw: RawMessages,
    orders: mpsc::Receiver<Order>,
    cancel: CancelBell,
    stop: Stop,
    cancel_floor: Duration,
    pub(super) prompts: Prompts<PromptReply>,
    pub(super) activity: Activity<End>,
    pub(super) questions: Questions,
    questions_changed: watch::Receiver<usize>,
    /// Whether the CLI says with which prompt it begins.
    pub(super) has_lifecycle: bool,
    /// The editor cancelled a turn that nobody prompted.
    pub(super) own_cancelled: bool,
    /// The turns that run, each until its end.
    turns: FuturesUnordered<BoxFuture<'static, TurnEnd>>,
    /// The prompts that the client may cancel one by one.
    withdrawn: FuturesUnordered<BoxFuture<'static, Option<u64>>>,
    /// The prompts that wait for texts of the editor's.
    reading: FuturesUnordered<BoxFuture<'static, Read>>,
    /// Turns that ended, whose result has not come by among the frames yet.
    ending: Vec<TurnEnd>,
    results: VecDeque<String>,
    pub(super) lookups: Lookups,
    /// What is being changed, one after the other.
    change: Option<BoxFuture<'static, Changed>>,
    changes: VecDeque<Change>,
    /// What was lost with the process, whose end is about to be told.
    lost: Option<Change>,
    /// How many processes have ended.
    generation: u64,
    /// The user ended the turn by an answer.
    stopped_by_answer: bool,
    /// A plan that is carried out in a new conversation once this one is over.
    handover: Option<PlanHandover>,
}

enum Flow {
    Go,
    Close(Option<oneshot::Sender<()>>),
}

impl Actor {
    pub(crate) fn new(parts: Parts) -> Self {
        let mut updates = Updates::new(&parts.session, &parts.client);
        updates.begins_in(parts.choices.mode());
        parts.modes.set(parts.choices.mode_ids());
        let begun = [&parts.again.session_id, &parts.again.resume];
        let conversation = begun.into_iter().flatten().next();
        let questions = Questions::default();
        Self {
            conversation: conversation.map_or_else(|| parts.id.0.to_string(), Clone::clone),
            behind: None,
            rewinding: Rewinding::No,
            id: parts.id,
            client: parts.client,
            process: Process::Running(Running::new(parts.session)),
            again: parts.again,
            told: parts.told,
            choices: parts.choices,
            mcp: parts.mcp,
            modes: parts.modes,
            updates,
            asks: parts.asks,
            early: parts.early,
            raw: parts.raw,
            orders: parts.orders,
            cancel: parts.cancel,
            stop: parts.stop,
            cancel_floor: parts.cancel_floor,
            prompts: Prompts::default(),
            activity: Activity::default(),
            questions_changed: questions.changes(),
            questions,
            has_lifecycle: false,
            own_cancelled: false,
            turns: FuturesUnordered::new(),
            withdrawn: FuturesUnordered::new(),
            reading: FuturesUnordered::new(),
            ending: Vec::new(),
            results: VecDeque::new(),
            lookups: Lookups::new(),
            change: None,
            changes: VecDeque::new(),
            lost: None,
            generation: 0,
            stopped_by_answer: false,
            handover: None,
        }
    }

    /// Runs until the session is closed.
    pub(crate) async fn run(mut self) {
        let session = self.process.session().clone();
        let commands = self.updates.commands(&session);
        drop(session);
        self.tell(commands);
        if self.told.mode() != self.choices.mode() {
            self.tell_mode();
        }
        if self.told.as_options() != self.choices.as_options() {
            self.tell_options();
        }
        if self.again.resume.is_some() {
            self.look_up_context();
            if self.choices.settle_agent() {
                self.tell_options();
            }
        }
        if self.choices.has_agents() {
            self.changes
                .push_back(Change::new(What::WhichAgent, Told::Nobody));
        }
        for order in std::mem::take(&mut self.early) {
            self.order(order);
        }
        self.proceed().await;
        let closed = loop {
            match self.step().await {
                Flow::Go => self.proceed().await,
                Flow::Close(closed) => break closed,
            }
        };
        self.end().await;
        if let Some(closed) = closed {
            // Whoever asked may have gone.
            let _ = closed.send(());
        }
    }

    /// Waits for the next thing to happen, and sees to it.
    async fn step(&mut self) -> Flow {
        let now = Instant::now();
        let open = self.client.gate().is_open();
        let floor = self.prompts.floor(self.cancel_floor);
        let due = self.updates.due().filter(|_| open);
        let late = self.handover.as_ref().filter(|_| open).map(PlanHandover::until);
        let gate = self.client.clone();
        tokio::select! {
            biased;
            () = self.stop.cancelled() => return Flow::Close(None),
            () = self.cancel.rung() => self.cancel_all(),
            order = self.orders.recv() => match order {
                Some(Order::Close(done)) => return Flow::Close(Some(done)),
                Some(order) => self.order(order),
                None => return Flow::Close(None),
            },
            Some(number) = self.withdrawn.next(), if !self.withdrawn.is_empty() => {
                if let Some(number) = number {
                    let ended = self.prompts.cancel(number, now);
                    self.answer_cancelled(ended);
                }
            }
            () = at(floor) => self.floor_reached().await,
            () = gate.gate().opened(), if !open => {}
            // The CLI goes on only then, and that it does is told first.
            Ok(()) = self.questions_changed.changed(), if open => {}
            event = next(&mut self.process), if open => match event {
                ProcessEvent::Frame(frame) => self.frame(&frame),
                ProcessEvent::Lag => self.settle_all(),
                ProcessEvent::Ended(error) => self.ended(&error),
                ProcessEvent::Revived(Ok(session)) => self.revived(session),
                ProcessEvent::Revived(Err(error)) => self.not_revived(&error),
            },
            Some(ask) = self.asks.recv(), if open => self.ask(ask),
            () = at(late) => self.anew_is_late(),
            () = at(due), if open => {
                let updates = self.updates.tick();
                self.tell(updates);
            }
            tailed = self.updates.tailed(), if open => {
                let updates = self.updates.output(tailed);
                self.tell(updates);
            }
            changed = pending(&mut self.change) => self.changed(changed),
            Some(found) = self.lookups.next(), if open && !self.lookups.is_empty() => {
                if let Some(found) = found {
                    self.found(found);
                }
            }
            Some(read) = self.reading.next(), if !self.reading.is_empty() => self.buffers_read(read),
            planned = self.rewinding.planned() => self.planned(planned),
            Some(end) = self.turns.next(), if open && !self.turns.is_empty() => self.turn_ended(end),
        }
        self.tell_state();
        Flow::Go
    }

    /// Begins what can be begun.
    async fn proceed(&mut self) {
        if self.prompts.is_waiting() || !self.changes.is_empty() || self.rewinding.is_on() {
            self.process.revive(&self.again, self.behind.as_deref());
        }
        let Some(session) = self.process.running().cloned() else {
            return;
        };
        self.begin_rewind(&session);
        if self.rewinding.is_on() || self.handover.is_some() {
            return;
        }
        if self.change.is_none()
            && self.lost.is_none()
            && let Some(mut change) = self.changes.pop_front()
        {
            change.generation = self.generation;
            let plan = match &change.what {
                What::Mcp(wish) => Some(self.mcp.plan(wish)),
                _ => None,
            };
            self.change = Some(Box::pin(make(session.clone(), change, plan)));
        }
        // A prompt counts with what was chosen before it.
        while self.change.is_none()
            && self.lost.is_none()
            && let Some(to_send) = self.prompts.send()
        {
            self.send(&session, to_send).await;
        }
    }

    async fn send(&mut self, session: &Session, to_send: ToSend) {
        let ToSend {
            attempt,
            prompt,
            how,
            stop,
        } = to_send;
        let sent = match how {
            How::Alone => session.prompt(prompt).await,
            How::Steer => session.steer(prompt).await,
            How::Now => session.prompt_now(prompt).await,
        };
        match sent {
            Ok(turn) => {
                if self.choices.settle_agent() {
                    self.tell_options();
                }
                let id = turn.id().to_string();
                self.updates.prompted(&id);
                self.prompts.sent_as(attempt, id);
                self.turns.push(Box::pin(run(attempt, turn, stop)));
            }
            // The end of the process is told in its place, and the prompt is sent again then.
            Err(error) if error.is_closed() => {}
            Err(error) => {
                if let Some(ended) = self.prompts.end(attempt) {
                    self.finish(ended, Err(sdk_error::of_sdk(&error)));
                }
            }
        }
    }

    fn order(&mut self, order: Order) {
        match order {
            Order::Prompt { request, answer } => self.prompt(request, answer),
            Order::Steer { request, reply } => {
                // Whoever asked may have gone.
                let _ = reply.send(self.steer(request));
            }
            Order::Cancel => self.cancel_all(),
            Order::SetMode { request, answer } => {
                let id = request.mode_id.0.as_ref();
                match self.choices.find_mode(id) {
                    Some(mode) => self
                        .changes
                        .push_back(Change::new(What::Mode(mode), Told::Mode(answer))),
                    None => {
                        let known = self.choices.mode_ids().join(", ");
                        answer.refuse(error::bad("modeId", format!("{id:?} is none of {known}")));
                    }
                }
            }
            Order::SetOption { request, answer } => match self.option(&request) {
                Ok(what) => self.changes.push_back(Change::new(what, Told::Option(answer))),
                Err(error) => answer.refuse(error),
            },
            Order::Rewind { request, reply } => self.rewind(request, reply),
            Order::SetTitle { title, reply } => self.set_title(title, reply),
            Order::Mcp { wish, reply } => self
                .changes
                .push_back(Change::new(What::Mcp(wish), Told::Mcp(reply))),
            Order::Close(_) => {}
        }
    }

    /// Whether something of the editor's is on its way.
    pub(super) fn is_busy(&self) -> bool {
        let is_prompted = self.prompts.is_running() || self.prompts.is_waiting();
        is_prompted || self.activity.has_own() || self.change.is_some() || !self.changes.is_empty()
    }

    fn steer(&mut self, request: Steer) -> Result<Steered, agent_client_protocol::Error> {
        let outcome = if self.prompts.is_running() || self.activity.has_own() {
            steer::Outcome::Injected
        } else if request.begins_a_turn()? {
            steer::Outcome::StartedNewTurn
        } else {
            return Ok(Steered {
                outcome: steer::Outcome::PromptRequired,
                reason: Some("noRunningTurn".to_owned()),
            });
        };
        prompt::of(&request.prompt, |_| false)?;
        self.prompt(request.into_prompt(), PromptReply::nothing());
        Ok(Steered {
            outcome,
            reason: None,
        })
    }

    fn prompt(&mut self, request: acp::PromptRequest, answer: PromptReply) {
        let commands = self.process.session().command_names();
        let is_command = |name: &str| commands.iter().any(|known| known == name);
        let (prompt, how) = match (
            prompt::of(&request.prompt, is_command),
            how_of(request.meta.as_ref()),
        ) {
            (Ok(prompt), Ok(how)) => (prompt, how),
            (Err(error), _) | (_, Err(error)) => return answer.refuse(error),
        };
        let withdrawn = answer.withdrawn();
        match self.prompts.accept(prompt.from_person(), how, answer) {
            Ok(number) => {
                self.withdrawn
                    .push(Box::pin(async move { withdrawn.await.then_some(number) }));
                let files = self.buffers_of(&request);
                if !files.is_empty() {
                    self.prompts.hold(number);
                    self.reading.push(self.read_buffers(number, request, files));
                }
            }
            Err(answer) => {
                let busy = format!("{MOST} prompts are open already; wait for one of them to end");
                answer.refuse(error::internal(busy));
            }
        }
    }

    // ---- The CLI --------------------------------------------------------------------------------------------------

    fn frame(&mut self, frame: &Frame) {
        self.prompts.heard();
        if let Some(message) = self.raw.message(frame) {
            self.client.sdk_message(&self.id, message);
        }
        self.follow(frame);
        let updates = self.updates.frame(frame);
        self.tell(updates);
        if self.updates.wants_size() {
            self.look_up_context();
        }
        self.follow_conversation(frame);
        self.follow_auth(frame);
        if frame.kind() != "result" {
            return;
        }
        self.turn_is_over(frame);
        self.look_up_model(frame);
        self.look_up_title();
        if let Some(uuid) = frame.uuid() {
            if self.results.len() == RESULTS {
                self.results.pop_front();
            }
            self.results.push_back(uuid.to_owned());
            let is_it = |end: &TurnEnd| {
                let outcome = end.1.as_ref().ok();
                outcome.and_then(Outcome::frame).and_then(Frame::uuid) == Some(uuid)
            };
            let (ended, ending) = std::mem::take(&mut self.ending).into_iter().partition(is_it);
            self.ending = ending;
            let ended: Vec<TurnEnd> = ended;
            for end in ended {
                self.settle(end);
            }
        }
    }

    /// What was going on in the process is over.
    pub(super) fn process_over(&mut self) {
        let updates = self.updates.ended();
        self.tell(updates);
        self.settle_all();
        // Their attempts are given up with the process.
        self.turns = FuturesUnordered::new();
        self.lookups = Lookups::new();
    }

    fn ended(&mut self, why: &outrigger::Error) {
        if let Some(handover) = self.handover.take()
            && self.begin_anew(handover)
        {
            return;
        }
        self.process_over();
        self.process.give_up();
        self.generation += 1;
        if let Some(change) = self.lost.take() {
            self.changes.push_front(change);
        }
        let lost = self.prompts.lose();
        if !lost.is_empty() {
            tracing::warn!(%why, prompts = lost.len(), "the CLI's process ended in the middle of a turn");
        }
        self.activity.turn_ends(|| Err(process::lost(why)));
        for ended in lost {
            let told = if ended.cancelled {
                Ok(outcome::cancelled(None))
            } else {
                Err(process::lost(why))
            };
            self.finish(ended, told);
        }
    }

    fn revived(&mut self, session: Session) {
        let now = self.choices.renewed(session.initialized());
        let chosen = std::mem::replace(&mut self.choices, now);
        self.process = Process::Running(Running::new(session));
        self.modes.set(self.choices.mode_ids());
        // A conversation that had not begun is begun anew, and what was chosen for it is chosen again.
        let mut again = Vec::new();
        if chosen.mode() != self.choices.mode() {
            again.extend(self.choices.find_mode(chosen.mode()).map(What::Mode));
        }
        if chosen.model() != self.choices.model() {
            again.push(What::Model(chosen.model().to_owned()));
        }
        if let Some(effort) = chosen.effort() {
            again.push(What::Effort(Some(effort)));
        }
        again.extend(chosen.fast_chosen().map(What::Fast));
        match chosen.agent() {
            Some(agent) => again.push(What::Agent(Some(agent.to_owned()))),
            None if self.choices.has_agents() => again.push(What::WhichAgent),
            None => {}
        }
        again.extend(self.mcp.again().map(What::Mcp));
        for what in again.into_iter().rev() {
            let told = Told::Nobody;
            self.changes.push_front(Change::new(what, told));
        }
        self.rewound(None);
    }

    fn not_revived(&mut self, why: &outrigger::Error) {
        tracing::warn!(%why, "the CLI did not come back");
        self.process.give_up();
        self.behind = None;
        self.rewound(Some(why));
        for ended in self.prompts.take_all() {
            let told = if ended.cancelled {
                Ok(outcome::cancelled(None))
            } else {
                Err(self.failed(sdk_error::of_sdk(why)))
            };
            self.finish(ended, told);
        }
        for change in std::mem::take(&mut self.changes) {
            change.told.failed(sdk_error::of_sdk(why));
        }
    }

    fn ask(&mut self, ask: Ask) {
        match ask {
            Ask::Permission {
                request,
                mut options,
                reply,
            } => {
                let can_clear = self.prompts.running().is_some();
                ask::permission_options::fit_clearing(&mut options, can_clear, self.updates.fullness());
                let (updates, shown) = self.updates.asked(&request);
                self.tell(updates);
                // Dropped if nobody waits for it any more, by which the editor learns that.
                let asked = self.client.ask_permission(&self.id, shown, options);
                drop(reply.send(self.questions.put(asked)));
            }
            Ask::Elicitation { request, reply } => {
                let asked = self.client.elicit(*request);
                drop(reply.send(self.questions.put(asked)));
            }
            Ask::Decided { call, allowed, stops } => {
                self.stopped_by_answer |= stops;
                let updates = self.updates.decided(&call, allowed);
                self.tell(updates);
            }
            Ask::Approved { call, approved } => self.approved(&call, approved),
        }
    }

    // ---- To the editor --------------------------------------------------------------------------------------------

    pub(super) fn tell(&mut self, told: Vec<Tell>) {
        for tell in told {
            match tell {
                Tell::Update(update) => self.client.update(&self.id, update),
                Tell::Mode(mode) => self.mode_is(&mode),
                Tell::Model(model) => self.model_is(&model),
                Tell::Fast(state, why) => {
                    if self.choices.fast_is(state.as_ref(), why.as_ref()) {
                        self.tell_options();
                    }
                }
            }
        }
    }

    // ---- The end --------------------------------------------------------------------------------------------------

    async fn end(mut self) {
        let is_running = self.prompts.is_running() || self.activity.has_own();
        if is_running {
            let updates = self.updates.cancelled();
            self.tell(updates);
        }
        self.end_rewind();
        for ended in self.prompts.take_all() {
            self.finish(ended, Ok(outcome::cancelled(None)));
        }
        self.activity.turn_ends(|| Ok(outcome::cancelled(None)));
        self.tell_state();
        for change in self.lost.into_iter().chain(self.changes) {
            change.told.failed(error::internal("the session was closed"));
        }
        // What is being brought back ends as it is dropped.
        let Process::Running(Running { session, frames }) = self.process else {
            return;
        };
        // Nobody reads them any more, and they are not to wait on disk.
        drop(frames);
        drop(self.turns);
        if is_running
            && tokio::time::timeout(INTERRUPT, session.interrupt())
                .await
                .is_err()
        {
            tracing::debug!("a turn did not end before its session was closed");
        }
        if let Err(error) = session.close().await {
            tracing::debug!(%error, "a process was not seen ending");
        }
    }
}

/// How long a turn may take to end before its session is closed all the same.
const INTERRUPT: Duration = Duration::from_secs(1);

/// How a prompt wants to be given: `_meta.claudeCode.delivery`, which is `queue` unless said, `steer` or `now`.
fn how_of(meta: Option<&acp::Meta>) -> Result<How, agent_client_protocol::Error> {
    let told = meta.and_then(|meta| meta.get("claudeCode")?.get("delivery"));
    match told.map(serde_json::Value::as_str) {
        None | Some(Some("queue")) => Ok(How::Alone),
        Some(Some("steer")) => Ok(How::Steer),
        Some(Some("now")) => Ok(How::Now),
        Some(_) => Err(error::bad(
            "_meta.claudeCode.delivery",
            "it is none of \"queue\", \"steer\" and \"now\"",
        )),
    }
}

/// What comes of the CLI next.
enum ProcessEvent {
    Frame(Frame),
    /// Frames were left out.
    Lag,
    Ended(outrigger::Error),
    Revived(Result<Session, outrigger::Error>),
}

async fn next(process: &mut Process) -> ProcessEvent {
    match process {
        Process::Running(Running { session, frames }) => match frames.next().await {
            Some(Ok(frame)) => ProcessEvent::Frame(frame),
            Some(Err(lag)) => {
                tracing::warn!(?lag, "the editor is so far behind that updates were left out");
                ProcessEvent::Lag
            }
            None => ProcessEvent::Ended(session.wait_ended().await),
        },
        Process::Reviving { revival, .. } => ProcessEvent::Revived(revival.await),
        Process::Ended(_) => std::future::pending().await,
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn pending<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
