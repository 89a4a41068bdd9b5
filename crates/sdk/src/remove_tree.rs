//! Removes directories that the agent filled.
//!
//! `remove_dir_all` of the standard library has a handle and a stack frame for each level, so that a tree can be too deep for the
//! process. Here no more than three handles are open: a directory is moved up to the root before it is looked into. As there, no link
//! is followed.

use std::io;
use std::path::Path;

#[cfg(not(unix))]
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    std::fs::remove_dir_all(path)
}

/// Removes a directory and all that is in it, also what was made read-only.
///
/// # Errors
/// The first; what cannot be removed stays, and the rest is removed.
#[cfg(unix)]
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, unlinkat};
    use rustix::io::Errno;

    let root = unix::open(CWD, path)?;
    let mut has_changed = true;
    let mut removed = Ok(());
    while has_changed {
        has_changed = false;
        removed = unix::each(&root, |name| {
            if unix::unlink(&root, name)? {
                has_changed = true;
                return Ok(());
            }
            let directory = unix::open(&root, name)?;
            unix::each(&directory, |inner| {
                if !unix::unlink(&directory, inner)? {
                    unix::raise(&directory, inner, &root)?;
                }
                has_changed = true;
                Ok(())
            })?;
            match unlinkat(&root, name, AtFlags::REMOVEDIR) {
                // Something was put into it meanwhile; it is looked at again.
                Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => has_changed = true,
                Err(error) => return Err(error),
            }
            Ok(())
        });
    }
    removed?;
    std::fs::remove_dir(path)
}

#[cfg(unix)]
mod unix {
    use std::ffi::CStr;
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::{AtFlags, Dir, Mode, OFlags, fchmod, openat, renameat, unlinkat};
    use rustix::io::{Errno, Result};
    use rustix::path::Arg;

    /// Opens a directory, and follows no link to one.
    pub(super) fn open(at: impl AsFd + Copy, name: impl Arg + Copy) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(at, name, flags, Mode::empty());
        // Only a handle that needs no rights tells a directory that may not be read from a link that took its place.
        #[cfg(target_os = "linux")]
        if opened.as_ref().is_err_and(|error| *error == Errno::ACCESS) {
            use std::os::fd::AsRawFd as _;
            let handle = openat(at, name, flags | OFlags::PATH, Mode::empty())?;
            let itself = format!("/proc/self/fd/{}", handle.as_raw_fd());
            rustix::fs::chmod(itself, Mode::RWXU)?;
            return openat(at, name, flags, Mode::empty());
        }
        opened
    }

    /// Does this with each entry.
    ///
    /// # Errors
    /// The first; the other entries have their turn all the same.
    pub(super) fn each(directory: &OwnedFd, mut work: impl FnMut(&CStr) -> Result<()>) -> Result<()> {
        let mut all = Ok(());
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if !matches!(name.to_bytes(), b"." | b"..") {
                all = all.and(work(name));
            }
        }
        all
    }

    /// Removes a file, a link or an empty directory. `false` for a directory with something in it.
    pub(super) fn unlink(directory: &OwnedFd, name: &CStr) -> Result<bool> {
        let unlink = |flags| writable(directory, || unlinkat(directory, name, flags));
        let removed = match unlink(AtFlags::empty()) {
            // What Linux says of a directory, and what others say.
            Err(Errno::ISDIR | Errno::PERM) => unlink(AtFlags::REMOVEDIR),
            removed => removed,
        };
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Moves a directory up to the root.
    pub(super) fn raise(directory: &OwnedFd, name: &CStr, root: &OwnedFd) -> Result<()> {
        let free = uuid::Uuid::new_v4().to_string();
        let rename = || renameat(directory, name, root, &free);
        match writable(directory, rename) {
            // What it says of the directory above it changes, too.
            Err(Errno::ACCESS) => writable(&open(directory, name)?, rename),
            moved => moved,
        }
    }

    /// Does something that needs a directory to be writable, such as the read-only ones of Go's module cache.
    fn writable(directory: &OwnedFd, work: impl Fn() -> Result<()>) -> Result<()> {
        match work() {
            Err(Errno::ACCESS) => {
                fchmod(directory, Mode::RWXU)?;
                work()
            }
            done => done,
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::fs::{CWD, Mode, mkdirat};

    use super::*;

    #[test]
    fn a_tree_may_be_of_any_depth() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("root");
        std::fs::create_dir(&root).unwrap();
        // More levels than a process has handles, and than a thread has room for.
        let mut at = unix::open(CWD, &root).unwrap();
        for _ in 0..5_000 {
            for name in ["d", "e"] {
                mkdirat(&at, name, Mode::RWXU).unwrap();
            }
            at = unix::open(&at, "d").unwrap();
        }
        drop(at);
        remove_tree(&root).unwrap();
        assert!(!root.exists());
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let (root, other) = (parent.path().join("root"), parent.path().join("other"));
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("x"), "").unwrap();
        std::fs::write(root.join("a/b/file"), "").unwrap();
        for link in ["link", "a/link", "a/b/link"] {
            std::os::unix::fs::symlink(&other, root.join(link)).unwrap();
        }
        let link = parent.path().join("link");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        assert!(remove_tree(&link).is_err());
        remove_tree(&root).unwrap();
        assert!(!root.exists() && other.join("x").exists());
        let missing = remove_tree(&root).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
