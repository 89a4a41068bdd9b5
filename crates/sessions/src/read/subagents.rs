//! The subagents of a session, and their messages.

use std::fs;
use std::path::{Path, PathBuf};

use outrigger_protocol::RawJson;
use serde::Serialize;

use super::messages::{ConversationSelector, MessageOptions, Messages};
use crate::error::{Error, Result};
use crate::file;
use crate::id::{AgentId, SessionId};
use crate::place::{SessionFile, Sessions};
use crate::record::{fields, last, text_of};

/// Directories are not looked through any deeper; links may go in circles.
const DEEPEST: usize = 16;

/// A subagent of a session.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Subagent {
    /// The subagent.
    pub agent_id: AgentId,
    /// The call of the tool that began it.
    pub tool_use_id: Option<String>,
    /// The subagent that began it; none if that was the main conversation.
    pub parent_agent_id: Option<String>,
    /// What kind of subagent it is.
    pub agent_type: Option<String>,
    /// The subagent's task, in a few words.
    pub description: Option<String>,
    /// All that is recorded of it, as it is written.
    #[serde(skip)]
    pub metadata: Option<RawJson>,
    /// The subagent's transcript.
    #[serde(skip)]
    pub path: PathBuf,
}

impl Subagent {
    fn at(agent_id: AgentId, path: PathBuf) -> Self {
        let text = file::read_text(&path.with_extension("meta.json")).unwrap_or_default();
        let metadata = fields(&text).unwrap_or_default();
        let said = |name| last(&metadata, name).and_then(text_of);
        Self {
            agent_id,
            tool_use_id: said("toolUseId"),
            parent_agent_id: said("parentAgentId"),
            agent_type: said("agentType"),
            description: said("description"),
            metadata: RawJson::from_text(text)
                .ok()
                .filter(|metadata| metadata.get().starts_with('{')),
            path,
        }
    }

    /// The subagent's messages, from its prompt to the last one of its file. The options `dir` and `include_system_messages` have
    /// no effect.
    ///
    /// # Errors
    /// When its transcript cannot be read.
    pub fn messages(&self, options: &MessageOptions) -> Result<Messages> {
        let part = ConversationSelector::Subagent {
            parent_tool_use_id: self.tool_use_id.clone(),
            parent_agent_id: self.parent_agent_id.clone(),
        };
        Messages::open(&self.path, part, options)
    }
}

impl SessionFile {
    /// The transcripts of the session's subagents, without their metadata.
    pub(crate) fn subagent_paths(&self) -> Vec<(AgentId, PathBuf)> {
        let mut found = Vec::new();
        collect(&self.subagents_dir(), DEEPEST, &mut found);
        found
    }

    /// The session's subagents, those of its workflows too, in the order of their files' names.
    pub fn subagents(&self) -> Vec<Subagent> {
        self.subagent_paths()
            .into_iter()
            .map(|(id, path)| Subagent::at(id, path))
            .collect()
    }

    /// One of the session's subagents.
    ///
    /// # Errors
    /// [`Error::NoSubagent`] when it is none of them.
    pub fn subagent(&self, id: &AgentId) -> Result<Subagent> {
        let found = self.subagent_paths().into_iter().find(|(found, _)| found == id);
        let (agent_id, path) = found.ok_or_else(|| Error::NoSubagent {
            session: self.id.clone(),
            agent: id.clone(),
            searched: self.subagents_dir(),
        })?;
        Ok(Subagent::at(agent_id, path))
    }
}

/// Collects the transcripts of subagents below a directory.
fn collect(dir: &Path, depth: usize, into: &mut Vec<(AgentId, PathBuf)>) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut entries: Vec<_> = entries.map(|entry| (entry.file_name(), entry.path())).collect();
    entries.sort();
    for (name, path) in entries {
        if path.is_dir() {
            if depth > 0 {
                collect(&path, depth - 1, into);
            }
        } else if let Some(id) = name.to_str().and_then(AgentId::of_file_name)
            && path.is_file()
        {
            into.push((id, path));
        }
    }
}

impl Sessions {
    /// The subagents of a session: of the one in `dir` or its worktrees if `dir` is given, else of the newest copy in any project.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such session.
    pub fn subagents(&self, id: &SessionId, dir: Option<&Path>) -> Result<Vec<Subagent>> {
        Ok(self.locate(id, dir)?.subagents())
    }

    /// The messages of a subagent of a session; `include_system_messages` has no effect.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such session, [`Error::NoSubagent`] when it has no such subagent, or its transcript cannot
    /// be read.
    pub fn subagent_messages(
        &self,
        id: &SessionId,
        agent: &AgentId,
        options: &MessageOptions,
    ) -> Result<Messages> {
        let file = self.locate(id, options.dir.as_deref())?;
        file.subagent(agent)?.messages(options)
    }
}
