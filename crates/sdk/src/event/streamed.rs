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
pub(super) struct Streams {
    known: VecDeque<Stream>,
    /// How many there were.
    count: u64,
}

#[derive(Debug)]
struct Stream {
    number: u64,
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

/// A finished text, beside what was told of it.
#[derive(Debug)]
pub(super) struct Finished {
    /// What was not told.
    pub(super) rest: Option<String>,
    /// The stream in which it was told, and its index there.
    pub(super) streamed: Option<(u64, u64)>,
}

impl Streams {
    /// A message begins. Returns its number.
    pub(super) fn begin(&mut self, parent: Option<&str>) -> u64 {
        self.over(parent);
        if self.known.len() == KEPT {
            self.known.pop_front();
        }
        self.count += 1;
        self.known.push_back(Stream {
            number: self.count,
            parent: parent.map(str::to_owned),
            message: None,
            blocks: Vec::new(),
            over: false,
        });
        self.count
    }

    /// The message that has begun has this id. What was known of another with it does not count: it is said anew.
    pub(super) fn name(&mut self, parent: Option<&str>, message: Option<String>) {
        if message.is_some() {
            self.known
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
        self.known.clear();
    }

    /// A block begins or grows. Returns the number of its message: a new one, if the block can't be of the one that was streamed.
    /// What grows by other things than text and thinking has no `kind`, and is not remembered.
    pub(super) fn goes_on(&mut self, parent: Option<&str>, index: u64, kind: Option<PieceKind>) -> u64 {
        let fits = |block: &Block| block.index != index || (Some(block.kind) == kind && !block.finished);
        // Else the beginning of another message was lost.
        let going = self
            .of(parent)
            .filter(|stream| !stream.over && stream.blocks.iter().all(fits))
            .map(|stream| stream.number);
        going.unwrap_or_else(|| self.begin(parent))
    }

    /// A block grows by `text`. Returns the number of its message.
    pub(super) fn piece(&mut self, parent: Option<&str>, index: u64, kind: PieceKind, text: &str) -> u64 {
        let number = self.goes_on(parent, index, Some(kind));
        if let Some(stream) = self.of(parent) {
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
        number
    }

    /// The message that is being streamed.
    pub(super) fn current(&mut self, parent: Option<&str>) -> Option<u64> {
        let current = self.of(parent).filter(|stream| !stream.over)?;
        Some(current.number)
    }

    /// The stream of a finished line with this message: the one that says so, or the current one if one of the two does not say.
    pub(super) fn of_message(&mut self, parent: Option<&str>, message: Option<&str>) -> Option<u64> {
        let is_named = |stream: &&Stream| {
            stream.parent.as_deref() == parent && message.is_some() && stream.message.as_deref() == message
        };
        if let Some(named) = self.known.iter().rev().find(is_named) {
            return Some(named.number);
        }
        let current = self.of(parent).filter(|stream| !stream.over)?;
        (message.is_none() || current.message.is_none()).then_some(current.number)
    }

    /// A block is finished, with this text.
    pub(super) fn finished(
        &mut self,
        parent: Option<&str>,
        message: Option<&str>,
        kind: PieceKind,
        mut text: String,
    ) -> Finished {
        let parents = |stream: &&mut Stream| stream.parent.as_deref() == parent;
        let of_message = |stream: &&mut Stream| message.is_some() && stream.message.as_deref() == message;
        let named = self.known.iter_mut().rev().filter(parents).find(of_message);
        let is_named = named.is_some();
        // One of the two does not say which message it is of.
        let stream = match named {
            Some(stream) => Some(stream),
            None => self
                .known
                .iter_mut()
                .rev()
                .filter(parents)
                .find(|stream| message.is_none() || stream.message.is_none()),
        };
        let Some(stream) = stream else {
            return Finished::new(text);
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
            return Finished::new(text);
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
        Finished {
            streamed: Some((stream.number, block.index)),
            ..Finished::new(text)
        }
    }

    fn of(&mut self, parent: Option<&str>) -> Option<&mut Stream> {
        let mut newest = self.known.iter_mut().rev();
        newest.find(|stream| stream.parent.as_deref() == parent)
    }
}

impl Finished {
    /// A block of which nothing was emitted.
    fn new(text: String) -> Self {
        Self {
            rest: (!text.is_empty()).then_some(text),
            streamed: None,
        }
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
