//! One file that grows.

use std::collections::VecDeque;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::Change;
use crate::error::{Error, Result};
use crate::file;
use crate::read::lite::read_at;
use crate::record::{Line, Lines, Position, RecordLine};

/// How much is read at a time.
const CHUNK: usize = 64 * 1024;

/// How much is kept of a line that is too long.
const KEPT: usize = 4096;

/// A file, and how much of it was reported.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    file: File,
    identity: Identity,
    /// The start of the line that is reported next.
    next: Position,
    /// The bytes read of this line and of those behind it; only the beginning of a line that is too long.
    held: Vec<u8>,
    /// How many of the held bytes have no line end.
    seen: usize,
    /// How many bytes of a line that is too long were not kept.
    dropped: u64,
    /// The changes to report before anything else is read.
    due: VecDeque<Change>,
    cap: usize,
}

/// Distinguishes a file from another one of its name.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = Option<std::time::SystemTime>;

#[cfg(unix)]
fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(metadata: &Metadata) -> Identity {
    metadata.created().ok()
}

impl Tail {
    /// Opens a file to report its lines, or only those that are appended.
    pub(super) fn open(path: &Path, from_start: bool) -> Result<Self> {
        let file = file::open(path).map_err(Error::io("open", path))?;
        let metadata = file.metadata().map_err(Error::io("read", path))?;
        let mut offset = 0;
        if !from_start {
            offset = last_line(&file, metadata.len()).map_err(Error::io("read", path))?;
        }
        Ok(Self {
            path: path.to_owned(),
            identity: identity(&metadata),
            file,
            next: Position { offset, line: 1 },
            held: Vec::new(),
            seen: 0,
            dropped: 0,
            due: VecDeque::new(),
            cap: Lines::<&[u8]>::DEFAULT_CAP,
        })
    }

    #[cfg(test)]
    pub(super) fn cap(mut self, bytes: usize) -> Self {
        self.cap = bytes;
        self
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What happened next, if anything did.
    pub(super) fn next(&mut self) -> Result<Option<Change>> {
        loop {
            if let Some(change) = self.due.pop_front() {
                return Ok(Some(change));
            }
            if let Some(change) = self.take() {
                return Ok(Some(change));
            }
            if !self.read().map_err(Error::io("read", &self.path))? && !self.check_file()? {
                return Ok(None);
            }
        }
    }

    /// Takes the next whole line out of the held bytes.
    fn take(&mut self) -> Option<Change> {
        loop {
            let Some(found) = memchr::memchr(b'\n', &self.held[self.seen..]) else {
                self.seen = self.held.len();
                if self.held.len() > self.cap {
                    let kept = KEPT.min(self.cap);
                    self.dropped += (self.held.len() - kept) as u64;
                    self.held.truncate(kept);
                    self.held.shrink_to(CHUNK);
                    self.seen = kept;
                }
                return None;
            };
            let end = self.seen + found;
            let change = self.report_line(end, true);
            self.held.drain(..=end);
            if change.is_some() {
                return change;
            }
        }
    }

    /// Reports the line that ends at `end` of the held bytes. `None` for a blank one.
    fn report_line(&mut self, end: usize, is_ended: bool) -> Option<Change> {
        let mut line = Line {
            position: self.next,
            bytes: &self.held[..end],
            length: end as u64 + self.dropped,
            is_ended,
        };
        if line.length > self.cap as u64 {
            line.bytes = &self.held[..end.min(KEPT).min(self.cap)];
        }
        let change = (!line.is_blank()).then(|| match RecordLine::of(line, self.cap) {
            RecordLine::Record(record) => Change::Record(record),
            RecordLine::Damaged(damage) => Change::Damaged(damage),
        });
        self.next = Position {
            offset: self.next.offset + line.length + u64::from(is_ended),
            line: self.next.line + 1,
        };
        self.seen = 0;
        self.dropped = 0;
        change
    }

    /// Reads more; whether there was more.
    fn read(&mut self) -> io::Result<bool> {
        let held = self.held.len();
        let offset = self.next.offset + held as u64 + self.dropped;
        self.held.resize(held + CHUNK, 0);
        let read = loop {
            match read_at(&self.file, &mut self.held[held..], offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.held.truncate(held + *read.as_ref().unwrap_or(&0));
        Ok(read? > 0)
    }

    /// Checks whether a file that was read to its end has changed; returns whether there is a change to report.
    fn check_file(&mut self) -> Result<bool> {
        let metadata = match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.begin_anew(Change::Gone);
                return Ok(true);
            }
            metadata => metadata.map_err(Error::io("read", &self.path))?,
        };
        if identity(&metadata) != self.identity {
            let file = match file::open(&self.path) {
                // The file existed a moment ago; the next check reports it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                file => file.map_err(Error::io("open", &self.path))?,
            };
            let metadata = file.metadata().map_err(Error::io("read", &self.path))?;
            self.identity = identity(&metadata);
            self.file = file;
            self.begin_anew(Change::Replaced);
            return Ok(true);
        }
        if metadata.len() < self.next.offset + self.held.len() as u64 + self.dropped {
            self.begin_anew(Change::Truncated);
            return Ok(true);
        }
        Ok(false)
    }

    /// Reports the rest of a file that was replaced, cut or deleted, and the change.
    fn begin_anew(&mut self, why: Change) {
        // Of the line that was waited for, nothing else will come.
        if !self.held.is_empty() {
            let rest = self.report_line(self.held.len(), false);
            self.due.extend(rest);
        }
        self.held.clear();
        self.next = Position { offset: 0, line: 1 };
        self.due.push_back(why);
    }
}

/// Where the last line begins that has no ending (yet); the end of the file if it has one.
fn last_line(file: &File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut buffer = vec![0; CHUNK];
    while end > 0 {
        let start = end.saturating_sub(CHUNK as u64);
        let mut filled = 0;
        let wanted = usize::try_from(end - start).unwrap_or(CHUNK);
        while filled < wanted {
            match read_at(file, &mut buffer[filled..wanted], start + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(last) = memchr::memrchr(b'\n', &buffer[..filled]) {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}
