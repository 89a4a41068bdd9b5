//! What the CLI has stored of a session: its transcript, and forks of it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use outrigger::SessionId;
use outrigger::sessions::lease::Lease;
use outrigger::sessions::place::real_path;
use outrigger::sessions::record::RecordLine;
use outrigger::sessions::write::ForkOptions;
use outrigger::sessions::{Error, ListOptions, MessageOptions, SessionFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::error::{HostError, Result};
use crate::event::SessionRecord;
use crate::policy::HostPolicy;

/// The size of a piece of a transcript, in bytes, unless a line is longer.
const PIECE: u64 = 64 * 1024;

/// The longest line of a transcript, in bytes.
const LINE: usize = 256 * 1024 * 1024;

fn stored_error(session: &SessionId) -> impl Fn(Error) -> HostError {
    move |error| match error.is_not_found() {
        true => HostError::NotStored(session.clone()),
        false => HostError::Stored(error.to_string()),
    }
}

/// Whether the CLI has stored something under this id, in whatever directory. Blocks.
pub(crate) fn is_stored(policy: &HostPolicy, session: &SessionId) -> bool {
    // Without a directory for them, the sessions of the CLI end with their processes.
    let sessions = policy.stored(None);
    sessions.is_ok_and(|sessions| !sessions.find_all(session).is_empty())
}

/// The file that the CLI has of a session. Blocks.
pub(crate) fn file(policy: &HostPolicy, session: &SessionRecord) -> Result<SessionFile> {
    let cwd = Path::new(&session.cwd);
    let sessions = policy.stored(Some(cwd))?;
    let file = sessions
        .find_in(&session.id, cwd)
        .map_err(stored_error(&session.id))?;
    // The CLI's name for a directory may be that of another one, too.
    let recorded = file.recorded_dir().map_err(stored_error(&session.id))?;
    let recorded = recorded.as_deref().map(real_path);
    let is_here = recorded == Some(real_path(cwd));
    // The CLI may have moved it to another worktree of the repository.
    let has_moved = || {
        recorded
            .as_ref()
            .is_some_and(|dir| policy.directory(Path::new(dir)).is_ok())
    };
    if is_here || (recorded == file.project && has_moved()) {
        return Ok(file);
    }
    Err(HostError::NotStored(session.id.clone()))
}

/// Puts the file of a session away in which nothing of a conversation is: the first process was killed, or the disk was full, before it had written a prompt. The
/// CLI neither resumes such a session, nor begins another one with its id. `false` if there is no such file. Blocks.
pub(crate) fn put_away(policy: &HostPolicy, session: &SessionRecord) -> Result<bool> {
    let cwd = Path::new(&session.cwd);
    let sessions = policy.stored(Some(cwd))?;
    let path = sessions.project_dir(cwd).join(format!("{}.jsonl", session.id));
    let has_messages = match sessions.find_in(&session.id, cwd) {
        Ok(file) if file.path != path => return Ok(false),
        Ok(file) => {
            let messages = file.messages(&MessageOptions::default());
            messages.map_err(stored_error(&session.id))?.count_all() > 0
        }
        // An empty file is none.
        Err(error) if error.is_not_found() => false,
        Err(error) => return Err(stored_error(&session.id)(error)),
    };
    if has_messages {
        return Ok(false);
    }
    let put = match path.metadata() {
        Ok(metadata) if metadata.len() == 0 => std::fs::remove_file(&path),
        Ok(_) => std::fs::rename(&path, path.with_extension("jsonl.unusable")),
        Err(error) => Err(error),
    };
    match put {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(HostError::Stored(format!("{}: {error}", path.display()))),
    }
}

/// Copies what is stored into a new session of the same directory. Blocks.
pub(crate) fn fork(
    policy: &HostPolicy,
    source: &SessionRecord,
    id: SessionId,
    title: Option<&str>,
) -> Result<()> {
    let mut options = ForkOptions::new().id(id.clone());
    if let Some(title) = title {
        options = options.title(title);
    }
    match file(policy, source)?.fork(&options) {
        Ok(_) => Ok(()),
        // A host was cut off before it had written that it made the fork.
        Err(Error::Exists(path)) if is_mere_copy(policy, source, &id, &path)? => Ok(()),
        Err(Error::Exists(_)) => Err(HostError::Reused(format!("the session id {id}"))),
        Err(error) => Err(stored_error(&source.id)(error)),
    }
}

/// Whether all that is stored under an id is this file, with nothing but copies of the messages of another session.
fn is_mere_copy(policy: &HostPolicy, source: &SessionRecord, id: &SessionId, path: &Path) -> Result<bool> {
    #[derive(Deserialize)]
    struct Copied {
        #[serde(rename = "sessionId")]
        session_id: String,
    }
    let files = policy.stored(Some(Path::new(&source.cwd)))?.find_all(id);
    let [file] = &*files else { return Ok(false) };
    if file.path != path {
        return Ok(false);
    }
    for line in file.records().map_err(stored_error(id))? {
        let RecordLine::Record(record) = line.map_err(stored_error(id))? else {
            return Ok(false);
        };
        let from = record.field("forkedFrom").map(|from| from.decode::<Copied>());
        let is_copy = matches!(from, Some(Ok(from)) if from.session_id == source.id.as_str());
        if record.kind().is_linked() && !is_copy {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The transcript of a session, in pieces: JSON, one record a line, as the CLI wrote it. A piece has whole lines, and is read when it is asked for.
#[derive(Debug)]
pub struct Transcript {
    /// `None` while a piece is read, and behind the last one.
    pieces: Option<Pieces>,
    reading: Option<JoinHandle<(Pieces, io::Result<Vec<u8>>)>>,
}

impl Transcript {
    /// Opens the transcript. Blocks.
    pub(crate) fn open(policy: &HostPolicy, session: &SessionRecord) -> Result<Self> {
        let file = file(policy, session)?;
        let pieces = Pieces {
            file: file.open().map_err(stored_error(&session.id))?,
            rest: Vec::new(),
            longest: LINE,
        };
        Ok(Self {
            pieces: Some(pieces),
            reading: None,
        })
    }

    /// Whether a call is open that the CLI has noted as left open: not if something came of it since. `None` without a note.
    pub(crate) async fn open_call(mut self, tool_use_id: &str) -> Result<Option<bool>> {
        let mut is_open = None;
        while let Some(piece) = self.next().await? {
            let text = String::from_utf8_lossy(&piece);
            for line in text.lines().filter(|line| line.contains(tool_use_id)) {
                if line.contains("\"hook_deferred_tool\"") {
                    is_open = Some(true);
                } else if line.contains("\"tool_result\"") && is_open.is_some() {
                    is_open = Some(false);
                }
            }
        }
        Ok(is_open)
    }

    /// The next piece; `None` at the end. A line that the CLI was still writing is left out.
    ///
    /// # Cancel safety
    /// No piece is lost.
    ///
    /// # Errors
    /// When the file can't be read on, and when a line is longer than 256 MiB.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        // A reader that takes its time must not hold a thread meanwhile: all reading of the log needs one, too.
        if let Some(mut pieces) = self.pieces.take() {
            let read = move || {
                let piece = pieces.next();
                (pieces, piece)
            };
            self.reading = Some(tokio::task::spawn_blocking(read));
        }
        let Some(reading) = &mut self.reading else {
            return Ok(None);
        };
        let read = reading.await;
        self.reading = None;
        let (pieces, piece) = read.map_err(|error| HostError::Stored(error.to_string()))?;
        let piece = piece.map_err(|error| HostError::Stored(error.to_string()))?;
        if piece.is_empty() {
            return Ok(None);
        }
        self.pieces = Some(pieces);
        Ok(Some(piece))
    }
}

/// A file as whole lines.
#[derive(Debug)]
struct Pieces {
    file: File,
    /// The beginning of a line.
    rest: Vec<u8>,
    /// The longest line, in bytes.
    longest: usize,
}

impl Pieces {
    /// The next lines; empty at the end.
    fn next(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let before = self.rest.len();
            (&self.file).take(PIECE).read_to_end(&mut self.rest)?;
            let new = &self.rest[before..];
            if let Some(end) = new.iter().rposition(|byte| *byte == b'\n') {
                let rest = self.rest.split_off(before + end + 1);
                return Ok(std::mem::replace(&mut self.rest, rest));
            }
            if new.is_empty() {
                return Ok(Vec::new());
            }
            if self.rest.len() > self.longest {
                let message = format!("a line of the transcript has more than {} bytes", self.longest);
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
            }
        }
    }
}

/// A session that the CLI left on this machine, and that the host does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Adoptable {
    /// The id.
    #[schemars(with = "uuid::Uuid")]
    pub id: SessionId,
    /// The directory in which it goes on.
    pub cwd: String,
    /// The session's title, or what there is to show in its place, such as the last prompt.
    pub title: String,
    /// When the session's transcript was last written to, in milliseconds since 1970.
    pub modified_at: u64,
    /// The process that drives it. While there is one, the session can't be adopted.
    pub driven_by: Option<String>,
}

/// The sessions that are stored in the roots of the policy, the newest first. Blocks.
pub(crate) fn adoptable(policy: &HostPolicy, cwd: Option<&Path>) -> Result<Vec<Adoptable>> {
    let sessions = policy.stored(None)?;
    let mut options = ListOptions::new();
    if let Some(cwd) = cwd {
        options = options.dir(policy.directory(cwd)?).include_worktrees(false);
    }
    let listed = sessions.list(&options);
    let listed = listed.map_err(|error| HostError::Stored(error.to_string()))?;
    let mut found = Vec::new();
    for info in listed {
        let Some(cwd) = info.cwd.filter(|cwd| policy.directory(Path::new(cwd)).is_ok()) else {
            continue;
        };
        let driven_by = sessions.driven_by(&info.session_id).ok().flatten();
        found.push(Adoptable {
            cwd,
            title: info.custom_title.unwrap_or(info.summary),
            modified_at: u64::try_from(info.last_modified).unwrap_or_default(),
            driven_by: driven_by.map(|busy| busy.owner.name),
            id: info.session_id,
        });
    }
    Ok(found)
}

/// A session that is being adopted. Nobody else drives it until this is dropped.
pub(crate) struct Adoption {
    pub(crate) cwd: PathBuf,
    pub(crate) title: Option<String>,
    _lease: Lease,
}

/// Looks at a session that the CLI left, and takes its lease. Blocks.
pub(crate) fn adopt(policy: &HostPolicy, session: &SessionId, cwd: Option<&Path>) -> Result<Adoption> {
    let sessions = policy.stored(None)?;
    let file = match cwd {
        Some(cwd) => sessions.find_in(session, policy.directory(cwd)?),
        None => sessions.find(session),
    };
    let file = file.map_err(stored_error(session))?;
    let recorded = file.recorded_dir().map_err(stored_error(session))?;
    let recorded = recorded.ok_or_else(|| HostError::NotStored(session.clone()))?;
    // The CLI finds the session only from there.
    let cwd = policy.directory(&recorded)?;
    let info = file.info().map_err(stored_error(session))?;
    let title = info.and_then(|info| info.custom_title);
    let lease = sessions
        .claim(session)
        .owner("outrigger-host")
        .take()
        .map_err(|error| match error {
            Error::Busy(busy) => HostError::InUse(session.clone(), busy.owner.name),
            error => stored_error(session)(error),
        })?;
    Ok(Adoption {
        cwd,
        title,
        _lease: lease,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::io::{Seek as _, Write as _};

    use super::*;

    #[test]
    fn a_line_without_an_end_is_not_read_into_memory() {
        let longest = 1024 * 1024;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"{}\n").unwrap();
        file.set_len(64 * 1024 * 1024).unwrap();
        file.rewind().unwrap();
        let mut pieces = Pieces {
            file,
            rest: Vec::new(),
            longest,
        };
        assert_eq!(pieces.next().unwrap(), b"{}\n");
        let error = pieces.next().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{error}");
        assert!(pieces.rest.len() <= 2 * longest);
    }
}
