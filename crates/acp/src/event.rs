//! What happens in a session, in words of neither protocol version.
//!
//! [`reduce`](crate::reduce) makes these of the CLI's frames and of a transcript's records, once; the encoders of `wire` write each
//! in the words of the client's version. What a client can't show is the encoder's affair: here everything is said.

mod topic;

use std::path::PathBuf;
use std::sync::Arc;

use outrigger::protocol::RawJson;

pub(crate) use self::topic::Topic;

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Doing {
    /// Nothing, but for what goes on in the background.
    #[default]
    Idle,
    /// The model works, or a tool of its.
    Running,
    /// It does not go on before the user answers.
    RequiresAction,
}

/// One thing that a client may want to show.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// What the user said: when history is told again, or when somebody else than this client prompted.
    User(Chunk),
    /// Text of the answer.
    Text(Chunk),
    /// The model's thinking.
    Thought(Chunk),
    /// A tool call that was not told of before.
    Call(Box<Call>),
    /// What became of one that was.
    CallChanged(Box<CallChange>),
    /// A terminal of the agent: output of a command.
    Terminal(TerminalChange),
    /// The whole plan.
    Plan(Vec<PlanEntry>),
    /// The whole list of slash commands.
    Commands(Vec<Command>),
    /// The permission mode changed.
    Mode(String),
    /// Some config option changed; whoever encodes looks the whole of them up.
    ConfigChanged,
    /// The session got a title.
    Title(String),
    /// How full the context is, and what it cost so far.
    Usage(Usage),
    /// The conversation is being made shorter.
    Compaction(Compaction),
    /// Something that is no part of the conversation, but that a person should see.
    Notice(Notice),
    /// An agent that was started by this one.
    Subagent(Box<Subagent>),
    /// For programs, not for people: goes out as `_meta` or as an extension notification.
    Extra(Box<Extra>),
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chunk {
    /// The message that it belongs to: the API's id for what the model says, the CLI's uuid for what the user said.
    pub(crate) message_id: Option<Arc<str>>,
    /// The call of the subagent that says it; none for the main conversation.
    pub(crate) parent: Option<Arc<str>>,
    /// What is said.
    pub(crate) content: Content,
}

/// Something to show.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// Markdown.
    Text(String),
    /// An image, in base64.
    Image {
        /// The media type.
        media_type: String,
        /// The bytes, in base64.
        data: String,
    },
    /// Something that can be fetched or opened.
    Link {
        /// Where it is.
        uri: String,
        /// What it is called.
        name: String,
    },
}

/// A tool call when it is first told of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// The API's id of the call.
    pub(crate) id: Arc<str>,
    /// The tool's name, as the CLI has it.
    pub(crate) tool: Arc<str>,
    /// The call of the subagent that makes it; none for the main conversation.
    pub(crate) parent: Option<Arc<str>>,
    /// A line for people, which names the target.
    pub(crate) title: String,
    /// What sort of thing it does.
    pub(crate) kind: Kind,
    /// How far it is.
    pub(crate) status: Status,
    /// What to show.
    pub(crate) content: Vec<CallContent>,
    /// Which files it touches.
    pub(crate) locations: Vec<Location>,
    /// What it is called with, as far as it is known.
    pub(crate) input: Option<RawJson>,
}

/// What changed of a tool call; what is `None` stays as it was.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct CallChange {
    /// The API's id of the call.
    pub(crate) id: Arc<str>,
    /// The tool's name, for the record beside each update.
    pub(crate) tool: Arc<str>,
    /// The call of the subagent that makes it; none for the main conversation.
    pub(crate) parent: Option<Arc<str>>,
    /// A better title.
    pub(crate) title: Option<String>,
    /// Another kind.
    pub(crate) kind: Option<Kind>,
    /// How far it is.
    pub(crate) status: Option<Status>,
    /// All that is to be shown from now on.
    pub(crate) content: Option<Vec<CallContent>>,
    /// All the files that it touches.
    pub(crate) locations: Option<Vec<Location>>,
    /// What it is called with.
    pub(crate) input: Option<RawJson>,
    /// What the tool gave back, when `content` does not say it already.
    pub(crate) output: Option<RawJson>,
    /// How long it has been running, in seconds.
    pub(crate) elapsed: Option<f64>,
}

/// What sort of thing a tool does.
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

/// How far a tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Its input is being written, or somebody is being asked.
    Pending,
    /// It runs.
    InProgress,
    /// It is done.
    Completed,
    /// It failed, or was refused.
    Failed,
    /// It was given up with its turn. The first version of the protocol knows no such thing and calls it failed.
    Cancelled,
}

/// Something to show in a tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallContent {
    /// Text, an image, a link.
    Content(Content),
    /// A change of a file.
    Diff(Diff),
    /// The output of a terminal of the agent, by its id.
    Terminal(Arc<str>),
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Diff {
    /// Which file: absolute.
    pub(crate) path: PathBuf,
    /// What was there; none for a new file.
    pub(crate) old: Option<String>,
    /// What is there now.
    pub(crate) new: String,
    /// Where in the file it begins, from 1.
    pub(crate) line: Option<u32>,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    /// The file: absolute.
    pub(crate) path: PathBuf,
    /// The line, from 1.
    pub(crate) line: Option<u32>,
}

/// What happened to a terminal of the agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TerminalChange {
    /// Its id: that of the call that made it.
    pub(crate) id: Arc<str>,
    /// The call that made it.
    pub(crate) call: Arc<str>,
    /// What.
    pub(crate) what: TerminalEvent,
}

/// See [`TerminalChange`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TerminalEvent {
    /// It is there.
    Opened {
        /// What runs in it.
        command: String,
        /// Where it runs.
        cwd: Option<PathBuf>,
    },
    /// More output.
    Output {
        /// Bytes, since a character may be cut.
        bytes: Vec<u8>,
        /// Whether the command still runs. Otherwise its call ends with this.
        is_live: bool,
    },
    /// It ended.
    Exited {
        /// The exit code, where it is known.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<String>,
    },
}

/// A step of the plan. The CLI knows no priorities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanEntry {
    /// What is to be done; what is being done while it is.
    pub(crate) content: String,
    /// How far it is.
    pub(crate) status: PlanStatus,
}

/// See [`PlanEntry`].
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
    /// What it does.
    pub(crate) description: String,
    /// What may follow it.
    pub(crate) hint: Option<String>,
}

/// How full the context is, and what the session cost so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Usage {
    /// Tokens in the context.
    pub(crate) used: u64,
    /// Tokens that fit.
    pub(crate) size: u64,
    /// US dollars so far.
    pub(crate) cost: Option<f64>,
    /// The model that it is about.
    pub(crate) model: Option<String>,
}

/// The conversation is being made shorter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Compaction {
    /// Which one.
    pub(crate) id: Arc<str>,
    /// How far it is.
    pub(crate) status: Status,
    /// What remains of the conversation.
    pub(crate) summary: Option<String>,
    /// Why it failed.
    pub(crate) error: Option<String>,
}

/// Something that is no part of the conversation, but that a person should see.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Notice {
    /// How bad it is.
    pub(crate) severity: Severity,
    /// One line.
    pub(crate) title: String,
    /// More lines.
    pub(crate) description: Option<String>,
    /// What it is about, for programs; the key of its `_meta`.
    pub(crate) topic: Topic,
    /// The CLI's own words, for programs.
    pub(crate) data: Option<RawJson>,
    /// Whether a client that has no notices should be told in another way that people see.
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

/// An agent that was started by this one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Subagent {
    /// The tool call that started it.
    pub(crate) call: Arc<str>,
    /// The CLI's id of the task.
    pub(crate) task: Option<Arc<str>>,
    /// What it does.
    pub(crate) title: String,
    /// Whether it still runs.
    pub(crate) status: Status,
}

/// For programs, not for people.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Extra {
    /// What it is about: the key below `_meta.claudeCode`.
    pub(crate) topic: Topic,
    /// The call that it belongs to.
    pub(crate) call: Option<Arc<str>>,
    /// What is said.
    pub(crate) data: RawJson,
}
