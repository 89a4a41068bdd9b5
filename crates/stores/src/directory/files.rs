//! Files that are replaced as a whole, and directories.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use outrigger_sessions::store::{Result, StoreError, StoreErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(super) fn failed(action: &str, path: &Path, error: io::Error) -> StoreError {
    let what = format!("the session store could not {action} {}", path.display());
    match error.kind() {
        // The key is too long for a path; it is so the next time, too.
        io::ErrorKind::InvalidFilename => StoreError::new(StoreErrorKind::Invalid, what).caused_by(error),
        _ => StoreError::failed(what, error),
    }
}

/// The file has something else than was written; it has so the next time, too.
fn damaged(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    let what = format!("{} is damaged", path.display());
    StoreError::new(StoreErrorKind::Damaged, what).caused_by(error)
}

pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| damaged(path, error)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(damaged(path, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path, error)),
    }
}

/// Replaces a file as a whole.
pub(super) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let write = || {
        let mut draft = path.as_os_str().to_owned();
        draft.push(".new");
        let mut file = private(OpenOptions::new().create(true).truncate(true)).open(&draft)?;
        file.write_all(serde_json::to_string(value)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        path.parent().map_or(Ok(()), sync_directory)
    };
    write().map_err(|error| failed("write", path, error))
}

/// The entries of a directory; none if it does not exist.
pub(super) fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let listed = match fs::read_dir(directory) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed("list", directory, error)),
    };
    let paths = listed.map(|entry| entry.map(|entry| entry.path()));
    paths
        .collect::<io::Result<_>>()
        .map_err(|error| failed("list", directory, error))
}

/// Makes a directory, and those above it that are missing, and has their names written to disk.
pub(super) fn make_dir(directory: &Path) -> io::Result<()> {
    let directory = std::path::absolute(directory)?;
    let there = directory.ancestors().find(|above| above.is_dir());
    create_dirs(&directory)?;
    match there {
        Some(there) if there != directory => sync_up(&directory, there),
        _ => Ok(()),
    }
}

/// Makes a directory, and those above it that are missing, for this user only.
pub(super) fn create_dirs(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// To write to a file that only this user can read, if it is made.
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.write(true)
}

/// Has the names in a directory written to disk, and in those above it up to `root`: else a loss of power could take away the way to a
/// file that is on disk.
pub(super) fn sync_up(directory: &Path, root: &Path) -> io::Result<()> {
    for above in directory.ancestors().take_while(|above| above.starts_with(root)) {
        sync_directory(above)?;
    }
    Ok(())
}

/// Has the names in a directory written to disk, where that is possible.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    #[cfg(test)]
    tests::SYNCED.with_borrow_mut(|synced| synced.push(directory.to_owned()));
    if cfg!(unix) {
        File::open(directory)?.sync_all()
    } else {
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::RefCell;
    use std::path::PathBuf;

    thread_local! {
        /// The directories that this thread had written to disk.
        pub(in crate::directory) static SYNCED: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
    }

    #[test]
    fn the_way_to_a_directory_that_is_made_is_on_disk() {
        let place = tempfile::tempdir().unwrap();
        let (above, root) = (place.path().join("a"), place.path().join("a/b"));
        SYNCED.take();
        super::make_dir(&root).unwrap();
        assert_eq!(SYNCED.take(), [root.clone(), above, place.path().to_owned()]);
        super::make_dir(&root).unwrap();
        assert!(SYNCED.take().is_empty(), "nothing was made");
    }
}
