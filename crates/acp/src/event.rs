//! The events of a session, independent of the protocol version.
//!
//! [`reduce`](crate::reduce) makes them from the CLI's frames and a transcript's records. The encoders of `wire` write each for the
//! client's version, and know what the client can show.

mod topic;

use std::path::PathBuf;
use std::sync::Arc;

use outrigger::protocol::RawJson;

pub(crate) use self::topic::Topic;

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum State {
    /// No foreground work. Background work may go on.
    #[default]
    Idle,
    /// The model or one of its tools works.
    Running,
    /// The session waits for the user.
    RequiresAction,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// A message of the user: in a replay, or when another client sent it.
    User(Chunk),
    /// Text of the answer.
    Text(Chunk),
    /// The model's thinking.
    Thought(Chunk),
    /// A new tool call.
    Call(Box<NewToolCall>),
    /// A change of a known tool call.
    CallChanged(Box<CallChange>),
    /// A change of a terminal of the agent.
    Terminal(TerminalChange),
    /// The whole plan.
    Plan(Vec<PlanEntry>),
    /// The whole list of slash commands.
    Commands(Vec<Command>),
    /// The permission mode changed.
    Mode(String),
    /// A config option changed. The session sends all of them.
    ConfigChanged,
    Title(String),
    Usage(Usage),
    /// The conversation is being compacted.
    Compaction(Compaction),
    /// A message for the user outside of the conversation.
    Notice(Notice),
    /// The state of a subagent.
    Subagent(Box<Subagent>),
    /// A subagent of a stored session, before its messages.
    RecordedAgent(Box<RecordedAgent>),
    /// The prompt of a subagent, in a replay.
    AgentPrompt(Box<AgentPrompt>),
    /// The session of a subagent, for the session that it belongs to; see [`children`](crate::children).
    Child(Box<ChildSession>),
    /// The state of such a session.
    ChildState(Box<ChildState>),
    /// A message of one session to another.
    Told(Box<PeerMessage>),
    /// Data for programs: sent as `_meta` or as an extension notification.
    Extra(Box<Extra>),
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chunk {
    /// The id of the text's message: the API's id for messages of the model, the CLI's uuid for messages of the user.
    pub(crate) message_id: Option<Arc<str>>,
    /// The call that started its subagent; `None` for the main conversation.
    pub(crate) parent: Option<Arc<str>>,
    pub(crate) content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// A text in Markdown.
    Text(String),
    /// An image, in base64.
    Image {
        /// The media type.
        media_type: String,
        /// The bytes, in base64.
        data: String,
    },
    /// A URI to fetch or open.
    Link { uri: String, name: String },
}

/// A new tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewToolCall {
    /// The API's id of the call.
    pub(crate) id: Arc<str>,
    /// The CLI's name of the tool.
    pub(crate) tool: Arc<str>,
    /// The call that started its subagent; `None` for the main conversation.
    pub(crate) parent: Option<Arc<str>>,
    /// A line for the user, which names the target.
    pub(crate) title: String,
    pub(crate) kind: Kind,
    pub(crate) status: Status,
    pub(crate) content: Vec<CallContent>,
    /// The files that the call touches.
    pub(crate) locations: Vec<Location>,
    /// The input, as far as it is known.
    pub(crate) input: Option<RawJson>,
}

/// A change of a tool call. `None` means unchanged.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct CallChange {
    /// The API's id of the call.
    pub(crate) id: Arc<str>,
    /// The CLI's name of the tool, for `_meta` of each update.
    pub(crate) tool: Arc<str>,
    /// The call that started its subagent; `None` for the main conversation.
    pub(crate) parent: Option<Arc<str>>,
    pub(crate) title: Option<String>,
    pub(crate) kind: Option<Kind>,
    pub(crate) status: Option<Status>,
    /// Replaces the content.
    pub(crate) content: Option<Vec<CallContent>>,
    /// Replaces the locations.
    pub(crate) locations: Option<Vec<Location>>,
    pub(crate) input: Option<RawJson>,
    /// The output of the tool, if `content` does not show it.
    pub(crate) output: Option<RawJson>,
    /// How long the call has run, in seconds.
    pub(crate) elapsed: Option<f64>,
}

/// What a tool does, roughly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Edit,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The model writes the call's input, or the user is asked.
    Pending,
    InProgress,
    Completed,
    /// The call failed or was rejected.
    Failed,
    /// The call ended with its turn. Version 1 of the protocol has no such status and calls it failed.
    Cancelled,
}

/// A part of a tool call's content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallContent {
    Content(Content),
    /// A change of a file.
    Diff(Diff),
    /// The output of the terminal with this id.
    Terminal(Arc<str>),
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Diff {
    /// An absolute path.
    pub(crate) path: PathBuf,
    /// The old text; `None` for a new file.
    pub(crate) old: Option<String>,
    /// The new text.
    pub(crate) new: String,
    /// The first line, from 1.
    pub(crate) line: Option<u32>,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    /// An absolute path.
    pub(crate) path: PathBuf,
    /// The line, from 1.
    pub(crate) line: Option<u32>,
}

/// A change of a terminal of the agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TerminalChange {
    /// The id of the terminal, which is the id of its call.
    pub(crate) id: Arc<str>,
    pub(crate) call: Arc<str>,
    pub(crate) what: TerminalEvent,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TerminalEvent {
    /// The command began.
    Opened { command: String, cwd: Option<PathBuf> },
    Output {
        /// Bytes, since the end may be a part of a character.
        bytes: Vec<u8>,
        /// Whether the command still runs. Otherwise the end of its call follows.
        is_live: bool,
    },
    Exited {
        /// The exit code, if it is known.
        code: Option<i32>,
        signal: Option<String>,
    },
}

/// A step of the plan. The CLI has no priorities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanEntry {
    /// The task, in the form for its status.
    pub(crate) content: String,
    pub(crate) status: PlanStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanStatus {
    Pending,
    InProgress,
    Completed,
}

/// A slash command or a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// Without the slash.
    pub(crate) name: String,
    pub(crate) description: String,
    /// A hint about the command's arguments.
    pub(crate) hint: Option<String>,
}

/// The fill of the context, and the cost so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Usage {
    /// The tokens in the context.
    pub(crate) used: u64,
    /// The size of the context window.
    pub(crate) size: u64,
    /// The cost so far, in US dollars.
    pub(crate) cost: Option<f64>,
    /// The model with this window.
    pub(crate) model: Option<String>,
}

/// The conversation is being compacted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Compaction {
    pub(crate) id: Arc<str>,
    pub(crate) status: Status,
    /// The summary that replaces the conversation.
    pub(crate) summary: Option<String>,
    pub(crate) error: Option<String>,
}

/// A message for the user outside of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Notice {
    pub(crate) severity: Severity,
    /// One line.
    pub(crate) title: String,
    /// More lines.
    pub(crate) description: Option<String>,
    /// The topic for programs: the key in its `_meta`.
    pub(crate) topic: Topic,
    /// The CLI's message, for programs.
    pub(crate) data: Option<RawJson>,
    /// Whether a client without notices should show it as text.
    pub(crate) important: bool,
}

impl Notice {
    pub(crate) fn new(severity: Severity, topic: Topic, title: impl Into<String>) -> Self {
        Self {
            severity,
            title: title.into(),
            description: None,
            topic,
            data: None,
            important: false,
        }
    }

    pub(crate) fn info(topic: Topic, title: impl Into<String>) -> Self {
        Self::new(Severity::Info, topic, title)
    }

    pub(crate) fn warning(topic: Topic, title: impl Into<String>) -> Self {
        Self::new(Severity::Warning, topic, title)
    }

    pub(crate) fn error(topic: Topic, title: impl Into<String>) -> Self {
        Self::new(Severity::Error, topic, title)
    }

    pub(crate) fn description(self, description: Option<String>) -> Self {
        Self { description, ..self }
    }

    pub(crate) fn important(self) -> Self {
        let important = true;
        Self { important, ..self }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    Info,
    Warning,
    Error,
}

/// The state of a subagent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Subagent {
    pub(crate) call: Arc<str>,
    /// The id of the subagent, which is also that of its task.
    pub(crate) task: Option<Arc<str>>,
    pub(crate) title: String,
    pub(crate) status: Status,
    /// The rest of what the CLI reports at its beginning and at its end.
    pub(crate) more: AgentDetails,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct AgentDetails {
    /// The kind of agent.
    pub(crate) kind: Option<String>,
    /// The prompt, at the beginning.
    pub(crate) prompt: Option<String>,
    /// Why the subagent failed, at the end.
    pub(crate) failure: Option<String>,
}

/// A subagent of a stored session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordedAgent {
    pub(crate) agent: Arc<str>,
    /// The call that started it.
    pub(crate) call: Arc<str>,
    /// The subagent that made the call; `None` for the main conversation.
    pub(crate) parent: Option<Arc<str>>,
    pub(crate) title: Option<String>,
    pub(crate) kind: Option<String>,
}

/// The prompt of a subagent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentPrompt {
    pub(crate) call: Arc<str>,
    pub(crate) message_id: Arc<str>,
    pub(crate) text: String,
}

/// The session of a subagent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChildSession {
    pub(crate) id: Arc<str>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    /// Whether the subagent's work can be cancelled. `None` if it is only known from a stored session.
    pub(crate) can_cancel: Option<bool>,
}

/// The state of the session of a subagent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChildState {
    pub(crate) id: Arc<str>,
    pub(crate) work: ChildWork,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ChildWork {
    Running,
    RequiresAction,
    /// The subagent ended: how, if the CLI reported that, and why it failed.
    Idle(Option<Status>, Option<String>),
}

/// A message of one session to another.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PeerMessage {
    pub(crate) message_id: Arc<str>,
    pub(crate) from: Arc<str>,
    pub(crate) to: Arc<str>,
    pub(crate) text: String,
}

/// Data for programs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Extra {
    /// The key below `_meta.claudeCode`.
    pub(crate) topic: Topic,
    pub(crate) call: Option<Arc<str>>,
    pub(crate) data: RawJson,
}
