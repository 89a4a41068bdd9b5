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

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use outrigger::options::Options;
use outrigger::protocol::outbound::control::{ContextDetail, GetContextUsage};
use outrigger::{Cause, Error, Event, LostPrompt, Outcome, Progress, Prompt, Session, SessionId};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep};

pub use self::id_store::{IdFiles, IdStore};
use crate::budget::Amount;
use crate::tool_watch::ToolWatch;

/// How a session is supervised.
#[derive(Debug, Clone)]
pub struct Supervision {
    restarts: usize,
    within: Duration,
    first: Duration,
    longest: Duration,
    after_loss: AfterLoss,
    rotation: Option<Rotation>,
}

/// What becomes of a turn whose process died. A prompt whose turn had not begun is sent again in any case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AfterLoss {
    /// The caller is told, by [`SuperviseError::Lost`], and decides.
    #[default]
    Report,
    /// The prompt is sent again if no tool can have run; else the caller is told.
    Repeat,
    /// The prompt is sent again, whatever ran. What the tools did, they may do twice.
    RepeatAlways,
    /// This text is sent in the conversation that has the prompt. If no tool can have run, the prompt is sent again instead.
    GoOn(String),
}

impl AfterLoss {
    /// [`GoOn`](Self::GoOn) with a text of this crate.
    pub fn go_on() -> Self {
        Self::GoOn(
            "Your last turn broke off because its process ended. The tools that you called before may have run; their results are above, \
             as far as they came. Check what is done already, do not do it again, and finish the task."
                .to_owned(),
        )
    }
}

/// When a conversation has become too much, and what happens then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    tokens: Option<u64>,
    age: Option<Duration>,
    how: How,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum How {
    Compact,
    HandOver(String),
}

impl Rotation {
    /// Compacts the conversation, as `/compact` does. It stays the same session.
    pub fn compact() -> Self {
        Self {
            tokens: None,
            age: None,
            how: How::Compact,
        }
    }

    /// Has the model summarize the conversation, and goes on in a new one, whose first prompt begins with the summary.
    pub fn hand_over() -> Self {
        let request = "This conversation ends here, and another one goes on with your summary alone. Write down what it needs: the task, \
                       what is decided and done, what is left, and names of files and commands.";
        Self::compact().asking(request)
    }

    /// [`hand_over`](Self::hand_over), with another request for the summary.
    pub fn asking(mut self, request: impl Into<String>) -> Self {
        self.how = How::HandOver(request.into());
        self
    }

    /// When the context has more tokens than this, by the CLI's own estimate. It is looked at before each turn.
    pub fn above_tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// When this process of the program has used the conversation for longer.
    pub fn older_than(mut self, age: Duration) -> Self {
        self.age = Some(age);
        self
    }
}

impl Default for Supervision {
    fn default() -> Self {
        Self {
            restarts: 5,
            within: Duration::from_secs(600),
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
            after_loss: AfterLoss::default(),
            rotation: None,
        }
    }
}

impl Supervision {
    /// The defaults: at most 5 deaths in 10 minutes, waits from 1 s to 1 min between them, lost turns are reported, no rotation.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often the process may die within a time. Once more, and the session is given up: see [`SuperviseError::GaveUp`].
    pub fn restarts(mut self, restarts: usize, within: Duration) -> Self {
        (self.restarts, self.within) = (restarts, within);
        self
    }

    /// The wait before the first restart, and the longest. It doubles with each death within the time of [`restarts`](Self::restarts).
    pub fn delays(mut self, first: Duration, longest: Duration) -> Self {
        (self.first, self.longest) = (first, longest);
        self
    }

    /// What becomes of a turn whose process died.
    pub fn after_loss(mut self, then: AfterLoss) -> Self {
        self.after_loss = then;
        self
    }

    /// When a conversation has become too much.
    pub fn rotate(mut self, rotation: Rotation) -> Self {
        self.rotation = Some(rotation);
        self
    }

    fn wait(&self, deaths: usize) -> Duration {
        let doublings = u32::try_from(deaths.saturating_sub(1)).unwrap_or(u32::MAX);
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }
}

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
        /// How often.
        deaths: usize,
        /// Within which time.
        within: Duration,
        /// Why it ended the last time.
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
        /// Why.
        source: io::Error,
    },
    /// The conversation is too large or too old, and could not be compacted or summarized.
    #[error("the conversation could not be {what}")]
    #[non_exhaustive]
    Rotation {
        /// `compacted` or `summarized`.
        what: &'static str,
        /// Why.
        source: Error,
    },
}

/// How a supervised session is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Health {
    /// Whether it runs.
    pub state: HealthState,
    /// The conversation.
    pub session_id: Option<SessionId>,
    /// The id of its process.
    pub pid: Option<u32>,
    /// Turns that ended.
    pub turns: u64,
    /// What its processes have spent.
    pub spent: Amount,
    /// How often its process died.
    pub deaths: u64,
    /// Why it died the last time.
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
    /// It runs.
    Running,
    /// Its process has died; the next turn starts another.
    Down,
    /// Its process died too often.
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
    inner: Mutex<Inner>,
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
struct Inner {
    /// The newest process, whether it lives or not.
    session: Option<Session>,
    /// The id was loaded.
    is_loaded: bool,
    saved: Option<SessionId>,
    /// When its processes died, within the time that counts.
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
    /// What the sessions before the newest have spent. A revived session counts on from its old process.
    spent: Amount,
}

impl Supervised {
    /// A session of this name. Nothing starts before the first [`turn`](Self::turn).
    ///
    /// The options may name a session to begin with ([`Options::resume`]); once the store has an id under the name, that one counts.
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
        Self {
            name: name.into(),
            options,
            supervision,
            ids: Arc::new(ids),
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
        self.tell(|health| {
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
            if std::mem::take(&mut is_first) {
                self.rotate(&mut inner).await?;
                next = handed(&mut inner, next);
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
            let ended = run(&session, next.clone(), &mut watch, &mut see).await;
            self.note(&mut inner, &session).await?;
            let error = match ended {
                Ok(outcome) => {
                    self.tell(|health| health.turns += 1);
                    return Ok(outcome);
                }
                Err(error) if error.is_closed() => error,
                Err(error) => return Err(error.into()),
            };
            if !is_begun {
                // Whether the CLI has read the prompt, the next process tells.
                self.keep_alive(&mut inner).await?;
                is_begun = inner.lost.iter().any(|lost| lost.progress == Progress::Begun);
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
        inner.spent += Amount::from(&session.usage());
        self.tell(|health| (health.state, health.pid) = (HealthState::NotStarted, None));
        session.close().await.map(drop)
    }

    /// Starts a process if none lives.
    async fn keep_alive(&self, inner: &mut Inner) -> Result<(), SuperviseError> {
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
                    self.tell(|health| {
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
    fn count(&self, inner: &mut Inner, error: Error) {
        let now = Instant::now();
        inner.deaths.push_back(now);
        inner
            .deaths
            .retain(|death| now.duration_since(*death) < self.supervision.within);
        inner.given_up = inner.deaths.len() > self.supervision.restarts;
        let (given_up, why) = (inner.given_up, error.to_string());
        inner.counted = Some(error);
        self.tell(|health| {
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
    async fn start(&self, inner: &mut Inner) -> Result<Session, SuperviseError> {
        inner.lost = Vec::new();
        if let Some(old) = &inner.session {
            match old.revive().await {
                Ok(revived) => {
                    inner.lost = revived.lost.prompts;
                    return Ok(revived.session);
                }
                // Nothing was said, or nothing is kept: what is stored counts.
                Err(error) if error.as_revive_problem().is_some() => {}
                Err(error) if error.cause() == Some(Cause::UnknownSession) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let session = self.start_stored(inner).await?;
        // A revived session counts on; this one begins at zero.
        if let Some(old) = &inner.session {
            inner.spent += Amount::from(&old.usage());
        }
        Ok(session)
    }

    /// A process for the conversation that is stored, or for a new one.
    async fn start_stored(&self, inner: &mut Inner) -> Result<Session, SuperviseError> {
        if !inner.is_loaded {
            inner.saved = self.ids("loaded", |ids, name| ids.load(name)).await?;
            inner.is_loaded = true;
        }
        if let Some(id) = inner.saved.clone() {
            let mut options = self.options.clone().resume(id.to_string());
            options.session_id = None;
            match options.start().await {
                Ok(session) => return Ok(session),
                // It was removed, or is another machine's.
                Err(error) if error.cause() == Some(Cause::UnknownSession) => inner.saved = None,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.options.clone().start().await?)
    }

    /// Notes what is known of the session after a turn, and saves its id.
    async fn note(&self, inner: &mut Inner, session: &Session) -> Result<(), SuperviseError> {
        let spent = inner.spent + Amount::from(&session.usage());
        let id = session.id();
        self.tell(|health| {
            health.spent = spent;
            health.session_id.clone_from(&id);
        });
        if let Some(id) = id
            && inner.saved.as_ref() != Some(&id)
        {
            let saved = id.clone();
            self.ids("saved", move |ids, name| ids.save(name, &saved)).await?;
            (inner.saved, inner.is_loaded) = (Some(id), true);
        }
        Ok(())
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
    async fn rotate(&self, inner: &mut Inner) -> Result<(), SuperviseError> {
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
            self.tell(|health| health.context_tokens = size);
            is_due |= size.is_some_and(|size| size > most);
        }
        if !is_due {
            return Ok(());
        }
        let mut quiet = |_: &Event| {};
        match &rotation.how {
            How::Compact => {
                let failed = |source| SuperviseError::Rotation {
                    what: "compacted",
                    source,
                };
                let prompt = Prompt::command("compact", "");
                let outcome = run(&session, prompt, &mut ToolWatch::default(), &mut quiet)
                    .await
                    .map_err(failed)?;
                outcome.answer().map_err(failed)?;
            }
            How::HandOver(request) => {
                let failed = |source| SuperviseError::Rotation {
                    what: "summarized",
                    source,
                };
                let prompt = Prompt::text(request.clone());
                let outcome = run(&session, prompt, &mut ToolWatch::default(), &mut quiet)
                    .await
                    .map_err(failed)?;
                inner.summary = Some(outcome.answer().map_err(failed)?.text().to_owned());
                inner.spent += Amount::from(&session.usage());
                drop(session.close().await);
                let mut options = self.options.clone();
                (options.session_id, options.resume, options.continue_conversation) = (None, None, false);
                let new = options.start().await?;
                let pid = new.pid();
                inner.session = Some(new);
                self.tell(|health| health.pid = pid);
            }
        }
        inner.since = Some(Instant::now());
        self.tell(|health| health.rotations += 1);
        Ok(())
    }

    fn tell(&self, change: impl FnOnce(&mut Health)) {
        self.health.send_modify(change);
    }
}

/// The prompt, with the summary of the last conversation before it. A command gets none: the prompt after it does.
fn handed(inner: &mut Inner, prompt: Prompt) -> Prompt {
    if prompt.command_name().is_some() {
        return prompt;
    }
    match inner.summary.take() {
        Some(summary) => prompt.before(format!(
            "The conversation before this one was summarized:\n\n{summary}"
        )),
        None => prompt,
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

/// One turn.
async fn run(
    session: &Session,
    prompt: Prompt,
    watch: &mut ToolWatch,
    on_event: &mut (impl FnMut(&Event) + Send),
) -> outrigger::Result<Outcome> {
    let mut turn = session.prompt(prompt).await?;
    while let Some(Ok(event)) = turn.next().await {
        watch.observe(&event);
        on_event(&event);
    }
    turn.outcome().await
}
