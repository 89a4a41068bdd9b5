//! The JSON schema of script files.

use serde_json::Value;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::AgentScript;
use crate::fault::{At, Effect};

/// How a fault is written: the effect with its parameters, and `at` beside them.
pub(super) struct FaultSchema;

impl JsonSchema for FaultSchema {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Fault".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let at = generator.subschema_for::<At>();
        let mut schema = Effect::json_schema(generator);
        let variants = schema.get_mut("oneOf").and_then(Value::as_array_mut);
        for variant in variants.into_iter().flatten() {
            variant["properties"]["at"] = at.clone().into();
        }
        schema
    }
}

/// The JSON schema of script files, for editors and other programs.
pub fn json_schema() -> Value {
    let mut schema = schemars::schema_for!(AgentScript).to_value();
    schema["title"] = Value::from("Script for a simulated claude");
    schema
}
