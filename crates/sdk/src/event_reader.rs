//! Frames from elsewhere, as events.

use outrigger_protocol::Frame;

use crate::event::{Event, Lag, Reducer};

/// Turns frames into the [`Event`]s that a [`Turn`](crate::Turn) would emit: for frames that come from elsewhere than a session of this
/// program, such as the log of a host, or a recording.
///
/// It knows nothing of turns: the frames of one session go in, in their order, and the events come out. A `result` makes no event, and ends
/// the message before.
///
/// ```
/// use outrigger::protocol::Frame;
/// use outrigger::{Event, EventReader};
///
/// let line = r#"{"type":"assistant","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"Hello."}]},"session_id":"s","uuid":"u","parent_tool_use_id":null}"#;
/// let mut reader = EventReader::new();
/// let mut said = String::new();
/// for frame in Frame::from_line(line) {
///     for event in reader.push(&frame) {
///         if let Event::Text(text) = event {
///             said.push_str(&text);
///         }
///     }
/// }
/// assert_eq!(said, "Hello.");
/// ```
#[derive(Debug, Default)]
pub struct EventReader(Reducer);

impl EventReader {
    /// A reader that has seen no frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next frame, and returns the events that it makes.
    pub fn push(&mut self, frame: &Frame) -> Vec<Event> {
        self.0.push(frame);
        self.ready()
    }

    /// Partial messages were lost, for example with a connection: the finished messages repeat their text. Returns what ends by that.
    pub fn lost_pieces(&mut self) -> Vec<Event> {
        self.0.lagged(Lag::default());
        let mut ready = self.ready();
        // Nobody was too slow.
        ready.retain(|event| !matches!(event, Event::Lagged(_)));
        ready
    }

    /// No frame comes any more: ends all messages and blocks that have begun.
    pub fn end(&mut self) -> Vec<Event> {
        self.0.end();
        self.ready()
    }

    fn ready(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.0.pop()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(reader: &mut EventReader, line: &str) -> String {
        let frames = Frame::from_line(line);
        let events = frames.iter().flat_map(|frame| reader.push(frame));
        events
            .filter_map(|event| match event {
                Event::Text(text) => Some(text),
                _ => None,
            })
            .collect()
    }

    const START: &str = r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"usage":{}}},"session_id":"s","uuid":"u","parent_tool_use_id":null}"#;
    const BLOCK: &str = r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}},"session_id":"s","uuid":"u","parent_tool_use_id":null}"#;
    const PIECE: &str = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}},"session_id":"s","uuid":"u","parent_tool_use_id":null}"#;
    const WHOLE: &str = r#"{"type":"assistant","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"Hello."}]},"session_id":"s","uuid":"u","parent_tool_use_id":null}"#;

    #[test]
    fn text_that_was_streamed_is_not_repeated_unless_pieces_were_lost() {
        let mut reader = EventReader::new();
        let said: String = [START, BLOCK, PIECE].map(|line| push(&mut reader, line)).concat();
        assert_eq!((said.as_str(), push(&mut reader, WHOLE).as_str()), ("Hel", "lo."));

        let mut reader = EventReader::new();
        for line in [START, BLOCK, PIECE] {
            push(&mut reader, line);
        }
        let ended = reader.lost_pieces();
        assert!(
            !ended.is_empty() && !ended.iter().any(|event| matches!(event, Event::Lagged(_))),
            "{ended:?}"
        );
        assert_eq!(push(&mut reader, WHOLE), "Hello.");
    }
}
