//! Holds a lease: renews it, notices its loss, and releases it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_sessions::lease::{OnBusy, Owner};
use outrigger_sessions::store::{self, LeaseStore, SessionKey, SessionStore, StoreError, StoreErrorKind};
use outrigger_sessions::{Error as FilesError, SessionId, Sessions};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::acquire::LeaseRefusal;
use super::on_disk::OnDisk;
use crate::conn::Conn;
use crate::conn::attachments::Claimed;
use crate::deadline::AGES;
use crate::error::{Error, Kind};
use crate::options::RunAs;
use crate::ownership::{Holder, LeaseOptions, LeaseProblem};
use crate::peer::BoxFuture;
use crate::spawn::spawn_on;
use crate::store_config::{Keeping, StoreFailure, call, failed};

/// The interval of checks whether a lease on disk is still held, and whether another program requests it.
const LOOK: Duration = Duration::from_secs(1);

/// How long these checks may fail.
const BLIND: Duration = Duration::from_secs(10);

/// The deadline of store calls for which only the end waits.
const SHORT: Duration = Duration::from_secs(5);

/// Where leases are.
pub(super) enum Where {
    /// In this config directory, with the rights of that user if there is one: it is the user's.
    Disk(Sessions, Option<RunAs>),
    /// In this store, which has leases.
    Store(Keeping),
}

/// The leases of one session: on its id, and after `/clear` on the following ids.
pub(crate) struct Ownership {
    set: LeaseOptions,
    /// A unique name of this holder: a second acquire under one name would take the lease over.
    owner: String,
    place: Where,
    /// Held while a lease is acquired.
    acquiring: tokio::sync::Mutex<()>,
    state: Mutex<RenewalState>,
    /// Woken when another task notices a loss.
    troubled: Notify,
}

impl std::fmt::Debug for Ownership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ownership")
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct RenewalState {
    held: Vec<HeldLease>,
    lacking: Option<LackingLease>,
    problem: Option<LeaseProblem>,
    forked_from: Option<SessionId>,
    /// Whether the session is over, so that no lease is held any more.
    is_over: bool,
}

struct HeldLease {
    key: SessionKey,
    right: Right,
    /// Until when no other holder can have it, as far as known.
    sure_until: Instant,
    /// The time of the next check.
    next: Instant,
    /// Whether the session has another id now, so that this lease is released once all is stored.
    retired: bool,
}

/// A lease on the session's current id that could not be acquired so far.
struct LackingLease {
    key: SessionKey,
    since: Instant,
    /// The time of the next try.
    next: Instant,
}

enum Right {
    Disk(Arc<OnDisk>),
    Store(store::StoreLease),
}

/// The result of a check.
enum LeaseCheck {
    Ours(Option<store::StoreLease>),
    Lost(LeaseProblem),
    Unknown(String),
}

/// Stops a claim whose caller has gone.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Ownership {
    pub(super) fn new(set: LeaseOptions, place: Where) -> Arc<Self> {
        let mark = Uuid::new_v4().simple().to_string();
        Arc::new(Self {
            owner: format!("{}, mark {}", Owner::here(set.name()), &mark[..8]),
            set,
            place,
            acquiring: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            troubled: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, RenewalState> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether appends to this store have a lease.
    pub(crate) fn is_in_store(&self) -> bool {
        matches!(self.place, Where::Store(_))
    }

    pub(crate) fn problem(&self) -> Option<LeaseProblem> {
        self.state().problem.clone()
    }

    pub(super) fn on_busy(&self) -> OnBusy {
        self.set.on_busy
    }

    pub(super) fn forked_from(&self, id: SessionId) {
        self.state().forked_from = Some(id);
    }

    /// Acquires a lease, unless it is held here. `own_cli` is the process of this session, which may drive the session already.
    pub(super) async fn acquire(
        &self,
        key: &SessionKey,
        on_busy: OnBusy,
        own_cli: Option<u32>,
    ) -> Result<(), LeaseRefusal> {
        // The mirror and the renewal may lack it at the same time, and the second of two leases fences the first one off.
        let _one = self.acquiring.lock().await;
        {
            let state = self.state();
            if state.is_over {
                return Err(LeaseRefusal::Failed(Error::new(Kind::Closed)));
            }
            if state.held.iter().any(|held| held.key == *key) {
                return Ok(());
            }
        }
        let begun = Instant::now();
        let right = match &self.place {
            Where::Disk(sessions, user) => self.claim(sessions.clone(), *user, key, on_busy, own_cli).await?,
            Where::Store(keeping) => {
                let (store, owner, ttl) = (Arc::clone(&keeping.store), self.owner.clone(), self.set.ttl);
                let of = key.clone();
                let taken = call(keeping.load_timeout, async move {
                    let leases = leases(&*store)?;
                    match on_busy {
                        OnBusy::TakeOver => leases.take_over(&of, &owner, ttl).await,
                        _ => leases.acquire(&of, &owner, ttl).await,
                    }
                });
                Right::Store(taken.await.map_err(|failure| refusal(key, failure))?)
            }
        };
        tracing::debug!(%key, fence = right.fence(), "the session is ours");
        let lease = HeldLease {
            key: key.clone(),
            sure_until: begun + self.bears(),
            next: begun + self.period(),
            right,
            retired: false,
        };
        {
            let mut state = self.state();
            if !state.is_over {
                state.held.push(lease);
                return Ok(());
            }
        }
        self.give_back(vec![lease]).await;
        Err(LeaseRefusal::Failed(Error::new(Kind::Closed)))
    }

    /// As [`acquire`](Self::acquire), for a limited time, and never from another holder.
    async fn acquire_within(
        &self,
        time: Duration,
        key: &SessionKey,
        own_cli: Option<u32>,
    ) -> Result<(), LeaseRefusal> {
        let acquired = tokio::time::timeout(time, self.acquire(key, OnBusy::Fail, own_cli)).await;
        let late = |_| Err(LeaseRefusal::Failed(Error::timeout("acquiring the lease", time)));
        acquired.unwrap_or_else(late)
    }

    /// Acquires a lease on disk. Dropping the future releases it, and leaves a session that was about to be taken over to its holder.
    async fn claim(
        &self,
        sessions: Sessions,
        user: Option<RunAs>,
        key: &SessionKey,
        on_busy: OnBusy,
        own_cli: Option<u32>,
    ) -> Result<Right, LeaseRefusal> {
        let failed = |error: Error| LeaseRefusal::Failed(error);
        let id = SessionId::new(&key.session_id)
            .map_err(|error| failed(Error::invalid_because("session id", error)))?;
        let (name, patience) = (self.set.name().to_owned(), self.set.patience);
        // The CLI makes the forks.
        let on_busy = match on_busy {
            OnBusy::TakeOver => OnBusy::TakeOver,
            _ => OnBusy::Fail,
        };
        let of = id.clone();
        let leaves = StopOnDrop::default();
        let stop = Arc::clone(&leaves.0);
        let taken = tokio::task::spawn_blocking(move || {
            let mut claim = sessions.claim(&of).owner(name).on_busy(on_busy).stop(stop);
            if let Some(pid) = own_cli {
                claim = claim.own_cli(pid);
            }
            OnDisk::take(claim.patience(patience), user)
        });
        match taken.await {
            Ok(Ok(lease)) => Ok(Right::Disk(Arc::new(lease))),
            Ok(Err(FilesError::Busy(busy))) => Err(LeaseRefusal::Held(Holder::from(&*busy))),
            Ok(Err(source)) => Err(failed(Error::new(Kind::Files {
                what: format!("the lease of session {id} could not be taken"),
                source,
            }))),
            Err(broken) => Err(failed(Error::invalid_because("lease", broken))),
        }
    }

    /// What times are reckoned by: a lease may last for ever, and no sum may.
    fn ttl(&self) -> Duration {
        self.set.ttl.min(AGES)
    }

    fn period(&self) -> Duration {
        match self.place {
            Where::Disk(..) => LOOK,
            Where::Store(_) => self.ttl() / 3,
        }
    }

    /// How long it is known to be ours after a look: in a store a little less than it lasts, so that the process is gone when it
    /// ends.
    fn bears(&self) -> Duration {
        match self.place {
            Where::Disk(..) => BLIND,
            Where::Store(_) => self.ttl() * 5 / 6,
        }
    }

    /// Appends under the lease of the session, acquired if there is none: the CLI begins sessions by itself.
    pub(crate) async fn append(
        &self,
        timeout: Duration,
        store: &Arc<dyn SessionStore>,
        key: &SessionKey,
        entries: Arc<Vec<RawJson>>,
    ) -> Result<(), StoreFailure> {
        let lease = match self.lease_of(&key.main()) {
            Some(lease) => lease,
            None => match self.acquire_within(self.period(), &key.main(), None).await {
                Ok(()) => self
                    .lease_of(&key.main())
                    .ok_or_else(|| StoreFailure::Broken("its lease was given back".to_owned()))?,
                Err(LeaseRefusal::Held(by)) => {
                    let kind = StoreErrorKind::Held {
                        owner: by.who,
                        until: by.until.unwrap_or_default(),
                    };
                    let what = format!("{key} is leased");
                    return Err(StoreFailure::Store(StoreError::new(kind, what)));
                }
                Err(LeaseRefusal::Failed(error)) => return Err(StoreFailure::Broken(error.chain())),
            },
        };
        let (store, key) = (Arc::clone(store), key.clone());
        call(timeout, async move {
            leases(&*store)?.append_fenced(&lease, &key, &entries).await
        })
        .await
    }

    fn lease_of(&self, session: &SessionKey) -> Option<store::StoreLease> {
        let state = self.state();
        let held = state.held.iter().find(|held| held.key == *session)?;
        match &held.right {
            Right::Store(lease) => Some(lease.clone()),
            Right::Disk(_) => None,
        }
    }

    /// An append was rejected: another holder has the session.
    pub(crate) async fn refused(&self, conn: &Conn, key: &SessionKey) {
        let session = key.main();
        if let Some(lease) = self.lease_of(&session) {
            let problem = self.overtaken(&lease).await;
            self.lose(problem);
            return;
        }
        // What comes late of a conversation that is over here ends nothing.
        let current = conn.core().session_id().map(str::to_owned);
        if current.is_none_or(|current| current == session.session_id)
            && let Some(by) = self.holder(&session).await
        {
            self.lose(LeaseProblem::TakenOver {
                session: session.session_id,
                fence: None,
                by: Some(by),
            });
        }
    }

    fn lose(&self, problem: LeaseProblem) {
        tracing::error!(%problem, "the session is lost");
        self.state().problem.get_or_insert(problem);
        self.troubled.notify_one();
    }

    async fn overtaken(&self, lease: &store::StoreLease) -> LeaseProblem {
        let session = SessionKey::new(&lease.project_key, &lease.session_id);
        LeaseProblem::TakenOver {
            session: lease.session_id.clone(),
            fence: Some(lease.fence),
            by: self.holder(&session).await,
        }
    }

    /// The holder of a session in the store, if the store reports it.
    async fn holder(&self, session: &SessionKey) -> Option<Holder> {
        let Where::Store(keeping) = &self.place else {
            return None;
        };
        let (store, key) = (Arc::clone(&keeping.store), session.clone());
        let held = call(SHORT, async move { leases(&*store)?.holder(&key).await }).await;
        held.ok().flatten().map(Holder::from)
    }

    /// The task: renews the leases until the session has ended, and ends the session if a lease is lost.
    pub(crate) async fn keep(self: Arc<Self>, conn: Arc<Conn>) {
        let mut ended = conn.ended.clone();
        let mut init = conn.init();
        loop {
            let due = self.due();
            let is_new = tokio::select! {
                _ = ended.wait_for(Option::is_some) => return,
                () = self.troubled.notified() => None,
                Ok(()) = init.changed() => Some(true),
                () = sleep_until(due) => Some(false),
            };
            match is_new {
                Some(true) => self.adopt(&conn).await,
                Some(false) => {
                    self.check_due(&conn).await;
                    let lacks = self.state().lacking.is_some();
                    if lacks {
                        self.adopt(&conn).await;
                    }
                }
                None => {}
            }
            if let Some(problem) = self.problem() {
                conn.lost(&problem).await;
                return;
            }
        }
    }

    fn due(&self) -> Instant {
        let state = self.state();
        let lacking = state.lacking.iter().map(|lacking| lacking.next);
        let next = state.held.iter().map(|held| held.next).chain(lacking).min();
        next.unwrap_or_else(|| Instant::now() + self.period())
    }

    /// Acquires a lease on the CLI's current id, if it has changed.
    async fn adopt(&self, conn: &Conn) {
        let Some(current) = conn.core().session_id().map(str::to_owned) else {
            return;
        };
        let begun = Instant::now();
        let (key, since) = {
            let mut state = self.state();
            let is_known = state.held.iter().any(|held| held.key.session_id == current);
            for held in &mut state.held {
                held.retired = held.key.session_id != current;
            }
            let lacking = state.lacking.take().filter(|_| !is_known);
            let mut known = state.held.iter().map(|held| &held.key);
            let Some(known) = known.next().or(lacking.as_ref().map(|lacking| &lacking.key)) else {
                return;
            };
            if is_known {
                return;
            }
            let key = SessionKey::new(&known.project_key, &current);
            let lacking = lacking.filter(|lacking| lacking.key == key);
            (key, lacking.map_or(begun, |lacking| lacking.since))
        };
        if let Some(mirror) = &conn.mirror {
            mirror.want();
        }
        let (period, bears) = (self.period(), self.bears());
        let left = (since + bears).saturating_duration_since(begun);
        let time = match self.place {
            // An attempt that is given up goes on, and the next one would find the lease of the first.
            Where::Disk(..) => left.max(period / 4),
            // The other leases are not renewed meanwhile.
            Where::Store(_) => left.clamp(period / 4, period),
        };
        match self.acquire_within(time, &key, conn.pid).await {
            Ok(()) => {}
            Err(LeaseRefusal::Held(by)) => self.lose(LeaseProblem::TakenOver {
                session: current,
                fence: None,
                by: Some(by),
            }),
            Err(LeaseRefusal::Failed(error)) => {
                let now = Instant::now();
                tracing::warn!(%key, %error, "the lease could not be acquired");
                self.state().lacking = Some(LackingLease {
                    key,
                    since,
                    next: now + period / 4,
                });
                if now >= since + bears {
                    self.lose(LeaseProblem::NotRenewed {
                        session: current,
                        within: now - since,
                        why: error.chain(),
                    });
                }
            }
        }
    }

    /// Checks all leases that are due.
    async fn check_due(&self, conn: &Conn) {
        let now = Instant::now();
        let is_stored = conn.mirror.as_ref().is_none_or(|mirror| mirror.is_flushed());
        let (over, due) = {
            let mut state = self.state();
            let is_over = |held: &mut HeldLease| held.retired && is_stored;
            let over: Vec<HeldLease> = state.held.extract_if(.., is_over).collect();
            let due = state.held.iter().filter(|held| held.next <= now);
            let due: Vec<_> = due
                .map(|held| (held.key.clone(), held.right.share(), held.sure_until))
                .collect();
            (over, due)
        };
        self.give_back(over).await;
        for (key, right, sure_until) in due {
            let begun = Instant::now();
            let left = sure_until.saturating_duration_since(begun);
            let seen = match right {
                Right::Disk(lease) => look_at(&key, lease).await,
                Right::Store(lease) => self.renew(lease, left).await,
            };
            let fence = match &seen {
                LeaseCheck::Lost(problem) => return self.lose_if_held(&key, problem.clone()),
                LeaseCheck::Ours(Some(lease)) => Some(lease.fence),
                _ => None,
            };
            let (period, bears) = (self.period(), self.bears());
            let mut state = self.state();
            let found = state.held.iter_mut().find(|held| held.key == key);
            // It may have been given back, or claimed anew, meanwhile.
            let Some(held) = found.filter(|held| fence.is_none_or(|fence| fence == held.right.fence()))
            else {
                continue;
            };
            match seen {
                LeaseCheck::Ours(renewed) => {
                    if let Some(renewed) = renewed {
                        held.right = Right::Store(renewed);
                    }
                    held.sure_until = begun + bears;
                    held.next = begun + period;
                }
                LeaseCheck::Unknown(why) => {
                    let now = Instant::now();
                    tracing::warn!(%key, why, "the lease could not be renewed");
                    held.next = now + period / 4;
                    if now >= held.sure_until {
                        let problem = LeaseProblem::NotRenewed {
                            session: key.session_id.clone(),
                            within: now - (held.sure_until - bears),
                            why,
                        };
                        drop(state);
                        return self.lose(problem);
                    }
                }
                LeaseCheck::Lost(_) => {}
            }
        }
    }

    fn lose_if_held(&self, key: &SessionKey, problem: LeaseProblem) {
        // The end may have given it back while it was looked at.
        let is_held = self.state().held.iter().any(|held| held.key == *key);
        if is_held {
            self.lose(problem);
        }
    }

    async fn renew(&self, lease: store::StoreLease, left: Duration) -> LeaseCheck {
        let Where::Store(keeping) = &self.place else {
            return LeaseCheck::Ours(None);
        };
        let (ttl, shown) = (self.set.ttl, self.ttl());
        let (store, old) = (Arc::clone(&keeping.store), lease.clone());
        let renewed = call(left.clamp(shown / 12, shown / 3), async move {
            leases(&*store)?.renew(&old, ttl).await
        });
        match renewed.await {
            Ok(renewed) => LeaseCheck::Ours(Some(renewed)),
            Err(StoreFailure::Store(error)) if error.is_fenced() => {
                LeaseCheck::Lost(self.overtaken(&lease).await)
            }
            Err(failure) => LeaseCheck::Unknown(failure.text()),
        }
    }

    async fn give_back(&self, held: Vec<HeldLease>) {
        for HeldLease { key, right, .. } in held {
            let given = match (right, &self.place) {
                (Right::Disk(lease), _) => {
                    let release = move || Arc::into_inner(lease).map_or(Ok(()), OnDisk::release);
                    match tokio::task::spawn_blocking(release).await {
                        Ok(released) => released.map_err(|error| error.to_string()),
                        Err(broken) => Err(broken.to_string()),
                    }
                }
                (Right::Store(lease), Where::Store(keeping)) => {
                    let store = Arc::clone(&keeping.store);
                    let released = call(SHORT, async move { leases(&*store)?.release(&lease).await });
                    released.await.map_err(|failure| failure.text())
                }
                (Right::Store(_), Where::Disk(..)) => Ok(()),
            };
            if let Err(error) = given {
                tracing::warn!(%key, error, "the lease could not be given back; it runs out by itself");
            }
        }
    }
}

impl Claimed for Ownership {
    /// Why the session is lost, looked at once more: whoever took it over from a program that was stopped has ended the process
    /// before the next look.
    fn problem_at_end(&self) -> Option<LeaseProblem> {
        let state = self.state();
        let overtaken = |held: &HeldLease| match &held.right {
            Right::Disk(lease) => match lease.check() {
                Err(FilesError::Fenced(busy)) => Some(LeaseProblem::TakenOver {
                    session: held.key.session_id.clone(),
                    fence: Some(lease.fence()),
                    by: Some(Holder::from(&*busy)),
                }),
                _ => None,
            },
            Right::Store(_) => None,
        };
        state
            .problem
            .clone()
            .or_else(|| state.held.iter().find_map(overtaken))
    }

    /// The session of which a fork was made.
    fn fork_of(&self) -> Option<SessionId> {
        self.state().forked_from.clone()
    }

    /// The number of the lease on the current id.
    fn fence(&self) -> Option<u64> {
        let state = self.state();
        let current = state.held.iter().rfind(|held| !held.retired)?;
        Some(current.right.fence())
    }

    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let held = {
                let mut state = self.state();
                state.is_over = true;
                state.lacking = None;
                std::mem::take(&mut state.held)
            };
            self.give_back(held).await;
        })
    }

    /// Releases leases without a runtime, at its end.
    fn abandon(&self) {
        let mut state = self.state();
        state.is_over = true;
        drop(std::mem::take(&mut state.held));
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        let held = std::mem::take(&mut self.state().held);
        let Some(handle) = Handle::try_current().ok().filter(|_| !held.is_empty()) else {
            return;
        };
        // A start that was given up: nothing may wait here.
        for HeldLease { right, .. } in held {
            match (right, &self.place) {
                (Right::Disk(lease), _) => drop(handle.spawn_blocking(move || drop(lease))),
                (Right::Store(lease), Where::Store(keeping)) => {
                    let store = Arc::clone(&keeping.store);
                    // If it fails, the lease runs out.
                    spawn_on(&handle, async move {
                        if let Ok(leases) = leases(&*store) {
                            let _ = leases.release(&lease).await;
                        }
                    });
                }
                (Right::Store(_), Where::Disk(..)) => {}
            }
        }
    }
}

impl Right {
    fn fence(&self) -> u64 {
        match self {
            Self::Disk(lease) => lease.fence(),
            Self::Store(lease) => lease.fence,
        }
    }

    fn share(&self) -> Self {
        match self {
            Self::Disk(lease) => Self::Disk(Arc::clone(lease)),
            Self::Store(lease) => Self::Store(lease.clone()),
        }
    }
}

fn leases(store: &dyn SessionStore) -> Result<&dyn LeaseStore, StoreError> {
    store
        .leases()
        .ok_or_else(|| StoreError::unsupported("leases any more"))
}

fn refusal(key: &SessionKey, failure: StoreFailure) -> LeaseRefusal {
    if let StoreFailure::Store(error) = &failure
        && let StoreErrorKind::Held { owner, until } = error.kind()
    {
        return LeaseRefusal::Held(Holder {
            who: owner.clone(),
            fence: None,
            until: Some(*until),
        });
    }
    LeaseRefusal::Failed(failed(format!("lease of {key}"), failure))
}

/// Whether a lease on disk is still held, and no other program requests it.
async fn look_at(key: &SessionKey, lease: Arc<OnDisk>) -> LeaseCheck {
    let (session, fence) = (key.session_id.clone(), lease.fence());
    match tokio::task::spawn_blocking(move || lease.wanted_by()).await {
        Ok(Ok(None)) => LeaseCheck::Ours(None),
        Ok(Ok(Some(owner))) => LeaseCheck::Lost(LeaseProblem::HandedOver {
            session,
            to: Holder {
                who: owner.to_string(),
                fence: None,
                until: None,
            },
        }),
        Ok(Err(FilesError::Fenced(busy))) => LeaseCheck::Lost(LeaseProblem::TakenOver {
            session,
            fence: Some(fence),
            by: Some(Holder::from(&*busy)),
        }),
        Ok(Err(error)) => LeaseCheck::Unknown(error.to_string()),
        Err(broken) => LeaseCheck::Unknown(broken.to_string()),
    }
}
