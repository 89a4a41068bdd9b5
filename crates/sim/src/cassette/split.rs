//! Streamed text comes in pieces, and so may a secret: pieces are looked at together before any of them is written.

use outrigger_protocol::RawJson;

use super::file::{Event, Said, What};
use super::redact::Redactor;
use super::strings;

/// How many written bytes are scanned again, for secrets that are recognized by the text before them.
const CONTEXT: usize = 256;

/// How much is held back at most, in bytes.
const MOST: usize = 64 * 1024;

/// Events on their way to the file. Pieces of a streamed word wait until the word is complete; later events wait
/// behind them.
#[derive(Debug, Default)]
pub(super) struct Held {
    waiting: Vec<Event>,
    bytes: usize,
    /// The block whose pieces wait or were seen last.
    block: Option<SplitBlock>,
}

#[derive(Debug)]
struct SplitBlock {
    key: Key,
    /// The end of the part that was written.
    context: String,
    /// Which of the waiting events are pieces of it, and their text.
    pieces: Vec<(usize, String)>,
}

/// A block of a message that is being streamed, and the field that its pieces are in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    agent: Option<String>,
    index: u64,
    field: &'static str,
}

impl Held {
    /// Takes an event and gives those that can be written now, redacted.
    pub(super) fn pass(&mut self, event: Event, redactor: &Redactor) -> Vec<Event> {
        let mut ready = Vec::new();
        match &event.what {
            What::Out(Said::Frame(frame), _) if frame.get().contains("stream_event") => match piece(frame) {
                Some((key, text)) => {
                    if self.block.as_ref().is_none_or(|block| block.key != key) {
                        ready = self.let_go(redactor);
                        self.block = Some(SplitBlock {
                            key,
                            context: String::new(),
                            pieces: Vec::new(),
                        });
                    }
                    if let Some(block) = &mut self.block {
                        block.pieces.push((self.waiting.len(), text));
                    }
                }
                None if frame.get().contains("\"ping\"") => {}
                None => {
                    ready = self.let_go(redactor);
                    self.block = None;
                }
            },
            // The whole message, or the end of everything.
            What::Out(said, _) if !said.text().contains("\"system\"") => ready = self.let_go(redactor),
            What::StdinClosed | What::StdoutClosed | What::Exit { .. } => ready = self.let_go(redactor),
            _ => {}
        }
        self.bytes += match &event.what {
            What::Out(said, _) | What::In(said) => said.text().len(),
            _ => 0,
        };
        self.waiting.push(event);
        if self.bytes > MOST || self.block.as_ref().is_none_or(SplitBlock::is_complete) {
            ready.extend(self.let_go(redactor));
        }
        ready
    }

    /// Everything that waits, redacted.
    pub(super) fn let_go(&mut self, redactor: &Redactor) -> Vec<Event> {
        let mut joint = Vec::new();
        let mut key = None;
        if let Some(block) = &mut self.block {
            key = Some(block.key.clone());
            joint = block.resolve(redactor);
        }
        self.bytes = 0;
        let mut joint = joint.into_iter().peekable();
        let waiting = std::mem::take(&mut self.waiting);
        let done = waiting.into_iter().enumerate().map(|(number, mut event)| {
            if let What::Out(said, _) = &mut event.what {
                let text = joint.next_if(|(at, _)| *at == number).map(|(_, text)| text);
                let field = key.as_ref().map(|key| key.field);
                *said = said.map(|line| match (text, field) {
                    (Some(text), Some(field)) => with_text(line, field, &text, redactor),
                    _ => redactor.line(line),
                });
            }
            event
        });
        done.collect()
    }
}

impl SplitBlock {
    /// Whether the pieces end where a word ends, and none of a line that is secret as a whole.
    fn is_complete(&self) -> bool {
        let Some((_, last)) = self.pieces.last() else {
            return true;
        };
        let text = || self.pieces.iter().map(|(_, text)| text.as_str());
        let line = text().collect::<String>().to_ascii_lowercase();
        let line = line.rsplit('\n').next().unwrap_or_default();
        last.ends_with(char::is_whitespace)
            && !["authorization:", "cookie:", "x-api-key:", "bearer "]
                .iter()
                .any(|label| line.contains(label))
            && !line.contains("-----begin")
    }

    /// The text to write for each piece.
    fn resolve(&mut self, redactor: &Redactor) -> Vec<(usize, String)> {
        let mut pieces = std::mem::take(&mut self.pieces);
        let texts: Vec<&str> = pieces.iter().map(|(_, text)| text.as_str()).collect();
        let redacted = redactor.parts(&self.context, &texts);
        self.context.push_str(&texts.concat());
        let mut from = self.context.len().saturating_sub(CONTEXT);
        while !self.context.is_char_boundary(from) {
            from += 1;
        }
        self.context.drain(..from);
        if let Some(redacted) = redacted {
            for ((_, text), redacted) in pieces.iter_mut().zip(redacted) {
                *text = redacted;
            }
        }
        pieces
    }
}

/// The piece of a block that a frame has.
fn piece(frame: &RawJson) -> Option<(Key, String)> {
    if !frame.get().contains("content_block_delta") {
        return None;
    }
    let value = frame.to_value().ok()?;
    let (event, delta) = (&value["event"], &value["event"]["delta"]);
    if value["type"] != "stream_event" || event["type"] != "content_block_delta" {
        return None;
    }
    let field = ["text", "thinking", "partial_json"]
        .into_iter()
        .find(|field| delta[field].is_string())?;
    let key = Key {
        agent: value["parent_tool_use_id"].as_str().map(str::to_owned),
        index: event["index"].as_u64().unwrap_or_default(),
        field,
    };
    Some((key, delta[field].as_str()?.to_owned()))
}

/// A frame with another piece of text, redacted elsewhere.
fn with_text(line: &str, field: &str, text: &str, redactor: &Redactor) -> Option<String> {
    let place = ["event".to_owned(), "delta".to_owned(), field.to_owned()];
    strings::rewrite(line, |at, old| {
        if !at.is_key && at.is_in(&place) {
            Some(text.to_owned())
        } else {
            redactor.string(at, old)
        }
    })
}
