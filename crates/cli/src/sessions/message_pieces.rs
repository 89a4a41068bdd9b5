//! What a recorded message says, piece by piece.

use std::collections::HashMap;

use outrigger::protocol::RawJson;
use outrigger::protocol::shared::{ContentBlock, MessageContent};
use outrigger::sessions::{MessageKind, SessionMessage};
use serde::Deserialize;

use super::find::line;
use crate::plain::plain;
use crate::screen::target;

/// How much of a call's name is shown above its result, in characters.
const NAME_SHOWN: usize = 80;

/// The calls without results, by what they are called here: those that run at once end in any order.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: HashMap<String, Name>,
}

/// A call, as the person sees it.
#[derive(Debug)]
struct Name {
    text: String,
    /// Which one it is of open calls that look the same; 1 is the first.
    nth: usize,
}

impl Calls {
    /// Takes a call in. Returns which one it is of calls that look the same, where there is another: ` (2)`.
    pub(super) fn begin(&mut self, id: &str, tool: &str, input: &RawJson) -> String {
        let text = line(&format!("{tool} {}", target(input)), NAME_SHOWN);
        let same = self.open.values().filter(|name| name.text == text);
        let nth = same.map(|name| name.nth).max().unwrap_or(0) + 1;
        let name = Name { text, nth };
        let mark = name.mark();
        self.open.insert(id.to_owned(), name);
        mark
    }

    /// What was called, as it was shown; `None` if that was not shown.
    pub(super) fn end(&mut self, id: &str) -> Option<String> {
        let name = self.open.remove(id)?;
        Some(plain(&name.text) + &name.mark())
    }
}

impl Name {
    fn mark(&self) -> String {
        match self.nth {
            1 => String::new(),
            nth => format!(" ({nth})"),
        }
    }
}

/// A piece of a message.
#[derive(Debug)]
pub(super) enum MessagePiece {
    /// A text.
    Text(String),
    /// What the model thought.
    Thinking(String),
    /// A call of a tool.
    Call {
        id: String,
        tool: String,
        input: RawJson,
    },
    /// What a tool gave back.
    Result {
        /// The id of the call.
        of: String,
        text: String,
        is_error: bool,
    },
    /// Something that is no text: what it is.
    Other(String),
}

#[derive(Deserialize)]
struct MessageBody {
    content: MessageContent,
}

/// A note of the CLI.
#[derive(Deserialize)]
struct SystemNote {
    subtype: Option<String>,
    content: Option<String>,
}

/// The pieces of a message.
pub(super) fn pieces(message: &SessionMessage) -> Vec<MessagePiece> {
    if message.kind == MessageKind::System {
        let note = message.record.decode::<SystemNote>().ok();
        let text = note.and_then(|note| note.content.or(note.subtype));
        return vec![MessagePiece::Other(text.unwrap_or_else(|| "a note".to_owned()))];
    }
    let said = message.message.as_ref().map(RawJson::decode::<MessageBody>);
    match said {
        Some(Ok(MessageBody { content })) => of_content(&content),
        _ => vec![MessagePiece::Other("a message of another shape".to_owned())],
    }
}

fn of_content(content: &MessageContent) -> Vec<MessagePiece> {
    match content.as_text() {
        Some(text) => vec![MessagePiece::Text(text.to_owned())],
        None => content.blocks().iter().map(of_block).collect(),
    }
}

fn of_block(block: &ContentBlock) -> MessagePiece {
    match block {
        ContentBlock::Text(block) => MessagePiece::Text(block.text.clone()),
        ContentBlock::Thinking(block) => MessagePiece::Thinking(block.thinking.clone()),
        ContentBlock::ToolUse(block) => MessagePiece::Call {
            id: block.id.clone(),
            tool: block.name.clone(),
            input: block.input.clone(),
        },
        ContentBlock::ToolResult(block) => {
            let pieces = block.content.as_ref().map(of_content).unwrap_or_default();
            let texts: Vec<String> = pieces.into_iter().map(text_of).collect();
            MessagePiece::Result {
                of: block.tool_use_id.clone(),
                text: texts.join("\n"),
                is_error: block.is_error == Some(true),
            }
        }
        other => MessagePiece::Other(kind(other)),
    }
}

fn text_of(piece: MessagePiece) -> String {
    match piece {
        MessagePiece::Text(text) | MessagePiece::Thinking(text) | MessagePiece::Result { text, .. } => text,
        MessagePiece::Call { tool, .. } => format!("[{tool}]"),
        MessagePiece::Other(kind) => format!("[{kind}]"),
    }
}

/// The `type` of a block.
fn kind(block: &ContentBlock) -> String {
    #[derive(Deserialize)]
    struct Kind {
        r#type: String,
    }
    let raw = RawJson::encode(block).ok();
    let kind = raw.and_then(|raw| raw.decode::<Kind>().ok());
    kind.map_or_else(|| "something".to_owned(), |kind| kind.r#type)
}
