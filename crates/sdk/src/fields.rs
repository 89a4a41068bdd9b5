//! Decodes single top-level fields of a frame.

use std::collections::HashMap;

use outrigger_protocol::{Frame, RawJson};
use serde::de::DeserializeOwned;

/// The top-level fields of a frame, each still undecoded.
pub(crate) struct Fields(HashMap<String, RawJson>);

impl Fields {
    /// Whether nothing could be read.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn of(frame: &Frame) -> Self {
        Self(serde_json::from_str(&frame.text()).unwrap_or_default())
    }

    /// The fields of an object inside of a frame.
    pub(crate) fn of_object(value: &RawJson) -> Self {
        Self(value.decode().unwrap_or_default())
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.0.get(key)?.decode().ok()
    }
}
