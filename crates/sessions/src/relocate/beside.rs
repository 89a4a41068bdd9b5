//! Copies the files beside a transcript.

use std::fs;
use std::path::{Path, PathBuf};

use crate::draft::{Draft, create_dir};
use crate::error::{Error, Result};
use crate::file;
use crate::progress::Meter;
use crate::record::Lines;

/// Rewrites a line of the transcript at this path; `None` leaves it unchanged.
pub(crate) type Rewrite<'r> = &'r dyn Fn(&Path, &str) -> Option<String>;

/// Copies files, transcripts (`.jsonl`) line by line through `rewrite`, all else byte for byte.
pub(crate) struct Copy<'c, 'o> {
    pub(crate) rewrite: Rewrite<'c>,
    pub(crate) meter: &'c mut Meter<'o>,
}

impl Copy<'_, '_> {
    /// Copies a directory with all its contents. Links are skipped: they would point out of the session. A missing directory
    /// counts as empty.
    ///
    /// Files that exist in `to` stay, and are an [`Error::Exists`].
    pub(crate) fn tree(&mut self, from: &Path, to: &Path) -> Result<()> {
        for (source, relative) in files_below(from)? {
            let target = to.join(relative);
            if let Some(parent) = target.parent() {
                create_dir(parent)?;
            }
            self.file(&source, &target)?;
        }
        Ok(())
    }

    /// Copies a file.
    pub(crate) fn file(&mut self, source: &Path, target: &Path) -> Result<()> {
        let mut file = file::open(source).map_err(Error::io("open", source))?;
        let mut draft = Draft::of(target)?;
        if source.extension().is_none_or(|extension| extension != "jsonl") {
            self.meter.copy(&mut file, source, |bytes| draft.write(bytes))?;
            return draft.create();
        }
        // With a cap, a long line would be cut.
        let mut lines = Lines::new(file).cap(usize::MAX);
        while let Some(line) = lines.next().map_err(Error::io("read", source))? {
            let text = std::str::from_utf8(line.bytes).ok();
            match text.and_then(|text| (self.rewrite)(source, text)) {
                Some(rewritten) => draft.write(rewritten.as_bytes())?,
                None => draft.write(line.bytes)?,
            }
            if line.is_ended {
                draft.write(b"\n")?;
            }
            self.meter.add(line.length + u64::from(line.is_ended))?;
        }
        draft.create()
    }
}

/// All files below a directory, each with its path from there, in the order of their names.
pub(crate) fn files_below(dir: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    let mut files = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(relative) = open.pop() {
        let here = dir.join(&relative);
        let entries = match fs::read_dir(&here) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::io("read", here)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(Error::io("read", &here))?;
            let kind = entry.file_type().map_err(Error::io("read", entry.path()))?;
            let relative = relative.join(entry.file_name());
            if kind.is_dir() {
                open.push(relative);
            } else if kind.is_file() {
                files.push((entry.path(), relative));
            }
        }
    }
    files.sort();
    Ok(files)
}
