//! A line of a stream of events.

use outrigger_protocol::{RawJson, walk};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error_report::ErrorReport;
use crate::event::Event;
use crate::outcome::Outcome;
use crate::streams::AmbientEvent;

/// A line of a stream of events, such as `outrigger run --json=events` writes: an event, the end of a turn, or an error.
///
/// As JSON it is the event itself; or an object of the `type` `turn_ended` with the `outcome`; or one of the `type` `error` with the
/// `error`.
///
/// ```
/// use outrigger::{Event, EventLine};
///
/// let line = EventLine::Event(Event::Text("Hello".to_owned()));
/// let json = serde_json::to_string(&line)?;
/// assert_eq!(json, r#"{"type":"text","text":"Hello"}"#);
/// let read: EventLine = serde_json::from_str(&json)?;
/// assert!(matches!(read, EventLine::Event(Event::Text(text)) if text == "Hello"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum EventLine {
    /// An event. One that this build cannot read is [`Event::Unknown`].
    Event(Event),
    /// A turn has ended.
    TurnEnded(Outcome),
    /// What ended the stream.
    Error(Box<ErrorReport>),
}

impl From<AmbientEvent> for EventLine {
    fn from(event: AmbientEvent) -> Self {
        match event {
            AmbientEvent::Event(event) => Self::Event(event),
            AmbientEvent::TurnEnded(outcome) => Self::TurnEnded(outcome),
        }
    }
}

/// The end of a turn.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TurnEndedForm {
    /// How the turn ended.
    outcome: Outcome,
}

/// What ended the stream.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ErrorForm {
    /// The error.
    error: ErrorReport,
}

const TURN_ENDED: &str = "turn_ended";
const ERROR: &str = "error";

#[derive(Serialize)]
struct Tagged<'a, T> {
    #[serde(rename = "type")]
    tag: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

impl Serialize for EventLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Event(event) => event.serialize(serializer),
            Self::TurnEnded(outcome) => {
                let body = &TurnEndedForm {
                    outcome: outcome.clone(),
                };
                Tagged {
                    tag: TURN_ENDED,
                    body,
                }
                .serialize(serializer)
            }
            Self::Error(error) => {
                let body = &ErrorForm {
                    error: ErrorReport::clone(error),
                };
                Tagged { tag: ERROR, body }.serialize(serializer)
            }
        }
    }
}

/// Fails only for what is no object with a `type`.
impl<'de> Deserialize<'de> for EventLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = RawJson::deserialize(deserializer)?;
        let read = match walk::string_at(json.get(), "type").as_deref() {
            Some(TURN_ENDED) => json
                .read()
                .map(|form: TurnEndedForm| Self::TurnEnded(form.outcome)),
            Some(ERROR) => json
                .read()
                .map(|form: ErrorForm| Self::Error(Box::new(form.error))),
            _ => return json.read().map(Self::Event).map_err(serde::de::Error::custom),
        };
        Ok(read.unwrap_or_else(|error| {
            let kind = walk::string_at(json.get(), "type").unwrap_or_default();
            Self::Event(Event::unreadable(&kind, json, error.to_string()))
        }))
    }
}

#[cfg(test)]
mod tests;
