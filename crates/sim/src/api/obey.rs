//! Replies by the directives in the prompt.
//!
//! The conversation alone determines the current script and the position in it, so that a resumed session continues
//! and one server can serve any number of processes. Only faults and messages without content leave no trace in the
//! conversation; those are counted here.

use serde_json::Value;

use super::conversation::{Conversations, Place, Spent};
use super::reply::{ApiFault, Body, Pace, Part, Reply, SIGNATURE, Usage, Wait};
use super::request::{ApiRequest, user_texts};
use crate::directive::{self, Block, DirectiveError, FaultKind, Response};

/// The answer that the conversation's script has for this request; `None` when there is no script or it is used up.
pub(super) fn obey(
    request: &ApiRequest,
    conversations: &mut Conversations,
) -> Option<Result<Reply, DirectiveError>> {
    let (anchor, text) = find(request)?;
    let script = match directive::parse(text) {
        Ok(script) => script,
        Err(error) => return Some(Err(error)),
    };
    let place = |what| Place::new(request, anchor, text, what);
    let position = answers_since(request.messages(), anchor) + *conversations.spent(place(Spent::Empty));
    let position = usize::try_from(position).ok()?;
    let response = script.get(position)?;

    let spent = conversations.spent(place(Spent::Faults(position)));
    let mut until = 0;
    for fault in &response.faults {
        until += u64::from(fault.times);
        if *spent < until {
            *spent += 1;
            return Some(Ok(failing(&fault.kind, response, request)));
        }
    }
    if response.blocks.is_empty() && !response.hang {
        *conversations.spent(place(Spent::Empty)) += 1;
    }
    Some(Ok(succeeding(response, request)))
}

/// The script in force, and the index of its message.
fn find(request: &ApiRequest) -> Option<(usize, &str)> {
    let mut messages = request.messages().iter().enumerate().rev();
    messages.find_map(|(index, message)| {
        let text = user_texts(message)
            .into_iter()
            .rev()
            .find(|text| directive::present(text))?;
        // The CLI puts a newline behind a text when it joins messages; that must not make another script of it.
        Some((index, text.trim_end()))
    })
}

/// How often the model has answered since the message at `anchor`. Neighbouring assistant messages are one answer.
fn answers_since(messages: &[Value], anchor: usize) -> u64 {
    let role = |message: &Value| message.get("role").and_then(Value::as_str).map(str::to_owned);
    let roles = messages.iter().skip(anchor + 1).filter_map(role);
    let mut answers = 0;
    let mut before = String::new();
    // Notes that the CLI puts in between, with the role `system`, do not part an answer.
    for role in roles.filter(|role| role != "system") {
        if role == "assistant" && before != role {
            answers += 1;
        }
        before = role;
    }
    answers
}

fn succeeding(response: &Response, request: &ApiRequest) -> Reply {
    let parts = response
        .blocks
        .iter()
        .flat_map(|block| spoken_parts(block, request));
    let mut reply = parts.fold(Reply::new(), Reply::part).usage(Usage {
        input_tokens: response.usage.input,
        output_tokens: response.usage.output,
        ..Usage::default()
    });
    if !response.delay.is_zero() {
        reply = reply.delay(response.delay);
    }
    if let Some(pace) = response.pace {
        reply = reply.pace(Pace {
            chunk: Some(pace.chunk),
            pause: pace.every,
        });
    }
    if let Some(reason) = &response.stop_reason {
        reply = reply.stop_reason(reason);
    }
    if response.hang {
        reply = reply.stall();
    }
    reply
}

fn failing(fault: &FaultKind, response: &Response, request: &ApiRequest) -> Reply {
    let end = match fault {
        FaultKind::Status { status, message } => {
            let fault = ApiFault::new(*status);
            return match message {
                Some(message) => fault.message(message).into(),
                None => fault.into(),
            };
        }
        FaultKind::Drop => return Reply::dropped(),
        FaultKind::Cut => Part::Cut,
        FaultKind::SseError(kind) => Part::StreamError {
            kind: kind.clone(),
            message: "by the script".to_owned(),
        },
    };
    broken_off(succeeding(response, request), vec![end])
}

/// The reply up to the middle of its first text, or without any content, and then this.
fn broken_off(mut reply: Reply, end: Vec<Part>) -> Reply {
    if let Body::Message(message) = &mut reply.body {
        // Up to the middle of the first text.
        let first = message
            .parts
            .iter()
            .position(|part| matches!(part, Part::Text(_)));
        message.parts.truncate(first.map_or(0, |first| first + 1));
        if let Some(Part::Text(text)) = message.parts.last_mut() {
            let half = text.chars().count().div_ceil(2);
            *text = text.chars().take(half).collect();
        }
        message.parts.extend(end);
    }
    reply
}

/// The parts of a block, with its placeholders filled in from the conversation.
fn spoken_parts(block: &Block, request: &ApiRequest) -> Vec<Part> {
    match block {
        Block::Text(text) => spoken(&filled(text, request)),
        Block::ToolUse { name, input } => {
            let name = name.clone();
            let input = fill_in(input.clone(), request);
            parts_of(&Block::ToolUse { name, input }, None)
        }
        block => parts_of(block, None),
    }
}

/// The parts of a block; a call has this id, or one that the server makes.
pub(super) fn parts_of(block: &Block, id: Option<String>) -> Vec<Part> {
    vec![match block {
        Block::Text(text) => Part::Text(text.clone()),
        Block::Thinking(text) => Part::Thinking {
            text: text.clone(),
            signature: SIGNATURE.to_owned(),
        },
        Block::Redacted(data) => {
            let block = serde_json::json!({"type": "redacted_thinking", "data": data});
            Part::Block(block.to_string())
        }
        Block::ToolUse { name, input } => Part::ToolUse {
            id,
            name: name.clone(),
            input: input.to_string(),
        },
        Block::Raw(block) => Part::Block(block.to_string()),
    }]
}

/// A placeholder in text and in the strings of a tool's input.
const LAST: &str = "{{last}}";
const PLAN: &str = "{{plan}}";
const CWD: &str = "{{cwd}}";

fn filled(text: &str, request: &ApiRequest) -> String {
    let mut text = text.to_owned();
    if text.contains(LAST) {
        text = text.replace(LAST, &request.last_tool_result().unwrap_or_default());
    }
    if text.contains(PLAN) {
        text = text.replace(PLAN, &request.plan_file().unwrap_or_default());
    }
    if text.contains(CWD) {
        text = text.replace(CWD, &request.working_directory().unwrap_or_default());
    }
    text
}

fn fill_in(value: Value, request: &ApiRequest) -> Value {
    match value {
        Value::String(text) => Value::String(filled(&text, request)),
        Value::Array(items) => items.into_iter().map(|item| fill_in(item, request)).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, fill_in(value, request)))
            .collect(),
        other => other,
    }
}

/// Text with `{{gate:NAME}}` in it. An opening without its end is text.
fn spoken(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let say = |parts: &mut Vec<Part>, text: &str| {
        let text = text.to_owned();
        let part = if parts.is_empty() {
            Part::Text(text)
        } else {
            Part::MoreText(text)
        };
        parts.push(part);
    };
    let mut rest = text;
    while let Some((before, (name, behind))) = rest
        .split_once("{{gate:")
        .and_then(|(before, behind)| Some((before, behind.split_once("}}")?)))
    {
        say(&mut parts, before);
        parts.push(Part::Wait(Wait::Gate(name.to_owned())));
        rest = behind;
    }
    say(&mut parts, rest);
    parts
}
