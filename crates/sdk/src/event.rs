//! What happens during a turn, as a program wants to see it.

mod streams;

use std::collections::VecDeque;

use outrigger_protocol::inbound::{
    ApiStreamEvent, AssistantMessage, BlockDelta, Message, StreamEvent, UserMessage,
};
use outrigger_protocol::shared::{ContentBlock, MessageContent};
use outrigger_protocol::{Frame, Misfit, PieceKind, RawJson};

use self::streams::Streams;

#[doc(hidden)]
pub use self::streams::untold;
pub use crate::conn::lane::Lag;

/// One thing that happened during a turn.
///
/// Text and thinking come once, whether partial messages are on or not: as they are written if they are, else a block at a
/// time. What a subagent does is [`Subagent`](Self::Subagent) and never mixed with the main conversation. Everything that is
/// not put into a friendlier form is a [`Message`](Self::Message), so that nothing is left out but where partial messages and their
/// blocks begin and end. Tool calls and results carry their frame as well; the exact bytes of text are in [`Turn::next_frame`](crate::Turn::next_frame).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// Text of the answer.
    Text(String),
    /// The model's thinking.
    Thinking(String),
    /// The model calls a tool.
    ToolUse(ToolUse),
    /// A part of a tool call's input as it is written (partial messages only): the call's block index in the message, and JSON
    /// text that continues the part before.
    ToolInput {
        /// The index of the block in the message.
        index: u64,
        /// The next piece of the JSON text.
        partial_json: String,
    },
    /// A tool call ended.
    ToolResult(ToolResult),
    /// The CLI reports that the API call failed; the text is its own, not the model's.
    ApiError {
        /// The kind of failure.
        kind: String,
        /// What the CLI says about it.
        text: String,
    },
    /// A content block of another kind: a search on the API's side, a citation's source, …
    Block(Box<ContentBlock>),
    /// Something that a subagent of this turn does.
    Subagent(Box<SubagentEvent>),
    /// Any other message of the CLI, with the frame that it came in.
    Message(Box<Message>, Frame),
    /// A frame that could not be decoded. Its neighbours are not affected.
    Undecodable(Frame, Misfit),
    /// The program read too slowly, and partial messages were left out; the finished messages repeat what they said.
    Lagged(Lag),
}

/// A tool call of the model.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolUse {
    /// The id of the call.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// What it is called with; [`ToolInput`](outrigger_protocol::tools::ToolInput) reads the built-in tools' inputs.
    pub input: RawJson,
    /// The frame that it came in.
    pub frame: Frame,
}

/// How a tool call ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the call.
    pub tool_use_id: String,
    /// Whether it failed or was refused.
    pub is_error: bool,
    /// What the model sees, as text; other kinds of content are left out here.
    pub text: String,
    /// What the model sees: a string or content blocks.
    pub content: Option<MessageContent>,
    /// The tool's own structured output, or a string when it failed.
    pub output: Option<RawJson>,
    /// The frame that it came in.
    pub frame: Frame,
}

/// Something that a subagent does.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SubagentEvent {
    /// The tool call that started the subagent.
    pub parent_tool_use_id: String,
    /// What it does.
    pub event: Event,
}

/// Turns frames into events. Knows what was said already.
#[derive(Debug, Default)]
pub(crate) struct Reducer {
    ready: VecDeque<Event>,
    streams: Streams,
    /// Pieces of the message that is being streamed were left out, so the rest waits for its finished lines.
    lags: bool,
}

impl Reducer {
    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    pub(crate) fn lagged(&mut self, lag: Lag) {
        // What was left out may be text; the final lines then say it all.
        self.streams.clear();
        self.lags = true;
        self.ready.push_back(Event::Lagged(lag));
    }

    /// Takes the next frame of the turn. Frames about the turn itself (its result, the life of its prompts) are no events.
    /// True when the frame could not be decoded.
    pub(crate) fn push(&mut self, frame: &Frame) -> bool {
        if matches!(frame.kind(), "result" | "command_lifecycle") {
            return false;
        }
        let from = self.ready.len();
        let is_misfit = match frame.delta() {
            Some(delta) => {
                let text = delta.text.into_owned();
                self.piece(frame.parent_tool_use_id(), delta.index, delta.kind, text);
                false
            }
            None => self.decode(frame),
        };
        let says = matches!(frame.kind(), "assistant" | "user" | "stream_event");
        if let Some(parent) = frame.parent_tool_use_id().filter(|_| says && !is_misfit) {
            for event in self.ready.iter_mut().skip(from) {
                let event_of_it = std::mem::replace(event, Event::Text(String::new()));
                *event = Event::Subagent(Box::new(SubagentEvent {
                    parent_tool_use_id: parent.to_owned(),
                    event: event_of_it,
                }));
            }
        }
        is_misfit
    }

    fn decode(&mut self, frame: &Frame) -> bool {
        self.follow(frame);
        match frame.decode() {
            Ok(Message::Assistant(assistant)) => self.assistant(*assistant, frame),
            Ok(Message::StreamEvent(event)) => self.stream(event, frame),
            Ok(Message::User(user)) => self.user(*user, frame),
            Ok(other) => self.tell(other, frame),
            Err(misfit) => {
                self.ready.push_back(Event::Undecodable(frame.clone(), misfit));
                return true;
            }
        }
        false
    }

    fn tell(&mut self, message: Message, frame: &Frame) {
        self.ready
            .push_back(Event::Message(Box::new(message), frame.clone()));
    }
}

impl Reducer {
    fn assistant(&mut self, assistant: AssistantMessage, frame: &Frame) {
        if let Some(error) = &assistant.error {
            let text = assistant
                .message
                .content
                .iter()
                .filter_map(text_of)
                .collect::<Vec<_>>()
                .join("\n");
            self.ready.push_back(Event::ApiError {
                kind: error.as_str().to_owned(),
                text,
            });
            return;
        }
        let (id, parent) = (assistant.message.id.as_deref(), frame.parent_tool_use_id());
        for block in assistant.message.content {
            let event = match block {
                ContentBlock::Text(block) => {
                    match self.streams.finished(parent, id, PieceKind::Text, block.text) {
                        Some(text) => Event::Text(text),
                        None => continue,
                    }
                }
                ContentBlock::Thinking(block) => {
                    match self
                        .streams
                        .finished(parent, id, PieceKind::Thinking, block.thinking)
                    {
                        Some(thinking) => Event::Thinking(thinking),
                        None => continue,
                    }
                }
                ContentBlock::ToolUse(block) => Event::ToolUse(ToolUse {
                    id: block.id,
                    name: block.name,
                    input: block.input,
                    frame: frame.clone(),
                }),
                other => Event::Block(Box::new(other)),
            };
            self.ready.push_back(event);
        }
    }

    /// Where messages begin and end in the stream, by the kind of event alone: whatever else is odd about it.
    fn follow(&mut self, frame: &Frame) {
        let parent = frame.parent_tool_use_id();
        match frame.event_type() {
            Some("message_start") => self.streams.begin(parent),
            Some("message_stop") => self.streams.over(parent),
            _ => return,
        }
        self.lags = false;
    }

    fn stream(&mut self, event: Box<StreamEvent>, frame: &Frame) {
        let parent = frame.parent_tool_use_id();
        let (index, kind, text) = match &event.event {
            ApiStreamEvent::MessageStart(start) => {
                let id = start.message.id.as_ref().or(event.api_message_id.as_ref());
                return self.streams.name(parent, id.cloned());
            }
            ApiStreamEvent::ContentBlockStart(start) => match &start.content_block {
                ContentBlock::Text(block) => (start.index, PieceKind::Text, block.text.clone()),
                ContentBlock::Thinking(block) => (start.index, PieceKind::Thinking, block.thinking.clone()),
                _ => return,
            },
            ApiStreamEvent::ContentBlockDelta(grows) => match &grows.delta {
                BlockDelta::Text(delta) => (grows.index, PieceKind::Text, delta.text.clone()),
                BlockDelta::Thinking(delta) => (grows.index, PieceKind::Thinking, delta.thinking.clone()),
                BlockDelta::InputJson(delta) => {
                    (grows.index, PieceKind::InputJson, delta.partial_json.clone())
                }
                // The finished block has them.
                BlockDelta::Signature(_) | BlockDelta::Citations(_) | BlockDelta::Compaction(_) => return,
                _ => return self.tell(Message::StreamEvent(event), frame),
            },
            ApiStreamEvent::ContentBlockStop(_)
            | ApiStreamEvent::MessageDelta(_)
            | ApiStreamEvent::MessageStop(_)
            | ApiStreamEvent::Ping(_) => return,
            // A broken stream, what is new, and what does not fit.
            _ => return self.tell(Message::StreamEvent(event), frame),
        };
        self.piece(parent, index, kind, text);
    }

    /// A block grows; `text` is what is added.
    fn piece(&mut self, parent: Option<&str>, index: u64, kind: PieceKind, text: String) {
        let event = match kind {
            PieceKind::InputJson => Event::ToolInput {
                index,
                partial_json: text,
            },
            _ if text.is_empty() || self.lags => return,
            PieceKind::Text => {
                self.streams.piece(parent, index, kind, &text);
                Event::Text(text)
            }
            PieceKind::Thinking => {
                self.streams.piece(parent, index, kind, &text);
                Event::Thinking(text)
            }
            _ => return,
        };
        self.ready.push_back(event);
    }

    fn user(&mut self, user: UserMessage, frame: &Frame) {
        let has_result = user
            .message
            .content
            .blocks()
            .iter()
            .any(|block| is_tool_result(&block));
        if !has_result {
            return self.tell(Message::User(Box::new(user)), frame);
        }
        // What stands beside the results has no event of its own.
        if !user
            .message
            .content
            .blocks()
            .iter()
            .all(|block| is_tool_result(&block))
        {
            self.tell(Message::User(Box::new(user.clone())), frame);
        }
        let MessageContent::Blocks(blocks) = user.message.content else {
            return;
        };
        let mut output = user.tool_use_result;
        let mut left = blocks.iter().filter(is_tool_result).count();
        for block in blocks {
            let ContentBlock::ToolResult(block) = block else {
                continue;
            };
            let text = match &block.content {
                None => String::new(),
                Some(content) => match content.as_text() {
                    Some(text) => text.to_owned(),
                    None => content
                        .blocks()
                        .iter()
                        .filter_map(text_of)
                        .collect::<Vec<_>>()
                        .join("\n"),
                },
            };
            left -= 1;
            self.ready.push_back(Event::ToolResult(ToolResult {
                tool_use_id: block.tool_use_id,
                is_error: block.is_error.unwrap_or(false),
                text,
                content: block.content,
                // Can be large, and nearly always there is one result only.
                output: if left == 0 { output.take() } else { output.clone() },
                frame: frame.clone(),
            }));
        }
    }
}

fn is_tool_result(block: &&ContentBlock) -> bool {
    matches!(block, ContentBlock::ToolResult(_))
}

fn text_of(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(block) => Some(&block.text),
        _ => None,
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
