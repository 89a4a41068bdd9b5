//! The MCP messages that the CLI sends to a server in the client, as far as the MCP specification has names for what is in them.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::FrameFinding;
use super::calls::written_again;
use crate::RawJson;

/// Judges a JSON-RPC message to a server.
pub(super) fn message(place: &str, given: &RawJson) -> Vec<FrameFinding> {
    let read = given.read::<Message>();
    let method = read.as_ref().ok().and_then(|message| message.method.clone());
    let params = read.as_ref().ok().and_then(|message| message.params.clone());
    let mut findings = written_again(
        place,
        given,
        read.and_then(|message| RawJson::encode(&message)),
        &[],
    );
    if let (Some(method), Some(params)) = (method, params) {
        let place = format!("{place}.params");
        let again = match method.as_str() {
            "initialize" => again::<Initialize>(&params),
            "tools/call" | "prompts/get" => again::<McpCall>(&params),
            "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
                again::<List>(&params)
            }
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => again::<Resource>(&params),
            "completion/complete" => again::<Complete>(&params),
            "logging/setLevel" => again::<SetLevel>(&params),
            "notifications/cancelled" => again::<Cancelled>(&params),
            "notifications/progress" => again::<Progress>(&params),
            "ping" | "notifications/initialized" | "notifications/roots/list_changed" => {
                again::<Nothing>(&params)
            }
            _ => {
                findings.push(FrameFinding::Unknown(format!(
                    "no type for the MCP method `{method}`"
                )));
                return findings;
            }
        };
        findings.extend(written_again(&place, &params, again, &[]));
    }
    findings
}

/// Judges the content of a tool's result; a text is none.
pub(super) fn content(place: &str, given: &RawJson) -> Vec<FrameFinding> {
    let blocks: Vec<RawJson> = given.read().unwrap_or_default();
    let place = format!("{place}[]");
    let blocks = blocks.iter();
    blocks
        .flat_map(|block| written_again(&place, block, again::<Block>(block), &[]))
        .collect()
}

fn again<T: DeserializeOwned + Serialize>(given: &RawJson) -> Result<RawJson, serde_json::Error> {
    RawJson::encode(&given.read::<T>()?)
}

#[derive(Deserialize, Serialize)]
struct Message {
    jsonrpc: String,
    id: Option<RawJson>,
    method: Option<String>,
    params: Option<RawJson>,
    /// Of what the server has requested, which is not looked at here.
    result: Option<RawJson>,
    error: Option<Failure>,
}

#[derive(Deserialize, Serialize)]
struct Failure {
    code: i64,
    message: String,
    data: Option<RawJson>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Initialize {
    protocol_version: String,
    /// An open set: experimental ones have any name.
    capabilities: RawJson,
    client_info: Implementation,
    _meta: Option<RawJson>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Implementation {
    name: String,
    version: String,
    title: Option<String>,
    description: Option<String>,
    website_url: Option<String>,
    icons: Option<Vec<Icon>>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Icon {
    src: String,
    mime_type: Option<String>,
    sizes: Option<Vec<String>>,
    theme: Option<String>,
}

#[derive(Deserialize, Serialize)]
struct McpCall {
    name: String,
    /// The tool's, or the prompt's.
    arguments: Option<RawJson>,
    task: Option<RawJson>,
    _meta: Option<RawJson>,
}

#[derive(Deserialize, Serialize)]
struct List {
    cursor: Option<String>,
    _meta: Option<RawJson>,
}

#[derive(Deserialize, Serialize)]
struct Resource {
    uri: String,
    _meta: Option<RawJson>,
}

#[derive(Deserialize, Serialize)]
struct Complete {
    #[serde(rename = "ref")]
    of: CompletionRef,
    argument: Argument,
    context: Option<RawJson>,
    _meta: Option<RawJson>,
}

#[derive(Deserialize, Serialize)]
struct CompletionRef {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    title: Option<String>,
    uri: Option<String>,
}

#[derive(Deserialize, Serialize)]
struct Argument {
    name: String,
    value: String,
}

#[derive(Deserialize, Serialize)]
struct SetLevel {
    level: String,
    _meta: Option<RawJson>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled {
    request_id: RawJson,
    reason: Option<String>,
    _meta: Option<RawJson>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    progress_token: RawJson,
    progress: RawJson,
    total: Option<RawJson>,
    message: Option<String>,
    _meta: Option<RawJson>,
}

#[derive(Deserialize, Serialize)]
struct Nothing {
    _meta: Option<RawJson>,
}

/// A block of any kind: all kinds together have these fields.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    data: Option<String>,
    mime_type: Option<String>,
    uri: Option<String>,
    name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    size: Option<u64>,
    icons: Option<Vec<Icon>>,
    resource: Option<Contents>,
    annotations: Option<Annotations>,
    _meta: Option<RawJson>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Contents {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
    annotations: Option<Annotations>,
    _meta: Option<RawJson>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Annotations {
    audience: Option<Vec<String>>,
    priority: Option<RawJson>,
    last_modified: Option<String>,
}
