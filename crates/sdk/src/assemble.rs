//! Stream events, folded into content blocks that grow.

use std::collections::BTreeMap;

use outrigger_protocol::inbound::{ApiStreamEvent, BlockDelta, Message};
use outrigger_protocol::shared::ContentBlock;
use outrigger_protocol::{Frame, RawJson};

/// Folds the partial messages of a turn into the content blocks of the message that is being written.
///
/// Feed it every frame in order ([`Turn::next_frame`](crate::Turn::next_frame), [`Session::frames`](crate::Session::frames)).
/// The updates are idempotent: each carries the whole block so far, named by message and index, so that a screen can simply
/// replace what it shows. The finished `assistant` line of a block replaces it once more, and ends it.
///
/// Subagents write no partial messages; their frames are passed over.
#[derive(Debug, Default)]
pub struct Assembler {
    message_id: Option<String>,
    blocks: BTreeMap<u64, PartialBlock>,
    /// The index of the block that the next finished line of this message repeats.
    finished: u64,
}

/// A content block as far as it is written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PartialBlock {
    /// The API's id of the message.
    pub message_id: String,
    /// The place of the block in the message.
    pub index: u64,
    /// What is there so far.
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
        /// The id of the call.
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
    /// Makes an empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next frame, and returns the block that it changed.
    pub fn push(&mut self, frame: &Frame) -> Option<&PartialBlock> {
        if frame.parent_tool_use_id().is_some() {
            return None;
        }
        let index = match frame.decode().ok()? {
            Message::StreamEvent(event) => self.on_event(event.event)?,
            Message::Assistant(assistant) => {
                let id = assistant.message.id.unwrap_or_default();
                if self.message_id.as_ref() != Some(&id) {
                    self.begin(id);
                }
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

    fn begin(&mut self, id: String) {
        self.message_id = Some(id);
        self.blocks.clear();
        self.finished = 0;
    }

    fn on_event(&mut self, event: ApiStreamEvent) -> Option<u64> {
        match event {
            ApiStreamEvent::MessageStart(start) => {
                self.begin(start.message.id.unwrap_or_default());
                None
            }
            ApiStreamEvent::ContentBlockStart(start) => {
                let message_id = self.message_id.clone()?;
                let content = PartialContent::of(start.content_block, None);
                let block = PartialBlock {
                    message_id,
                    index: start.index,
                    content,
                    done: false,
                };
                self.blocks.insert(start.index, block);
                Some(start.index)
            }
            ApiStreamEvent::ContentBlockDelta(delta) => {
                let block = self.blocks.get_mut(&delta.index).filter(|block| !block.done)?;
                match (&mut block.content, delta.delta) {
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

    fn on_finished(&mut self, block: ContentBlock) -> u64 {
        let index = self.finished;
        self.finished += 1;
        let input = match &block {
            ContentBlock::ToolUse(block) => Some(block.input.clone()),
            _ => None,
        };
        let message_id = self.message_id.clone().unwrap_or_default();
        let content = PartialContent::of(block, input.as_ref());
        self.blocks.insert(
            index,
            PartialBlock {
                message_id,
                index,
                content,
                done: true,
            },
        );
        index
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
