//! The private directory in which a session from a store goes on, and those that others left behind.
//!
//! It goes with its session. Of one whose store has not taken everything the transcripts stay, and nothing else: [`kept`](super::kept)
//! finds them when the session goes on from this machine.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outrigger_sessions::lease::cli_runs_in;
use tempfile::TempDir;

use super::kept;
use crate::options::private_directory;

/// What the directories' names begin with. Those of the official SDK do too.
pub(super) const PREFIX: &str = "claude-resume-";

/// Locked by the program whose directory it is as long as that lives. A directory without it is not of this SDK.
pub(super) const OWNED: &str = ".outrigger-owned";

/// A temporary directory that is removed even if somebody, such as a scanner, still has one of its files open; and by others if this
/// program dies: by the [guardian](crate::Local::guardian), or by the next that makes one.
#[derive(Debug)]
pub(crate) struct Place {
    directory: Option<TempDir>,
    owned: Option<File>,
    /// Whether the store has everything that is in it.
    settled: Arc<AtomicBool>,
}

impl Place {
    /// Makes one, and removes what is left of those whose programs died.
    pub(super) fn make() -> io::Result<Self> {
        sweep(&std::env::temp_dir());
        Self::of(private_directory(PREFIX)?)
    }

    fn of(directory: TempDir) -> io::Result<Self> {
        // It gets its name when it is locked: nobody is to find it free before.
        let unnamed = directory.path().join(".outrigger-owned.new");
        let file = OpenOptions::new().write(true).create_new(true).open(&unnamed)?;
        match file.try_lock() {
            Ok(()) => fs::rename(&unnamed, directory.path().join(OWNED))?,
            // A file system without locks: then nobody can tell what is left behind from what is used.
            Err(_) => fs::remove_file(&unnamed)?,
        }
        Ok(Self {
            directory: Some(directory),
            owned: Some(file),
            settled: Arc::new(AtomicBool::new(true)),
        })
    }

    /// What is in it now is known to the store: whatever is newer may not be.
    pub(crate) fn is_written(&self) {
        if let Some(owned) = &self.owned {
            // Without, more is kept than need be.
            let _ = owned.set_modified(std::time::SystemTime::now());
        }
    }

    /// To be set to whether the store has everything.
    pub(crate) fn settled(&self) -> &Arc<AtomicBool> {
        &self.settled
    }

    /// Where it is.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.directory.as_ref().map(TempDir::path)
    }
}

/// Removes the directories whose programs died. What is used, what is not of this SDK, and what belongs to others stays.
fn sweep(temporary: &Path) {
    let Ok(entries) = fs::read_dir(temporary) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX))
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_ours && is_left_behind(&entry.path()) {
            match kept::strip(&entry.path()) {
                Ok(()) => {
                    tracing::debug!(path = %entry.path().display(), "removed what a program left that died");
                }
                Err(error) => {
                    tracing::warn!(%error, path = %entry.path().display(), "what a program left that died can't be removed");
                }
            }
        }
    }
}

pub(super) fn is_left_behind(directory: &Path) -> bool {
    let Ok(owned) = OpenOptions::new().write(true).open(directory.join(OWNED)) else {
        return false;
    };
    // The lock goes with its program, however that ends; its CLI may take a little longer.
    match owned.try_lock() {
        Ok(()) => !cli_runs_in(directory),
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Some systems remove no file that is open.
        self.owned = None;
        let Some(directory) = self.directory.take() else {
            return;
        };
        let path = directory.keep();
        if !self.settled.load(Ordering::Acquire) {
            match kept::strip(&path) {
                Ok(()) if path.exists() => {
                    tracing::warn!(path = %path.display(), "a session store has not taken everything: the transcripts are kept");
                }
                Ok(()) => {}
                Err(error) => {
                    tracing::error!(%error, path = %path.display(), "the temporary directory of a session can't be removed");
                }
            }
            return;
        }
        if fs::remove_dir_all(&path).is_ok() || !path.exists() {
            return;
        }
        // Elsewhere, since it waits.
        let again = move || {
            for _ in 0..5 {
                std::thread::sleep(Duration::from_millis(100));
                if fs::remove_dir_all(&path).is_ok() || !path.exists() {
                    return;
                }
            }
            tracing::error!(path = %path.display(), "the temporary directory of a session can't be removed");
        };
        // Without threads it stays until the next session is started from a store.
        let _ = std::thread::Builder::new()
            .name("outrigger-remove".to_owned())
            .spawn(again);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(temporary: &Path, prefix: &str) -> TempDir {
        let directory = tempfile::Builder::new().prefix(prefix).tempdir_in(temporary);
        let directory = directory.unwrap();
        fs::write(directory.path().join("x"), "").unwrap();
        directory
    }

    #[test]
    fn what_is_used_stays_and_what_is_left_behind_goes() {
        let temporary = tempfile::tempdir().unwrap();
        let used = Place::of(directory(temporary.path(), PREFIX)).unwrap();
        let foreign = directory(temporary.path(), PREFIX);
        let other = directory(temporary.path(), "other-");
        fs::write(other.path().join(OWNED), "").unwrap();
        let left = |name: &str| {
            let mut place = Place::of(directory(temporary.path(), PREFIX)).unwrap();
            let path = place.directory.take().unwrap().keep();
            fs::write(path.join(".credentials.json"), name).unwrap();
            path
        };
        let (stale, living) = (left("stale"), left("living"));
        // A CLI that outlives its program for a moment: it lists itself.
        fs::create_dir(living.join("sessions")).unwrap();
        let list = living.join("sessions/1.json");
        let entry = format!(r#"{{"pid":{},"sessionId":"s"}}"#, std::process::id());
        fs::write(&list, entry).unwrap();

        sweep(temporary.path());
        assert!(!stale.exists());
        for path in [used.path().unwrap(), foreign.path(), other.path(), &living] {
            assert!(path.join("x").exists(), "{}", path.display());
        }
        fs::remove_file(list).unwrap();
        sweep(temporary.path());
        assert!(!living.exists());

        let path = used.path().unwrap().to_owned();
        drop(used);
        assert!(!path.exists());
        sweep(&temporary.path().join("missing"));
    }
}
