//! The JSON schema of script files.

use serde_json::Value;

use super::Script;

/// The JSON schema of script files, for editors and other programs.
pub fn json_schema() -> Value {
    let mut schema = schemars::schema_for!(Script).to_value();
    schema["title"] = Value::from("Script for the simulated claude and for the scripted API");
    schema
}
