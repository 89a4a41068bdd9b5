//! The requests that the scripted API received.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

/// One request, as it arrived.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ApiRequest {
    /// The request's place in the order of arrival at this server, from 1.
    pub number: u64,
    /// When the request had arrived in full, since the server started.
    pub at: Duration,
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The headers by lower-case name; of a repeated one the last. Keys and tokens other than
    /// [`DUMMY_KEY`](Self::DUMMY_KEY) are replaced by `<redacted>`.
    pub headers: BTreeMap<String, String>,
    /// The JSON body; null when there was none or it could not be read. Lone surrogates are replaced by U+FFFD.
    pub body: Arc<Value>,
    /// The how-manieth question for a message this is from its session and agent, from 1; 0 for other requests.
    pub turn: u64,
    /// How the answer ended.
    pub outcome: RequestOutcome,
    /// What decided the answer.
    pub answered_by: AnsweredBy,
}

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Route {
    /// `POST /v1/messages`.
    Messages,
    /// `POST /v1/messages/count_tokens`.
    CountTokens,
    /// `HEAD` or `GET /api/hello`, by which the CLI warms up its connection.
    Hello,
    /// `GET /v1/models`, alone or with a model's id behind it.
    Models,
    /// Anything else; it is answered with 404.
    Other,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestOutcome {
    /// The answer is not complete yet.
    Pending,
    /// The whole answer was handed to the connection, with this status.
    Answered(u16),
    /// The script broke the connection.
    Broken,
    /// The client went away before the answer was complete.
    ClientGone,
}

/// The source of the reply to a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AnsweredBy {
    /// Nothing has yet.
    Undecided,
    /// A [rule of the test](super::MessagesApiBuilder::rule).
    Rule,
    /// A reply that was given in order.
    Queue,
    /// The rule at this place in a [script](crate::script): `prompts[0]`.
    Script(Arc<str>),
    /// The directives in the prompt.
    Directives,
    /// The default reply, since nothing else was for it.
    Default,
    /// The API that requests are passed on to.
    Upstream,
    /// The server itself: counting tokens, saying hello, listing models.
    Server,
    /// None: the request cannot be parsed, or no script, recording or rule of the server matches it. Has the
    /// reason.
    Nothing(Arc<str>),
}

impl AnsweredBy {
    /// Why the request had to be refused, if it was.
    pub fn unmatched(&self) -> Option<&str> {
        match self {
            Self::Nothing(why) => Some(why),
            _ => None,
        }
    }
}

impl ApiRequest {
    /// The key that tests use in place of a real one; the only one that is recorded as it is.
    pub const DUMMY_KEY: &'static str = "dummy";

    /// The purpose of the request.
    pub fn route(&self) -> Route {
        let path = self.path.split('?').next().unwrap_or_default();
        match (self.method.as_str(), path) {
            ("POST", "/v1/messages") => Route::Messages,
            ("POST", "/v1/messages/count_tokens") => Route::CountTokens,
            ("GET" | "HEAD", "/api/hello") => Route::Hello,
            ("GET", path) if path == "/v1/models" || path.starts_with("/v1/models/") => Route::Models,
            _ => Route::Other,
        }
    }

    /// The requested model.
    pub fn model(&self) -> Option<&str> {
        self.body["model"].as_str()
    }

    /// Whether the answer is to be streamed.
    pub fn stream(&self) -> bool {
        self.body["stream"] == true
    }

    /// The CLI's session: the header `x-claude-code-session-id`.
    pub fn session_id(&self) -> Option<&str> {
        self.headers.get("x-claude-code-session-id").map(String::as_str)
    }

    /// The subagent that sent the request: the header `x-claude-code-agent-id`; `None` for the main loop.
    pub fn agent_id(&self) -> Option<&str> {
        self.headers.get("x-claude-code-agent-id").map(String::as_str)
    }

    /// The conversation, oldest message first.
    pub fn messages(&self) -> &[Value] {
        list(&self.body["messages"])
    }

    /// The names of the tools that the model may call.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        list(&self.body["tools"])
            .iter()
            .filter_map(|tool| tool["name"].as_str())
    }

    /// The user's last text: the text blocks of the last user message that has any, joined by newlines.
    ///
    /// Tool results do not count, nor do the reminders that the CLI wraps in `<system-reminder>`.
    pub fn last_user_text(&self) -> Option<String> {
        let texts = self.messages().iter().rev().map(user_texts);
        texts
            .filter(|texts| !texts.is_empty())
            .map(|texts| texts.join("\n"))
            .next()
    }

    /// The text of the newest tool result.
    pub fn last_tool_result(&self) -> Option<String> {
        self.newest_tool_result().map(|result| result.text)
    }

    pub(super) fn newest_tool_result(&self) -> Option<ToolResult> {
        let mut messages = self.messages().iter().rev();
        messages.find_map(|message| tool_results_in(message).next_back())
    }

    /// The results of tools since the model's last answer, in order; empty for a new prompt.
    pub fn new_tool_results(&self) -> Vec<ToolResult> {
        let messages = self.messages().iter();
        let since = messages
            .clone()
            .rposition(|message| message["role"] == "assistant");
        let new = messages.skip(since.map_or(0, |last| last + 1));
        new.flat_map(tool_results_in).collect()
    }

    /// The system prompt, its blocks joined by newlines; empty when there is none.
    pub fn system_text(&self) -> String {
        text_in(&self.body["system"])
    }

    /// The CLI's working directory, as last given to the model: in the system prompt, or in a note with the role `system`. Requests for
    /// side questions do not have it.
    pub fn working_directory(&self) -> Option<String> {
        const WORDS: &str = "rimary working directory: ";
        let notes = self.messages().iter().rev();
        let notes = notes.filter(|message| message["role"] == "system");
        let notes = notes.map(|note| text_in(&note["content"]));
        let told = |text: &str| {
            let line = text.lines().rev().find_map(|line| line.split_once(WORDS))?.1;
            // Where it was before does not matter.
            let directory = line.split_once(" (was ").map_or(line, |(directory, _)| directory);
            Some(directory.trim().to_owned()).filter(|directory| !directory.is_empty())
        };
        notes.chain([self.system_text()]).find_map(|text| told(&text))
    }

    /// The file for the model's plan, as last given to the model.
    pub fn plan_file(&self) -> Option<String> {
        let mut messages = self.messages().iter().rev();
        messages.find_map(|message| texts(message).into_iter().rev().find_map(plan_file_in))
    }
}

/// The result of a tool, as the model gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    /// The text, blocks of text joined by newlines; other content has none.
    pub text: String,
    /// Whether the call failed.
    pub is_error: bool,
}

fn tool_results_in(message: &Value) -> impl DoubleEndedIterator<Item = ToolResult> {
    let blocks = list(&message["content"]).iter();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results.map(|block| ToolResult {
        id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
        text: text_in(&block["content"]),
        is_error: block["is_error"] == true,
    })
}

/// The path of a plan's file in a text: that of a Markdown file in a directory `plans`.
fn plan_file_in(text: &str) -> Option<String> {
    let is_end = |c: char| c.is_whitespace() || "\"'`()<>".contains(c);
    let mut words = text
        .split(is_end)
        .filter_map(|word| Some(word.split_once(".md")?.0));
    let is_plan = |word: &&str| {
        let mut parts = word.rsplit(['/', '\\']);
        parts.next().is_some_and(|name| !name.is_empty()) && parts.next() == Some("plans")
    };
    words.rfind(is_plan).map(|word| format!("{word}.md"))
}

/// The user's texts in one message of the conversation; none for other roles.
pub(super) fn user_texts(message: &Value) -> Vec<&str> {
    if message["role"] != "user" {
        return Vec::new();
    }
    texts(message).into_iter().filter(|text| !is_note(text)).collect()
}

/// Whether the CLI has written this text of the user by itself.
pub(super) fn own_words(text: &str) -> bool {
    text.starts_with("[Request interrupted by user") || text.starts_with("Stop hook feedback:")
}

/// Whether this text of the user is a note of the CLI. From 2.1.332 on a prompt that came while the turn ran is not wrapped.
fn is_note(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("<system-reminder>") || text.lines().next().is_some_and(|line| line.ends_with(FOLDED))
}

/// The notes of the CLI in a message: messages with the role `system`, and what is a note in others.
pub(super) fn notes(message: &Value) -> Vec<&str> {
    let system = message["role"] == "system";
    let texts = texts(message).into_iter();
    texts.filter(|text| system || is_note(text)).collect()
}

/// The end of the first line of a note about a prompt that came while the turn ran.
const FOLDED: &str = "sent a new message while you were working:";

/// The prompt in a note about one that came while the turn ran.
pub(super) fn folded(note: &str) -> Option<String> {
    let (_, rest) = note.split_once(FOLDED)?;
    let prompt = rest
        .rsplit_once("\n\nThis is how ")
        .map_or(rest, |(prompt, _)| prompt);
    Some(prompt.trim().to_owned())
}

/// The id of the call whose background work has ended, in a note about that; empty if the note has none.
pub(super) fn ended(note: &str) -> Option<&str> {
    let (_, rest) = note.split_once("<task-notification>")?;
    let id = rest
        .split_once("<tool-use-id>")
        .and_then(|(_, rest)| rest.split_once('<'));
    Some(id.map_or("", |(id, _)| id.trim()))
}

/// The items of a list; none of any other value.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The texts of a message.
fn texts(message: &Value) -> Vec<&str> {
    texts_in(&message["content"])
}

/// The texts of a content: it is one itself, or has blocks.
fn texts_in(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        content => {
            let blocks = list(content).iter().filter(|block| block["type"] == "text");
            blocks.filter_map(|block| block["text"].as_str()).collect()
        }
    }
}

fn text_in(content: &Value) -> String {
    texts_in(content).join("\n")
}
