//! The host: what a program or a server calls.

mod create;
mod owners;
mod read;
mod remove;
mod send;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinSet;

pub use self::create::{NewFork, NewSession};
use self::owners::{Owners, make_room};
use crate::error::{HostError, Result};
use crate::handler::with_handlers;
use crate::log::SqliteLog;
use crate::owner::{Command, OwnerContext};
use crate::policy::HostPolicy;
use crate::spares::{SpareCounts, Spares};
use crate::workspace::DiffTurns;

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
    shared: Arc<OwnerContext>,
    owners: Arc<Owners>,
    closed: AtomicBool,
    tasks: Mutex<JoinSet<()>>,
    /// Held while the session is looked up that was created under a key.
    keys: tokio::sync::Mutex<()>,
    /// Held while a session is adopted, whose lease this host has until then.
    adoptions: Arc<tokio::sync::Mutex<()>>,
    diffs: DiffTurns,
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

impl std::fmt::Debug for SessionHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionHost")
            .field("policy", &self.0.shared.policy)
            .finish_non_exhaustive()
    }
}

impl SessionHost {
    /// Opens a host on a log, and goes on with what a host of before left: turns that were cut off are reported as interrupted, their approvals are
    /// superseded unless they are [deferred](HostPolicy::deferred), decisions that no process got are carried out, and prompts that no process got are given to one.
    ///
    /// # Errors
    /// When the log can't be read.
    pub async fn open(policy: HostPolicy, log: SqliteLog) -> Result<Self> {
        let log = Arc::new(log);
        let owners = Arc::new(Owners::default());
        let idle = Arc::downgrade(&owners);
        let places = Arc::new(Semaphore::new(policy.max_processes.max(1)));
        let spares = Arc::new(spares_of(&policy, &places));
        let waiting_starts = Arc::new(AtomicUsize::new(0));
        let waiting = Arc::clone(&waiting_starts);
        let shared = OwnerContext {
            places,
            waiting_starts,
            spares: Arc::clone(&spares),
            policy,
            ticks: AtomicU64::new(1),
            turns: Arc::default(),
            budget_queue: Arc::default(),
            worktrees: tokio::sync::Mutex::default(),
            closing: watch::Sender::new(false),
            make_room: Box::new(move || make_room(&idle, &waiting)),
            log: Arc::clone(&log),
        };
        let inner = Inner {
            shared: Arc::new(shared),
            owners,
            closed: AtomicBool::new(false),
            tasks: Mutex::default(),
            keys: tokio::sync::Mutex::default(),
            adoptions: Arc::default(),
            diffs: DiffTurns::default(),
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

    fn log(&self) -> &Arc<SqliteLog> {
        &self.0.shared.log
    }

    /// The log.
    pub fn event_log(&self) -> Arc<SqliteLog> {
        Arc::clone(self.log())
    }

    /// The spare processes of this host: how many there are, and what became of those of before.
    pub fn spares(&self) -> SpareCounts {
        self.0.shared.spares.counts()
    }

    /// Lets no turn begin any more, and waits until those that run have ended, with the agents that they left in the background, as before an upgrade. All
    /// else goes on: prompts are taken, and wait for
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
