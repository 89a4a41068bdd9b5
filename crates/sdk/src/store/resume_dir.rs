//! The private directory of a session that is resumed from a store, and stale ones of other programs.
//!
//! It is removed with its session. If the store lacks entries, only the transcripts stay: [`catch_up`](super::catch_up) finds them
//! when the session is resumed on this machine.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use outrigger_sessions::lease::cli_runs_in;

use super::catch_up;
use crate::env;
use crate::options::handover::{Filling, Handed, as_user, make_private};
use crate::options::{Launch, Resumed, RunAs};
use crate::remove_tree::remove_tree;

/// The prefix of the directories' names, as in the official SDK.
pub(super) const PREFIX: &str = "claude-resume-";

/// Locked by the program whose directory it is as long as that lives. A directory without it is not of this SDK.
pub(super) const OWNED: &str = ".outrigger-owned";

/// The CLI's directory in one that is made for another user: what is above it stays this program's, so that nobody else can say
/// whose it is.
pub(super) const GIVEN: &str = "config";

/// How old the mark is made, and what the store has: what the CLI writes is newer, even if the clock is set back meanwhile. It is less
/// than a day, since the CLI removes transcripts that are some days old.
const AGE: Duration = Duration::from_secs(20 * 3600);

/// A directory that is being filled; no other user can enter it.
#[derive(Debug)]
pub(super) struct Filled {
    filling: Filling,
    config: PathBuf,
    owned: File,
}

impl Filled {
    /// Creates a directory for the CLI of that user, and removes those of dead programs.
    pub(super) fn make(user: Option<RunAs>) -> io::Result<Self> {
        let temporary = std::env::temp_dir();
        sweep(&temporary);
        Self::make_in(&temporary, user)
    }

    pub(super) fn make_in(temporary: &Path, user: Option<RunAs>) -> io::Result<Self> {
        let filling = Filling::make_in(temporary, PREFIX, user)?;
        let mut config = filling.path().to_owned();
        if user.is_some() {
            config.push(GIVEN);
            make_private(&config)?;
        }
        let owned = mark(filling.path())?;
        Ok(Self {
            filling,
            config,
            owned,
        })
    }

    /// The config directory to fill.
    pub(super) fn config(&self) -> &Path {
        &self.config
    }

    /// Gives it to the user, and makes it the config directory of a CLI. What is in it now the store has: whatever is newer it may
    /// lack.
    pub(super) fn become_config_of(self, launch: &mut Launch) -> io::Result<()> {
        let config = self.config.clone();
        launch.guard.keep(self.hand_over()?);
        env::put(&mut launch.env, "CLAUDE_CONFIG_DIR".into(), config.into());
        Ok(())
    }

    pub(super) fn hand_over(self) -> io::Result<ResumeDir> {
        // Where that fails, more is kept than need be.
        if let Some(age) = SystemTime::now().checked_sub(AGE) {
            let _ = catch_up::set_times(&self.config.join("projects"), age);
            let _ = self.owned.set_modified(age);
        }
        let directory = self.filling.hand_over()?;
        Ok(ResumeDir {
            directory: Some(directory),
            owned: Some(self.owned),
            settled: Arc::new(AtomicBool::new(true)),
        })
    }
}

/// Marks a directory as that of a live program.
fn mark(directory: &Path) -> io::Result<File> {
    // It gets its name when it is locked: nobody is to find it free before.
    let unnamed = directory.join(".outrigger-owned.new");
    let file = OpenOptions::new().write(true).create_new(true).open(&unnamed)?;
    match file.try_lock() {
        Ok(()) => fs::rename(&unnamed, directory.join(OWNED))?,
        // A file system without locks: then nobody can tell what is left behind from what is used.
        Err(_) => fs::remove_file(&unnamed)?,
    }
    Ok(file)
}

/// A temporary directory that is removed even if somebody, such as a scanner, still has one of its files open; and by others if this
/// program dies: by the [guardian](crate::Local::guardian), or by the next that makes one.
#[derive(Debug)]
pub(crate) struct ResumeDir {
    directory: Option<Handed>,
    owned: Option<File>,
    /// Whether the store has all of its entries.
    settled: Arc<AtomicBool>,
}

impl Resumed for ResumeDir {
    fn settled(&self) -> &Arc<AtomicBool> {
        &self.settled
    }

    fn owned_by_user(&self) -> &[PathBuf] {
        self.directory.as_ref().map_or(&[], Handed::given)
    }
}

/// Removes the directories of dead programs. Directories in use, of other software, or of other users stay.
fn sweep(temporary: &Path) {
    let Ok(entries) = fs::read_dir(temporary) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX))
            && entry.metadata().is_ok_and(|meta| meta.is_dir() && is_own(&meta));
        if is_ours && is_left_behind(&entry.path()) {
            match catch_up::strip(&entry.path()) {
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
    let Ok(owned) = open_own(&directory.join(OWNED)) else {
        return false;
    };
    // The lock goes with its program, however that ends; its CLI may take a little longer. Several may look at once: whoever kept others
    // from it would hide from a session what it left here.
    match owned.try_lock_shared() {
        Ok(()) => !cli_runs_in(directory) && !cli_runs_in_given(directory),
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

/// Whether a CLI runs in what was made for another user. That is looked at with that user's rights: who follows links there as the
/// superuser opens whatever they lead to, and there are devices that begin something when they are opened.
fn cli_runs_in_given(directory: &Path) -> bool {
    let config = directory.join(GIVEN);
    let Ok(meta) = fs::symlink_metadata(&config) else {
        return false;
    };
    #[cfg(unix)]
    let owner = {
        use std::os::unix::fs::MetadataExt as _;
        (!is_own(&meta)).then(|| RunAs {
            uid: meta.uid(),
            gid: meta.gid(),
        })
    };
    #[cfg(not(unix))]
    let owner = (!is_own(&meta)).then_some(RunAs { uid: 0, gid: 0 });
    // What can't be looked at may be used.
    as_user(owner, || Ok(cli_runs_in(&config))).unwrap_or(true)
}

/// Opens a file of this user. The temporary directory is everybody's: what has the name of one may be a FIFO, at which a program
/// would wait, or a link.
fn open_own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    let file = options.open(path)?;
    let meta = file.metadata()?;
    match meta.is_file() && is_own(&meta) {
        true => Ok(file),
        false => Err(io::Error::other("it is no file of this user")),
    }
}

#[cfg(unix)]
pub(super) fn is_own(meta: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(meta) == rustix::process::geteuid().as_raw()
}

/// The temporary directory is each user's own.
#[cfg(not(unix))]
pub(super) fn is_own(_: &fs::Metadata) -> bool {
    true
}

impl Drop for ResumeDir {
    fn drop(&mut self) {
        // Some systems remove no file that is open. Without the unlocking a process that is being started here would keep the lock until it
        // runs its program, and hide the directory from who resumes the session meanwhile.
        if let Some(owned) = self.owned.take() {
            let _ = owned.unlock();
        }
        let Some(directory) = self.directory.take() else {
            return;
        };
        let path = directory.keep();
        if !self.settled.load(Ordering::Acquire) {
            match catch_up::strip(&path) {
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
        if remove_tree(&path).is_ok() || !path.exists() {
            return;
        }
        // Elsewhere, since it waits.
        let again = move || {
            for _ in 0..5 {
                std::thread::sleep(Duration::from_millis(100));
                if remove_tree(&path).is_ok() || !path.exists() {
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
    use tempfile::TempDir;

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
        let place = || {
            let filled = Filled::make_in(temporary.path(), None).unwrap();
            fs::write(filled.config().join("x"), "").unwrap();
            filled.hand_over().unwrap()
        };
        let used = place();
        let foreign = directory(temporary.path(), PREFIX);
        let other = directory(temporary.path(), "other-");
        fs::write(other.path().join(OWNED), "").unwrap();
        let left = |name: &str| {
            let mut place = place();
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
        for path in [
            used.owned_by_user()[0].as_path(),
            foreign.path(),
            other.path(),
            &living,
        ] {
            assert!(path.join("x").exists(), "{}", path.display());
        }
        fs::remove_file(list).unwrap();
        sweep(temporary.path());
        assert!(!living.exists());

        let path = used.owned_by_user()[0].clone();
        drop(used);
        assert!(!path.exists());
        sweep(&temporary.path().join("missing"));
    }

    #[test]
    fn what_is_left_behind_is_found_while_others_look_and_processes_start() {
        let temporary = tempfile::tempdir().unwrap();
        let filled = Filled::make_in(temporary.path(), None).unwrap();
        let project = filled.config().join("projects/p");
        let place = filled.hand_over().unwrap();
        let path = place.owned_by_user()[0].clone();
        fs::create_dir_all(&project).unwrap();
        fs::write(project.join("s.jsonl"), "{}\n").unwrap();
        place.settled.store(false, Ordering::Release);
        // As a process has it that has not run its program yet.
        let inherited = place.owned.as_ref().unwrap().try_clone().unwrap();
        assert!(!is_left_behind(&path));
        drop(place);
        assert!(is_left_behind(&path));
        let looking = open_own(&path.join(OWNED)).unwrap();
        looking.try_lock_shared().unwrap();
        assert!(is_left_behind(&path));
        drop((inherited, looking));
    }

    /// Who has the CLI's directory may put a link where the CLI lists itself.
    #[test]
    #[cfg(target_os = "linux")]
    fn another_users_list_of_processes_is_read_with_that_users_rights() {
        use std::fs::Permissions;
        use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

        const OTHER: u32 = 65_534;
        if !rustix::process::geteuid().is_root() {
            // Without the superuser nobody else's can be made.
            return;
        }
        let temporary = tempfile::tempdir().unwrap();
        fs::set_permissions(temporary.path(), Permissions::from_mode(0o755)).unwrap();
        let secret = temporary.path().join("secret");
        let entry = format!(r#"{{"pid":{},"sessionId":"s"}}"#, std::process::id());
        let user = Some(RunAs {
            uid: OTHER,
            gid: OTHER,
        });
        let left = || {
            let filled = Filled::make_in(temporary.path(), user).unwrap();
            fs::create_dir(filled.config().join("sessions")).unwrap();
            let mut place = filled.hand_over().unwrap();
            place.directory.take().unwrap().keep()
        };
        let (linked, living) = (left(), left());
        for (path, mode) in [(&secret, 0o600), (&living.join("config/sessions/1.json"), 0o644)] {
            fs::write(path, &entry).unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        let link = linked.join("config/sessions/1.json");
        symlink(&secret, &link).unwrap();
        chown(linked.join("config/sessions"), Some(OTHER), Some(OTHER)).unwrap();
        sweep(temporary.path());
        assert!(!linked.exists(), "the link was followed");
        assert!(living.exists(), "it is used");
    }

    /// The temporary directory is everybody's, and so is what is in it by such a name.
    #[test]
    #[cfg(unix)]
    fn what_others_put_there_is_neither_waited_for_nor_removed() {
        let temporary = tempfile::tempdir().unwrap();
        let fifo = directory(temporary.path(), PREFIX);
        let made = std::process::Command::new("mkfifo")
            .arg(fifo.path().join(OWNED))
            .status();
        assert!(made.unwrap().success());
        let link = directory(temporary.path(), PREFIX);
        let aim = temporary.path().join("aim");
        fs::write(&aim, "").unwrap();
        std::os::unix::fs::symlink(&aim, link.path().join(OWNED)).unwrap();
        let foreign = directory(temporary.path(), PREFIX);
        fs::write(foreign.path().join(OWNED), "").unwrap();
        let is_superuser = rustix::process::geteuid().is_root();
        if is_superuser {
            std::os::unix::fs::chown(foreign.path(), Some(65_534), Some(65_534)).unwrap();
        }
        // Ours, with the FIFO where the CLI lists itself.
        let listed = directory(temporary.path(), PREFIX);
        fs::write(listed.path().join(OWNED), "").unwrap();
        fs::create_dir(listed.path().join("sessions")).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(listed.path().join("sessions/1.json"))
            .status();
        assert!(made.unwrap().success());

        sweep(temporary.path());
        assert!(fifo.path().exists() && link.path().exists());
        assert!(!listed.path().exists(), "it is ours, and nobody uses it");
        // Without the superuser nobody else's can be made.
        assert_eq!(foreign.path().exists(), is_superuser);
    }
}
