//! The OpenAPI document.

use axum::Json;
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{Access, ResponseBody, Route, routes};
use crate::problem::ProblemDocument;

pub(super) async fn serve() -> Json<Value> {
    Json(openapi())
}

/// The OpenAPI 3.1 document of what a front serves.
pub fn openapi() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for route in routes() {
        let operations = paths.entry(route.path).or_insert_with(|| json!({}));
        operations[route.method] = operation(&route, &mut generator);
    }
    let problem = generator.subschema_for::<ProblemDocument>();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Outrigger host",
            "version": "1",
            "description": "Sessions of the Claude Code CLI on a server. Server-sent events are described by the summary of their routes.",
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "responses": {
                "problem": {
                    "description": "A problem (RFC 9457)",
                    "content": {"application/problem+json": {"schema": problem}},
                },
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut parameters = Vec::new();
    if route.path.contains("{id}") {
        parameters.push(json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}));
    }
    for name in route.headers {
        parameters.push(json!({"name": name, "in": "header", "schema": {"type": "string"}}));
    }
    if let Some(query) = route.query {
        let schema = query(generator).to_value();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let mut parameter = json!({"name": name, "in": "query", "schema": schema});
            if let Some(description) = schema.get("description") {
                parameter["description"] = description.clone();
            }
            parameters.push(parameter);
        }
    }
    let mut answer = json!({"description": route.summary});
    match &route.answer {
        ResponseBody::Nothing => {}
        ResponseBody::Json(schema) => {
            answer["content"] = json!({"application/json": {"schema": schema(generator)}});
        }
        ResponseBody::Text(content_type) => {
            answer["content"] = json!({*content_type: {"schema": {"type": "string"}}});
        }
    }
    let mut operation = json!({
        "summary": route.summary,
        "responses": {route.status.as_str(): answer, "default": {"$ref": "#/components/responses/problem"}},
    });
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(body) = route.body {
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": body(generator)}}});
    }
    match route.access {
        Access::Open => {}
        Access::Handler => operation["security"] = json!([{"token": []}]),
        Access::Scope(scope) => operation["security"] = json!([{"token": [scope.as_str()]}]),
    }
    operation
}
