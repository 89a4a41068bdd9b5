//! Fields of frames that are there only sometimes, and fields of one frame that come into another.

use serde::Serialize;
use serde_json::{Value, json};

pub(crate) trait JsonFields {
    /// Sets a field, unless there is nothing to set.
    fn put(&mut self, key: &str, value: Option<impl Serialize>);

    /// Adds the fields of another object.
    fn merge(&mut self, more: Value);
}

impl JsonFields for Value {
    fn put(&mut self, key: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self[key] = json!(value);
        }
    }

    fn merge(&mut self, more: Value) {
        if let (Some(fields), Value::Object(more)) = (self.as_object_mut(), more) {
            fields.extend(more);
        }
    }
}
