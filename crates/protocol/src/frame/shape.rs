//! Reads a line by comparison with the line before it.
//!
//! While the model writes, each line differs from the one before it only in a text and a uuid. Then the head of the line before holds
//! for this one, too: it is enough to compare the rest, and to find the ends of the two strings.

use outrigger_json::scan;

use super::head::{Field, FrameHead, Span};

/// A partial message, to compare the next lines with.
#[derive(Debug)]
pub(super) struct MessageShape {
    line: Vec<u8>,
    head: FrameHead,
    /// Where the text and the uuid are, in their order.
    free: [Span; 2],
}

impl MessageShape {
    /// Remembers a line by its head; `None` if it is no partial message, or one whose text or uuid is empty: the end of an empty text
    /// is its beginning, which must not move when the text of the next line is longer.
    pub(super) fn of(line: &[u8], head: &FrameHead) -> Option<Self> {
        let (text, uuid) = (head.piece?.text, head.span(Field::Uuid));
        let mut free = [text, uuid];
        free.sort_by_key(|span| span.range().start);
        let is_empty = free.iter().any(|span| span.range().is_empty());
        (!uuid.is_none() && !is_empty).then(|| Self {
            line: line.to_vec(),
            head: head.clone(),
            free,
        })
    }

    /// Reads a line that is of this shape.
    pub(super) fn read(&self, line: &[u8]) -> Option<FrameHead> {
        let [first, second] = self.free.map(Span::range);
        let same = |at: usize, part: &[u8]| line.get(at..)?.starts_with(part).then_some(at + part.len());
        let begin = same(0, &self.line[..first.start])?;
        // The part of the line that stays the same begins with the closing quote.
        let end = scan::string_end(line, begin)?.at - 1;
        let first_by = end.wrapping_sub(first.end);
        let begin = same(end, &self.line[first.end..second.start])?;
        let end = scan::string_end(line, begin)?.at - 1;
        let second_by = end.wrapping_sub(second.end);
        if same(end, &self.line[second.end..])? != line.len() {
            return None;
        }
        let mut head = self.head.clone();
        head.shift(first.end, first_by, second.end, second_by)?;
        let uuid = line.get(head.span(Field::Uuid).range())?;
        let is_plain = uuid.is_ascii() && !uuid.contains(&b'\\');
        is_plain.then_some(head)
    }
}
