//! The host: what a program or a server calls.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use outrigger::SessionId;
use outrigger::protocol::RawJson;
use serde_json::json;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::approval::{Approval, ApprovalState};
use crate::clock::now;
use crate::error::{HostError, Result};
use crate::event::{Accepted, SessionRecord, SessionState, Source};
use crate::log::{Counts, Hints, Log, NewEvent, Page, Update, Write};
use crate::owner::{Command, Contact, Owner, Shared};
use crate::policy::HostPolicy;
use crate::schedule::{DueRun, Schedule};
use crate::subscription::Subscription;
use crate::wire::{self, Sent};

/// The most commands that wait for a session.
const COMMANDS: usize = 64;

/// How long a session whose log failed waits before it tries again.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Owns sessions. Cheap to clone.
///
/// Needs a tokio runtime with time. When all clones are dropped, sessions go on until their work is done; [`shutdown`](Self::shutdown) ends them.
#[derive(Clone)]
pub struct SessionHost(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    owners: Arc<Owners>,
    closed: AtomicBool,
    tasks: Mutex<JoinSet<()>>,
}

impl Inner {
    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Owners(Mutex<HashMap<SessionId, Arc<Contact>>>);

impl Owners {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Contact>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SessionHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionHost")
            .field("policy", &self.0.shared.policy)
            .finish_non_exhaustive()
    }
}

/// What a new session is.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NewSession {
    /// The id; random if unset. A client that repeats a creation with the same id and the same values gets the session that is there.
    pub id: Option<SessionId>,
    /// The working directory, which has to be in a root of the policy.
    pub cwd: PathBuf,
    /// A title.
    pub title: Option<String>,
    /// The model, if the policy lets clients choose it.
    pub model: Option<String>,
    /// The permission mode, if the policy lets clients choose it.
    pub permission_mode: Option<String>,
}

impl NewSession {
    /// A session in this directory.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self {
            cwd: cwd.into(),
            ..Self::default()
        }
    }
}

impl SessionHost {
    /// Opens a host on a log, and goes on with what a host of before left: turns that were cut off are reported as interrupted, their approvals are
    /// superseded, and prompts that no process got are given to one.
    ///
    /// # Errors
    /// When the log can't be read.
    pub async fn open(policy: HostPolicy, log: impl Log) -> Result<Self> {
        let log: Arc<dyn Log> = Arc::new(log);
        let owners = Arc::new(Owners::default());
        let idle = Arc::downgrade(&owners);
        let shared = Shared {
            places: Arc::new(Semaphore::new(policy.max_processes.max(1))),
            policy,
            ticks: AtomicU64::new(1),
            make_room: Box::new(move || make_room(&idle)),
            log: Arc::clone(&log),
        };
        let host = Self(Arc::new(Inner {
            shared: Arc::new(shared),
            owners,
            closed: AtomicBool::new(false),
            tasks: Mutex::default(),
        }));
        for session in log.unfinished().await? {
            host.wake(&session);
        }
        Ok(host)
    }

    fn log(&self) -> &Arc<dyn Log> {
        &self.0.shared.log
    }

    /// The log.
    pub fn event_log(&self) -> Arc<dyn Log> {
        Arc::clone(self.log())
    }

    /// Creates a session. No process is started before its first prompt.
    ///
    /// # Errors
    /// When the policy does not allow it, or the id is that of another session.
    pub async fn create(&self, new: NewSession, actor: impl Into<String>) -> Result<SessionRecord> {
        let policy = &self.0.shared.policy;
        policy.check(new.model.as_deref(), new.permission_mode.as_deref())?;
        let cwd = policy.directory(&new.cwd)?;
        let Some(cwd) = cwd.to_str().map(str::to_owned) else {
            return Err(HostError::Invalid(format!(
                "the directory {} is not UTF-8",
                cwd.display()
            )));
        };
        let id = new.id.unwrap_or_else(SessionId::random);
        let record = SessionRecord {
            id: id.clone(),
            state: SessionState::Idle,
            cwd,
            title: new.title,
            model: new.model,
            permission_mode: new.permission_mode,
            epoch: 0,
            head_seq: 0,
            trimmed_seq: 0,
            has_history: false,
            pending_approvals: 0,
            created_at: now(),
            created_by: Some(actor.into()),
        };
        self.log()
            .write(&id, vec![Write::Create(Box::new(record))])
            .await?;
        self.session(&id).await
    }

    /// A session.
    ///
    /// # Errors
    /// When there is none, or the log can't be read.
    pub async fn session(&self, id: &SessionId) -> Result<SessionRecord> {
        self.log().session(id).await
    }

    /// Up to `limit` sessions, at most 1000, with an id after `after`, in the order of their ids.
    ///
    /// # Errors
    /// When the log can't be read.
    pub async fn sessions(&self, after: Option<&SessionId>, limit: usize) -> Result<Vec<SessionRecord>> {
        self.log().sessions(after, limit).await
    }

    /// Changes what clients may change of a session. A new model or permission mode holds for the process that runs, too.
    ///
    /// # Errors
    /// When the policy does not allow it, the session is missing, or the log fails.
    pub async fn update(&self, session: &SessionId, update: Update) -> Result<SessionRecord> {
        let policy = &self.0.shared.policy;
        let (model, mode) = (
            update.model.clone().flatten(),
            update.permission_mode.clone().flatten(),
        );
        policy.check(model.as_deref(), mode.as_deref())?;
        self.log()
            .write(session, vec![Write::Update(update.clone())])
            .await?;
        self.command(session, Command::Apply(update))?;
        self.session(session).await
    }

    /// Starts a process, if the session has none. The session is `starting` then, and `idle` when the process is there.
    ///
    /// # Errors
    /// When the session is missing or archived.
    pub async fn resume(&self, session: &SessionId) -> Result<()> {
        if self.session(session).await?.state == SessionState::Ended {
            return Err(HostError::Archived(session.clone()));
        }
        self.wake_with(session, true);
        Ok(())
    }

    /// Takes a frame of a client; see [`send_all`](Self::send_all).
    ///
    /// # Cancel safety
    /// As [`send_all`](Self::send_all).
    ///
    /// # Errors
    /// As [`send_all`](Self::send_all).
    pub async fn send(
        &self,
        session: &SessionId,
        frame: RawJson,
        actor: impl Into<String>,
    ) -> Result<Accepted> {
        let mut accepted = self.send_all(session, vec![frame], actor).await?;
        // One for each frame.
        accepted.pop().ok_or(HostError::Closed)
    }

    /// Takes frames of a client, all of them or none: a prompt (`user`), a request (`control_request`), its withdrawal (`control_cancel_request`),
    /// or a decision (`control_response`).
    ///
    /// When this returns, they are on disk. A prompt with a `uuid`, and a request with its `request_id`, may be sent again: the log takes them once.
    /// The reply to a request is an event, `control_response`. Clients may ask for `initialize`, `interrupt`, `set_model` and `set_permission_mode`,
    /// and of the process that runs for what does not widen the policy, see `docs/host.md`. A decision about an approval that was decided
    /// before is no error; the result has who decided.
    ///
    /// # Cancel safety
    /// Dropped, it may have stored the frames or not. Send them again to be sure.
    ///
    /// # Errors
    /// When a frame makes no sense or the policy does not allow it, the session is missing or archived, or the log fails. Then nothing was stored.
    pub async fn send_all(
        &self,
        session: &SessionId,
        frames: Vec<RawJson>,
        actor: impl Into<String>,
    ) -> Result<Vec<Accepted>> {
        if self.0.closed.load(Ordering::Acquire) {
            return Err(HostError::Closed);
        }
        let actor = actor.into();
        let mut steps = Vec::new();
        for frame in frames {
            steps.push(match wire::sent(frame)? {
                Sent::Accept(mut event) => {
                    event.actor = Some(actor.clone());
                    Write::Accept(event)
                }
                Sent::Decision { request, answer } => {
                    let Some(approval) = self.log().approval_of(session, &request).await? else {
                        return Err(HostError::Invalid(format!(
                            "no request {request} waits for a response"
                        )));
                    };
                    let answer = answer.unwrap_or_else(|error| wire::refusal(approval.kind, error));
                    self.decision(&approval, answer, actor.clone(), false)?
                }
            });
        }
        let receipt = self.log().write(session, steps).await?;
        self.wake(session);
        Ok(receipt.accepted)
    }

    /// Carries out what is due of a schedule, in one transaction: sets when it is due next, reports what was missed, and takes the prompt.
    /// `false` if it was not due any more, because this was done before.
    ///
    /// # Cancel safety
    /// Dropped, it may have done it or not. Repeated, it does nothing twice.
    ///
    /// # Errors
    /// When the session is missing or archived, or the log fails. Then nothing was stored.
    pub async fn run_schedule(&self, schedule: &Schedule, due: DueRun) -> Result<bool> {
        if self.0.closed.load(Ordering::Acquire) {
            return Err(HostError::Closed);
        }
        let mut steps = vec![Write::Reschedule {
            id: schedule.id,
            due: schedule.next_at,
            next_at: due.next_at,
            enabled: schedule.enabled,
        }];
        if let Some((first, last, count)) = due.missed {
            let payload = json!({
                "type": "schedule_missed", "schedule_id": schedule.id, "first": first, "last": last, "count": count,
                "runs": due.run == Some(last),
            });
            steps.push(Write::Append(NewEvent::host("schedule_missed", payload)));
        }
        if let Some(at) = due.run {
            let uuid = schedule.prompt_id(at);
            let frame = json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": schedule.prompt}});
            let mut event = NewEvent::new(Source::Client, "user", frame.into());
            event.event_id = uuid;
            event.actor = Some(format!("schedule:{}", schedule.id));
            steps.push(Write::Accept(event));
        }
        match self.log().write(&schedule.session_id, steps).await {
            Ok(_) => {
                self.wake(&schedule.session_id);
                Ok(true)
            }
            Err(HostError::NoSchedule(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Up to `limit` events, at most 1000, after a `seq`.
    ///
    /// # Errors
    /// When the session is missing, or the log can't be read.
    pub async fn events(&self, session: &SessionId, after: u64, limit: usize) -> Result<Page> {
        self.log().events(session, after, limit).await
    }

    /// Reads a session from a cursor, and on.
    ///
    /// # Errors
    /// When the session is missing, the cursor is after its newest event, or the log can't be read.
    pub async fn subscribe(&self, session: &SessionId, after: u64) -> Result<Subscription> {
        Subscription::new(Arc::clone(self.log()), session.clone(), after).await
    }

    /// How much the log has.
    ///
    /// # Errors
    /// When the log can't be read.
    pub async fn counts(&self) -> Result<Counts> {
        self.log().counts().await
    }

    /// Hints about all sessions, from now on.
    pub fn hints(&self) -> Hints {
        self.log().hub().hints()
    }

    /// Up to `limit` approvals, at most 1000, the oldest first, from behind `after` on: of one session or of all, in one state or in any.
    ///
    /// # Errors
    /// When the log can't be read, or has no approval `after`.
    pub async fn approvals(
        &self,
        session: Option<&SessionId>,
        state: Option<ApprovalState>,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<Approval>> {
        self.log().approvals(session, state, after, limit).await
    }

    /// An approval.
    ///
    /// # Errors
    /// When there is none, or the log can't be read.
    pub async fn approval(&self, id: Uuid) -> Result<Approval> {
        self.log().approval(id).await
    }

    /// Decides about an approval. `answer` is the `response` that the CLI gets: for tools, questions and plans `{"behavior": "allow" | "deny", …}`, for forms
    /// `{"action": …}`. The first decision counts. The same actor may repeat the same decision.
    ///
    /// # Errors
    /// [`HostError::TooLate`] with who decided, when it is not pending any more; when the answer is none to such a question; when the policy does
    /// not allow a change of permissions that is in it ([`HostPolicy`]); when the log fails.
    pub async fn decide(&self, id: Uuid, answer: RawJson, actor: impl Into<String>) -> Result<Approval> {
        let approval = self.log().approval(id).await?;
        let step = self.decision(&approval, answer, actor.into(), true)?;
        self.log().write(&approval.session_id, vec![step]).await?;
        self.wake(&approval.session_id);
        self.log().approval(id).await
    }

    fn decision(
        &self,
        approval: &Approval,
        answer: RawJson,
        actor: String,
        must_be_first: bool,
    ) -> Result<Write> {
        Ok(Write::Decide {
            id: approval.id,
            // A late answer is told that it is late, whatever it says.
            state: match wire::verdict(&self.0.shared.policy, approval.kind, &answer) {
                Err(_) if approval.state != ApprovalState::Pending => approval.state,
                state => state?,
            },
            actor: Some(actor),
            decision: Some(answer),
            must_be_first,
        })
    }

    /// Interrupts the turn that runs; does nothing if none does.
    ///
    /// # Errors
    /// When the CLI does not confirm it, or too many commands wait.
    pub async fn interrupt(&self, session: &SessionId) -> Result<()> {
        let (reply, done) = oneshot::channel();
        if !self.command(session, Command::Interrupt(reply))? {
            return self.session(session).await.map(drop);
        }
        // Without a reply the process is gone, and the turn with it.
        done.await.unwrap_or(Ok(()))
    }

    /// Kills the process. Its turn is interrupted; prompts that wait are given to the next process.
    ///
    /// # Errors
    /// When the session is missing, or too many commands wait.
    pub async fn stop(&self, session: &SessionId) -> Result<()> {
        let (reply, done) = oneshot::channel();
        if !self.command(session, Command::Stop(reply))? {
            return self.session(session).await.map(drop);
        }
        // Without a reply the process is gone.
        let _ = done.await;
        Ok(())
    }

    /// Ends a session for good: it takes no prompts any more, and can be read.
    ///
    /// # Errors
    /// When the session is missing, or the log fails.
    pub async fn archive(&self, session: &SessionId) -> Result<()> {
        self.log()
            .write(session, vec![Write::Enter(SessionState::Ended)])
            .await?;
        self.stop(session).await
    }

    /// Removes an archived session from the log. The CLI's transcript stays.
    ///
    /// # Errors
    /// When the session is missing, was not archived, or the log fails.
    pub async fn delete(&self, session: &SessionId) -> Result<()> {
        if self.session(session).await?.state != SessionState::Ended {
            return Err(HostError::Invalid(format!(
                "the session {session} has to be archived before it is deleted"
            )));
        }
        self.stop(session).await?;
        self.log().write(session, vec![Write::Delete]).await.map(drop)
    }

    /// Removes the events up to a `seq` (retention). A reader with an older cursor is told.
    ///
    /// # Errors
    /// When the session is missing, or the log fails.
    pub async fn trim(&self, session: &SessionId, seq: u64) -> Result<()> {
        self.log().write(session, vec![Write::Trim(seq)]).await.map(drop)
    }

    /// Ends all processes, and takes nothing more. What waits goes on in the next host.
    ///
    /// # Cancel safety
    /// Dropped, the host is closed, and its processes end in the background.
    pub async fn shutdown(&self) {
        self.0.closed.store(true, Ordering::Release);
        let contacts: Vec<_> = self.0.owners.lock().values().cloned().collect();
        let mut ends = Vec::new();
        for contact in contacts {
            let (reply, done) = oneshot::channel();
            if contact.commands.send(Command::Shutdown(reply)).await.is_ok() {
                ends.push(done);
            }
        }
        for done in ends {
            // Without a reply the owner has ended by itself.
            let _ = done.await;
        }
        let mut tasks = std::mem::take(&mut *self.0.tasks());
        while tasks.join_next().await.is_some() {}
    }

    /// Whether there was an owner that got the command.
    fn command(&self, session: &SessionId, command: Command) -> Result<bool> {
        let Some(contact) = self.0.owners.lock().get(session).cloned() else {
            return Ok(false);
        };
        match contact.commands.try_send(command) {
            Ok(()) => Ok(true),
            Err(mpsc::error::TrySendError::Closed(_)) => Ok(false),
            Err(mpsc::error::TrySendError::Full(_)) => Err(HostError::Busy("the session")),
        }
    }

    /// Tells the owner of a session that the log has news, and makes one if there is none.
    fn wake(&self, session: &SessionId) {
        self.wake_with(session, false);
    }

    fn wake_with(&self, session: &SessionId, is_wanted: bool) {
        let mut owners = self.0.owners.lock();
        if self.0.closed.load(Ordering::Acquire) {
            return;
        }
        if let Some(contact) = owners.get(session) {
            contact.is_wanted.fetch_or(is_wanted, Ordering::AcqRel);
            contact.calls.fetch_add(1, Ordering::AcqRel);
            contact.wake.notify_one();
            return;
        }
        let (commands, received) = mpsc::channel(COMMANDS);
        let contact = Arc::new(Contact {
            wake: Notify::new(),
            calls: AtomicU64::new(1),
            seen: AtomicU64::new(0),
            commands,
            is_wanted: AtomicBool::new(is_wanted),
            is_idle: AtomicBool::new(false),
            used: AtomicU64::new(0),
            release: Notify::new(),
        });
        owners.insert(session.clone(), Arc::clone(&contact));
        drop(owners);
        let mut tasks = self.0.tasks();
        // Those that have ended need no room.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(own(Arc::clone(&self.0), session.clone(), contact, received));
    }
}

/// Owns a session until it has nothing to do.
async fn own(inner: Arc<Inner>, id: SessionId, contact: Arc<Contact>, mut commands: mpsc::Receiver<Command>) {
    loop {
        let mut owner = Owner::new(Arc::clone(&inner.shared), id.clone(), Arc::clone(&contact));
        let failed = owner.run(&mut commands).await.err();
        let is_closed = inner.closed.load(Ordering::Acquire);
        if let Some(error) = &failed {
            tracing::error!(%error, session = %id, "the owner of a session ended");
            if !is_closed && matches!(error, HostError::Log(_)) {
                tokio::time::sleep(AFTER_FAILURE).await;
                continue;
            }
        }
        let mut owners = inner.owners.lock();
        if is_closed
            || failed.is_some()
            || contact.calls.load(Ordering::Acquire) == contact.seen.load(Ordering::Acquire)
        {
            owners.remove(&id);
            return;
        }
    }
}

/// The idle process that was used least recently ends.
fn make_room(owners: &Weak<Owners>) {
    let Some(owners) = owners.upgrade() else {
        return;
    };
    let owners = owners.lock();
    let idle = owners
        .values()
        .filter(|contact| contact.is_idle.load(Ordering::Acquire));
    if let Some(oldest) = idle.min_by_key(|contact| contact.used.load(Ordering::Relaxed)) {
        oldest.release.notify_one();
    }
}
