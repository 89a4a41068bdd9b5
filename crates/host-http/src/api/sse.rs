//! Events as the official client reads them.

use std::fmt::Write as _;

use bytes::Bytes;
use jiff::Timestamp;
use outrigger::protocol::RawJson;
use outrigger_host::log::Hint;
use outrigger_host::{LogEvent, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A durable event, in streams and in pages.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Envelope<'a> {
    /// The id; of a prompt the `uuid` that the client chose.
    event_id: String,
    /// The number in the session, from 1 without gaps. It is the cursor of readers.
    sequence_num: u64,
    /// When the event became durable (RFC 3339).
    created_at: String,
    /// `client`, `worker` for the CLI, or `host`.
    source: &'static str,
    /// The label of the token with which it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'a str>,
    /// The event, byte for byte.
    #[schemars(with = "serde_json::Value")]
    payload: &'a RawJson,
}

/// The events after a cursor.
#[derive(Serialize, JsonSchema)]
pub(super) struct EventPage<'a> {
    pub(super) events: Vec<Envelope<'a>>,
    /// The number of the newest event.
    pub(super) head_seq: u64,
    /// Events before this one are no longer kept.
    pub(super) first_seq: u64,
    /// The number after which the next page begins. It is that of the last event of the page, or beyond it, if events of other types follow.
    pub(super) cursor: u64,
}

impl<'a> Envelope<'a> {
    pub(super) fn of(event: &'a LogEvent) -> Self {
        let at = i64::try_from(event.at).ok();
        Self {
            event_id: event.event_id.to_string(),
            sequence_num: event.seq,
            created_at: at
                .and_then(|at| Timestamp::from_millisecond(at).ok())
                .unwrap_or(Timestamp::UNIX_EPOCH)
                .to_string(),
            source: match event.source {
                Source::Client => "client",
                Source::Worker => "worker",
                // The host speaks for the CLI here. The official client takes these from nobody else.
                _ if event.kind.starts_with("control_") => "worker",
                _ => "host",
            },
            actor: event.actor.as_deref(),
            payload: &event.payload,
        }
    }
}

pub(super) fn durable(event: &LogEvent) -> Result<Bytes, serde_json::Error> {
    frame("client_event", Some(event.seq), &Envelope::of(event))
}

/// What the official client is told of a prompt, if the event says how far one is.
pub(super) fn delivery(event: &LogEvent) -> Option<Result<Bytes, serde_json::Error>> {
    #[derive(Deserialize)]
    struct Update {
        event_id: String,
        status: String,
    }
    #[derive(Serialize)]
    struct Delivery<'a> {
        event_id: &'a str,
        status: &'static str,
    }
    if event.kind != "delivery_update" {
        return None;
    }
    let update: Update = event.payload.decode().ok()?;
    let status = match update.status.as_str() {
        "received" => "DELIVERY_STATUS_RECEIVED",
        "processing" => "DELIVERY_STATUS_PROCESSING",
        "processed" => "DELIVERY_STATUS_PROCESSED",
        // The official client has no name for an interrupted prompt.
        _ => return None,
    };
    let delivery = Delivery {
        event_id: &update.event_id,
        status,
    };
    Some(frame("delivery_update", None, &delivery))
}

/// A frame that is not kept.
pub(super) fn ephemeral(payload: &str) -> Result<Bytes, serde_json::Error> {
    #[derive(Serialize)]
    struct Frame<'a> {
        payload: &'a serde_json::value::RawValue,
    }
    let payload: &serde_json::value::RawValue = serde_json::from_str(payload)?;
    frame("ephemeral_event", None, &Frame { payload })
}

/// What a session does, on the stream of all sessions.
pub(super) fn session(hint: &Hint) -> Result<Bytes, serde_json::Error> {
    frame("session", None, hint)
}

/// The replay has reached the event `seq`, which was the last one when the stream began. The stream of all sessions has no number.
pub(super) fn synced(seq: Option<u64>) -> Result<Bytes, serde_json::Error> {
    #[derive(Serialize)]
    struct Synced {
        #[serde(skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
    }
    frame("synced", None, &Synced { seq })
}

/// Events before `first` are no longer kept, and the client has not seen all of them.
pub(super) fn truncated(first: u64) -> Result<Bytes, serde_json::Error> {
    #[derive(Serialize)]
    struct Truncated {
        first_sequence_num: u64,
    }
    frame(
        "catch_up_truncated",
        None,
        &Truncated {
            first_sequence_num: first,
        },
    )
}

fn frame(event: &str, id: Option<u64>, data: &impl Serialize) -> Result<Bytes, serde_json::Error> {
    let mut text = String::new();
    if let Some(id) = id {
        let _ = writeln!(text, "id: {id}");
    }
    // In JSON a line break is only ever space between tokens; in an event it would end the line.
    let data = serde_json::to_string(data)?.replace(['\r', '\n'], " ");
    let _ = write!(text, "event: {event}\ndata: {data}\n\n");
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_payload_ends_its_event_early(text in any::<String>(), space in "[ \t\r\n]{0,8}") {
            let json = format!("{{{space}\"text\":{space}{}}}", serde_json::to_string(&text).unwrap());
            let bytes = ephemeral(&json).unwrap();
            let frame = std::str::from_utf8(&bytes).unwrap();
            let lines: Vec<_> = frame.split(['\r', '\n']).collect();
            prop_assert_eq!(lines.len(), 4);
            let data: serde_json::Value = serde_json::from_str(lines[1].strip_prefix("data: ").unwrap()).unwrap();
            prop_assert_eq!(data["payload"]["text"].as_str(), Some(&*text));
        }
    }
}
