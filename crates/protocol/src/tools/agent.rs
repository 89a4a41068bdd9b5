//! `Agent` (earlier `Task`): hands a task to a subagent.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/agent.toml: change that instead.

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// Input of `Agent`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AgentInput {
    /// What the task is, in a few words.
    pub description: String,
    /// The task itself.
    pub prompt: String,
    /// The type of the agent that gets the task.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub subagent_type: Option<String>,
    /// The model to use instead of the agent's own.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub model: Option<AgentModel>,
    /// How hard the agent is to think.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<EffortLevel>,
    /// Whether the model goes on without waiting for the result. The CLI takes absence as true.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub run_in_background: Option<bool>,
    /// A name by which the running agent can be sent messages.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub name: Option<String>,
    /// The CLI ignores the team; older CLIs used it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub team_name: Option<String>,
    /// A permission mode. The CLI ignores the mode; older CLIs used it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mode: Option<String>,
    /// Where the agent works, if not in the session's own directory.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub isolation: Option<AgentIsolation>,
}

impl AgentInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(description: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            description: description.into(),
            prompt: prompt.into(),
            subagent_type: None,
            model: None,
            effort: None,
            run_in_background: None,
            name: None,
            team_name: None,
            mode: None,
            isolation: None,
        }
    }
}

crate::open_enum! {
    /// A model family an `Agent` call may ask for.
    pub enum AgentModel {
        /// The Sonnet family.
        Sonnet = "sonnet",
        /// The Opus family.
        Opus = "opus",
        /// The Haiku family.
        Haiku = "haiku",
        /// The Fable family.
        Fable = "fable",
    }
}

crate::open_enum! {
    /// How hard a model is to think, as a model asks for it. What we ask for is [`Effort`](crate::shared::Effort).
    pub enum EffortLevel {
        /// The least.
        Low = "low",
        /// Between low and high.
        Medium = "medium",
        /// More than most tasks need.
        High = "high",
        /// More than high.
        Xhigh = "xhigh",
        /// The most the model has.
        Max = "max",
    }
}

crate::open_enum! {
    /// Where a subagent works.
    pub enum AgentIsolation {
        /// In a temporary git worktree.
        Worktree = "worktree",
        /// In a cloud environment.
        Remote = "remote",
    }
}

crate::wire_enum! {
    /// Output of `Agent`.
    pub enum AgentOutput by "status" {
        /// The agent ran to the end in the foreground.
        "completed" => Completed(Box<AgentCompleted>),
        /// The agent runs on in the background.
        "async_launched" => AsyncLaunched(AgentAsyncLaunched),
        /// The agent runs in the cloud.
        "remote_launched" => RemoteLaunched(AgentRemoteLaunched),
    }
}

/// An agent that ran to the end.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AgentCompleted {
    /// The agent's id, which the agent's messages have.
    pub agent_id: String,
    /// The type of the agent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub agent_type: Option<String>,
    /// The answer of the agent.
    pub content: Vec<AgentText>,
    /// The task of the agent.
    pub prompt: String,
    /// The model of the agent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub resolved_model: Option<String>,
    /// All models of the agent, in order, if the model changed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub models_used: Option<Vec<String>>,
    /// How many tools the agent used.
    pub total_tool_use_count: u64,
    /// How long the agent ran, in milliseconds.
    pub total_duration_ms: f64,
    /// Tokens of the agent's last request and answer.
    pub total_tokens: u64,
    /// The API's token usage of the agent's last request, as it came; decodes to [`Usage`](crate::shared::Usage).
    pub usage: RawJson,
    /// The names of the tools that the agent used.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub tools_used: Option<Vec<String>>,
    /// What the agent's tools did, in numbers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub tool_stats: Option<AgentToolStats>,
    /// The worktree of the agent, if the worktree was kept.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub worktree_path: Option<String>,
    /// The branch of that worktree.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub worktree_branch: Option<String>,
    /// Whether the caller can send the agent more messages. Seen on the wire, not documented.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub can_continue_agent: Option<bool>,
    /// Count of notes that the CLI added for the agent. Seen on the wire, not documented.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub harness_note_count: Option<u64>,
    /// Count of trailers that the CLI added for the agent. Seen on the wire, not documented.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub harness_tail_count: Option<u64>,
    /// Hash over the CLI's additions. Seen on the wire, not documented.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub harness_section_hash: Option<String>,
}

/// One text of an agent's answer.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AgentText {
    /// Always `text`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text.
    pub text: String,
    /// The API's citations, if any.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub citations: Option<RawJson>,
}

/// What the tools of an agent did.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AgentToolStats {
    /// Files read.
    pub read_count: u64,
    /// Searches.
    pub search_count: u64,
    /// Shell commands.
    pub bash_count: u64,
    /// Files edited.
    pub edit_file_count: u64,
    /// Lines added by edits.
    pub lines_added: u64,
    /// Lines removed by edits.
    pub lines_removed: u64,
    /// Uses of any other tool.
    pub other_tool_count: u64,
    /// Frames taken, by tools that take pictures.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub frame_count: Option<u64>,
}

/// An agent that runs on in the background.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AgentAsyncLaunched {
    /// The agent's id, which is also the id of the task.
    pub agent_id: String,
    /// What the task is, in a few words.
    pub description: String,
    /// The task itself.
    pub prompt: String,
    /// A file with the progress.
    pub output_file: String,
    /// Always true when present.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub is_async: Option<bool>,
    /// The model of the agent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub resolved_model: Option<String>,
    /// All models of the agent before the agent went to the background, in order.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub models_used: Option<Vec<String>>,
    /// Whether the caller has a tool to read `outputFile` with.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub can_read_output_file: Option<bool>,
    /// Whether the caller can send the agent more messages. Seen on the wire, not documented.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub can_continue_agent: Option<bool>,
    /// Whether the agent went to the background because nobody answered its permission request.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub waits_at_permission_prompt: Option<bool>,
    /// Whether another agent that may write works in the same directory.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub shares_cwd: Option<bool>,
}

/// An agent that runs in the cloud.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AgentRemoteLaunched {
    /// The id of the task.
    pub task_id: String,
    /// The page that shows the agent's session.
    pub session_url: String,
    /// What the task is, in a few words.
    pub description: String,
    /// The task itself.
    pub prompt: String,
    /// A file with the progress.
    pub output_file: String,
}
