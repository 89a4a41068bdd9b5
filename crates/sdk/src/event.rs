//! What happens during a turn, as a program wants to see it.

use std::collections::{HashMap, VecDeque};

use outrigger_protocol::inbound::{
    ApiStreamEvent, AssistantMessage, BlockDelta, Message, StreamEvent, UserMessage,
};
use outrigger_protocol::shared::{ContentBlock, MessageContent};
use outrigger_protocol::{Frame, Misfit, RawJson};

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
    /// The message that is being streamed.
    streaming: Option<String>,
    /// For each streamed message, how much of each block went out, by index.
    streamed: HashMap<String, Streamed>,
    order: VecDeque<String>,
}

/// How many streamed messages are remembered while their final lines are awaited.
const MESSAGES_KEPT: usize = 64;

#[derive(Debug, Default)]
struct Streamed {
    sent: HashMap<u64, String>,
    /// The index of the block that the next final line of this message repeats.
    next: u64,
}

impl Reducer {
    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    pub(crate) fn lagged(&mut self, lag: Lag) {
        // What was left out may be text; the final lines then say it all.
        self.streamed.clear();
        self.order.clear();
        self.streaming = None;
        self.ready.push_back(Event::Lagged(lag));
    }

    /// Takes the next frame of the turn. Frames about the turn itself (its result, the life of its prompts) are no events.
    /// True when the frame could not be decoded.
    pub(crate) fn push(&mut self, frame: &Frame) -> bool {
        if matches!(frame.kind(), "result" | "command_lifecycle") {
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
            let said = self.streamed.get_mut(&id).and_then(|streamed| {
                let index = streamed.next;
                streamed.next += 1;
                streamed.sent.remove(&index)
            });
            let said = said.unwrap_or_default();
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
                let id = start.message.id.unwrap_or_default();
                if self.order.len() == MESSAGES_KEPT
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.streamed.remove(&oldest);
                }
                self.order.push_back(id.clone());
                self.streamed.insert(id.clone(), Streamed::default());
                self.streaming = Some(id);
            }
            ApiStreamEvent::ContentBlockDelta(delta) => {
                let (event, text) = match delta.delta {
                    BlockDelta::Text(text) => (Event::Text(text.text.clone()), text.text),
                    BlockDelta::Thinking(thinking) => {
                        (Event::Thinking(thinking.thinking.clone()), thinking.thinking)
                    }
                    BlockDelta::InputJson(input) => {
                        let index = delta.index;
                        self.ready.push_back(Event::ToolInput {
                            index,
                            partial_json: input.partial_json,
                        });
                        return;
                    }
                    _ => return,
                };
                let streamed = self.streaming.as_ref().and_then(|id| self.streamed.get_mut(id));
                // Without its beginning the message will be repeated in full, so its parts are held back.
                if let Some(streamed) = streamed {
                    streamed.sent.entry(delta.index).or_default().push_str(&text);
                    if !text.is_empty() {
                        self.ready.push_back(event);
                    }
                }
            }
            _ => {}
        }
    }

    fn user(&mut self, user: UserMessage, frame: &Frame) {
        let has_result = user
            .message
            .content
            .blocks()
            .iter()
            .any(|block| matches!(block, ContentBlock::ToolResult(_)));
        if !has_result {
            self.ready.push_back(Event::Message(
                Box::new(Message::User(Box::new(user))),
                frame.clone(),
            ));
            return;
        }
        for block in user.message.content.blocks() {
            if let ContentBlock::ToolResult(block) = block {
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
                self.ready.push_back(Event::ToolResult(ToolResult {
                    tool_use_id: block.tool_use_id.clone(),
                    is_error: block.is_error.unwrap_or(false),
                    text,
                    content: block.content.clone(),
                    output: user.tool_use_result.clone(),
                    frame: frame.clone(),
                }));
            }
        }
    }
}

fn text_of(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(block) => Some(&block.text),
        _ => None,
    }
}

/// The part of a finished text that its deltas have not said.
fn unsaid(text: String, said: &str) -> Option<String> {
    let rest = match text.strip_prefix(said) {
        Some(rest) => rest.to_owned(),
        // The CLI changed the text after streaming it. What was said can't be taken back, so it stands.
        None => return None,
    };
    (!rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests;
