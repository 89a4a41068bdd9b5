//! A JSON object kept as text.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::RawJson;

/// A [`RawJson`] that is known to be an object.
///
/// Where the CLI insists on an object (changed tool input, JSON Schema, settings) the type says so, and a
/// malformed frame cannot be built.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonObject(RawJson);

/// The value was no JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAnObject {
    /// The value that was offered.
    pub value: RawJson,
}

impl fmt::Display for NotAnObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.value.get().as_bytes().first() {
            Some(b'[') => "a list",
            Some(b'"') => "a string",
            Some(b'n') => "null",
            Some(b't' | b'f') => "a boolean",
            _ => "a number",
        };
        write!(f, "expected a JSON object, got {kind}")
    }
}

impl std::error::Error for NotAnObject {}

impl JsonObject {
    /// The object without any key.
    pub fn empty() -> Self {
        Self(RawJson::from(serde_json::Value::Object(serde_json::Map::new())))
    }

    /// Encodes `value`, which must become an object.
    ///
    /// # Errors
    /// When `value` does not serialize, or not to an object.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        Self::try_from(RawJson::encode(value)?).map_err(serde::de::Error::custom)
    }

    /// The value as JSON that may be anything.
    pub fn as_raw(&self) -> &RawJson {
        &self.0
    }

    /// The value as JSON that may be anything.
    pub fn into_raw(self) -> RawJson {
        self.0
    }
}

impl Default for JsonObject {
    fn default() -> Self {
        Self::empty()
    }
}

impl std::ops::Deref for JsonObject {
    type Target = RawJson;
    fn deref(&self) -> &RawJson {
        &self.0
    }
}

impl fmt::Debug for JsonObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<RawJson> for JsonObject {
    type Error = NotAnObject;
    fn try_from(value: RawJson) -> Result<Self, NotAnObject> {
        // The text is valid JSON without leading blanks, so its first byte tells its kind.
        if value.get().trim_start().starts_with('{') {
            Ok(Self(value))
        } else {
            Err(NotAnObject { value })
        }
    }
}

impl TryFrom<serde_json::Value> for JsonObject {
    type Error = NotAnObject;
    fn try_from(value: serde_json::Value) -> Result<Self, NotAnObject> {
        Self::try_from(RawJson::from(value))
    }
}

impl From<serde_json::Map<String, serde_json::Value>> for JsonObject {
    fn from(map: serde_json::Map<String, serde_json::Value>) -> Self {
        Self(RawJson::from(serde_json::Value::Object(map)))
    }
}

impl From<JsonObject> for RawJson {
    fn from(object: JsonObject) -> Self {
        object.0
    }
}

impl Serialize for JsonObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(RawJson::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
