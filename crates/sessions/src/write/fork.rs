//! A session that begins as another one stood.

use std::io::{Read as _, Seek as _};

use super::plan::Plan;
use crate::draft::Draft;
use crate::error::{Error, Result};
use crate::file;
use crate::id::SessionId;
use crate::place::{SessionFile, Sessions};
use crate::record::{Record, RecordLine, Records};

/// How a session is to be forked. By default with all of its messages, under its own title with ` (fork)` behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForkOptions {
    /// The `uuid` of the last message of the fork.
    ///
    /// With the summary of a compaction, the messages that the compaction kept behind it are not copied. With the boundary of one, or
    /// with the CLI's notes between the boundary and the summary, the fork ends before the boundary. A boundary without a summary,
    /// as rewinding behind a compaction writes, is kept like any other message.
    pub up_to_message_id: Option<String>,
    /// The title; space around it is taken off, and an empty one is none.
    pub title: Option<String>,
    /// The id of the fork; random if unset.
    pub id: Option<SessionId>,
}

impl ForkOptions {
    /// All messages, and a title made of the session's own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`up_to_message_id`](Self::up_to_message_id).
    pub fn up_to_message_id(mut self, uuid: impl Into<String>) -> Self {
        self.up_to_message_id = Some(uuid.into());
        self
    }

    /// Sets [`title`](Self::title).
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets [`id`](Self::id).
    pub fn id(mut self, id: SessionId) -> Self {
        self.id = Some(id);
        self
    }
}

impl SessionFile {
    /// Copies the conversation into a new, independent session of the same project. This one is unchanged.
    ///
    /// All messages get new ids, linked as the old ones are, and have their origin in `forkedFrom`. Records of a team or
    /// of a running process are not copied, nor are subagents' transcripts, the undo history of files, and lines that cannot be read.
    /// The last message gets the current time.
    ///
    /// The official SDKs make a message whose parent is missing the first one. This keeps such a parent: the
    /// CLI then uses the message before it in the file as the parent, and so keeps the history.
    ///
    /// The transcript is read twice, one record in memory at a time, up to its end at the beginning.
    ///
    /// # Errors
    /// When the session has no messages, or not the given last one; when the project has a session of the given id; when a file
    /// cannot be read or written. Nothing is left behind then.
    pub fn fork(&self, options: &ForkOptions) -> Result<SessionFile> {
        let id = options.id.clone().unwrap_or_else(SessionId::random);
        let mut source = file::open(&self.path).map_err(Error::io("open", &self.path))?;
        let length = source.metadata().map_err(Error::io("read", &self.path))?.len();
        let mut plan = Plan::new(self.id.clone(), id.clone());
        for record in readable(Records::new((&source).take(length))) {
            plan.survey(&record?);
        }
        plan.decide(options)?;
        source.rewind().map_err(Error::io("read", &self.path))?;

        let path = self.path.with_file_name(id.file_name());
        let mut draft = Draft::of(&path)?;
        if let Some(first) = plan.first_line() {
            draft.line(&first)?;
        }
        for record in readable(Records::new((&source).take(length))) {
            if let Some(line) = plan.rewrite(&record?) {
                draft.line(&line)?;
            }
        }
        for line in plan.last_lines() {
            draft.line(&line)?;
        }
        draft.create()?;
        let project = self.project.as_deref();
        SessionFile::at(&id, path.clone(), project).ok_or_else(|| Error::gone(&path))
    }
}

impl Sessions {
    /// Forks a session: [`SessionFile::fork`] where [`find`](Self::find) finds it. Returns the new session's id.
    ///
    /// # Errors
    /// As these two.
    pub fn fork(&self, id: &SessionId, options: &ForkOptions) -> Result<SessionId> {
        Ok(self.find(id)?.fork(options)?.id)
    }
}

/// What of a transcript can be read.
fn readable<R: std::io::Read>(records: Records<R>) -> impl Iterator<Item = Result<Record>> {
    records.filter_map(|item| match item {
        Ok(RecordLine::Record(record)) => Some(Ok(record)),
        Ok(RecordLine::Damaged(_)) => None,
        Err(error) => Some(Err(error)),
    })
}

/// The title that a forked session gets when none is given.
pub(super) fn title_of_fork(title: Option<&str>) -> String {
    match title {
        Some(title) => format!("{title} (fork)"),
        None => "Forked session".to_owned(),
    }
}

#[cfg(test)]
mod tests;
