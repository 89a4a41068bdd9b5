//! Where approvals are kept.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger::SessionId;

use super::{Approval, ApprovalId};
use crate::lasting;

/// Why a store failed.
pub type ApprovalStoreError = Box<dyn StdError + Send + Sync + 'static>;

/// Keeps approvals, for any number of processes.
///
/// # Cancel safety
/// The futures may be dropped. A write that has begun may then have happened or not, but never in part.
pub trait ApprovalStore: fmt::Debug + Send + Sync + 'static {
    /// Adds an approval, and returns when it is as durable as the store makes it.
    ///
    /// # Errors
    /// When it is not known to be stored.
    fn add<'a>(&'a self, approval: &'a Approval) -> BoxFuture<'a, Result<(), ApprovalStoreError>>;

    /// The approval of this id.
    ///
    /// # Errors
    /// When it cannot be read; never for one that is missing.
    fn get<'a>(&'a self, id: &'a ApprovalId) -> BoxFuture<'a, Result<Option<Approval>, ApprovalStoreError>>;

    /// The approvals of a session, or of all sessions, in any order: those that [are pending](Approval::is_pending) or
    /// [wait for their session](Approval::waits_for_session), and others as long as the store keeps them.
    ///
    /// # Errors
    /// When they cannot be read.
    fn list<'a>(
        &'a self,
        session: Option<&'a SessionId>,
    ) -> BoxFuture<'a, Result<Vec<Approval>, ApprovalStoreError>>;

    /// Puts an approval in place of the one that has its id and the version before; `false`, if the store has another version.
    /// Of two that replace the same version at once, one gets `true`.
    ///
    /// # Errors
    /// When it is not known which version is stored.
    fn replace<'a>(&'a self, approval: &'a Approval) -> BoxFuture<'a, Result<bool, ApprovalStoreError>>;
}

/// Keeps approvals in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryApprovals(Arc<Mutex<BTreeMap<ApprovalId, Approval>>>);

impl MemoryApprovals {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut BTreeMap<ApprovalId, Approval>) -> T,
    ) -> BoxFuture<'static, Result<T, ApprovalStoreError>> {
        // Nothing panics halfway through a change.
        let done = call(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(std::future::ready(Ok(done)))
    }
}

impl ApprovalStore for MemoryApprovals {
    fn add<'a>(&'a self, approval: &'a Approval) -> BoxFuture<'a, Result<(), ApprovalStoreError>> {
        self.with(|all| {
            all.insert(approval.id.clone(), approval.clone());
        })
    }

    fn get<'a>(&'a self, id: &'a ApprovalId) -> BoxFuture<'a, Result<Option<Approval>, ApprovalStoreError>> {
        self.with(|all| all.get(id).cloned())
    }

    fn list<'a>(
        &'a self,
        session: Option<&'a SessionId>,
    ) -> BoxFuture<'a, Result<Vec<Approval>, ApprovalStoreError>> {
        self.with(|all| {
            let of_session = |approval: &&Approval| session.is_none_or(|id| *id == approval.session_id);
            all.values().filter(of_session).cloned().collect()
        })
    }

    fn replace<'a>(&'a self, approval: &'a Approval) -> BoxFuture<'a, Result<bool, ApprovalStoreError>> {
        self.with(|all| match all.get_mut(&approval.id) {
            Some(stored) if stored.version + 1 == approval.version => {
                *stored = approval.clone();
                true
            }
            _ => false,
        })
    }
}

/// How long a change waits for the lock: a process that has it may be stopped, and each wait keeps a thread.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

/// Keeps each approval in a file of a directory, for the processes of one machine. A change holds a lock on the directory, and a file is
/// synced before it takes the place of the old one. Files are readable for this user only.
///
/// Where another process has the lock for 30 seconds, the change is an error.
///
/// Approvals that are over stay until [`forget`](Self::forget). A damaged file is in no list, which is logged as an error.
#[derive(Debug, Clone)]
pub struct ApprovalFiles(PathBuf);

impl ApprovalFiles {
    /// In this directory, which is created with the first approval, for this user alone.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Removes the approval of this id, if there is one.
    ///
    /// # Errors
    /// When the file cannot be removed.
    ///
    /// # Cancel safety
    /// The file may be removed or not when the future is dropped.
    pub async fn forget(&self, id: &ApprovalId) -> Result<(), ApprovalStoreError> {
        let path = self.path(id);
        self.locked(move |_| match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
        .await
    }

    fn path(&self, id: &ApprovalId) -> PathBuf {
        self.0.join(format!("{id}.json"))
    }

    /// Calls where blocking is allowed.
    async fn locked<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, ApprovalStoreError> {
        let directory = self.0.clone();
        let called = tokio::task::spawn_blocking(move || {
            // Only this user may read what a model was about to do, and only this user may decide.
            lasting::make_dir(&directory, 0o700)?;
            let lock = File::create(directory.join("lock"))?;
            lasting::lock(&lock, LOCK_PATIENCE)?;
            call(&directory)
        });
        Ok(called.await.map_err(io::Error::other)??)
    }
}

fn read(path: &Path) -> io::Result<Option<Approval>> {
    match fs::read(path) {
        Ok(text) => {
            let wrong =
                |error| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()));
            serde_json::from_slice(&text).map(Some).map_err(wrong)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    lasting::replace(path, text, 0o600)
}

impl ApprovalStore for ApprovalFiles {
    fn add<'a>(&'a self, approval: &'a Approval) -> BoxFuture<'a, Result<(), ApprovalStoreError>> {
        Box::pin(async move {
            let (path, text) = (self.path(&approval.id), serde_json::to_vec(approval)?);
            self.locked(move |_| write(&path, &text)).await
        })
    }

    fn get<'a>(&'a self, id: &'a ApprovalId) -> BoxFuture<'a, Result<Option<Approval>, ApprovalStoreError>> {
        let path = self.path(id);
        Box::pin(self.locked(move |_| read(&path)))
    }

    fn list<'a>(
        &'a self,
        session: Option<&'a SessionId>,
    ) -> BoxFuture<'a, Result<Vec<Approval>, ApprovalStoreError>> {
        Box::pin(async move {
            let session = session.cloned();
            let listed = self.locked(move |directory| {
                let mut found = Vec::new();
                for entry in fs::read_dir(directory)? {
                    let path = entry?.path();
                    if path.extension().is_none_or(|extension| extension != "json") {
                        continue;
                    }
                    match read(&path) {
                        // The calls of other sessions must not be denied for it. Its own call is asked about anew.
                        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                            tracing::error!(%error, "a stored approval is damaged, and left out");
                        }
                        read => found.extend(read?),
                    }
                }
                found.retain(|approval| session.as_ref().is_none_or(|id| *id == approval.session_id));
                Ok(found)
            });
            listed.await
        })
    }

    fn replace<'a>(&'a self, approval: &'a Approval) -> BoxFuture<'a, Result<bool, ApprovalStoreError>> {
        Box::pin(async move {
            let (path, text, version) = (
                self.path(&approval.id),
                serde_json::to_vec(approval)?,
                approval.version,
            );
            let replaced = self.locked(move |_| match read(&path)? {
                Some(stored) if stored.version + 1 == version => write(&path, &text).map(|()| true),
                _ => Ok(false),
            });
            replaced.await
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[tokio::test]
    async fn a_damaged_file_hides_no_other_approval() {
        let place = tempfile::tempdir().unwrap();
        let files = ApprovalFiles::new(place.path());
        let approval: Approval = serde_json::from_value(serde_json::json!({
            "id": "00000000-0000-4000-8000-000000000001", "version": 0, "session_id": "00000000-0000-4000-8000-000000000002",
            "cwd": "/p", "tool_use_id": "t", "tool_name": "Bash", "tool_input": {}, "asked_at": 0, "state": "pending",
        }))
        .unwrap();
        files.add(&approval).await.unwrap();
        for text in [&b""[..], b"{", b"\xff"] {
            fs::write(place.path().join("damaged.json"), text).unwrap();
            for session in [None, Some(&approval.session_id)] {
                let listed = files.list(session).await.unwrap();
                assert_eq!(listed.len(), 1);
                assert_eq!(listed[0].id, approval.id);
            }
        }
    }
}
