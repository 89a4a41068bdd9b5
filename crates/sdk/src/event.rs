//! The events of a turn, made from frames.

mod bounds;
#[cfg(feature = "serde")]
mod event_form;
mod streamed;

use std::collections::VecDeque;

use outrigger_protocol::inbound::{
    ApiStreamEvent, AssistantMessage, BlockDelta, Message, StopReason, StreamEvent, SystemMessage,
    UserMessage,
};
use outrigger_protocol::shared::{ContentBlock, MessageContent};
use outrigger_protocol::tools::ToolInput;
use outrigger_protocol::{Frame, Misfit, PieceKind, RawJson, open_enum};

use self::bounds::{Bounds, Whose, said_by};
use self::streamed::{Finished, Streams};

#[cfg(feature = "serde")]
pub use self::event_form::UnknownEvent;
#[cfg(all(test, feature = "serde"))]
pub(crate) use self::event_form::schemas;
#[doc(hidden)]
pub use self::streamed::untold;

/// Frames that were dropped because their reader was too slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, thiserror::Error)]
#[error("{frames} frames of {bytes} bytes were missed, since they were not read in time")]
#[non_exhaustive]
pub struct Lag {
    /// The number of frames.
    pub frames: u64,
    /// How many bytes the frames have.
    pub bytes: u64,
}

/// An event of a turn.
///
/// Text and thinking are emitted once: in pieces with partial messages, else a block at a time. The events of a subagent are
/// wrapped in [`Subagent`](Self::Subagent) and never mixed with the main conversation. A frame without an event of its own is a
/// [`Message`](Self::Message), so nothing is dropped. Tool calls and results carry their frame as well;
/// [`Turn::next_frame`](crate::Turn::next_frame) has the exact bytes of text.
///
/// # Messages and blocks
///
/// The model writes messages, and a message has content blocks, as in the Messages API. [`MessageStart`](Self::MessageStart),
/// [`ContentBlockStart`](Self::ContentBlockStart), [`ContentBlockStop`](Self::ContentBlockStop) and
/// [`MessageStop`](Self::MessageStop) mark where each begins and ends, also without partial messages. For example, a program that
/// prints ends a line where a block of text ends:
///
/// ```no_run
/// # use outrigger::{BlockKind, Event, Turn};
/// # async fn example(mut turn: Turn) -> outrigger::Result<()> {
/// while let Some(event) = turn.next().await {
///     match event? {
///         Event::Text(text) => print!("{text}"),
///         Event::ContentBlockStop { kind: BlockKind::Text, .. } => println!(),
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// For the main conversation, and for each subagent by itself:
///
/// * `Text`, `Thinking`, `ToolUse`, `ToolInput` and `Block` come between the start and the stop of one block of their kind, and
///   blocks between the start and the stop of one message. At most one message and one block are open.
/// * A message or block that begins ends exactly once, before the events end: also when the CLI dies, the turn is interrupted, the
///   API call fails and is repeated, or a frame is lost or cannot be read.
/// * Text is never held back. A message or block begins with its first frame, and ends when the CLI reports its end, or when
///   another begins. Without partial messages the CLI does not report the end of a message: the message ends when the next one
///   begins, when a prompt follows, with the turn, or with the tool call of its subagent.
/// * A message that breaks off ends without a `stop_reason`. If the model writes it anew, that is another message, perhaps of the
///   same id. The rest of a message after another has begun is another message, too.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A message of the model begins.
    #[non_exhaustive]
    MessageStart {
        /// The API's id of the message, if it is known already.
        id: Option<String>,
        /// The model that writes it; `<synthetic>` when the CLI wrote it itself.
        model: Option<String>,
    },
    /// A content block of the message begins.
    #[non_exhaustive]
    ContentBlockStart {
        /// The API's id of the message, if it is known already.
        message_id: Option<String>,
        /// The block's index in the message; counted, where the CLI does not send it.
        index: u64,
        /// The kind of the block.
        kind: BlockKind,
    },
    /// The content block that began last has ended.
    #[non_exhaustive]
    ContentBlockStop {
        /// The API's id of the message, if it is known by now.
        message_id: Option<String>,
        /// The block's index in the message.
        index: u64,
        /// The kind of the block.
        kind: BlockKind,
    },
    /// The message that began last has ended.
    #[non_exhaustive]
    MessageStop {
        /// The API's id of the message, if it is known by now.
        id: Option<String>,
        /// The model that wrote it.
        model: Option<String>,
        /// Why the model stopped. Without partial messages it is known only for the last message of a turn, and for messages of a
        /// [`History`](crate::History).
        stop_reason: Option<StopReason>,
    },
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
    /// The API call failed. The text is the CLI's, not the model's.
    ApiError {
        /// The kind of failure.
        kind: String,
        /// The text of the CLI.
        text: String,
    },
    /// A content block of another kind: a search on the API's side, a citation's source, …
    Block(Box<ContentBlock>),
    /// An event of a subagent of this turn.
    Subagent(Box<SubagentEvent>),
    /// Any other message of the CLI, with its frame. To pass it on as JSON, use the frame's [`text`](Frame::text): it has also
    /// what the types lack.
    Message(Box<Message>, Frame),
    /// A frame that could not be decoded. Other frames are not affected.
    Undecodable(Frame, Misfit),
    /// The program read too slowly, and partial messages were dropped; the finished messages repeat their text.
    Lagged(Lag),
    /// An event that was read from its serialized form, and that this build cannot read: of a newer version, for example.
    #[cfg(feature = "serde")]
    Unknown(UnknownEvent),
}

open_enum! {
    /// The kind of a content block: its `type`.
    pub enum BlockKind {
        /// Text of the answer.
        Text = "text",
        /// The model's thinking.
        Thinking = "thinking",
        /// Thinking that is encrypted for the API.
        RedactedThinking = "redacted_thinking",
        /// A call of a tool that the CLI runs.
        ToolUse = "tool_use",
        /// A call of a tool that the API runs itself.
        ServerToolUse = "server_tool_use",
        /// A call of an MCP tool that the API makes itself.
        McpToolUse = "mcp_tool_use",
    }
}

/// A tool call of the model.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolUse {
    /// The id of the call.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The input; [`tool`](Self::tool) decodes the inputs of built-in tools.
    pub input: RawJson,
    /// The frame with the call.
    pub frame: Frame,
}

impl ToolUse {
    /// The input as the type of the tool; raw JSON if this build does not know the tool or the shape.
    pub fn tool(&self) -> ToolInput {
        ToolInput::read(&self.name, &self.input)
    }
}

/// How a tool call ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the call.
    pub tool_use_id: String,
    /// Whether the call failed or was denied.
    pub is_error: bool,
    /// The text that the model sees, without other kinds of content.
    pub text: String,
    /// What the model sees: a string or content blocks.
    pub content: Option<MessageContent>,
    /// The tool's own structured output, or a string when it failed.
    pub output: Option<RawJson>,
    /// The frame with the result.
    pub frame: Frame,
}

/// An event of a subagent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SubagentEvent {
    /// The tool call that started the subagent.
    pub parent_tool_use_id: String,
    /// The event.
    pub event: Event,
}

/// Turns frames into events, and knows which streamed texts were emitted already.
#[derive(Debug, Default)]
pub(crate) struct Reducer {
    ready: VecDeque<Event>,
    streams: Streams,
    bounds: Bounds,
    /// Pieces of the streamed message were dropped, so the rest waits for its finished lines.
    lags: bool,
}

impl Reducer {
    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    pub(crate) fn lagged(&mut self, lag: Lag) {
        // What was left out may be text; the final lines then say it all.
        self.streams.clear();
        self.bounds.lose_streams(&mut self.ready);
        self.lags = true;
        self.ready.push_back(Event::Lagged(lag));
    }

    /// No frame comes any more: ends all that has begun.
    pub(crate) fn end(&mut self) {
        self.bounds.end_all(&mut self.ready);
    }

    /// A turn has ended, perhaps without a result. Background work goes on.
    pub(crate) fn end_turn(&mut self) {
        self.bounds.end(None, &mut self.ready);
    }

    /// Takes the next frame of the turn. Frames about the turn itself (its result, the life of its prompts) make no event. Returns
    /// true when the frame could not be decoded.
    pub(crate) fn push(&mut self, frame: &Frame) -> bool {
        match frame.kind() {
            "command_lifecycle" => return false,
            "result" => {
                self.turn_is_over(frame);
                return false;
            }
            _ => {}
        }
        match frame.delta() {
            Some(delta) => {
                let text = delta.text.into_owned();
                self.piece(frame.parent_tool_use_id(), delta.index, delta.kind, text);
                false
            }
            None => self.decode(frame),
        }
    }

    /// The result of a turn ends the last message, and has its stop reason.
    fn turn_is_over(&mut self, frame: &Frame) {
        #[derive(Default, serde::Deserialize)]
        struct Over {
            stop_reason: Option<String>,
            terminal_reason: Option<String>,
        }
        let over: Over = serde_json::from_slice(frame.bytes()).unwrap_or_default();
        // A request that was broken off may have said nothing; then the reason is of a message before. Of a deferred call it is the
        // CLI's own.
        let is_of_last = !matches!(
            over.terminal_reason.as_deref(),
            Some("aborted_streaming" | "tool_deferred")
        );
        let stop_reason = over.stop_reason.filter(|_| is_of_last);
        self.bounds
            .stop_reason(None, stop_reason.as_deref().map(StopReason::from));
        self.bounds.end(None, &mut self.ready);
    }

    fn decode(&mut self, frame: &Frame) -> bool {
        let parent = frame.parent_tool_use_id();
        // Nothing that is asked or answered gets here.
        let decoded = frame.decode_told();
        self.follow(parent, frame, decoded.as_ref().ok());
        match decoded {
            Ok(Message::Assistant(assistant)) => self.assistant(*assistant, frame),
            Ok(Message::StreamEvent(event)) => self.stream(event, frame),
            Ok(Message::User(user)) => self.user(*user, frame),
            Ok(other) => {
                self.end_of_task(&other);
                self.emit_message(None, other, frame);
            }
            Err(misfit) => {
                self.ready.push_back(Event::Undecodable(frame.clone(), misfit));
                return true;
            }
        }
        false
    }

    /// A subagent in the background has ended.
    fn end_of_task(&mut self, message: &Message) {
        if let Message::System(system) = message
            && let SystemMessage::TaskNotification(task) = &**system
            && let Some(call) = task.tool_use_id.as_deref()
        {
            self.bounds.end(Some(call), &mut self.ready);
        }
    }

    fn emit_message(&mut self, parent: Option<&str>, message: Message, frame: &Frame) {
        self.emit(parent, Event::Message(Box::new(message), frame.clone()));
    }

    fn emit(&mut self, parent: Option<&str>, event: Event) {
        self.ready.push_back(said_by(parent, event));
    }
}

impl Reducer {
    fn assistant(&mut self, assistant: AssistantMessage, frame: &Frame) {
        let (id, parent) = (assistant.message.id.as_deref(), frame.parent_tool_use_id());
        // Either mark is enough: the text is not the model's.
        if assistant.error.is_some() || assistant.is_api_error_message == Some(true) {
            self.bounds.end(parent, &mut self.ready);
            let kind = assistant.error.as_ref().map(|error| error.as_str());
            let text = assistant
                .message
                .content
                .iter()
                .filter_map(text_of)
                .collect::<Vec<_>>()
                .join("\n");
            let kind = kind
                .or(assistant.api_error_type.as_deref())
                .unwrap_or("unknown")
                .to_owned();
            return self.emit(parent, Event::ApiError { kind, text });
        }
        let whose = |stream| Whose {
            stream,
            id,
            model: named(&assistant.message.model),
        };
        for block in assistant.message.content {
            match block {
                ContentBlock::Text(block) => {
                    self.finished(parent, whose(None), PieceKind::Text, block.text);
                }
                ContentBlock::Thinking(block) => {
                    self.finished(parent, whose(None), PieceKind::Thinking, block.thinking);
                }
                other => {
                    let kind = BlockKind::from(&*other.tag());
                    let call = match &other {
                        ContentBlock::ToolUse(block) => Some(block.id.as_str()),
                        _ => None,
                    };
                    let of = whose(self.streams.of_message(parent, id));
                    self.bounds.finished(parent, of, kind, call, &mut self.ready);
                    let event = match other {
                        ContentBlock::ToolUse(block) => Event::ToolUse(ToolUse {
                            id: block.id,
                            name: block.name,
                            input: block.input,
                            frame: frame.clone(),
                        }),
                        other => Event::Block(Box::new(other)),
                    };
                    self.emit(parent, event);
                    self.bounds.end_block(parent, &mut self.ready);
                }
            }
        }
        let of = whose(self.streams.of_message(parent, id));
        self.bounds.learn(parent, of, assistant.message.stop_reason);
    }

    /// A block of text or thinking is finished.
    fn finished(&mut self, parent: Option<&str>, mut whose: Whose<'_>, kind: PieceKind, text: String) {
        let Finished { rest, streamed } = self.streams.finished(parent, whose.id, kind, text);
        let of = match kind {
            PieceKind::Thinking => BlockKind::Thinking,
            _ => BlockKind::Text,
        };
        whose.stream = match streamed {
            Some((stream, _)) => Some(stream),
            None => self.streams.of_message(parent, whose.id),
        };
        let event: fn(String) -> Event = match kind {
            PieceKind::Thinking => Event::Thinking,
            _ => Event::Text,
        };
        match (rest, streamed) {
            (rest, Some((stream, index))) => {
                self.bounds.learn(parent, whose, None);
                if let Some(text) = rest {
                    self.bounds.streams(parent, whose, index, &of, &mut self.ready);
                    self.emit(parent, event(text));
                }
                self.bounds.end_streamed(parent, stream, index, &mut self.ready);
            }
            (Some(text), None) => {
                // What is open is another one.
                self.bounds.end_block(parent, &mut self.ready);
                self.bounds.finished(parent, whose, of, None, &mut self.ready);
                self.emit(parent, event(text));
                self.bounds.end_block(parent, &mut self.ready);
            }
            (None, None) => {}
        }
    }

    /// Where messages begin and end in the stream, by the kind of event alone, even if the rest does not decode.
    fn follow(&mut self, parent: Option<&str>, frame: &Frame, decoded: Option<&Message>) {
        match frame.event_type() {
            Some("message_start") => {
                let mut whose = Whose::stream(self.streams.begin(parent));
                if let Some(Message::StreamEvent(event)) = decoded
                    && let ApiStreamEvent::MessageStart(start) = &event.event
                {
                    let id = start.message.id.as_ref().or(event.api_message_id.as_ref());
                    self.streams.name(parent, id.cloned());
                    whose.id = id.map(String::as_str);
                    whose.model = named(&start.message.model);
                }
                self.bounds.begin(parent, whose, &mut self.ready);
            }
            Some("message_stop") => {
                self.streams.over(parent);
                self.bounds.end(parent, &mut self.ready);
            }
            _ => return,
        }
        self.lags = false;
    }

    fn stream(&mut self, event: Box<StreamEvent>, frame: &Frame) {
        let parent = frame.parent_tool_use_id();
        let (index, kind, text) = match &event.event {
            ApiStreamEvent::ContentBlockStart(start) => match &start.content_block {
                ContentBlock::Text(block) => (start.index, PieceKind::Text, block.text.clone()),
                ContentBlock::Thinking(block) => (start.index, PieceKind::Thinking, block.thinking.clone()),
                other => return self.starts(parent, start.index, other),
            },
            ApiStreamEvent::ContentBlockDelta(grows) => match &grows.delta {
                BlockDelta::Text(delta) => (grows.index, PieceKind::Text, delta.text.clone()),
                BlockDelta::Thinking(delta) => (grows.index, PieceKind::Thinking, delta.thinking.clone()),
                BlockDelta::InputJson(delta) => {
                    (grows.index, PieceKind::InputJson, delta.partial_json.clone())
                }
                // The finished block has them.
                BlockDelta::Signature(_) | BlockDelta::Citations(_) | BlockDelta::Compaction(_) => return,
                _ => return self.emit_message(parent, Message::StreamEvent(event), frame),
            },
            ApiStreamEvent::ContentBlockStop(stop) => {
                if let Some(stream) = self.streams.current(parent) {
                    self.bounds
                        .end_streamed(parent, stream, stop.index, &mut self.ready);
                }
                return;
            }
            ApiStreamEvent::MessageDelta(delta) => {
                if let Some(stream) = self.streams.current(parent) {
                    let stop_reason = delta.delta.stop_reason.clone();
                    self.bounds.learn(parent, Whose::stream(stream), stop_reason);
                }
                return;
            }
            ApiStreamEvent::MessageStart(_) | ApiStreamEvent::MessageStop(_) | ApiStreamEvent::Ping(_) => {
                return;
            }
            // A broken stream, what is new, and what does not fit.
            _ => return self.emit_message(parent, Message::StreamEvent(event), frame),
        };
        self.piece(parent, index, kind, text);
    }

    /// A block begins that is neither text nor thinking.
    fn starts(&mut self, parent: Option<&str>, index: u64, block: &ContentBlock) {
        let call = match block {
            ContentBlock::ToolUse(block) => Some(block.id.clone()),
            _ => None,
        };
        let whose = Whose::stream(self.streams.goes_on(parent, index, None));
        let kind = BlockKind::from(&*block.tag());
        self.bounds
            .starts(parent, whose, index, kind, call, &mut self.ready);
    }

    /// A block begins or grows by `text`.
    fn piece(&mut self, parent: Option<&str>, index: u64, kind: PieceKind, text: String) {
        let (of, event): (_, fn(String) -> Event) = match kind {
            PieceKind::InputJson => {
                let whose = Whose::stream(self.streams.goes_on(parent, index, None));
                self.bounds.input(parent, whose, index, &mut self.ready);
                let partial_json = text;
                return self.emit(parent, Event::ToolInput { index, partial_json });
            }
            _ if self.lags => return,
            PieceKind::Text => (BlockKind::Text, Event::Text),
            PieceKind::Thinking => (BlockKind::Thinking, Event::Thinking),
            _ => return,
        };
        let whose = Whose::stream(self.streams.piece(parent, index, kind, &text));
        self.bounds.streams(parent, whose, index, &of, &mut self.ready);
        if !text.is_empty() {
            self.emit(parent, event(text));
        }
    }

    fn user(&mut self, user: UserMessage, frame: &Frame) {
        let parent = frame.parent_tool_use_id();
        let has_result = user
            .message
            .content
            .blocks()
            .iter()
            .any(|block| is_tool_result(&block));
        if !has_result {
            if !user.is_replay.unwrap_or(false) {
                self.bounds.end_unless_streamed(parent, &mut self.ready);
            }
            return self.emit_message(parent, Message::User(Box::new(user)), frame);
        }
        // What stands beside the results has no event of its own.
        if !user
            .message
            .content
            .blocks()
            .iter()
            .all(|block| is_tool_result(&block))
        {
            self.emit_message(parent, Message::User(Box::new(user.clone())), frame);
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
            // A subagent has ended when its call has.
            self.bounds.end(Some(&block.tool_use_id), &mut self.ready);
            let result = Event::ToolResult(ToolResult {
                tool_use_id: block.tool_use_id,
                is_error: block.is_error.unwrap_or(false),
                text,
                content: block.content,
                // Can be large, and nearly always there is one result only.
                output: if left == 0 { output.take() } else { output.clone() },
                frame: frame.clone(),
            });
            self.emit(parent, result);
        }
    }
}

/// A model's name; a gateway may leave it out.
fn named(model: &str) -> Option<&str> {
    (!model.is_empty()).then_some(model)
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
mod loss_laws;
#[cfg(test)]
mod tests;
