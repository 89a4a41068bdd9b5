//! The model of a simulated agent.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use super::act::Act;
use crate::directive::{self, Block, Response};
use crate::flaw::Flaw;
use crate::running::Line;

/// Plays the model: returns the next reply, each time that a real agent would call the API.
///
/// Any `FnMut(&Ask) -> Reply` is a brain.
pub trait Brain: Send {
    /// The response to one request.
    fn reply(&mut self, ask: &Ask) -> Reply;

    /// The process has ended, with these lines. Returns what was wrong with them.
    fn end(&mut self, _: &[Line]) -> Vec<Flaw> {
        Vec::new()
    }
}

impl<F: FnMut(&Ask) -> Reply + Send> Brain for F {
    fn reply(&mut self, ask: &Ask) -> Reply {
        self(ask)
    }
}

/// One request to the model.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Ask {
    /// The text of the turn's prompt, the last one if several were merged; empty if background work woke the turn.
    pub prompt: String,
    /// The texts of all prompts of the turn, without those that were folded in.
    pub prompts: Vec<String>,
    /// Which request of the turn this is, from 0.
    pub round: usize,
    /// Which turn of the session this is, from 0.
    pub turn: usize,
    /// The results of the tool calls of the response before.
    pub tool_results: Vec<ToolResult>,
    /// Prompts that were folded in since the request before.
    pub folded: Vec<String>,
    /// What hooks have added since the request before.
    pub context: Vec<String>,
    /// Whether finished background work woke the turn.
    pub woken: bool,
    /// Whether another process began the turn, in which a hook deferred a call. The prompt, the round and the result of that
    /// call are those of the whole turn, in its first request here.
    pub continued: bool,
    /// The tag of the command or the subagent that woke the turn, see [`CallPlan`].
    pub woken_by: Option<u64>,
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

/// The kind of the agent that answers a side question.
pub(crate) const SIDE_QUESTION: &str = "side_question";

/// A subagent that calls the model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentInfo {
    /// Its id, which is also that of its task.
    pub id: String,
    /// Its `subagent_type`.
    pub kind: String,
    /// What it is to do, in a few words.
    pub description: String,
    /// The tool call that started it.
    pub tool_use_id: String,
    /// Whether it was started in the background.
    pub background: bool,
    /// 1 if the main agent started it, 2 if such an agent did, and so on.
    pub depth: u32,
    /// The tag that the reply gave it, see [`CallPlan::RunTagged`].
    pub tag: Option<u64>,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The tool's name.
    pub name: String,
    /// The content that the model reads.
    pub content: Value,
    /// Whether it failed, or was refused.
    pub is_error: bool,
}

/// A response of the model, with the handling of its tool calls.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Reply {
    /// The response.
    pub response: Response,
    /// The handling of its tool calls, in order; a tool without an entry is run.
    pub calls: Vec<CallPlan>,
    /// The gate that it waits for before it begins.
    pub gate: Option<Gate>,
    /// Its cost in US dollars, if that is not the list price of its tokens.
    pub(crate) cost: Option<f64>,
    /// Its side effects, each before the block of that index.
    pub(crate) acts: Vec<(usize, Act)>,
}

/// The handling of a tool call, once permission is granted.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub enum CallPlan {
    /// The tool is run, see [`real_tools`](super::Builder::real_tools).
    #[default]
    Run,
    /// The tool is run for real.
    RunReal,
    /// The tool is pretended.
    RunSimulated,
    /// The tool is run, and a subagent that it starts has this tag: see [`AgentInfo::tag`].
    RunTagged(u64),
    /// The call has this result.
    Outcome(Outcome),
    /// A command that takes its time; for calls of `Bash`, in the background too.
    Command {
        /// How long it runs.
        after: Duration,
        /// Its output.
        output: String,
        /// Its exit code.
        code: i32,
        /// Its tag in [`Ask::woken_by`].
        tag: u64,
    },
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// The content that the model reads: a text or content blocks.
    pub content: Value,
    /// Whether it failed; missing in the result unless given.
    pub is_error: Option<bool>,
    /// The structured result for the host, in `tool_use_result`.
    pub details: Value,
}

impl Outcome {
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

impl Reply {
    /// Text.
    pub fn say(text: impl Into<String>) -> Self {
        Response::say(text).into()
    }

    /// Thinking, to be followed by [`and_say`](Self::and_say) or [`and_tool`](Self::and_tool).
    pub fn think(text: impl Into<String>) -> Self {
        Response::think(text).into()
    }

    /// A tool call; its result is that of the tool, or the next [`outcome`](Self::outcome).
    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Response::tool(name, input).into()
    }

    /// A failure of the API with this HTTP status.
    pub fn api_error(status: u16, message: impl Into<String>) -> Self {
        Response::error(status, message).into()
    }

    /// A response that never begins.
    pub fn stall() -> Self {
        Response::stall().into()
    }

    /// Adds text.
    #[must_use]
    pub fn and_say(mut self, text: impl Into<String>) -> Self {
        self.response.blocks.push(Block::Text(text.into()));
        self
    }

    /// Adds a tool call.
    #[must_use]
    pub fn and_tool(mut self, name: impl Into<String>, input: Value) -> Self {
        self.response.blocks.push(Block::ToolUse {
            name: name.into(),
            input,
        });
        self
    }

    /// Sets the result of the next tool call without one, instead of running the tool.
    #[must_use]
    pub fn outcome(mut self, outcome: Outcome) -> Self {
        self.calls.push(CallPlan::Outcome(outcome));
        self
    }

    /// Sets its cost, in US dollars; the list price of its tokens unless set.
    #[must_use]
    pub fn cost_usd(mut self, cost: f64) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Lets it begin only when the gate is open.
    #[must_use]
    pub fn after(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }
}

impl From<Response> for Reply {
    fn from(response: Response) -> Self {
        Self {
            response,
            ..Self::default()
        }
    }
}

/// Holds a reply back until the test opens it. Clones are the same gate.
#[derive(Clone)]
pub struct Gate {
    open: Arc<watch::Sender<bool>>,
    reached: Arc<watch::Sender<bool>>,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self {
            open: Arc::new(watch::Sender::new(false)),
            reached: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Opens it for good.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Waits until a reply stands before it.
    pub async fn reached(&self) {
        // The sender lives as long as `self`.
        let _ = self.reached.subscribe().wait_for(|reached| *reached).await;
    }

    pub(super) async fn pass(&self) {
        self.reached.send_replace(true);
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gate(open: {})", *self.open.borrow())
    }
}

/// Follows the [directives](crate::directive) in the prompts.
///
/// A prompt without directives is answered `ok:` and its beginning. A turn whose prompt has directives starts them over; the
/// requests that follow continue them, and so does a turn that background work started. Prompts that were folded in count
/// only once the directives before them have run out. Further requests are answered `ok`. Each subagent follows its own
/// prompt. A turn that another process began goes on with the directives that are left of its prompt.
#[derive(Debug, Default)]
pub(super) struct Directives {
    /// The remaining responses, by subagent.
    left: HashMap<Option<String>, VecDeque<Response>>,
}

impl Directives {
    fn load(&mut self, key: &Option<String>, prompt: &str) -> Option<Reply> {
        let left = self.left.entry(key.clone()).or_default();
        match directive::parse(prompt) {
            Err(error) => Some(Reply::api_error(400, error.to_string())),
            Ok(responses) if responses.is_empty() => {
                left.clear();
                let prompt = if prompt.is_empty() { "(no content)" } else { prompt };
                let beginning: String = prompt.chars().take(60).collect();
                Some(Reply::say(format!("ok: {beginning}")))
            }
            Ok(responses) => {
                *left = responses.into();
                None
            }
        }
    }
}

impl Brain for Directives {
    fn reply(&mut self, ask: &Ask) -> Reply {
        let key = ask.agent.as_ref().map(|agent| agent.id.clone());
        let exhausted = self.left.get(&key).is_none_or(VecDeque::is_empty);
        if ask.continued {
            if let Some(reply) = self.load(&key, &ask.prompt) {
                return reply;
            }
            if let Some(left) = self.left.get_mut(&key) {
                left.drain(..ask.round.min(left.len()));
            }
        } else if ask.round == 0 && !ask.woken {
            if let Some(reply) = self.load(&key, &ask.prompt) {
                return reply;
            }
        } else if let (true, Some(folded)) = (exhausted, ask.folded.last())
            && let Some(reply) = self.load(&key, folded)
        {
            return reply;
        }
        match self.left.get_mut(&key).and_then(VecDeque::pop_front) {
            Some(response) => response.into(),
            None => Reply::say("ok"),
        }
    }
}

/// Gives replies in order, and `ok` once they have run out.
#[derive(Debug)]
pub(super) struct Replies(pub(super) VecDeque<Reply>);

impl Brain for Replies {
    fn reply(&mut self, _: &Ask) -> Reply {
        self.0.pop_front().unwrap_or_else(|| Reply::say("ok"))
    }
}
