//! What clients send.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use outrigger::protocol::RawJson;
use outrigger_host::{Accepted, Effect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::allows;
use crate::extract::{Body, Caller, InSession};
use crate::front_state::FrontState;
use crate::problem::{Problem, Refusal};
use crate::token::Scope;

/// What a client sends, in one body. All of it is taken, or nothing.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SentEvents {
    /// The session in the path, if it is there.
    session_id: Option<String>,
    #[schemars(length(min = 1))]
    pub(super) events: Vec<SentEvent>,
}

/// A frame.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SentEvent {
    /// A `user` frame with a `uuid`, a `control_request`, a `control_cancel_request`, or a `control_response`.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    payload: RawJson,
}

/// What became of each frame, in the order of the body.
#[derive(Serialize, JsonSchema)]
pub(super) struct AcceptedAll {
    events: Vec<AcceptedOne>,
}

/// What became of a frame.
#[derive(Serialize, JsonSchema)]
pub(super) struct AcceptedOne {
    event_id: Uuid,
    sequence_num: u64,
    /// `stored`, `repeated`, or `decided` if somebody else decided first.
    effect: &'static str,
    /// Who decided first.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
}

pub(super) async fn send(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
    InSession(session): InSession,
    Body(sent): Body<SentEvents>,
) -> Result<(StatusCode, Json<AcceptedAll>), Refusal> {
    let frames = frames(session.as_str(), sent)?;
    for (scope, _) in &frames {
        allows(&token, *scope)?;
    }
    let frames = frames.into_iter().map(|(_, frame)| frame).collect();
    let accepted = shared.host.send_all(&session, frames, token.label).await?;
    let events = accepted.into_iter().map(AcceptedOne::from).collect();
    Ok((StatusCode::ACCEPTED, Json(AcceptedAll { events })))
}

/// The frames, and the scope that each needs.
pub(super) fn frames(session: &str, sent: SentEvents) -> Result<Vec<(Scope, RawJson)>, Refusal> {
    if sent.session_id.is_some_and(|named| named != session) {
        return Err(Problem::InvalidRequest.because("`session_id` is not the session in the path"));
    }
    if sent.events.is_empty() {
        return Err(Problem::InvalidRequest.because("`events` is empty"));
    }
    let frames = sent.events.into_iter().enumerate().map(|(index, event)| {
        let invalid = |error: &str| Problem::InvalidRequest.because(format!("`events[{index}]`: {error}"));
        match scope(&event.payload) {
            Ok(Some(scope)) => Ok((scope, event.payload)),
            Ok(None) => Err(invalid(
                "the prompt has no `uuid`, by which a repetition would be known",
            )),
            Err(error) => Err(invalid(&error.to_string())),
        }
    });
    frames.collect()
}

/// The scope that a frame needs. `None` for a prompt without an id.
fn scope(frame: &RawJson) -> Result<Option<Scope>, serde_json::Error> {
    #[derive(Deserialize)]
    struct FrameHead {
        r#type: String,
        uuid: Option<Uuid>,
    }
    let head: FrameHead = frame.decode()?;
    Ok(match head.r#type.as_str() {
        "control_response" => Some(Scope::Approve),
        "user" if head.uuid.is_none() => None,
        _ => Some(Scope::Send),
    })
}

impl From<Accepted> for AcceptedOne {
    fn from(accepted: Accepted) -> Self {
        let (effect, decided_by) = match accepted.effect {
            Effect::Stored => ("stored", None),
            Effect::Decided { by } => ("decided", by),
            _ => ("repeated", None),
        };
        Self {
            event_id: accepted.event_id,
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

    fn read(body: &[u8]) -> Option<Vec<(Scope, RawJson)>> {
        frames("s", serde_json::from_slice(body).ok()?).ok()
    }

    const ID: &str = "11111111-1111-4111-8111-111111111111";

    #[test]
    fn a_payload_keeps_its_bytes() {
        let frame = format!(r#"{{"type":"user", "uuid":"{ID}","n":1e400,"t":"\ud83d"}}"#);
        let body = format!(r#"{{"session_id":"s","events":[{{"payload": {frame}}}]}}"#);
        assert_eq!(read(body.as_bytes()).unwrap()[0].1.get(), frame);
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_rejected() {
        for payload in [
            format!(r#"{{"type":"user","uuid":"{ID}","type":"control_response"}}"#),
            format!(r#"{{"type":"user","uuid":"{ID}","uuid":"{ID}"}}"#),
            r#"{"type":"user","uuid":""}"#.to_owned(),
            r#"{"type":"user"}"#.to_owned(),
            r#"["user"]"#.to_owned(),
            "null".to_owned(),
        ] {
            let body = format!(r#"{{"events":[{{"payload":{payload}}}]}}"#);
            assert!(read(body.as_bytes()).is_none(), "{payload}");
        }
        let other =
            format!(r#"{{"session_id":"t","events":[{{"payload":{{"type":"user","uuid":"{ID}"}}}}]}}"#);
        assert!(read(other.as_bytes()).is_none());
        assert!(read(br#"{"events":[]}"#).is_none());
    }

    proptest! {
        #[test]
        fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..256), inner in "\\PC{0,64}") {
            let _ = read(&body);
            let _ = read(format!(r#"{{"events":[{{"payload":{inner}}}]}}"#).as_bytes());
        }
    }
}
