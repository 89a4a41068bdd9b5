//! Text and thinking: from the stream if there is one, else from whole messages, never from both.

use std::collections::VecDeque;
use std::sync::Arc;

use outrigger::protocol::PieceKind;
use outrigger::untold;

use super::step::Steps;
use crate::event::{Chunk, Content, Event};

/// How many messages are remembered for late blocks.
const MOST: usize = 32;

/// The messages that stream now or did recently.
#[derive(Debug, Default)]
pub(super) struct Streams(VecDeque<Stream>);

#[derive(Debug)]
struct Stream {
    /// The call of the subagent; `None` for the main conversation.
    parent: Option<Arc<str>>,
    /// `None` until a frame has it, as the first frame may be lost.
    message: Option<Arc<str>>,
    blocks: Vec<Block>,
    /// Whether the stream of the text has ended.
    over: bool,
}

#[derive(Debug)]
struct Block {
    index: u64,
    what: LastBlock,
    /// Whether the whole text came in a message too.
    sealed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LastBlock {
    /// The text that was emitted.
    Text(String),
    Thought(String),
    Call(Arc<str>),
    Other,
}

/// The kind of a new block.
pub(super) enum Begun<'a> {
    Text(&'a str),
    Thought(&'a str),
    Call(Arc<str>),
    Other,
}

impl Streams {
    pub(super) fn begin(&mut self, parent: Option<&str>) {
        self.over(parent);
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(Stream {
            parent: parent.map(Arc::from),
            message: None,
            blocks: Vec::new(),
            over: false,
        });
    }

    /// The new message has this id. If it is the id of the message before, that one continues.
    pub(super) fn name(&mut self, parent: Option<&str>, message: Option<Arc<str>>) {
        let is_of = |stream: &&Stream| stream.parent.as_deref() == parent;
        let known = self.0.iter().rev().filter(is_of).nth(1);
        if message.is_some() && known.is_some_and(|known| known.message == message) {
            if let Some(at) = self.0.iter().rposition(|stream| is_of(&stream)) {
                self.0.remove(at);
            }
            if let Some(stream) = self.newest(parent) {
                stream.over = false;
            }
        } else if let Some(stream) = self.newest(parent) {
            stream.message = message;
        }
    }

    /// The message of `parent` is complete.
    pub(super) fn over(&mut self, parent: Option<&str>) {
        if let Some(stream) = self.newest(parent) {
            stream.over = true;
        }
    }

    fn newest(&mut self, parent: Option<&str>) -> Option<&mut Stream> {
        let mut newest = self.0.iter_mut().rev();
        newest.find(|stream| stream.parent.as_deref() == parent)
    }

    /// The message of `parent` that streams. Begins one if its first frame was lost.
    fn current(&mut self, parent: Option<&str>) -> &mut Stream {
        let is_current = |stream: &Stream| stream.parent.as_deref() == parent && !stream.over;
        let at = self.0.iter().rposition(is_current).unwrap_or_else(|| {
            self.begin(parent);
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// A block begins, perhaps with text.
    pub(super) fn block(&mut self, parent: Option<&str>, index: u64, begun: Begun<'_>, steps: &mut Steps) {
        let stream = self.current(parent);
        if stream.blocks.iter().any(|block| block.index == index) {
            return;
        }
        let (what, text) = match begun {
            Begun::Text(text) => (LastBlock::Text(String::new()), Some(text)),
            Begun::Thought(text) => (LastBlock::Thought(String::new()), Some(text)),
            Begun::Call(id) => (LastBlock::Call(id), None),
            Begun::Other => (LastBlock::Other, None),
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

    /// A block grows. Returns the call if the block is its input.
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
            // If the beginning of the block was lost, text is emitted nonetheless.
            (None, PieceKind::Text | PieceKind::Thinking) => {
                let what = match kind {
                    PieceKind::Text => LastBlock::Text(String::new()),
                    _ => LastBlock::Thought(String::new()),
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
        // The same if the beginning was unreadable.
        if stream.blocks[at].what == LastBlock::Other {
            match kind {
                PieceKind::Text => stream.blocks[at].what = LastBlock::Text(String::new()),
                PieceKind::Thinking => stream.blocks[at].what = LastBlock::Thought(String::new()),
                _ => {}
            }
        }
        match (&stream.blocks[at].what, kind) {
            (LastBlock::Call(id), PieceKind::InputJson) => Some(id.clone()),
            (LastBlock::Text(_), PieceKind::Text) | (LastBlock::Thought(_), PieceKind::Thinking) => {
                stream.grow(at, text, steps);
                None
            }
            _ => None,
        }
    }

    /// A whole block came. Emits the part that was not emitted.
    pub(super) fn whole(
        &mut self,
        parent: Option<&Arc<str>>,
        message: Option<&Arc<str>>,
        is_thought: bool,
        text: &str,
        steps: &mut Steps,
    ) {
        let tell_all =
            |steps: &mut Steps| emit(is_thought, chunk(parent.cloned(), message.cloned(), text), steps);
        let is_of = |stream: &&mut Stream| stream.parent.as_ref() == parent;
        let is_named = |stream: &&mut Stream| message.is_some() && stream.message.as_ref() == message;
        let named = self.0.iter_mut().rev().filter(is_of).find(is_named);
        let is_sure = named.is_some();
        // One of both may lack the id of the message.
        let of_no_name = |stream: &&mut Stream| message.is_none() || stream.message.is_none();
        let streamed = match named {
            Some(stream) => Some(stream),
            None => self.0.iter_mut().rev().filter(is_of).find(of_no_name),
        };
        let Some(stream) = streamed else {
            return tell_all(steps);
        };
        // The message with the block before may be lost: take the block with the longest common text.
        let open = || {
            stream
                .blocks
                .iter()
                .enumerate()
                .filter_map(|(at, block)| Some((at, block.open(is_thought)?)))
        };
        let best = open().filter(|(_, emitted)| untold(text, emitted).is_some());
        let best = best.max_by_key(|(at, emitted)| (emitted.len(), std::cmp::Reverse(*at)));
        let Some((at, emitted)) = best.or_else(|| open().next().filter(|_| is_sure)) else {
            return tell_all(steps);
        };
        match untold(text, emitted) {
            Some(rest) => emit(is_thought, chunk(parent.cloned(), message.cloned(), &rest), steps),
            // Emitted text can't be withdrawn, and emitting all of it again would be worse.
            None => tracing::debug!(?message, "a block differs from what was streamed of it"),
        }
        if stream.message.is_none() {
            stream.message = message.cloned();
        }
        let block = &mut stream.blocks[at];
        block.sealed = true;
        if let LastBlock::Text(emitted) | LastBlock::Thought(emitted) = &mut block.what {
            emitted.clear();
        }
    }
}

impl Block {
    /// The emitted text, if the block is of this kind and not complete.
    fn open(&self, is_thought: bool) -> Option<&str> {
        match &self.what {
            LastBlock::Text(emitted) if !is_thought && !self.sealed => Some(emitted),
            LastBlock::Thought(emitted) if is_thought && !self.sealed => Some(emitted),
            _ => None,
        }
    }
}

impl Stream {
    fn grow(&mut self, at: usize, text: &str, steps: &mut Steps) {
        let block = &mut self.blocks[at];
        // A delta after the whole block is late: its text was emitted.
        if block.sealed {
            return;
        }
        let (LastBlock::Text(emitted) | LastBlock::Thought(emitted)) = &mut block.what else {
            return;
        };
        emitted.push_str(text);
        let is_thought = matches!(block.what, LastBlock::Thought(_));
        let chunk = chunk(self.parent.clone(), self.message.clone(), text);
        emit(is_thought, chunk, steps);
    }
}

fn chunk(parent: Option<Arc<str>>, message_id: Option<Arc<str>>, text: &str) -> Chunk {
    Chunk {
        message_id,
        parent,
        content: Content::Text(text.to_owned()),
    }
}

fn emit(is_thought: bool, chunk: Chunk, steps: &mut Steps) {
    if matches!(&chunk.content, Content::Text(text) if text.is_empty()) {
        return;
    }
    steps.event(match is_thought {
        true => Event::Thought(chunk),
        false => Event::Text(chunk),
    });
}
