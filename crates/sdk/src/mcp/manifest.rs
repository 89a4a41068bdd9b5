//! What servers would say to the CLI, told ahead: it spares the round trips, and tools are there in the first turn.

use std::collections::BTreeMap;
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_protocol::outbound::SdkMcpServerManifest;
use outrigger_protocol::shared::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::connection::ServerConnection;
use super::jsonrpc::RequestId;
use outrigger_protocol::TESTED_CLI_VERSIONS;

/// How long all servers together may take to say it; the CLI asks those itself that do not.
const WITHIN: Duration = Duration::from_millis(250);

/// The version of MCP that the CLI asks for.
pub(super) const PROTOCOL: &str = "2025-11-25";

/// Asks servers what the CLI would ask them, as it would. Returns those that go on from there.
pub(super) async fn capture(
    started: BTreeMap<String, ServerConnection>,
) -> (
    BTreeMap<String, SdkMcpServerManifest>,
    BTreeMap<String, ServerConnection>,
) {
    let until = Instant::now() + WITHIN;
    let mut asked = Vec::new();
    for (name, connection) in started {
        let initializing = ask(
            &connection,
            "outrigger-initialize",
            "initialize",
            Some(introduction()),
        );
        asked.push((name, connection, initializing));
    }
    let mut greeted = Vec::new();
    for (name, connection, initializing) in asked {
        let Some(result) = answer(initializing, until).await else {
            tracing::debug!(server = name, "an MCP server says nothing ahead");
            continue;
        };
        #[derive(Deserialize)]
        struct Greeting {
            #[serde(rename = "protocolVersion")]
            protocol_version: String,
            #[serde(default)]
            capabilities: BTreeMap<String, RawJson>,
        }
        let greeting = result.decode::<Greeting>();
        let Ok(greeting) = greeting.map_err(drop).and_then(|greeting| {
            let fits = greeting.protocol_version == PROTOCOL;
            fits.then_some(greeting).ok_or(())
        }) else {
            tracing::debug!(server = name, "an MCP server speaks another version of MCP");
            continue;
        };
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        if post(&connection, initialized).is_none() {
            continue;
        }
        let listing = greeting
            .capabilities
            .contains_key("tools")
            .then(|| ask(&connection, "outrigger-tools", "tools/list", None));
        greeted.push((name, connection, result, listing.flatten()));
    }
    let (mut manifests, mut connections) = (BTreeMap::new(), BTreeMap::new());
    for (name, connection, greeting, listing) in greeted {
        let tools = answer(listing, until).await;
        // A list that goes on elsewhere, or that is another one by now, is for the CLI to ask.
        let tools = tools.filter(|tools| is_whole(tools) && !connection.tools_changed());
        manifests.insert(name.clone(), SdkMcpServerManifest::new(greeting, tools));
        connections.insert(name, connection);
    }
    (manifests, connections)
}

/// What the CLI says of itself.
fn introduction() -> Value {
    json!({
        "protocolVersion": PROTOCOL,
        "capabilities": {},
        "clientInfo": {"name": "claude-code", "title": "Claude Code", "version": TESTED_CLI_VERSIONS.1},
    })
}

fn ask(
    connection: &ServerConnection,
    id: &'static str,
    method: &str,
    params: Option<Value>,
) -> Option<oneshot::Receiver<RawJson>> {
    let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
    if let Some(params) = params {
        message["params"] = params;
    }
    let message = RawJson::encode(&message).ok()?;
    connection.ask(RequestId::String(id.into()), message, None).ok()
}

fn post(connection: &ServerConnection, message: Value) -> Option<()> {
    connection.post(RawJson::encode(&message).ok()?, None).ok()
}

/// The result, unless there is an error or it comes too late.
async fn answer(asked: Option<oneshot::Receiver<RawJson>>, until: Instant) -> Option<JsonObject> {
    #[derive(Deserialize)]
    struct Listed {
        result: Option<JsonObject>,
    }
    let answer = timeout_at(until, asked?).await.ok()?.ok()?;
    answer.decode::<Listed>().ok()?.result
}

fn is_whole(tools: &JsonObject) -> bool {
    let fields: Result<BTreeMap<String, RawJson>, _> = tools.decode();
    fields.is_ok_and(|fields| fields.get("nextCursor").is_none_or(RawJson::is_null))
}
