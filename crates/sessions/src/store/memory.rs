//! A store that lives as long as the program.

use std::collections::{BTreeMap, HashSet};
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outrigger_protocol::RawJson;

use super::{
    BoxFuture, Capabilities, LeaseStore, Result, SessionKey, SessionStore, StoreError, StoreErrorKind,
    StoreLease, StoredSession, SummaryEntry, fold_summary, uuid,
};

/// Keeps everything in memory: for tests, and as an example of a store. Dropping it loses the data.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    transcripts: BTreeMap<SessionKey, Transcript>,
    summaries: BTreeMap<SessionKey, SummaryEntry>,
    leases: BTreeMap<SessionKey, StoredLease>,
    last_mtime: u64,
}

#[derive(Debug, Default)]
struct Transcript {
    entries: Vec<RawJson>,
    uuids: HashSet<String>,
    mtime: u64,
}

/// The newest lease of a session. Stays when it is over, since its number may not be used again.
#[derive(Debug)]
struct StoredLease {
    lease: StoreLease,
    released: bool,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The entries of a transcript; none if it does not exist.
    pub fn entries(&self, key: &SessionKey) -> Vec<RawJson> {
        let state = self.state();
        let found = state.transcripts.get(key);
        found
            .map(|transcript| transcript.entries.clone())
            .unwrap_or_default()
    }

    /// The keys of all that is in it.
    pub fn keys(&self) -> Vec<SessionKey> {
        self.state().transcripts.keys().cloned().collect()
    }

    /// How many sessions the store has.
    pub fn len(&self) -> usize {
        self.state()
            .transcripts
            .keys()
            .filter(|key| key.is_main())
            .count()
    }

    /// Whether the store has no session.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets everything, leases too.
    pub fn clear(&self) {
        *self.state() = MemoryState::default();
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryState {
    /// The time, always later than the last one, so that the order of writes is known.
    fn next_mtime(&mut self) -> u64 {
        self.last_mtime = now_ms().max(self.last_mtime + 1);
        self.last_mtime
    }

    fn append(&mut self, key: &SessionKey, entries: &[RawJson]) {
        if entries.is_empty() {
            return;
        }
        let mtime = self.next_mtime();
        let transcript = self.transcripts.entry(key.clone()).or_default();
        let before = transcript.entries.len();
        for entry in entries {
            if uuid(entry).is_none_or(|uuid| transcript.uuids.insert(uuid)) {
                transcript.entries.push(entry.clone());
            }
        }
        transcript.mtime = mtime;
        if key.is_main() {
            let before_summary = self.summaries.get(key);
            let mut summary = fold_summary(before_summary, key, &transcript.entries[before..]);
            summary.mtime = mtime;
            self.summaries.insert(key.clone(), summary);
        }
    }

    /// The newest lease, if `lease` is it.
    fn current_lease(&mut self, lease: &StoreLease) -> Result<&mut StoredLease> {
        let key = SessionKey::new(&lease.project_key, &lease.session_id);
        let held = self.leases.get_mut(&key);
        held.filter(|held| {
            held.lease.fence == lease.fence && held.lease.owner == lease.owner && !held.released
        })
        .ok_or_else(|| {
            StoreError::fenced(format!(
                "the lease {} of {key} is over: it was released, or another owner has taken the session over",
                lease.fence
            ))
        })
    }
}

/// When what begins now and lasts so long ends; some lasts for ever.
fn later(ttl: Duration) -> u64 {
    now_ms().saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

impl SessionStore for MemoryStore {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.state().append(key, entries);
            Ok(())
        })
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
        let state = self.state();
        let found = state.transcripts.get(key);
        Box::pin(ready(Ok(found.map(|transcript| transcript.entries.clone()))))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn list_sessions<'a>(&'a self, project_key: &'a str) -> BoxFuture<'a, Result<Vec<StoredSession>>> {
        let state = self.state();
        let mine = state
            .transcripts
            .iter()
            .filter(|(key, _)| key.is_main() && key.project_key == project_key);
        let list = mine
            .map(|(key, transcript)| StoredSession::new(&key.session_id, transcript.mtime))
            .collect();
        Box::pin(ready(Ok(list)))
    }

    fn list_session_summaries<'a>(
        &'a self,
        project_key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SummaryEntry>>> {
        let state = self.state();
        let mine = state
            .summaries
            .iter()
            .filter(|(key, _)| key.project_key == project_key);
        Box::pin(ready(Ok(mine.map(|(_, summary)| summary.clone()).collect())))
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut state = self.state();
            if key.is_main() {
                state.transcripts.retain(|other, _| other.main() != *key);
                state.summaries.remove(key);
            } else {
                state.transcripts.remove(key);
            }
            Ok(())
        })
    }

    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Vec<String>>> {
        let state = self.state();
        let session = key.main();
        let mine = state.transcripts.keys().filter(|other| other.main() == session);
        Box::pin(ready(Ok(mine.filter_map(|key| key.subpath.clone()).collect())))
    }

    fn leases(&self) -> Option<&dyn LeaseStore> {
        Some(self)
    }
}

impl LeaseStore for MemoryStore {
    fn acquire<'a>(
        &'a self,
        key: &'a SessionKey,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<StoreLease>> {
        Box::pin(async move {
            let mut state = self.state();
            let now = now_ms();
            let session = key.main();
            let old = state.leases.get(&session);
            if let Some(held) = old
                && !held.released
                && held.lease.expires_at > now
                && held.lease.owner != owner
            {
                let kind = StoreErrorKind::Held {
                    owner: held.lease.owner.clone(),
                    until: held.lease.expires_at,
                };
                return Err(StoreError::new(kind, format!("the session {session} is leased")));
            }
            let fence = old.map_or(0, |held| held.lease.fence) + 1;
            let lease = StoreLease::new(&session, owner, fence, later(ttl));
            let held = StoredLease {
                lease: lease.clone(),
                released: false,
            };
            state.leases.insert(session, held);
            Ok(lease)
        })
    }

    fn renew<'a>(&'a self, lease: &'a StoreLease, ttl: Duration) -> BoxFuture<'a, Result<StoreLease>> {
        Box::pin(async move {
            let mut state = self.state();
            let held = state.current_lease(lease)?;
            held.lease.expires_at = later(ttl);
            Ok(held.lease.clone())
        })
    }

    fn release<'a>(&'a self, lease: &'a StoreLease) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if let Ok(held) = self.state().current_lease(lease) {
                held.released = true;
            }
            Ok(())
        })
    }

    fn append_fenced<'a>(
        &'a self,
        lease: &'a StoreLease,
        key: &'a SessionKey,
        entries: &'a [RawJson],
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if !lease.covers(key) {
                let what = format!(
                    "the lease of {}/{} does not cover {key}",
                    lease.project_key, lease.session_id
                );
                return Err(StoreError::new(StoreErrorKind::Invalid, what));
            }
            let mut state = self.state();
            state.current_lease(lease)?;
            state.append(key, entries);
            Ok(())
        })
    }

    fn holder<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<StoreLease>>> {
        let state = self.state();
        let held = state.leases.get(&key.main()).filter(|held| !held.released);
        Box::pin(ready(Ok(held.map(|held| held.lease.clone()))))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn it_keeps_every_contract() {
        let make = || ready(Ok(Arc::new(MemoryStore::new()) as Arc<dyn SessionStore>));
        let report =
            super::super::conformance::tests::block_on(super::super::conformance::check(make)).unwrap();
        assert!(report.skipped.is_empty(), "{report:?}");
    }
}
