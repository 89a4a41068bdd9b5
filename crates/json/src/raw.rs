//! A JSON value kept as the text it came in.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON value that is kept as text and decoded on demand.
///
/// It is for payloads that belong to somebody else. It survives what [`Value`] does not: lone UTF-16 surrogates, numbers beyond
/// `f64`, and nesting deeper than serde_json's limit of 128.
///
/// Equality is equality of the text, not of the value.
#[derive(Clone)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// The JSON text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The JSON text, as serde_json has it.
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Decodes the value into `T`.
    ///
    /// # Errors
    /// When the text is not of `T`'s shape.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        Self::decode_raw(&self.0)
    }

    /// Like [`decode`](Self::decode), without a copy of the text: for those who borrow it from a whole line.
    ///
    /// # Errors
    /// When the text is not of `T`'s shape.
    pub fn decode_raw<T: DeserializeOwned>(raw: &RawValue) -> Result<T, serde_json::Error> {
        mending(raw.get(), |text| serde_json::from_str(text))
    }

    /// Decodes the value into a [`Value`].
    ///
    /// # Errors
    /// When it is nested too deeply for [`Value`].
    pub fn to_value(&self) -> Result<Value, serde_json::Error> {
        self.decode()
    }

    /// Makes one from text that must be a single JSON value.
    ///
    /// # Errors
    /// When `text` is not one JSON value.
    pub fn from_text(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self)
    }

    /// Encodes `value`.
    ///
    /// # Errors
    /// When `value` has a map key that is not a string, or its `Serialize` fails.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// The JSON `null`.
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// Whether this is the JSON `null`.
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }
}

/// Decodes the text, without its lone surrogates if it can't be decoded as it is.
pub(crate) fn mending<T>(
    text: &str,
    decode: fn(&str) -> Result<T, serde_json::Error>,
) -> Result<T, serde_json::Error> {
    decode(text).or_else(|error| match crate::repair::lone_surrogates(text) {
        Some(mended) => decode(&mended),
        None => Err(error),
    })
}

impl Default for RawJson {
    fn default() -> Self {
        Self::null()
    }
}

impl From<Value> for RawJson {
    fn from(value: Value) -> Self {
        // A `Value` has string keys only and its text is JSON by construction.
        Self(RawValue::from_string(value.to_string()).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw)
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson {}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}
