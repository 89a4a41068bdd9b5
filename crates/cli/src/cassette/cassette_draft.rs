//! The file of a cassette, which takes its place only when there is something to put there.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::Context as _;
use tempfile::{NamedTempFile, TempPath};

use crate::agent::usage;
use crate::exit::Failure;

/// The name of a recording that was given none.
const USUAL: &str = "session";

/// A file beside the wanted one, until it is put there. One that never is put there is removed.
#[derive(Debug)]
pub(super) struct CassetteDraft {
    /// Where it is to be; a free name of the usual form unless given.
    wanted: Option<PathBuf>,
    beside: Mutex<Option<TempPath>>,
    put: OnceLock<PathBuf>,
}

impl CassetteDraft {
    /// Begins a file. Directories that are missing are made.
    ///
    /// # Errors
    /// When nothing can be written there.
    pub(super) fn begin(output: Option<&Path>) -> Result<Self, Failure> {
        let wanted = output.map(writable).transpose()?;
        let put = OnceLock::new();
        let beside = match &wanted {
            // A pipe or a device takes what is recorded; a file in its place would be something else.
            Some(path) if path.exists() && !path.is_file() => {
                // It was empty until now.
                let _ = put.set(path.clone());
                None
            }
            Some(path) => Some(beside(path, true)?.into_temp_path()),
            None => Some(beside(&numbered(1), true)?.into_temp_path()),
        };
        Ok(Self {
            wanted,
            beside: Mutex::new(beside),
            put,
        })
    }

    /// Where to record.
    pub(super) fn path(&self) -> PathBuf {
        let beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*beside, self.put.get()) {
            (Some(path), _) => path.to_path_buf(),
            (None, Some(path)) => path.clone(),
            (None, None) => PathBuf::new(),
        }
    }

    /// Where it was put, if it was.
    pub(super) fn is_at(&self) -> Option<&Path> {
        self.put.get().map(PathBuf::as_path)
    }

    /// The file that is kept unless this one takes its place.
    pub(super) fn keeps(&self) -> Option<&Path> {
        self.wanted.as_deref().filter(|path| path.exists())
    }

    /// Puts it in its place: there it is found also if this process is killed. Does nothing if it is there.
    ///
    /// # Errors
    /// When it cannot be put there. It is still beside then.
    pub(super) fn put(&self) -> io::Result<()> {
        let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        let mut number = 1;
        while let Some(path) = beside.take() {
            let to = self.wanted.clone().unwrap_or_else(|| numbered(number));
            let put = match self.wanted {
                Some(_) => path.persist(&to),
                None => path.persist_noclobber(&to),
            };
            let Err(failed) = put else {
                // It was empty until now.
                let _ = self.put.set(to);
                return Ok(());
            };
            *beside = Some(failed.path);
            if self.wanted.is_some() || failed.error.kind() != io::ErrorKind::AlreadyExists {
                return Err(failed.error);
            }
            number += 1;
        }
        Ok(())
    }

    /// Removes it, before this process ends without dropping it.
    pub(super) fn remove(&self) {
        drop(self.beside.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Leaves it beside, where it is found, since it cannot be put in its place.
    pub(super) fn leave(&self) -> Option<PathBuf> {
        let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        beside.take()?.keep().ok()
    }

    /// Whether it was given no name, and the usual one was taken.
    pub(super) fn has_other_name(&self) -> bool {
        self.wanted.is_none() && self.is_at().is_some_and(|path| path != numbered(1))
    }
}

/// `session.ndjson`, `session.2.ndjson`, …
fn numbered(number: u32) -> PathBuf {
    match number {
        1 => format!("{USUAL}.ndjson"),
        number => format!("{USUAL}.{number}.ndjson"),
    }
    .into()
}

/// The path of a file that may be there: the end of links to it, since they are to stay.
fn writable(path: &Path) -> Result<PathBuf, Failure> {
    if path.is_dir() {
        let (path, inside) = (path.display(), path.join(numbered(1)));
        return Err(usage(format!(
            "--output {path}: it is a directory; name a file, such as {}",
            inside.display()
        )));
    }
    Ok(path.canonicalize().unwrap_or_else(|_| path.to_owned()))
}

/// A temporary file beside another, which it may take the place of.
fn beside(path: &Path, is_recording: bool) -> Result<NamedTempFile, Failure> {
    let cannot = || format!("cannot write {}", path.display());
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    if is_recording {
        fs::create_dir_all(directory).with_context(cannot)?;
    }
    let mut prefix = path.file_name().unwrap_or_default().to_owned();
    prefix.push(".");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".part");
    // A temporary file is its owner's alone, unlike what one expects of a file that is committed.
    #[cfg(unix)]
    let builder = {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666))
    };
    let file = builder.tempfile_in(directory).with_context(cannot)?;
    if let Ok(old) = fs::metadata(path) {
        fs::set_permissions(file.path(), old.permissions()).with_context(cannot)?;
    }
    Ok(file)
}

/// Writes a file so that it is never half there.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let cannot = || format!("cannot write {}", path.display());
    let path = &writable(path)?;
    if path.exists() && !path.is_file() {
        return Ok(fs::write(path, text).with_context(cannot)?);
    }
    let mut file = beside(path, false)?;
    file.write_all(text.as_bytes()).with_context(cannot)?;
    file.persist(path).with_context(cannot)?;
    Ok(())
}
