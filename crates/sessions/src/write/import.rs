//! A session from a file that was exported, here or on another machine.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::export::{BESIDE, KIND, TRANSCRIPT, VERSION};
use crate::draft::{Draft, create_dir};
use crate::error::{Error, Result};
use crate::file;
use crate::id::SessionId;
use crate::place::{SessionFile, Sessions, real_path};
use crate::progress::{Meter, Progress};
use crate::record::object::Object;
use crate::record::{Lines, RecordLine, Records};
use crate::relocate::ELSEWHERE;
use crate::relocate::{Created, TransferChange};

/// The longest line of an export that is no part.
const LONGEST_LINE: u64 = 64 * 1024;

/// A session that was imported.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Imported {
    /// The session in its new place.
    pub file: SessionFile,
    /// The id that the session had, where that is taken here and the session got a new one.
    pub was: Option<SessionId>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    #[serde(rename = "type")]
    kind: String,
    version: u64,
    session_id: SessionId,
    cwd: Option<String>,
}

#[derive(Deserialize)]
struct Part {
    file: Option<String>,
    #[serde(default)]
    bytes: u64,
    end: Option<bool>,
    #[serde(default)]
    files: u64,
}

/// The plan for the parts.
struct Arrival<'a, 'o> {
    source: &'a Path,
    sessions: &'a Sessions,
    path: PathBuf,
    change: TransferChange<'a>,
    created: Created,
    meter: &'a mut Meter<'o>,
}

impl Sessions {
    /// Makes a session of the project at `dir` from a file: one that [`SessionFile::export`] wrote, or a transcript, in JSON with a
    /// record a line. `dir` need not exist.
    ///
    /// The session keeps its id, unless a session here has that id, or files of one that is gone are left: then it gets a new one, and
    /// what is here is unchanged. In its records, `cwd` becomes `dir` if it was the old directory or below it, and a `relocated` record
    /// at the end has it, too. Lines that cannot be read stay as they are; [`SessionFile::repair`] repairs them.
    ///
    /// Paths in an export that would lead out of the session are an error.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the file is neither, is cut off, or has no conversation; when a file cannot be read or written.
    /// Nothing is left behind then.
    pub fn import(&self, source: impl AsRef<Path>, dir: impl AsRef<Path>) -> Result<Imported> {
        self.bring(source.as_ref(), dir.as_ref(), &mut Meter::unheard())
    }

    /// As [`import`](Self::import), and reports the progress to `observe`.
    ///
    /// # Errors
    /// As [`import`](Self::import), and [`Error::Stopped`] if `observe` breaks before all is written: then nothing is left behind,
    /// either.
    pub fn import_observed(
        &self,
        source: impl AsRef<Path>,
        dir: impl AsRef<Path>,
        mut observe: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Imported> {
        self.bring(source.as_ref(), dir.as_ref(), &mut Meter::of(&mut observe))
    }

    fn bring(&self, source: &Path, dir: &Path, meter: &mut Meter<'_>) -> Result<Imported> {
        let real = real_path(dir);
        let file = file::open(source).map_err(Error::io("open", source))?;
        let length = file.metadata().map_err(Error::io("read", source))?.len();
        meter.begin(length)?;
        let mut reader = BufReader::with_capacity(256 * 1024, file);
        let header = header(source, &mut reader)?;
        let (old, old_dir) = match &header {
            Some(header) => (header.session_id.clone(), header.cwd.clone().map(PathBuf::from)),
            None => described(source)?,
        };
        let project = self.project_dir(dir);
        let left = ELSEWHERE.map(|part| self.config_dir().join(part));
        let is_left = |place: &Path| fs::symlink_metadata(place.join(old.as_str())).is_ok();
        // An empty file is no session, and takes the name all the same.
        let has_file = fs::symlink_metadata(project.join(old.file_name())).is_ok();
        let is_taken = has_file
            || !self.find_all(&old).is_empty()
            || is_left(&project)
            || left.iter().any(|place| is_left(place));
        let id = if is_taken {
            SessionId::random()
        } else {
            old.clone()
        };
        let path = project.join(id.file_name());
        let mut arrival = Arrival {
            source,
            sessions: self,
            path: path.clone(),
            change: TransferChange {
                id: (&old, &id),
                dir: old_dir.map(|old| (old, &*real)),
            },
            created: Created::default(),
            meter,
        };
        arrival.created.create_dir(path.parent().unwrap_or(&path))?;
        let mut draft = match header {
            Some(_) => arrival.unpack(&mut reader)?,
            None => {
                reader = BufReader::new(file::open(source).map_err(Error::io("open", source))?);
                let mut draft = Draft::of(&path)?;
                arrival.copy_lines(&mut reader, &mut draft)?;
                draft
            }
        };
        let mut record = Object::new();
        record.set_string("type", "relocated");
        record.set_string("relocatedCwd", &real);
        record.set_string("sessionId", id.as_str());
        draft.line(&record.to_text())?;
        arrival.meter.ask_observer()?;
        draft.create()?;
        arrival.created.keep();
        arrival.meter.end();
        let file = SessionFile::at(&id, path.clone(), Some(&real)).ok_or_else(|| Error::gone(&path))?;
        Ok(Imported {
            file,
            was: is_taken.then_some(old),
        })
    }
}

/// The header of an export; `None` where the file is none.
fn header(source: &Path, reader: &mut impl BufRead) -> Result<Option<Header>> {
    let line = line(source, reader)?;
    let kind = Object::parse(&line).and_then(|object| object.string("type"));
    if kind.as_deref() != Some(KIND) {
        return Ok(None);
    }
    let header: Header = serde_json::from_str(&line).map_err(|error| invalid(source, error))?;
    if header.kind == KIND && header.version == VERSION {
        return Ok(Some(header));
    }
    let (theirs, ours) = (header.version, VERSION);
    Err(invalid(
        source,
        format!("it is an export of version {theirs}, and this reads version {ours}"),
    ))
}

/// The session id in a transcript, and the directory in which it ran.
fn described(source: &Path) -> Result<(SessionId, Option<PathBuf>)> {
    let named = source
        .file_name()
        .and_then(|name| SessionId::of_file_name(name.to_str()?));
    let (mut id, mut has_conversation) = (None, false);
    for item in Records::open(source)? {
        if let RecordLine::Record(record) = item? {
            let envelope = record.envelope();
            has_conversation |= envelope.kind.is_linked() && envelope.uuid.is_some();
            id = id.or_else(|| SessionId::new(envelope.session_id.as_deref()?).ok());
        }
        if has_conversation && id.is_some() {
            break;
        }
    }
    if !has_conversation {
        return Err(invalid(
            source,
            "it is no export and no transcript: it has no message",
        ));
    }
    let id = id.or(named).unwrap_or_else(SessionId::random);
    let file = SessionFile::at(&id, source.to_owned(), None).ok_or_else(|| Error::gone(source))?;
    Ok((id, file.recorded_dir()?))
}

impl Arrival<'_, '_> {
    /// Puts each part where it belongs, but for the transcript, which is to come last.
    fn unpack(&mut self, reader: &mut impl BufRead) -> Result<Draft> {
        let mut transcript = None;
        let mut count = 0;
        loop {
            let line = line(self.source, reader)?;
            let part: Part = serde_json::from_str(&line)
                .map_err(|error| invalid(self.source, format!("it is cut off or damaged: {error}")))?;
            let Some(name) = part.file.filter(|_| part.end != Some(true)) else {
                if part.end == Some(true) && part.files == count {
                    break;
                }
                return Err(invalid(self.source, "it ends with fewer files than it says"));
            };
            count += 1;
            let target = self.target(&name)?;
            let mut draft = Draft::of(&target)?;
            let mut content = reader.by_ref().take(part.bytes);
            if name.ends_with(".jsonl") {
                self.copy_lines(&mut content, &mut draft)?;
            } else {
                self.meter
                    .copy(&mut content, self.source, |bytes| draft.write(bytes))?;
            }
            if content.limit() > 0 {
                return Err(invalid(self.source, format!("it is cut off in {name}")));
            }
            self.end_of_part(reader)?;
            if name == TRANSCRIPT {
                transcript = Some(draft);
            } else {
                draft.create()?;
            }
        }
        transcript.ok_or_else(|| invalid(self.source, "it has no transcript"))
    }

    /// Where a part goes. Each directory is made for this session, so nothing that was there is in the way, and all of it goes again
    /// if the rest fails.
    fn target(&mut self, name: &str) -> Result<PathBuf> {
        if name == TRANSCRIPT {
            return Ok(self.path.clone());
        }
        let id = self.change.id.1.as_str();
        let refused = || invalid(self.source, format!("{name:?} is no path within a session"));
        let (place, relative) = name.split_once('/').ok_or_else(refused)?;
        let root = match place {
            BESIDE => self.path.with_extension(""),
            place if ELSEWHERE.contains(&place) => self.sessions.config_dir().join(place).join(id),
            _ => return Err(refused()),
        };
        // On other systems `\` and `:` are parts of names, as they were where the session comes from.
        let leads_out = |part: &str| cfg!(windows) && part.contains(['\\', ':']);
        let is_plain =
            |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0') && !leads_out(part);
        if !relative.split('/').all(is_plain) {
            return Err(refused());
        }
        if !self.created.has(&root) {
            if fs::symlink_metadata(&root).is_ok() {
                return Err(Error::Exists(root));
            }
            self.created.create_dir(root.parent().unwrap_or(&root))?;
            self.created.add(root.clone());
        }
        let target = relative.split('/').fold(root, |path, part| path.join(part));
        create_dir(target.parent().unwrap_or(&target))?;
        Ok(target)
    }

    fn copy_lines(&mut self, content: &mut impl Read, draft: &mut Draft) -> Result<()> {
        let mut lines = Lines::new(content).cap(usize::MAX);
        while let Some(line) = lines.next().map_err(Error::io("read", self.source))? {
            let changed = std::str::from_utf8(line.bytes)
                .ok()
                .and_then(|text| self.change.apply(text));
            match changed {
                Some(changed) => draft.write(changed.as_bytes())?,
                None => draft.write(line.bytes)?,
            }
            // The last line gets a line break, too: another record may come behind it.
            draft.write(b"\n")?;
            self.meter.add(line.length + u64::from(line.is_ended))?;
        }
        Ok(())
    }

    fn end_of_part(&self, reader: &mut impl BufRead) -> Result<()> {
        let mut end = [0];
        match reader.read_exact(&mut end) {
            Ok(()) if end == *b"\n" => Ok(()),
            _ => Err(invalid(self.source, "a part is not as long as it says")),
        }
    }
}

/// A line of an export, without its end.
fn line(source: &Path, reader: &mut impl BufRead) -> Result<String> {
    let mut line = Vec::new();
    let mut reader = reader.by_ref().take(LONGEST_LINE);
    reader
        .read_until(b'\n', &mut line)
        .map_err(Error::io("read", source))?;
    Ok(String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned())
}

fn invalid(source: &Path, why: impl ToString) -> Error {
    Error::invalid("the file", format!("{}: {}", source.display(), why.to_string()))
}

#[cfg(test)]
mod tests;
