//! A gate for the turns of many sessions.
//!
//! All sessions that share an account's limits enter the same [`Gate`]. It limits how many turns run at once, in all and by model.
//! It learns from each turn what the API reports: when the API refuses a request of one turn with status 429 or 529, or reports
//! that a usage limit is reached, the gate closes, and no other turn begins. It is closed until the time that the API gave
//! (`retry-after`, or the reset time of the limit), or else for a time that doubles with each refusal. Then a few turns may begin
//! as probes ([`GateLimits::probes`]), and the gate opens when the API answers one of them.
//!
//! Turns that run when the gate closes go on: the CLI repeats their requests by itself. So what the API sees while the gate is
//! closed are the retries of these turns, and of no other turn.
//!
//! Whoever waits is admitted by priority, then the session that was admitted longest ago, then in the order of arrival. A priority
//! grows while its visitor waits, so that nobody starves.
//!
//! A [new](Gate::new) gate is for the sessions of one process. It has no task of its own: it works while somebody waits, or a turn is
//! watched. A gate [over a store](Gate::over) is one gate for all processes that name it.

mod evidence;
mod gate_core;
mod limits;
mod link;
mod shared_core;
mod wait;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outrigger::sessions::store::ValueStore;
use outrigger::{Event, Outcome};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use self::evidence::Evidence;
use self::gate_core::{GateCore, Mode, PassId, Waiter, WaiterId};
pub use self::limits::GateLimits;
use self::link::Handle;
pub use self::wait::{GateWait, WaitEnd};
use self::wait::{Measured, Watchers};

/// A gate for the turns of many sessions. Cloning is cheap; all clones are the same gate.
#[derive(Debug, Clone)]
pub struct Gate(Kind, Arc<Watchers>);

#[derive(Debug, Clone)]
enum Kind {
    /// A gate of this process.
    Local(Arc<LocalGate>),
    /// A gate over a store.
    Linked(Arc<Handle>),
}

/// Who wants to begin a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visitor {
    waiter: Waiter,
    patience: Option<Duration>,
}

impl Visitor {
    /// A turn of this session: any name, the same for all turns that share one place in the order. A session id, a user, a job.
    pub fn new(session: impl Into<String>) -> Self {
        Self {
            waiter: Waiter {
                session: session.into(),
                model: None,
                priority: 0,
            },
            patience: None,
        }
    }

    /// The model of the turn, for [`GateLimits::by_model`]. By default no limit of a model applies.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.waiter.model = Some(model.into());
        self
    }

    /// The priority; 0 by default. A higher one is admitted first.
    pub fn priority(mut self, priority: i32) -> Self {
        self.waiter.priority = priority;
        self
    }

    /// How long to wait at most. By default for as long as it takes: a usage limit may last for hours, and [`Gate::enter`] can be
    /// dropped at any time.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }
}

/// Why a visitor does not get in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// Too many visitors wait already: [`GateLimits::max_waiting`].
    #[error("{waiting} turns wait at the gate, and no more may; try again later, or raise `max_waiting`")]
    #[non_exhaustive]
    Full {
        /// How many wait.
        waiting: usize,
    },
    /// The visitor's [`patience`](Visitor::patience) is over.
    #[error("the turn could not begin within {patience:?}: the gate is {state}")]
    #[non_exhaustive]
    Patience {
        /// The visitor's patience.
        patience: Duration,
        /// The state of the gate when it was over.
        state: GateState,
    },
    /// The store of a gate [over a store](Gate::over) fails, and has failed for as long as a lease lasts.
    #[error("the store of the gate fails: {evidence}; no turn begins before it answers")]
    #[non_exhaustive]
    Store {
        /// What the store reported.
        evidence: String,
    },
}

/// Whether turns may begin, and how many run and wait.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GateState {
    /// Whether turns may begin.
    pub phase: GatePhase,
    /// Turns that run.
    pub running: usize,
    /// Turns that run, by the model that their [`Visitor`] named.
    pub running_by_model: BTreeMap<String, usize>,
    /// Visitors that wait.
    pub waiting: usize,
}

/// Whether turns may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GatePhase {
    /// Turns may begin, up to the limits.
    Open,
    /// The API refused a request. No turn begins before this time.
    Closed(Instant),
    /// That time is over. At most [`GateLimits::probes`] turns begin until the API answers one of them.
    Probing,
}

impl std::fmt::Display for GateState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.phase {
            GatePhase::Open => write!(f, "open")?,
            GatePhase::Closed(until) => {
                let left = until.saturating_duration_since(Instant::now());
                write!(f, "closed for another {:.1} s", left.as_secs_f64())?;
            }
            GatePhase::Probing => write!(f, "probing whether the API accepts requests again")?,
        }
        write!(f, "; {} turns run, {} wait", self.running, self.waiting)
    }
}

#[derive(Debug)]
struct LocalGate {
    began: Instant,
    inner: Mutex<GateInner>,
    phase: watch::Sender<GatePhase>,
}

#[derive(Debug)]
struct GateInner {
    core: GateCore,
    /// Who gets the pass of each waiter.
    doors: HashMap<WaiterId, oneshot::Sender<Pass>>,
}

impl Gate {
    /// An open gate. Limits of zero count as one.
    pub fn new(limits: GateLimits) -> Self {
        Self(
            Kind::Local(Arc::new(LocalGate {
                began: Instant::now(),
                inner: Mutex::new(GateInner {
                    core: GateCore::new(limits.normalized()),
                    doors: HashMap::new(),
                }),
                phase: watch::Sender::new(GatePhase::Open),
            })),
            Arc::default(),
        )
    }

    /// One gate for all processes that use this store and this name: they share the limits, the order of those who wait, and what one
    /// of them learns. Give all of them the same `limits`: each admits by its own, and it admits visitors of the others, too.
    /// The store needs two functions, read and compare-and-set.
    ///
    /// * **Cost.** Entering takes a read and a write of the store; a place that gets free in another process is noticed within
    ///   [`GateLimits::poll`]. All processes write one value, which grows with those who wait: this is for some ten processes
    ///   with some hundred visitors.
    /// * **A process that dies** keeps its places for at most [`GateLimits::lease`], by the clock of the store. Dropping the last clone
    ///   and the last [`Pass`] gives them up at once.
    /// * **When the store does not answer**, nobody is admitted. Turns that run go on. Who waits is refused with [`GateError::Store`]
    ///   once the store has failed for [`GateLimits::lease`], and then within a third of that. A process that is cut off for longer than
    ///   its lease has lost its places: its turns and those of the others may together exceed a limit until they end.
    /// * **What is not shared** are refusals that a process has not told yet: turns that other processes begin within the milliseconds
    ///   that this takes.
    ///
    /// A task of the gate tells the store what happens. It ends with the last clone and the last [`Pass`].
    ///
    /// # Errors
    /// [`GateError::Store`] when the store cannot be read now, or has a state that this version does not know.
    ///
    /// # Cancel safety
    /// Nothing has changed when the future is dropped.
    pub async fn over(
        store: Arc<dyn ValueStore>,
        name: impl Into<String>,
        limits: GateLimits,
    ) -> Result<Self, GateError> {
        let handle = Handle::new(store, name.into(), limits.normalized()).await?;
        Ok(Self(Kind::Linked(handle), Arc::default()))
    }

    /// Waits until a turn may begin. The turn may run as long as the [`Pass`] lives.
    ///
    /// # Errors
    /// [`GateError::Full`] at once, or from a store once it has been asked; [`GateError::Patience`] after the visitor's
    /// [`patience`](Visitor::patience); [`GateError::Store`] as [`Gate::over`] describes.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place in the order up. A pass that was granted already goes to the next visitor.
    pub async fn enter(&self, visitor: Visitor) -> Result<Pass, GateError> {
        let Visitor { waiter, patience } = visitor;
        let measured = Measured::begin(&self.1, &waiter);
        let entered = self.pass(waiter, patience).await;
        measured.end(match &entered {
            Ok(_) => WaitEnd::Entered,
            Err(GateError::Full { .. }) => WaitEnd::Full,
            Err(GateError::Patience { .. }) => WaitEnd::Patience,
            Err(GateError::Store { .. }) => WaitEnd::Store,
        });
        entered
    }

    /// Calls this for each visitor of this process whose wait is over, whether the visitor got in or not, until it returns false. It is called on the
    /// visitor's task, and must not wait.
    pub fn watch_waits(&self, told: impl Fn(&GateWait) -> bool + Send + Sync + 'static) {
        self.1.add(told);
    }

    async fn pass(&self, waiter: Waiter, patience: Option<Duration>) -> Result<Pass, GateError> {
        let entering = async {
            match &self.0 {
                Kind::Local(shared) => shared.enter(waiter).await,
                Kind::Linked(handle) => {
                    let mut arrival = handle.arrive(waiter)?;
                    match (&mut arrival.pass).await {
                        Ok(answer) => answer,
                        // The task ends only with the last handle, and it ended before.
                        Err(_) => Err(link::ended()),
                    }
                }
            }
        };
        match patience {
            None => entering.await,
            Some(patience) => match tokio::time::timeout(patience, entering).await {
                Ok(entered) => entered,
                Err(_) => Err(GateError::Patience {
                    patience,
                    state: self.state(),
                }),
            },
        }
    }

    /// Whether turns may begin, and how many run and wait. Of a gate over a store, what this process heard last.
    pub fn state(&self) -> GateState {
        match &self.0 {
            Kind::Local(shared) => shared.state(),
            Kind::Linked(handle) => handle.state(),
        }
    }

    /// The changes of the phase from now on. Only the newest is kept for a reader that is slow. Of a gate over a store, the changes
    /// that this process hears of: within [`GateLimits::poll`] while a visitor of this process waits, else with its next visitor, or
    /// within a third of [`GateLimits::lease`] while turns run.
    pub fn changes(&self) -> GateChanges {
        GateChanges {
            phase: match &self.0 {
                Kind::Local(shared) => shared.phase.subscribe(),
                Kind::Linked(handle) => handle.phase(),
            },
            _gate: self.clone(),
        }
    }

    /// Opens the gate: whoever waits may begin, up to the limits. For a person who knows better than the gate.
    pub fn open(&self) {
        match &self.0 {
            Kind::Local(shared) => shared.with(|core, _| core.open()),
            Kind::Linked(handle) => handle.open(),
        }
    }

    /// Closes the gate for this time, a year at most, as if the API had refused a request and had given this time. For what a program
    /// learns elsewhere about the same account.
    pub fn close_for(&self, wait: Duration) {
        match &self.0 {
            Kind::Local(shared) => shared.with(|core, now| core.limited(now, Some(wait), 0.0)),
            Kind::Linked(handle) => handle.limited(Some(wait)),
        }
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// The changes of a gate's phase.
#[derive(Debug)]
pub struct GateChanges {
    phase: watch::Receiver<GatePhase>,
    /// Keeps the sender alive.
    _gate: Gate,
}

impl GateChanges {
    /// Waits for the next change.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> GatePhase {
        // The sender lives as long as the gate.
        if self.phase.changed().await.is_err() {
            return std::future::pending().await;
        }
        *self.phase.borrow_and_update()
    }
}

/// Permission to run one turn. Its place is free for another turn when this is dropped.
///
/// A [`GuardedTurn`](crate::GuardedTurn) tells the gate what the API reports in a turn. A program that reads the events by itself passes
/// them to [`observe`](Self::observe), and the outcome to [`finish`](Self::finish).
#[derive(Debug)]
#[must_use = "the place at the gate is given up when this is dropped"]
pub struct Pass(HeldPass);

#[derive(Debug)]
enum HeldPass {
    Local(Arc<LocalGate>, PassId),
    Linked(Arc<Handle>, u64),
    /// The place is given up already.
    Nothing,
}

impl Pass {
    fn linked(handle: Arc<Handle>, number: u64) -> Self {
        Self(HeldPass::Linked(handle, number))
    }

    /// Tells the gate what an event of the turn shows about the API.
    pub fn observe(&self, event: &Event) {
        self.learn(Evidence::of_event(event));
    }

    /// The turn has ended with this outcome.
    pub fn finish(self, outcome: &Outcome) {
        self.learn(Evidence::of_outcome(outcome));
    }

    fn learn(&self, evidence: Option<Evidence>) {
        let Some(evidence) = evidence else { return };
        if let Evidence::Limited(wait) = evidence {
            tracing::debug!(?wait, "the API refuses requests; the gate closes");
        }
        match &self.0 {
            HeldPass::Local(shared, id) => shared.with(|core, now| match evidence {
                Evidence::Limited(wait) => core.limited(now, wait, fastrand::f64()),
                Evidence::Answered => core.answered(*id),
            }),
            HeldPass::Linked(handle, number) => handle.learn(*number, evidence),
            HeldPass::Nothing => {}
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        match &self.0 {
            HeldPass::Local(shared, id) => shared.with(|core, _| core.leave(*id)),
            HeldPass::Linked(handle, number) => handle.leave(*number),
            HeldPass::Nothing => {}
        }
    }
}

/// A place in the order of those who wait.
struct QueuedWaiter {
    shared: Arc<LocalGate>,
    id: WaiterId,
    left: bool,
}

impl Drop for QueuedWaiter {
    fn drop(&mut self) {
        if !self.left {
            let mut inner = self.shared.lock();
            inner.core.withdraw(self.id);
            inner.doors.remove(&self.id);
        }
    }
}

impl LocalGate {
    fn lock(&self) -> MutexGuard<'_, GateInner> {
        // Nothing in the core panics halfway through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn phase_of(&self, mode: Mode) -> GatePhase {
        match mode {
            Mode::Open => GatePhase::Open,
            Mode::Closed(until) => GatePhase::Closed(self.began + until),
            Mode::Probing => GatePhase::Probing,
        }
    }

    async fn enter(self: &Arc<Self>, waiter: Waiter) -> Result<Pass, GateError> {
        let mut phase = self.phase.subscribe();
        let (mut place, mut pass) = self.arrive(waiter)?;
        loop {
            let wake = match *phase.borrow_and_update() {
                GatePhase::Closed(until) => Some(until),
                GatePhase::Open | GatePhase::Probing => None,
            };
            tokio::select! {
                biased;
                Ok(pass) = &mut pass => {
                    place.left = true;
                    return Ok(pass);
                }
                _ = phase.changed() => {}
                () = sleep_until(wake) => self.admit(),
            }
        }
    }

    fn state(&self) -> GateState {
        let inner = self.lock();
        GateState {
            phase: self.phase_of(inner.core.mode()),
            running: inner.core.running(),
            running_by_model: inner.core.running_by_model().clone(),
            waiting: inner.core.waiting(),
        }
    }

    fn arrive(
        self: &Arc<Self>,
        waiter: Waiter,
    ) -> Result<(QueuedWaiter, oneshot::Receiver<Pass>), GateError> {
        let (door, pass) = oneshot::channel();
        let id = {
            let mut inner = self.lock();
            let waiting = inner.core.waiting();
            let id = inner
                .core
                .arrive(self.now(), waiter)
                .ok_or(GateError::Full { waiting })?;
            inner.doors.insert(id, door);
            id
        };
        let place = QueuedWaiter {
            shared: Arc::clone(self),
            id,
            left: false,
        };
        self.admit();
        Ok((place, pass))
    }

    /// Changes the core, and admits whoever may begin then.
    fn with(self: &Arc<Self>, change: impl FnOnce(&mut GateCore, Duration)) {
        change(&mut self.lock().core, self.now());
        self.admit();
    }

    fn admit(self: &Arc<Self>) {
        loop {
            let granted = {
                let mut inner = self.lock();
                let granted = inner.core.admit(self.now());
                let phase = self.phase_of(inner.core.mode());
                self.phase.send_if_modified(|known| {
                    let changed = *known != phase;
                    *known = phase;
                    changed
                });
                granted.and_then(|(waiter, pass)| Some((inner.doors.remove(&waiter)?, pass)))
            };
            let Some((door, id)) = granted else { return };
            let pass = Pass(HeldPass::Local(Arc::clone(self), id));
            // The visitor may have just gone. Then the next one gets in, in the next round and not by dropping the pass.
            if let Err(mut unwanted) = door.send(pass) {
                unwanted.0 = HeldPass::Nothing;
                self.lock().core.leave(id);
            }
        }
    }
}
