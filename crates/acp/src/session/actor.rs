//! The task of a session.
//!
//! It waits, in this order, for requests of the editor, frames of the CLI, questions of the CLI, and only then for the ends of turns:
//! so a prompt is answered behind the last update of its turn. The output of background commands comes last. While the editor is behind,
//! it reads requests and nothing else.

mod changes;
mod cli;
mod plan_handover;
mod session_commands;
mod turns;

use std::collections::VecDeque;
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use outrigger::protocol::Frame;
use outrigger::{Options, Session};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;

use self::changes::{ChangeKind, Changes, ReplyTo, make};
use self::cli::{ProcessEvent, next};
use self::plan_handover::PlanHandover;
use self::turns::Turns;
use super::activity::Activity;
use super::conversation::Conversation;
use super::idle_compaction::Idle;
use super::lifecycle::Questions;
use super::lookups::Lookups;
use super::mcp_servers::Mcp;
use super::process::{Process, RunningProcess};
use super::prompt_buffers::PromptWithBuffers;
use super::prompt_reply::PromptReply;
use super::prompts::Prompts;
use super::rewinding::Rewinding;
use super::updates::{Output, Updates};
use super::{Inbox, SessionCommand};
use crate::ask::{EditorQuestion, Modes};
use crate::choices::Choices;
use crate::client::Client;
use crate::config::IdleCompaction;
use crate::event::RecordedAgent;
use crate::host::HostLink;
use crate::meta::RawMessages;
use crate::outcome::End;
use crate::reduce::TaskPlan;
use crate::{error, outcome};

/// What the task of a session begins with.
pub(crate) struct Parts {
    pub(crate) id: acp::SessionId,
    pub(crate) client: Client,
    pub(crate) session: Session,
    /// For a new process, should this one end before the conversation has a message.
    pub(crate) again: Options,
    /// The choices that the editor was told of, perhaps before the session was there.
    pub(crate) told: Choices,
    pub(crate) choices: Choices,
    pub(crate) mcp: Mcp,
    pub(crate) modes: Modes,
    /// The commands that came before the session was there.
    pub(crate) early: VecDeque<SessionCommand>,
    /// Which of the CLI's messages the editor gets as raw JSON.
    pub(crate) raw: RawMessages,
    pub(crate) inbox: Inbox,
    pub(crate) asks: mpsc::Receiver<EditorQuestion>,
    /// How long a cancelled prompt may stay open.
    pub(crate) cancel_floor: Duration,
    pub(crate) idle_compaction: Option<IdleCompaction>,
    pub(crate) on_host: Option<OnHost>,
    /// The subagents of the stored session.
    pub(crate) agents: Vec<RecordedAgent>,
    /// The plan of the stored session.
    pub(crate) plan: Option<TaskPlan>,
}

/// What the task of a session begins with whose process is on a host.
pub(crate) struct OnHost {
    pub(crate) link: HostLink,
    /// What was replayed, or has to be known of a turn that runs.
    pub(crate) updates: Updates,
    /// Whether a turn runs.
    pub(crate) is_working: bool,
    /// What the user is told first.
    pub(crate) first: Vec<Frame>,
}

/// The task of a session.
pub(crate) struct Actor {
    pub(super) id: acp::SessionId,
    pub(super) client: Client,
    inbox: Inbox,
    asks: mpsc::Receiver<EditorQuestion>,
    pub(super) updates: Updates,
    raw: RawMessages,

    pub(super) process: Process,
    /// How many processes have ended.
    generation: u64,
    /// How many processes in a row, the current one among them, have not made all changes.
    unproven: u32,
    pub(super) conversation: Conversation,
    pub(super) lookups: Lookups,
    pub(super) rewinding: Rewinding,
    /// An approved plan that waits for the end of its turn.
    handover: Option<PlanHandover>,

    choices: Choices,
    modes: Modes,
    mcp: Mcp,
    changes: Changes,
    /// The mode that the user chose, while the process has another one. No prompt is sent then.
    missing_mode: Option<String>,

    pub(super) prompts: Prompts<PromptReply>,
    cancel_floor: Duration,
    pub(super) idle: Idle,
    /// Resolves to the number of each prompt that the editor withdraws.
    withdrawn: FuturesUnordered<BoxFuture<'static, Option<u64>>>,
    /// Prompts that wait for unsaved texts of the editor.
    reading: FuturesUnordered<BoxFuture<'static, PromptWithBuffers>>,
    turns: Turns,
    pub(super) activity: Activity<End>,
    pub(super) questions: Questions,
    /// Whether the CLI reports which prompt it begins.
    pub(super) has_lifecycle: bool,
    /// The editor cancelled a turn that had no prompt.
    pub(super) own_cancelled: bool,
    /// Frames were dropped: resolves when no turn runs. The result of a turn of the CLI's own may be among them.
    pub(super) lost_end: Option<BoxFuture<'static, ()>>,
    /// The requests that end what the editor cancelled, but for the turns of prompts.
    pub(super) cancelling: TaskTracker,
    /// The link, if the session lives on a host. Then it goes on without this task.
    pub(super) link: Option<HostLink>,
}

enum Flow {
    Go,
    Close,
}

impl Actor {
    /// Runs until the session is closed.
    pub(crate) async fn run(parts: Parts) {
        let cwd = parts.session.options().cwd.clone().unwrap_or_default();
        let (mut updates, link, is_working, first) = match parts.on_host {
            Some(on) => (on.updates, Some(on.link), on.is_working, on.first),
            None => (
                Updates::new(&parts.id, cwd, &parts.client),
                None,
                false,
                Vec::new(),
            ),
        };
        updates.knows(parts.agents);
        if let Some(plan) = parts.plan {
            updates.goes_on_with(plan);
        }
        updates.begins_in(parts.choices.mode());
        parts.modes.set(parts.choices.mode_ids());
        let commands = updates.commands(&parts.session);
        let mut actor = Self {
            conversation: Conversation::new(&parts.id, parts.again),
            id: parts.id,
            client: parts.client,
            inbox: parts.inbox,
            asks: parts.asks,
            updates,
            raw: parts.raw,
            process: Process::Running(RunningProcess::new(parts.session)),
            generation: 0,
            unproven: 1,
            lookups: Lookups::new(),
            rewinding: Rewinding::No,
            handover: None,
            choices: parts.choices,
            modes: parts.modes,
            mcp: parts.mcp,
            changes: Changes::default(),
            missing_mode: None,
            prompts: Prompts::default(),
            cancel_floor: parts.cancel_floor,
            idle: Idle::new(parts.idle_compaction),
            withdrawn: FuturesUnordered::new(),
            reading: FuturesUnordered::new(),
            turns: Turns::default(),
            activity: Activity::default(),
            questions: Questions::default(),
            has_lifecycle: false,
            own_cancelled: false,
            lost_end: None,
            cancelling: TaskTracker::new(),
            link,
        };
        if let Some(link) = &actor.link {
            link.go();
        }
        actor.send_updates(commands);
        actor.show(Updates::children_again);
        for frame in first {
            actor.show(|updates| updates.frame(&frame));
        }
        if is_working {
            actor.activity.turn_begins();
        }
        actor.begin(&parts.told, parts.early);
        actor.proceed().await;
        while let Flow::Go = actor.step().await {
            actor.proceed().await;
        }
        actor.end().await;
    }

    fn begin(&mut self, told: &Choices, early: VecDeque<SessionCommand>) {
        if told.mode() != self.choices.mode() {
            self.send_mode();
        }
        if told.as_options() != self.choices.as_options() {
            self.send_options();
        }
        self.look_up_settings();
        if self.conversation.again.resume.is_some() {
            self.look_up_context();
            if self.choices.settle_agent() {
                self.send_options();
            }
        }
        if self.choices.has_agents() {
            self.changes.push(ChangeKind::WhichAgent, ReplyTo::Nobody);
        }
        for command in early {
            self.command(command);
        }
    }

    /// Waits for the next event and handles it.
    async fn step(&mut self) -> Flow {
        let now = Instant::now();
        let open = self.client.gate().is_open();
        let floor = self.prompts.floor(self.cancel_floor);
        let due = self.updates.due().filter(|_| open);
        let idle = self.idle.due().filter(|_| open);
        let late = self.handover.as_ref().filter(|_| open).map(PlanHandover::until);
        let gate = self.client.clone();
        tokio::select! {
            biased;
            () = self.inbox.end.cancelled() => return Flow::Close,
            rung = self.inbox.cancel.rung() => self.heed(rung),
            command = self.inbox.commands.recv() => match command {
                Some(command) => self.command(command),
                None => return Flow::Close,
            },
            Some(number) = self.withdrawn.next(), if !self.withdrawn.is_empty() => {
                if let Some(number) = number {
                    let ended = self.prompts.cancel(number, now);
                    self.answer_cancelled(ended);
                }
            }
            () = at(floor) => self.floor_reached(),
            () = gate.gate().opened(), if !open => {}
            // Before the CLI's next frame, so that the new state is reported first.
            () = self.questions.changed(), if open => {}
            event = next(&mut self.process), if open => match event {
                ProcessEvent::Frame(frame) => self.frame(&frame),
                ProcessEvent::Lag => self.lagged(),
                ProcessEvent::Ended(error) => self.ended(&error).await,
                ProcessEvent::Revived(Ok(session)) => self.revived(session),
                ProcessEvent::Revived(Err(error)) => self.not_revived(&error),
            },
            Some(ask) = self.asks.recv(), if open => self.ask(ask),
            () = at(late) => self.handover_is_late(),
            () = at(idle) => self.idle_for_long(),
            () = at(due), if open => {
                self.show(|updates| updates.tick());
            }
            changed = pending(&mut self.changes.running) => self.changed(changed),
            Some(found) = self.lookups.next(), if open && !self.lookups.is_empty() => {
                if let Some(found) = found {
                    self.found(found);
                }
            }
            Some(read) = self.reading.next(), if !self.reading.is_empty() => self.buffers_read(read),
            planned = self.rewinding.planned() => self.planned(planned),
            Some(end) = self.turns.running.join_next(), if open => match end {
                Ok(end) => self.turn_ended(end),
                // A prompt whose end nobody knows must not stay open: all are answered at the end of the session.
                Err(why) => {
                    tracing::error!(%why, "the end of a turn is not known; the session ends");
                    return Flow::Close;
                }
            },
            () = pending(&mut self.lost_end), if open => self.own_is_over(),
            // Last: a command in the background may write for ever, faster than the editor reads.
            tailed = self.updates.tailed(), if open => {
                self.show(|updates| updates.output(tailed));
            }
        }
        self.follow_idleness();
        self.send_state();
        Flow::Go
    }

    /// Starts what can start now: a process, a rewind, the next change, the next prompts.
    async fn proceed(&mut self) {
        if self.prompts.is_waiting() || self.changes.is_waiting() || self.rewinding.is_on() {
            self.process.revive(&self.conversation);
        }
        let Some(session) = self.process.running().cloned() else {
            return;
        };
        self.begin_rewind(&session);
        if self.rewinding.is_on() || self.handover.is_some() {
            return;
        }
        if !self.changes.is_busy() && self.prompts.is_waiting() {
            self.restore_mode();
        }
        if let Some(mut change) = self.changes.next() {
            change.generation = self.generation;
            let plan = match &change.what {
                ChangeKind::Mcp(wish) => Some(self.mcp.plan(wish)),
                _ => None,
            };
            self.changes.running = Some(Box::pin(make(session.clone(), change, plan)));
        }
        if !self.changes.is_busy() {
            self.unproven = 0;
        }
        // A prompt waits for the changes before it.
        while !self.changes.is_running()
            && let Some(to_send) = self.prompts.send()
        {
            self.send(&session, to_send).await;
        }
    }

    /// Sends the updates for an event.
    pub(super) fn show(&mut self, event: impl FnOnce(&mut Updates) -> Vec<Output>) {
        let outputs = event(&mut self.updates);
        self.send_updates(outputs);
    }

    fn send_updates(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Update(update) => self.client.update(&self.id, update),
                Output::Child(child, update) => self.client.update(&child, update),
                Output::Mode(mode) => self.mode_is(&mode),
                Output::Model(model) => self.model_is(&model),
                Output::Fast(state, why) => {
                    if self.choices.fast_is(state.as_ref(), why.as_ref()) {
                        self.send_options();
                    }
                }
            }
        }
    }

    async fn end(mut self) {
        if let Some(link) = &self.link {
            link.leave();
            self.end_cancelled().await;
        }
        let is_running = self.prompts.is_running() || self.activity.has_own();
        match self.link {
            // What runs goes on there.
            Some(_) => self.show(Updates::flush),
            // The turn ends, and what runs in the background ends with the process.
            None => {
                if is_running {
                    self.show(Updates::cancelled);
                }
                self.show(Updates::ended);
            }
        }
        self.end_rewind();
        for ended in self.prompts.take_all() {
            self.finish(ended, Ok(outcome::cancelled(None)));
        }
        self.activity.turn_ends(|| Ok(outcome::cancelled(None)));
        self.send_state();
        for change in self.changes.into_open() {
            change.reply_to.failed(error::internal("the session was closed"));
        }
        self.inbox.close();
        // The CLI gets no reply before its question is handled.
        drop(self.asks);
        // A process that is being revived ends when it is dropped.
        let Process::Running(RunningProcess { session, frames }) = self.process else {
            return;
        };
        // Without a reader, frames would wait on disk.
        drop(frames);
        drop(self.turns.running);
        if is_running
            && self.link.is_none()
            && tokio::time::timeout(INTERRUPT, session.interrupt())
                .await
                .is_err()
        {
            tracing::debug!("a turn did not end before its session was closed");
        }
        if let Err(error) = session.close().await {
            tracing::debug!(%error, "a process could not be closed");
        }
    }
}

/// How long a turn may take to end before its session is closed all the same.
const INTERRUPT: Duration = Duration::from_secs(1);

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
