//! From findings to a transcript without them.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::{Finding, Problem, lines, links, tools};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::lease::driven_by_cli;
use crate::place::{SessionFile, Sessions};
use crate::record::Position;
use crate::relocate::beside::copy_tree;
use crate::write::draft::Draft;
use crate::write::object::Object;

/// How many backups of one transcript there may be.
const MOST_BACKUPS: u32 = 1000;

/// What is wrong in a transcript, and the transcript without it. Nothing is changed until one of the functions here is called.
#[derive(Debug, Clone)]
#[must_use]
pub struct Repair {
    file: SessionFile,
    read: u64,
    findings: Vec<Finding>,
    mended: Vec<u8>,
}

/// A transcript that was mended in its place.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Mended {
    /// The transcript.
    pub file: SessionFile,
    /// As it was: beside it, with `.bak` behind its name, or `.bak.1` and so on if there was one.
    pub backup: PathBuf,
}

impl SessionFile {
    /// Looks for what is wrong in the transcript, and makes one of it that has nothing of that.
    ///
    /// What somebody is about to write looks like what a crash left: ask when nobody drives the session. The transcript is held in
    /// memory, twice if something is mended.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn repair(&self) -> Result<Repair> {
        let mut bytes = Vec::new();
        let mut source = File::open(&self.path).map_err(Error::io("open", &self.path))?;
        source
            .read_to_end(&mut bytes)
            .map_err(Error::io("read", &self.path))?;
        let (mended, findings) = mend(bytes.clone());
        Ok(Repair {
            file: self.clone(),
            read: bytes.len() as u64,
            findings,
            mended,
        })
    }
}

impl Sessions {
    /// Looks for what is wrong in a session's transcript: [`SessionFile::repair`] where [`find`](Self::find) finds it.
    ///
    /// # Errors
    /// As these two.
    pub fn repair(&self, id: &SessionId) -> Result<Repair> {
        self.find(id)?.repair()
    }
}

impl Repair {
    /// What is wrong, in the order of the lines.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether mending would change the transcript.
    pub fn changes_something(&self) -> bool {
        self.findings.iter().any(|finding| finding.problem.is_mendable())
    }

    /// The transcript as it would be.
    pub fn mended(&self) -> &[u8] {
        &self.mended
    }

    /// Puts the mended transcript in the place of the old one, of which a backup stays beside it. Without something to mend, nothing
    /// is written.
    ///
    /// Readers find the old one or the new one, never a part. What somebody appends while they are exchanged is carried over; only
    /// a writer that opened the old one before and writes after that writes to the backup.
    ///
    /// # Errors
    /// [`Error::Busy`] while a CLI drives the session; [`Error::Changed`] when it was written to since it was read; when nothing is to
    /// be mended; when a file cannot be written. The transcript is as it was then.
    pub fn in_place(&self) -> Result<Mended> {
        self.exchange(|| {})
    }

    /// `late` is what others may do after the last look at the old transcript.
    fn exchange(&self, late: impl FnOnce()) -> Result<Mended> {
        self.has_something_to_mend()?;
        let path = &self.file.path;
        if let Some(busy) = driven_by_cli(self.file.config_dir(), &self.file.id) {
            return Err(Error::Busy(Box::new(busy)));
        }
        let mut draft = Draft::of(path)?;
        draft.write(&self.mended)?;
        if length_of(path)? != self.read {
            return Err(Error::Changed(path.clone()));
        }
        let backup = back_up(path)?;
        late();
        draft.replace()?;
        self.carry_over(&backup)?;
        let file = SessionFile::at(&self.file.id, path.clone(), self.file.project.as_deref());
        let file = file.ok_or_else(|| crate::write::gone(path))?;
        Ok(Mended { file, backup })
    }

    /// Writes the mended transcript as a new session of the same project, with all that lies beside the old one. That is not touched,
    /// and the new one has the same messages under the same ids; where there is nothing to mend it is a copy.
    ///
    /// # Errors
    /// When no conversation is recorded, or a file cannot be written.
    pub fn into_new(&self) -> Result<SessionFile> {
        if self.findings.iter().any(|finding| !finding.problem.is_mendable()) {
            self.has_something_to_mend()?;
        }
        let id = SessionId::random();
        let path = self.file.path.with_file_name(id.file_name());
        let rename = |line: &str| with_session(line, &self.file.id, &id);
        let mut draft = Draft::of(&path)?;
        for line in self.mended.split_inclusive(|byte| *byte == b'\n') {
            match std::str::from_utf8(line).ok().and_then(rename) {
                Some(renamed) => draft.line(&renamed)?,
                None => draft.write(line)?,
            }
        }
        // What lies beside comes first: a session is there when its transcript is.
        copy_tree(&self.file.beside(), &path.with_extension(""), &|_, line| {
            rename(line)
        })?;
        draft.create()?;
        SessionFile::at(&id, path.clone(), self.file.project.as_deref())
            .ok_or_else(|| crate::write::gone(&path))
    }

    fn has_something_to_mend(&self) -> Result<()> {
        if self.changes_something() && !self.mended.is_empty() {
            return Ok(());
        }
        let why = match self.findings.first() {
            Some(finding) => finding.to_string(),
            None => "nothing is wrong with it".to_owned(),
        };
        Err(Error::invalid(
            "the transcript",
            format!("{}: {why}", self.file.path.display()),
        ))
    }

    /// Takes over what was appended to the old transcript between the last look at it and its end.
    fn carry_over(&self, backup: &Path) -> Result<()> {
        let mut old = File::open(backup).map_err(Error::io("open", backup))?;
        let mut late = Vec::new();
        old.seek(SeekFrom::Start(self.read))
            .and_then(|_| old.read_to_end(&mut late))
            .map_err(Error::io("read", backup))?;
        let late = String::from_utf8_lossy(&late);
        for line in late.lines().filter(|line| !line.trim().is_empty()) {
            self.file.append(line)?;
        }
        Ok(())
    }
}

/// What is wrong with these bytes, and the same without it.
pub(super) fn mend(bytes: Vec<u8>) -> (Vec<u8>, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut rows = lines::read(&bytes, &mut findings);
    links::mend(&mut rows, &mut findings);
    tools::mend(&mut rows, &mut findings);
    findings.sort_by_key(|finding| finding.position);
    let is_changed = !findings.is_empty();
    if !rows.iter().any(lines::Row::is_main) {
        let position = Position { offset: 0, line: 1 };
        findings.insert(
            0,
            Finding {
                position,
                problem: Problem::Empty,
            },
        );
    }
    if !is_changed {
        return (bytes, findings);
    }
    drop(bytes);
    let mut mended = Vec::new();
    for row in rows {
        mended.extend_from_slice(&row.text);
        mended.push(b'\n');
    }
    (mended, findings)
}

/// The same record of another session.
pub(crate) fn with_session(line: &str, old: &SessionId, new: &SessionId) -> Option<String> {
    let mut record = Object::parse(line)?;
    if record.string("sessionId").as_deref() != Some(old.as_str()) {
        return None;
    }
    record.set_string("sessionId", new.as_str());
    Some(record.to_text())
}

fn length_of(path: &Path) -> Result<u64> {
    let metadata = fs::metadata(path).map_err(Error::io("read", path))?;
    Ok(metadata.len())
}

/// Gives the file a second name, which stays when another one takes the first. No backup is ever overwritten.
fn back_up(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for number in 0..MOST_BACKUPS {
        let number = if number == 0 {
            String::new()
        } else {
            format!(".{number}")
        };
        let backup = path.with_file_name(format!("{name}.bak{number}"));
        match fs::hard_link(path, &backup) {
            Ok(()) => return Ok(backup),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            // A file system without links.
            Err(_) => {
                let mut draft = Draft::of(&backup)?;
                draft.write(&fs::read(path).map_err(Error::io("read", path))?)?;
                match draft.create() {
                    Ok(()) => return Ok(backup),
                    Err(Error::Exists(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Err(Error::Exists(path.with_file_name(format!("{name}.bak"))))
}

#[cfg(test)]
mod tests;
