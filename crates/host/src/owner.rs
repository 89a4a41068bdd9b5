//! The task that owns a session while it has something to do.
//!
//! It writes first and acts then. When the log fails, it ends the process and itself: the next prompt begins from what the log has.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use outrigger::permissions::{PermissionDecision, PermissionHandler, PermissionRequest};
use outrigger::protocol::shared::{PermissionResult, RequestId};
use outrigger::protocol::{Frame, RawJson};
use outrigger::{ElicitationResult, Frames, Interrupted, Lag, Reply, Session, SessionId, UserDialogResult};
use serde_json::json;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, TryAcquireError, mpsc, oneshot};
use uuid::Uuid;

use crate::approval::{Approval, ApprovalKind};
use crate::core::{Effect, Input, State, transition};
use crate::error::{HostError, Result};
use crate::event::{SessionState, Source};
use crate::log::{BoxFuture, Live, Log, NewEvent, Write};
use crate::policy::HostPolicy;
use crate::wire;

/// The most frames that are appended at once.
const BATCH: usize = 64;

/// How long a start waits before it tries a lease again.
const LEASE_POLL: Duration = Duration::from_millis(200);

/// How long a start waits for a place before it asks again for one.
const ROOM_POLL: Duration = Duration::from_millis(250);

/// Something that a client wants now.
pub(crate) enum Command {
    Interrupt(oneshot::Sender<Result<()>>),
    Stop(oneshot::Sender<()>),
    /// The host closes: the process ends, and prompts that wait stay in the log.
    Shutdown(oneshot::Sender<()>),
}

/// What the host and the owner of a session share.
pub(crate) struct Contact {
    pub(crate) wake: Notify,
    /// How often the session was woken, so that no owner ends with news unread.
    pub(crate) calls: AtomicU64,
    pub(crate) seen: AtomicU64,
    pub(crate) commands: mpsc::Sender<Command>,
    /// Whether the process has nothing to do, and since which tick of the host.
    pub(crate) is_idle: AtomicBool,
    pub(crate) used: AtomicU64,
    pub(crate) release: Notify,
}

/// What all owners share.
pub(crate) struct Shared {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) policy: HostPolicy,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) ticks: AtomicU64,
    /// Asks the owner that was idle for longest to end its process.
    pub(crate) make_room: Box<dyn Fn() + Send + Sync>,
}

/// Leaves every question to the inbox.
struct Inbox;

impl PermissionHandler for Inbox {
    fn decide<'a>(&'a self, _: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
        Box::pin(async { PermissionDecision::Parked })
    }

    fn answers_questions(&self) -> bool {
        true
    }
}

struct Running {
    session: Session,
    frames: Frames,
    /// Ends with the turn, or with an error and whether the process has ended.
    turn: Option<oneshot::Receiver<Result<(), (String, bool)>>>,
    _place: OwnedSemaphorePermit,
}

pub(crate) struct Owner {
    shared: Arc<Shared>,
    id: SessionId,
    contact: Arc<Contact>,
    state: State,
    running: Option<Running>,
    prompts: HashMap<Uuid, RawJson>,
    /// Why the last start failed: nothing is tried before the next prompt.
    failed: bool,
}

/// What the loop of an owner woke up for.
enum Woke {
    Frame(Option<Result<Frame, Lag>>),
    Turn(Result<(), (String, bool)>),
    Command(Option<Command>),
    News,
    Release,
}

impl Owner {
    pub(crate) fn new(shared: Arc<Shared>, id: SessionId, contact: Arc<Contact>) -> Self {
        Self {
            shared,
            id,
            contact,
            state: State::default(),
            running: None,
            prompts: HashMap::new(),
            failed: false,
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
        let waiting = self.shared.log.waiting(&self.id).await?;
        self.state.running = waiting.processing.first().copied();
        let record = self.shared.log.session(&self.id).await?;
        let was_busy = matches!(
            record.state,
            SessionState::Starting | SessionState::Running | SessionState::RequiresAction
        );
        self.feed(Input::Recovered { was_busy }, Vec::new()).await?;
        self.read_news().await?;
        while self.running.is_some() {
            let is_idle =
                self.state.running.is_none() && self.state.queue.is_empty() && self.state.open.is_empty();
            self.contact.is_idle.store(is_idle, Ordering::Release);
            match self.wait(commands, is_idle).await {
                Woke::Frame(frame) => self.frames(frame).await?,
                Woke::Turn(outcome) => self.turn_ended(outcome).await?,
                Woke::News => self.read_news().await?,
                Woke::Release => self.feed(Input::Release, Vec::new()).await?,
                Woke::Command(command) => self.command(command).await?,
            }
        }
        Ok(())
    }

    async fn wait(&mut self, commands: &mut mpsc::Receiver<Command>, is_idle: bool) -> Woke {
        let Some(running) = &mut self.running else {
            return Woke::News;
        };
        let turn = async {
            match &mut running.turn {
                // Its task ends only with a result.
                Some(turn) => turn.await.unwrap_or(Ok(())),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            frame = running.frames.next() => Woke::Frame(frame),
            outcome = turn => Woke::Turn(outcome),
            command = commands.recv() => Woke::Command(command),
            () = self.contact.wake.notified() => Woke::News,
            () = self.contact.release.notified() => Woke::Release,
            () = tokio::time::sleep(self.shared.policy.idle), if is_idle => Woke::Release,
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
            let (state, effects) = transition(std::mem::take(&mut self.state), input);
            self.state = state;
            let mut steps = std::mem::take(&mut steps);
            let mut acts = Vec::new();
            for effect in effects {
                match effect {
                    Effect::Mark(id, delivery) => steps.push(Write::Mark(id, delivery)),
                    Effect::Supersede => steps.push(Write::SupersedeAll),
                    Effect::Enter(state) => steps.push(Write::Enter(state)),
                    act => acts.push(act),
                }
            }
            self.write(steps).await?;
            for act in acts {
                match act {
                    Effect::Start => inputs.push_back(self.start().await?),
                    Effect::Deliver(id) => self.deliver(id).await,
                    Effect::Close => {
                        self.close().await?;
                        inputs.push_back(Input::Exited);
                    }
                    Effect::Mark(..) | Effect::Supersede | Effect::Enter(_) => {}
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
        let waiting = self.shared.log.waiting(&self.id).await?;
        for (id, payload) in waiting.received {
            self.prompts.insert(id, payload);
            self.feed(Input::Accepted(id), Vec::new()).await?;
            if self.failed {
                // One try for each time that the session is woken.
                break;
            }
        }
        for approval in waiting.decided {
            self.apply(approval).await?;
        }
        Ok(())
    }

    /// Gives a decision to the process that asked. It is marked first: a crash in between loses it with that process, and it is never given twice.
    async fn apply(&mut self, approval: Approval) -> Result<()> {
        let Some(running) = &self.running else {
            return Ok(());
        };
        let session = running.session.clone();
        self.write(vec![Write::Applied(approval.id)]).await?;
        let id = RequestId::from(approval.request_id.as_str());
        let Some(decision) = approval.decision else {
            return Ok(());
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
        let mut steps = Vec::new();
        if let Err(error) = told {
            let payload = json!({"type": "decision_not_applied", "approval_id": approval.id, "error": error.to_string()});
            steps.push(Write::Append(NewEvent::host("decision_not_applied", payload)));
        }
        self.feed(Input::Closed(approval.request_id), steps).await
    }

    async fn start(&mut self) -> Result<Input> {
        // Without a deadline: a place gets free when a turn ends.
        let place = loop {
            match Arc::clone(&self.shared.places).try_acquire_owned() {
                Ok(place) => break place,
                Err(TryAcquireError::Closed) => return Err(HostError::Closed),
                Err(TryAcquireError::NoPermits) => (self.shared.make_room)(),
            }
            let free = Arc::clone(&self.shared.places).acquire_owned();
            if let Ok(place) = tokio::time::timeout(ROOM_POLL, free).await {
                break place.map_err(|_| HostError::Closed)?;
            }
        };
        self.write(vec![Write::NextEpoch]).await?;
        let record = self.shared.log.session(&self.id).await?;
        // Without a stored turn it is not known whether the CLI has stored the session.
        let ways: &[bool] = match (record.has_history, record.epoch) {
            (true, _) => &[true],
            (false, 0 | 1) => &[false],
            (false, _) => &[true, false],
        };
        let mut error = String::new();
        for resume in ways {
            match self.try_start(&record, *resume).await {
                Ok(session) => {
                    let payload = json!({"type": "process_started", "epoch": record.epoch, "pid": session.pid(), "resumed": resume});
                    let frames = session.frames();
                    self.running = Some(Running {
                        session,
                        frames,
                        turn: None,
                        _place: place,
                    });
                    self.write(vec![Write::Append(NewEvent::host("process_started", payload))])
                        .await?;
                    self.failed = false;
                    return Ok(Input::Started);
                }
                Err(failed) => error = failed,
            }
        }
        self.failed = true;
        let kind = if record.has_history {
            "resume_failed"
        } else {
            "start_failed"
        };
        self.write(vec![Write::Append(NewEvent::host(
            kind,
            json!({"type": kind, "epoch": record.epoch, "error": error}),
        ))])
        .await?;
        Ok(Input::StartFailed)
    }

    async fn try_start(&self, record: &crate::event::SessionRecord, resume: bool) -> Result<Session, String> {
        let until = tokio::time::Instant::now() + self.shared.policy.lease_patience;
        loop {
            let options = self
                .shared
                .policy
                .options_of(record, resume)
                .map_err(|error| error.to_string())?;
            let options = options
                .permissions(Inbox)
                .elicitation(|_| async { Reply::Parked });
            match options.start().await {
                Ok(session) => return Ok(session),
                // A process of a host that was killed ends by itself when it sees that its input ended.
                Err(error) if error.as_lease_problem().is_some() && tokio::time::Instant::now() < until => {
                    tokio::time::sleep(LEASE_POLL).await;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    async fn deliver(&mut self, id: Uuid) {
        let (Some(running), Some(payload)) = (&mut self.running, self.prompts.remove(&id)) else {
            return;
        };
        self.contact.used.store(
            self.shared.ticks.fetch_add(1, Ordering::Relaxed),
            Ordering::Relaxed,
        );
        let session = running.session.clone();
        let turn = async move {
            let prompt = wire::prompt(&payload, id).map_err(|error| (error.to_string(), false))?;
            let told = |error: outrigger::Error| (error.to_string(), error.end().is_some());
            let mut turn = session.prompt(prompt).await.map_err(told)?;
            turn.outcome().await.map(drop).map_err(told)
        };
        let (ended, outcome) = oneshot::channel();
        running.turn = Some(outcome);
        tokio::spawn(async move {
            // An owner that is gone has marked the turn already.
            drop(ended.send(turn.await));
        });
    }

    /// Ends the process, and keeps what it still said.
    async fn close(&mut self) -> Result<()> {
        let Some(running) = self.running.take() else {
            return Ok(());
        };
        let Running {
            session,
            mut frames,
            turn,
            _place,
        } = running;
        drop(turn);
        if let Err(error) = session.close().await {
            tracing::debug!(%error, session = %self.id, "closing");
        }
        let mut steps = Vec::new();
        while let Some(Ok(frame)) = frames.next().await {
            self.note(&frame, &mut steps);
        }
        steps.push(Write::Append(NewEvent::host(
            "process_exited",
            json!({"type": "process_exited", "reason": "released"}),
        )));
        self.write(steps).await
    }

    /// Appends this frame, and those that are there already.
    async fn frames(&mut self, first: Option<Result<Frame, Lag>>) -> Result<()> {
        let mut next = Some(first);
        let mut steps = Vec::new();
        let mut asked = Vec::new();
        while let Some(item) = next.take() {
            match item {
                None => {
                    self.write(std::mem::take(&mut steps)).await?;
                    return self.exited().await;
                }
                Some(Err(lag)) => {
                    let payload = json!({"type": "frames_lost", "frames": lag.frames, "bytes": lag.bytes});
                    steps.push(Write::Append(NewEvent::host("frames_lost", payload)));
                }
                Some(Ok(frame)) if is_ephemeral(&frame) => {
                    self.write(std::mem::take(&mut steps)).await?;
                    self.shared
                        .log
                        .hub()
                        .publish(&self.id, Live::Ephemeral(frame.text().into()));
                }
                Some(Ok(frame)) => {
                    if frame.kind() == "system" && frame.subtype() == Some("init") && !self.is_ours(&frame) {
                        self.write(steps).await?;
                        return self.wrong_session(&frame).await;
                    }
                    if let Some(input) = self.note(&frame, &mut steps) {
                        asked.push(input);
                    }
                }
            }
            if steps.len() < BATCH
                && let Some(running) = &mut self.running
            {
                next = running.frames.next().now_or_never();
            }
        }
        let mut steps = Some(steps);
        for input in asked {
            self.feed(input, steps.take().unwrap_or_default()).await?;
        }
        self.write(steps.unwrap_or_default()).await
    }

    fn is_ours(&self, init: &Frame) -> bool {
        init.session_id().is_none_or(|id| self.id == *id)
    }

    /// The CLI runs another conversation than the one it was told to resume.
    async fn wrong_session(&mut self, init: &Frame) -> Result<()> {
        if let Some(running) = self.running.take() {
            drop(running.session.kill().await);
        }
        self.failed = true;
        let payload = json!({"type": "resume_failed", "error": "the CLI runs another session", "session_id": init.session_id()});
        let steps = vec![Write::Append(NewEvent::host("resume_failed", payload))];
        self.state.queue.clear();
        self.feed(Input::Exited, steps).await?;
        self.write(vec![Write::Enter(SessionState::Failed)]).await
    }

    /// What a frame means for the log. Frames between the CLI and the host itself are not part of the conversation.
    fn note(&self, frame: &Frame, steps: &mut Vec<Write>) -> Option<Input> {
        let payload = RawJson::from_text(frame.text()).unwrap_or_else(|_| RawJson::from(json!(frame.text())));
        let append = |kind: &str| Write::Append(NewEvent::new(Source::Worker, kind, payload));
        match frame.kind() {
            "control_response" | "transcript_mirror" => None,
            "control_request" => {
                let approval = wire::approval(&self.id, frame)?;
                let request = approval.request_id.clone();
                steps.push(append("control_request"));
                steps.push(Write::Open(Box::new(approval)));
                Some(Input::Asked(request))
            }
            "control_cancel_request" => {
                let request = frame.request_id()?.to_owned();
                if !self.state.open.contains(&request) {
                    return None;
                }
                steps.push(append("control_cancel_request"));
                steps.push(Write::Withdraw(request.clone()));
                Some(Input::Closed(request))
            }
            "result" => {
                steps.push(append("result"));
                steps.push(Write::HasHistory);
                None
            }
            kind => {
                steps.push(append(kind));
                None
            }
        }
    }

    async fn turn_ended(&mut self, outcome: Result<(), (String, bool)>) -> Result<()> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        running.turn = None;
        if let Some(frame) = running.frames.next().now_or_never() {
            self.frames(frame).await?;
        }
        if self.running.is_none() {
            return Ok(());
        }
        let mut steps = Vec::new();
        if let Err((error, has_ended)) = outcome {
            if has_ended {
                return self.exited().await;
            }
            let payload = json!({"type": "prompt_failed", "event_id": self.state.running, "error": error});
            steps.push(Write::Append(NewEvent::host("prompt_failed", payload)));
        }
        self.feed(Input::TurnEnded, steps).await
    }

    async fn exited(&mut self) -> Result<()> {
        let Some(running) = self.running.take() else {
            return Ok(());
        };
        let error = running.session.wait_ended().await;
        drop(running);
        let payload = json!({"type": "process_exited", "reason": error.to_string()});
        self.feed(
            Input::Exited,
            vec![Write::Append(NewEvent::host("process_exited", payload))],
        )
        .await
    }

    async fn command(&mut self, command: Option<Command>) -> Result<()> {
        match command {
            None => Err(HostError::Closed),
            Some(Command::Shutdown(reply)) => {
                self.state.queue.clear();
                self.close().await?;
                self.feed(Input::Exited, Vec::new()).await?;
                let _ = reply.send(());
                Ok(())
            }
            Some(Command::Interrupt(reply)) => {
                if let Some(running) = &self.running {
                    let session = running.session.clone();
                    // Frames go on while the CLI is told.
                    tokio::spawn(async move {
                        let done: outrigger::Result<Interrupted> = session.interrupt().await;
                        drop(
                            reply.send(
                                done.map(drop)
                                    .map_err(|error| HostError::Invalid(error.to_string())),
                            ),
                        );
                    });
                }
                Ok(())
            }
            Some(Command::Stop(reply)) => {
                if let Some(running) = self.running.take() {
                    drop(running.session.kill().await);
                }
                let payload = json!({"type": "process_exited", "reason": "stopped by a client"});
                self.feed(
                    Input::Exited,
                    vec![Write::Append(NewEvent::host("process_exited", payload))],
                )
                .await?;
                let _ = reply.send(());
                Ok(())
            }
        }
    }
}

fn is_ephemeral(frame: &Frame) -> bool {
    matches!(frame.kind(), "stream_event" | "keep_alive")
}
