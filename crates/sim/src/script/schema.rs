//! The JSON schema of script files.

use std::sync::LazyLock;

use serde_json::Value;

use super::Script;
use super::short::without_null;

pub(super) static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = schemars::schema_for!(Script).to_value();
    without_null(&mut schema);
    schema["title"] = Value::from("Script for the simulated claude and for the scripted API");
    schema
});

/// The JSON schema of script files, for editors and other programs.
pub fn json_schema() -> Value {
    SCHEMA.clone()
}
