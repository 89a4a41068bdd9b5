//! Where messages and their content blocks begin and end.
//!
//! What is said names its message and block, and a beginning or end is told when that changes. So they are balanced whatever was
//! lost, and nothing waits for a frame that says so.

use std::collections::VecDeque;

use outrigger_protocol::inbound::StopReason;

use super::{BlockKind, Event, SubagentEvent};

/// How many messages may be open at once, one in each conversation. With more, the one that began first ends.
const OPEN: usize = 64;

/// The messages that have begun and not ended: at most one of the main conversation, and one of each subagent.
#[derive(Debug, Default)]
pub(super) struct Bounds(Vec<OpenMessage>);

#[derive(Debug)]
struct OpenMessage {
    /// The subagent's call; none for the main conversation.
    parent: Option<String>,
    /// The stream that the message comes in, if it is streamed.
    stream: Option<u64>,
    id: Option<String>,
    model: Option<String>,
    stop_reason: Option<StopReason>,
    block: Option<OpenBlock>,
    /// The index of the next block that does not say its own.
    next: u64,
}

#[derive(Debug)]
struct OpenBlock {
    index: u64,
    kind: BlockKind,
    /// The tool call that it is, if that is known.
    call: Option<String>,
    /// The frame with which it began was lost: it is some kind of call.
    is_guessed: bool,
}

/// The message that something is part of, as far as it says.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Whose<'a> {
    pub(super) stream: Option<u64>,
    pub(super) id: Option<&'a str>,
    pub(super) model: Option<&'a str>,
}

impl Whose<'_> {
    pub(super) fn stream(stream: u64) -> Self {
        Self {
            stream: Some(stream),
            ..Self::default()
        }
    }
}

/// Puts an event into the conversation that it is of.
pub(super) fn said_by(parent: Option<&str>, event: Event) -> Event {
    match parent {
        None => event,
        Some(parent) => Event::Subagent(Box::new(SubagentEvent {
            parent_tool_use_id: parent.to_owned(),
            event,
        })),
    }
}

impl OpenMessage {
    fn emit(&self, event: Event, out: &mut VecDeque<Event>) {
        out.push_back(said_by(self.parent.as_deref(), event));
    }

    fn is(&self, whose: Whose<'_>) -> bool {
        if self.stream.is_some() && self.stream == whose.stream {
            return true;
        }
        match (&self.id, whose.id) {
            (Some(id), Some(of)) => id == of,
            (None, Some(_)) => false,
            // What comes in no stream and names no message is taken for a part of the one that is open.
            (_, None) => whose.stream.is_none(),
        }
    }

    /// Takes over what is known now.
    fn learn(&mut self, whose: Whose<'_>) {
        self.stream = whose.stream.or(self.stream);
        if self.id.is_none() {
            self.id = whose.id.map(str::to_owned);
        }
        if self.model.is_none() {
            self.model = whose.model.map(str::to_owned);
        }
    }

    fn begin_block(
        &mut self,
        index: u64,
        kind: BlockKind,
        call: Option<String>,
        is_guessed: bool,
        out: &mut VecDeque<Event>,
    ) {
        self.end_block(out);
        self.emit(
            Event::ContentBlockStart {
                message_id: self.id.clone(),
                index,
                kind: kind.clone(),
            },
            out,
        );
        self.next = index.saturating_add(1);
        self.block = Some(OpenBlock {
            index,
            kind,
            call,
            is_guessed,
        });
    }

    fn end_block(&mut self, out: &mut VecDeque<Event>) {
        if let Some(block) = self.block.take() {
            self.emit(
                Event::ContentBlockStop {
                    message_id: self.id.clone(),
                    index: block.index,
                    kind: block.kind,
                },
                out,
            );
        }
    }

    fn end(mut self, out: &mut VecDeque<Event>) {
        self.end_block(out);
        let stop = Event::MessageStop {
            id: self.id,
            model: self.model,
            stop_reason: self.stop_reason,
        };
        out.push_back(said_by(self.parent.as_deref(), stop));
    }
}

impl Bounds {
    /// A message begins, whatever was open.
    pub(super) fn begin(&mut self, parent: Option<&str>, whose: Whose<'_>, out: &mut VecDeque<Event>) {
        self.end(parent, out);
        if self.0.len() == OPEN {
            self.0.remove(0).end(out);
        }
        let mut open = OpenMessage {
            parent: parent.map(str::to_owned),
            stream: None,
            id: None,
            model: None,
            stop_reason: None,
            block: None,
            next: 0,
        };
        open.learn(whose);
        let start = Event::MessageStart {
            id: open.id.clone(),
            model: open.model.clone(),
        };
        open.emit(start, out);
        self.0.push(open);
    }

    /// A block begins or grows, in a stream, at its index.
    pub(super) fn streams(
        &mut self,
        parent: Option<&str>,
        whose: Whose<'_>,
        index: u64,
        kind: &BlockKind,
        out: &mut VecDeque<Event>,
    ) {
        let goes_on = |block: &OpenBlock| block.index == index && block.kind == *kind;
        let Some(open) = self.enter(parent, whose, out) else {
            return;
        };
        if !open.block.as_ref().is_some_and(goes_on) {
            open.begin_block(index, kind.clone(), None, false, out);
        }
    }

    /// A block begins in a stream, at its index: a tool call with its id, or one of another kind.
    pub(super) fn starts(
        &mut self,
        parent: Option<&str>,
        whose: Whose<'_>,
        index: u64,
        kind: BlockKind,
        call: Option<String>,
        out: &mut VecDeque<Event>,
    ) {
        if let Some(open) = self.enter(parent, whose, out) {
            open.begin_block(index, kind, call, false, out);
        }
    }

    /// The input of a call grows, in a stream, at its index.
    pub(super) fn input(
        &mut self,
        parent: Option<&str>,
        whose: Whose<'_>,
        index: u64,
        out: &mut VecDeque<Event>,
    ) {
        let is_call = |block: &OpenBlock| {
            block.index == index && !matches!(block.kind, BlockKind::Text | BlockKind::Thinking)
        };
        let Some(open) = self.enter(parent, whose, out) else {
            return;
        };
        if !open.block.as_ref().is_some_and(is_call) {
            open.begin_block(index, BlockKind::ToolUse, None, true, out);
        }
    }

    /// A finished block is told: the open one if that is of the same kind, else one that was not streamed.
    pub(super) fn finished(
        &mut self,
        parent: Option<&str>,
        whose: Whose<'_>,
        kind: BlockKind,
        call: Option<&str>,
        out: &mut VecDeque<Event>,
    ) {
        let is_call = !matches!(kind, BlockKind::Text | BlockKind::Thinking);
        let is_it = |block: &OpenBlock| {
            let is_same = block.call.is_none() || call.is_none() || block.call.as_deref() == call;
            (block.is_guessed && is_call) || (block.kind == kind && is_same)
        };
        let Some(open) = self.enter(parent, whose, out) else {
            return;
        };
        if !open.block.as_ref().is_some_and(is_it) {
            open.begin_block(open.next, kind, call.map(str::to_owned), false, out);
        }
    }

    /// The block that is open ends.
    pub(super) fn end_block(&mut self, parent: Option<&str>, out: &mut VecDeque<Event>) {
        if let Some(open) = self.of(parent) {
            open.end_block(out);
        }
    }

    /// The block at this index of a stream ends, if it is the open one.
    pub(super) fn end_streamed(
        &mut self,
        parent: Option<&str>,
        stream: u64,
        index: u64,
        out: &mut VecDeque<Event>,
    ) {
        let is_it = |open: &&mut OpenMessage| {
            open.stream == Some(stream) && open.block.as_ref().is_some_and(|block| block.index == index)
        };
        if let Some(open) = self.of(parent).filter(is_it) {
            open.end_block(out);
        }
    }

    /// What else becomes known of the message that is open.
    pub(super) fn learn(&mut self, parent: Option<&str>, whose: Whose<'_>, stop_reason: Option<StopReason>) {
        if let Some(open) = self.of(parent).filter(|open| open.is(whose)) {
            open.learn(whose);
            if stop_reason.is_some() {
                open.stop_reason = stop_reason;
            }
        }
    }

    /// Why the message that is open stopped, unless that is known.
    pub(super) fn stop_reason(&mut self, parent: Option<&str>, stop_reason: Option<StopReason>) {
        if let Some(open) = self.of(parent).filter(|open| open.stop_reason.is_none()) {
            open.stop_reason = stop_reason;
        }
    }

    /// The message that is open ends.
    pub(super) fn end(&mut self, parent: Option<&str>, out: &mut VecDeque<Event>) {
        if let Some(at) = self.at(parent) {
            self.0.remove(at).end(out);
        }
    }

    /// The message that is open ends, unless it is being streamed: the stream says itself when it ends.
    pub(super) fn end_unless_streamed(&mut self, parent: Option<&str>, out: &mut VecDeque<Event>) {
        if self.of(parent).is_some_and(|open| open.stream.is_none()) {
            self.end(parent, out);
        }
    }

    /// Everything that is open ends.
    pub(super) fn end_all(&mut self, out: &mut VecDeque<Event>) {
        for open in self.0.drain(..) {
            open.end(out);
        }
    }

    /// Frames of streams were left out: blocks end here, and messages go on where their names tell that they do.
    pub(super) fn lose_streams(&mut self, out: &mut VecDeque<Event>) {
        for mut open in std::mem::take(&mut self.0) {
            let is_streamed = open.stream.take().is_some();
            if is_streamed {
                open.end_block(out);
            }
            if is_streamed && open.id.is_none() {
                open.end(out);
            } else {
                self.0.push(open);
            }
        }
    }

    /// The message that something is part of; it begins if it is not the open one.
    fn enter(
        &mut self,
        parent: Option<&str>,
        whose: Whose<'_>,
        out: &mut VecDeque<Event>,
    ) -> Option<&mut OpenMessage> {
        if self.of(parent).is_none_or(|open| !open.is(whose)) {
            self.begin(parent, whose, out);
        }
        let open = self.of(parent)?;
        open.learn(whose);
        Some(open)
    }

    fn of(&mut self, parent: Option<&str>) -> Option<&mut OpenMessage> {
        self.0.iter_mut().find(|open| open.parent.as_deref() == parent)
    }

    fn at(&self, parent: Option<&str>) -> Option<usize> {
        self.0.iter().position(|open| open.parent.as_deref() == parent)
    }
}
