//! The steps of a scripted reply.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::inject::Fault;

use super::assertion::Assert;
use super::place::Placed;
use super::short::{self, Span, or_number, or_text, short_form, unquoted};

/// One step of a reply.
///
/// `say`, `think`, `call` and similar steps are output of the model: they are gathered into one response up to
/// the next tool call, or to what breaks the response off. The tool's result goes back to the model, and the steps after it
/// are its next response. The other steps happen in their place.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Step {
    /// The model writes a text.
    Say(String),
    /// The model thinks.
    Think(String),
    /// The model calls a tool, and gets its result.
    Call(Call),
    /// The model calls several tools in one response.
    Parallel(Vec<Call>),
    /// The client gets a request.
    Ask(Ask),
    /// The model presents a plan, by calling `ExitPlanMode`; in YAML the plan itself, in Markdown.
    Plan(String),
    /// The model hands work to a subagent, by calling `Agent`, and gets its report.
    Subagent(Subagent),
    /// A command that goes on in the background while the turn ends. Its end starts a turn of the agent.
    Background(Background),
    /// Thinking of the model that cannot be read: its data.
    Redacted(String),
    /// A content block of the model, word for word.
    Block(Map<String, Value>),
    /// One response with these steps and no others: for what comes behind a tool call, and for one without content.
    Response(Vec<Placed<Step>>),
    /// The text before this step goes on, after a wait in its middle.
    More(String),
    /// The API fails.
    ApiError(ApiError),
    /// The connection is closed before the first byte of a response.
    Drop,
    /// The connection is closed here, in the middle of the response.
    Cut,
    /// Nothing more comes from here on, and the connection stays open.
    Stall,
    /// The body of the response ends here as if it were complete.
    Truncated,
    /// An event that is no JSON comes here, and then the end.
    MalformedEvent,
    /// An `error` event of this type comes here, such as `overloaded_error`.
    ErrorEvent(String),
    /// The stop reason of the response, which ends here.
    StopReason(String),
    /// The stop sequence that the response in which this step stands has met.
    StopSequence(String),
    /// Headers of the response in which this step stands.
    Headers(BTreeMap<String, String>),
    /// The content type that this response names, such as `text/html`.
    ContentType(String),
    /// The CLI reports how much of the account's limits is used.
    RateLimit(RateLimit),
    /// The conversation is compacted.
    Compact(Compact),
    /// The tokens that the response costs in which this step stands.
    Usage(Usage),
    /// What that response costs in US dollars, if not the list price of its tokens.
    Cost(#[serde(deserialize_with = "short::dollars")] f64),
    /// How slowly the response comes in which this step stands.
    Pace(ResponsePace),
    /// The script waits for something.
    Wait(Wait),
    /// What must be true by now.
    Assert(Box<Assert>),
    /// A line on stderr.
    Stderr(String),
    /// Something is written to stdout as it is, among the CLI's own lines.
    Raw(Raw),
    /// Something goes wrong on the pipes, or with the process, from here on.
    Fault(Box<Fault>),
    /// The process ends, in the middle of a turn.
    Exit(ExitStep),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Call {
    /// The tool's name, as the CLI calls it: `Bash`, `Read`, `mcp__server__tool`.
    pub tool: String,
    /// The call's input; empty unless given.
    #[serde(default)]
    pub input: Map<String, Value>,
    /// The call's result, a text or content blocks. Permission is requested all the same. Without a result the tool is run.
    #[serde(default, deserialize_with = "short::given")]
    pub result: Option<Value>,
    /// Whether `result` is a failure.
    #[serde(default)]
    pub is_error: bool,
    /// The structured result for the client, in `tool_use_result`; the text of `result` unless given.
    #[serde(default, deserialize_with = "short::given")]
    pub details: Option<Value>,
    /// How the call is run if there is no `result`; by the script's `real_tools` unless given.
    #[serde(default, deserialize_with = "short::given")]
    pub run: Option<Run>,
}

/// How a tool is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Run {
    /// On files in memory, and with a few pretended commands.
    Simulated,
    /// For real, in the working directory.
    Real,
}

/// The request to the client.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ask {
    /// The model asks the user a question, by calling `AskUserQuestion`.
    Question(ChoiceQuestion),
    /// The model asks the user several questions at once.
    Questions(Vec<ChoiceQuestion>),
    /// An MCP server requests input from the user.
    Elicitation(Elicitation),
    /// May this tool be used? Nothing is run, whatever the answer; see `call` for that.
    Permission(Permission),
    /// Any control request, with its `subtype` and fields.
    Request(Map<String, Value>),
}

/// A question with a few answers to choose from.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ChoiceQuestion {
    /// The question.
    pub question: String,
    /// A short heading; `Question` unless given.
    #[serde(default, deserialize_with = "short::given")]
    pub header: Option<String>,
    /// What can be answered; at least one.
    #[schemars(length(min = 1))]
    pub options: Vec<Choice>,
    /// Whether several may be chosen.
    #[serde(default)]
    pub multi_select: bool,
}

/// One answer to choose. In YAML it may be its label alone.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
#[schemars(transform = or_text)]
#[non_exhaustive]
pub struct Choice {
    /// The text of the choice, and of the answer.
    pub label: String,
    /// The choice's description; empty unless given.
    #[serde(default)]
    pub description: String,
}

short_form!(Choice, "a label, or a mapping with `label` and `description`",
    YamlValue::Text(label) => Ok(Choice { label, description: String::new() }),
    plain @ (YamlValue::Bool(_) | YamlValue::Whole(_) | YamlValue::Fraction(_)) => Err(unquoted(&plain)));

/// A question of an MCP server.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Elicitation {
    /// The server's name.
    pub server: String,
    /// The message to the user.
    pub message: String,
    /// A JSON schema of the requested value; an object without fields unless given.
    #[serde(default, deserialize_with = "short::given")]
    pub schema: Option<Map<String, Value>>,
}

/// A question about a tool.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Permission {
    /// The tool's name.
    pub tool: String,
    /// The input of the call; empty unless given.
    #[serde(default)]
    pub input: Map<String, Value>,
    /// The permission updates that are suggested.
    #[serde(default)]
    pub suggestions: Vec<Map<String, Value>>,
}

/// A subagent, with its steps.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Subagent {
    /// The subagent's task, in a few words.
    pub description: String,
    /// The subagent's prompt; the description unless given.
    #[serde(default, deserialize_with = "short::given")]
    pub prompt: Option<String>,
    /// What kind of agent it is, in `subagent_type`; `general-purpose` unless given.
    #[serde(default, deserialize_with = "short::given")]
    pub kind: Option<String>,
    /// Whether the subagent works in the background. Its end wakes the agent again.
    #[serde(default)]
    pub background: bool,
    /// The subagent's steps; its last text is its report.
    #[serde(default)]
    pub steps: Vec<Placed<Step>>,
    /// The steps of the agent after the end of a background subagent; the agent says `ok` unless given.
    #[serde(default)]
    pub then: Vec<Placed<Step>>,
}

/// A command in the background.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Background {
    /// The command line. The simulator only shows it: its result is in this step. The real CLI runs it.
    pub command: String,
    /// The task's description for people; the command unless given.
    #[serde(default, deserialize_with = "short::given")]
    pub description: Option<String>,
    /// How long it runs; not at all unless given.
    #[serde(default, deserialize_with = "short::duration")]
    #[schemars(with = "Span")]
    pub after: Duration,
    /// The task's output.
    #[serde(default)]
    pub output: String,
    /// The task's exit code; 0 unless given.
    #[serde(default, deserialize_with = "short::code")]
    #[schemars(range(min = 0, max = 255))]
    pub exit: i32,
    /// The steps of the agent after the end of the command; the agent says `ok` unless given.
    #[serde(default)]
    pub then: Vec<Placed<Step>>,
}

/// A failure of the API. In YAML it may be the HTTP status alone.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
#[schemars(transform = or_number)]
#[non_exhaustive]
pub struct ApiError {
    /// The HTTP status.
    #[serde(deserialize_with = "short::status")]
    #[schemars(range(min = 400, max = 599))]
    pub status: u16,
    /// The error's message; the usual one of this status unless given.
    #[serde(default, deserialize_with = "short::given")]
    pub message: Option<String>,
    /// The error's type, such as `overloaded_error`; the one that the API has for the status unless given.
    #[serde(default, deserialize_with = "short::given")]
    pub kind: Option<String>,
    /// The header `retry-after`, in seconds.
    #[serde(default, deserialize_with = "short::given")]
    pub retry_after: Option<u32>,
    /// Other headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// How many requests fail before one succeeds; all of them unless given.
    #[serde(default, deserialize_with = "short::given")]
    pub times: Option<u32>,
}

/// The header of the API by which it says whether to send a request again.
pub(crate) const SHOULD_RETRY: &str = "x-should-retry";

short_form!(ApiError, "an HTTP status, or a mapping with `status`, `message`, `kind`, `retry_after`, `headers` and `times`",
    YamlValue::Whole(status) => short::error_status(status).map(ApiError::new));

impl ApiError {
    /// The type and the text that the API has for a status.
    pub(crate) fn usual(status: u16) -> (&'static str, &'static str) {
        match status {
            400 => ("invalid_request_error", "the request is not valid"),
            401 => ("authentication_error", "invalid x-api-key"),
            402 => ("billing_error", "the account cannot be billed"),
            403 => ("permission_error", "the key may not use this"),
            404 => ("not_found_error", "not found"),
            413 => ("request_too_large", "the request exceeds the maximum size"),
            429 => ("rate_limit_error", "too many requests"),
            503 | 529 => ("overloaded_error", "Overloaded"),
            504 => ("timeout_error", "the request timed out"),
            ..500 => ("invalid_request_error", "the request was refused"),
            _ => ("api_error", "internal server error"),
        }
    }

    /// Whether the error's headers say that the request is not to be sent again.
    pub(crate) fn forbids_retry(&self) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|(name, value)| name.eq_ignore_ascii_case(SHOULD_RETRY) && value == "false")
    }
}

/// A word about the account's limits.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RateLimit {
    /// `allowed`, `allowed_warning` or `rejected`.
    pub status: String,
    /// Which limit; `five_hour` unless given.
    #[serde(default = "five_hour")]
    pub limit: String,
    /// How much of it is used up, from 0 to 1.
    #[serde(default, deserialize_with = "short::share")]
    #[schemars(range(min = 0, max = 1))]
    pub utilization: Option<f64>,
    /// In which time it begins anew; an hour unless given.
    #[serde(default = "an_hour", deserialize_with = "short::duration")]
    #[schemars(with = "Span")]
    pub resets_in: Duration,
}

fn five_hour() -> String {
    "five_hour".to_owned()
}

fn an_hour() -> Duration {
    Duration::from_secs(3600)
}

impl RateLimit {
    /// A limit with this status.
    pub fn new(status: impl Into<String>) -> Self {
        Self {
            status: status.into(),
            limit: five_hour(),
            utilization: None,
            resets_in: an_hour(),
        }
    }
}

/// A compaction.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Compact {
    /// Tokens before it.
    pub pre_tokens: u64,
    /// Tokens after it.
    pub post_tokens: u64,
    /// The summary of the conversation.
    pub summary: String,
}

impl Default for Compact {
    fn default() -> Self {
        Self {
            pre_tokens: 160_000,
            post_tokens: 40_000,
            summary: "The conversation so far.".to_owned(),
        }
    }
}

/// Token counts of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens read, neither written to nor read from the cache.
    #[serde(deserialize_with = "short::tokens")]
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub input: u64,
    /// Tokens written.
    #[serde(deserialize_with = "short::tokens")]
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub output: u64,
    /// Tokens written to the cache.
    #[serde(deserialize_with = "short::tokens")]
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub cache_creation: u64,
    /// Tokens read from the cache.
    #[serde(deserialize_with = "short::tokens")]
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub cache_read: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self::new(10, 5)
    }
}

/// How slowly a response comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ResponsePace {
    /// Characters in a piece; at least one.
    #[serde(deserialize_with = "short::chunk")]
    #[schemars(range(min = 1))]
    pub chunk: usize,
    /// The time before each piece.
    #[serde(deserialize_with = "short::duration")]
    #[schemars(with = "Span")]
    pub every: Duration,
}

impl Default for ResponsePace {
    fn default() -> Self {
        Self {
            chunk: 8,
            every: Duration::ZERO,
        }
    }
}

/// What to wait for. A bare length of time is one; `interrupt` and `prompt` are plain words.
///
/// Anything but a length of time must come within the script's `patience`, otherwise it is a failure, and the script goes
/// on.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "snake_case")]
#[schemars(transform = or_text)]
#[non_exhaustive]
pub enum Wait {
    /// So long.
    Time(
        #[serde(deserialize_with = "short::duration")]
        #[schemars(with = "Span")]
        Duration,
    ),
    /// For an interrupt, which ends the turn. Steps behind it are not reached. The scripted API waits until the client hangs up.
    Interrupt,
    /// For another prompt, while this turn runs.
    Prompt,
    /// For a control request of this subtype since the turn began, or since the last such wait.
    Request(String),
    /// For the gate of this name, which the test opens.
    Gate(String),
}

short_form!(Wait, "a length of time, `interrupt`, `prompt`, or one of `time`, `request`, `gate`",
    YamlValue::Text(text) => Wait::parse(&text),
    YamlValue::Whole(ms) => short::milliseconds(ms).map(Wait::Time));

impl Wait {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "interrupt" => Ok(Self::Interrupt),
            "prompt" => Ok(Self::Prompt),
            text => short::parse_duration(text).map(Self::Time).ok_or_else(|| {
                format!("cannot wait for `{text}`: write a length of time such as 250ms or 2s, `interrupt` or `prompt`, or a \
                         mapping with `request` or `gate`")
            }),
        }
    }
}

/// Bytes to write unchanged.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Raw {
    /// A frame: one line of JSON, without anything added.
    Frame(Map<String, Value>),
    /// A line of text, whether or not it is JSON.
    Line(String),
    /// Bytes without a line break added, in Base64.
    Base64(Bytes),
    /// Text in the stream of events of the API, which may be half an event. A request without streaming is answered with it.
    Event(String),
    /// A content block of the model as JSON text, for what no YAML can hold, such as lone surrogates.
    Block(String),
}

/// Bytes, written in Base64.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
#[schemars(inline, extend("contentEncoding" = "base64"))]
pub struct Bytes(#[schemars(with = "String")] pub Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use base64::Engine as _;
        let text = Placed::<String>::deserialize(deserializer)?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(text.value.trim());
        bytes
            .map(Self)
            .map_err(|error| super::error::at(text.at, &format!("not Base64: {error}")))
    }
}

/// The end of the process. In YAML it may be the exit code alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields, default)]
#[schemars(transform = or_number)]
#[non_exhaustive]
pub struct ExitStep {
    /// The exit code; 0 unless given.
    #[serde(deserialize_with = "short::code")]
    #[schemars(range(min = 0, max = 255))]
    pub code: i32,
    /// The signal that kills it instead, by its number.
    #[serde(deserialize_with = "short::signal")]
    #[schemars(range(min = 1, max = 31))]
    pub signal: Option<i32>,
    /// Whether the turn comes to its end first, with a result.
    pub after_result: bool,
}

short_form!(ExitStep, "an exit code, or a mapping with `code`, `signal` and `after_result`",
    YamlValue::Whole(code) => short::exit_code(code).map(ExitStep::code));
