//! JSON schemas of what tools take and give.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The schema of what is read as `T`.
pub(super) fn read<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<T>()
}

/// The schema of what `T` is written as.
pub(super) fn written<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>()
}

/// A schema as MCP has it: an object of type `object`.
pub(super) fn object(schema: Value) -> Result<Arc<JsonObject>, String> {
    let Value::Object(mut schema) = schema else {
        return Err(format!("is {schema} instead of a JSON object"));
    };
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        Some(kind) => return Err(format!("is of type {kind} instead of \"object\"")),
        None => return Err("has no type, which has to be \"object\"".to_owned()),
    }
    // Which draft it follows, and the name of a Rust type, are nothing for the model.
    schema.remove("$schema");
    schema.remove("title");
    Ok(Arc::new(schema))
}
