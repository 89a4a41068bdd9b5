//! Acquisitions of leases that are carried to their end, whoever waits for them: a lease that nobody has got is given back.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use outrigger_sessions::store::{LeaseStore, Result, SessionKey, StoreError, StoreErrorKind, StoreLease};
use tokio::sync::{OwnedMutexGuard, oneshot};

/// The acquisitions that run, one of a session at a time: one that was left behind must not fence off a later one.
#[derive(Clone, Default)]
pub(crate) struct Acquisitions(Arc<Mutex<HashMap<SessionKey, Arc<tokio::sync::Mutex<()>>>>>);

impl fmt::Debug for Acquisitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquisitions").finish_non_exhaustive()
    }
}

/// Waits for the end of an acquisition. Dropped, the lease is given back.
struct Waiting<S: LeaseStore + Clone + 'static> {
    answer: oneshot::Receiver<Result<StoreLease>>,
    store: S,
}

impl<S: LeaseStore + Clone + 'static> Drop for Waiting<S> {
    fn drop(&mut self) {
        self.answer.close();
        // It came in the moment in which nobody looked any more.
        if let Ok(Ok(lease)) = self.answer.try_recv()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let store = self.store.clone();
            runtime.spawn(async move { give_back(&store, &lease).await });
        }
    }
}

/// A lease that can't be given back runs out by itself.
async fn give_back(store: &impl LeaseStore, lease: &StoreLease) {
    drop(store.release(lease).await);
}

impl Acquisitions {
    /// Acquires a lease.
    pub(crate) async fn run<S: LeaseStore + Clone + 'static>(
        &self,
        store: S,
        key: SessionKey,
        acquire: impl Future<Output = Result<StoreLease>> + Send + 'static,
    ) -> Result<StoreLease> {
        let turn = self.enter(&key).await;
        let (reply, answer) = oneshot::channel();
        let mut waiting = Waiting {
            answer,
            store: store.clone(),
        };
        tokio::spawn(async move {
            let acquired = acquire.await;
            if let Err(Ok(lease)) = reply.send(acquired) {
                give_back(&store, &lease).await;
            }
            drop(turn);
        });
        let gone = |_| StoreError::new(StoreErrorKind::Failed, "acquiring the lease was cut off");
        (&mut waiting.answer).await.map_err(gone)?
    }

    async fn enter(&self, key: &SessionKey) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(key.clone()).or_default())
        };
        turn.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use outrigger_protocol::RawJson;
    use outrigger_sessions::store::{BoxFuture, MemoryStore};

    use super::*;

    const TTL: Duration = Duration::from_secs(600);

    #[derive(Clone, Default)]
    struct SharedStore(Arc<MemoryStore>);

    impl LeaseStore for SharedStore {
        fn acquire<'a>(
            &'a self,
            key: &'a SessionKey,
            owner: &'a str,
            ttl: Duration,
        ) -> BoxFuture<'a, Result<StoreLease>> {
            self.0.acquire(key, owner, ttl)
        }

        fn renew<'a>(&'a self, lease: &'a StoreLease, ttl: Duration) -> BoxFuture<'a, Result<StoreLease>> {
            self.0.renew(lease, ttl)
        }

        fn release<'a>(&'a self, lease: &'a StoreLease) -> BoxFuture<'a, Result<()>> {
            self.0.release(lease)
        }

        fn append_fenced<'a>(
            &'a self,
            lease: &'a StoreLease,
            key: &'a SessionKey,
            entries: &'a [RawJson],
        ) -> BoxFuture<'a, Result<()>> {
            self.0.append_fenced(lease, key, entries)
        }
    }

    #[tokio::test]
    async fn a_lease_that_nobody_waits_for_any_more_is_given_back_and_fences_nobody_off() -> Result<()> {
        let (store, acquisitions) = (SharedStore::default(), Acquisitions::default());
        let key = SessionKey::new("project", "session");
        let acquire = |owner: &'static str, gate: Option<oneshot::Receiver<()>>| {
            let (inner, of) = (store.clone(), key.clone());
            let acquire = async move {
                if let Some(gate) = gate {
                    drop(gate.await);
                }
                inner.acquire(&of, owner, TTL).await
            };
            Box::pin(acquisitions.run(store.clone(), key.clone(), acquire))
        };
        // The store takes its time, and its caller loses patience.
        let (open, gate) = oneshot::channel();
        let mut late = acquire("one", Some(gate));
        assert!(late.as_mut().now_or_never().is_none());
        drop(late);
        // The next one of the same owner comes behind it.
        let mut next = acquire("one", None);
        assert!(next.as_mut().now_or_never().is_none());
        assert!(open.send(()).is_ok());
        let lease = next.await?;
        assert_eq!(lease.fence, 2);
        store.renew(&lease, TTL).await?;
        store.release(&lease).await?;
        // One that is acquired in the moment in which its caller leaves.
        let mut late = acquire("one", None);
        assert!(late.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
        drop(late);
        tokio::task::yield_now().await;
        acquire("two", None).await?;
        Ok(())
    }
}
