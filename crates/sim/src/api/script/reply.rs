//! The scripted reply to one request.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::obey;
use super::super::reply::{self, ApiFault, Pace, Part, Reply, Wait};
use super::super::request::ApiRequest;
use crate::directive::Block;
use crate::script::short::{self, Span, or_text, short_form};

/// One reply: `think`, `say` and `call` in this order, or the blocks of `content`. A bare text is `say`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
#[schemars(transform = or_text)]
#[non_exhaustive]
pub struct ScriptedReply {
    /// The model thinks this first.
    #[serde(default)]
    pub think: Option<String>,
    /// The model writes this text.
    #[serde(default)]
    pub say: Option<String>,
    /// The model calls this tool.
    #[serde(default)]
    pub call: Option<ToolCall>,
    /// The blocks of the reply, instead of `think`, `say` and `call`; several calls are made in parallel.
    #[serde(default)]
    pub content: Vec<Content>,
    /// The tokens that it costs; 10 in and 5 out unless given.
    #[serde(default)]
    pub usage: Option<Tokens>,
    /// The stop reason; `tool_use` or `end_turn`, as the content demands, unless given.
    #[serde(default)]
    pub stop_reason: Option<String>,
    /// The stop sequence that was met.
    #[serde(default)]
    pub stop_sequence: Option<String>,
    /// How it is cut into pieces; three for each block, all at once, unless given.
    #[serde(default)]
    pub pace: Option<Chunks>,
    /// The time before the first byte of the answer.
    #[serde(default, deserialize_with = "short::duration")]
    #[schemars(with = "Span")]
    pub first_byte_after: Duration,
    /// Headers of the answer.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Its fault.
    #[serde(default)]
    pub fault: Option<ApiFailure>,
    /// How many requests get it, one after the other; one unless given.
    #[serde(default)]
    pub times: Option<u32>,
}

short_form!(ScriptedReply, "a text to say, or a mapping with what is replied",
    visit_str(&str) => |text| Ok(ScriptedReply::say(text)));

/// A call of a tool by the model.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolCall {
    /// The tool's name.
    pub tool: String,
    /// Its input; empty unless given.
    #[serde(default)]
    pub input: Map<String, Value>,
}

/// A block of a reply.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Thinking.
    Think(String),
    /// Thinking that cannot be read.
    Redacted(String),
    /// Text.
    Say(String),
    /// A call of a tool.
    Call(ToolCall),
    /// A block word for word.
    Block(Map<String, Value>),
}

/// The tokens that a reply costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Tokens {
    /// Read, neither written to nor read from the cache.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Written to the cache.
    pub cache_creation: u64,
    /// Read from the cache.
    pub cache_read: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            input: 10,
            output: 5,
            cache_creation: 0,
            cache_read: 0,
        }
    }
}

/// How a reply is cut into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Chunks {
    /// Characters in a piece; a third of each block unless given.
    pub chunk: Option<usize>,
    /// The time before each piece.
    #[serde(deserialize_with = "short::duration")]
    #[schemars(with = "Span")]
    pub every: Duration,
}

/// A fault of a reply. Those that break in its middle do so in the middle of its first text.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApiFailure {
    /// An HTTP error in the place of the reply.
    Http(HttpError),
    /// The connection is closed before the first byte.
    Drop,
    /// Nothing more comes from the middle on, and the connection stays open.
    Stall,
    /// The connection is closed in the middle.
    Cut,
    /// The body ends in the middle as if it were complete.
    Truncated,
    /// An event comes in the middle that is no JSON, and then the end.
    MalformedEvent,
    /// An `error` event of this type comes in the middle, such as `overloaded_error`.
    ErrorEvent(String),
    /// The answer names this content type, such as `text/html`.
    ContentType(String),
}

/// An HTTP error.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct HttpError {
    /// The status, such as 429 or 529.
    pub status: u16,
    /// The type of the error, such as `overloaded_error`; the one that the API has for the status unless given.
    #[serde(default)]
    pub kind: Option<String>,
    /// The error's text.
    #[serde(default)]
    pub message: Option<String>,
    /// The header `retry-after`, in seconds.
    #[serde(default)]
    pub retry_after: Option<u32>,
}

impl HttpError {
    /// One of this status.
    pub fn new(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }
}

impl ScriptedReply {
    /// A reply without content yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The model writes this text.
    pub fn say(text: impl Into<String>) -> Self {
        Self {
            say: Some(text.into()),
            ..Self::default()
        }
    }

    /// The model calls this tool. An input that is no object is empty.
    #[must_use]
    pub fn call(mut self, tool: impl Into<String>, input: Value) -> Self {
        let input = match input {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        self.call = Some(ToolCall {
            tool: tool.into(),
            input,
        });
        self
    }

    /// Sets its fault.
    #[must_use]
    pub fn fail(mut self, fault: ApiFailure) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Sets how many requests get it, one after the other.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// How many requests get it.
    pub(super) fn count(&self) -> u64 {
        u64::from(self.times.unwrap_or(1))
    }

    /// What cannot be meant.
    pub(super) fn mistake(&self) -> Option<String> {
        let plain = self.think.is_some() || self.say.is_some() || self.call.is_some();
        if plain && !self.content.is_empty() {
            return Some("a reply has either `content`, or `think`, `say` and `call`".to_owned());
        }
        if self.times == Some(0) {
            return Some("a reply that no request gets (`times: 0`) is none".to_owned());
        }
        match &self.fault {
            Some(ApiFailure::Http(error)) if !(400..600).contains(&error.status) => {
                Some(format!("{} is no HTTP status of an error", error.status))
            }
            _ => None,
        }
    }

    /// The reply to this request.
    pub(super) fn reply(&self, request: &ApiRequest) -> Reply {
        let plain = [
            self.think.clone().map(Content::Think),
            self.say.clone().map(Content::Say),
            self.call.clone().map(Content::Call),
        ];
        let blocks = plain.into_iter().flatten().chain(self.content.iter().cloned());
        let parts = blocks.flat_map(|content| obey::parts_of(&content.into(), request));
        let mut reply = parts.fold(Reply::new(), Reply::part);
        if let Some(tokens) = self.usage {
            reply = reply.usage(reply::Usage {
                input_tokens: tokens.input,
                output_tokens: tokens.output,
                cache_creation_input_tokens: tokens.cache_creation,
                cache_read_input_tokens: tokens.cache_read,
            });
        }
        if let Some(reason) = &self.stop_reason {
            reply = reply.stop_reason(reason);
        }
        if let Some(sequence) = &self.stop_sequence {
            reply = reply.stop_sequence(sequence);
        }
        if let Some(chunks) = self.pace {
            reply = reply.pace(Pace {
                chunk: chunks.chunk,
                pause: chunks.every,
            });
        }
        let mut reply = match &self.fault {
            Some(fault) => fault.befall(reply),
            None => reply,
        };
        if !self.first_byte_after.is_zero() {
            reply = reply.delay(self.first_byte_after);
        }
        self.headers
            .iter()
            .fold(reply, |reply, (name, value)| reply.header(name, value))
    }
}

impl ApiFailure {
    /// The reply with this fault in it.
    fn befall(&self, reply: Reply) -> Reply {
        let end = match self {
            Self::Http(error) => {
                let mut fault = ApiFault::new(error.status);
                if let Some(kind) = &error.kind {
                    fault = fault.kind(kind);
                }
                if let Some(message) = &error.message {
                    fault = fault.message(message);
                }
                if let Some(seconds) = error.retry_after {
                    fault = fault.retry_after(seconds);
                }
                return fault.into();
            }
            Self::Drop => return Reply::dropped(),
            Self::ContentType(kind) => return reply.content_type(kind),
            Self::Stall => vec![Part::Wait(Wait::Forever)],
            Self::Cut => vec![Part::Cut],
            Self::Truncated => vec![Part::Truncated],
            Self::MalformedEvent => {
                let half = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"ind\n\n";
                vec![Part::Raw(half.to_owned()), Part::Truncated]
            }
            Self::ErrorEvent(kind) => vec![Part::StreamError {
                kind: kind.clone(),
                message: "by the script".to_owned(),
            }],
        };
        obey::broken_off(reply, end)
    }
}

impl From<Content> for Block {
    fn from(content: Content) -> Self {
        match content {
            Content::Think(text) => Self::Thinking(text),
            Content::Redacted(data) => Self::Redacted(data),
            Content::Say(text) => Self::Text(text),
            Content::Call(call) => Self::ToolUse {
                name: call.tool,
                input: Value::Object(call.input),
            },
            Content::Block(block) => Self::Raw(Value::Object(block)),
        }
    }
}
