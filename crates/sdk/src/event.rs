//! What happens during a turn, as a program wants to see it.

use std::collections::VecDeque;

use outrigger_protocol::inbound::{
    ApiStreamEvent, AssistantMessage, BlockDelta, Message, StreamEvent, UserMessage,
};
use outrigger_protocol::shared::{ContentBlock, MessageContent};
use outrigger_protocol::{Frame, Misfit, PieceKind, RawJson};

pub use crate::conn::lane::Lag;

/// One thing that happened during a turn.
///
/// Text and thinking come once, whether partial messages are on or not: as they are written if they are, else a block at a
/// time. What a subagent does is [`Subagent`](Self::Subagent) and never mixed with the main conversation. Everything that is
/// not put into a friendlier form is a [`Message`](Self::Message), so that nothing is left out. Tool calls and results carry
/// their frame as well; the exact bytes of text are in [`Turn::next_frame`](crate::Turn::next_frame).
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
    /// What went out of each streamed message whose final lines are awaited; the newest last.
    streamed: VecDeque<Streamed>,
    /// Whether the last of them is being streamed.
    streaming: bool,
}

/// How many streamed messages are remembered while their final lines are awaited.
const MESSAGES_KEPT: usize = 64;

#[derive(Debug, Default)]
struct Streamed {
    message: String,
    /// How much of each block went out, by index.
    sent: Vec<(u64, String)>,
    /// The index of the block that the next final line of this message repeats.
    next: u64,
}

impl Streamed {
    fn sent(&mut self, index: u64) -> &mut String {
        // The block that is being written is the last.
        let at = match self.sent.iter().rposition(|(known, _)| *known == index) {
            Some(at) => at,
            None => {
                self.sent.push((index, String::new()));
                self.sent.len() - 1
            }
        };
        &mut self.sent[at].1
    }

    /// What went out of the block that the next final line repeats.
    fn take_next(&mut self) -> Option<String> {
        let index = self.next;
        self.next += 1;
        let at = self.sent.iter().position(|(known, _)| *known == index)?;
        Some(self.sent.remove(at).1)
    }
}

impl Reducer {
    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    pub(crate) fn lagged(&mut self, lag: Lag) {
        // What was left out may be text; the final lines then say it all.
        self.streamed.clear();
        self.streaming = false;
        self.ready.push_back(Event::Lagged(lag));
    }

    /// Takes the next frame of the turn. Frames about the turn itself (its result, the life of its prompts) are no events.
    /// True when the frame could not be decoded.
    pub(crate) fn push(&mut self, frame: &Frame) -> bool {
        if matches!(frame.kind(), "result" | "command_lifecycle") {
            return false;
        }
        if frame.parent_tool_use_id().is_none()
            && let Some(delta) = frame.delta()
        {
            self.piece(delta.index, delta.kind, delta.text.into_owned());
            return false;
        }
        let message = match frame.decode() {
            Ok(message) => message,
            Err(misfit) => {
                self.ready.push_back(Event::Undecodable(frame.clone(), misfit));
                return true;
            }
        };
        let parent = match message {
            Message::Assistant(_) | Message::User(_) | Message::StreamEvent(_) => frame.parent_tool_use_id(),
            _ => None,
        };
        match parent.map(str::to_owned) {
            None => self.reduce(message, frame),
            Some(parent) => {
                // A subagent's frames come whole, so a reducer without a memory does.
                let mut inner = Self::default();
                inner.reduce(message, frame);
                self.ready.extend(inner.ready.into_iter().map(|event| {
                    Event::Subagent(Box::new(SubagentEvent {
                        parent_tool_use_id: parent.clone(),
                        event,
                    }))
                }));
            }
        }
        false
    }

    fn reduce(&mut self, message: Message, frame: &Frame) {
        match message {
            Message::Assistant(assistant) => self.assistant(*assistant, frame),
            Message::StreamEvent(event) => self.stream(*event),
            Message::User(user) => self.user(*user, frame),
            other => self
                .ready
                .push_back(Event::Message(Box::new(other), frame.clone())),
        }
    }
}

impl Reducer {
    fn assistant(&mut self, assistant: AssistantMessage, frame: &Frame) {
        let id = assistant.message.id.unwrap_or_default();
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
        for block in assistant.message.content {
            // One line carries one finished block; the blocks of a message come in order.
            let streamed = self.streamed.iter_mut().rfind(|streamed| streamed.message == id);
            let said = streamed.and_then(Streamed::take_next).unwrap_or_default();
            let event = match block {
                ContentBlock::Text(block) => match unsaid(block.text, &said) {
                    Some(text) => Event::Text(text),
                    None => continue,
                },
                ContentBlock::Thinking(block) => match unsaid(block.thinking, &said) {
                    Some(thinking) => Event::Thinking(thinking),
                    None => continue,
                },
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

    fn stream(&mut self, event: StreamEvent) {
        match event.event {
            ApiStreamEvent::MessageStart(start) => {
                let message = start.message.id.unwrap_or_default();
                self.streamed.retain(|streamed| streamed.message != message);
                if self.streamed.len() == MESSAGES_KEPT {
                    self.streamed.pop_front();
                }
                self.streamed.push_back(Streamed {
                    message,
                    ..Streamed::default()
                });
                self.streaming = true;
            }
            ApiStreamEvent::ContentBlockDelta(delta) => {
                let (kind, text) = match delta.delta {
                    BlockDelta::Text(text) => (PieceKind::Text, text.text),
                    BlockDelta::Thinking(thinking) => (PieceKind::Thinking, thinking.thinking),
                    BlockDelta::InputJson(input) => (PieceKind::InputJson, input.partial_json),
                    _ => return,
                };
                self.piece(delta.index, kind, text);
            }
            _ => {}
        }
    }

    /// A block grows; `text` is what is added.
    fn piece(&mut self, index: u64, kind: PieceKind, text: String) {
        // Without its beginning the message will be repeated in full, so its parts are held back.
        let mut streamed = self.streamed.back_mut().filter(|_| self.streaming);
        let mut said = || {
            let sent = streamed
                .as_mut()
                .map(|streamed| streamed.sent(index).push_str(&text));
            sent.is_some() && !text.is_empty()
        };
        let event = match kind {
            PieceKind::Text if said() => Event::Text(text),
            PieceKind::Thinking if said() => Event::Thinking(text),
            PieceKind::InputJson => Event::ToolInput {
                index,
                partial_json: text,
            },
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
            self.ready.push_back(Event::Message(
                Box::new(Message::User(Box::new(user))),
                frame.clone(),
            ));
            return;
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

/// The part of a finished text that its deltas have not said.
fn unsaid(mut text: String, said: &str) -> Option<String> {
    // The CLI may have changed the text after streaming it. What was said can't be taken back, so it stands.
    let begins_alike = text.starts_with(said);
    if begins_alike {
        text.drain(..said.len());
    }
    (begins_alike && !text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests;
