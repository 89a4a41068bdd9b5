//! Sessions in a directory of plain files: to be copied, mounted and looked at.

mod file_paths;
mod files;
mod lease_file;
mod transcripts;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_sessions::store::{
    BoxFuture, Capabilities, LeaseStore, Result, SessionKey, SessionStore, StoreError, StoreLease,
    StoredSession, SummaryEntry,
};

use self::file_paths::places;
use self::files::{failed, make_dir};
use self::transcripts::{DirectoryInner, PART, Summary};
use crate::acquisitions::Acquisitions;
use crate::unsure::{RunningAppend, UnsureAppends};

/// Marks an escaped byte of a name.
const ESCAPE: char = '%';

/// Keeps sessions in files: a directory for each project, in it one for each session, in that `main.jsonl`, the parts below
/// `parts`, and the summary. Names are the keys' own, with `%XX` for all but small letters, digits, `-` and `_`, so that they mean
/// the same on every system. A name of more than 255 bytes is split: each 200 bytes are a directory with `%+` at its end, which has
/// the rest of the name. A line is an entry; an entry with line ends is written as a JSON string. The entries of one append
/// are between two empty lines.
///
/// An append that has returned is on disk (`fsync`), as a whole or not at all: the next append removes what a crash left of one. A summary
/// that could not be written, or is damaged, is not in the list of summaries; the next append makes it anew.
/// Several processes may use the directory, if the file system has locks. What the store makes is for this user only.
///
/// File I/O runs on tokio's blocking threads, so a tokio runtime is needed. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DirectoryStore {
    shared: Arc<DirectoryInner>,
    unsure: Arc<UnsureAppends<RunningAppend>>,
    acquisitions: Acquisitions,
}
impl DirectoryStore {
    /// Below this directory, which is made if it isn't there.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref().to_owned();
        make_dir(&root).map_err(|error| failed("make", &root, error))?;
        Ok(Self {
            shared: Arc::new(DirectoryInner::new(root)),
            unsure: Arc::default(),
            acquisitions: Acquisitions::default(),
        })
    }

    /// Appends, under the lease if there is one.
    async fn add(&self, key: &SessionKey, entries: &[RawJson], lease: Option<&StoreLease>) -> Result<()> {
        let start = || -> RunningAppend {
            let (of, added, lease) = (key.clone(), entries.to_vec(), lease.cloned());
            self.run_blocking(move |shared| shared.append(&of, &added, lease.as_ref()))
        };
        self.unsure.run(key, entries, start).await
    }

    fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&DirectoryInner) -> Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T>> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || work(&shared)).await;
            done.map_err(|error| StoreError::failed("the directory of sessions can't be worked on", error))?
        })
    }
}

impl SessionStore for DirectoryStore {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if entries.is_empty() {
                return Ok(());
            }
            self.add(key, entries, None).await
        })
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
        let key = key.clone();
        self.run_blocking(move |shared| shared.load(&key))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn list_sessions<'a>(&'a self, project_key: &'a str) -> BoxFuture<'a, Result<Vec<StoredSession>>> {
        let project = project_key.to_owned();
        self.run_blocking(move |shared| {
            let list = shared.list(&project)?;
            Ok(list
                .into_iter()
                .map(|(id, mtime, _)| StoredSession::new(id, mtime))
                .collect())
        })
    }

    fn list_session_summaries<'a>(
        &'a self,
        project_key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SummaryEntry>>> {
        let project = project_key.to_owned();
        self.run_blocking(move |shared| {
            let mut summaries = Vec::new();
            for (id, mtime, place) in shared.list(&project)? {
                let length = fs::metadata(place.join("main.jsonl")).map_or(0, |meta| meta.len());
                let summary = Summary::of(&place).filter(|summary| summary.length == length);
                summaries.extend(summary.map(|summary| SummaryEntry::new(id, mtime, summary.data)));
            }
            Ok(summaries)
        })
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.unsure.forget(key).await;
            let key = key.clone();
            self.run_blocking(move |shared| shared.delete(&key)).await
        })
    }

    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Vec<String>>> {
        let key = key.clone();
        self.run_blocking(move |shared| {
            let parts = places(&shared.session(&key).join("parts"), PART)?;
            Ok(parts.into_iter().map(|(part, _)| part).collect())
        })
    }

    fn leases(&self) -> Option<&dyn LeaseStore> {
        Some(self)
    }
}

impl LeaseStore for DirectoryStore {
    fn acquire<'a>(
        &'a self,
        key: &'a SessionKey,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<StoreLease>> {
        let (key, owner) = (key.main(), owner.to_owned());
        let of = key.clone();
        let acquire = self.run_blocking(move |shared| shared.acquire(&of, &owner, ttl));
        Box::pin(self.acquisitions.run(self.clone(), key, acquire))
    }

    fn renew<'a>(&'a self, lease: &'a StoreLease, ttl: Duration) -> BoxFuture<'a, Result<StoreLease>> {
        let lease = lease.clone();
        self.run_blocking(move |shared| shared.renew(lease, ttl))
    }

    fn release<'a>(&'a self, lease: &'a StoreLease) -> BoxFuture<'a, Result<()>> {
        let lease = lease.clone();
        self.run_blocking(move |shared| shared.release(&lease))
    }

    fn append_fenced<'a>(
        &'a self,
        lease: &'a StoreLease,
        key: &'a SessionKey,
        entries: &'a [RawJson],
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            crate::covered(lease, key)?;
            self.add(key, entries, Some(lease)).await
        })
    }

    fn holder<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<StoreLease>>> {
        let key = key.main();
        self.run_blocking(move |shared| shared.holder(&key))
    }
}
