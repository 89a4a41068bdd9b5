//! Spares: CLI processes that wait for new sessions.
//!
//! The CLI takes the id of a session at its start and cannot resume a session with a spare. So each spare is started with a random id, and a new session
//! whose id the host may choose is given that of a spare. The spare is then kept for the first prompt of this session, for a while.
//!
//! A spare has the options of the policy and nothing of a session. A session with a model or a permission mode of its own takes none.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use outrigger::{Error, Options, SessionId, Spare};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::handler::OwnerSlot;

/// How old a spare may become: what it read of the user's configuration is as old. As in a [`Pool`](outrigger::Pool).
const MAX_AGE: Duration = Duration::from_secs(30 * 60);

/// How long a spare is kept for the first prompt of the session that has its id.
const RESERVED: Duration = Duration::from_secs(120);

/// How long to wait before the place of a spare is filled that became a session: a start would compete with its first turn.
const REFILL: Duration = Duration::from_secs(1);

/// How long to wait after a failure, doubled for each one in a row up to the longest.
const BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// How often to look whether a place is free.
const LOOK: Duration = Duration::from_secs(1);

/// How many spare processes a host has, and what became of those of before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpareCounts {
    /// Spares that wait.
    pub ready: u64,
    /// Spares among them that are kept for a session which has no prompt yet.
    pub reserved: u64,
    /// Spares that were started and have not answered yet.
    pub starting: u64,
    /// Sessions whose process was a spare, since the host was opened.
    pub claimed: u64,
    /// Sessions whose spare could not become their process, so that another one was started, since the host was opened.
    pub refused: u64,
    /// Spares that could not be started, or ended by themselves, since the host was opened.
    pub failed: u64,
}

/// The options of a spare whose session will have this id.
type OptionsOf = dyn Fn(&SessionId, &OwnerSlot) -> Options + Send + Sync;

/// The spares of a host.
pub(crate) struct Spares {
    wanted: usize,
    places: Arc<Semaphore>,
    options: Box<OptionsOf>,
    state: Mutex<SparesState>,
    wake: Notify,
}

impl fmt::Debug for Spares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Spares").field(&self.counts()).finish()
    }
}

#[derive(Default)]
struct SparesState {
    /// The oldest first.
    waiting: Vec<WaitingSpare>,
    /// To be ended.
    over: Vec<WaitingSpare>,
    /// How many of those that are over have a place still.
    ending: usize,
    is_starting: bool,
    is_closed: bool,
    failures: u32,
    not_before: Option<Instant>,
    claimed: u64,
    refused: u64,
    failed: u64,
}

struct WaitingSpare {
    id: SessionId,
    spare: Spare,
    seat: OwnerSlot,
    place: OwnedSemaphorePermit,
    /// Since when a session has the id.
    reserved: Option<Instant>,
}

/// A spare whose id a session gets that is about to be created. Dropped before the session is there, it ends the spare: the id may be known by then, so that
/// no other session may get it.
#[derive(Debug)]
pub(crate) struct Reservation {
    spares: Arc<Spares>,
    id: SessionId,
    is_kept: bool,
}

impl Reservation {
    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    /// The session is there, and its first prompt takes the spare.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_kept {
            self.spares.forget(&self.id);
        }
    }
}

/// A spare for a session, with its place among the processes of the host.
pub(crate) struct Taken {
    pub(crate) spare: Spare,
    pub(crate) seat: OwnerSlot,
    pub(crate) place: OwnedSemaphorePermit,
}

/// What the keeper does next.
struct Tended {
    over: Vec<WaitingSpare>,
    place: Option<OwnedSemaphorePermit>,
    next: Option<Instant>,
    is_closed: bool,
}

impl SparesState {
    fn failed(&mut self, error: &dyn fmt::Display) {
        let factor = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let wait = BACKOFF.saturating_mul(factor).min(LONGEST_BACKOFF);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(Instant::now() + wait);
        self.failed += 1;
        tracing::warn!(%error, ?wait, "a spare process failed; sessions start their own");
    }

    /// Ends those that this is true of.
    fn end(&mut self, mut is_over: impl FnMut(&WaitingSpare) -> bool) {
        self.over
            .extend(self.waiting.extract_if(.., |waiting| is_over(waiting)));
    }
}

impl Spares {
    /// So many spares, as far as there are free places.
    pub(crate) fn new(
        wanted: usize,
        places: Arc<Semaphore>,
        options: impl Fn(&SessionId, &OwnerSlot) -> Options + Send + Sync + 'static,
    ) -> Self {
        Self {
            wanted,
            places,
            options: Box::new(options),
            state: Mutex::default(),
            wake: Notify::new(),
        }
    }

    pub(crate) fn are_wanted(&self) -> bool {
        self.wanted > 0
    }

    fn state(&self) -> MutexGuard<'_, SparesState> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn counts(&self) -> SpareCounts {
        let state = self.state();
        let is_reserved = |waiting: &&WaitingSpare| waiting.reserved.is_some();
        SpareCounts {
            ready: state.waiting.len() as u64,
            reserved: state.waiting.iter().filter(is_reserved).count() as u64,
            starting: u64::from(state.is_starting),
            claimed: state.claimed,
            refused: state.refused,
            failed: state.failed,
        }
    }

    /// Keeps a spare for the first process of a new session, which gets its id.
    pub(crate) fn reserve(self: &Arc<Self>) -> Option<Reservation> {
        let mut state = self.state();
        let free = |waiting: &&mut WaitingSpare| waiting.reserved.is_none() && waiting.spare.is_alive();
        let waiting = state.waiting.iter_mut().find(free)?;
        waiting.reserved = Some(Instant::now());
        let id = waiting.id.clone();
        drop(state);
        self.wake.notify_one();
        Some(Reservation {
            spares: Arc::clone(self),
            id,
            is_kept: false,
        })
    }

    /// The spare of a session that starts.
    pub(crate) fn take(&self, session: &SessionId) -> Option<Taken> {
        let mut state = self.state();
        let is_its = |waiting: &WaitingSpare| waiting.id == *session && waiting.spare.is_alive();
        let at = state.waiting.iter().position(is_its)?;
        let WaitingSpare {
            spare, seat, place, ..
        } = state.waiting.remove(at);
        state.not_before = state.not_before.max(Some(Instant::now() + REFILL));
        drop(state);
        self.wake.notify_one();
        Some(Taken { spare, seat, place })
    }

    /// A spare became a process of a session.
    pub(crate) fn was_claimed(&self) {
        let mut state = self.state();
        (state.failures, state.claimed) = (0, state.claimed + 1);
    }

    /// A spare could not become the process of its session.
    pub(crate) fn was_refused(&self, error: Option<&Error>) {
        let mut state = self.state();
        state.refused += 1;
        match error {
            // The CLI's answer is about the session.
            Some(error) if error.as_claim_problem().is_some() => {}
            Some(error) => state.failed(error),
            None => state.failed(&"the CLI did not answer a claim"),
        }
    }

    /// The session needs no process any more.
    pub(crate) fn forget(&self, session: &SessionId) {
        self.state().end(|waiting| waiting.id == *session);
        self.wake.notify_one();
    }

    /// Ends a spare, so that a session gets its place; `false` if there is none. One at a time, since those who wait ask again.
    pub(crate) fn make_room(&self) -> bool {
        let mut state = self.state();
        if state.ending > 0 || !state.over.is_empty() {
            return true;
        }
        let free = state
            .waiting
            .iter()
            .position(|waiting| waiting.reserved.is_none());
        if state.waiting.is_empty() {
            return false;
        }
        let waiting = state.waiting.remove(free.unwrap_or(0));
        state.over.push(waiting);
        drop(state);
        self.wake.notify_one();
        true
    }

    /// Ends all spares, and starts no more.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.end(|_| true);
        drop(state);
        self.wake.notify_one();
    }

    /// Finds what is over and what is missing.
    fn tend(&self) -> Tended {
        let now = Instant::now();
        let mut state = self.state();
        let ended = |waiting: &WaitingSpare| waiting.spare.wait_ended().now_or_never();
        let errors: Vec<Error> = state.waiting.iter().filter_map(ended).collect();
        for error in &errors {
            state.failed(error);
        }
        // One that lives shows that it can be done.
        if state
            .waiting
            .iter()
            .any(|waiting| waiting.spare.age() >= LONGEST_BACKOFF)
        {
            state.failures = 0;
        }
        state.end(|waiting| {
            let is_forgotten = waiting.reserved.is_some_and(|since| now >= since + RESERVED);
            is_forgotten || !waiting.spare.is_alive() || waiting.spare.age() >= MAX_AGE
        });
        let over = std::mem::take(&mut state.over);
        state.ending += over.len();
        let lacks = !state.is_closed && !state.is_starting && state.waiting.len() < self.wanted;
        let later = state.not_before.filter(|at| *at > now);
        let place = match later {
            None if lacks => Arc::clone(&self.places).try_acquire_owned().ok(),
            _ => None,
        };
        state.is_starting |= place.is_some();
        let again = (lacks && place.is_none()).then(|| later.unwrap_or(now + LOOK));
        let ends = state.waiting.iter().map(|waiting| {
            let old = now + MAX_AGE.saturating_sub(waiting.spare.age());
            let forgotten = waiting.reserved.map(|since| since + RESERVED);
            forgotten.map_or(old, |at| at.min(old))
        });
        Tended {
            next: ends.chain(again).min(),
            over,
            place,
            is_closed: state.is_closed,
        }
    }

    /// A start has ended.
    fn settle(&self, started: Result<WaitingSpare, Box<dyn std::error::Error + Send + Sync>>) {
        let mut state = self.state();
        state.is_starting = false;
        match started {
            Ok(waiting) if state.is_closed => state.over.push(waiting),
            Ok(waiting) => state.waiting.push(waiting),
            Err(error) => state.failed(&error),
        }
    }

    fn starts(
        &self,
        place: OwnedSemaphorePermit,
    ) -> impl Future<Output = Result<WaitingSpare, Error>> + use<> {
        let (id, seat) = (SessionId::random(), OwnerSlot::default());
        let options = (self.options)(&id, &seat);
        async move {
            let spare = options.prewarm().await?;
            Ok(WaitingSpare {
                id,
                spare,
                seat,
                place,
                reserved: None,
            })
        }
    }

    /// The task that keeps the spares, until they are closed. Dropped, it leaves their processes to end in the background.
    pub(crate) async fn keep(self: Arc<Self>) {
        let (mut starts, mut ends) = (JoinSet::new(), JoinSet::new());
        loop {
            let Tended {
                over,
                place,
                next,
                is_closed,
            } = self.tend();
            for WaitingSpare { spare, place, .. } in over {
                ends.spawn(async move {
                    if let Err(error) = spare.close().await {
                        tracing::debug!(%error, "ending a spare process");
                    }
                    // The process has it until it has ended.
                    drop(place);
                });
            }
            if is_closed {
                // Their processes end in the background: one that takes long to start must not hold the end of the host up.
                starts.abort_all();
            }
            if is_closed && ends.is_empty() && starts.is_empty() {
                return;
            }
            if let Some(place) = place {
                starts.spawn(self.starts(place));
            }
            let deaths: Vec<_> = self
                .state()
                .waiting
                .iter()
                .map(|waiting| Box::pin(waiting.spare.wait_ended()))
                .collect();
            let died = async move {
                match deaths.is_empty() {
                    true => std::future::pending().await,
                    false => drop(select_all(deaths).await),
                }
            };
            tokio::select! {
                () = self.wake.notified() => {}
                () = died => {}
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
                Some(started) = starts.join_next() => match started {
                    Ok(started) => self.settle(started.map_err(Into::into)),
                    // A transport of the program panicked.
                    Err(error) => self.settle(Err(error.into())),
                },
                Some(_) = ends.join_next() => {
                    let mut state = self.state();
                    state.ending = state.ending.saturating_sub(1);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use outrigger::testing::Simulated;
    use outrigger::testing::sim::peer::{Signal, Steps};
    use tokio::task::JoinHandle;

    use super::*;

    fn kept(cli: &Simulated, wanted: usize, places: usize) -> (Arc<Spares>, JoinHandle<()>) {
        let cli = cli.clone();
        let options = move |id: &SessionId, _: &OwnerSlot| cli.options().session_id(id.as_str());
        let spares = Arc::new(Spares::new(wanted, Arc::new(Semaphore::new(places)), options));
        let keeper = tokio::spawn(Arc::clone(&spares).keep());
        (spares, keeper)
    }

    /// The clock is paused, so that an hour costs nothing; what does not come fails here.
    async fn until(what: &str, is_there: impl Fn() -> bool) -> Duration {
        let began = Instant::now();
        while !is_there() {
            assert!(began.elapsed() < Duration::from_secs(3600), "{what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_spare_is_replaced_and_a_forgotten_one_is_not_kept() {
        let cli = Simulated::agent(|agent| agent);
        let (spares, keeper) = kept(&cli, 1, 1);
        until("a spare", || spares.counts().ready == 1).await;
        let age = until("another one", || cli.started().len() == 2).await;
        assert!(
            age >= MAX_AGE - Duration::from_secs(5) && age < MAX_AGE + Duration::from_secs(5),
            "{age:?}"
        );
        assert!(cli.started()[0].exited().is_some(), "it has one place");
        until("a spare", || spares.counts().ready == 1).await;

        let reserved = spares.reserve().unwrap();
        let id = reserved.id().clone();
        reserved.keep();
        assert!(spares.reserve().is_none(), "each id is one session's");
        assert_eq!((spares.counts().ready, spares.counts().reserved), (1, 1));
        let kept = until("another one", || {
            spares.counts()
                == SpareCounts {
                    ready: 1,
                    ..SpareCounts::default()
                }
        });
        let kept = kept.await;
        assert!(
            kept >= RESERVED && kept < RESERVED + Duration::from_secs(5),
            "{kept:?}"
        );
        assert!(spares.take(&id).is_none());

        // One that became a session's keeps its place.
        let reserved = spares.reserve().unwrap();
        let id = reserved.id().clone();
        reserved.keep();
        let taken = spares.take(&id).unwrap();
        assert!(spares.take(&id).is_none());
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(
            (cli.started().len(), spares.counts()),
            (3, SpareCounts::default())
        );
        drop(taken);
        until("a spare", || spares.counts().ready == 1).await;
        spares.close();
        keeper.await.unwrap();
        assert!(cli.started().iter().all(|spare| spare.exited().is_some()));
        assert!(spares.reserve().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_spare_whose_session_was_never_made_gives_its_place_to_another_one() {
        let cli = Simulated::agent(|agent| agent);
        let (spares, keeper) = kept(&cli, 1, 1);
        until("a spare", || spares.counts().ready == 1).await;
        let reserved = spares.reserve().unwrap();
        let id = reserved.id().clone();
        drop(reserved);
        assert!(spares.take(&id).is_none(), "the id is not another session's");
        let waited = until("another one", || spares.counts().ready == 1).await;
        assert!(waited < Duration::from_secs(5), "{waited:?}");
        assert_eq!(spares.counts().reserved, 0);
        assert_ne!(*spares.reserve().unwrap().id(), id);
        spares.close();
        keeper.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_does_not_wait_for_a_spare_that_is_starting() {
        let slow = || {
            let steps = Steps::new().sleep(Duration::from_secs(3600)).initialize();
            steps.expect_end().exit(0)
        };
        let cli = Simulated::steps(slow);
        let (spares, keeper) = kept(&cli, 1, 1);
        until("a start", || cli.started().len() == 1).await;
        assert_eq!(spares.counts().starting, 1);
        spares.close();
        let closed = Instant::now();
        keeper.await.unwrap();
        // The clock is paused: a deadline of the start would count.
        assert!(closed.elapsed() < Duration::from_secs(1));
        assert_eq!((cli.started().len(), spares.counts().ready), (1, 0));
        until("the end of the process", || cli.started()[0].exited().is_some()).await;
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_tried_again_later_and_later() {
        let cli = Simulated::steps(|| Steps::new().exit(1));
        let (spares, keeper) = kept(&cli, 2, 2);
        let mut waits = Vec::new();
        for tries in 1..10 {
            waits.push(until("a try", || cli.started().len() == tries).await.as_secs());
        }
        assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(spares.reserve().is_none());
        spares.close();
        keeper.await.unwrap();

        // Those that die as soon as they live are no better.
        let cli = Simulated::agent(|agent| agent);
        let (spares, keeper) = kept(&cli, 1, 1);
        let mut waits = Vec::new();
        for tries in 1..6 {
            waits.push(until("a spare", || cli.started().len() == tries).await.as_secs());
            until("a spare", || spares.counts().ready == 1).await;
            cli.started()[tries - 1].signal(Signal::Kill);
            until("its end", || spares.counts().ready == 0).await;
        }
        assert_eq!(waits, [0, 1, 2, 4, 8]);
        assert_eq!(spares.counts().failed, 5);
        spares.close();
        keeper.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn room_is_made_by_those_that_nobody_has_reserved() {
        // It takes its time to end, and has its place for so long.
        let slow = || {
            let steps = Steps::new().initialize().expect_end();
            steps.sleep(Duration::from_secs(2)).exit(0)
        };
        let cli = Simulated::steps(slow);
        let (spares, keeper) = kept(&cli, 2, 2);
        until("spares", || spares.counts().ready == 2).await;
        let reserved = spares.reserve().unwrap();
        let places = Arc::clone(&spares.places);
        assert!(spares.make_room() && spares.make_room(), "one ends already");
        let place = places.acquire().await.unwrap();
        assert_eq!((spares.counts().ready, spares.counts().reserved), (1, 1));
        assert_eq!(
            cli.started()
                .iter()
                .filter(|spare| spare.exited().is_none())
                .count(),
            1
        );
        assert!(spares.make_room());
        let other = places.acquire().await.unwrap();
        assert!(spares.take(reserved.id()).is_none());
        until("the second end", || spares.state().ending == 0).await;
        assert!(!spares.make_room());
        drop((place, other));
        spares.close();
        keeper.await.unwrap();
    }
}
