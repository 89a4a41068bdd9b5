//! Sessions that are kept in a store.

#[cfg(target_os = "linux")]
pub(crate) mod file;
#[cfg(target_os = "linux")]
mod healed;
mod lease;
mod mirror;
#[cfg(target_os = "linux")]
mod owned;
#[cfg(target_os = "linux")]
mod real;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger::protocol::RawJson;
use outrigger::sessions::store::{
    BoxFuture, Capabilities, MemoryStore, Result, SessionKey, SessionStore, StoreError, StoreErrorKind,
    StoredSession,
};
use tokio::time::Instant;

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Fails,
    /// It will never be taken.
    Refuses,
    Panics,
    Hangs,
    Takes(Duration),
}

/// A store in memory that remembers its appends, and does what it is told to.
#[derive(Default)]
struct Kept {
    memory: MemoryStore,
    /// Of the next appends.
    appends: Mutex<VecDeque<Fate>>,
    /// Whether every append fails.
    away: std::sync::atomic::AtomicBool,
    /// The part to which every append fails.
    fails_for: Mutex<Option<String>>,
    /// Of all loads.
    loads: Mutex<Option<Fate>>,
    /// When each append began, to what, and of how many entries.
    log: Mutex<Vec<(Instant, SessionKey, usize)>>,
}

impl Kept {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn with(fates: impl IntoIterator<Item = Fate>) -> Arc<Self> {
        let kept = Self::default();
        kept.appends.lock().unwrap().extend(fates);
        Arc::new(kept)
    }

    fn is_away(&self, away: bool) {
        self.away.store(away, std::sync::atomic::Ordering::SeqCst);
    }

    fn appended(&self) -> Vec<(SessionKey, usize)> {
        let log = self.log.lock().unwrap();
        log.iter()
            .map(|(_, key, entries)| (key.clone(), *entries))
            .collect()
    }

    fn texts(&self, key: &SessionKey) -> Vec<String> {
        self.memory
            .entries(key)
            .iter()
            .map(|entry| entry.get().to_owned())
            .collect()
    }
}

async fn befall(fate: Option<Fate>) -> Result<()> {
    match fate {
        None => Ok(()),
        Some(Fate::Fails) => Err(StoreError::failed("write", std::io::Error::other("no disk"))),
        Some(Fate::Refuses) => Err(StoreError::new(StoreErrorKind::Invalid, "such a name")),
        Some(Fate::Panics) => panic!("the store is told to"),
        Some(Fate::Hangs) => std::future::pending().await,
        Some(Fate::Takes(time)) => {
            tokio::time::sleep(time).await;
            Ok(())
        }
    }
}

impl SessionStore for Kept {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.log
                .lock()
                .unwrap()
                .push((Instant::now(), key.clone(), entries.len()));
            let fate = self.appends.lock().unwrap().pop_front();
            let is_bad = key.subpath.is_some() && key.subpath == *self.fails_for.lock().unwrap();
            let is_bad = is_bad || self.away.load(std::sync::atomic::Ordering::SeqCst);
            befall(fate.or(is_bad.then_some(Fate::Fails))).await?;
            self.memory.append(key, entries).await
        })
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
        Box::pin(async move {
            let fate = *self.loads.lock().unwrap();
            befall(fate).await?;
            self.memory.load(key).await
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn list_sessions<'a>(&'a self, project_key: &'a str) -> BoxFuture<'a, Result<Vec<StoredSession>>> {
        self.memory.list_sessions(project_key)
    }

    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Vec<String>>> {
        self.memory.list_subkeys(key)
    }
}
