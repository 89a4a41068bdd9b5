//! Text and thinking: from the stream if there is one, from whole messages otherwise, and never both.

use std::collections::VecDeque;
use std::sync::Arc;

use outrigger::protocol::PieceKind;

use super::step::Steps;
use crate::event::{Chunk, Content, Event};

/// So many messages are remembered, for blocks of theirs that come late.
const MOST: usize = 32;

/// The messages that are being streamed, or were a short while ago.
#[derive(Debug, Default)]
pub(super) struct Streams(VecDeque<Stream>);

#[derive(Debug)]
struct Stream {
    /// The subagent's call; none for the main conversation.
    parent: Option<Arc<str>>,
    message: Option<Arc<str>>,
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    index: u64,
    what: What,
    /// Its whole text came in a message too.
    sealed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// With what was told of it.
    Text(String),
    Thought(String),
    Call(Arc<str>),
    Other,
}

/// What kind of block begins.
pub(super) enum Begun<'a> {
    Text(&'a str),
    Thought(&'a str),
    Call(Arc<str>),
    Other,
}

impl Streams {
    /// A message begins.
    pub(super) fn begin(&mut self, parent: Option<Arc<str>>, message: Option<Arc<str>>) {
        let is_known = |stream: &Stream| stream.parent == parent && stream.message == message;
        if message.is_some() && self.0.back().is_some_and(is_known) {
            return;
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(Stream {
            parent,
            message,
            blocks: Vec::new(),
        });
    }

    /// The message that `parent` is saying; begins one if its beginning was lost.
    fn current(&mut self, parent: Option<&str>) -> &mut Stream {
        let at = self
            .0
            .iter()
            .rposition(|stream| stream.parent.as_deref() == parent);
        let at = at.unwrap_or_else(|| {
            self.begin(parent.map(Arc::from), None);
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// A block of it begins, maybe with something in it.
    pub(super) fn block(&mut self, parent: Option<&str>, index: u64, begun: Begun<'_>, steps: &mut Steps) {
        let stream = self.current(parent);
        if stream.blocks.iter().any(|block| block.index == index) {
            return;
        }
        let (what, text) = match begun {
            Begun::Text(text) => (What::Text(String::new()), Some(text)),
            Begun::Thought(text) => (What::Thought(String::new()), Some(text)),
            Begun::Call(id) => (What::Call(id), None),
            Begun::Other => (What::Other, None),
        };
        stream.blocks.push(Block {
            index,
            what,
            sealed: false,
        });
        if let Some(text) = text {
            let at = stream.blocks.len() - 1;
            stream.grow(at, text, steps);
        }
    }

    /// A block grows. Gives back the call that it is the input of, if it is one.
    pub(super) fn piece(
        &mut self,
        parent: Option<&str>,
        index: u64,
        kind: PieceKind,
        text: &str,
        steps: &mut Steps,
    ) -> Option<Arc<str>> {
        let stream = self.current(parent);
        let at = stream.blocks.iter().position(|block| block.index == index);
        let at = match (at, kind) {
            (Some(at), _) => at,
            // The beginning of the block was lost, and for text that does not matter.
            (None, PieceKind::Text | PieceKind::Thinking) => {
                let what = match kind {
                    PieceKind::Text => What::Text(String::new()),
                    _ => What::Thought(String::new()),
                };
                stream.blocks.push(Block {
                    index,
                    what,
                    sealed: false,
                });
                stream.blocks.len() - 1
            }
            (None, _) => return None,
        };
        match (&stream.blocks[at].what, kind) {
            (What::Call(id), PieceKind::InputJson) => Some(id.clone()),
            (What::Text(_), PieceKind::Text) | (What::Thought(_), PieceKind::Thinking) => {
                stream.grow(at, text, steps);
                None
            }
            _ => None,
        }
    }

    /// A whole block of a message came. Tells what of it was not told.
    pub(super) fn whole(
        &mut self,
        parent: Option<&Arc<str>>,
        message: Option<&Arc<str>>,
        is_thought: bool,
        text: &str,
        steps: &mut Steps,
    ) {
        let streamed = self.0.iter_mut().rev().find(|stream| {
            stream.parent.as_ref() == parent
                && (stream.message.as_ref() == message || stream.message.is_none())
        });
        let Some(stream) = streamed else {
            let chunk = chunk(parent.cloned(), message.cloned(), text);
            return tell(is_thought, chunk, steps);
        };
        let fits = |block: &&mut Block| {
            !block.sealed
                && match &block.what {
                    What::Text(_) => !is_thought,
                    What::Thought(_) => is_thought,
                    What::Call(_) | What::Other => false,
                }
        };
        let Some(block) = stream.blocks.iter_mut().find(fits) else {
            let chunk = chunk(parent.cloned(), message.cloned(), text);
            return tell(is_thought, chunk, steps);
        };
        block.sealed = true;
        let (What::Text(told) | What::Thought(told)) = &mut block.what else {
            return;
        };
        match text.strip_prefix(told.as_str()) {
            Some(rest) => tell(is_thought, chunk(parent.cloned(), message.cloned(), rest), steps),
            // What was told can't be taken back, and saying it all again would be worse.
            None => tracing::debug!(?message, "a block differs from what was streamed of it"),
        }
        told.clear();
    }
}

impl Stream {
    fn grow(&mut self, at: usize, text: &str, steps: &mut Steps) {
        let block = &mut self.blocks[at];
        // A piece that comes after the whole is late, and was told with it.
        if block.sealed {
            return;
        }
        let (What::Text(told) | What::Thought(told)) = &mut block.what else {
            return;
        };
        told.push_str(text);
        let is_thought = matches!(block.what, What::Thought(_));
        let chunk = chunk(self.parent.clone(), self.message.clone(), text);
        tell(is_thought, chunk, steps);
    }
}

fn chunk(parent: Option<Arc<str>>, message_id: Option<Arc<str>>, text: &str) -> Chunk {
    Chunk {
        message_id,
        parent,
        content: Content::Text(text.to_owned()),
    }
}

fn tell(is_thought: bool, chunk: Chunk, steps: &mut Steps) {
    if matches!(&chunk.content, Content::Text(text) if text.is_empty()) {
        return;
    }
    steps.event(match is_thought {
        true => Event::Thought(chunk),
        false => Event::Text(chunk),
    });
}
