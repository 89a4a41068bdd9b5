//! The scripted reply to one request.

use std::time::Duration;

use serde_json::Value;

/// One answer of the API: a message, an error, or a connection that breaks.
///
/// This is the door for what no [script](crate::script) says: gates in the middle of a text, ids, bytes of an event.
/// Everything else is shorter in a script.
///
/// A reply is built from parts in order: content blocks, and between them waits and breaks. The same reply serves streaming and
/// other requests; for the latter the waits come first and then the whole message. Without any content block it is a
/// message with empty content.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub(super) before: Vec<Wait>,
    pub(super) body: Body,
}

#[derive(Debug, Clone)]
pub(super) enum Body {
    Message(Message),
    Fault(ApiFault),
    /// The connection closes before anything was sent.
    Dropped,
}

impl Default for Body {
    fn default() -> Self {
        Self::Message(Message::default())
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) parts: Vec<Part>,
    pub(super) usage: Usage,
    pub(super) stop_reason: Option<String>,
    pub(super) stop_sequence: Option<String>,
    pub(super) pace: Pace,
    pub(super) headers: Vec<(String, String)>,
    pub(super) content_type: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) enum Part {
    Text(String),
    /// Continues the block before it.
    MoreText(String),
    Thinking {
        text: String,
        signature: String,
    },
    ToolUse {
        id: Option<String>,
        name: String,
        /// JSON text, sent as it is.
        input: String,
    },
    /// A whole content block as JSON text.
    Block(String),
    Wait(Wait),
    Ping,
    /// Sent in the stream as it is.
    Raw(String),
    Cut,
    /// The body ends, and the connection is fine.
    Truncated,
    StreamError {
        kind: String,
        message: String,
    },
}

#[derive(Debug, Clone)]
pub(super) enum Wait {
    Gate(String),
    Pause(Duration),
    Forever,
    /// Until the client hangs up. If it does not in time, that is a flaw at this place.
    HangUp {
        patience: Duration,
        place: String,
    },
}

/// The signature that thinking blocks carry unless the script gives one.
pub(super) const SIGNATURE: &str = "c2lnbmF0dXJl";

/// Token counts of a reply, as the API reports them.
///
/// By default 10 tokens in, 5 out and nothing cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Input tokens that were neither written to nor read from the cache.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens written to the cache.
    pub cache_creation_input_tokens: u64,
    /// Input tokens read from the cache.
    pub cache_read_input_tokens: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            input_tokens: 10,
            output_tokens: 5,
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: 0,
        }
    }
}

/// How a content block is cut into deltas.
///
/// By default each block comes in up to three deltas, without a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// Characters per delta; `None` for three deltas of about the same length.
    pub chunk: Option<usize>,
    /// The pause before each delta.
    pub pause: Duration,
}

impl Reply {
    /// A message without content yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A message of one text block.
    pub fn say(text: impl Into<String>) -> Self {
        Self::new().text(text)
    }

    /// No answer at all: the connection is closed before the response's first byte.
    pub fn dropped() -> Self {
        Self {
            before: Vec::new(),
            body: Body::Dropped,
        }
    }

    /// Appends a text block.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.part(Part::Text(text.into()))
    }

    /// Continues the text block before it, after a [`hold`](Self::hold) or [`pause`](Self::pause) in its middle.
    ///
    /// Without a text block before it, it starts one.
    #[must_use]
    pub fn more_text(self, text: impl Into<String>) -> Self {
        self.part(Part::MoreText(text.into()))
    }

    /// Appends a thinking block, with a made-up signature.
    #[must_use]
    pub fn thinking(self, text: impl Into<String>) -> Self {
        self.thinking_signed(text, SIGNATURE)
    }

    /// Appends a thinking block with this signature.
    #[must_use]
    pub fn thinking_signed(self, text: impl Into<String>, signature: impl Into<String>) -> Self {
        self.part(Part::Thinking {
            text: text.into(),
            signature: signature.into(),
        })
    }

    /// Appends a tool call, with an id that no other call of this server has.
    ///
    /// Several in one reply are calls that the model makes in parallel.
    #[must_use]
    pub fn tool(self, name: impl Into<String>, input: Value) -> Self {
        self.part(Part::ToolUse {
            id: None,
            name: name.into(),
            input: input.to_string(),
        })
    }

    /// Appends a tool call with this id.
    #[must_use]
    pub fn tool_with_id(self, id: impl Into<String>, name: impl Into<String>, input: Value) -> Self {
        self.part(Part::ToolUse {
            id: Some(id.into()),
            name: name.into(),
            input: input.to_string(),
        })
    }

    /// Appends a content block given as JSON text, which is sent as it is.
    ///
    /// For blocks of other kinds, and for text that no Rust string can hold, such as lone surrogates. Text that is no JSON object
    /// breaks its event, which may be the purpose of a test.
    #[must_use]
    pub fn block_json(self, json: impl Into<String>) -> Self {
        self.part(Part::Block(json.into()))
    }

    /// Stops here until the [`Gate`](super::Gate) of this name lets the reply go on. Before any block, the headers wait
    /// too only with [`hold_headers`](Self::hold_headers).
    #[must_use]
    pub fn hold(self, gate: impl Into<String>) -> Self {
        self.part(Part::Wait(Wait::Gate(gate.into())))
    }

    /// Pauses here for a time.
    #[must_use]
    pub fn pause(self, time: Duration) -> Self {
        self.part(Part::Wait(Wait::Pause(time)))
    }

    /// Sends nothing more from here on and keeps the connection open, until the client or the server goes away.
    #[must_use]
    pub fn stall(self) -> Self {
        self.part(Part::Wait(Wait::Forever))
    }

    /// Sends a `ping` event here.
    #[must_use]
    pub fn ping(self) -> Self {
        self.part(Part::Ping)
    }

    /// Cuts the connection here; what follows is not sent.
    #[must_use]
    pub fn cut(self) -> Self {
        self.part(Part::Cut)
    }

    /// Sends this text in the stream as it is, such as half an event or one that is no JSON; a request without streaming is
    /// answered with this text in the place of the message.
    #[must_use]
    pub fn raw(self, text: impl Into<String>) -> Self {
        self.part(Part::Raw(text.into()))
    }

    /// Ends the body here as if it were complete, which the connection survives; of a message without streaming half is sent.
    #[must_use]
    pub fn truncated(self) -> Self {
        self.part(Part::Truncated)
    }

    /// Names another content type than the body has, as a proxy's error page does.
    #[must_use]
    pub fn content_type(self, kind: impl Into<String>) -> Self {
        let kind = kind.into();
        self.message(|message| message.content_type = Some(kind))
    }

    /// Ends the stream here with an `error` event of this type, such as `overloaded_error`.
    ///
    /// A request without streaming gets an error response of that type instead.
    #[must_use]
    pub fn stream_error(self, kind: impl Into<String>, message: impl Into<String>) -> Self {
        self.part(Part::StreamError {
            kind: kind.into(),
            message: message.into(),
        })
    }

    /// Holds the whole response, headers included, until the gate of this name lets it go on.
    #[must_use]
    pub fn hold_headers(mut self, gate: impl Into<String>) -> Self {
        self.before.push(Wait::Gate(gate.into()));
        self
    }

    /// Waits for a time before the response's first byte.
    #[must_use]
    pub fn delay(mut self, time: Duration) -> Self {
        self.before.push(Wait::Pause(time));
        self
    }

    /// Sets the token counts.
    #[must_use]
    pub fn usage(self, usage: Usage) -> Self {
        self.message(|message| message.usage = usage)
    }

    /// Sets the stop reason; by default `tool_use` if there is a tool call and `end_turn` if not.
    #[must_use]
    pub fn stop_reason(self, reason: impl Into<String>) -> Self {
        self.message(|message| message.stop_reason = Some(reason.into()))
    }

    /// Sets the stop sequence that was met.
    #[must_use]
    pub fn stop_sequence(self, sequence: impl Into<String>) -> Self {
        self.message(|message| message.stop_sequence = Some(sequence.into()))
    }

    /// Sets the model in the message; by default the requested one.
    #[must_use]
    pub fn model(self, model: impl Into<String>) -> Self {
        self.message(|message| message.model = Some(model.into()))
    }

    /// Sets the message's id; by default one that no other message of this server has.
    #[must_use]
    pub fn message_id(self, id: impl Into<String>) -> Self {
        self.message(|message| message.id = Some(id.into()))
    }

    /// Sets how blocks are cut into deltas.
    #[must_use]
    pub fn pace(self, pace: Pace) -> Self {
        self.message(|message| message.pace = pace)
    }

    /// Adds a response header, such as one of the rate limit figures.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let header = (name.into(), value.into());
        match &mut self.body {
            Body::Message(message) => message.headers.push(header),
            Body::Fault(fault) => fault.headers.push(header),
            Body::Dropped => {}
        }
        self
    }

    pub(super) fn part(self, part: Part) -> Self {
        self.message(|message| message.parts.push(part))
    }

    /// Changes the message; a reply that is none has nothing of the kind to change.
    pub(super) fn message(mut self, change: impl FnOnce(&mut Message)) -> Self {
        if let Body::Message(message) = &mut self.body {
            change(message);
        }
        self
    }
}

/// An error response: an HTTP status with the API's error object.
#[derive(Debug, Clone)]
pub struct ApiFault {
    pub(super) status: u16,
    pub(super) kind: String,
    pub(super) text: String,
    pub(super) headers: Vec<(String, String)>,
}

impl ApiFault {
    /// An error of this status, with the error type that the API uses for it.
    ///
    /// A status that HTTP does not know is sent as 500.
    pub fn new(status: u16) -> Self {
        let (kind, text) = match status {
            400 => ("invalid_request_error", "the request is not valid"),
            401 => ("authentication_error", "invalid x-api-key"),
            402 => ("billing_error", "the account cannot be billed"),
            403 => ("permission_error", "the key may not use this"),
            404 => ("not_found_error", "not found"),
            413 => ("request_too_large", "the request exceeds the maximum size"),
            429 => ("rate_limit_error", "too many requests"),
            503 | 529 => ("overloaded_error", "Overloaded"),
            504 => ("timeout_error", "the request timed out"),
            _ if status < 500 => ("invalid_request_error", "the request was refused"),
            _ => ("api_error", "internal server error"),
        };
        Self {
            status,
            kind: kind.to_owned(),
            text: text.to_owned(),
            headers: Vec::new(),
        }
    }

    /// Sets the error's text.
    #[must_use]
    pub fn message(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// Sets the error's type.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = kind.into();
        self
    }

    /// Adds `Retry-After`, in whole seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.headers.push(("retry-after".to_owned(), seconds.to_string()));
        self
    }

    /// Adds a response header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

impl From<ApiFault> for Reply {
    fn from(fault: ApiFault) -> Self {
        Self {
            before: Vec::new(),
            body: Body::Fault(fault),
        }
    }
}
