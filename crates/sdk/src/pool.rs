//! Spares that are kept ready, and replaced when they were used.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::claim::{Claim, ClaimProblem, Cold};
use crate::deadline::after;
use crate::error::{Error, Kind, Result};
use crate::options::{Options, invalid};
use crate::session::Session;
use crate::spare::Spare;

mod keeper;
mod process_memory;

/// The assumed memory of a spare that was not measured yet.
const GUESS: u64 = 260 * 1024 * 1024;

/// How a [`Pool`] is to be kept.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PoolLimits {
    /// How many spares there may be at once, of all keys together; 4 unless set. Those that are being started count.
    pub spares: usize,
    /// How much memory all spares may take together, in bytes; 1 GiB unless set. The resident memory of their processes is
    /// measured on Linux, without what they started; elsewhere, and until it was measured, each counts as 260 MiB.
    pub memory: u64,
    /// How old a spare may become; 30 minutes unless set. An older one is replaced: its credentials, its MCP servers and what it
    /// read of the user's configuration are as old as it is.
    pub max_age: Duration,
    /// How long to wait after a spare was handed out before its place is filled; 1 s unless set. A process that starts takes a
    /// core for about half a second, which is better left to the session that has just begun.
    pub refill_delay: Duration,
    /// How long to wait after a spare failed to start, before the next is tried; doubled for each failure in a row up to
    /// `max_backoff`. 1 s unless set.
    pub backoff: Duration,
    /// See `backoff`; one minute unless set.
    pub max_backoff: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            spares: 4,
            memory: 1024 * 1024 * 1024,
            max_age: Duration::from_secs(30 * 60),
            refill_delay: Duration::from_secs(1),
            backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(60),
        }
    }
}

impl PoolLimits {
    /// Sets `spares`.
    pub fn spares(mut self, spares: usize) -> Self {
        self.spares = spares;
        self
    }

    /// Sets `memory`, in bytes.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets `max_age`.
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = age;
        self
    }

    /// Sets `refill_delay`.
    pub fn refill_delay(mut self, delay: Duration) -> Self {
        self.refill_delay = delay;
        self
    }

    /// Sets `backoff` and `max_backoff`.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        (self.backoff, self.max_backoff) = (first, longest);
        self
    }
}

/// Keeps [spares](Spare) ready, hands them out as sessions, and replaces them.
///
/// A spare serves any directory and any [`Claim`], but all other options are fixed when it starts. So the pool has
/// [keys](PoolKey): options, each with a number of spares to keep. If there is no spare for a key, the session starts as usual;
/// [`Pooled::origin`] reports it.
///
/// A cheap handle; clones share the pool. When the last is dropped, all spares end; sessions that were handed out are not
/// affected.
///
/// ```no_run
/// use outrigger::{Agent, Claim, Pool, PoolLimits, Policy};
///
/// # async fn example() -> outrigger::Result<()> {
/// let pool = Pool::new(PoolLimits::default());
/// let readers = pool.keep(Agent::builder().permissions(Policy::read_only()), 2)?;
///
/// let pooled = pool.get(&readers, Claim::new("/home/me/project").model("haiku")).await?;
/// let answer = pooled.session.prompt("What is this?").await?.answer().await?;
/// println!("{answer} ({:?})", pooled.origin);
/// pool.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pool(Arc<PoolInner>);

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.stats()).finish()
    }
}

/// A key of a pool, from [`Pool::keep`].
#[derive(Debug, Clone)]
pub struct PoolKey {
    pool: Weak<PoolInner>,
    index: usize,
}

/// A session from [`Pool::get`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Pooled {
    /// The session.
    pub session: Session,
    /// Whether the session comes from a spare.
    pub origin: PoolOrigin,
}

/// Whether a session of a pool was a spare, and if not, why.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PoolOrigin {
    /// The session was a spare.
    Spare {
        /// How long the spare had been waiting.
        age: Duration,
    },
    /// There was no spare, so the session was started.
    Cold,
    /// The CLI rejected the claim, since the directory's own settings set something that is fixed in a spare; so the session was
    /// started.
    Refused(ClaimProblem),
}

/// The counters of a [`Pool`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PoolStats {
    /// Spares that are ready.
    pub spares: usize,
    /// Spares that are being started.
    pub starting: usize,
    /// The memory of ready spares, in bytes, as last measured.
    pub memory: u64,
    /// Sessions that were spares.
    pub warm: u64,
    /// Sessions that were started because there was no spare.
    pub cold: u64,
    /// Sessions that were started because the CLI rejected the claim.
    pub refused: u64,
    /// Spares that died while they waited.
    pub died: u64,
    /// Spares that became too old.
    pub expired: u64,
    /// Spares that were ended because there was no memory for them.
    pub evicted: u64,
    /// Spares that failed to start.
    pub failed: u64,
    /// The failures in a row, and the last one, of each key; in the order in which the keys were made.
    pub failures: Vec<(u32, Option<Error>)>,
}

struct PoolInner {
    limits: PoolLimits,
    state: Mutex<PoolState>,
    wake: Arc<Notify>,
}

impl fmt::Debug for PoolInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolInner").finish_non_exhaustive()
    }
}

/// The keeper ends with the pool.
impl Drop for PoolInner {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

#[derive(Default)]
struct PoolState {
    shelves: Vec<Shelf>,
    closed: bool,
    /// Ends with the keeper.
    keeper: Option<watch::Receiver<()>>,
    /// The highest measured memory of a spare.
    largest: Option<u64>,
    stats: PoolStats,
}

/// The spares of one key.
struct Shelf {
    base: Arc<Options>,
    wanted: usize,
    /// The oldest first.
    spares: VecDeque<Spare>,
    starting: bool,
    failures: u32,
    not_before: Option<Instant>,
    last_error: Option<Error>,
}

impl Shelf {
    fn failed(&mut self, error: Error, limits: &PoolLimits) {
        let factor = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let wait = limits.backoff.saturating_mul(factor).min(limits.max_backoff);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(after(wait));
        tracing::warn!(%error, ?wait, "a spare failed");
        self.last_error = Some(error);
    }
}

impl PoolInner {
    fn state(&self) -> MutexGuard<'_, PoolState> {
        // The state is valid after every line, and nothing of ours panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    /// A pool without keys.
    pub fn new(limits: PoolLimits) -> Self {
        Self(Arc::new(PoolInner {
            limits,
            state: Mutex::default(),
            wake: Arc::default(),
        }))
    }

    /// Keeps `spares` spares with these options from now on, within the limits. Call it inside a tokio runtime; the spares run in
    /// that one. They end with that runtime, and then the next call of `keep` or [`get`](Self::get) keeps new ones in its own.
    ///
    /// Use one key for all sessions that only differ in what a [`Claim`] sets. The keys of a pool share its limits; the key that
    /// lacks the largest part of its spares is served first.
    ///
    /// # Errors
    /// When the options contradict each other or do not work for spares, as in [`Options::prewarm`]; for a `session_id`, which
    /// only one session can have; for a transport that serves one session; when the pool is closed. [`stats`](Self::stats) and
    /// [`get`](Self::get) report later whether the CLI starts.
    pub fn keep(&self, options: Options, spares: usize) -> Result<PoolKey> {
        let host = options.host().awaiting_claim();
        options
            .check_in(&options.hosting.surroundings(), host)
            .map_err(Error::of)?;
        if options.session_id.is_some() {
            let problem = "is one session's, and a pool makes many";
            return Err(Error::of(invalid("session_id", "", problem)));
        }
        if !options.hosting.can_reopen() {
            return Err(Error::invalid(
                "transport: it is good for one session, and a pool makes many",
            ));
        }
        let base = Arc::new(options.anchored()?);
        let runtime = current_runtime()?;
        let mut state = self.0.state();
        if state.closed {
            return Err(Error::new(Kind::Closed));
        }
        state.shelves.push(Shelf {
            base,
            wanted: spares,
            spares: VecDeque::new(),
            starting: false,
            failures: 0,
            not_before: None,
            last_error: None,
        });
        let index = state.shelves.len() - 1;
        self.run_keeper(&mut state, &runtime);
        drop(state);
        self.0.wake.notify_one();
        Ok(PoolKey {
            pool: Arc::downgrade(&self.0),
            index,
        })
    }

    /// Runs the keeper, unless it runs: it ends with its runtime, and so do the spares.
    fn run_keeper(&self, state: &mut PoolState, runtime: &Handle) {
        if state
            .keeper
            .as_ref()
            .is_some_and(|keeper| keeper.has_changed().is_ok())
        {
            return;
        }
        state.shelves.iter_mut().for_each(|shelf| shelf.starting = false);
        let (ended, keeper) = watch::channel(());
        state.keeper = Some(keeper);
        runtime.spawn(keeper::keep(
            Arc::downgrade(&self.0),
            Arc::clone(&self.0.wake),
            ended,
        ));
    }

    /// A session: a claimed spare of this key, or one that is started with the key's options and the claim together, which takes
    /// as long as without a pool. [`Pooled::origin`] reports which.
    ///
    /// A dead spare is never handed out: the pool tries the next, and finally starts a session. It does so at once if a spare does not
    /// answer within the [control deadline](Options::control_deadline). It replaces the spare in the background.
    ///
    /// # Cancel safety
    /// Dropping the future ends the spare that it had taken, or the process that it had started.
    ///
    /// # Errors
    /// When the claim is wrong for these options; when the CLI takes a part of it for neither a spare nor a start; as
    /// [`Options::start`]; when the pool is closed.
    pub async fn get(&self, key: &PoolKey, claim: Claim) -> Result<Pooled> {
        if !Weak::ptr_eq(&key.pool, &Arc::downgrade(&self.0)) {
            return Err(Error::invalid("key: it is another pool's"));
        }
        let runtime = current_runtime()?;
        let base = {
            let mut state = self.0.state();
            if state.closed {
                return Err(Error::new(Kind::Closed));
            }
            self.run_keeper(&mut state, &runtime);
            match state.shelves.get(key.index) {
                Some(shelf) => Arc::clone(&shelf.base),
                None => return Err(Error::invalid("key: it is another pool's")),
            }
        };
        let prepared = tokio::task::spawn_blocking(move || claim.prepare(&base)).await;
        let prepared = prepared.map_err(|error| Error::invalid_because("claim", error))??;
        let mut origin = PoolOrigin::Cold;
        while let Some(spare) = self.take(key) {
            let age = spare.age();
            match spare.claim_prepared(prepared.clone()).await {
                Ok(session) => {
                    let mut state = self.0.state();
                    state.stats.warm += 1;
                    if let Some(shelf) = state.shelves.get_mut(key.index) {
                        shelf.failures = 0;
                    }
                    let origin = PoolOrigin::Spare { age };
                    return Ok(Pooled { session, origin });
                }
                Err(error) => match error.as_claim_problem() {
                    Some(problem @ ClaimProblem::Refused { code, .. }) if is_for_a_start(code) => {
                        origin = PoolOrigin::Refused(problem.clone());
                        break;
                    }
                    _ if error.is_closed() || error.is_timeout() => {
                        let hangs = error.is_timeout();
                        self.spare_failed(key, error);
                        // The next may hang for as long, and meanwhile the pool starts others.
                        if hangs {
                            break;
                        }
                    }
                    _ => return Err(error),
                },
            }
        }
        let session = prepared.cold.start().await?;
        let mut state = self.0.state();
        match origin {
            PoolOrigin::Refused(_) => state.stats.refused += 1,
            _ => state.stats.cold += 1,
        }
        Ok(Pooled { session, origin })
    }

    /// The oldest live spare.
    fn take(&self, key: &PoolKey) -> Option<Spare> {
        let mut state = self.0.state();
        let shelf = state.shelves.get_mut(key.index)?;
        let at = shelf.spares.iter().position(Spare::is_alive)?;
        let spare = shelf.spares.remove(at);
        let refill = after(self.0.limits.refill_delay);
        shelf.not_before = shelf.not_before.max(Some(refill));
        drop(state);
        self.0.wake.notify_one();
        spare
    }

    fn spare_failed(&self, key: &PoolKey, error: Error) {
        let mut state = self.0.state();
        state.stats.died += 1;
        if let Some(shelf) = state.shelves.get_mut(key.index) {
            shelf.failed(error, &self.0.limits);
        }
    }

    /// The counters.
    pub fn stats(&self) -> PoolStats {
        let state = self.0.state();
        PoolStats {
            spares: state.shelves.iter().map(|shelf| shelf.spares.len()).sum(),
            starting: state.shelves.iter().filter(|shelf| shelf.starting).count(),
            failures: state
                .shelves
                .iter()
                .map(|shelf| (shelf.failures, shelf.last_error.clone()))
                .collect(),
            ..state.stats.clone()
        }
    }

    /// Ends all spares and waits for their end; processes that are starting end in the background. The pool hands out no more
    /// sessions. Sessions that were handed out go on.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the closing.
    pub async fn close(&self) {
        let (spares, keeper) = {
            let mut state = self.0.state();
            state.closed = true;
            state.shelves.iter_mut().for_each(|shelf| shelf.starting = false);
            let shelves = state.shelves.iter_mut();
            let spares: Vec<Spare> = shelves.flat_map(|shelf| shelf.spares.drain(..)).collect();
            (spares, state.keeper.clone())
        };
        self.0.wake.notify_one();
        let ends: Vec<_> = spares.iter().map(Spare::wait_ended).collect();
        // Which ends them, all at the same time, whether or not anybody waits.
        drop(spares);
        for end in ends {
            end.await;
        }
        if let Some(mut keeper) = keeper {
            // Nothing is ever sent: the keeper's end is what is waited for.
            while keeper.changed().await.is_ok() {}
        }
    }
}

fn current_runtime() -> Result<Handle> {
    Handle::try_current().map_err(|error| Error::invalid_because("place to keep a pool in", error))
}

/// Whether a started session can have what the CLI rejected for a spare.
fn is_for_a_start(code: &str) -> bool {
    matches!(code, "project_settings_not_claimable" | "claim_failed")
}

impl Cold {
    /// Starts a session in place of a spare.
    async fn start(self) -> Result<Session> {
        let session = self.options.start().await?;
        if let Some(settings) = self.overlay {
            session.apply_flag_settings(settings).await?;
        }
        Ok(session)
    }
}
