//! The files of the leases on one session.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Fence, Owner};
use crate::draft::{create_dir, private, remove, replace};
use crate::error::{Error, Result};
use crate::file;
use crate::id::SessionId;

/// How long a change by another process may take. It is a few file operations; a killed process frees its lock.
const DEADLINE: Duration = Duration::from_secs(10);

/// How long to wait before the next look.
pub(super) const STEP: Duration = Duration::from_millis(10);

/// The newest claim.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClaimState {
    pub(super) fence: Fence,
    pub(super) owner: Owner,
    /// Whether the holder has released the lease.
    pub(super) released: bool,
    /// The owner that requested the session from the holder.
    pub(super) wanted_by: Option<Owner>,
}

/// Where the leases on a session are.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    dir: PathBuf,
    id: SessionId,
}

/// The right to look and to change, which one has at a time. Freed when it is dropped.
#[derive(Debug)]
pub(super) struct ChangeLock(File);

/// The lock that shows that a holder is alive. Freed when it is dropped, or the process ends.
#[derive(Debug)]
pub(super) struct HolderLock(File);

// A process that this one is starting has the files of this one, locks included, until it runs its program.
impl Drop for ChangeLock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Drop for HolderLock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Disk {
    pub(super) fn of(config_dir: &Path, id: &SessionId) -> Self {
        Self {
            dir: config_dir.join("outrigger").join("leases"),
            id: id.clone(),
        }
    }

    fn path(&self, what: &str) -> PathBuf {
        // The same session, however its id is written.
        self.dir
            .join(format!("{}.{what}", self.id.as_str().to_ascii_lowercase()))
    }

    fn held_path(&self, fence: Fence) -> PathBuf {
        self.path(&format!("{fence}.held"))
    }

    /// Waits until nobody else changes anything.
    pub(super) fn turn(&self) -> Result<ChangeLock> {
        create_dir(&self.dir)?;
        let path = self.path("lock");
        let file = open(&path)?;
        let until = Instant::now() + DEADLINE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(ChangeLock(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(STEP),
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::io("lock", path)(ErrorKind::TimedOut.into()));
                }
                Err(TryLockError::Error(error)) => return Err(Error::io("lock", path)(error)),
            }
        }
    }

    /// The newest claim, if there ever was one.
    pub(super) fn state(&self) -> Result<Option<ClaimState>> {
        let path = self.path("json");
        let text = match file::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", path)(error)),
        };
        // Beginning anew would make numbers that others had.
        let state = serde_json::from_slice(&text).map_err(|error| {
            let file = path.display();
            let why = format!("{file} is damaged ({error}); remove it when nothing drives the session");
            Error::invalid("the lease", why)
        })?;
        Ok(Some(state))
    }

    /// Makes this the newest claim.
    pub(super) fn set_state(&self, _turn: &ChangeLock, state: &ClaimState) -> Result<()> {
        let text =
            serde_json::to_vec(state).map_err(|error| Error::invalid("the lease", error.to_string()))?;
        replace(&self.path("json"), &text)
    }

    /// Whether the holder of a claim lives.
    pub(super) fn is_held(&self, fence: Fence) -> Result<bool> {
        let path = self.held_path(fence);
        let file = match file::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::io("open", path)(error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(Error::io("lock", path)(error)),
        }
    }

    /// Takes the lock that shows that the holder of a lease is alive.
    pub(super) fn hold(&self, _turn: &ChangeLock, fence: Fence) -> Result<HolderLock> {
        let path = self.held_path(fence);
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(HolderLock(file)),
            Err(TryLockError::WouldBlock) => Err(Error::io("lock", path)(ErrorKind::WouldBlock.into())),
            Err(TryLockError::Error(error)) => Err(Error::io("lock", path)(error)),
        }
    }

    /// Removes the files of a former holder. Numbers are never used again, so they can't be another holder's.
    pub(super) fn forget(&self, _turn: &ChangeLock, fence: Fence) -> Result<()> {
        remove(&self.held_path(fence))
    }
}

fn open(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    private(options.read(true).write(true).create(true).truncate(false))
        .open(path)
        .map_err(Error::io("open", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_free_although_a_process_that_starts_still_has_it() {
        let config = tempfile::tempdir().unwrap();
        let disk = Disk::of(
            config.path(),
            &SessionId::new("550e8400-e29b-41d4-a716-446655440000").unwrap(),
        );
        let fence = Fence(1);
        let turn = disk.turn().unwrap();
        let holder = disk.hold(&turn, fence).unwrap();
        let inherited = (turn.0.try_clone().unwrap(), holder.0.try_clone().unwrap());
        assert!(disk.is_held(fence).unwrap());
        drop((turn, holder));
        assert!(!disk.is_held(fence).unwrap());
        disk.turn().unwrap();
        drop(inherited);
    }
}
