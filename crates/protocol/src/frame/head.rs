//! The few fields of a frame that routing needs, read without the rest.

use std::borrow::Cow;

use super::{Misfit, MisfitKind, parse, skim};
use crate::inbound::Message;

/// Where one of the routing strings is.
#[derive(Debug, Clone, Default)]
#[cfg_attr(test, derive(PartialEq))]
pub(super) enum Span {
    #[default]
    None,
    /// In the line, which saves an allocation.
    Line { start: u32, length: u32 },
    /// One of the strings that nearly every frame has in this place.
    Known(&'static &'static str),
    /// Written with escapes, or numeric, or in mended text.
    Own(Box<Own>),
}

/// A string on its own, such that a [`Span`] takes no more than 16 bytes.
#[derive(Debug, Clone)]
#[cfg_attr(test, derive(PartialEq))]
pub(super) struct Own(pub(super) Box<str>);

impl Span {
    pub(super) fn own(text: impl Into<Box<str>>) -> Self {
        Self::Own(Box::new(Own(text.into())))
    }

    /// The part of the line from `start` on.
    pub(super) fn part(start: usize, text: &str) -> Self {
        match (u32::try_from(start), u32::try_from(text.len())) {
            (Ok(start), Ok(length)) if start.checked_add(length).is_some() => Self::Line { start, length },
            _ => Self::own(text),
        }
    }

    /// The string, when `line` is what it was read from.
    pub(super) fn get<'a>(&'a self, line: &'a [u8]) -> Option<&'a str> {
        match self {
            Self::None => None,
            Self::Line { start, length } => {
                std::str::from_utf8(line.get(*start as usize..(*start + *length) as usize)?).ok()
            }
            Self::Known(text) => Some(text),
            Self::Own(text) => Some(&text.0),
        }
    }
}

#[derive(Debug, Clone, Default)]
#[cfg_attr(test, derive(PartialEq))]
pub(super) struct Head {
    pub(super) kind: Span,
    pub(super) subtype: Span,
    pub(super) uuid: Span,
    pub(super) session_id: Span,
    pub(super) request_id: Span,
    pub(super) parent_tool_use_id: Span,
    pub(super) event_type: Span,
    pub(super) user_message_uuid: Span,
    pub(super) user_message_uuids: Vec<Span>,
    pub(super) command_uuid: Span,
    pub(super) state: Span,
    pub(super) origin_kind: Span,
    pub(super) is_replay: bool,
}

impl Head {
    fn spans(&mut self) -> impl Iterator<Item = &mut Span> {
        [
            &mut self.kind,
            &mut self.subtype,
            &mut self.uuid,
            &mut self.session_id,
            &mut self.request_id,
            &mut self.parent_tool_use_id,
            &mut self.event_type,
            &mut self.user_message_uuid,
            &mut self.command_uuid,
            &mut self.state,
            &mut self.origin_kind,
        ]
        .into_iter()
        .chain(&mut self.user_message_uuids)
    }

    /// What was read from a part of the line counts from the beginning of the line.
    pub(super) fn rebase(&mut self, line: &[u8], by: usize) {
        if by == 0 {
            return;
        }
        for span in self.spans() {
            if let Span::Line { start, .. } = span {
                let at = *start as usize + by;
                *span = Span::part(at, span.get(&line[by..]).unwrap_or_default());
            }
        }
    }

    /// Copies the strings out of `text`, which will not be kept.
    pub(super) fn own(&mut self, text: &[u8]) {
        for span in self.spans() {
            if let Span::Line { .. } = span {
                *span = Span::own(span.get(text).unwrap_or_default());
            }
        }
    }

    /// Spares the strings that are looked at most the way back into the line.
    fn recognise(&mut self, line: &[u8]) {
        let known = self.kind.get(line).and_then(|kind| known(Message::KNOWN, kind));
        self.kind = known.unwrap_or(std::mem::take(&mut self.kind));
    }
}

fn known(list: &'static [&'static str], text: &str) -> Option<Span> {
    list.iter().find(|known| **known == text).map(Span::Known)
}

/// What was read: how many bytes the object takes, and what is wrong with it.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) length: usize,
    pub(super) flaw: Option<Box<Misfit>>,
}

/// Reads the first value of `text`, which is an object if all is well.
///
/// Both ways of reading accept the same texts and find the same fields; the first one gives up on whatever is unusual.
pub(super) fn read_head(text: &[u8], head: &mut Head) -> Result<Read, String> {
    if let Some(length) = skim::object(text, head) {
        head.recognise(text);
        return Ok(Read { length, flaw: None });
    }
    *head = Head::default();
    let (length, is_object) = parse::object(text, head)?;
    let flaw = match (is_object, &head.kind) {
        (true, Span::None) => Some("an object without a string `type`"),
        (true, _) => None,
        (false, _) => Some("a JSON value that is no object"),
    };
    head.recognise(text);
    let misfit = |what: &str| {
        Box::new(Misfit {
            kind: MisfitKind::NoType,
            reason: what.to_owned(),
        })
    };
    Ok(Read {
        length,
        flaw: flaw.map(misfit),
    })
}

pub(super) fn mend(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    match crate::repair::lone_surrogates(&text) {
        Some(mended) => Some(mended),
        None if matches!(text, Cow::Owned(_)) => Some(text.into_owned()),
        None => None,
    }
}

#[cfg(test)]
mod tests;
