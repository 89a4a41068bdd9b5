//! What a program that may do more than the user of its CLI makes and reads for that CLI.
//!
//! With [`Options::user`](super::Options::user) a privileged program works for a user who may be anybody, and whose processes run
//! meanwhile. Two rules keep them from turning its rights to their ends:
//!
//! * What is made in the temporary directory is filled while nobody else can enter it, and is handed over at the end, as a whole,
//!   from the bottom up and on open handles: [`Filling`]. Nothing is written there by path afterwards.
//! * What lies below a place of that user is read, made and removed with the rights of that user: [`as_user`]. Whatever a name
//!   leads to then, the system refuses what the user may not do.
//!
//! What was handed over is removed by path, by whoever runs this program. [`remove_tree`] never goes
//! through a link there: on Unix it opens each directory without following links, and removes what is in it by the open handle.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::{TempDir, TempPath};

use super::RunAs;
use crate::private_dir::private_directory_in;
use crate::remove_tree::remove_tree;

/// A temporary directory that only this user can enter, while it is being filled. Removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Filling {
    directory: TempDir,
    to: Option<RunAs>,
}

impl Filling {
    /// Makes one for the CLI of that user; of this one if there is none.
    ///
    /// # Errors
    /// When it can't be made; for another user also where others could put something else in its place.
    pub(crate) fn make(prefix: &str, to: Option<RunAs>) -> io::Result<Self> {
        Self::make_in(&std::env::temp_dir(), prefix, to)
    }

    pub(crate) fn make_in(temporary: &Path, prefix: &str, to: Option<RunAs>) -> io::Result<Self> {
        let temporary = safe_for(temporary, to)?;
        let directory = private_directory_in(prefix, &temporary)?;
        Ok(Self { directory, to })
    }

    /// Where the directory is.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Gives its directories to the user, with all that is in them, and lets that user pass. The directory itself, and the files
    /// right in it, stay this program's: nobody else can rename, replace or add anything there.
    ///
    /// # Errors
    /// When the system refuses it. The directory is removed then.
    pub(crate) fn hand_over(self) -> io::Result<Handed> {
        let given = match self.to {
            Some(user) => give_directories(self.directory.path(), user)?,
            None => vec![self.directory.path().to_owned()],
        };
        Ok(Handed {
            path: self.directory.keep(),
            given,
        })
    }
}

/// A temporary directory that was filled, and whose directories are the user's. Removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Handed {
    /// Empty once it is removed or kept.
    path: PathBuf,
    given: Vec<PathBuf>,
}

impl Handed {
    /// Where the directory is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What of it the user has, who can remove what is in there.
    pub(crate) fn given(&self) -> &[PathBuf] {
        &self.given
    }

    /// Removes the directory, and returns the error if that failed.
    pub(crate) fn close(mut self) -> io::Result<()> {
        remove_tree(&std::mem::take(&mut self.path))
    }

    /// The directory's path. The directory is no longer removed on drop.
    pub(crate) fn keep(mut self) -> PathBuf {
        std::mem::take(&mut self.path)
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty()
            && let Err(error) = remove_tree(&self.path)
        {
            log_left(&error, &self.path);
        }
    }
}

fn log_left(error: &io::Error, path: &Path) {
    if error.kind() != io::ErrorKind::NotFound {
        tracing::error!(%error, path = %path.display(), "a private directory of a session can't be removed");
    }
}

/// A directory in a place of the user's, removed with that user's rights.
#[derive(Debug)]
pub(super) struct Lent {
    directory: Option<TempDir>,
    user: Option<RunAs>,
}

impl Lent {
    /// Takes over a directory that was made.
    pub(super) fn new(directory: TempDir, user: Option<RunAs>) -> Self {
        Self {
            directory: Some(directory),
            user,
        }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.directory.as_ref().map(TempDir::path)
    }

    /// Removes the directory, and returns the error if that failed.
    pub(super) fn close(mut self) -> io::Result<()> {
        self.remove()
    }

    fn remove(&mut self) -> io::Result<()> {
        match self.directory.take() {
            Some(directory) => {
                let path = directory.keep();
                as_user(self.user, || remove_tree(&path)).inspect_err(|error| log_left(error, &path))
            }
            None => Ok(()),
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // The log has it.
        let _ = self.remove();
    }
}

/// Makes a temporary file that only the user can read; it goes when the path is dropped.
pub(super) fn private_file(
    prefix: &str,
    suffix: &str,
    content: &[u8],
    to: Option<RunAs>,
) -> io::Result<TempPath> {
    let temporary = safe_for(&std::env::temp_dir(), to)?;
    let mut file = tempfile::Builder::new()
        .prefix(prefix)
        .suffix(suffix)
        .tempfile_in(temporary)?;
    file.write_all(content)?;
    file.flush()?;
    if let Some(user) = to {
        give(file.as_file(), user)?;
    }
    Ok(file.into_temp_path())
}

/// Makes a directory that only this user can enter; one that exists is taken as it is.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Does something with the rights of that user; simply does it if there is none. It may not wait for anything but the disk.
///
/// It is done on a thread of its own, which takes on the user and group for itself, and gives up all other groups and
/// capabilities; the other threads keep theirs. Its real user stays, so that nobody else may signal it. The system makes no core
/// dumps of a process that has done this.
///
/// # Errors
/// Those of the work. When this program may not become that user; [`Unsupported`](io::ErrorKind::Unsupported) outside Linux.
pub(crate) fn as_user<T: Send>(
    user: Option<RunAs>,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    match user {
        None => work(),
        #[cfg(target_os = "linux")]
        Some(user) => std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("outrigger-as-user".to_owned());
            let thread = thread.spawn_scoped(scope, move || {
                act_as(user).map_err(|error| {
                    let (uid, gid) = (user.uid, user.gid);
                    let what = format!("this program can't act as user {uid} of group {gid}: {error}");
                    io::Error::new(error.kind(), what)
                })?;
                work()
            })?;
            let broken = |_| Err(io::Error::other("the thread that acts as the user panicked"));
            thread.join().unwrap_or_else(broken)
        }),
        #[cfg(not(target_os = "linux"))]
        Some(_) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "acting as another user is possible on Linux only",
        )),
    }
}

/// Has this thread act as that user, for good.
#[cfg(target_os = "linux")]
fn act_as(user: RunAs) -> io::Result<()> {
    use rustix::process::{getegid, geteuid, getgid, getuid};
    use rustix::thread;

    let (uid, gid) = ids(user)?;
    if (geteuid(), getegid()) == (uid, gid) {
        return Ok(());
    }
    // While the rights are still there to do it. Of the process's main thread nothing changes: these are calls for a thread.
    thread::set_thread_groups(&[])?;
    thread::set_thread_res_gid(getgid(), gid, getegid())?;
    thread::set_thread_res_uid(getuid(), uid, geteuid())?;
    // The system takes them away from the superuser only.
    let mut capabilities = thread::capabilities(None)?;
    capabilities.effective = thread::CapabilitySet::empty();
    thread::set_capabilities(None, capabilities)?;
    Ok(())
}

#[cfg(unix)]
fn ids(user: RunAs) -> io::Result<(rustix::fs::Uid, rustix::fs::Gid)> {
    // It means "as it is" to the system.
    if user.uid == u32::MAX || user.gid == u32::MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no user has this id"));
    }
    Ok((
        rustix::fs::Uid::from_raw(user.uid),
        rustix::fs::Gid::from_raw(user.gid),
    ))
}

/// The directory without links on the way to it, if nobody else can put something else in the place of what is made there.
#[cfg(unix)]
fn safe_for(directory: &Path, to: Option<RunAs>) -> io::Result<PathBuf> {
    const STICKY: u32 = 0o1000;

    if to.is_none() {
        return Ok(directory.to_owned());
    }
    let this = rustix::process::geteuid().as_raw();
    let real = directory.canonicalize()?;
    for above in real.ancestors() {
        use std::os::unix::fs::MetadataExt as _;
        let meta = above.symlink_metadata()?;
        let is_open = meta.mode() & 0o022 != 0 && meta.mode() & STICKY == 0;
        if is_open || (meta.uid() != 0 && meta.uid() != this) {
            let (directory, above) = (directory.display(), above.display());
            return Err(io::Error::other(format!(
                "{directory} is no place for what a privileged program makes: others can rename what is in {above}; \
                 name another in TMPDIR, or have it belong to this user and set its sticky bit"
            )));
        }
    }
    Ok(real)
}

#[cfg(not(unix))]
fn safe_for(directory: &Path, _: Option<RunAs>) -> io::Result<PathBuf> {
    Ok(directory.to_owned())
}

#[cfg(unix)]
fn give(file: &impl std::os::fd::AsFd, to: RunAs) -> io::Result<()> {
    let (uid, gid) = ids(to)?;
    Ok(rustix::fs::fchown(file, Some(uid), Some(gid))?)
}

#[cfg(not(unix))]
fn give(_: &std::fs::File, _: RunAs) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Nobody else can enter before the last step, so what is found here is what this program made.
#[cfg(unix)]
fn give_directories(path: &Path, to: RunAs) -> io::Result<Vec<PathBuf>> {
    use std::os::unix::ffi::OsStrExt as _;

    use rustix::fs::{self, Mode};

    let mut given = Vec::new();

    let directory = fs::open(path, on_a_directory(), Mode::empty())?;
    let stat = fs::fstat(&directory)?;
    if stat.st_uid != rustix::process::geteuid().as_raw()
        || Mode::from_raw_mode(stat.st_mode).bits() & 0o077 != 0
    {
        return Err(io::Error::other(
            "it is not the directory any more that this program made: somebody put another in its place",
        ));
    }
    for entry in fs::Dir::read_from(&directory)? {
        let entry = entry?;
        if let Some(below) = open_directory(&directory, entry.file_name())? {
            give_all(&below, to)?;
            given.push(path.join(std::ffi::OsStr::from_bytes(entry.file_name().to_bytes())));
        }
    }
    // The user's group may pass, and nobody may look what else there is.
    let (_, gid) = ids(to)?;
    fs::fchown(&directory, None, Some(gid))?;
    fs::fchmod(&directory, Mode::RWXU | Mode::XGRP)?;
    Ok(given)
}

#[cfg(not(unix))]
fn give_directories(_: &Path, _: RunAs) -> io::Result<Vec<PathBuf>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Gives what is in a directory, and then the directory. Links are given, not followed.
#[cfg(unix)]
fn give_all(directory: &std::os::fd::OwnedFd, to: RunAs) -> io::Result<()> {
    use rustix::fs::{self, AtFlags};

    let (uid, gid) = ids(to)?;
    for entry in fs::Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        match open_directory(directory, name)? {
            Some(below) => give_all(&below, to)?,
            None => fs::chownat(directory, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?,
        }
    }
    give(directory, to)
}

/// Opens a directory in another; `None` for what is none, links among it.
#[cfg(unix)]
fn open_directory(
    directory: &std::os::fd::OwnedFd,
    name: &std::ffi::CStr,
) -> io::Result<Option<std::os::fd::OwnedFd>> {
    use rustix::io::Errno;

    if matches!(name.to_bytes(), b"." | b"..") {
        return Ok(None);
    }
    match rustix::fs::openat(directory, name, on_a_directory(), rustix::fs::Mode::empty()) {
        Ok(below) => Ok(Some(below)),
        Err(Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(unix)]
pub(crate) fn on_a_directory() -> rustix::fs::OFlags {
    use rustix::fs::OFlags;
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};

    use super::*;

    const OTHER: RunAs = RunAs {
        uid: 65_534,
        gid: 65_533,
    };

    /// Whether other users can be acted as. Says so if not.
    fn is_superuser(test: &str) -> bool {
        let is = rustix::process::geteuid().is_root();
        if !is {
            // Past the capture of the tests, which shows nothing of those that pass.
            let mut stderr = io::stderr();
            writeln!(stderr, "SKIPPED: {test} needs the superuser").unwrap();
        }
        is
    }

    /// A directory for temporary files as the system's is, and a file of the superuser beside it.
    fn temporary() -> (TempDir, PathBuf, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
        let (temporary, victim) = (root.path().join("tmp"), root.path().join("victim"));
        fs::create_dir(&temporary).unwrap();
        fs::set_permissions(&temporary, Permissions::from_mode(0o1777)).unwrap();
        fs::write(&victim, "secret").unwrap();
        fs::set_permissions(&victim, Permissions::from_mode(0o600)).unwrap();
        (root, temporary, victim)
    }

    fn owner(path: &Path) -> (u32, u32, u32) {
        let meta = path.symlink_metadata().unwrap();
        (meta.uid(), meta.gid(), meta.mode() & 0o7777)
    }

    #[test]
    fn nobody_else_enters_before_all_of_it_is_handed_over() {
        if !is_superuser("what is handed over") {
            return;
        }
        let (_root, temporary, victim) = temporary();
        let filling = Filling::make_in(&temporary, "x-", Some(OTHER)).unwrap();
        let root = filling.path().to_owned();
        fs::create_dir_all(root.join("given/deep/deeper")).unwrap();
        fs::write(root.join("given/deep/file"), "mine").unwrap();
        fs::write(root.join("lock"), "ours").unwrap();
        // Whatever was copied, a link is given and not followed.
        symlink(&victim, root.join("given/link")).unwrap();
        symlink(victim.parent().unwrap(), root.join("given/place")).unwrap();
        assert_eq!(owner(&root), (0, 0, 0o700));
        let looks = |path: PathBuf| as_user(Some(OTHER), move || fs::read(path));
        assert!(
            looks(root.join("given/deep/file")).is_err(),
            "it is not handed over yet"
        );

        let handed = filling.hand_over().unwrap();
        assert_eq!(handed.given(), [root.join("given")]);
        // Its user may pass, and may not rename or replace what is given.
        assert_eq!(owner(&root), (0, OTHER.gid, 0o710));
        assert_eq!(owner(&root.join("lock")).0, 0);
        for name in [
            "given",
            "given/deep",
            "given/deep/deeper",
            "given/deep/file",
            "given/link",
            "given/place",
        ] {
            let (uid, gid, _) = owner(&root.join(name));
            assert_eq!((uid, gid), (OTHER.uid, OTHER.gid), "{name}");
        }
        assert_eq!(owner(&victim), (0, 0, 0o600));
        assert_eq!(owner(victim.parent().unwrap()), (0, 0, 0o755));
        assert_eq!(looks(root.join("given/deep/file")).unwrap(), b"mine");
        let moved = as_user(Some(OTHER), || fs::rename(root.join("given"), root.join("away")));
        assert_eq!(moved.unwrap_err().kind(), io::ErrorKind::PermissionDenied);

        drop(handed);
        assert!(!root.exists() && victim.exists());
    }

    #[test]
    fn what_somebody_put_in_its_place_is_not_given() {
        if !is_superuser("what is in the place of a directory") {
            return;
        }
        let (_root, temporary, victim) = temporary();
        let theirs = temporary.join("theirs");
        fs::create_dir_all(theirs.join("below")).unwrap();
        chown(&theirs, Some(OTHER.uid), Some(OTHER.gid)).unwrap();
        for put in ["link", "directory"] {
            let filling = Filling::make_in(&temporary, "x-", Some(OTHER)).unwrap();
            let path = filling.path().to_owned();
            fs::rename(&path, temporary.join(put)).unwrap();
            match put {
                "link" => symlink(victim.parent().unwrap(), &path).unwrap(),
                _ => fs::rename(&theirs, &path).unwrap(),
            }
            filling.hand_over().unwrap_err();
        }
        assert_eq!(owner(&victim), (0, 0, 0o600));
        assert_eq!(owner(&temporary).0, 0);
    }

    #[test]
    fn a_place_where_others_rename_is_refused() {
        if !is_superuser("places of others") {
            return;
        }
        let (root, temporary, _) = temporary();
        let make = || Filling::make_in(&temporary, "x-", Some(OTHER)).map(drop);
        make().unwrap();
        fs::set_permissions(&temporary, Permissions::from_mode(0o777)).unwrap();
        let text = make().unwrap_err().to_string();
        assert!(text.contains("TMPDIR") && text.contains("sticky"), "{text}");
        // For this user alone it is as good as ever.
        Filling::make_in(&temporary, "x-", None).unwrap();
        fs::set_permissions(&temporary, Permissions::from_mode(0o755)).unwrap();
        make().unwrap();
        chown(&temporary, Some(OTHER.uid), None).unwrap();
        make().unwrap_err();
        chown(&temporary, Some(0), None).unwrap();
        chown(root.path(), Some(OTHER.uid), None).unwrap();
        make().unwrap_err();
    }

    /// As `go build` leaves its modules in a home. The superuser may remove anything, so that another user has to.
    #[test]
    fn what_was_made_read_only_is_removed_and_what_cannot_be_removed_stays_alone() {
        let (_root, temporary, _) = temporary();
        let user = rustix::process::geteuid().is_root().then_some(OTHER);
        let root = temporary.join("root");
        let make = || {
            fs::create_dir_all(root.join("a/b/c/d"))?;
            for file in ["file", "a/file", "a/b/file", "a/b/c/file"] {
                fs::write(root.join(file), "")?;
            }
            for (directory, mode) in [("a/b/c", 0o555), ("a/b", 0o000), ("a", 0o500), ("", 0o555)] {
                fs::set_permissions(root.join(directory), Permissions::from_mode(mode))?;
            }
            Ok(())
        };
        as_user(user, make).unwrap();
        as_user(user, || remove_tree(&root)).unwrap();
        assert!(!root.exists());
        if !is_superuser("what another user cannot remove") {
            return;
        }
        as_user(user, make).unwrap();
        fs::create_dir_all(root.join("a/b/theirs")).unwrap();
        fs::write(root.join("a/b/theirs/file"), "").unwrap();
        let error = as_user(user, || remove_tree(&root)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        let left: Vec<_> = fs::read_dir(&root).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn a_thread_that_acts_as_a_user_may_what_the_user_may() {
        if !is_superuser("acting as another user") {
            return;
        }
        let (_root, temporary, victim) = temporary();
        let link = temporary.join("link");
        symlink(&victim, &link).unwrap();
        let refused =
            |done: io::Result<()>| assert_eq!(done.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        refused(as_user(Some(OTHER), || fs::read(&link).map(drop)));
        refused(as_user(Some(OTHER), || fs::write(&link, "x")));
        refused(as_user(Some(OTHER), || {
            fs::create_dir(victim.with_file_name("new"))
        }));
        refused(
            as_user(Some(OTHER), || chown(&victim, Some(OTHER.uid), None)).map_err(|error| {
                // The system's word for it.
                io::Error::new(io::ErrorKind::PermissionDenied, error)
            }),
        );
        as_user(Some(OTHER), || make_private(&temporary.join("a/b"))).unwrap();
        assert_eq!(owner(&temporary.join("a/b")), (OTHER.uid, OTHER.gid, 0o700));
        // This thread is what it was.
        assert!(rustix::process::geteuid().is_root());
        assert_eq!(fs::read(&link).unwrap(), b"secret");
        let broken = as_user(Some(OTHER), || -> io::Result<()> { panic!("on purpose") });
        assert!(broken.unwrap_err().to_string().contains("panicked"));
        let nobody = RunAs {
            uid: u32::MAX,
            gid: 1,
        };
        assert_eq!(
            as_user(Some(nobody), || Ok(())).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
    }

    #[test]
    fn a_private_file_is_the_users_alone() {
        if !is_superuser("a private file of another user") {
            return;
        }
        let file = private_file("outrigger-test-", ".json", b"{}", Some(OTHER)).unwrap();
        assert_eq!(owner(&file), (OTHER.uid, OTHER.gid, 0o600));
        assert_eq!(as_user(Some(OTHER), || fs::read(&file)).unwrap(), b"{}");
    }
}
