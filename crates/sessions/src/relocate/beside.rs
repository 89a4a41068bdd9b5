//! Copying what lies beside a transcript.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::record::Lines;
use crate::write::draft::{Draft, create_dir};

/// What becomes of a line of a transcript at this path; `None` leaves it as it is.
pub(crate) type Rewrite<'r> = &'r dyn Fn(&Path, &str) -> Option<String>;

/// Copies a directory with all that is in it, transcripts (`.jsonl`) line by line through `rewrite`, all else byte for byte. Links are
/// passed over: they would point out of the session. A directory that is not there has nothing in it.
///
/// What is there already in `to` stays, and is an [`Error::Exists`].
pub(crate) fn copy_tree(from: &Path, to: &Path, rewrite: Rewrite<'_>) -> Result<()> {
    for (source, relative) in files_below(from)? {
        let target = to.join(relative);
        if let Some(parent) = target.parent() {
            create_dir(parent)?;
        }
        copy_file(&source, &target, rewrite)?;
    }
    Ok(())
}

/// Copies a file, a transcript line by line.
pub(crate) fn copy_file(source: &Path, target: &Path, rewrite: Rewrite<'_>) -> Result<()> {
    let file = File::open(source).map_err(Error::io("open", source))?;
    let mut draft = Draft::of(target)?;
    let is_transcript = source.extension().is_some_and(|extension| extension == "jsonl");
    // What is cut by the cap would not be whole.
    let mut lines = Lines::new(file).cap(usize::MAX);
    while let Some(line) = lines.next().map_err(Error::io("read", source))? {
        let text = std::str::from_utf8(line.bytes).ok().filter(|_| is_transcript);
        match text.and_then(|text| rewrite(source, text)) {
            Some(rewritten) => draft.write(rewritten.as_bytes())?,
            None => draft.write(line.bytes)?,
        }
        if line.is_ended {
            draft.write(b"\n")?;
        }
    }
    draft.create()
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
