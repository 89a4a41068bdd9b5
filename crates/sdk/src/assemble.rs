//! Stream events, folded into content blocks that grow.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_protocol::inbound::{ApiStreamEvent, AssistantMessage, BlockDelta, StreamEvent};
use outrigger_protocol::shared::ContentBlock;
use outrigger_protocol::{Frame, RawJson};

/// Folds the partial messages of a turn into the content blocks of the message that is being written.
///
/// Feed it every frame in order ([`Turn::next_frame`](crate::Turn::next_frame), [`Session::frames`](crate::Session::frames)).
/// The updates are idempotent: each carries the whole block so far, named by message and index, so that a screen can simply
/// replace what it shows. The finished `assistant` line of a block replaces it once more, and ends it.
///
/// A frame that does not decode only loses its own content: a block whose beginning was lost begins with its next piece.
///
/// Subagents write no partial messages; their frames are passed over.
#[derive(Debug, Default)]
pub struct Assembler {
    message_id: Option<String>,
    blocks: BTreeMap<u64, PartialBlock>,
    /// The blocks whose finished line came.
    finished: BTreeSet<u64>,
    /// The stream of the message has ended.
    over: bool,
}

/// A content block as far as it is written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PartialBlock {
    /// The API's id of the message; empty if its frame was lost, until another has it.
    pub message_id: String,
    /// The place of the block in the message.
    pub index: u64,
    /// The blocks so far.
    pub content: PartialContent,
    /// Whether nothing will be added.
    pub done: bool,
}

/// The content of a block as far as it is written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PartialContent {
    /// Text.
    Text(String),
    /// Thinking.
    Thinking(String),
    /// A tool call.
    ToolUse {
        /// The id of the call; empty, like the name, if its frame was lost, until the block is done.
        id: String,
        /// The tool's name.
        name: String,
        /// The input so far: the beginning of a JSON text, and a whole one once the block is done.
        input: String,
    },
    /// A block of another kind.
    Other(Box<ContentBlock>),
}

impl PartialContent {
    fn of(block: ContentBlock, input: Option<&RawJson>) -> Self {
        match block {
            ContentBlock::Text(block) => Self::Text(block.text),
            ContentBlock::Thinking(block) => Self::Thinking(block.thinking),
            ContentBlock::ToolUse(block) => Self::ToolUse {
                id: block.id,
                name: block.name,
                input: input.map(|input| input.get().to_owned()).unwrap_or_default(),
            },
            other => Self::Other(Box::new(other)),
        }
    }
}

impl Assembler {
    /// Makes an assembler without any message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next frame, and returns the block that it changed.
    pub fn push(&mut self, frame: &Frame) -> Option<&PartialBlock> {
        if frame.parent_tool_use_id().is_some() {
            return None;
        }
        match frame.event_type() {
            // Whatever else is odd about it.
            Some("message_start") => self.begin(None),
            Some("message_stop") => self.over = true,
            _ => {}
        }
        let index = match frame.kind() {
            "stream_event" => {
                let event: StreamEvent = frame.decode_as().ok()?;
                self.is_of(event.api_message_id);
                self.on_event(event.event)?
            }
            "assistant" => {
                let assistant: AssistantMessage = frame.decode_as().ok()?;
                self.is_of(assistant.message.id);
                let mut last = None;
                for block in assistant.message.content {
                    last = Some(self.on_finished(block));
                }
                last?
            }
            _ => return None,
        };
        self.blocks.get(&index)
    }

    /// The blocks of the message that is being written, in order.
    pub fn blocks(&self) -> impl Iterator<Item = &PartialBlock> {
        self.blocks.values()
    }

    /// The API's id of the message that is being written.
    pub fn message_id(&self) -> Option<&str> {
        self.message_id.as_deref()
    }

    fn begin(&mut self, id: Option<String>) {
        *self = Self {
            message_id: id,
            ..Self::default()
        };
    }

    /// The next frames belong to the message with this id, if known.
    fn is_of(&mut self, id: Option<String>) {
        let Some(id) = id else { return };
        match &self.message_id {
            Some(known) if *known == id => {}
            Some(_) => self.begin(Some(id)),
            // Finished lines that did not say of which message they were are of one before.
            None if !self.blocks.is_empty() && self.finished.len() == self.blocks.len() => {
                self.begin(Some(id))
            }
            None => {
                for block in self.blocks.values_mut() {
                    block.message_id.clone_from(&id);
                }
                self.message_id = Some(id);
            }
        }
    }

    fn on_event(&mut self, event: ApiStreamEvent) -> Option<u64> {
        match event {
            ApiStreamEvent::MessageStart(start) => {
                self.is_of(start.message.id);
                None
            }
            ApiStreamEvent::ContentBlockStart(start) => {
                self.goes_on(start.index);
                Some(self.put(start.index, PartialContent::of(start.content_block, None), false))
            }
            ApiStreamEvent::ContentBlockDelta(delta) => {
                self.goes_on(delta.index);
                let known = self.blocks.get(&delta.index).map(|block| &block.content);
                let says_nothing = |block: &ContentBlock| {
                    matches!(block, ContentBlock::Unknown(_) | ContentBlock::Misfit(_))
                };
                if known
                    .is_none_or(|known| matches!(known, PartialContent::Other(block) if says_nothing(block)))
                {
                    // What it begins with was lost, or can't be read.
                    let content = match &delta.delta {
                        BlockDelta::Text(_) => PartialContent::Text(String::new()),
                        BlockDelta::Thinking(_) => PartialContent::Thinking(String::new()),
                        BlockDelta::InputJson(_) => PartialContent::ToolUse {
                            id: String::new(),
                            name: String::new(),
                            input: String::new(),
                        },
                        _ => return None,
                    };
                    self.put(delta.index, content, false);
                }
                match (&mut self.blocks.get_mut(&delta.index)?.content, delta.delta) {
                    (PartialContent::Text(text), BlockDelta::Text(delta)) => text.push_str(&delta.text),
                    (PartialContent::Thinking(text), BlockDelta::Thinking(delta)) => {
                        text.push_str(&delta.thinking)
                    }
                    (PartialContent::ToolUse { input, .. }, BlockDelta::InputJson(delta)) => {
                        input.push_str(&delta.partial_json);
                    }
                    _ => return None,
                }
                Some(delta.index)
            }
            ApiStreamEvent::ContentBlockStop(stop) => {
                let block = self.blocks.get_mut(&stop.index).filter(|block| !block.done)?;
                block.done = true;
                Some(stop.index)
            }
            _ => None,
        }
    }

    /// The block at `index` begins or grows: in another message, if the one that is known can't go on there.
    fn goes_on(&mut self, index: u64) {
        if self.over || self.blocks.get(&index).is_some_and(|block| block.done) {
            self.begin(None);
        }
    }

    fn put(&mut self, index: u64, content: PartialContent, done: bool) -> u64 {
        let block = PartialBlock {
            message_id: self.message_id.clone().unwrap_or_default(),
            index,
            content,
            done,
        };
        self.blocks.insert(index, block);
        index
    }

    fn on_finished(&mut self, block: ContentBlock) -> u64 {
        let input = match &block {
            ContentBlock::ToolUse(block) => Some(block.input.clone()),
            _ => None,
        };
        let content = PartialContent::of(block, input.as_ref());
        let open = || {
            self.blocks
                .values()
                .filter(|block| !self.finished.contains(&block.index))
        };
        // The line of the block before may have been lost, so it is the one with which it goes on best.
        let fits = open().filter_map(|block| Some((block.content.goes_on_as(&content)?, block.index)));
        let best = fits.max_by_key(|(length, index)| (*length, std::cmp::Reverse(*index)));
        let alike = || open().find(|block| block.content.is_like(&content));
        let next = || self.blocks.keys().next_back().map_or(0, |last| last + 1);
        let index = best
            .map(|(_, index)| index)
            .or_else(|| Some(alike()?.index))
            .unwrap_or_else(next);
        self.finished.insert(index);
        self.put(index, content, true)
    }
}

impl PartialContent {
    fn is_like(&self, other: &Self) -> bool {
        match self {
            // Another call is never this one.
            Self::ToolUse { id, .. } if !id.is_empty() => false,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// How much of this block has been emitted, if the block may become `whole`.
    fn goes_on_as(&self, whole: &Self) -> Option<usize> {
        match (self, whole) {
            (Self::Text(begun), Self::Text(text)) | (Self::Thinking(begun), Self::Thinking(text)) => {
                text.starts_with(begun.as_str()).then_some(begun.len())
            }
            (Self::ToolUse { id: begun, .. }, Self::ToolUse { id, .. }) => (begun == id).then_some(id.len()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(event: &str) -> Frame {
        let line = format!(
            r#"{{"type":"stream_event","event":{event},"parent_tool_use_id":null,"uuid":"u","session_id":"s"}}"#
        );
        Frame::from_line(line.into_bytes()).remove(0)
    }

    fn show(block: &PartialBlock) -> String {
        let content = match &block.content {
            PartialContent::Text(text) => format!("text {text}"),
            PartialContent::Thinking(text) => format!("thinking {text}"),
            PartialContent::ToolUse { name, input, .. } => format!("{name} {input}"),
            PartialContent::Other(block) => format!("other {}", block.tag()),
        };
        format!("{}{content}{}", block.index, if block.done { "." } else { "" })
    }

    #[test]
    fn blocks_grow_and_the_finished_line_ends_them() {
        let message = r#"{"id":"m","type":"message","role":"assistant","model":"x","content":[],"stop_reason":null,"stop_sequence":null,"usage":null}"#;
        let finished = format!(
            r#"{{"type":"assistant","message":{},"parent_tool_use_id":null,"uuid":"u","session_id":"s"}}"#,
            message.replace("[]", r#"[{"type":"text","text":"hello"}]"#)
        );
        let frames = [
            stream(&format!(r#"{{"type":"message_start","message":{message}}}"#)),
            stream(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#),
            stream(r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hel"}}"#),
            stream(r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}"#),
            Frame::from_line(finished.into_bytes()).remove(0),
            stream(r#"{"type":"content_block_stop","index":0}"#),
            stream(
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"Bash","input":{}}}"#,
            ),
            stream(
                r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
            ),
            stream(
                r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}"#,
            ),
            stream(r#"{"type":"content_block_stop","index":1}"#),
        ];
        let mut assembler = Assembler::new();
        let seen: Vec<String> = frames
            .iter()
            .filter_map(|frame| assembler.push(frame).map(show))
            .collect();
        assert_eq!(
            seen,
            [
                "0text ",
                "0text hel",
                "0text hello",
                "0text hello.",
                "1Bash ",
                "1Bash {\"a\":",
                "1Bash {\"a\":1}",
                "1Bash {\"a\":1}.",
            ]
        );
        assert_eq!(
            assembler.blocks().map(show).collect::<Vec<_>>(),
            ["0text hello.", "1Bash {\"a\":1}."]
        );
    }
}
