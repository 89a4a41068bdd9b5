//! Frames from elsewhere, as events.

use outrigger_protocol::Frame;

use crate::event::{Event, Lag, Reducer};
use crate::outcome::{Around, FailureEvidence, Outcome, is_result};
use crate::streams::AmbientEvent;
use crate::usage::Meter;

/// Turns frames into the events and outcomes that a session would emit: for frames that come from elsewhere than a session of this
/// program, such as the log of a host, or a recording.
///
/// The frames of one session go in, in their order: those of the CLI, and prompts, which become [`Event::Message`]s as in a
/// [`Tail`](crate::Tail). Control traffic, and what the CLI repeats of its input, make no event.
///
/// A `result` ends its turn: [`AmbientEvent::TurnEnded`]. Its [`Outcome`] is as the frames tell it. [`Outcome::prompts`] are those that the
/// CLI names, and no answer is missed that did not fit a schema. A prompt that ended without a result has no outcome here.
///
/// ```
/// use outrigger::protocol::Frame;
/// use outrigger::{AmbientEvent, Event, EventReader};
///
/// let line = r#"{"type":"assistant","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"Hello."}]},"session_id":"s","uuid":"u","parent_tool_use_id":null}"#;
/// let mut reader = EventReader::new();
/// let mut said = String::new();
/// for frame in Frame::from_line(line) {
///     for event in reader.push(&frame) {
///         if let AmbientEvent::Event(Event::Text(text)) = event {
///             said.push_str(&text);
///         }
///     }
/// }
/// assert_eq!(said, "Hello.");
/// ```
#[derive(Debug, Default)]
pub struct EventReader {
    reducer: Reducer,
    meter: Meter,
    before: FailureEvidence,
    /// The client has asked for an interrupt in this turn.
    interrupted: bool,
}

impl EventReader {
    /// A reader that has seen no frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next frame, and returns what it makes.
    pub fn push(&mut self, frame: &Frame) -> Vec<AmbientEvent> {
        if !is_told(frame) {
            self.interrupted |= frame.kind() == "control_request" && frame.subtype() == Some("interrupt");
            return Vec::new();
        }
        self.reducer.push(frame);
        if !is_result(frame) {
            self.before.on_frame(frame);
            return self.ready();
        }
        self.reducer.end_turn();
        let mut ready = self.ready();
        let around = Around {
            wanted_output: false,
            interrupted: std::mem::take(&mut self.interrupted),
            before: self.before.clone(),
        };
        self.before.next_turn();
        let prompts = frame.user_message_uuids().map(str::to_owned).collect();
        let outcome = Outcome::of_result(frame, self.meter.on_result(frame), prompts, &around);
        ready.push(AmbientEvent::TurnEnded(outcome));
        ready
    }

    /// Partial messages were lost, for example with a connection: the finished messages repeat their text. Returns what ends by that.
    pub fn lost_pieces(&mut self) -> Vec<AmbientEvent> {
        self.reducer.lagged(Lag::default());
        let mut ready = self.ready();
        // Nobody was too slow.
        ready.retain(|event| !matches!(event, AmbientEvent::Event(Event::Lagged(_))));
        ready
    }

    /// The process of the session has ended, or no frame comes any more: ends all messages and blocks that have begun.
    pub fn end(&mut self) -> Vec<AmbientEvent> {
        self.reducer.end();
        self.ready()
    }

    fn ready(&mut self) -> Vec<AmbientEvent> {
        std::iter::from_fn(|| self.reducer.pop())
            .map(AmbientEvent::Event)
            .collect()
    }
}

/// Whether a frame is of the conversation, and not repeated.
pub(crate) fn is_told(frame: &Frame) -> bool {
    !frame.is_replay()
        && !matches!(
            frame.kind(),
            "control_request"
                | "control_response"
                | "control_cancel_request"
                | "keep_alive"
                | "transcript_mirror"
                | "command_lifecycle"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(reader: &mut EventReader, line: &str) -> String {
        let frames = Frame::from_line(line);
        let events = frames.iter().flat_map(|frame| reader.push(frame));
        events
            .filter_map(|event| match event {
                AmbientEvent::Event(Event::Text(text)) => Some(text),
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
            !ended.is_empty()
                && !ended
                    .iter()
                    .any(|event| matches!(event, AmbientEvent::Event(Event::Lagged(_)))),
            "{ended:?}"
        );
        assert_eq!(push(&mut reader, WHOLE), "Hello.");
    }

    #[test]
    fn a_result_ends_its_turn_with_what_the_turn_alone_used() {
        let result = |id: &str, cost: f64| {
            format!(
                r#"{{"type":"result","subtype":"success","is_error":false,"result":"Hello.","total_cost_usd":{cost},"modelUsage":{{}},"session_id":"s","user_message_uuids":["{id}"],"num_turns":1}}"#
            )
        };
        let mut reader = EventReader::new();
        let mut outcomes = Vec::new();
        let lines = [
            // Control traffic and repetitions are no events.
            r#"{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}"#.to_owned(),
            r#"{"type":"user","isReplay":true,"message":{"role":"user","content":"Hi."},"session_id":"s","uuid":"p"}"#.to_owned(),
            r#"{"type":"command_lifecycle","command_uuid":"p","state":"started","session_id":"s","uuid":"l"}"#.to_owned(),
            result("p", 1.0),
            result("q", 1.5),
        ];
        for line in lines {
            for frame in Frame::from_line(line) {
                for event in reader.push(&frame) {
                    match event {
                        AmbientEvent::TurnEnded(outcome) => outcomes.push(outcome),
                        AmbientEvent::Event(event) => panic!("{event:?}"),
                    }
                }
            }
        }
        let told: Vec<_> = outcomes
            .iter()
            .map(|outcome| (outcome.cost(), outcome.prompts().concat()))
            .collect();
        assert_eq!(told, [(1.0, "p".to_owned()), (0.5, "q".to_owned())]);
        assert!(outcomes[0].is_success());
    }
}
