//! Writing a file that is either there as a whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::error::{Error, Result};

/// A file under a temporary name in the same directory, until it is finished; dropping it before removes it.
///
/// Only its owner can read the file, as the CLI's own files.
#[derive(Debug)]
pub(crate) struct Draft {
    file: BufWriter<File>,
    path: PathBuf,
    target: PathBuf,
    is_finished: bool,
}

impl Draft {
    /// Begins a file that is to become `target`. The directory has to be there.
    pub(crate) fn of(target: &Path) -> Result<Self> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        // A name that no reader mistakes for a transcript, and that no other writer has chosen.
        let short: String = name.chars().take(60).collect();
        let path = target.with_file_name(format!(".{short}.{}.tmp", Uuid::new_v4()));
        let file = private(OpenOptions::new().write(true).create_new(true))
            .open(&path)
            .map_err(Error::io("create", &path))?;
        Ok(Self {
            file: BufWriter::with_capacity(256 * 1024, file),
            path,
            target: target.to_owned(),
            is_finished: false,
        })
    }

    /// Appends to the draft.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(Error::io("write to", &self.path))
    }

    /// A writer that appends to the draft.
    pub(crate) fn writer(&mut self) -> &mut (impl Write + use<>) {
        &mut self.file
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, text: &str) -> Result<()> {
        self.write(text.as_bytes())?;
        self.write(b"\n")
    }

    /// Replaces the file at the path, or creates it. Before and after, readers find a whole file.
    pub(crate) fn replace(mut self) -> Result<()> {
        self.sync()?;
        fs::rename(&self.path, &self.target).map_err(Error::io("replace", &self.target))?;
        self.is_finished = true;
        sync_dir_of(&self.target)
    }

    /// Gives the draft its name if nothing has that name yet; an [`Error::Exists`] otherwise.
    pub(crate) fn create(mut self) -> Result<()> {
        self.sync()?;
        let target = self.target.clone();
        match fs::hard_link(&self.path, &target) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(Error::Exists(target)),
            // A file system without links: an empty file takes the name first, which no reader mistakes for a session.
            Err(_) => match private(OpenOptions::new().write(true).create_new(true)).open(&target) {
                Ok(_) => {
                    fs::rename(&self.path, &target).map_err(Error::io("create", &target))?;
                    self.is_finished = true;
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(Error::Exists(target)),
                Err(error) => return Err(Error::io("create", &target)(error)),
            },
        }
        sync_dir_of(&target)
    }

    fn sync(&mut self) -> Result<()> {
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        synced.map_err(Error::io("write to", &self.path))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_finished {
            // Nothing else has this name, and `drop` can't report an error.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes a small file as a whole.
pub(crate) fn replace(target: &Path, content: &[u8]) -> Result<()> {
    let mut draft = Draft::of(target)?;
    draft.write(content)?;
    draft.replace()
}

/// Creates a directory, and those above it, for its owner only, with their names synced to disk. Existing directories stay as they are.
pub(crate) fn create_dir(path: &Path) -> Result<()> {
    // A path without a beginning is in the working directory.
    let is_there = |above: &&Path| above.as_os_str().is_empty() || above.is_dir();
    let there = path.ancestors().find(is_there);
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(Error::io("create", path))?;
    let is_new = |above: &&Path| Some(*above) != there;
    path.ancestors().take_while(is_new).try_for_each(sync_dir_of)
}

/// Removes a file or a directory with all that is in it; it need not be there. Links are removed, not followed.
pub(crate) fn remove(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// As [`remove`], and no loss of power brings back what was there.
pub(crate) fn remove_for_good(path: &Path) -> Result<()> {
    let was_there = fs::symlink_metadata(path).is_ok();
    remove(path)?;
    if was_there { sync_dir_of(path) } else { Ok(()) }
}

/// Lets nobody but the owner read a file that is created.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Makes a change of names last. Where directories cannot be opened there is nothing to do.
pub(crate) fn sync_dir_of(path: &Path) -> Result<()> {
    let dir = match path.parent() {
        Some(dir) if dir.as_os_str().is_empty() => Path::new("."),
        Some(dir) => dir,
        None => path,
    };
    #[cfg(test)]
    tests::SYNCED.with_borrow_mut(|synced| synced.push(dir.to_owned()));
    let synced: io::Result<()> = if cfg!(unix) {
        File::open(dir).and_then(|dir| dir.sync_all())
    } else {
        Ok(())
    };
    match synced {
        // Some file systems cannot do that with directories.
        Err(error) if error.kind() != ErrorKind::InvalidInput && error.kind() != ErrorKind::Unsupported => {
            Err(Error::io("sync", dir)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::RefCell;

    use super::*;

    thread_local! {
        /// The directories that this thread had written to disk.
        pub(crate) static SYNCED: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
    }

    /// Else a loss of power could take away the directory of what is on disk: of leases, whose numbers must not be used again.
    #[test]
    fn the_names_of_new_directories_are_on_disk() {
        let place = tempfile::tempdir().unwrap();
        let above = place.path().join("a");
        create_dir(&above.join("b")).unwrap();
        assert_eq!(SYNCED.take(), [above, place.path().to_owned()]);
        create_dir(place.path()).unwrap();
        assert!(SYNCED.take().is_empty(), "nothing was made");
        sync_dir_of(Path::new("x")).unwrap();
        assert_eq!(SYNCED.take(), [PathBuf::from(".")]);
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_draft_is_there_when_it_is_finished_and_leaves_nothing_when_not() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("x.jsonl");
        let mut draft = Draft::of(&target).unwrap();
        draft.line("half").unwrap();
        assert!(!target.exists() && names(place.path()).len() == 1);
        drop(draft);
        assert!(names(place.path()).is_empty());

        replace(&target, b"one").unwrap();
        let mut draft = Draft::of(&target).unwrap();
        draft.write(b"two").unwrap();
        assert!(matches!(draft.create(), Err(Error::Exists(path)) if path == target));
        assert_eq!(fs::read(&target).unwrap(), b"one");
        replace(&target, b"two").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"two");
        let other = place.path().join("y");
        Draft::of(&other).unwrap().create().unwrap();
        assert_eq!(names(place.path()).len(), 2);
        #[cfg(unix)]
        for path in [&target, &other] {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
