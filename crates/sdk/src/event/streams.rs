//! What was told of messages that are being streamed, so that their finished lines do not say it again.
//!
//! Nothing here is held back until something else is understood: a piece is told whatever was lost before it. What is lost shows when
//! the finished line comes, and is told then.

use std::collections::VecDeque;

use outrigger_protocol::PieceKind;

/// How many messages are remembered; the oldest are forgotten, and their finished lines are told whole.
const KEPT: usize = 64;

/// The messages that are streamed, or were a short while ago; the newest last.
#[derive(Debug, Default)]
pub(super) struct Streams(VecDeque<Stream>);

#[derive(Debug)]
struct Stream {
    /// The subagent's call; none for the main conversation.
    parent: Option<String>,
    /// The API's id; none until a finished line tells, if the line with which the message began was lost.
    message: Option<String>,
    blocks: Vec<Block>,
    /// Nothing is added any more.
    over: bool,
}

#[derive(Debug)]
struct Block {
    index: u64,
    kind: PieceKind,
    /// What was told of it, until it is finished.
    told: String,
    finished: bool,
}

impl Streams {
    /// A message begins.
    pub(super) fn begin(&mut self, parent: Option<&str>) {
        self.over(parent);
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(Stream {
            parent: parent.map(str::to_owned),
            message: None,
            blocks: Vec::new(),
            over: false,
        });
    }

    /// The message that has begun has this id. What was known of another with it does not count: it is said anew.
    pub(super) fn name(&mut self, parent: Option<&str>, message: Option<String>) {
        if message.is_some() {
            self.0
                .retain(|known| known.parent.as_deref() != parent || known.message != message);
        }
        if let Some(stream) = self.of(parent) {
            stream.message = message;
        }
    }

    /// The message that is being streamed is complete.
    pub(super) fn over(&mut self, parent: Option<&str>) {
        if let Some(stream) = self.of(parent) {
            stream.over = true;
        }
    }

    /// What was streamed is not known any more.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// A block grows by `text`.
    pub(super) fn piece(&mut self, parent: Option<&str>, index: u64, kind: PieceKind, text: &str) {
        let fits = |block: &Block| block.index != index || (block.kind == kind && !block.finished);
        // Else the beginning of another message was lost.
        let goes_on = self
            .of(parent)
            .is_some_and(|stream| !stream.over && stream.blocks.iter().all(fits));
        if !goes_on {
            self.begin(parent);
        }
        let Some(stream) = self.of(parent) else { return };
        // The block that is being written is the last.
        match stream.blocks.iter_mut().rfind(|block| block.index == index) {
            Some(block) => block.told.push_str(text),
            None => stream.blocks.push(Block {
                index,
                kind,
                told: text.to_owned(),
                finished: false,
            }),
        }
    }

    /// A block is finished, with this text; gives what of it was not told.
    pub(super) fn finished(
        &mut self,
        parent: Option<&str>,
        message: Option<&str>,
        kind: PieceKind,
        mut text: String,
    ) -> Option<String> {
        let parents = |stream: &&mut Stream| stream.parent.as_deref() == parent;
        let of_message = |stream: &&mut Stream| message.is_some() && stream.message.as_deref() == message;
        let named = self.0.iter_mut().rev().filter(parents).find(of_message);
        let is_named = named.is_some();
        // One of the two does not say which message it is of.
        let stream = match named {
            Some(stream) => Some(stream),
            None => self
                .0
                .iter_mut()
                .rev()
                .filter(parents)
                .find(|stream| message.is_none() || stream.message.is_none()),
        };
        let Some(stream) = stream else {
            return (!text.is_empty()).then_some(text);
        };
        let open = || {
            stream
                .blocks
                .iter()
                .enumerate()
                .filter(|(_, block)| block.kind == kind && !block.finished)
        };
        // The line of the block before may have been lost.
        let told_of = open()
            .filter(|(_, block)| untold(&text, &block.told).is_some())
            .max_by_key(|(at, block)| (block.told.len(), std::cmp::Reverse(*at)));
        // The CLI may have changed the text after streaming it. What was said can't be taken back, so it stands.
        let found = told_of
            .or_else(|| open().next().filter(|_| is_named))
            .map(|(at, _)| at);
        let Some(at) = found else {
            return (!text.is_empty()).then_some(text);
        };
        if let (None, Some(message)) = (&stream.message, message) {
            stream.message = Some(message.to_owned());
        }
        let block = &mut stream.blocks[at];
        block.finished = true;
        let told = std::mem::take(&mut block.told);
        if text.starts_with(&told) {
            text.drain(..told.len());
        } else {
            text = untold(&text, &told).unwrap_or_default();
        }
        (!text.is_empty()).then_some(text)
    }

    fn of(&mut self, parent: Option<&str>) -> Option<&mut Stream> {
        let mut newest = self.0.iter_mut().rev();
        newest.find(|stream| stream.parent.as_deref() == parent)
    }
}

/// What of a text was not told, if what was told is the text with a part, or a part and the end, left out.
pub fn untold(text: &str, told: &str) -> Option<String> {
    if let Some(rest) = text.strip_prefix(told) {
        return Some(rest.to_owned());
    }
    let alike = text.char_indices().zip(told.chars()).find(|((_, a), b)| a != b);
    let begin = alike.map_or(text.len().min(told.len()), |((at, _), _)| at);
    let (rest, last) = (&text[begin..], &told[begin..]);
    if let Some(gap) = rest.strip_suffix(last) {
        return Some(gap.to_owned());
    }
    let at = rest.find(last)?;
    Some([&rest[..at], &rest[at + last.len()..]].concat())
}

#[cfg(test)]
mod tests {
    use super::untold;

    #[test]
    fn what_was_lost_of_a_text_is_found() {
        for (told, untold_of_it) in [
            ("", Some("hello öß")),
            ("hel", Some("lo öß")),
            ("lo öß", Some("hel")),
            ("hello ß", Some("ö")),
            ("helö", Some("lo ß")),
            ("hello öß", Some("")),
            ("hello öß and", None),
            ("other", None),
        ] {
            assert_eq!(untold("hello öß", told).as_deref(), untold_of_it, "{told}");
        }
    }
}
