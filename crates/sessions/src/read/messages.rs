//! Conversations, message by message.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::iter::FusedIterator;
use std::path::{Path, PathBuf};

use super::chain;
use super::index::{Id, Index, Node, RecordRole};
use super::lite::{field, read_at};
use super::message::SessionMessage;
use crate::error::{Error, Result};
use crate::file;
use crate::id::SessionId;
use crate::place::{SessionFile, Sessions};
use crate::record::{Damage, Position, Record};

/// Which messages to read. The default is all of the user's and the model's, of the newest copy of the session in any project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageOptions {
    /// Look for the session in the project at this directory, and in its worktrees.
    pub dir: Option<PathBuf>,
    /// How many at most; 0 is all.
    pub limit: usize,
    /// How many to skip at the beginning.
    pub offset: usize,
    /// The CLI's own notes too, such as the boundaries of compactions. Not for subagents.
    pub include_system_messages: bool,
}

impl MessageOptions {
    /// All of the user's and the model's.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for the session in the project at this directory, and in its worktrees.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Reads so many at most; 0 is all.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Skips so many at the beginning.
    pub fn offset(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }

    /// Whether the CLI's own notes are read too.
    pub fn include_system_messages(mut self, include: bool) -> Self {
        self.include_system_messages = include;
        self
    }
}

/// The messages of a conversation, in order.
///
/// The list of messages is fixed, and each is read on demand: from either end as an iterator, or by its number. The file
/// stays open, so appends to the conversation, or a replacement of the file, change nothing.
#[derive(Debug)]
pub struct Messages {
    file: File,
    path: PathBuf,
    places: Vec<RecordSpan>,
    /// The messages that the iterator has not returned.
    rest: std::ops::Range<usize>,
    parent_tool_use_id: Option<String>,
    parent_agent_id: Option<String>,
    damage: Vec<Damage>,
    damaged: u64,
}

#[derive(Debug, Clone, Copy)]
struct RecordSpan {
    offset: u64,
    length: u32,
}

impl From<&Node> for RecordSpan {
    fn from(node: &Node) -> Self {
        Self {
            offset: node.offset,
            length: node.length,
        }
    }
}

/// Which conversation of a file.
pub(super) enum ConversationSelector {
    Main,
    Subagent {
        parent_tool_use_id: Option<String>,
        parent_agent_id: Option<String>,
    },
}

impl Messages {
    /// Finds out of which records a conversation is made.
    pub(super) fn open(path: &Path, part: ConversationSelector, options: &MessageOptions) -> Result<Self> {
        let file = file::open(path).map_err(Error::io("open", path))?;
        let mut index = Index::read(&file, path)?;
        let mut messages = Self {
            path: path.to_owned(),
            places: Vec::new(),
            rest: 0..0,
            parent_tool_use_id: None,
            parent_agent_id: None,
            damage: std::mem::take(&mut index.damage),
            damaged: index.damaged,
            file,
        };
        let chain = match part {
            ConversationSelector::Main => {
                let mut failed = None;
                let chain = chain::main(&mut index, &mut |node| {
                    let line = messages.line(node.into());
                    let line = line.map_err(|error| failed.get_or_insert(error).to_string());
                    line.ok()
                        .and_then(|line| field(&line, "timestamp"))
                        .unwrap_or_default()
                });
                if let Some(error) = failed {
                    return Err(error);
                }
                shown_records(&index, chain, options.include_system_messages)
            }
            ConversationSelector::Subagent {
                parent_tool_use_id,
                parent_agent_id,
            } => {
                messages.parent_tool_use_id = parent_tool_use_id;
                messages.parent_agent_id = parent_agent_id;
                let mut chain = chain::subagent(&index);
                chain.retain(|at| matches!(index.node(*at).kind, RecordRole::User | RecordRole::Assistant));
                chain
            }
        };
        let limit = if options.limit == 0 {
            usize::MAX
        } else {
            options.limit
        };
        let page = chain.into_iter().skip(options.offset).take(limit);
        messages.places = page.map(|at| index.node(at).into()).collect();
        messages.rest = 0..messages.places.len();
        Ok(messages)
    }

    /// How many messages there are, including those that the iterator has returned.
    pub fn count_all(&self) -> usize {
        self.places.len()
    }

    /// Reads the message of this number, from 0. `None` if there are not that many.
    ///
    /// # Errors
    /// When the file cannot be read, or has changed since the conversation was opened.
    pub fn get(&self, number: usize) -> Result<Option<SessionMessage>> {
        let Some(place) = self.places.get(number) else {
            return Ok(None);
        };
        let changed = || {
            let text = "it was changed in place since the conversation was looked up in it";
            Error::io("read", &self.path)(io::Error::new(io::ErrorKind::InvalidData, text))
        };
        let position = Position {
            offset: place.offset,
            line: 0,
        };
        let record = Record::read(position, self.line(*place)?).map_err(|_| changed())?;
        let mut message = SessionMessage::of(record).ok_or_else(changed)?;
        message.parent_tool_use_id.clone_from(&self.parent_tool_use_id);
        message.parent_agent_id.clone_from(&self.parent_agent_id);
        Ok(Some(message))
    }

    /// Lines of the file that are no records, and therefore in no conversation; the first thousand of them.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// How many such lines there are.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    fn line(&self, place: RecordSpan) -> Result<Vec<u8>> {
        let mut line = vec![0; place.length as usize];
        let mut read = 0;
        while read < line.len() {
            match read_at(&self.file, &mut line[read..], place.offset + read as u64) {
                Ok(0) => {
                    let text = "it ends before a record that was in it";
                    let error = io::Error::new(io::ErrorKind::UnexpectedEof, text);
                    return Err(Error::io("read", &self.path)(error));
                }
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("read", &self.path)(error)),
            }
        }
        Ok(line)
    }
}

/// What of the chain is handed out.
fn shown_records(index: &Index, mut chain: Vec<u32>, include_system: bool) -> Vec<u32> {
    let mut copied: HashSet<Id> = HashSet::new();
    let ids: HashSet<Id> = if index.copies.is_empty() {
        HashSet::new()
    } else {
        chain.iter().map(|at| index.node(*at).id).collect()
    };
    // A prompt that had queued up was put into a turn unless a prompt follows it: then that is the turn it began.
    let mut is_before_prompt = false;
    let mut in_vain = HashSet::new();
    for at in chain.iter().rev() {
        match index.node(*at).kind {
            RecordRole::User => is_before_prompt = !index.calls.contains_key(at) && !index.node(*at).is_meta,
            RecordRole::Assistant => is_before_prompt = false,
            RecordRole::Queued if is_before_prompt => drop(in_vain.insert(*at)),
            _ => {}
        }
    }
    chain.retain(|at| {
        let node = index.node(*at);
        if node.is_sidechain || node.is_of_team || node.is_hidden {
            return false;
        }
        match node.kind {
            RecordRole::User | RecordRole::Assistant => true,
            RecordRole::System => include_system,
            RecordRole::Queued if in_vain.contains(at) => false,
            // The same prompt may be there twice.
            RecordRole::Queued => match index.copies.get(at) {
                Some(source) => !ids.contains(source) && copied.insert(*source),
                None => true,
            },
            RecordRole::Attachment | RecordRole::Progress => false,
        }
    });
    chain
}

impl Iterator for Messages {
    type Item = Result<SessionMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        let number = self.rest.next()?;
        self.get(number).transpose()
    }

    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        let number = self.rest.nth(n)?;
        self.get(number).transpose()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rest.size_hint()
    }
}

impl DoubleEndedIterator for Messages {
    fn next_back(&mut self) -> Option<Self::Item> {
        let number = self.rest.next_back()?;
        self.get(number).transpose()
    }
}

impl ExactSizeIterator for Messages {}
impl FusedIterator for Messages {}

impl Sessions {
    /// The messages of a session's main conversation, as the CLI would resume it: the parents from the current end of the
    /// conversation, with the parts that compactions kept, with all calls and results of parallel tools, and with
    /// prompts that were folded into running turns. Messages of subagents and teams, and hidden ones, are not included.
    ///
    /// The transcript is read once; some 150 bytes are held for each of its records meanwhile, and 16 for each message
    /// afterwards.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such session, or the transcript cannot be read.
    pub fn messages(&self, id: &SessionId, options: &MessageOptions) -> Result<Messages> {
        self.locate(id, options.dir.as_deref())?.messages(options)
    }
}

impl SessionFile {
    /// The messages of the main conversation; see [`Sessions::messages`]. Of the options, `dir` has no meaning.
    ///
    /// # Errors
    /// When the transcript cannot be read.
    pub fn messages(&self, options: &MessageOptions) -> Result<Messages> {
        Messages::open(&self.path, ConversationSelector::Main, options)
    }
}
