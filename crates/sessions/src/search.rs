//! Searches all sessions for a text, with filters.
//!
//! A line that cannot have the text is skipped without being decoded, and several threads read the files; the
//! hits come lazily and in a fixed order, the most recently written session first.

mod hits;
mod meter;
mod needle;
mod scan;
mod session;
mod texts;

#[cfg(test)]
mod tests;

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

pub use hits::Hits;
pub use texts::ConversationPart;

use crate::error::Result;
use crate::id::AgentId;
use crate::place::Sessions;
use crate::progress::Progress;
use crate::read::SessionInfo;
use crate::record::Position;

/// What to look for, and where. Every filter that is set has to fit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Search {
    /// The text, as it was said: a line break is a line break. Any text has the empty one in it, so that the filters alone choose.
    pub text: String,
    /// Whether upper and lower case differ. False unless it is set. Without case, letters are equal that have the same lower case
    /// letter in Unicode; accents always count, and nothing is normalised.
    pub case_sensitive: bool,
    /// In what parts of conversations; all of them unless it is set.
    pub parts: Vec<ConversationPart>,
    /// Messages too that are not meant to be shown as somebody's words, such as reminders and the summaries of compactions.
    /// False unless it is set.
    pub include_meta: bool,
    /// In what was said in subagents too. False unless it is set.
    pub include_subagents: bool,
    /// Only sessions of the project at this directory.
    pub dir: Option<PathBuf>,
    /// With a `dir` in a git repository: those of the repository's other worktrees too. True unless it is set.
    pub include_worktrees: bool,
    /// Only messages that were recorded on this branch.
    pub branch: Option<String>,
    /// Only messages since then. Transcripts that were not written to since then are not opened.
    pub since: Option<SystemTime>,
    /// Only messages before then.
    pub until: Option<SystemTime>,
    /// Only sessions in which this tool was called, by its whole name.
    pub tool: Option<String>,
    /// Only sessions in which a tool was called for this file: a `file_path`, `notebook_path` or `path` that is this one, or ends in
    /// it behind a separator.
    pub file: Option<String>,
    /// Only sessions with this tag.
    pub tag: Option<String>,
    /// Only sessions that are archived, or only those that are not.
    pub archived: Option<bool>,
    /// Those sessions too that programs (through an SDK or `claude -p`) and daemons ran. True unless it is set.
    pub include_programmatic: bool,
    /// How many hits at most of each session; 0 is all.
    pub per_session: usize,
    /// How many characters of a text are shown before and after what was found. 60 unless it is set.
    pub context: usize,
}

/// A text in which the text was found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Hit {
    /// The session.
    pub session: Arc<SessionInfo>,
    /// The file: the transcript of the session, or of a subagent.
    pub path: Arc<PathBuf>,
    /// The subagent whose transcript it is; none in the main one.
    pub agent: Option<AgentId>,
    /// The message: its `uuid`, as [`SessionMessage`](crate::SessionMessage) has it.
    pub uuid: Option<String>,
    /// Where in the file the line of the message is.
    pub position: Position,
    /// When the message was recorded, as ISO 8601.
    pub timestamp: Option<String>,
    /// What part of the conversation it is.
    pub part: ConversationPart,
    /// The tool that was called, if it is an input.
    pub tool: Option<String>,
    /// What was found, with some of the text before and after it, as it was said.
    pub snippet: String,
    /// Where in the snippet it is that was found, in bytes; the first of several.
    pub range: Range<usize>,
}

impl Search {
    /// Looks for a text in all that was said in all sessions.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            case_sensitive: false,
            parts: ConversationPart::ALL.to_vec(),
            include_meta: false,
            include_subagents: false,
            dir: None,
            include_worktrees: true,
            branch: None,
            since: None,
            until: None,
            tool: None,
            file: None,
            tag: None,
            archived: None,
            include_programmatic: true,
            per_session: 0,
            context: 60,
        }
    }

    /// Sets whether upper and lower case differ.
    pub fn case_sensitive(mut self, differ: bool) -> Self {
        self.case_sensitive = differ;
        self
    }

    /// Looks only in these parts of conversations.
    pub fn parts(mut self, parts: impl IntoIterator<Item = ConversationPart>) -> Self {
        self.parts = parts.into_iter().collect();
        self
    }

    /// Sets whether messages count too that are not meant to be shown as somebody's words.
    pub fn include_meta(mut self, include: bool) -> Self {
        self.include_meta = include;
        self
    }

    /// Sets whether what was said in subagents counts too.
    pub fn include_subagents(mut self, include: bool) -> Self {
        self.include_subagents = include;
        self
    }

    /// Looks only in sessions of the project at this directory.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Sets whether sessions of the repository's other worktrees count too.
    pub fn include_worktrees(mut self, include: bool) -> Self {
        self.include_worktrees = include;
        self
    }

    /// Looks only at messages that were recorded on this branch.
    pub fn branch(mut self, branch: impl Into<String>) -> Self {
        self.branch = Some(branch.into());
        self
    }

    /// Looks only at messages since then.
    pub fn since(mut self, time: SystemTime) -> Self {
        self.since = Some(time);
        self
    }

    /// Looks only at messages before then.
    pub fn until(mut self, time: SystemTime) -> Self {
        self.until = Some(time);
        self
    }

    /// Looks only in sessions in which this tool was called.
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.tool = Some(name.into());
        self
    }

    /// Looks only in sessions in which a tool was called for this file.
    pub fn file(mut self, path: impl Into<String>) -> Self {
        self.file = Some(path.into());
        self
    }

    /// Looks only in sessions with this tag.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
        self
    }

    /// Looks only in sessions that are archived, or only in those that are not.
    pub fn archived(mut self, archived: bool) -> Self {
        self.archived = Some(archived);
        self
    }

    /// Sets whether sessions that programs and daemons ran count too.
    pub fn include_programmatic(mut self, include: bool) -> Self {
        self.include_programmatic = include;
        self
    }

    /// Tells so many hits of each session at most; 0 is all.
    pub fn per_session(mut self, hits: usize) -> Self {
        self.per_session = hits;
        self
    }

    /// Shows so many characters before and after what was found.
    pub fn context(mut self, characters: usize) -> Self {
        self.context = characters;
        self
    }
}

impl Sessions {
    /// Searches the sessions that [`Sessions::list`] would list: those that were written to last first, and each from its beginning,
    /// its subagents behind it. There is one hit for each text (a prompt, a block of an answer, a text in the input of a tool) that
    /// has the text in it. The whole of each transcript is searched, also what a compaction or a rewind left behind.
    ///
    /// The hits are found by up to eight threads, which go a little ahead of what is asked for, and stop when the [`Hits`] are
    /// dropped.
    ///
    /// ```no_run
    /// use outrigger_sessions::Sessions;
    /// use outrigger_sessions::search::{ConversationPart, Search};
    ///
    /// # fn main() -> outrigger_sessions::Result<()> {
    /// let search = Search::new("flaky test").parts([ConversationPart::Prompt, ConversationPart::Answer]).tool("Edit");
    /// for hit in Sessions::from_env()?.search(&search)?.take(20) {
    ///     let hit = hit?;
    ///     println!("{}: {}", hit.session.session_id, hit.snippet);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the directory of all projects is there and cannot be read, or no thread can be begun.
    pub fn search(&self, search: &Search) -> Result<Hits> {
        Hits::of(self, search, None)
    }

    /// As [`search`](Self::search), and tells `observe` how far it is, from the threads that search, one at a time. Those wait
    /// meanwhile, so it should be short. If it breaks, the search stops, and the last of the hits is an [`Error::Stopped`].
    ///
    /// The threads go no more than a little ahead of the hits that are taken. The total has the transcripts that are looked at, and
    /// those of subagents if they are.
    ///
    /// [`Error::Stopped`]: crate::Error::Stopped
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn search_observed(
        &self,
        search: &Search,
        observe: impl FnMut(Progress) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Hits> {
        Hits::of(self, search, Some(Box::new(observe)))
    }
}
