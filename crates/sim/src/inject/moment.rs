//! What kind of frame it is, and which moment of the conversation.

use outrigger_protocol::inbound::{
    ApiStreamEvent, CommandState, ControlResult, InboundRequest, ResultSubtype, SystemMessage,
};
use outrigger_protocol::outbound::{OutboundLine, OutboundRequest};
use outrigger_protocol::{Frame, Message};

use super::at::Phase;
use crate::near::unknown;

/// The kind of a line, see [`Line::kind`](crate::peer::Line::kind); `?` if it has none.
pub(crate) fn kind(line: &[u8]) -> String {
    let frames = Frame::from_line(line);
    let [frame] = &frames[..] else {
        return "?".to_owned();
    };
    let subtype = match frame.kind() {
        "" => return "?".to_owned(),
        "command_lifecycle" => frame.state(),
        "stream_event" => frame.event_type(),
        _ => frame.subtype(),
    };
    match subtype {
        Some(subtype) => format!("{}/{subtype}", frame.kind()),
        None => frame.kind().to_owned(),
    }
}

/// What is told of a kind that no frame has: neither one of those that have types, nor one of `more`.
pub(crate) fn unknown_kind(kind: &str, more: &[String]) -> Option<String> {
    let (top, _) = kind.split_once('/').unwrap_or((kind, ""));
    let types = || [Message::KNOWN, OutboundLine::KNOWN].concat();
    let of_a_type = types().contains(&top) && top != kind;
    let mut known: Vec<String> = match (of_a_type, top) {
        (false, _) => types().into_iter().chain(["?"]).map(str::to_owned).collect(),
        (true, top) => {
            let subtypes = match top {
                "system" => SystemMessage::KNOWN.to_vec(),
                "result" => ResultSubtype::KNOWN.to_vec(),
                "stream_event" => ApiStreamEvent::KNOWN.to_vec(),
                "command_lifecycle" => CommandState::KNOWN.to_vec(),
                "control_request" => [InboundRequest::KNOWN, OutboundRequest::KNOWN].concat(),
                "control_response" => ControlResult::KNOWN.to_vec(),
                _ => Vec::new(),
            };
            subtypes
                .iter()
                .map(|subtype| format!("{top}/{subtype}"))
                .collect()
        }
    };
    known.extend_from_slice(more);
    if known.iter().any(|known| known == kind) {
        return None;
    }
    known.sort();
    known.dedup();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Some(unknown("kind of frame", kind, &known))
}

/// Follows a conversation by the CLI's frames.
#[derive(Debug, Default)]
pub(super) struct Moments {
    initialized: bool,
    in_turn: bool,
    /// The model has written something in this turn.
    said: bool,
    /// What came behind that was seen.
    went_on: bool,
}

impl Moments {
    /// Which moments this frame is the one of.
    pub(super) fn see(&mut self, kind: &str) -> Vec<Phase> {
        let mut now = Vec::new();
        if kind.starts_with("control_response") && !self.initialized {
            self.initialized = true;
            now.push(Phase::Initialize);
        }
        let top = kind.split('/').next().unwrap_or_default();
        let of_a_turn = matches!(top, "assistant" | "stream_event" | "user" | "result")
            || matches!(
                kind,
                "command_lifecycle/queued" | "command_lifecycle/started" | "system/init"
            );
        if of_a_turn && !self.in_turn {
            *self = Self {
                initialized: self.initialized,
                in_turn: true,
                ..Self::default()
            };
            now.push(Phase::TurnStart);
        }
        if self.said && !self.went_on {
            self.went_on = true;
            now.push(Phase::MidStream);
        }
        if kind == "stream_event/content_block_delta" || top == "assistant" {
            self.said = true;
        }
        if top == "result" {
            self.in_turn = false;
            now.push(Phase::Result);
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_those_of_reports() {
        for (line, kind_of_it) in [
            (r#"{"type":"result","subtype":"success"}"#, "result/success"),
            (r#"{"type":"assistant","message":{}}"#, "assistant"),
            (
                r#"{"type":"stream_event","event":{"type":"message_stop"}}"#,
                "stream_event/message_stop",
            ),
            (
                r#"{"type":"control_request","request":{"subtype":"can_use_tool"}}"#,
                "control_request/can_use_tool",
            ),
            (
                r#"{"type":"control_response","response":{"subtype":"error"}}"#,
                "control_response/error",
            ),
            (
                r#"{"type":"command_lifecycle","state":"queued"}"#,
                "command_lifecycle/queued",
            ),
            (r#"{"type":"user","state":7,"subtype":["odd"]}"#, "user"),
            (r#"{"type":"user","message":"\ud83d"}"#, "user"),
            (r#"{"no":"type"}"#, "?"),
            ("[Debug] hm", "?"),
        ] {
            assert_eq!(kind(line.as_bytes()), kind_of_it, "{line}");
        }
    }

    #[test]
    fn moments_come_once_a_turn() {
        let mut moments = Moments::default();
        let seen: Vec<(&str, Vec<Phase>)> = [
            "control_response/success",
            "control_response/success",
            "command_lifecycle/queued",
            "system/init",
            "stream_event/content_block_delta",
            "stream_event/content_block_delta",
            "assistant",
            "result/success",
            "command_lifecycle/completed",
            "system/session_state_changed",
            "assistant",
            "result/success",
        ]
        .into_iter()
        .map(|kind| (kind, moments.see(kind)))
        .filter(|(_, phases)| !phases.is_empty())
        .collect();
        use Phase::{Initialize, MidStream, Result, TurnStart};
        assert_eq!(
            seen,
            [
                ("control_response/success", vec![Initialize]),
                ("command_lifecycle/queued", vec![TurnStart]),
                ("stream_event/content_block_delta", vec![MidStream]),
                ("result/success", vec![Result]),
                ("assistant", vec![TurnStart]),
                ("result/success", vec![MidStream, Result]),
            ]
        );
    }
}
