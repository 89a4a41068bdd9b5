//! Metadata of a session, without reading all of it.

use std::path::Path;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};

use super::lite::{self, Lite, Room};
use super::prompt;
use crate::clock;
use crate::error::{Error, Result};
use crate::file;
use crate::id::SessionId;
use crate::place::{SessionFile, Sessions};

/// Metadata of a session, read without reading all of it. As JSON it has the names of the TypeScript SDK's `SDKSessionInfo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionInfo {
    /// The session.
    pub session_id: SessionId,
    /// What to show: the title, else the last prompt, else a summary, else the first prompt.
    pub summary: String,
    /// When the transcript was last written to, in milliseconds since 1970.
    pub last_modified: i64,
    /// How long the transcript is, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size: Option<u64>,
    /// The title that the user or the model gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_title: Option<String>,
    /// The first text that the user typed, up to 200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_prompt: Option<String>,
    /// The branch that the session was on last; `HEAD` where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_branch: Option<String>,
    /// The session's working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The tag that the user gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// When the session began, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
    /// Whether the session is archived; false if it was, and was taken back or prompted since. `None` if it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
}

impl SessionInfo {
    /// Describes a session of which nothing else is known.
    pub(crate) fn bare(session_id: SessionId, last_modified: u64) -> Self {
        Self {
            session_id,
            summary: String::new(),
            last_modified: i64::try_from(last_modified).unwrap_or(i64::MAX),
            file_size: None,
            custom_title: None,
            first_prompt: None,
            git_branch: None,
            cwd: None,
            tag: None,
            created_at: None,
            archived: None,
        }
    }
}

/// What surrounds a transcript that its info is read from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) id: &'a SessionId,
    /// The directory of the project.
    pub(crate) dir: &'a Path,
    /// The project, if one was given.
    pub(crate) project: Option<&'a str>,
    /// Whether there is a directory for what belongs to the session.
    pub(crate) has_more: bool,
}

/// The notes at the end of a transcript, the last one of each kind.
#[derive(Debug, Default)]
struct Notes<'l> {
    custom_title: Option<&'l [u8]>,
    ai_title: Option<&'l [u8]>,
    last_prompt: Option<&'l [u8]>,
    summary: Option<&'l [u8]>,
    tag: Option<&'l [u8]>,
    relocated: Option<&'l [u8]>,
}

const NOTES: [&str; 6] = [
    "custom-title",
    "ai-title",
    "last-prompt",
    "summary",
    "tag",
    "relocated",
];

impl<'l> Notes<'l> {
    fn of(text: &'l [u8]) -> Self {
        let mut notes = Self::default();
        for line in lite::lines(text) {
            let Some(kind) = kind_of_note(line) else {
                continue;
            };
            let note = match kind {
                0 => &mut notes.custom_title,
                1 => &mut notes.ai_title,
                2 => &mut notes.last_prompt,
                3 => &mut notes.summary,
                4 => &mut notes.tag,
                _ => &mut notes.relocated,
            };
            *note = Some(line);
        }
        notes
    }
}

/// Which of [`NOTES`] a line is.
fn kind_of_note(line: &[u8]) -> Option<usize> {
    if line.starts_with(b"{\"parentUuid\":") {
        return None;
    }
    if let Some(rest) = line.strip_prefix(b"{\"type\":\"") {
        let kind = &rest[..memchr::memchr(b'"', rest)?];
        return NOTES.iter().position(|known| known.as_bytes() == kind);
    }
    NOTES.iter().position(|kind| lite::is_note(line, kind))
}

/// The value of a note's key, if there is one.
fn note_value(note: Option<&[u8]>, key: &str) -> Option<String> {
    lite::field(note?, key).filter(|said| !said.is_empty())
}

impl SessionInfo {
    /// Reads the metadata from the ends of a transcript. `None` for a file that is no session of its own or has nothing to show.
    pub(crate) fn of(around: Around<'_>, lite: Lite<'_>) -> Option<Self> {
        let end = memchr::memchr(b'\n', lite.head).unwrap_or(lite.head.len());
        let first_line = &lite.head[..end];
        if is_sidechain(first_line) {
            return None;
        }
        let notes = Notes::of(lite.tail);
        let early = if lite.is_whole() {
            None
        } else {
            Some(Notes::of(lite.head))
        };
        let early = |pick: fn(&Notes<'_>) -> Option<String>| early.as_ref().and_then(pick);
        let custom_title = note_value(notes.custom_title, "customTitle")
            .or_else(|| around.has_more.then(|| title_beside(around)).flatten())
            .or_else(|| early(|notes| note_value(notes.custom_title, "customTitle")))
            .or_else(|| note_value(notes.ai_title, "aiTitle"))
            .or_else(|| early(|notes| note_value(notes.ai_title, "aiTitle")));
        let first = prompt::first(lite.head);
        let summary = custom_title
            .clone()
            .or_else(|| note_value(notes.last_prompt, "lastPrompt"))
            .or_else(|| note_value(notes.summary, "summary"))
            .or_else(|| first.text.clone())
            .or_else(|| first.other.map(str::to_owned))?;
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        Some(Self {
            session_id: around.id.clone(),
            summary,
            last_modified: lite.modified,
            file_size: Some(lite.size),
            custom_title,
            first_prompt: first.text,
            git_branch: some(lite::GIT_BRANCH.last(lite.tail))
                .or_else(|| some(lite::GIT_BRANCH.first(lite.head))),
            cwd: note_value(notes.relocated, "relocatedCwd")
                .or_else(|| some(lite::CWD.first(lite.head)))
                .or_else(|| around.project.map(str::to_owned)),
            tag: note_value(notes.tag, "tag"),
            created_at: lite::TIMESTAMP
                .first(lite.head)
                .and_then(|text| clock::parse(&text)),
            archived: if around.has_more {
                archived(around, lite.tail)
            } else {
                None
            },
        })
    }
}

/// The mark of a conversation that continues elsewhere.
static CONTINUED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"continued-in\""));

/// Whether the first line of a transcript marks it as no session of its own.
fn is_sidechain(line: &[u8]) -> bool {
    ["\"isSidechain\":true", "\"isSidechain\": true"]
        .iter()
        .any(|flag| memchr::memmem::find(line, flag.as_bytes()).is_some())
}

/// The title that lies beside a transcript.
fn title_beside(around: Around<'_>) -> Option<String> {
    let path = around.dir.join(around.id.as_str()).join("custom-title.json");
    let title = lite::field(&file::read(&path).ok()?, "customTitle");
    title.filter(|title| !title.is_empty())
}

/// Whether a session is archived. A prompt since then has taken it back.
fn archived(around: Around<'_>, tail: &[u8]) -> Option<bool> {
    #[derive(Deserialize)]
    struct Archived {
        archived: bool,
        #[serde(default)]
        at: String,
    }
    let path = around.dir.join(around.id.as_str()).join("archived.json");
    let mark: Archived = serde_json::from_slice(&file::read(&path).ok()?).ok()?;
    let since = clock::parse(&mark.at);
    let is_later = |line: &[u8]| {
        let sent = lite::field(line, "timestamp").and_then(|text| clock::parse(&text));
        sent.zip(since).is_some_and(|(sent, since)| sent > since)
    };
    let mut prompts = lite::lines(tail).rev().filter(|line| prompt::is_prompt(line));
    let was_prompted = mark.archived && prompts.next().is_some_and(is_later);
    Some(mark.archived && !was_prompted)
}

/// The session that continues the conversation of this transcript, if its last note names one.
pub(crate) fn continued_in(tail: &[u8]) -> Option<SessionId> {
    CONTINUED.find(tail)?;
    for line in lite::lines(tail).rev() {
        if lite::is_note(line, "continued-in") {
            return SessionId::new(&lite::field(line, "continuedInSessionId")?).ok();
        }
        if prompt::is_prompt(line) {
            return None;
        }
    }
    None
}

/// Whether a transcript has any prompt or answer, judged by its ends.
pub(crate) fn holds_messages(lite: Lite<'_>) -> bool {
    let is_message = |line: &[u8]| {
        let kind = lite::field(line, "type");
        kind.is_some_and(|kind| kind == "user" || kind == "assistant")
    };
    lite::lines(lite.head)
        .chain(lite::lines(lite.tail))
        .any(is_message)
}

/// Whether a program or a daemon ran the session, and no person.
pub(crate) fn is_programmatic(head: &[u8]) -> bool {
    let is = |key: &lite::Key, kinds: &[&str]| key.first(head).is_some_and(|said| kinds.contains(&&*said));
    is(&lite::ENTRYPOINT, &["sdk-cli", "sdk-ts", "sdk-py"])
        || is(&lite::SESSION_KIND, &["daemon", "daemon-worker"])
}

impl Sessions {
    /// The metadata of one session: of the one in `dir` or its worktrees if `dir` is given, else of the newest copy in any project.
    /// `None` if there is no such session, or it has nothing to show, such as a transcript without a prompt.
    ///
    /// # Errors
    /// When the transcript cannot be read.
    pub fn info(&self, id: &SessionId, dir: Option<&Path>) -> Result<Option<SessionInfo>> {
        let file = match self.locate(id, dir) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        file.info()
    }
}

impl SessionFile {
    /// The metadata of the session. `None` if it has nothing to show, or is no session of its own.
    ///
    /// # Errors
    /// When the transcript cannot be read.
    pub fn info(&self) -> Result<Option<SessionInfo>> {
        let mut room = Room::default();
        let around = Around {
            id: &self.id,
            dir: self.project_dir(),
            project: self.project.as_deref(),
            has_more: true,
        };
        let lite = room.read(&self.path).map_err(Error::io("read", &self.path))?;
        Ok(lite.and_then(|lite| SessionInfo::of(around, lite)))
    }
}
