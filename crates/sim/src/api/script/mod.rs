//! Scripts for the scripted API: replies to requests, and expectations of the requests in the end.
//!
//! A script is a readable file, or is built in Rust; both can express the same, with the names of
//! [`Script`](crate::script::Script).
//!
//! ```
//! use outrigger_sim::api::script::{ApiFailure, ApiScript, Conversation, ScriptedReply};
//! use outrigger_sim::script::TextMatch;
//! use serde_json::json;
//!
//! let built = ApiScript::new().conversation(
//!     Conversation::containing("tidy up")
//!         .reply(ScriptedReply::new().fail(ApiFailure::ErrorEvent("overloaded_error".into())))
//!         .reply(ScriptedReply::say("I look first.").call("Bash", json!({"command": "ls"})))
//!         .reply(ScriptedReply::say("All is tidy.")),
//! );
//! let read = ApiScript::from_yaml(
//!     r#"
//! conversations:
//!   - prompt: {contains: tidy up}
//!     replies:
//!       - fault: {error_event: overloaded_error}
//!       - say: I look first.
//!         call: {tool: Bash, input: {command: ls}}
//!       - All is tidy.
//! "#,
//! )?;
//! assert_eq!(built, read);
//! # Ok::<(), outrigger_sim::script::ScriptError>(())
//! ```
//!
//! The first conversation in the script that a request matches, and that has replies left for its session, sends the next of them.
//! The user's last text stays the same while tools run, so that a conversation which only matches the prompt plays a whole
//! loop of tool calls. Every session has its own place in every conversation, and in it the main loop and each subagent have
//! theirs. A reply with a fault is a reply: when the CLI retries, it gets the next one.
//!
//! In texts and in the strings of a tool's input, `{{last}}` is the newest tool result, `{{plan}}` the file to which the
//! CLI wants the plan written and `{{cwd}}` its working directory.

mod expect;
mod play;
mod reply;

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::script::{Placed, Position, ScriptError, TextMatch, Times, Unmatched, read_yaml};

pub use expect::ApiExpect;
pub use reply::{ApiFailure, Chunks, Content, HttpError, ScriptedReply, Tokens, ToolCall};

pub(super) use expect::{Tally, judge};
pub(super) use play::Player;

/// A script for the scripted API.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ApiScript {
    /// The reply to a message request that no conversation matches, and whose prompt has no directives: an HTTP error, or
    /// the answer `ok`.
    pub unmatched: Unmatched,
    /// The models that there are, for requests that list them.
    pub models: Vec<String>,
    /// What requests that count tokens are answered; a quarter of their length unless given.
    pub input_tokens: Option<u64>,
    /// Which requests are answered how.
    pub conversations: Vec<Placed<Conversation>>,
    /// Expectations of the requests in the end.
    pub expect: ApiExpect,
    /// The file that it came from, for messages.
    #[serde(skip)]
    source: Source,
}

/// Which requests are answered how. Everything that is given must fit.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Conversation {
    /// Its name in the log; its place in the script unless given.
    pub name: Option<String>,
    /// The user's last text; anything unless given.
    pub prompt: Option<TextMatch>,
    /// The requested model.
    pub model: Option<TextMatch>,
    /// A tool that the model may call.
    pub has_tool: Option<String>,
    /// The sender of the request; any unless given.
    pub from: Option<Asker>,
    /// The how-manieth request of its session and asker it is, from 1.
    pub request: Option<u64>,
    /// The result of one of the tools that were called last.
    pub tool_result: Option<TextMatch>,
    /// How often each session and asker can go through the replies: a number, or `any`. Once unless given.
    pub times: Times,
    /// The replies, one request after the other.
    pub replies: Vec<Placed<ScriptedReply>>,
}

/// The sender of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Asker {
    /// The main loop.
    Main,
    /// A subagent.
    Subagent,
}

/// The source of a script. Does not take part in comparisons.
#[derive(Debug, Clone, Default)]
struct Source(Option<Arc<str>>);

impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl ApiScript {
    /// A script without conversations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a script from YAML. JSON is YAML too.
    ///
    /// # Errors
    /// When the text is not YAML, or is not a script, with the line and the column.
    pub fn from_yaml(text: &str) -> Result<Self, ScriptError> {
        Self::read(text, None)
    }

    /// Reads a script from a YAML file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a script; see [`from_yaml`](Self::from_yaml).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ScriptError::io(&name, &error))?;
        Self::read(&text, Some(&name))
    }

    /// Adds a conversation behind those that are there.
    #[must_use]
    pub fn conversation(mut self, conversation: Conversation) -> Self {
        self.conversations.push(conversation.into());
        self
    }

    /// Answers `ok` to what no conversation is for.
    #[must_use]
    pub fn answer_unmatched(mut self) -> Self {
        self.unmatched = Unmatched::Ok;
        self
    }

    /// Sets the expectations of the requests in the end.
    #[must_use]
    pub fn expect(mut self, expect: ApiExpect) -> Self {
        self.expect = expect;
        self
    }

    fn read(text: &str, file: Option<&str>) -> Result<Self, ScriptError> {
        let mut script: Self = read_yaml(text, file)?;
        script.source = Source(file.map(Arc::from));
        match script.mistakes().into_iter().next() {
            None => Ok(script),
            Some((at, what)) => Err(ScriptError {
                file: file.map(str::to_owned),
                at,
                what,
            }),
        }
    }

    /// What cannot be meant, though it can be written.
    fn mistakes(&self) -> Vec<(Option<Position>, String)> {
        let mut mistakes = Vec::new();
        for conversation in &self.conversations {
            if conversation.value.replies.is_empty() {
                mistakes.push((conversation.at, "this conversation has no replies".to_owned()));
            }
            for reply in &conversation.value.replies {
                mistakes.extend(reply.value.mistake().map(|what| (reply.at, what)));
            }
        }
        mistakes
    }

    /// The name of the conversation at this index.
    fn name(&self, index: usize) -> Arc<str> {
        let conversation = self.conversations.get(index);
        let name = conversation.and_then(|conversation| conversation.value.name.as_deref());
        name.map_or_else(|| format!("conversations[{index}]").into(), Arc::from)
    }

    /// Where a conversation stands, for messages.
    fn place(&self, index: usize) -> String {
        let at = self
            .conversations
            .get(index)
            .and_then(|conversation| conversation.at);
        match (&self.source.0, at) {
            (Some(file), Some(at)) => format!("{file}:{at}"),
            (None, Some(at)) => format!("script:{at}"),
            _ => format!("conversations[{index}]"),
        }
    }

    /// Where the expectation of this name stands.
    fn expectation(&self, name: &str) -> String {
        match &self.source.0 {
            Some(file) => format!("{file}: expect.{name}"),
            None => format!("expect.{name}"),
        }
    }
}

impl Conversation {
    /// For every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Matches requests with this as the user's last text.
    pub fn exactly(prompt: impl Into<String>) -> Self {
        Self {
            prompt: Some(TextMatch::Exact(prompt.into())),
            ..Self::default()
        }
    }

    /// Matches requests whose last text of the user contains this.
    pub fn containing(part: impl Into<String>) -> Self {
        Self {
            prompt: Some(TextMatch::Contains(part.into())),
            ..Self::default()
        }
    }

    /// Adds a reply behind those that are there.
    #[must_use]
    pub fn reply(mut self, reply: ScriptedReply) -> Self {
        self.replies.push(reply.into());
        self
    }

    /// Sets its name in the log.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Only for requests of this asker.
    #[must_use]
    pub fn from(mut self, asker: Asker) -> Self {
        self.from = Some(asker);
        self
    }

    /// Sets how often each session and asker can go through the replies.
    #[must_use]
    pub fn times(mut self, times: Times) -> Self {
        self.times = times;
        self
    }
}

/// The JSON schema of script files, for editors and other programs.
pub fn json_schema() -> Value {
    let mut schema = schemars::schema_for!(ApiScript).to_value();
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("title".to_owned(), "Script for a scripted Messages API".into());
    }
    schema
}

#[cfg(test)]
mod tests;
