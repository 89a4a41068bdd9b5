//! Moving and copying.

use std::fs;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::beside::{Copy, files_below};
use super::home::moved;
use crate::draft::{Draft, create_dir, remove, remove_for_good, sync_dir_of};
use crate::error::{Error, Result};
use crate::file;
use crate::id::SessionId;
use crate::place::{SessionFile, Sessions, real_path};
use crate::progress::{Meter, Progress};
use crate::record::Lines;
use crate::record::object::Object;

/// A session's files in other places of the config directory, each in a directory with the session's id: the undo history
/// of files, and the list of tasks.
pub(crate) const ELSEWHERE: [&str; 2] = ["file-history", "tasks"];

/// How a session is moved. By default its records get the new directory, and the old files are removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelocateOptions {
    /// Leaves the old session where it is. In the same config directory the copy gets a new id, since an id is to name one session.
    pub copy: bool,
    /// Leaves all records as they are, byte for byte, and only appends one with the new directory. The official Python SDK
    /// does not know that record, and shows the old directory.
    pub keep_records: bool,
}

impl RelocateOptions {
    /// A move.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`copy`](Self::copy).
    pub fn copy(mut self, copy: bool) -> Self {
        self.copy = copy;
        self
    }

    /// Sets [`keep_records`](Self::keep_records).
    pub fn keep_records(mut self, keep: bool) -> Self {
        self.keep_records = keep;
        self
    }
}

/// What changes in the records.
pub(crate) struct TransferChange<'c> {
    /// The old id and the new one.
    pub(crate) id: (&'c SessionId, &'c SessionId),
    /// The old directory and the new one.
    pub(crate) dir: Option<(PathBuf, &'c str)>,
}

impl SessionFile {
    /// Moves the session to the project at `dir`, below the config directory of `to`, which may be another one. `dir` need not exist:
    /// it may be a path on another machine.
    ///
    /// Moved are the transcript, the files beside it, the undo history of files and the list of tasks. In the records, `cwd` becomes
    /// the new directory if it was the old one or below it; texts for the model stay, since the CLI informs the model of
    /// the change. A `relocated` record at the end has the new directory too.
    ///
    /// The transcript is written last, and only then the old one is removed: after a crash the session is in its old place, or in
    /// both.
    ///
    /// # Errors
    /// [`Error::Busy`] while another process drives the session ([`Sessions::driven_by`]); [`Error::Exists`] when it is at its new place already,
    /// or `to` has a session of its id; [`Error::Changed`] when it was written to meanwhile, and [`Error::Io`]: then it stays where it was.
    pub fn relocate(
        &self,
        to: &Sessions,
        dir: impl AsRef<Path>,
        options: &RelocateOptions,
    ) -> Result<SessionFile> {
        self.transfer(to, dir.as_ref(), options, &mut Meter::unheard())
    }

    /// As [`relocate`](Self::relocate), and reports the progress to `observe`.
    ///
    /// # Errors
    /// As [`relocate`](Self::relocate), and [`Error::Stopped`] if `observe` breaks before all is copied: then the session is where it
    /// was and nowhere else.
    pub fn relocate_observed(
        &self,
        to: &Sessions,
        dir: impl AsRef<Path>,
        options: &RelocateOptions,
        mut observe: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<SessionFile> {
        self.transfer(to, dir.as_ref(), options, &mut Meter::of(&mut observe))
    }

    fn transfer(
        &self,
        to: &Sessions,
        dir: &Path,
        options: &RelocateOptions,
        meter: &mut Meter<'_>,
    ) -> Result<SessionFile> {
        if let Some(busy) = Sessions::at(self.config_dir()).driven_by(&self.id)? {
            return Err(Error::Busy(Box::new(busy)));
        }
        let real = real_path(dir);
        let is_same_place = same(self.config_dir(), to.config_dir());
        let id = if is_same_place && options.copy {
            SessionId::random()
        } else {
            self.id.clone()
        };
        let path = to.project_dir(dir).join(id.file_name());
        let others = to.find_all(&id).into_iter().map(|file| file.path);
        if let Some(other) = others
            .into_iter()
            .find(|other| !same(other, &self.path) || same(other, &path))
        {
            return Err(Error::Exists(other));
        }
        let parts = self.parts(to, &id, &path);
        if meter.is_heard() {
            meter.begin(self.length_of(&parts)?)?;
        }
        let old_dir = if options.keep_records {
            None
        } else {
            self.recorded_dir()?
        };
        let change = TransferChange {
            id: (&self.id, &id),
            dir: old_dir.map(|old| (old, &*real)),
        };
        let mut created = Created::default();
        created.create_dir(path.parent().unwrap_or(&path))?;
        let (draft, length) = self.draft(&path, &change, &real, meter)?;
        let rewrite = |_: &Path, line: &str| change.apply(line);
        for (from, into) in parts {
            if into.exists() {
                return Err(Error::Exists(into));
            }
            created.create_dir(into.parent().unwrap_or(&into))?;
            created.add(into.clone());
            let mut copy = Copy {
                rewrite: &rewrite,
                meter,
            };
            copy.tree(&from, &into)?;
        }
        meter.ask_observer()?;
        draft.create()?;
        created.add(path.clone());
        if !options.copy {
            let now = fs::metadata(&self.path)
                .map_err(Error::io("read", &self.path))?
                .len();
            if now != length {
                return Err(Error::Changed(self.path.clone()));
            }
            // The transcript goes first: without it, the copy is the session.
            let removed = fs::remove_file(&self.path);
            if !self.path.exists() {
                // The copy is the only one now.
                created.keep();
            }
            removed.map_err(Error::io("remove", &self.path))?;
            remove(&self.beside()).and(sync_dir_of(&self.path))?;
            if !is_same_place {
                for part in ELSEWHERE {
                    remove_for_good(&self.config_dir().join(part).join(self.id.as_str()))?;
                }
            }
        }
        created.keep();
        meter.end();
        SessionFile::at(&id, path.clone(), Some(&real)).ok_or_else(|| Error::gone(&path))
    }

    /// How much there is to copy.
    fn length_of(&self, parts: &[(PathBuf, PathBuf)]) -> Result<u64> {
        let mut length = fs::metadata(&self.path)
            .map_err(Error::io("read", &self.path))?
            .len();
        for (from, _) in parts {
            let files = files_below(from)?;
            length += files
                .iter()
                .map(|(path, _)| fs::metadata(path).map_or(0, |file| file.len()))
                .sum::<u64>();
        }
        Ok(length)
    }

    /// What there is of the session besides its transcript: where it is, and where it goes.
    fn parts(&self, to: &Sessions, id: &SessionId, path: &Path) -> Vec<(PathBuf, PathBuf)> {
        let mut parts = vec![(self.beside(), path.with_extension(""))];
        parts.extend(ELSEWHERE.map(|part| {
            let from = self.config_dir().join(part).join(self.id.as_str());
            (from, to.config_dir().join(part).join(id.as_str()))
        }));
        parts.retain(|(from, into)| from.exists() && !same(from, into));
        parts
    }

    /// The transcript for the new place, and how long the old one was.
    fn draft(
        &self,
        path: &Path,
        change: &TransferChange<'_>,
        real: &str,
        meter: &mut Meter<'_>,
    ) -> Result<(Draft, u64)> {
        let file = file::open(&self.path).map_err(Error::io("open", &self.path))?;
        let length = file.metadata().map_err(Error::io("read", &self.path))?.len();
        let mut draft = Draft::of(path)?;
        let mut lines = Lines::new(file.take(length)).cap(usize::MAX);
        while let Some(line) = lines.next().map_err(Error::io("read", &self.path))? {
            let rewritten = std::str::from_utf8(line.bytes)
                .ok()
                .and_then(|text| change.apply(text));
            match rewritten {
                Some(rewritten) => draft.line(&rewritten)?,
                None => {
                    draft.write(line.bytes)?;
                    draft.write(b"\n")?;
                }
            }
            meter.add(line.length + 1)?;
        }
        let mut record = Object::new();
        record.set_string("type", "relocated");
        record.set_string("relocatedCwd", real);
        record.set_string("sessionId", change.id.1.as_str());
        draft.line(&record.to_text())?;
        Ok((draft, length))
    }
}

impl TransferChange<'_> {
    /// The record as it is in the new place, if it changes.
    pub(crate) fn apply(&self, line: &str) -> Option<String> {
        let mut record = Object::parse(line)?;
        let mut is_changed = false;
        let (old, new) = self.id;
        if old != new && record.string("sessionId").as_deref() == Some(old.as_str()) {
            record.set_string("sessionId", new.as_str());
            is_changed = true;
        }
        if let Some((old, new)) = &self.dir {
            let cwd = record.string("cwd");
            if let Some(cwd) = cwd.and_then(|cwd| moved(&cwd, old, new)) {
                record.set_string("cwd", &cwd);
                is_changed = true;
            }
        }
        is_changed.then(|| record.to_text())
    }
}

/// The files created so far, which are removed if the rest fails.
#[derive(Debug, Default)]
pub(crate) struct Created {
    /// Files and directories that are removed with all that is in them.
    own: Vec<PathBuf>,
    /// Directories that others may use by now, those above others first.
    dirs: Vec<PathBuf>,
}

impl Created {
    pub(crate) fn add(&mut self, path: PathBuf) {
        self.own.push(path);
    }

    pub(crate) fn has(&self, path: &Path) -> bool {
        self.own.iter().any(|created| created == path)
    }

    /// Creates a directory and those above it, where they are not there.
    pub(crate) fn create_dir(&mut self, dir: &Path) -> Result<()> {
        let missing = dir.ancestors().take_while(|dir| !dir.exists());
        let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        missing.reverse();
        self.dirs.append(&mut missing);
        create_dir(dir)
    }

    /// Everything is there now.
    pub(crate) fn keep(&mut self) {
        self.own.clear();
        self.dirs.clear();
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        // The error that led here is the one to report.
        for path in &self.own {
            let _ = remove(path);
        }
        for dir in self.dirs.iter().rev() {
            // A directory that is not empty stays.
            let _ = fs::remove_dir(dir);
        }
    }
}

/// Whether two paths are the same place.
fn same(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests;
