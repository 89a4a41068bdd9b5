//! A session that outlives its processes.
//!
//! A [`Supervised`] session is started when it is needed, and again when its process has died: with a growing wait, and not more often than
//! [`Supervision::restarts`] allows. It goes on with the same conversation, also in the next process of the program, since its id is
//! in an [`IdStore`]. [`AfterLoss`] says what becomes of a turn that the death of the process interrupted. When the conversation has
//! become too large or too old, it is compacted, or handed over to a new one ([`Rotation`]). [`Supervised::health`] reports all of it.
//!
//! ```no_run
//! use outrigger::Agent;
//! use outrigger_fleet::supervise::{AfterLoss, IdFiles, Rotation, Supervised, Supervision};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let supervision = Supervision::new()
//!     .after_loss(AfterLoss::go_on())
//!     .rotate(Rotation::compact().above_tokens(150_000));
//! let ids = IdFiles::new("/var/lib/helper/sessions");
//! let session = Supervised::new("helper", Agent::builder(), supervision, ids);
//! let outcome = session.turn("What is on for today?").await?;
//! println!("{}", outcome.answer()?.text());
//! println!("{:?}", session.health());
//! # Ok(())
//! # }
//! ```

mod id_store;
mod supervision;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use outrigger::options::Options;
use outrigger::protocol::outbound::control::{ContextDetail, GetContextUsage};
use outrigger::{
    Cause, Error, Event, LostPrompt, Outcome, Prompt, PromptProgress, Session, SessionId, SessionUsage,
};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep};

pub use self::id_store::{IdFiles, IdStore, SavedConversation};
use self::supervision::How;
pub use self::supervision::{AfterLoss, Rotation, Supervision};
use crate::budget::{Amount, Budget, Exhausted, Reservation};
use crate::guarded::GuardedTurn;
use crate::session_watch::{OnStarted, StartReason, Starting};
use crate::tool_watch::ToolWatch;

/// Why a supervised session has no outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuperviseError {
    /// The process died during the turn.
    #[error("the process of the session ended during the turn{}", match tools_may_have_run {
        true => ", and tools may have run",
        false => "; no tool has run",
    })]
    #[non_exhaustive]
    Lost {
        /// Whether tools may have run.
        tools_may_have_run: bool,
        /// Why the process ended.
        source: Error,
    },
    /// The process died too often. [`Supervised::reset`] tries again.
    #[error("the session is given up: its process ended {deaths} times within {within:?}")]
    #[non_exhaustive]
    GaveUp {
        /// How often the session's processes ended.
        deaths: usize,
        /// Within which time.
        within: Duration,
        /// Why the session's process ended the last time.
        source: Error,
    },
    /// The session could not start, the prompt could not be sent, or the turn has no outcome for another reason.
    #[error(transparent)]
    Session(#[from] Error),
    /// The id of the session could not be loaded or saved.
    #[error("the id of the session {name:?} cannot be {what}")]
    #[non_exhaustive]
    Ids {
        /// The name of the session.
        name: String,
        /// `loaded` or `saved`.
        what: &'static str,
        /// The error of the store.
        source: io::Error,
    },
    /// A cap of [`Supervision::budget`], or one above it, is exceeded.
    #[error("{exhausted}{}", match outcome {
        Some(_) => "; the turn was interrupted",
        None => "",
    })]
    #[non_exhaustive]
    Budget {
        /// The budget that is exhausted.
        exhausted: Exhausted,
        /// How the turn ended that was interrupted for it. `None` if it did not begin, or did not end by the interrupt, so that its process was killed.
        outcome: Option<Outcome>,
    },
    /// The conversation is too large or too old, and could not be compacted or summarized.
    #[error("the conversation could not be {what}")]
    #[non_exhaustive]
    Rotation {
        /// `compacted` or `summarized`.
        what: &'static str,
        /// The error of the rotation.
        source: Error,
    },
}

/// How a supervised session is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Health {
    /// The state of the session.
    pub state: HealthState,
    /// The conversation.
    pub session_id: Option<SessionId>,
    /// The id of the session's process.
    pub pid: Option<u32>,
    /// Turns that ended.
    pub turns: u64,
    /// What its turns have spent as the CLI reports it: in all processes, and in all programs that used its [`IdStore`]. Known after the first turn.
    pub spent: Amount,
    /// How often the session's process died.
    pub deaths: u64,
    /// Why the session's process died the last time.
    pub last_death: Option<String>,
    /// How often the conversation was compacted or handed over.
    pub rotations: u64,
    /// The size of the context before the last turn, in tokens, if [`Rotation::above_tokens`] is set.
    pub context_tokens: Option<u64>,
}

/// Whether a supervised session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HealthState {
    /// No process was needed yet.
    NotStarted,
    /// A process runs.
    Running,
    /// The session's process has died; the next turn starts another.
    Down,
    /// The session's process died too often.
    GaveUp,
}

/// A session that outlives its processes. See the [module](self).
///
/// Turns run one after the other. Dropping it ends the process; the conversation stays.
pub struct Supervised {
    name: String,
    options: Options,
    supervision: Supervision,
    ids: Arc<dyn IdStore>,
    /// The session's own budget, with what each turn reserves.
    budget: Option<(Budget, Amount)>,
    inner: Mutex<SupervisedInner>,
    health: watch::Sender<Health>,
}

impl fmt::Debug for Supervised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervised")
            .field("name", &self.name)
            .field("health", &*self.health.borrow())
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct SupervisedInner {
    /// The newest process, whether it lives or not.
    session: Option<Session>,
    /// What is kept was loaded.
    is_loaded: bool,
    kept: SavedConversation,
    /// What is kept could not be saved the last time.
    is_unsaved: bool,
    /// When the session's processes died, within the time that counts.
    deaths: VecDeque<Instant>,
    /// The death of the newest process was counted, and why it died.
    counted: Option<Error>,
    given_up: bool,
    /// The prompts that were open when the last process died.
    lost: Vec<LostPrompt>,
    /// When the conversation began, for this process of the program.
    since: Option<Instant>,
    /// The summary of the last conversation, for the next prompt.
    summary: Option<String>,
    /// What the sessions before the newest have used, in all programs. A revived session counts on from its old process.
    earlier: SessionUsage,
    /// Processes that were started, or nearly.
    starts: u32,
}

impl Supervised {
    /// A session of this name. Nothing starts before the first [`turn`](Self::turn).
    ///
    /// The options may say how the session begins ([`Options::resume`], [`Options::fork_session`], an id); once the store has an id under the
    /// name, that one counts ([`Options::go_on_with`]).
    pub fn new(
        name: impl Into<String>,
        options: Options,
        supervision: Supervision,
        ids: impl IdStore,
    ) -> Self {
        let health = Health {
            state: HealthState::NotStarted,
            session_id: None,
            pid: None,
            turns: 0,
            spent: Amount::default(),
            deaths: 0,
            last_death: None,
            rotations: 0,
            context_tokens: None,
        };
        let name = name.into();
        let budget = supervision.budget.as_ref();
        let budget = budget.map(|(above, cap, reserve)| (above.child(&name, *cap), *reserve));
        Self {
            name,
            options,
            supervision,
            ids: Arc::new(ids),
            budget,
            inner: Mutex::default(),
            health: watch::Sender::new(health),
        }
    }

    /// How the session is.
    pub fn health(&self) -> Health {
        let mut health = self.health.borrow().clone();
        if health.state == HealthState::Running
            && let Ok(inner) = self.inner.try_lock()
            && inner
                .session
                .as_ref()
                .is_some_and(|session| ended(session).is_some())
        {
            (health.state, health.pid) = (HealthState::Down, None);
        }
        health
    }

    /// The changes of [`health`](Self::health). A death is seen when the next turn begins.
    pub fn changes(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    /// Forgets the deaths, so that a session that was given up is tried again.
    ///
    /// # Cancel safety
    /// Nothing has happened when the future is dropped.
    pub async fn reset(&self) {
        let mut inner = self.inner.lock().await;
        inner.deaths.clear();
        inner.given_up = false;
        self.update_health(|health| {
            if health.state == HealthState::GaveUp {
                health.state = HealthState::Down;
            }
        });
    }

    /// Runs a turn, in a process that lives, and returns its outcome. A turn that failed has an outcome, too: see [`Outcome::answer`].
    ///
    /// # Errors
    /// When there is no outcome: [`SuperviseError`] says why.
    ///
    /// # Cancel safety
    /// When the future is dropped, the turn runs on without a reader, and the next turn waits for it.
    pub async fn turn(&self, prompt: impl Into<Prompt>) -> Result<Outcome, SuperviseError> {
        self.turn_with(prompt, |_| {}).await
    }

    /// As [`turn`](Self::turn), and hands each event to a function. A turn that is run again begins its events anew.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    ///
    /// # Cancel safety
    /// As [`turn`](Self::turn).
    pub async fn turn_with(
        &self,
        prompt: impl Into<Prompt>,
        mut on_event: impl FnMut(&Event) + Send,
    ) -> Result<Outcome, SuperviseError> {
        let prompt = prompt.into();
        let mut inner = self.inner.lock().await;
        let mut next = prompt.clone();
        let mut is_first = true;
        loop {
            self.keep_alive(&mut inner).await?;
            if is_first {
                match self.rotate(&mut inner).await {
                    // The process died over it: another one is started, if there were not too many.
                    Err(SuperviseError::Rotation { source, .. }) if source.is_closed() => continue,
                    rotated => rotated?,
                }
                is_first = false;
                next = handed(&inner, next);
            }
            let Some(session) = inner.session.clone() else {
                continue;
            };
            let mut watch = ToolWatch::default();
            let mut is_begun = false;
            let mut see = |event: &Event| {
                is_begun = true;
                on_event(event);
            };
            let ended = self
                .run(&mut inner, &session, next.clone(), &mut watch, &mut see)
                .await;
            if (is_begun || ended.is_ok()) && prompt.command_name().is_none() {
                // The conversation has it.
                inner.summary = None;
            }
            let error = match ended {
                Ok(outcome) => {
                    self.update_health(|health| health.turns += 1);
                    return Ok(outcome);
                }
                Err(SuperviseError::Session(error)) if error.is_closed() => error,
                Err(error) => {
                    if matches!(error, SuperviseError::Budget { outcome: Some(_), .. }) {
                        self.update_health(|health| health.turns += 1);
                    }
                    return Err(error);
                }
            };
            if !is_begun {
                // Whether the CLI has read the prompt, the next process tells.
                self.keep_alive(&mut inner).await?;
                is_begun = inner
                    .lost
                    .iter()
                    .any(|lost| lost.progress == PromptProgress::Begun);
            }
            if !is_begun {
                next = next.without_id();
                continue;
            }
            let tools = watch.ran() || prompt.command_name().is_some();
            next = match &self.supervision.after_loss {
                AfterLoss::RepeatAlways => next.without_id(),
                AfterLoss::Repeat | AfterLoss::GoOn(_) if !tools => next.without_id(),
                AfterLoss::GoOn(text) => Prompt::text(text.clone()),
                AfterLoss::Report | AfterLoss::Repeat => {
                    return Err(SuperviseError::Lost {
                        tools_may_have_run: tools,
                        source: error,
                    });
                }
            };
        }
    }

    /// Ends the process in good order. The next turn starts another.
    ///
    /// # Errors
    /// As [`Session::close`].
    ///
    /// # Cancel safety
    /// When the future is dropped, the process ends all the same.
    pub async fn close(&self) -> outrigger::Result<()> {
        let mut inner = self.inner.lock().await;
        let Some(session) = inner.session.take() else {
            return Ok(());
        };
        self.update_health(|health| (health.state, health.pid) = (HealthState::NotStarted, None));
        // A turn that was dropped has saved nothing.
        let earlier = inner.earlier.clone();
        self.note_last(&mut inner, earlier.clone(), &session).await;
        let ended = session.clone().close().await;
        // Such a turn may have begun, or ended, since.
        self.note_last(&mut inner, earlier, &session).await;
        ended.map(drop)
    }

    /// Takes in what a session that ends has come to, and saves it. `earlier` is what the sessions before it have used.
    async fn note_last(&self, inner: &mut SupervisedInner, earlier: SessionUsage, session: &Session) {
        inner.earlier = earlier;
        self.note(inner, session);
        inner.earlier += &session.usage();
        if let Err(error) = self.save(inner).await {
            tracing::error!(%error, "what a supervised session has used cannot be saved");
        }
    }

    /// Starts a process if none lives.
    async fn keep_alive(&self, inner: &mut SupervisedInner) -> Result<(), SuperviseError> {
        loop {
            if let Some(session) = &inner.session {
                let Some(error) = ended(session) else {
                    return Ok(());
                };
                if inner.counted.is_none() {
                    self.count(inner, error);
                }
            }
            if let (true, Some(source)) = (inner.given_up, inner.counted.clone()) {
                return Err(SuperviseError::GaveUp {
                    deaths: inner.deaths.len(),
                    within: self.supervision.within,
                    source,
                });
            }
            if !inner.deaths.is_empty() {
                sleep(self.supervision.wait(inner.deaths.len())).await;
            }
            match self.start(inner).await {
                Ok(session) => {
                    inner.counted = None;
                    inner.since.get_or_insert_with(Instant::now);
                    let (session_id, pid) = (session.id(), session.pid());
                    inner.session = Some(session);
                    self.update_health(|health| {
                        health.state = HealthState::Running;
                        health.session_id = session_id.or(health.session_id.take());
                        health.pid = pid;
                    });
                }
                // It was up and died while it started.
                Err(SuperviseError::Session(error)) if error.is_closed() && !is_settled(&error) => {
                    self.count(inner, error)
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Counts a death.
    fn count(&self, inner: &mut SupervisedInner, error: Error) {
        let now = Instant::now();
        inner.deaths.push_back(now);
        inner
            .deaths
            .retain(|death| now.duration_since(*death) < self.supervision.within);
        inner.given_up = inner.deaths.len() > self.supervision.restarts;
        let (given_up, why) = (inner.given_up, error.to_string());
        inner.counted = Some(error);
        self.update_health(|health| {
            health.state = match given_up {
                true => HealthState::GaveUp,
                false => HealthState::Down,
            };
            health.pid = None;
            health.deaths += 1;
            health.last_death = Some(why);
        });
    }

    /// A process for the conversation: the one that died, the one that is stored, or a new one.
    async fn start(&self, inner: &mut SupervisedInner) -> Result<Session, SuperviseError> {
        inner.lost = Vec::new();
        let reason = match inner.starts {
            0 => StartReason::First,
            _ => StartReason::Restart,
        };
        let (options, started) = self.watched(inner, reason, self.options.clone());
        if let Some(old) = &inner.session {
            match old.revive().await {
                Ok(revived) => {
                    started(&revived.session);
                    inner.lost = revived.lost.prompts;
                    return Ok(revived.session);
                }
                // Nothing was said, or nothing is kept: what is stored counts.
                Err(error) if error.as_revive_problem().is_some() => {}
                Err(error) if error.cause() == Some(Cause::UnknownSession) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let session = self.start_stored(inner, options).await?;
        started(&session);
        // A revived session counts on; this one begins at zero.
        if let Some(old) = &inner.session {
            inner.earlier += &old.usage();
        }
        Ok(session)
    }

    /// A process for the conversation that is stored, or for a new one.
    async fn start_stored(
        &self,
        inner: &mut SupervisedInner,
        fresh: Options,
    ) -> Result<Session, SuperviseError> {
        if !inner.is_loaded {
            inner.kept = self
                .ids("loaded", |ids, name| ids.load(name))
                .await?
                .unwrap_or_default();
            inner.is_loaded = true;
            inner.earlier = inner.kept.usage.clone();
            if let Some((budget, _)) = &self.budget {
                let missing = inner.kept.charged.saturating_sub(budget.spent());
                if missing != Amount::default() {
                    budget.charge(missing);
                }
            }
        }
        if let Some(id) = inner.kept.session_id.clone() {
            match fresh.clone().go_on_with(id.to_string()).start().await {
                Ok(session) => return Ok(session),
                // It was removed, or is another machine's.
                Err(error) if error.cause() == Some(Cause::UnknownSession) => inner.kept.session_id = None,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(fresh.start().await?)
    }

    /// The options of a process that is about to start, and who is told once it has.
    fn watched(
        &self,
        inner: &mut SupervisedInner,
        reason: StartReason,
        options: Options,
    ) -> (Options, OnStarted) {
        inner.starts = inner.starts.saturating_add(1);
        match &self.supervision.watch {
            Some(watch) => {
                let starting = Starting {
                    name: self.name.clone(),
                    number: inner.starts,
                    reason,
                };
                watch.starting(&starting, options)
            }
            None => (options, Box::new(|_| {})),
        }
    }

    /// One turn, within the budget. What is known after the turn is saved, however it ended.
    async fn run(
        &self,
        inner: &mut SupervisedInner,
        session: &Session,
        prompt: Prompt,
        watch: &mut ToolWatch,
        on_event: &mut (impl FnMut(&Event) + Send),
    ) -> Result<Outcome, SuperviseError> {
        let reservation = match &self.budget {
            Some((budget, amount)) => {
                let reserved = budget.reserve(*amount);
                let reservation = reserved.map_err(|exhausted| SuperviseError::Budget {
                    exhausted,
                    outcome: None,
                })?;
                // If the program is killed now, this is charged.
                if let Err(error) = self.save(inner).await {
                    reservation.release();
                    return Err(error);
                }
                Some(reservation)
            }
            None => {
                if inner.is_unsaved {
                    self.save(inner).await?;
                }
                None
            }
        };
        let ended = turn(session, prompt, reservation, watch, on_event).await;
        self.note(inner, session);
        // A turn that ended is not to be run again for it: the next one saves first, or does not begin.
        if let Err(error) = self.save(inner).await {
            tracing::error!(%error, "what a supervised session has used cannot be saved");
        }
        ended
    }

    /// Takes in what the session has come to.
    fn note(&self, inner: &mut SupervisedInner, session: &Session) {
        let mut usage = inner.earlier.clone();
        usage += &session.usage();
        let id = session.id();
        self.update_health(|health| {
            health.spent = Amount::from(&usage);
            health.session_id.clone_from(&id);
        });
        inner.kept.session_id = id.or(inner.kept.session_id.take());
        // Another program may have a budget for it, where this one has none.
        inner.kept.charged += Amount::from(&usage).saturating_sub(Amount::from(&inner.kept.usage));
        inner.kept.usage = usage;
    }

    /// Saves what is known.
    async fn save(&self, inner: &mut SupervisedInner) -> Result<(), SuperviseError> {
        if let Some((budget, _)) = &self.budget {
            inner.kept.charged = budget.spent() + budget.reserved();
        } else if inner.kept.session_id.is_none() {
            // There is nothing to go on with.
            return Ok(());
        }
        let kept = inner.kept.clone();
        let saved = self.ids("saved", move |ids, name| ids.save(name, &kept)).await;
        inner.is_unsaved = saved.is_err();
        saved
    }

    async fn ids<T: Send + 'static>(
        &self,
        what: &'static str,
        call: impl FnOnce(&dyn IdStore, &str) -> io::Result<T> + Send + 'static,
    ) -> Result<T, SuperviseError> {
        let (ids, name) = (Arc::clone(&self.ids), self.name.clone());
        let called = tokio::task::spawn_blocking(move || call(&*ids, &name)).await;
        called
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(|source| SuperviseError::Ids {
                name: self.name.clone(),
                what,
                source,
            })
    }

    /// Compacts or hands over a conversation that has become too much.
    async fn rotate(&self, inner: &mut SupervisedInner) -> Result<(), SuperviseError> {
        let (Some(rotation), Some(session)) = (&self.supervision.rotation, inner.session.clone()) else {
            return Ok(());
        };
        if session.id().is_none() {
            // Nothing was said yet.
            return Ok(());
        }
        let mut is_due = match (rotation.age, inner.since) {
            (Some(age), Some(since)) => since.elapsed() >= age,
            _ => false,
        };
        if let Some(most) = rotation.tokens {
            let request = GetContextUsage::new().detail(ContextDetail::Summary);
            // An older CLI does not know the request.
            let size = session.request(&request).await.ok();
            let size = size.and_then(|usage| u64::try_from(usage.total_tokens).ok());
            self.update_health(|health| health.context_tokens = size);
            is_due |= size.is_some_and(|size| size > most);
        }
        if !is_due {
            return Ok(());
        }
        let mut quiet = |_: &Event| {};
        match &rotation.how {
            How::Compact => {
                let prompt = Prompt::command("compact", "");
                let mut watch = ToolWatch::default();
                let ended = self.run(inner, &session, prompt, &mut watch, &mut quiet).await;
                let outcome = ended.map_err(|error| not_rotated("compacted", error))?;
                let answer = outcome.answer();
                answer.map_err(|error| not_rotated("compacted", error.into()))?;
            }
            How::HandOver(request) => {
                let prompt = Prompt::text(request.clone());
                let mut watch = ToolWatch::default();
                let ended = self.run(inner, &session, prompt, &mut watch, &mut quiet).await;
                let outcome = ended.map_err(|error| not_rotated("summarized", error))?;
                let answer = outcome.answer();
                let answer = answer.map_err(|error| not_rotated("summarized", error.into()))?;
                drop(session.clone().close().await);
                let options = self.options.clone().begin_anew();
                let (options, started) = self.watched(inner, StartReason::Rotation, options);
                let new = options.start().await?;
                started(&new);
                let pid = new.pid();
                inner.summary = Some(answer.text().to_owned());
                inner.earlier += &session.usage();
                inner.session = Some(new);
                self.update_health(|health| health.pid = pid);
            }
        }
        inner.since = Some(Instant::now());
        self.update_health(|health| health.rotations += 1);
        Ok(())
    }

    fn update_health(&self, change: impl FnOnce(&mut Health)) {
        self.health.send_modify(change);
    }
}

/// The prompt, with the summary of the last conversation before it. A command gets none: the prompt after it does.
fn handed(inner: &SupervisedInner, prompt: Prompt) -> Prompt {
    match &inner.summary {
        Some(summary) if prompt.command_name().is_none() => prompt.before(format!(
            "The conversation before this one was summarized:\n\n{summary}"
        )),
        _ => prompt,
    }
}

/// Why the process has ended, if it has.
fn ended(session: &Session) -> Option<Error> {
    session.wait_ended().now_or_never()
}

/// Whether another start would end in the same way.
fn is_settled(error: &Error) -> bool {
    error.cause().is_some_and(|cause| cause.is_start())
}

/// Why a conversation was neither compacted nor summarized.
fn not_rotated(what: &'static str, error: SuperviseError) -> SuperviseError {
    match error {
        SuperviseError::Session(source) => SuperviseError::Rotation { what, source },
        error => error,
    }
}

/// One turn.
async fn turn(
    session: &Session,
    prompt: Prompt,
    reservation: Option<Reservation>,
    watch: &mut ToolWatch,
    on_event: &mut (impl FnMut(&Event) + Send),
) -> Result<Outcome, SuperviseError> {
    let turn = match session.prompt(prompt).await {
        Ok(turn) => turn,
        Err(error) => {
            if let Some(reservation) = reservation {
                reservation.release();
            }
            return Err(error.into());
        }
    };
    let mut turn = GuardedTurn::new(turn);
    if let Some(reservation) = reservation {
        turn = turn.reservation(reservation);
    }
    while let Some(Ok(event)) = turn.next().await {
        watch.observe(&event);
        on_event(&event);
    }
    let ended = turn.outcome().await;
    let Some(exhausted) = turn.exhausted().cloned() else {
        return Ok(ended?);
    };
    let outcome = match ended {
        Ok(outcome) => Some(outcome),
        Err(_) => {
            // It would go on spending.
            drop(session.clone().kill().await);
            None
        }
    };
    Err(SuperviseError::Budget { exhausted, outcome })
}
