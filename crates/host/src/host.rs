//! The host: what a program or a server calls.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use outrigger::protocol::RawJson;
use outrigger::{SessionId, SessionUsage};
use serde_json::json;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::approval::{Approval, ApprovalState};
use crate::clock::now;
use crate::error::{HostError, Result};
use crate::event::{Accepted, SessionRecord, SessionState, Source};
use crate::handler::with_handlers;
use crate::log::{Counts, Hints, Log, NewEvent, Page, Receipt, Update, Write};
use crate::owner::{Ask, Command, Contact, Owner, Shared};
use crate::policy::HostPolicy;
use crate::schedule::{DueRun, Schedule};
use crate::spares::{Reservation, SpareCounts, Spares};
use crate::stored::{self, Adoptable, Transcript};
use crate::subscription::Subscription;
use crate::wire::{self, Sent};
use crate::workspace::{self, CleanUp, DiffFrom, NewWorktree, WorkspaceDiff, WorkspacePolicy};

/// The most commands that wait for a session.
const COMMANDS: usize = 64;

/// The kind of the records that have the id of the session which was created under a key.
const CREATIONS: &str = "creations";

/// The kind of the records that have the key under which a session was created.
const KEYS: &str = "creation_keys";

/// How long a session whose log failed waits before it tries again.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Owns sessions. Cheap to clone.
///
/// Needs a tokio runtime with time. When all clones are dropped, spare processes end, and sessions go on until their work is done;
/// [`shutdown`](Self::shutdown) ends them.
#[derive(Clone)]
pub struct SessionHost(
    Arc<Inner>,
    #[expect(dead_code, reason = "it is there to be dropped")] Arc<Handles>,
);

struct Inner {
    shared: Arc<Shared>,
    owners: Arc<Owners>,
    closed: AtomicBool,
    tasks: Mutex<JoinSet<()>>,
    /// Held while it is found out which session was created under a key.
    keys: tokio::sync::Mutex<()>,
}

/// All clones of a host have one of it. When the last is dropped, nobody can create a session that would take a spare.
struct Handles(Arc<Spares>);

impl Drop for Handles {
    fn drop(&mut self) {
        self.0.close();
    }
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
    /// The id; one that the host chooses if unset. A client that repeats a creation with the same id and the same values gets the session that is there. A
    /// session with an id of a client does not take a [spare process](HostPolicy::spares).
    pub id: Option<SessionId>,
    /// What the client knows the creation by if the host chooses the id: a client that repeats it with the same key and the same values gets the session that
    /// is there. The session has the key as its id unless it takes that of a spare process. Not used with an [`id`](Self#structfield.id).
    pub key: Option<SessionId>,
    /// The working directory, which has to be in a root of the policy.
    pub cwd: PathBuf,
    /// A title, of at most 4096 bytes.
    pub title: Option<String>,
    /// The model, if the policy lets clients choose it.
    pub model: Option<String>,
    /// The permission mode, if the policy lets clients choose it.
    pub permission_mode: Option<String>,
    /// A git worktree to be made for it, of the repository that `cwd` is in, if the policy lets clients have one.
    pub worktree: Option<NewWorktree>,
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

/// What the fork of a session is.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NewFork {
    /// The id; random if unset.
    pub id: Option<SessionId>,
    /// A title; that of the other session if unset.
    pub title: Option<String>,
}

impl SessionHost {
    /// Opens a host on a log, and goes on with what a host of before left: turns that were cut off are reported as interrupted, their approvals are
    /// superseded unless they are [deferred](HostPolicy::deferred), decisions that no process got are carried out, and prompts that no process got are given to one.
    ///
    /// # Errors
    /// When the log can't be read.
    pub async fn open(policy: HostPolicy, log: impl Log) -> Result<Self> {
        let log: Arc<dyn Log> = Arc::new(log);
        let owners = Arc::new(Owners::default());
        let idle = Arc::downgrade(&owners);
        let places = Arc::new(Semaphore::new(policy.max_processes.max(1)));
        let spares = Arc::new(spares_of(&policy, &places));
        let shared = Shared {
            places,
            spares: Arc::clone(&spares),
            policy,
            ticks: AtomicU64::new(1),
            turns: Arc::default(),
            closing: watch::Sender::new(false),
            make_room: Box::new(move || make_room(&idle)),
            log: Arc::clone(&log),
        };
        let inner = Inner {
            shared: Arc::new(shared),
            owners,
            closed: AtomicBool::new(false),
            tasks: Mutex::default(),
            keys: tokio::sync::Mutex::default(),
        };
        let host = Self(Arc::new(inner), Arc::new(Handles(Arc::clone(&spares))));
        if spares.are_wanted() {
            host.0.tasks().spawn(spares.keep());
        }
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
        check_title(new.title.as_deref())?;
        let mut cwd = policy.directory(&new.cwd)?;
        let (id, reserved) = match &new.id {
            Some(id) => (id.clone(), None),
            None => self.choose_id(&new).await?,
        };
        let asked = new.worktree.as_ref().map(|new| [&new.branch, &new.base]);
        let request = json!([
            cwd.to_string_lossy(),
            new.title,
            new.model,
            new.permission_mode,
            asked
        ]);
        let mut worktree = None;
        if let Some(new) = &new.worktree {
            let not_allowed = || HostError::NotAllowed("git worktrees".to_owned());
            let workspaces = policy.workspaces.as_ref().ok_or_else(not_allowed)?;
            let known = match self.session(&id).await {
                Ok(known) => known.worktree.map(|worktree| (worktree, known.cwd.into())),
                Err(HostError::NoSession(_)) => None,
                Err(error) => return Err(error),
            };
            let (planned, inside) = match known {
                Some(known) => known,
                None => {
                    let is_allowed = |directory: &Path| policy.directory(directory);
                    workspace::plan(workspaces, is_allowed, &id, &cwd, new).await?
                }
            };
            (worktree, cwd) = (Some(planned), inside);
        }
        let Some(cwd) = cwd.to_str().map(str::to_owned) else {
            return Err(HostError::Invalid(format!(
                "the directory {} is not UTF-8",
                cwd.display()
            )));
        };
        let record = SessionRecord {
            id,
            state: SessionState::Idle,
            cwd,
            worktree,
            adopted: false,
            forked_from: None,
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
        let created = self.insert(record, &request).await?;
        if let Some(reserved) = reserved {
            reserved.keep();
        }
        Ok(created)
    }

    /// The id of a new session: that of a spare if the session may take one.
    async fn choose_id(&self, new: &NewSession) -> Result<(SessionId, Option<Reservation>)> {
        let spares = &self.0.shared.spares;
        let has_own = new.model.is_some() || new.permission_mode.is_some();
        let of_spare = || if has_own { None } else { spares.reserve() };
        let Some(key) = &new.key else {
            let reserved = of_spare();
            let id = reserved.as_ref().map(|spare| spare.id().clone());
            return Ok((id.unwrap_or_else(SessionId::random), reserved));
        };
        let _turn = self.0.keys.lock().await;
        if let Some(known) = self.log().record(CREATIONS, key.as_str()).await? {
            let known = known.read::<SessionId>();
            let known = known.map_err(|error| HostError::Invalid(format!("the creation {key}: {error}")))?;
            return Ok((known, None));
        }
        if !spares.are_wanted() {
            return Ok((key.clone(), None));
        }
        match self.session(key).await {
            // Of a time without spares.
            Ok(known) => return Ok((known.id, None)),
            Err(HostError::NoSession(_)) => {}
            Err(error) => return Err(error),
        }
        let reserved = of_spare();
        let id = reserved.as_ref().map_or(key, Reservation::id).clone();
        // Before the session: a repetition must not find another spare. What finds the record when the session is deleted comes first.
        for (kind, name, value) in [(KEYS, &id, key), (CREATIONS, key, &id)] {
            let value = Some(json!(value).into());
            self.log().put_record(kind, name.as_str(), value).await?;
        }
        Ok((id, reserved))
    }

    /// The spare processes of this host: how many there are, and what became of those of before.
    pub fn spares(&self) -> SpareCounts {
        self.0.shared.spares.counts()
    }

    /// Writes a new session, or finds it if the same was asked for before.
    async fn insert(&self, record: SessionRecord, request: &serde_json::Value) -> Result<SessionRecord> {
        let id = record.id.clone();
        let create = Write::Create {
            record: Box::new(record),
            request: request.to_string(),
        };
        self.log().write(&id, vec![create]).await?;
        self.session(&id).await
    }

    /// Makes a session that begins with the conversation of another one as it is stored now, in the same directory and with the same options.
    /// The other session goes on unchanged. The events of before stay in its log; the CLI's undo history of files is not copied.
    ///
    /// A client that repeats a fork with the same id gets the session that is there.
    ///
    /// # Cancel safety
    /// Dropped, it may have made the session or not; or a stored session that no session of the host knows, which does no harm.
    ///
    /// # Errors
    /// When a turn of the other session runs, it has no stored turn, the id is in use, or the log fails.
    pub async fn fork(
        &self,
        session: &SessionId,
        new: NewFork,
        actor: impl Into<String>,
    ) -> Result<SessionRecord> {
        let source = self.session(session).await?;
        let NewFork { id, title } = new;
        check_title(title.as_deref())?;
        let id = id.unwrap_or_else(SessionId::random);
        let record = SessionRecord {
            id: id.clone(),
            state: SessionState::Idle,
            adopted: false,
            forked_from: Some(session.clone()),
            title: title.clone().or_else(|| source.title.clone()),
            epoch: 0,
            head_seq: 0,
            trimmed_seq: 0,
            has_history: true,
            pending_approvals: 0,
            created_at: now(),
            created_by: Some(actor.into()),
            ..source.clone()
        };
        let request = json!({"fork_of": session, "title": title});
        match self.session(&id).await {
            Err(HostError::NoSession(_)) => {}
            Ok(_) => return self.insert(record, &request).await,
            Err(error) => return Err(error),
        }
        if matches!(
            source.state,
            SessionState::Starting | SessionState::Running | SessionState::RequiresAction
        ) {
            return Err(HostError::TurnRuns(session.clone()));
        }
        let shared = Arc::clone(&self.0.shared);
        let title = record.title.clone();
        blocking(move || stored::fork(&shared.policy, &source, id, title.as_deref())).await?;
        self.insert(record, &request).await
    }

    /// Up to `limit` sessions that the CLI left on this machine, the newest first: of one directory, or of all roots of the policy. Those that the host
    /// has are left out.
    ///
    /// # Errors
    /// When the directory is in no root, or the stored sessions or the log can't be read.
    pub async fn adoptable(&self, cwd: Option<PathBuf>, limit: usize) -> Result<Vec<Adoptable>> {
        let shared = Arc::clone(&self.0.shared);
        let listed = blocking(move || stored::adoptable(&shared.policy, cwd.as_deref())).await?;
        let mut found = Vec::new();
        for session in listed {
            if found.len() == limit {
                break;
            }
            match self.session(&session.id).await {
                Err(HostError::NoSession(_)) => found.push(session),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Takes over a session that the CLI left on this machine, in a root of the policy. The next prompt goes on with it. Its log begins now: the
    /// conversation of before is in its [transcript](Self::transcript) alone.
    ///
    /// # Cancel safety
    /// Dropped, the session may be adopted or not. Adopting it again returns it.
    ///
    /// # Errors
    /// [`HostError::InUse`] while another process drives it; when nothing of it is stored, its directory is in no root, or the log fails.
    pub async fn adopt(
        &self,
        session: &SessionId,
        cwd: Option<PathBuf>,
        actor: impl Into<String>,
    ) -> Result<SessionRecord> {
        match self.session(session).await {
            Ok(known) if known.adopted => return Ok(known),
            Ok(_) => return Err(HostError::Reused(format!("the session id {session}"))),
            Err(HostError::NoSession(_)) => {}
            Err(error) => return Err(error),
        }
        let (shared, id) = (Arc::clone(&self.0.shared), session.clone());
        let adoption = blocking(move || stored::adopt(&shared.policy, &id, cwd.as_deref())).await?;
        let Some(cwd) = adoption.cwd.to_str().map(str::to_owned) else {
            return Err(HostError::Invalid(format!(
                "the directory {} is not UTF-8",
                adoption.cwd.display()
            )));
        };
        let record = SessionRecord {
            id: session.clone(),
            state: SessionState::Idle,
            cwd,
            worktree: None,
            adopted: true,
            forked_from: None,
            title: adoption.title.clone(),
            model: None,
            permission_mode: None,
            epoch: 0,
            head_seq: 0,
            trimmed_seq: 0,
            has_history: true,
            pending_approvals: 0,
            created_at: now(),
            created_by: Some(actor.into()),
        };
        let adopted = self.insert(record, &json!("adopted")).await;
        drop(adoption);
        adopted
    }

    /// The transcript of a session: what the CLI has stored of it.
    ///
    /// # Errors
    /// When the session is missing, it has no stored turn, or the file can't be opened.
    pub async fn transcript(&self, session: &SessionId) -> Result<Transcript> {
        let record = self.session(session).await?;
        let shared = Arc::clone(&self.0.shared);
        blocking(move || Transcript::open(&shared.policy, &record)).await
    }

    /// What a session has used, over all its processes: the sum of its logged results. A turn that was cut off has no result.
    ///
    /// # Errors
    /// When the session is missing, or the log can't be read.
    pub async fn usage(&self, session: &SessionId) -> Result<SessionUsage> {
        self.session(session).await?;
        self.log().usage(Some(session)).await
    }

    /// What all sessions have used together, those that were deleted included.
    ///
    /// # Errors
    /// When the log can't be read.
    pub async fn total_usage(&self) -> Result<SessionUsage> {
        self.log().usage(None).await
    }

    /// Brings the files that the CLI changed back to what they were before a prompt, given by its `uuid`. The conversation stays. With `dry_run`
    /// nothing is changed. Returns what the CLI answers (`rewind_files`).
    ///
    /// Needs [`enable_file_checkpointing`](outrigger::Options::enable_file_checkpointing) in the options of the policy. A process is started if there is
    /// none. What was done is an event (`files_rewound`).
    ///
    /// # Cancel safety
    /// Dropped, the files may be changed, without an event of it.
    ///
    /// # Errors
    /// When a turn runs, unless it is a dry run; when the CLI refuses, or the log fails.
    pub async fn rewind(
        &self,
        session: &SessionId,
        prompt: Uuid,
        dry_run: bool,
        actor: impl Into<String>,
    ) -> Result<RawJson> {
        let fields = json!({"user_message_id": prompt, "dry_run": dry_run});
        let answer = self.ask(session, "rewind_files", fields, !dry_run).await?;
        if !dry_run {
            let payload = json!({"type": "files_rewound", "event_id": prompt, "answer": answer});
            let mut event = NewEvent::new(Source::Client, "files_rewound", payload.into());
            event.actor = Some(actor.into());
            self.log().write(session, vec![Write::Append(event)]).await?;
        }
        Ok(answer)
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

    /// Changes what clients may change of a session. A new model or permission mode holds for the process that runs, too; one that was
    /// removed holds from the next process on.
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
        check_title(update.title.as_ref().and_then(Option::as_deref))?;
        self.log()
            .write(session, vec![Write::Update(update.clone())])
            .await?;
        self.command(session, Command::Apply(update))?;
        self.session(session).await
    }

    /// Starts a process, if the session has none. The session is `starting` then, and `idle` when the process is there. While a deferred call waits, no
    /// process is started.
    ///
    /// # Errors
    /// When the session is missing or archived.
    pub async fn resume(&self, session: &SessionId) -> Result<()> {
        if self.session(session).await?.state == SessionState::Ended {
            return Err(HostError::Archived(session.clone()));
        }
        self.reach(session, None, true)
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
    /// When a frame makes no sense or the policy does not allow it, the session is missing or archived, or the log fails. [`HostError::Busy`] when 1000 frames
    /// of the session wait or are at work, or 32 MiB of them. Then nothing was stored.
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
        Ok(self.write_and_wake(session, steps).await?.accepted)
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
        match self.write_and_wake(&schedule.session_id, steps).await {
            Ok(_) => Ok(true),
            Err(HostError::NoSchedule(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Up to `limit` events, at most 1000, after a `seq`; fewer if they are long, so that a page has 4 MiB or a single event. The last page is that whose last
    /// event is [`Page::head_seq`].
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
        self.write_and_wake(&approval.session_id, vec![step]).await?;
        self.log().approval(id).await
    }

    fn decision(
        &self,
        approval: &Approval,
        answer: RawJson,
        actor: String,
        must_be_first: bool,
    ) -> Result<Write> {
        let policy = &self.0.shared.policy;
        let mut verdict = wire::verdict(policy, approval.kind, &answer);
        if !policy.changed_inputs && wire::changes_input(approval, &answer) {
            let what = "a changed input of a call, which no rule would be asked about";
            verdict = Err(HostError::NotAllowed(what.to_owned()));
        }
        Ok(Write::Decide {
            id: approval.id,
            // A late answer is told that it is late, whatever it says.
            state: match verdict {
                Err(_) if approval.state != ApprovalState::Pending => approval.state,
                state => state?,
            },
            actor: Some(actor),
            decision: Some(answer),
            must_be_first,
        })
    }

    /// Interrupts the turn that runs; does nothing if none does. A deferred call that waits is denied, and its turn ends.
    ///
    /// # Errors
    /// When the CLI does not confirm it, or too many commands wait.
    pub async fn interrupt(&self, session: &SessionId) -> Result<()> {
        let (reply, done) = oneshot::channel();
        if self.session(session).await?.state == SessionState::RequiresAction {
            // A call that waits has a turn without a process, and may have no owner.
            self.reach(session, Some(Command::Interrupt(reply)), false)?;
        } else if !self.command(session, Command::Interrupt(reply))? {
            return Ok(());
        }
        // Without a reply the process is gone, and the turn with it.
        done.await.unwrap_or(Ok(()))
    }

    /// Kills the process. Its turn is interrupted; prompts that wait are given to the next process. A deferred call that waits for a decision goes on
    /// waiting: [`interrupt`](Self::interrupt) ends it.
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

    /// Ends a session for good: it takes no prompts any more, and can be read. Prompts that wait are not begun, and a deferred call that waits is
    /// never carried out.
    ///
    /// # Errors
    /// When the session is missing, or the log fails.
    pub async fn archive(&self, session: &SessionId) -> Result<()> {
        let give_up = Write::GiveUpAll {
            reason: "the session was archived".to_owned(),
        };
        self.write_and_wake(session, vec![Write::Enter(SessionState::Ended), give_up])
            .await?;
        self.0.shared.spares.forget(session);
        self.stop(session).await?;
        self.clean_up(session, &[CleanUp::Archived]).await
    }

    /// Removes the worktree if the policy says so, and tells what became of it.
    async fn clean_up(&self, session: &SessionId, when: &[CleanUp]) -> Result<()> {
        let Some(workspaces) = &self.0.shared.policy.workspaces else {
            return Ok(());
        };
        if !when.contains(&workspaces.clean_up) {
            return Ok(());
        }
        let has_worktree = self.session(session).await?.worktree.is_some();
        let removed = match self.remove_workspace(session, false).await {
            Ok(removed) => removed.map(str::to_owned),
            // It is kept, and can be removed later.
            Err(HostError::Workspace(error)) => Some(error),
            Err(error) => return Err(error),
        };
        if !has_worktree {
            return Ok(());
        }
        let (kind, why) = match removed {
            None => ("workspace_removed", None),
            Some(why) => ("workspace_kept", Some(why)),
        };
        let event = NewEvent::host(kind, json!({"type": kind, "reason": why}));
        self.log()
            .write(session, vec![Write::Append(event)])
            .await
            .map(drop)
    }

    /// Removes the git worktree of an archived session with its branch, and what the host keeps of its files. A worktree with changes, with commits of its
    /// own, or in which another session works, is kept, and the reason is returned. With `force` only another session keeps it.
    ///
    /// Files that git ignores are removed without asking. A branch with commits of its own stays in any case.
    ///
    /// # Cancel safety
    /// Dropped, a part may be left. Call it again.
    ///
    /// # Errors
    /// When the session is missing or not archived, the policy has no workspaces, git fails, or the log can't be read.
    pub async fn remove_workspace(&self, session: &SessionId, force: bool) -> Result<Option<&'static str>> {
        let record = self.session(session).await?;
        if record.state != SessionState::Ended {
            return Err(HostError::Invalid(format!(
                "the session {session} has to be archived before its workspace is removed"
            )));
        }
        let workspaces = self.workspaces()?;
        let others = match &record.worktree {
            Some(worktree) => self.log().others_in(&worktree.path, session).await?,
            None => 0,
        };
        let removed = workspace::remove(workspaces, &record, others > 0, force).await;
        removed.map_err(HostError::Workspace)
    }

    fn workspaces(&self) -> Result<&WorkspacePolicy> {
        let workspaces = self.0.shared.policy.workspaces.as_ref();
        workspaces.ok_or_else(|| HostError::NotAllowed("workspaces".to_owned()))
    }

    /// What changed in the files of a session, by whomever: new, changed and removed files, without those that git ignores.
    ///
    /// # Errors
    /// When the session is missing, the policy has no workspaces or no snapshots, no turn has begun yet, or git fails.
    pub async fn diff(&self, session: &SessionId, from: DiffFrom) -> Result<WorkspaceDiff> {
        let record = self.session(session).await?;
        let files = || self.0.shared.policy.files_of(&record);
        workspace::diff(self.workspaces()?, &record, files, from).await
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
        self.clean_up(session, &[CleanUp::Archived, CleanUp::Deleted])
            .await?;
        self.log().write(session, vec![Write::Delete]).await?;
        let Some(key) = self.log().record(KEYS, session.as_str()).await? else {
            return Ok(());
        };
        if let Ok(key) = key.read::<SessionId>() {
            self.log().put_record(CREATIONS, key.as_str(), None).await?;
        }
        self.log().put_record(KEYS, session.as_str(), None).await
    }

    /// Removes the events up to a `seq` (retention). A reader with an older cursor is told.
    ///
    /// # Errors
    /// When the session is missing, or the log fails.
    pub async fn trim(&self, session: &SessionId, seq: u64) -> Result<()> {
        self.log().write(session, vec![Write::Trim(seq)]).await.map(drop)
    }

    /// Lets no turn begin any more, and waits until those that run have ended, as before an upgrade. All else goes on: prompts are taken, and wait for
    /// the next host; calls are decided about. A turn whose call is [deferred](HostPolicy::deferred) does not run, and goes on in the next host.
    ///
    /// Without a deadline: a turn may wait for a person. [`shutdown`](Self::shutdown) interrupts what still runs.
    ///
    /// # Cancel safety
    /// Dropped, nobody waits any more; no turn begins all the same.
    pub async fn drain(&self) {
        self.0.shared.turns.drain().await;
    }

    /// Ends all processes, and takes nothing more. What waits goes on in the next host.
    ///
    /// # Cancel safety
    /// Dropped, the host is closed, and its processes end in the background.
    pub async fn shutdown(&self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.shared.closing.send_replace(true);
        self.0.shared.spares.close();
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
        let is_stop = matches!(command, Command::Stop(_));
        if is_stop {
            contact.stops.send_modify(|stops| *stops += 1);
        }
        let sent = contact.commands.try_send(command);
        if is_stop && sent.is_err() {
            contact
                .stops
                .send_modify(|stops| *stops = stops.saturating_sub(1));
        }
        match sent {
            Ok(()) => Ok(true),
            Err(mpsc::error::TrySendError::Closed(_)) => Ok(false),
            Err(mpsc::error::TrySendError::Full(_)) => Err(HostError::Busy("the session")),
        }
    }

    /// Asks the CLI, with a process that is started for it if there is none. Waits for a place for as long as it takes.
    async fn ask(
        &self,
        session: &SessionId,
        subtype: &'static str,
        fields: serde_json::Value,
        needs_rest: bool,
    ) -> Result<RawJson> {
        if self.session(session).await?.state == SessionState::Ended {
            return Err(HostError::Archived(session.clone()));
        }
        let (reply, answer) = oneshot::channel();
        let ask = Ask {
            subtype,
            fields,
            needs_rest,
            reply,
        };
        self.reach(session, Some(Command::Ask(ask)), false)?;
        // Without a reply the owner has ended, as it does when the log fails.
        answer.await.unwrap_or(Err(HostError::Busy("the session")))
    }

    /// Does a transaction, and tells the owner of the session. A caller who is gone by then does not keep the owner from hearing of it: what is on
    /// disk would lie there until somebody sends something else.
    async fn write_and_wake(&self, session: &SessionId, steps: Vec<Write>) -> Result<Receipt> {
        let (host, session) = (self.clone(), session.clone());
        let written = tokio::spawn(async move {
            let receipt = host.log().write(&session, steps).await?;
            host.wake(&session);
            Ok(receipt)
        });
        // It does not panic, so that only the end of the runtime ends it early.
        written.await.unwrap_or(Err(HostError::Closed))
    }

    /// Tells the owner of a session that the log has news, and makes one if there is none.
    fn wake(&self, session: &SessionId) {
        // A host that closes leaves it to the next one.
        drop(self.reach(session, None, false));
    }

    /// Wakes the owner of a session, and makes one if there is none. The owner gets the command before it may end.
    fn reach(&self, session: &SessionId, command: Option<Command>, is_wanted: bool) -> Result<()> {
        let mut owners = self.0.owners.lock();
        if self.0.closed.load(Ordering::Acquire) {
            return Err(HostError::Closed);
        }
        if let Some(contact) = owners.get(session) {
            if let Some(command) = command {
                let sent = contact.commands.try_send(command);
                sent.map_err(|_| HostError::Busy("the session"))?;
            }
            contact.is_wanted.fetch_or(is_wanted, Ordering::AcqRel);
            contact.calls.fetch_add(1, Ordering::AcqRel);
            contact.wake.notify_one();
            return Ok(());
        }
        let (commands, received) = mpsc::channel(COMMANDS);
        if let Some(command) = command {
            // A new queue has room.
            drop(commands.try_send(command));
        }
        let contact = Arc::new(Contact {
            wake: Notify::new(),
            calls: AtomicU64::new(1),
            seen: AtomicU64::new(0),
            commands,
            is_wanted: AtomicBool::new(is_wanted),
            is_idle: AtomicBool::new(false),
            used: AtomicU64::new(0),
            release: Notify::new(),
            stops: watch::Sender::new(0),
        });
        owners.insert(session.clone(), Arc::clone(&contact));
        drop(owners);
        let mut tasks = self.0.tasks();
        // Those that have ended need no room.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(own(Arc::clone(&self.0), session.clone(), contact, received));
        Ok(())
    }
}

/// The longest title that a client can give, in bytes: it is in each list of sessions.
const TITLE: usize = 4096;

fn check_title(title: Option<&str>) -> Result<()> {
    match title {
        Some(title) if title.len() > TITLE => Err(HostError::Invalid(format!(
            "the title is longer than {TITLE} bytes"
        ))),
        _ => Ok(()),
    }
}

/// The spares that a policy wants and its options allow.
fn spares_of(policy: &HostPolicy, places: &Arc<Semaphore>) -> Spares {
    let bound = policy.options.bound_to_directory().filter(|_| policy.spares > 0);
    if let Some(option) = bound {
        tracing::warn!(
            option,
            "no spare processes: what this option means depends on the directory of a session"
        );
    }
    let wanted = if bound.is_some() { 0 } else { policy.spares };
    let policy = policy.clone();
    Spares::new(wanted, Arc::clone(places), move |id, seat| {
        let options = policy.options_of_all().session_id(id.as_str());
        with_handlers(&policy, options, id, seat, policy.deferred.as_deref())
    })
}

/// Runs where blocking is allowed.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| HostError::Stored(error.to_string()))?
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
