//! From findings to a transcript without them.

use std::borrow::Cow;
use std::fs;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Finding, Problem, damaged_lines, links, tools};
use crate::draft::Draft;
use crate::error::{Error, Result};
use crate::file;
use crate::id::SessionId;
use crate::place::{SessionFile, Sessions};
use crate::progress::{Meter, Progress};
use crate::record::Position;
use crate::record::object::Object;
use crate::relocate::Created;
use crate::relocate::beside::{Copy, files_below};

/// How many backups of one transcript there may be.
const MOST_BACKUPS: u32 = 1000;

/// The problems of a transcript, and the repaired transcript. Nothing is written until one of the functions here is called.
#[derive(Debug, Clone)]
#[must_use]
pub struct Repair {
    file: SessionFile,
    findings: Vec<Finding>,
    /// The old transcript.
    old: Arc<Vec<u8>>,
    mended: Vec<MendedPiece>,
}

/// A part of the mended transcript: lines, each with its end.
#[derive(Debug, Clone)]
pub(super) enum MendedPiece {
    /// This part of the old transcript.
    Kept(Range<usize>),
    New(Vec<u8>),
}

/// A transcript that was mended in its place.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Mended {
    /// The transcript.
    pub file: SessionFile,
    /// The old transcript: beside it, with `.bak` behind its name, or `.bak.1` and so on if there was one.
    pub backup: PathBuf,
}

impl SessionFile {
    /// Finds the problems of the transcript, and prepares a repaired one.
    ///
    /// A record that is being written looks like one that a crash left: call this when nobody drives the session. The transcript is held in
    /// memory, once, and some 300 bytes for each of its records meanwhile.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn repair(&self) -> Result<Repair> {
        self.examine(&mut Meter::unheard())
    }

    /// As [`repair`](Self::repair), and reports the progress to `observe`.
    ///
    /// # Errors
    /// As [`repair`](Self::repair), and [`Error::Stopped`] if `observe` breaks.
    pub fn repair_observed(&self, mut observe: impl FnMut(Progress) -> ControlFlow<()>) -> Result<Repair> {
        self.examine(&mut Meter::of(&mut observe))
    }

    fn examine(&self, meter: &mut Meter<'_>) -> Result<Repair> {
        let mut old = Vec::new();
        let mut source = file::open(&self.path).map_err(Error::io("open", &self.path))?;
        source
            .read_to_end(&mut old)
            .map_err(Error::io("read", &self.path))?;
        meter.begin(old.len() as u64)?;
        let (mended, findings) = mend(&old, meter)?;
        meter.end();
        Ok(Repair {
            file: self.clone(),
            findings,
            old: Arc::new(old),
            mended,
        })
    }
}

impl Sessions {
    /// Finds the problems of a session's transcript: [`SessionFile::repair`] for the file that [`find`](Self::find) returns.
    ///
    /// # Errors
    /// Those of both functions.
    pub fn repair(&self, id: &SessionId) -> Result<Repair> {
        self.find(id)?.repair()
    }
}

impl Repair {
    /// The problems, in the order of the lines.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether mending would change the transcript.
    pub fn changes_something(&self) -> bool {
        self.findings.iter().any(|finding| finding.problem.is_mendable())
    }

    /// The transcript as it would be: a copy of it, unless nothing changes.
    pub fn mended(&self) -> Cow<'_, [u8]> {
        match &self.mended[..] {
            [] => Cow::Borrowed(&[]),
            [piece] => Cow::Borrowed(piece.bytes(&self.old)),
            pieces => Cow::Owned(
                pieces
                    .iter()
                    .flat_map(|piece| piece.bytes(&self.old))
                    .copied()
                    .collect(),
            ),
        }
    }

    fn mended_length(&self) -> u64 {
        self.mended
            .iter()
            .map(|piece| piece.bytes(&self.old).len() as u64)
            .sum()
    }

    /// Replaces the transcript by the repaired one, and keeps a backup of the old one beside it. Without a problem, nothing
    /// is written.
    ///
    /// Readers find the old one or the new one, never a part. Records that another process appends meanwhile are carried over; only
    /// a writer that opened the old one before and writes after that writes to the backup.
    ///
    /// # Errors
    /// [`Error::Busy`] while another process drives the session ([`Sessions::driven_by`]); [`Error::Changed`] when it was written to since it was
    /// read; when there is nothing to repair; when a file cannot be written. The transcript is unchanged then.
    /// [`Error::NotCarriedOver`] when it is repaired, and records that another process appended meanwhile are in the backup alone.
    pub fn in_place(&self) -> Result<Mended> {
        self.exchange(&mut Meter::unheard(), || {})
    }

    /// As [`in_place`](Self::in_place), and reports the progress to `observe`.
    ///
    /// # Errors
    /// As [`in_place`](Self::in_place), and [`Error::Stopped`] if `observe` breaks before all is written: the transcript is unchanged
    /// then, too.
    pub fn in_place_observed(&self, mut observe: impl FnMut(Progress) -> ControlFlow<()>) -> Result<Mended> {
        self.exchange(&mut Meter::of(&mut observe), || {})
    }

    /// `late` is what others may do after the last look at the old transcript.
    fn exchange(&self, meter: &mut Meter<'_>, late: impl FnOnce()) -> Result<Mended> {
        self.has_something_to_mend()?;
        let path = &self.file.path;
        if let Some(busy) = Sessions::at(self.file.config_dir()).driven_by(&self.file.id)? {
            return Err(Error::Busy(Box::new(busy)));
        }
        let mut draft = Draft::of(path)?;
        meter.begin(self.mended_length())?;
        for piece in &self.mended {
            let mut bytes = piece.bytes(&self.old);
            meter.copy(&mut bytes, path, |bytes| draft.write(bytes))?;
        }
        meter.ask_observer()?;
        if length_of(path)? != self.old.len() as u64 {
            return Err(Error::Changed(path.clone()));
        }
        let backup = back_up(path)?;
        late();
        draft.replace()?;
        self.carry_over(&backup).map_err(|error| Error::NotCarriedOver {
            file: path.clone(),
            backup: backup.clone(),
            source: Box::new(error),
        })?;
        let file = SessionFile::at(&self.file.id, path.clone(), self.file.project.as_deref());
        let file = file.ok_or_else(|| Error::gone(path))?;
        meter.end();
        Ok(Mended { file, backup })
    }

    /// Writes the repaired transcript as a new session of the same project, with copies of all files beside the old one. The old session is
    /// unchanged, and the new one has the same messages under the same ids; without a problem it is a copy.
    ///
    /// # Errors
    /// When no conversation is recorded, or a file cannot be written.
    pub fn into_new(&self) -> Result<SessionFile> {
        self.make_new(&mut Meter::unheard())
    }

    /// As [`into_new`](Self::into_new), and reports the progress to `observe`.
    ///
    /// # Errors
    /// As [`into_new`](Self::into_new), and [`Error::Stopped`] if `observe` breaks before all is written: then nothing is left behind.
    pub fn into_new_observed(
        &self,
        mut observe: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<SessionFile> {
        self.make_new(&mut Meter::of(&mut observe))
    }

    fn make_new(&self, meter: &mut Meter<'_>) -> Result<SessionFile> {
        if self.findings.iter().any(|finding| !finding.problem.is_mendable()) {
            self.has_something_to_mend()?;
        }
        let id = SessionId::random();
        let path = self.file.path.with_file_name(id.file_name());
        let rename = |line: &str| with_session(line, &self.file.id, &id);
        let (old_beside, beside) = (self.file.beside(), path.with_extension(""));
        if meter.is_heard() {
            let files = files_below(&old_beside)?.into_iter();
            let length = files.map(|(path, _)| fs::metadata(path).map_or(0, |file| file.len()));
            meter.begin(self.mended_length() + length.sum::<u64>())?;
        }
        let mut created = Created::default();
        let mut draft = Draft::of(&path)?;
        let pieces = self.mended.iter().map(|piece| piece.bytes(&self.old));
        for line in pieces.flat_map(|piece| piece.split_inclusive(|byte| *byte == b'\n')) {
            match std::str::from_utf8(line).ok().and_then(rename) {
                Some(renamed) => draft.line(&renamed)?,
                None => draft.write(line)?,
            }
            meter.add(line.len() as u64)?;
        }
        // The files beside it come first: a session exists once its transcript does.
        created.add(beside.clone());
        let mut copy = Copy {
            rewrite: &|_, line| rename(line),
            meter,
        };
        copy.tree(&old_beside, &beside)?;
        meter.ask_observer()?;
        draft.create()?;
        created.keep();
        meter.end();
        SessionFile::at(&id, path.clone(), self.file.project.as_deref()).ok_or_else(|| Error::gone(&path))
    }

    fn has_something_to_mend(&self) -> Result<()> {
        if self.changes_something() && self.mended_length() > 0 {
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

    /// Carries over records that were appended to the old transcript between the last read and the exchange.
    fn carry_over(&self, backup: &Path) -> Result<()> {
        let mut old = file::open(backup).map_err(Error::io("open", backup))?;
        let mut late = Vec::new();
        old.seek(SeekFrom::Start(self.old.len() as u64))
            .and_then(|_| old.read_to_end(&mut late))
            .map_err(Error::io("read", backup))?;
        let late = String::from_utf8_lossy(&late);
        for line in late.lines().filter(|line| !line.trim().is_empty()) {
            self.file.append(line)?;
        }
        Ok(())
    }
}

impl MendedPiece {
    fn bytes<'p>(&'p self, old: &'p [u8]) -> &'p [u8] {
        match self {
            Self::Kept(range) => old.get(range.clone()).unwrap_or_default(),
            Self::New(bytes) => bytes,
        }
    }
}

/// The problems of these bytes, and the repaired bytes.
pub(super) fn mend(bytes: &[u8], meter: &mut Meter<'_>) -> Result<(Vec<MendedPiece>, Vec<Finding>)> {
    let mut findings = Vec::new();
    let mut rows = damaged_lines::read(bytes, &mut findings, meter)?;
    links::mend(&mut rows, &mut findings);
    tools::mend(&mut rows, &mut findings);
    findings.sort_by_key(|finding| finding.position);
    let is_changed = !findings.is_empty();
    if !rows.iter().any(damaged_lines::Row::is_main) {
        let position = Position { offset: 0, line: 1 };
        findings.insert(
            0,
            Finding {
                position,
                problem: Problem::Empty,
            },
        );
    }
    let mended = if is_changed {
        pieces(bytes, rows)
    } else {
        vec![MendedPiece::Kept(0..bytes.len())]
    };
    Ok((mended, findings))
}

/// The rows one behind the other, each with its end, in as few pieces as can be.
fn pieces(old: &[u8], rows: Vec<damaged_lines::Row<'_>>) -> Vec<MendedPiece> {
    let mut pieces: Vec<MendedPiece> = Vec::new();
    for row in rows {
        let text = match row.text {
            Cow::Owned(text) => text,
            Cow::Borrowed(text) => {
                // The place in the old transcript: a row may have been moved.
                let start = (text.as_ptr() as usize).wrapping_sub(old.as_ptr() as usize);
                let end = start + text.len();
                if old.get(end) == Some(&b'\n') {
                    match pieces.last_mut() {
                        Some(MendedPiece::Kept(before)) if before.end == start => before.end = end + 1,
                        _ => pieces.push(MendedPiece::Kept(start..end + 1)),
                    }
                    continue;
                }
                text.to_owned()
            }
        };
        let into = match pieces.last_mut() {
            Some(MendedPiece::New(into)) => into,
            _ => {
                pieces.push(MendedPiece::New(Vec::new()));
                let Some(MendedPiece::New(into)) = pieces.last_mut() else {
                    continue;
                };
                into
            }
        };
        into.extend_from_slice(&text);
        into.push(b'\n');
    }
    pieces
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
                let mut text = Vec::new();
                file::open(path)
                    .and_then(|mut old| old.read_to_end(&mut text))
                    .map_err(Error::io("read", path))?;
                draft.write(&text)?;
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
