//! Ids of control requests.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::RawJson;

/// The id of a control request, as its sender chose it.
///
/// The CLI chooses UUIDs and echoes whatever we choose, numbers included. An id is written back exactly as it was read;
/// `7` and `"7"` are different ids.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestId(Id);

#[derive(Clone, PartialEq, Eq)]
enum Id {
    /// Shared, since many hold it while a request is open.
    Text(Arc<str>),
    /// A number, or whatever else somebody took for an id.
    Json(RawJson),
}

impl RequestId {
    /// The text of the id; of a number, its digits.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Id::Text(text) => text,
            Id::Json(raw) => raw.get(),
        }
    }
}

impl From<&str> for RequestId {
    fn from(id: &str) -> Self {
        Self(Id::Text(id.into()))
    }
}

impl From<String> for RequestId {
    fn from(id: String) -> Self {
        Self(Id::Text(id.into()))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Quotes strings, so that `7` and `"7"` do not look alike.
impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Id::Text(text) => write!(f, "{text:?}"),
            Id::Json(raw) => f.write_str(raw.get()),
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Id::Text(text) => serializer.serialize_str(text),
            Id::Json(raw) => raw.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawJson::deserialize(deserializer)?;
        if raw.get().starts_with('"') {
            return raw
                .read::<String>()
                .map(Self::from)
                .map_err(serde::de::Error::custom);
        }
        Ok(Self(Id::Json(raw)))
    }
}
