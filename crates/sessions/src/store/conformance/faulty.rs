//! A store that is away when a test wants it to be.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_protocol::RawJson;

use super::super::{
    BoxFuture, Capabilities, LeaseStore, Result, SessionKey, SessionStore, StoreError, StoredSession,
    SummaryEntry,
};

/// The fault of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// An error, and nothing was done.
    Before,
    /// The call is done, and then fails: the reply was lost.
    After,
    /// Nothing is done, and the call never returns.
    Hangs,
    /// The call is done, and never returns.
    HangsAfter,
    /// An append of which only the first half was done, and then an error. A store may not do that; the SDK can take it.
    Half,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 5] = [
        Self::Before,
        Self::After,
        Self::Hangs,
        Self::HangsAfter,
        Self::Half,
    ];
}

/// A store before which calls fail on command: for the tests of those who use stores.
///
/// Appends have faults of their own, one after the other ([`fail_next`](Self::fail_next)). All calls fail while the store is away
/// ([`away`](Self::away)). Leases are the inner store's, and do not fail.
#[derive(Clone)]
pub struct FaultyStore {
    inner: Arc<dyn SessionStore>,
    state: Arc<Mutex<FaultyState>>,
}

#[derive(Default)]
struct FaultyState {
    next: VecDeque<Option<Fault>>,
    away: Option<Fault>,
    struck: u64,
}

impl std::fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FaultyStore")
    }
}

impl FaultyStore {
    /// Wraps this store, without faults until some are set.
    pub fn new(inner: Arc<dyn SessionStore>) -> Self {
        Self {
            inner,
            state: Arc::default(),
        }
    }

    /// Sets the faults of the next appends; `None` is no fault.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = Option<Fault>>) {
        self.state().next.extend(faults);
    }

    /// From now on all calls fail so, or none any more.
    pub fn away(&self, how: Option<Fault>) {
        self.state().away = how;
    }

    /// How many calls failed.
    pub fn struck(&self) -> u64 {
        self.state().struck
    }

    fn state(&self) -> MutexGuard<'_, FaultyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self, is_append: bool) -> Option<Fault> {
        let mut state = self.state();
        let next = if is_append {
            state.next.pop_front().flatten()
        } else {
            None
        };
        let fault = next.or(state.away);
        state.struck += u64::from(fault.is_some());
        fault
    }

    /// Does the call, unless it has a fault.
    async fn try_do<T>(&self, done: impl Future<Output = Result<T>>) -> Result<T> {
        match self.fault(false) {
            None => done.await,
            Some(Fault::Hangs | Fault::HangsAfter) => std::future::pending().await,
            Some(_) => Err(away()),
        }
    }
}

fn away() -> StoreError {
    StoreError::failed("the store is away", std::io::Error::other("it was told to be"))
}

impl SessionStore for FaultyStore {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Some(fault) = self.fault(true) else {
                return self.inner.append(key, entries).await;
            };
            let done = match fault {
                Fault::Before | Fault::Hangs => 0,
                Fault::After | Fault::HangsAfter => entries.len(),
                Fault::Half => entries.len() / 2,
            };
            if done > 0 {
                self.inner.append(key, &entries[..done]).await?;
            }
            match fault {
                Fault::Hangs | Fault::HangsAfter => std::future::pending().await,
                _ => Err(away()),
            }
        })
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
        Box::pin(self.try_do(self.inner.load(key)))
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn list_sessions<'a>(&'a self, project_key: &'a str) -> BoxFuture<'a, Result<Vec<StoredSession>>> {
        Box::pin(self.try_do(self.inner.list_sessions(project_key)))
    }

    fn list_session_summaries<'a>(
        &'a self,
        project_key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SummaryEntry>>> {
        Box::pin(self.try_do(self.inner.list_session_summaries(project_key)))
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.try_do(self.inner.delete(key)))
    }

    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Vec<String>>> {
        Box::pin(self.try_do(self.inner.list_subkeys(key)))
    }

    fn leases(&self) -> Option<&dyn LeaseStore> {
        self.inner.leases()
    }
}
