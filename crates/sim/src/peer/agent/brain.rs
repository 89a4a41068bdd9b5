//! The model of a simulated agent.

use std::time::Duration;

use serde_json::Value;

use super::act::Act;
use crate::script::response::Block;
use crate::script::{ApiError, Reply, ResponsePace, Usage};

/// Plays the model: returns the next reply, each time that a real agent would call the API.
///
/// Any `FnMut(&ModelRequest) -> Reply` is a brain.
pub trait Brain: Send {
    /// The response to one request.
    fn reply(&mut self, ask: &ModelRequest) -> Reply;
}

impl<F: FnMut(&ModelRequest) -> Reply + Send> Brain for F {
    fn reply(&mut self, ask: &ModelRequest) -> Reply {
        self(ask)
    }
}

/// A request to the model.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The text of the turn's prompt, the last one if several were merged; empty if background work woke the turn.
    pub prompt: String,
    /// The texts of all prompts of the turn, without those that were folded in.
    pub prompts: Vec<String>,
    /// Which request of the turn this is, from 0.
    pub round: usize,
    /// Which turn of the session this is, from 0.
    pub turn: usize,
    /// The results of the tool calls of the response before.
    pub tool_results: Vec<CallResult>,
    /// Prompts that were folded in since the request before.
    pub folded: Vec<String>,
    /// What hooks have added since the request before.
    pub context: Vec<String>,
    /// Whether finished background work woke the turn.
    pub woken: bool,
    /// Whether another process began the turn, in which a hook deferred a call. The prompt, the round and the result of that
    /// call are those of the whole turn, in its first request here.
    pub continued: bool,
    /// The tags of commands and subagents in the background that have ended since the request before.
    pub(crate) woken_by: Vec<u64>,
    /// The requested model.
    pub model: String,
    /// The tools that the model may call.
    pub tools: Vec<String>,
    /// The working directory.
    pub cwd: String,
    /// The home directory of the user.
    pub home: String,
    /// The subagent that calls the model; none for the main agent.
    pub agent: Option<AgentInfo>,
    /// How many prompts and answers the conversation had before this turn, with those of a session that was resumed.
    pub history: usize,
    /// Whether the session was resumed, continued or forked.
    pub resumed: bool,
    /// The system prompt that the host has set in the place of the CLI's own.
    pub system_prompt: Option<String>,
    /// The host's addition to the system prompt.
    pub appended_prompt: Option<String>,
    /// How many thinking tokens the host allows, if it set a limit; 0 turns thinking off.
    pub max_thinking_tokens: Option<u64>,
    /// How many lines had gone through when the turn began.
    pub(crate) seen: usize,
}

/// A subagent that calls the model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentInfo {
    /// The id of the subagent, which is also that of its task.
    pub id: String,
    /// The subagent's `subagent_type`.
    pub kind: String,
    /// What the subagent is to do, in a few words.
    pub description: String,
    /// The tool call that started it.
    pub tool_use_id: String,
    /// Whether the subagent was started in the background.
    pub background: bool,
    /// 1 if the main agent started it, 2 if such an agent did, and so on.
    pub depth: u32,
    /// The tag that the reply gave it.
    pub(crate) tag: Option<u64>,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CallResult {
    /// The tool's name.
    pub name: String,
    /// The content that the model reads.
    pub content: Value,
    /// Whether the tool failed, or was refused.
    pub is_error: bool,
}

/// A response of the model, with the handling of its tool calls.
#[derive(Debug, Default)]
pub(super) struct ModelResponse {
    pub(super) blocks: Vec<Block>,
    /// The handling of the response's tool calls, in order.
    pub(super) calls: Vec<CallPlan>,
    /// How fast the response comes; all at once unless given.
    pub(super) pace: Option<ResponsePace>,
    /// The faults before the response succeeds, in order.
    pub(super) faults: Vec<ResponseFault>,
    /// Whether the response stays open for ever once its content is out.
    pub(super) hang: bool,
    /// What breaks the response off in its last block, if something does.
    pub(super) breaks: Option<FaultKind>,
    /// The stop reason of the response; `tool_use` or `end_turn`, as the blocks demand, unless given.
    pub(super) stop_reason: Option<String>,
    pub(super) usage: Usage,
    /// The cost of the response in US dollars, if that is not the list price of its tokens.
    pub(super) cost: Option<f64>,
    /// The side effects of the response behind its faults, each before the block of that index.
    pub(super) acts: Vec<(usize, Act)>,
}

impl ModelResponse {
    /// Lets it fail like this so often, where it stands now, before it succeeds.
    pub(super) fn fail(&mut self, kind: FaultKind, times: u32) {
        self.faults.push(ResponseFault {
            kind,
            times,
            came: Vec::new(),
            acts: std::mem::take(&mut self.acts),
        });
    }

    /// Whether the block of this index has no end: the response stalls or breaks off in it.
    pub(super) fn stays_open_at(&self, index: usize) -> bool {
        index + 1 == self.blocks.len() && (self.hang || self.breaks.is_some())
    }

    /// The stop reason of the response: the given one, or the one that its blocks demand.
    pub(super) fn stop_reason(&self) -> &str {
        match &self.stop_reason {
            Some(reason) => reason,
            None if self.blocks.iter().any(Block::is_tool_use) => "tool_use",
            None => "end_turn",
        }
    }
}

/// Something that goes wrong before a response succeeds.
#[derive(Debug)]
pub(super) struct ResponseFault {
    pub(super) kind: FaultKind,
    /// How often the fault happens, one after the other.
    pub(super) times: u32,
    /// What had come of the response when it broke off: at most one block, which is not complete.
    pub(super) came: Vec<Block>,
    /// The side effects that come before the fault, each before the block of that index, once however often the fault happens.
    pub(super) acts: Vec<(usize, Act)>,
}

/// What can go wrong with a request to the model.
#[derive(Debug, Clone)]
pub(super) enum FaultKind {
    /// An HTTP error.
    Status(ApiError),
    /// An `error` event of this type in the stream.
    SseError(String),
    /// The connection is closed before a byte was sent.
    Drop,
    /// The connection is closed in the middle of the response.
    Cut,
}

impl FaultKind {
    /// Whether the fault breaks off a response that has begun.
    pub(super) const fn breaks_off(&self) -> bool {
        matches!(self, Self::SseError(_) | Self::Cut)
    }
}

/// The handling of a tool call, once permission is granted.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum CallPlan {
    /// The tool is run, see [`real_tools`](super::Builder::real_tools).
    #[default]
    Run,
    /// The tool is run for real.
    RunReal,
    /// The tool is pretended.
    RunSimulated,
    /// The tool is run, and a subagent that it starts has this tag.
    RunTagged(u64),
    /// The call has this result.
    Outcome(ToolOutcome),
    /// A command that takes its time; for calls of `Bash`, in the background too.
    Command {
        /// How long the command runs.
        after: Duration,
        /// The output of the command.
        output: String,
        /// The exit code of the command.
        code: i32,
        /// The tag of the command in [`ModelRequest::woken_by`].
        tag: u64,
    },
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolOutcome {
    /// The content that the model reads: a text or content blocks.
    pub content: Value,
    /// Whether the tool failed; missing in the result unless given.
    pub is_error: Option<bool>,
    /// The structured result for the host, in `tool_use_result`.
    pub details: Value,
}

impl ToolOutcome {
    /// A success with this text.
    pub fn text(text: impl Into<String>) -> Self {
        let text = Value::String(text.into());
        Self {
            details: text.clone(),
            content: text,
            is_error: None,
        }
    }

    /// A failure with this text.
    pub fn error(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            details: Value::String(format!("Error: {text}")),
            content: Value::String(text),
            is_error: Some(true),
        }
    }

    /// Sets the structured result for the host.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }
}
