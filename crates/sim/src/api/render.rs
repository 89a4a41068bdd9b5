//! Turns a reply into bytes on the wire.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::message::{ApiFault, ApiMessage, MessagePart, MessageWait};
use crate::script::response::Block;
use crate::script::{ApiError, Usage};

/// The signature under thinking.
const SIGNATURE: &str = "c2lnbmF0dXJl";

/// One thing to do on the way through a streamed reply.
#[derive(Debug)]
pub(super) enum RenderStep {
    Send(String),
    Wait(MessageWait),
    Cut,
}

/// The properties of a request that its message depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageContext<'a> {
    /// A number that no other reply of this server has; ids are made from it.
    pub(super) number: u64,
    pub(super) model: &'a str,
}

impl ApiMessage {
    /// The events of a streamed message, with the waits between them.
    pub(super) fn stream(&self, context: MessageContext<'_>) -> Vec<RenderStep> {
        let mut writer = Writer {
            steps: Vec::new(),
            index: 0,
            open: false,
            message: self,
        };
        let started = Usage {
            output: self.usage.output.min(1),
            ..self.usage
        };
        let start = json!({"type": "message_start", "message": {
            "id": message_id(context), "type": "message", "role": "assistant", "model": context.model,
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage(started),
        }});
        writer.event("message_start", &start.to_string());
        for (place, part) in self.parts.iter().enumerate() {
            if !self.stays_open(place) {
                writer.close();
            }
            match part {
                MessagePart::Text(text) => writer.text(text),
                MessagePart::MoreText(text) if writer.open => writer.text_deltas(text),
                MessagePart::MoreText(text) => writer.text(text),
                MessagePart::Thinking(text) => writer.thinking(text),
                MessagePart::ToolUse { id, name, input } => {
                    let id = id.clone().unwrap_or_else(|| tool_id(context, writer.index));
                    writer.tool(&id, name, input);
                }
                MessagePart::Block(json) => writer.block(json),
                MessagePart::Wait(wait) => writer.steps.push(RenderStep::Wait(wait.clone())),
                MessagePart::Raw(text) => writer.steps.push(RenderStep::Send(text.clone())),
                MessagePart::Cut => {
                    writer.steps.push(RenderStep::Cut);
                    return writer.steps;
                }
                MessagePart::Truncated => return writer.steps,
                MessagePart::StreamError(kind) => {
                    writer.event("error", &error_body(kind, BY_THE_SCRIPT).to_string());
                    return writer.steps;
                }
            }
        }
        writer.close();
        let delta = json!({
            "type": "message_delta",
            "delta": {"stop_reason": self.stop_reason(), "stop_sequence": self.stop_sequence},
            "usage": usage(self.usage),
        });
        writer.event("message_delta", &delta.to_string());
        writer.event("message_stop", r#"{"type":"message_stop"}"#);
        writer.steps
    }

    /// The whole message as JSON text, the waits on the way to it, and what ends it early.
    pub(super) fn whole(&self, context: MessageContext<'_>) -> (Vec<MessageWait>, Result<String, NoMessage>) {
        let mut waits = Vec::new();
        let mut blocks: Vec<String> = Vec::new();
        let mut text_open = false;
        for part in &self.parts {
            match part {
                MessagePart::Text(text) => blocks.push(json!({"type": "text", "text": text}).to_string()),
                MessagePart::MoreText(text) => {
                    let before = if text_open { blocks.pop() } else { None };
                    let before: Value = before
                        .and_then(|block| serde_json::from_str(&block).ok())
                        .unwrap_or_default();
                    let before = before.get("text").and_then(Value::as_str).unwrap_or_default();
                    blocks.push(json!({"type": "text", "text": format!("{before}{text}")}).to_string());
                }
                MessagePart::Thinking(text) => {
                    let block = json!({"type": "thinking", "thinking": text, "signature": SIGNATURE});
                    blocks.push(block.to_string());
                }
                MessagePart::ToolUse { id, name, input } => {
                    let id = id.clone().unwrap_or_else(|| tool_id(context, blocks.len()));
                    let (id, name) = (json!(id), json!(name));
                    blocks.push(format!(
                        r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#
                    ));
                }
                MessagePart::Block(json) => blocks.push(json.clone()),
                MessagePart::Wait(wait) => waits.push(wait.clone()),
                MessagePart::Raw(text) => return (waits, Ok(text.clone())),
                MessagePart::Cut => return (waits, Err(NoMessage::Cut)),
                MessagePart::Truncated => return (waits, Ok(self.half(&blocks, context))),
                MessagePart::StreamError(kind) => {
                    let status = if kind == "overloaded_error" { 529 } else { 500 };
                    let mut error = ApiError::new(status).message(BY_THE_SCRIPT);
                    error.kind = Some(kind.clone());
                    return (waits, Err(NoMessage::Fault(error.into())));
                }
            }
            text_open = match part {
                MessagePart::Text(_) | MessagePart::MoreText(_) => true,
                MessagePart::Wait(_) => text_open,
                _ => false,
            };
        }
        (waits, Ok(self.text(&blocks, context)))
    }

    /// The message of these blocks as JSON text.
    fn text(&self, blocks: &[String], context: MessageContext<'_>) -> String {
        let (id, model) = (json!(message_id(context)), json!(context.model));
        let (reason, sequence) = (json!(self.stop_reason()), json!(self.stop_sequence));
        let (content, usage) = (blocks.join(","), usage(self.usage));
        format!(
            r#"{{"id":{id},"type":"message","role":"assistant","model":{model},"content":[{content}],"stop_reason":{reason},"stop_sequence":{sequence},"usage":{usage}}}"#
        )
    }

    fn half(&self, blocks: &[String], context: MessageContext<'_>) -> String {
        let mut text = self.text(blocks, context);
        let half = text
            .char_indices()
            .nth(text.chars().count() / 2)
            .map_or(0, |(at, _)| at);
        text.truncate(half);
        text
    }

    fn stop_reason(&self) -> &str {
        let calls = || self.parts.iter().any(MessagePart::is_call);
        match &self.stop_reason {
            Some(reason) => reason,
            None if calls() => "tool_use",
            None => "end_turn",
        }
    }

    /// Whether the block that is open at this place stays open: the steps after the waits continue it, or end the stream in
    /// its middle.
    fn stays_open(&self, place: usize) -> bool {
        let finite = |part: &&MessagePart| {
            matches!(
                part,
                MessagePart::Wait(MessageWait::Gate(_) | MessageWait::Pause(_) | MessageWait::Judge(_))
            )
        };
        let next = self.parts.iter().skip(place).find(|part| !finite(part));
        matches!(
            next,
            Some(
                MessagePart::MoreText(_)
                    | MessagePart::Raw(_)
                    | MessagePart::Cut
                    | MessagePart::Truncated
                    | MessagePart::StreamError(_)
                    | MessagePart::Wait(MessageWait::Forever)
            )
        )
    }
}

/// Why a message without streaming does not come.
#[derive(Debug)]
pub(super) enum NoMessage {
    Cut,
    Fault(ApiFault),
}

impl MessagePart {
    fn is_call(&self) -> bool {
        match self {
            Self::ToolUse { .. } => true,
            Self::Block(json) => {
                serde_json::from_str::<Value>(json).is_ok_and(|block| block["type"] == "tool_use")
            }
            _ => false,
        }
    }
}

/// The text of errors that a script puts in a stream.
const BY_THE_SCRIPT: &str = "by the script";

/// Token counts, as the API reports them.
fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_creation_input_tokens": usage.cache_creation,
        "cache_read_input_tokens": usage.cache_read,
    })
}

fn message_id(context: MessageContext<'_>) -> String {
    format!("msg_sim_{:06}", context.number)
}

pub(super) fn error_body(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn tool_id(context: MessageContext<'_>, index: usize) -> String {
    format!("toolu_sim_{:06}_{index}", context.number)
}

struct Writer<'a> {
    steps: Vec<RenderStep>,
    /// The index of the block that is open, or of the next one.
    index: usize,
    /// A block is open and takes more.
    open: bool,
    message: &'a ApiMessage,
}

impl Writer<'_> {
    fn event(&mut self, name: &str, data: &str) {
        self.steps
            .push(RenderStep::Send(format!("event: {name}\ndata: {data}\n\n")));
    }

    fn start(&mut self, block: &str) {
        let index = self.index;
        self.event(
            "content_block_start",
            &format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#),
        );
        self.open = true;
    }

    fn delta(&mut self, delta: &str) {
        let index = self.index;
        self.event(
            "content_block_delta",
            &format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#),
        );
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            let stop = json!({"type": "content_block_stop", "index": self.index});
            self.event("content_block_stop", &stop.to_string());
            self.index += 1;
        }
    }

    fn text(&mut self, text: &str) {
        self.start(r#"{"type":"text","text":""}"#);
        self.text_deltas(text);
    }

    fn text_deltas(&mut self, text: &str) {
        self.paced(text, |piece| json!({"type": "text_delta", "text": piece}));
    }

    fn thinking(&mut self, text: &str) {
        self.start(r#"{"type":"thinking","thinking":"","signature":""}"#);
        self.paced(text, |piece| json!({"type": "thinking_delta", "thinking": piece}));
        self.delta(&json!({"type": "signature_delta", "signature": SIGNATURE}).to_string());
        self.close();
    }

    fn tool(&mut self, id: &str, name: &str, input: &str) {
        self.start(&json!({"type": "tool_use", "id": id, "name": name, "input": {}}).to_string());
        self.paced(
            input,
            |piece| json!({"type": "input_json_delta", "partial_json": piece}),
        );
        self.close();
    }

    /// A block given as JSON text. That of a text block goes to the client letter by letter as it was given.
    fn block(&mut self, json: &str) {
        #[derive(Deserialize)]
        struct Text<'a> {
            r#type: &'a str,
            #[serde(borrow)]
            text: &'a RawValue,
        }
        match serde_json::from_str::<Text<'_>>(json) {
            Ok(block) if block.r#type == "text" => {
                self.start(r#"{"type":"text","text":""}"#);
                self.delta(&format!(r#"{{"type":"text_delta","text":{}}}"#, block.text));
            }
            _ => match serde_json::from_str(json) {
                Ok(block) => {
                    let (start, deltas) = Block::streamed(&block);
                    self.start(&start.to_string());
                    for delta in deltas {
                        self.delta(&delta.to_string());
                    }
                }
                Err(_) => self.start(json),
            },
        }
        self.close();
    }

    fn paced(&mut self, text: &str, delta: impl Fn(&str) -> Value) {
        let pace = self.message.pace;
        let size = pace.map_or_else(|| text.chars().count().div_ceil(3), |pace| pace.chunk);
        let (size, pause) = (size.max(1), pace.map(|pace| pace.every).unwrap_or_default());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(size).map_or(rest.len(), |(end, _)| end);
            let (piece, behind) = rest.split_at(end);
            if !pause.is_zero() {
                self.steps.push(RenderStep::Wait(MessageWait::Pause(pause)));
            }
            self.delta(&delta(piece).to_string());
            rest = behind;
        }
    }
}
