//! What clients send.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use outrigger_json::RawJson;
use serde::{Deserialize, Serialize};

use super::{SessionId, Shared};
use crate::host::{Accepted, Effect, Host, Payload};
use crate::limits::Limits;
use crate::problem::{Problem, Refusal};

/// What a client sends, in one body.
#[derive(Deserialize)]
struct Sent {
    session_id: Option<String>,
    events: Vec<SentEvent>,
}

#[derive(Deserialize)]
struct SentEvent {
    payload: RawJson,
}

#[derive(Serialize)]
struct Answer<'a> {
    events: Vec<AnswerEvent<'a>>,
}

#[derive(Serialize)]
struct AnswerEvent<'a> {
    event_id: &'a str,
    sequence_num: u64,
    effect: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<&'a str>,
}

pub(super) async fn send<H: Host>(
    State(shared): State<Arc<Shared<H>>>,
    SessionId(session): SessionId,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    // Who has no token does not get a body read.
    shared.authorize(&headers, [])?;
    // A page of a foreign site can send other types without being asked first.
    let json = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(is_json);
    if !json {
        return Err(Problem::InvalidRequest.because("the body has to be `application/json`"));
    }
    let body = read(body, &shared.limits).await?;
    let payloads = payloads(&session, &body)?;
    let token = shared.authorize(&headers, payloads.iter().map(|payload| payload.kind().scope()))?;
    let sent = payloads.len();
    let accepted = shared.host.accept(&session, &token.actor(), payloads).await?;
    if accepted.len() != sent {
        tracing::error!(
            sent,
            accepted = accepted.len(),
            "the host did not say what became of each payload"
        );
        return Err(Problem::HostFailed.into());
    }
    let events = accepted.iter().map(AnswerEvent::of).collect();
    Ok((StatusCode::ACCEPTED, axum::Json(Answer { events })).into_response())
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

async fn read(body: Body, limits: &Limits) -> Result<Bytes, Refusal> {
    let collected = Limited::new(body, limits.body_bytes).collect();
    match tokio::time::timeout(limits.body_patience, collected).await {
        Err(_) => Err(Problem::BodyTimeout.into()),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(Problem::BodyTooLarge.because(format!("a body has at most {} bytes", limits.body_bytes)))
        }
        Ok(Err(error)) => Err(Problem::InvalidRequest.because(error.to_string())),
    }
}

fn payloads(session: &str, body: &[u8]) -> Result<Vec<Payload>, Refusal> {
    let sent: Sent =
        serde_json::from_slice(body).map_err(|error| Problem::InvalidRequest.because(error.to_string()))?;
    if sent.session_id.is_some_and(|named| named != session) {
        return Err(Problem::InvalidRequest.because("`session_id` is not the session in the path"));
    }
    if sent.events.is_empty() {
        return Err(Problem::InvalidRequest.because("`events` is empty"));
    }
    let payloads = sent.events.into_iter().enumerate().map(|(index, event)| {
        Payload::read(event.payload)
            .map_err(|error| Problem::InvalidRequest.because(format!("`events[{index}]`: {error}")))
    });
    payloads.collect()
}

impl<'a> AnswerEvent<'a> {
    fn of(accepted: &'a Accepted) -> Self {
        let (effect, decided_by) = match &accepted.effect {
            Effect::Stored => ("stored", None),
            Effect::Repeated => ("repeated", None),
            Effect::Decided { by } => ("decided", by.as_deref()),
        };
        Self {
            event_id: &accepted.event_id,
            sequence_num: accepted.seq,
            effect,
            decided_by,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_payload_keeps_its_bytes() {
        let body = br#"{"session_id":"s","events":[{"payload": {"type":"user", "uuid":"u","n":1e400,"t":"\ud83d"}}]}"#;
        let payloads = payloads("s", body).unwrap();
        assert_eq!(
            payloads[0].json().get(),
            r#"{"type":"user", "uuid":"u","n":1e400,"t":"\ud83d"}"#
        );
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_rejected() {
        for payload in [
            r#"{"type":"user","uuid":"u","type":"control_response"}"#,
            r#"{"type":"user","uuid":"u","uuid":"v"}"#,
            r#"{"type":"user","uuid":""}"#,
            r#"{"type":"control_response","request_id":"r","response":{}}"#,
            r#"{"type":"assistant","uuid":"u"}"#,
            r#"["user"]"#,
            "null",
        ] {
            let body = format!(r#"{{"events":[{{"payload":{payload}}}]}}"#);
            assert!(payloads("s", body.as_bytes()).is_err(), "{payload}");
        }
        let other = br#"{"session_id":"t","events":[{"payload":{"type":"user","uuid":"u"}}]}"#;
        assert!(payloads("s", other).is_err());
        assert!(payloads("s", br#"{"events":[]}"#).is_err());
    }

    proptest! {
        #[test]
        fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..256), inner in "\\PC{0,64}") {
            let _ = payloads("s", &body);
            let _ = payloads("s", format!(r#"{{"events":[{{"payload":{inner}}}]}}"#).as_bytes());
        }
    }
}
