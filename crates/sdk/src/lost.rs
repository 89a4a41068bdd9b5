//! What ended together with a process.

use std::collections::BTreeMap;

use outrigger_protocol::Frame;

use crate::ledger::Task;
use crate::prompt::Prompt;

/// What ended together with a process.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Lost {
    /// The prompts that were open, in the order in which they were accepted.
    pub prompts: Vec<LostPrompt>,
    /// The background work, subagents and tasks that ran.
    pub tasks: Vec<Task>,
    /// The CLI requests that were open: permissions, hooks, …, each as it came.
    pub questions: Vec<Frame>,
    /// The MCP servers set at run time that failed in the new process, with the CLI's words.
    pub mcp_servers: BTreeMap<String, String>,
    /// The control requests that had changed something about the old process and were not repeated, by subtype: `set_cwd`,
    /// `register_repo_root`, …
    pub not_repeated: Vec<String>,
}

/// A prompt without an outcome.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LostPrompt {
    /// The id under which it was sent: [`Turn::id`](crate::Turn::id).
    pub id: String,
    /// The prompt, to be sent again if that is right. It gets a new id then: the CLI drops one that it has seen.
    pub prompt: Prompt,
    /// How far the prompt had come.
    pub progress: PromptProgress,
}

/// How far a prompt had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PromptProgress {
    /// The prompt was not written to the process: sending it again repeats nothing.
    NotSent,
    /// The prompt was written, or was about to be, and the CLI had not said that its turn began: the prompt waited in the CLI's queue, which
    /// ended with the process.
    Sent,
    /// The prompt's turn had begun, and tools may have run. The prompt is part of the conversation, unless the process was killed before it
    /// was written down, which the CLI does a moment later.
    Begun,
}
