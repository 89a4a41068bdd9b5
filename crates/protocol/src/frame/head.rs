//! The few fields of a frame that routing needs, read without the rest.

use std::ops::Range;

use serde::de::IgnoredAny;

use super::delta::DeltaPiece;
use super::{Misfit, MisfitKind, skim};
use crate::inbound::Message;

/// The routing strings.
#[derive(Debug, Clone, Copy)]
pub(super) enum Field {
    Kind,
    Subtype,
    Uuid,
    SessionId,
    RequestId,
    ParentToolUseId,
    EventType,
    UserMessageUuid,
    CommandUuid,
    State,
    OriginKind,
}

const FIELDS: usize = Field::OriginKind as usize + 1;

/// Where one of the routing strings is: in the frame's text, which saves an allocation, or among the head's own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    start: u32,
    length: u32,
}

impl Span {
    pub(super) const NONE: Self = Self {
        start: u32::MAX,
        length: u32::MAX,
    };

    /// Set in the length of those that the head has.
    const OWN: u32 = 1 << 31;

    /// The part of the frame's text from `start` on; `None` where a span can't reach.
    pub(super) fn part(start: usize, length: usize) -> Option<Self> {
        let start = u32::try_from(start).ok()?;
        let length = u32::try_from(length).ok().filter(|length| *length < Self::OWN)?;
        Some(Self { start, length })
    }

    pub(super) fn is_none(self) -> bool {
        self.start == u32::MAX
    }

    /// The part of the text, for one that is there.
    pub(super) fn range(self) -> Range<usize> {
        let start = self.start as usize;
        start..start.saturating_add((self.length & !Self::OWN) as usize)
    }

    /// The same place when the text up to it has become longer: by `first` from the position `behind_first` on, and by
    /// `second`, in all, from `behind_second` on.
    fn shifted(self, behind_first: usize, first: usize, behind_second: usize, second: usize) -> Option<Self> {
        if self.is_none() {
            return Some(self);
        }
        let by = |at: usize| match at {
            at if at >= behind_second => at.wrapping_add(second),
            at if at >= behind_first => at.wrapping_add(first),
            at => at,
        };
        let Range { start, end } = self.range();
        let (start, end) = (by(start), by(end));
        Self::part(start, end.checked_sub(start)?)
    }
}

/// A routing string as it was found.
#[derive(Debug)]
pub(super) enum RoutingString {
    /// In the frame's text.
    Part(Span),
    /// Written with escapes, or numeric, or out of a span's reach.
    Own(Box<str>),
}

#[derive(Debug, Clone)]
pub(super) struct FrameHead {
    spans: [Span; FIELDS],
    user_message_uuids: Vec<Span>,
    /// The strings that are not in the text as they are.
    own: String,
    /// The type, if it is one of those that there are types for: it is what is asked for most.
    pub(super) known: Option<&'static str>,
    pub(super) is_replay: bool,
    /// Whether the request's id is a plain string of the frame itself.
    pub(super) is_own_id: bool,
    /// What the line adds to a block, if that is all that it says.
    pub(super) piece: Option<DeltaPiece>,
}

impl Default for FrameHead {
    fn default() -> Self {
        Self {
            spans: [Span::NONE; FIELDS],
            user_message_uuids: Vec::new(),
            own: String::new(),
            known: None,
            is_replay: false,
            is_own_id: false,
            piece: None,
        }
    }
}

impl FrameHead {
    pub(super) fn span(&self, field: Field) -> Span {
        self.spans[field as usize]
    }

    pub(super) fn set(&mut self, field: Field, found: RoutingString) {
        self.spans[field as usize] = self.keep(found);
    }

    pub(super) fn clear_prompts(&mut self) {
        self.user_message_uuids.clear();
    }

    pub(super) fn add_prompt(&mut self, found: RoutingString) {
        let span = self.keep(found);
        self.user_message_uuids.push(span);
    }

    pub(super) fn prompts(&self) -> &[Span] {
        &self.user_message_uuids
    }

    /// The string of a span, when `part` looks into the frame's text.
    pub(super) fn get<'a>(
        &'a self,
        span: Span,
        part: impl FnOnce(usize, usize) -> Option<&'a str>,
    ) -> Option<&'a str> {
        if span.is_none() {
            return None;
        }
        let start = span.start as usize;
        match span.length & Span::OWN {
            0 => part(start, start + span.length as usize),
            _ => self.own.get(start..start + (span.length & !Span::OWN) as usize),
        }
    }

    fn keep(&mut self, found: RoutingString) -> Span {
        match found {
            RoutingString::Part(span) => span,
            RoutingString::Own(text) => {
                let span = Span::part(self.own.len(), text.len());
                self.own.push_str(&text);
                // A string of 2 GiB routes nothing.
                span.map_or(Span::NONE, |span| Span {
                    length: span.length | Span::OWN,
                    ..span
                })
            }
        }
    }

    /// What it would be for a text that differs in two strings; see [`Span::shifted`]. `None` if it has strings of its own.
    pub(super) fn shift(
        &mut self,
        behind_first: usize,
        first: usize,
        behind_second: usize,
        second: usize,
    ) -> Option<()> {
        if !self.own.is_empty() || !self.user_message_uuids.is_empty() {
            return None;
        }
        let shifted = |span: Span| span.shifted(behind_first, first, behind_second, second);
        for span in &mut self.spans {
            *span = shifted(*span)?;
        }
        if let Some(piece) = &mut self.piece {
            piece.text = shifted(piece.text)?;
        }
        Some(())
    }

    /// Spares the type the way back into the text.
    fn recognise(&mut self, text: &[u8]) {
        let kind = self.span(Field::Kind);
        let kind = match kind.length & Span::OWN {
            0 => text.get(kind.range()),
            // The range of a missing `type` is beyond this text.
            _ => self.own.as_bytes().get(kind.range()),
        };
        let mut known = Message::KNOWN.iter().copied();
        self.known = kind.and_then(|kind| known.find(|known| known.as_bytes() == kind));
    }
}

/// What was read: how many bytes the object takes, and what is wrong with it.
#[derive(Debug)]
pub(super) struct HeadRead {
    pub(super) length: usize,
    pub(super) flaw: Option<Box<Misfit>>,
}

/// Reads the first value of `text`, which is an object if all is well.
pub(super) fn read_head(text: &[u8], head: &mut FrameHead) -> Result<HeadRead, String> {
    let Some((length, is_object)) = skim::value(text, head) else {
        return Err(why_not_json(text));
    };
    head.recognise(text);
    let flaw = match (is_object, head.span(Field::Kind).is_none()) {
        (true, false) => None,
        (true, true) => Misfit::boxed(MisfitKind::NoType, "an object without a string `type`".to_owned()),
        (false, _) => Misfit::boxed(MisfitKind::NoType, "a JSON value that is no object".to_owned()),
    };
    Ok(HeadRead { length, flaw })
}

#[cold]
fn why_not_json(text: &[u8]) -> String {
    match serde_json::from_slice::<IgnoredAny>(text) {
        Ok(_) => "unreadable".to_owned(),
        Err(error) => error.to_string(),
    }
}
