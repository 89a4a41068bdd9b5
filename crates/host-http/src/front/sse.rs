//! Events as the official client reads them.

use std::fmt::Write as _;

use bytes::Bytes;
use jiff::Timestamp;
use outrigger_json::RawJson;
use serde::Serialize;

use crate::host::{DeliveryStatus, Ephemeral, Event, Source};

/// A durable event, in streams and in pages.
#[derive(Debug, Serialize)]
pub(super) struct Envelope<'a> {
    event_id: &'a str,
    sequence_num: u64,
    created_at: String,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'a str>,
    payload: &'a RawJson,
}

impl<'a> Envelope<'a> {
    pub(super) fn of(event: &'a Event) -> Self {
        Self {
            event_id: &event.id,
            sequence_num: event.seq,
            created_at: Timestamp::try_from(event.at)
                .unwrap_or(Timestamp::UNIX_EPOCH)
                .to_string(),
            source: match event.source {
                Source::Client => "client",
                Source::Worker => "worker",
                Source::Host => "host",
            },
            actor: event.actor.as_deref(),
            payload: &event.payload,
        }
    }
}

pub(super) fn durable(event: &Event) -> Result<Bytes, serde_json::Error> {
    frame("client_event", Some(event.seq), &Envelope::of(event))
}

pub(super) fn ephemeral(event: &Ephemeral) -> Result<Bytes, serde_json::Error> {
    #[derive(Serialize)]
    struct Frame<'a> {
        payload: &'a RawJson,
    }
    #[derive(Serialize)]
    struct Delivery<'a> {
        event_id: &'a str,
        status: &'static str,
    }
    match event {
        Ephemeral::Frame(payload) => frame("ephemeral_event", None, &Frame { payload }),
        Ephemeral::Delivery { event_id, status } => {
            let status = match status {
                DeliveryStatus::Received => "DELIVERY_STATUS_RECEIVED",
                DeliveryStatus::Processing => "DELIVERY_STATUS_PROCESSING",
                DeliveryStatus::Processed => "DELIVERY_STATUS_PROCESSED",
            };
            frame("delivery_update", None, &Delivery { event_id, status })
        }
    }
}

/// The replay has reached the event `seq`, which was the last one when the stream began.
pub(super) fn synced(seq: u64) -> Result<Bytes, serde_json::Error> {
    #[derive(Serialize)]
    struct Synced {
        seq: u64,
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
    use std::time::{Duration, UNIX_EPOCH};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_payload_is_emitted_as_it_came() {
        let payload = RawJson::from_text(r#"{"z":1e400, "a":"\ud800", "n":0.00014000000000000001}"#).unwrap();
        let event = Event::new(
            7,
            "e",
            UNIX_EPOCH + Duration::from_secs(1),
            Source::Worker,
            payload.clone(),
        );
        let text = durable(&event).unwrap();
        let expected = format!(
            "id: 7\nevent: client_event\ndata: {{\"event_id\":\"e\",\"sequence_num\":7,\"created_at\":\"1970-01-01T00:00:01Z\",\
             \"source\":\"worker\",\"payload\":{payload}}}\n\n"
        );
        assert_eq!(std::str::from_utf8(&text).unwrap(), expected);
    }

    proptest! {
        #[test]
        fn no_payload_ends_its_event_early(text in any::<String>(), space in "[ \t\r\n]{0,8}") {
            let json = format!("{{{space}\"text\":{space}{}}}", serde_json::to_string(&text).unwrap());
            let event = Ephemeral::Frame(RawJson::from_text(json).unwrap());
            let bytes = ephemeral(&event).unwrap();
            let frame = std::str::from_utf8(&bytes).unwrap();
            let lines: Vec<_> = frame.split(['\r', '\n']).collect();
            prop_assert_eq!(lines.len(), 4);
            let data: serde_json::Value = serde_json::from_str(lines[1].strip_prefix("data: ").unwrap()).unwrap();
            prop_assert_eq!(data["payload"]["text"].as_str(), Some(&*text));
        }
    }
}
