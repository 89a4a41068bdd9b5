//! Has the person at the terminal answer MCP servers: a form by its fields, an address by opening it.

mod field;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use outrigger::protocol::inbound::ElicitationMode;
use outrigger::protocol::shared::JsonObject;
use outrigger::{ElicitationRequest, ElicitationResult};
use serde_json::Value;

use self::field::{Field, FieldInput};
use super::{Attention, Person};

/// Says no in the middle of a form.
const DECLINE: &str = ".";

/// Asks, and declines whatever can't be asked.
pub(super) async fn answer(person: &Person, request: &ElicitationRequest) -> ElicitationResult {
    let Some(attention) = person.attention().await else {
        return ElicitationResult::Decline;
    };
    let text = described(request);
    let result = if request.mode == Some(ElicitationMode::Url) {
        visit(&attention, text, request.url.as_deref()).await
    } else {
        match fields(request) {
            Ok(fields) => fill_in(&attention, text, &fields).await,
            Err(why) => {
                attention.show(&format!("{text}(declined: {why})\n"));
                ElicitationResult::Decline
            }
        }
    };
    attention.done();
    result
}

fn described(request: &ElicitationRequest) -> String {
    let name = request
        .display_name
        .as_deref()
        .unwrap_or(&request.mcp_server_name);
    let mut text = format!("\nThe MCP server {name} asks");
    match &request.title {
        Some(title) => {
            let _ = writeln!(text, ": {title}");
        }
        None => text.push_str(":\n"),
    }
    let _ = writeln!(text, "  {}", request.message.trim().replace('\n', "\n  "));
    text
}

/// Has an address opened. Never by this program: whom to trust is for the person to see.
async fn visit(attention: &Attention<'_>, mut text: String, url: Option<&str>) -> ElicitationResult {
    let Some(url) = url else {
        attention.show(&format!("{text}(declined: it names no address)\n"));
        return ElicitationResult::Decline;
    };
    let _ = writeln!(text, "  {url}");
    loop {
        text.push_str("Open it, then: [d]one, [n]o: ");
        let answer = attention.ask(&text).await;
        match answer.as_deref().map(str::to_ascii_lowercase).as_deref() {
            Some("d" | "done") => return ElicitationResult::Accept { content: None },
            Some("n" | "no") => return ElicitationResult::Decline,
            None => return ElicitationResult::Cancel,
            Some(_) => text.clear(),
        }
    }
}

async fn fill_in(attention: &Attention<'_>, mut text: String, fields: &[Field]) -> ElicitationResult {
    let mut content = BTreeMap::new();
    if fields.is_empty() {
        text.push_str("Agree? [y]es, [n]o: ");
        let answer = attention.ask(&text).await;
        return match answer.as_deref().map(str::to_ascii_lowercase).as_deref() {
            Some("y" | "yes") => accepted(attention, &content),
            Some(_) => ElicitationResult::Decline,
            None => ElicitationResult::Cancel,
        };
    }
    let _ = writeln!(text, "  (a single dot declines)");
    for field in fields {
        text.push_str(&field.prompt());
        loop {
            let Some(line) = attention.ask(&text).await else {
                return ElicitationResult::Cancel;
            };
            if line == DECLINE {
                return ElicitationResult::Decline;
            }
            match field.read(&line) {
                FieldInput::Value(value) => {
                    content.insert(field.name.clone(), value);
                }
                FieldInput::Nothing => {}
                FieldInput::Wrong(why) => {
                    text = format!("  {why}\n{}", field.prompt());
                    continue;
                }
            }
            break;
        }
        text.clear();
    }
    accepted(attention, &content)
}

fn accepted(attention: &Attention<'_>, content: &BTreeMap<String, Value>) -> ElicitationResult {
    match JsonObject::encode(content) {
        Ok(content) => ElicitationResult::Accept {
            content: Some(content),
        },
        Err(error) => {
            attention.show(&format!("(declined: the answer can't be written: {error})\n"));
            ElicitationResult::Decline
        }
    }
}

/// The fields in the order in which to ask for them.
fn fields(request: &ElicitationRequest) -> Result<Vec<Field>, String> {
    let Some(schema) = &request.requested_schema else {
        return Ok(Vec::new());
    };
    let schema = schema
        .to_value()
        .map_err(|error| format!("its form can't be read: {error}"))?;
    let order = request.property_order.as_deref().unwrap_or_default();
    Field::all(&schema, order)
}
