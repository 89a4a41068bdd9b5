//! This process's part of a gate over a store.
//!
//! One task tells the store who waits and who runs here, and hears who was admitted. It runs as long as a [`Handle`] lives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use outrigger::sessions::store::{StoreError, StoreErrorKind, ValueStore};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

use super::evidence::Evidence;
use super::gate_core::{LONGEST_CLOSED, Mode, Waiter};
use super::limits::GateLimits;
use super::shared_core::{Presence, SharedCore};
use super::{GateError, GatePhase, GateState, Pass};

/// What gates and passes hold. When the last one goes, the task frees the places of this process, and ends.
#[derive(Debug)]
pub(super) struct Handle(Arc<SharedGateLink>);

#[derive(Debug)]
struct SharedGateLink {
    store: Arc<dyn ValueStore>,
    name: String,
    /// The name of this process, which no other has.
    process: String,
    limits: GateLimits,
    inner: Mutex<LinkInner>,
    /// There is something to tell.
    wake: Notify,
    phase: watch::Sender<GatePhase>,
}

#[derive(Debug, Default)]
struct LinkInner {
    next: u64,
    /// Bounded by `max_waiting`.
    waiting: BTreeMap<u64, LinkWaiter>,
    running: BTreeMap<u64, Option<String>>,
    /// What was learned and not told yet.
    learned: Learned,
    /// The newest that was learned of the others.
    known: Option<SharedGateView>,
    /// Since when the store does not answer.
    silent: Option<Instant>,
    closed: bool,
    /// The task is gone, and nobody tells the store anything.
    ended: bool,
}

#[derive(Debug)]
struct LinkWaiter {
    waiter: Waiter,
    since: Instant,
    door: oneshot::Sender<Result<Pass, GateError>>,
}

#[derive(Debug, Clone, Default)]
struct Learned {
    opened: bool,
    /// Turns that run, or ran when the store was last told.
    answered: BTreeSet<u64>,
    /// When the API refused, and until when if it said so.
    limited: Option<Option<Instant>>,
}

#[derive(Debug)]
struct SharedGateView {
    mode: Mode,
    running: usize,
    running_by_model: BTreeMap<String, usize>,
    waiting: usize,
}

impl Handle {
    /// Reads the state once, so that a store that cannot be used is found out now.
    pub(super) async fn new(
        store: Arc<dyn ValueStore>,
        name: String,
        limits: GateLimits,
    ) -> Result<Arc<Self>, GateError> {
        let patience = limits.lease / 3;
        let evidence = match tokio::time::timeout(patience, store.read(&name)).await {
            Ok(Ok(stored)) => SharedCore::read(&stored.text, &limits).err(),
            Ok(Err(error)) => Some(error.chain()),
            Err(_) => Some(format!("it did not answer within {patience:?}")),
        };
        if let Some(evidence) = evidence {
            return Err(GateError::Store { evidence });
        }
        let link = Arc::new(SharedGateLink {
            store,
            name,
            process: uuid::Uuid::new_v4().to_string(),
            limits,
            inner: Mutex::default(),
            wake: Notify::new(),
            phase: watch::Sender::new(GatePhase::Open),
        });
        let handle = Arc::new(Self(Arc::clone(&link)));
        tokio::spawn(run(LinkEnd(link), Arc::downgrade(&handle)));
        Ok(handle)
    }

    pub(super) fn phase(&self) -> watch::Receiver<GatePhase> {
        self.0.phase.subscribe()
    }

    pub(super) fn state(&self) -> GateState {
        let inner = self.0.lock();
        let known = inner.known.as_ref();
        GateState {
            phase: *self.0.phase.borrow(),
            running: known.map_or(0, |known| known.running),
            running_by_model: known
                .map(|known| known.running_by_model.clone())
                .unwrap_or_default(),
            waiting: known.map_or(0, |known| known.waiting),
        }
    }

    pub(super) fn arrive(self: &Arc<Self>, waiter: Waiter) -> Result<Arrival, GateError> {
        let (door, pass) = oneshot::channel();
        let number = {
            let mut inner = self.0.lock();
            if inner.ended {
                return Err(ended());
            }
            let waiting = inner.waiting.len();
            if waiting >= self.0.limits.max_waiting {
                return Err(GateError::Full { waiting });
            }
            inner.next += 1;
            let number = inner.next;
            let since = Instant::now();
            inner.waiting.insert(number, LinkWaiter { waiter, since, door });
            number
        };
        self.0.wake.notify_one();
        Ok(Arrival {
            handle: Arc::clone(self),
            number,
            pass,
        })
    }

    pub(super) fn learn(&self, number: u64, evidence: Evidence) {
        match evidence {
            Evidence::Limited(wait) => self.limited(wait),
            Evidence::Answered => {
                let mut inner = self.0.lock();
                // After a refusal an answer shows nothing, and while the gate is open it is no news.
                let is_news = inner.learned.limited.is_none() && *self.0.phase.borrow() != GatePhase::Open;
                if is_news && inner.running.contains_key(&number) {
                    inner.learned.answered.insert(number);
                    drop(inner);
                    self.0.wake.notify_one();
                }
            }
        }
    }

    pub(super) fn limited(&self, wait: Option<Duration>) {
        let until = wait.map(|wait| Instant::now() + wait.min(LONGEST_CLOSED));
        let mut inner = self.0.lock();
        let known = inner.learned.limited.unwrap_or_default();
        inner.learned.limited = Some(known.max(until));
        drop(inner);
        self.0.wake.notify_one();
    }

    pub(super) fn open(&self) {
        self.0.lock().learned = Learned {
            opened: true,
            ..Learned::default()
        };
        self.0.wake.notify_one();
    }

    pub(super) fn leave(&self, number: u64) {
        let mut inner = self.0.lock();
        inner.running.remove(&number);
        drop(inner);
        self.0.wake.notify_one();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.wake.notify_one();
    }
}

/// A place in the order of those who wait, given up when this is dropped.
pub(super) struct Arrival {
    handle: Arc<Handle>,
    number: u64,
    pub(super) pass: oneshot::Receiver<Result<Pass, GateError>>,
}

impl Drop for Arrival {
    fn drop(&mut self) {
        let gone = self.handle.0.lock().waiting.remove(&self.number);
        if gone.is_some() {
            self.handle.0.wake.notify_one();
        }
    }
}

/// The answer for who waits when the task is gone: its runtime was shut down.
pub(super) fn ended() -> GateError {
    GateError::Store {
        evidence: "the task that asks the store has ended with its runtime".to_owned(),
    }
}

/// Nobody waits for the task any more when this is dropped.
struct LinkEnd(Arc<SharedGateLink>);

impl Drop for LinkEnd {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.ended = true;
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        // Who waits hears that its sender is gone.
        drop(waiting);
    }
}

/// Tells the store what there is to tell, until the last handle is gone.
async fn run(end: LinkEnd, handle: Weak<Handle>) {
    let link = &end.0;
    loop {
        let closed = link.lock().closed;
        let patience = link.limits.lease / 3;
        let told = match tokio::time::timeout(patience, link.sync(&handle)).await {
            Ok(told) => told,
            Err(_) => {
                let what = format!(
                    "the store of the gate {:?} did not answer within {patience:?}",
                    link.name
                );
                Err(StoreError::new(StoreErrorKind::Failed, what))
            }
        };
        if closed {
            // If the store did not hear of it, the lease ends by itself.
            return;
        }
        let pause = link.pause(told.is_ok());
        match told {
            Ok(()) => link.lock().silent = None,
            Err(error) => link.failed(&error),
        }
        tokio::select! {
            () = link.wake.notified() => {}
            () = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            } => {}
        }
    }
}

impl SharedGateLink {
    fn lock(&self) -> MutexGuard<'_, LinkInner> {
        // Nothing panics halfway through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When to look again, if nothing happens here.
    fn pause(&self, told: bool) -> Option<Duration> {
        let inner = self.lock();
        if !told || !inner.waiting.is_empty() {
            let closed = match *self.phase.borrow() {
                GatePhase::Closed(until) => Some(until.saturating_duration_since(Instant::now())),
                GatePhase::Open | GatePhase::Probing => None,
            };
            // Not past the end of the closing, which the first to look turns into probing.
            let soon = closed.filter(|left| !left.is_zero() && *left < self.limits.poll);
            return Some(soon.unwrap_or(self.limits.poll));
        }
        (!inner.running.is_empty()).then_some(self.limits.lease / 3)
    }

    /// Who waits here while the store does not answer waits for as long as a lease lasts, and is then refused.
    fn failed(&self, error: &StoreError) {
        tracing::warn!(
            gate = self.name,
            error = error.chain(),
            "the store of the gate fails"
        );
        let mut inner = self.lock();
        let since = *inner.silent.get_or_insert_with(Instant::now);
        if since.elapsed() < self.limits.lease {
            return;
        }
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        for waiting in waiting.into_values() {
            let _ = waiting.door.send(Err(GateError::Store {
                evidence: error.chain(),
            }));
        }
    }

    /// What this process has, and what it has learned.
    fn presence(&self) -> (Presence, Learned) {
        let inner = self.lock();
        if inner.closed {
            return (Presence::default(), Learned::default());
        }
        let learned = inner.learned.clone();
        let waiting = inner.waiting.iter();
        let presence = Presence {
            waiting: waiting
                .map(|(number, waiting)| (*number, (waiting.waiter.clone(), waiting.since.elapsed())))
                .collect(),
            running: inner.running.clone(),
            opened: learned.opened,
            answered: learned.answered.clone(),
            limited: learned.limited.map(|until| {
                let left = |until: Instant| until.saturating_duration_since(Instant::now());
                until.map(left)
            }),
        };
        (presence, learned)
    }

    async fn sync(&self, handle: &Weak<Handle>) -> Result<(), StoreError> {
        let (presence, told) = self.presence();
        loop {
            let stored = self.store.read(&self.name).await?;
            let damaged = |error: String| {
                let what = format!(
                    "the state of the gate {:?} in the store cannot be used: {error}",
                    self.name
                );
                StoreError::new(StoreErrorKind::Damaged, what)
            };
            let mut state = SharedCore::read(&stored.text, &self.limits).map_err(damaged)?;
            let synced = state.sync(
                stored.now,
                &self.process,
                self.limits.lease,
                &presence,
                fastrand::f64(),
            );
            let text = state.text().map_err(damaged)?;
            if text != stored.text && !self.store.replace(&self.name, stored.version, &text).await? {
                // Somebody else was first, and has come further.
                tokio::time::sleep(Duration::from_millis(fastrand::u64(0..4))).await;
                continue;
            }
            let mut doors = Vec::new();
            {
                let mut inner = self.lock();
                inner.learned.forget(&told);
                self.know(&mut inner, &state, stored.now);
                for number in synced.admitted {
                    // Whoever is gone meanwhile is taken off by the next round.
                    if let Some(waiting) = inner.waiting.remove(&number) {
                        inner.running.insert(number, waiting.waiter.model);
                        doors.push((number, waiting.door, true));
                    }
                }
                for number in synced.refused {
                    if let Some(waiting) = inner.waiting.remove(&number) {
                        doors.push((number, waiting.door, false));
                    }
                }
            }
            for (number, door, admitted) in doors {
                let waiting = state.core.waiting();
                let answer = match (handle.upgrade(), admitted) {
                    (Some(handle), true) => Ok(Pass::linked(handle, number)),
                    _ => Err(GateError::Full { waiting }),
                };
                // A pass that nobody takes gives its place up when it is dropped.
                let _ = door.send(answer);
            }
            return Ok(());
        }
    }

    fn know(&self, inner: &mut LinkInner, state: &SharedCore, now: Duration) {
        let mode = state.core.mode();
        let before = inner.known.replace(SharedGateView {
            mode,
            running: state.core.running(),
            running_by_model: state.core.running_by_model().clone(),
            waiting: state.core.waiting(),
        });
        // The two clocks are compared only once, so that a phase does not change by how long a reply takes.
        if before.is_some_and(|before| before.mode == mode) {
            return;
        }
        let phase = match mode {
            Mode::Open => GatePhase::Open,
            Mode::Closed(until) => {
                GatePhase::Closed(Instant::now() + until.saturating_sub(now).min(LONGEST_CLOSED))
            }
            Mode::Probing => GatePhase::Probing,
        };
        self.phase.send_if_modified(|known| {
            let changed = *known != phase;
            *known = phase;
            changed
        });
    }
}

impl Learned {
    /// Forgets what the store knows now, and nothing that was learned meanwhile.
    fn forget(&mut self, told: &Self) {
        if self.limited == told.limited {
            self.limited = None;
        }
        self.opened &= !told.opened;
        self.answered.retain(|number| !told.answered.contains(number));
    }
}
