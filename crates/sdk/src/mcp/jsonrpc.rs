//! As much of JSON-RPC as it takes to hand messages on.

use std::fmt;

use outrigger_protocol::RawJson;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

/// Codes of errors.
pub(super) const INVALID_REQUEST: i32 = -32600;
pub(super) const INTERNAL_ERROR: i32 = -32603;
/// JSON-RPC has no code for it; language servers use this one.
pub(super) const CANCELLED: i32 = -32800;

/// The id of a request: a string or a whole number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub(super) enum RequestId {
    Number(i64),
    String(String),
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::String(text) => f.write_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Id;

        impl Visitor<'_> for Id {
            type Value = RequestId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a whole number")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<RequestId, E> {
                Ok(RequestId::Number(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<RequestId, E> {
                i64::try_from(number)
                    .map(RequestId::Number)
                    .map_err(|_| E::custom("the number is too large"))
            }

            /// `1.0` and `1e2` are whole numbers, too.
            fn visit_f64<E: Error>(self, number: f64) -> Result<RequestId, E> {
                // Beyond this, floating point leaves whole numbers out.
                let is_exact = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
                match is_exact {
                    true => Ok(RequestId::Number(number as i64)),
                    false => Err(E::custom("the number is not a whole one")),
                }
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<RequestId, E> {
                Ok(RequestId::String(text.to_owned()))
            }
        }

        deserializer.deserialize_any(Id)
    }
}

/// The head of a message.
#[derive(Debug, Default, Deserialize)]
pub(super) struct MessageHead {
    #[serde(default)]
    pub(super) method: Option<String>,
    #[serde(default)]
    id: Option<RawJson>,
}

impl MessageHead {
    /// The id, if it is one: a string or a whole number.
    pub(super) fn id(&self) -> Option<RequestId> {
        self.id.as_ref()?.decode().ok()
    }

    /// Whether there is anything as an id, be it one or not.
    pub(super) fn has_id(&self) -> bool {
        self.id.as_ref().is_some_and(|id| !id.is_null())
    }
}

#[derive(Serialize)]
struct ErrorResponse<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    error: ErrorObject<'a>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    code: i32,
    message: &'a str,
}

/// The reply to a request that failed. Without an id where the request's could not be read.
pub(super) fn failure(id: Option<&RequestId>, code: i32, message: &str) -> RawJson {
    let failure = ErrorResponse {
        jsonrpc: "2.0",
        id,
        error: ErrorObject { code, message },
    };
    // Numbers and texts can always be encoded.
    RawJson::encode(&failure).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_string_or_a_whole_number() {
        let id = |text: &str| RawJson::from_text(text).unwrap().decode::<RequestId>().ok();
        assert_eq!(id("7"), Some(RequestId::Number(7)));
        assert_eq!(id("-7"), Some(RequestId::Number(-7)));
        assert_eq!(id("1.0"), Some(RequestId::Number(1)));
        assert_eq!(id(r#""a\n""#), Some(RequestId::String("a\n".to_owned())));
        for other in [
            "1.5",
            "1e300",
            "18446744073709551615",
            "null",
            "true",
            "[1]",
            "{}",
        ] {
            assert_eq!(id(other), None, "{other}");
        }
    }

    #[test]
    fn a_failure_has_the_id_that_was_asked_with() {
        let of = |id: Option<RequestId>| failure(id.as_ref(), CANCELLED, "\"no\"").get().to_owned();
        assert_eq!(
            of(Some(RequestId::String("a".to_owned()))),
            r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32800,"message":"\"no\""}}"#
        );
        assert_eq!(
            of(None),
            r#"{"jsonrpc":"2.0","error":{"code":-32800,"message":"\"no\""}}"#
        );
    }
}
