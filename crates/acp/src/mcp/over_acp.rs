//! MCP servers in the editor.
//!
//! The editor serves them over its ACP connection: each request is an `mcp/message` without a session, as in MCP since 2026-07-28. The
//! CLI speaks the MCP before that, with a handshake, over the channel for servers in the SDK's program. This module translates: it makes
//! the handshake from `server/discover`, subscribes to changes of lists, and when a server needs input before it can answer, it asks the
//! editor and repeats the request.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use outrigger::mcp::{RawConnection, RawSender, SdkMcpServer};
use outrigger::protocol::RawJson;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::routes::Routes;
use crate::ask::{Filled, Form, Forms};
use crate::client::Client;

/// The revision of MCP on the editor's connection.
const REVISION: &str = "2026-07-28";

/// The time limit of `server/discover`. The editor runs already; nothing has to start.
const DISCOVERY: Duration = Duration::from_secs(10);

const OPEN: usize = 256;

/// How often a server may ask for input before it answers.
const ROUNDS: usize = 10;

/// Error codes of JSON-RPC.
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;

/// Makes the servers of a session. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ServerMaker {
    editor: Editor,
    /// The servers that were made: a server that stays must be the same object.
    made: Arc<Mutex<HashMap<(String, acp::McpServerAcpId), SdkMcpServer>>>,
}

impl ServerMaker {
    pub(crate) fn new(client: Client, routes: Routes, forms: Forms, roots: Vec<PathBuf>) -> Self {
        Self {
            editor: Editor {
                client,
                routes,
                forms,
                roots: roots.into(),
            },
            made: Arc::default(),
        }
    }

    /// The SDK's server for a server in the editor.
    pub(super) fn server(&self, name: &str, id: &acp::McpServerAcpId) -> SdkMcpServer {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let server = made.entry((name.to_owned(), id.clone())).or_insert_with(|| {
            let peer = Peer {
                editor: self.editor.clone(),
                id: id.clone(),
                name: Arc::from(name),
            };
            SdkMcpServer::from_raw(move |connection| serve(peer.clone(), connection))
        });
        server.clone()
    }
}

/// What the servers need of the editor.
#[derive(Clone)]
struct Editor {
    client: Client,
    routes: Routes,
    forms: Forms,
    roots: Arc<[PathBuf]>,
}

impl Editor {
    /// The capabilities for input requests.
    fn capabilities(&self) -> Value {
        let mut elicitation = Map::new();
        if self.client.has_forms() {
            elicitation.insert("form".to_owned(), json!({}));
        }
        if self.client.opens_urls() {
            elicitation.insert("url".to_owned(), json!({}));
        }
        let mut capabilities = json!({ "roots": {} });
        if !elicitation.is_empty() {
            capabilities["elicitation"] = Value::Object(elicitation);
        }
        capabilities
    }
}

/// A server in the editor.
#[derive(Clone)]
struct Peer {
    editor: Editor,
    id: acp::McpServerAcpId,
    name: Arc<str>,
}

/// A JSON-RPC message of the CLI.
#[derive(Deserialize)]
struct Message {
    /// A string or an integer.
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Value>,
}

#[derive(Debug)]
struct OverAcpFailure(Value);

impl OverAcpFailure {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self(json!({ "code": code, "message": message.into() }))
    }
}

type McpResult = Result<Value, OverAcpFailure>;

/// The state of a connection.
struct McpLink {
    peer: Peer,
    sender: RawSender,
    initialize_data: Mutex<InitializeData>,
}

/// The CLI's and the server's `initialize` data.
#[derive(Default)]
struct InitializeData {
    client: Option<Value>,
    /// The log level that the CLI set.
    log_level: Option<Value>,
    capabilities: Value,
}

/// Serves one connection of the CLI. At its end, open requests are cancelled.
async fn serve(peer: Peer, mut connection: RawConnection) {
    let link = Arc::new(McpLink {
        peer,
        sender: connection.sender(),
        initialize_data: Mutex::default(),
    });
    let mut open: HashMap<String, CancellationToken> = HashMap::new();
    let mut work: FuturesUnordered<BoxFuture<'static, Option<String>>> = FuturesUnordered::new();
    loop {
        let got = tokio::select! {
            got = connection.next() => got,
            Some(done) = work.next(), if !work.is_empty() => {
                done.and_then(|id| open.remove(&id));
                continue;
            }
        };
        let Some(got) = got else { return };
        let message = match got.message.decode::<Message>() {
            Ok(message) => message,
            Err(error) => {
                link.not_read(&got.message, &error.to_string()).await;
                continue;
            }
        };
        match (message.method.as_deref(), message.id) {
            (Some("notifications/cancelled"), None) => {
                let of = message.params.as_ref().and_then(|params| params.get("requestId"));
                if let Some(cancelled) = of.and_then(|id| open.remove(&id.to_string())) {
                    cancelled.cancel();
                }
            }
            (Some("notifications/initialized"), None) => {
                if let Some(listening) = Arc::clone(&link).listen() {
                    work.push(Box::pin(async move {
                        listening.await;
                        None
                    }));
                }
            }
            (Some(method), Some(id)) => {
                if open.len() >= OPEN {
                    let busy = format!("{OPEN} requests are open at this server; wait for some of them");
                    link.answer(&id, Err(OverAcpFailure::new(INVALID_REQUEST, busy)))
                        .await;
                    continue;
                }
                let key = id.to_string();
                let cancelled = CancellationToken::new();
                open.insert(key.clone(), cancelled.clone());
                let (link, method, params) = (Arc::clone(&link), method.to_owned(), message.params);
                let withdrawn = got.context.map(|context| context.cancelled().clone());
                work.push(Box::pin(async move {
                    let gone = async {
                        match &withdrawn {
                            Some(withdrawn) => tokio::select! {
                                () = withdrawn.cancelled() => {}
                                () = cancelled.cancelled() => {}
                            },
                            None => cancelled.cancelled().await,
                        }
                    };
                    // The drop cancels the request to the editor; the SDK answers the CLI.
                    tokio::select! {
                        answer = link.request(&method, params) => link.answer(&id, answer).await,
                        () = gone => {}
                    }
                    Some(key)
                }));
            }
            // A server of this revision gets no other notifications, and sends no requests of its own.
            (method, _) => {
                tracing::debug!(server = %link.peer.name, method, "not for an MCP server of the editor")
            }
        }
    }
}

impl McpLink {
    fn initialize_data(&self) -> std::sync::MutexGuard<'_, InitializeData> {
        self.initialize_data
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message to the CLI.
    async fn send(&self, message: &Value) {
        let sent = match RawJson::encode(message) {
            Ok(message) => self.sender.send(message).await,
            Err(error) => Err(std::io::Error::other(error)),
        };
        if let Err(error) = sent {
            tracing::warn!(server = %self.peer.name, %error, "a message of an MCP server did not reach Claude Code");
        }
    }

    async fn answer(&self, id: &Value, answer: McpResult) {
        let mut message = json!({ "jsonrpc": "2.0", "id": id });
        match answer {
            Ok(result) => message["result"] = result,
            Err(OverAcpFailure(error)) => message["error"] = error,
        }
        self.send(&message).await;
    }

    /// Answers an unreadable message, if it has an id.
    async fn not_read(&self, message: &RawJson, why: &str) {
        #[derive(Deserialize)]
        struct MessageId {
            id: Value,
        }
        tracing::warn!(server = %self.peer.name, why, "a message for an MCP server of the editor could not be read");
        if let Ok(MessageId { id }) = message.decode() {
            let why = format!("the message could not be read: {why}");
            self.answer(&id, Err(OverAcpFailure::new(INVALID_REQUEST, why)))
                .await;
        }
    }

    /// Answers a request of the CLI.
    async fn request(&self, method: &str, params: Option<Value>) -> McpResult {
        let params = match params {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => {
                return Err(OverAcpFailure::new(
                    INVALID_PARAMS,
                    "the parameters are no object",
                ));
            }
        };
        match method {
            "initialize" => {
                let discovery = tokio::time::timeout(DISCOVERY, self.initialize(&params));
                discovery.await.unwrap_or_else(|_| {
                    let why = format!("the editor's MCP server did not say what it is within {DISCOVERY:?}");
                    Err(OverAcpFailure::new(INTERNAL, why))
                })
            }
            // The new revision lacks these requests. They concern the connection, which this module serves.
            "ping" => Ok(json!({})),
            "logging/setLevel" => {
                self.initialize_data().log_level = params.get("level").cloned();
                Ok(json!({}))
            }
            _ => self.ask(method, params).await,
        }
    }

    /// The reply to `initialize`, from `server/discover`.
    async fn initialize(&self, params: &Map<String, Value>) -> McpResult {
        self.initialize_data().client = params.get("clientInfo").cloned();
        let reply = self.once("server/discover", Map::new()).await?;
        let known = |version: &&Value| version.as_str() == Some(REVISION);
        let versions = reply.get("supportedVersions").and_then(Value::as_array);
        if !versions.is_some_and(|versions| versions.iter().any(|version| known(&version))) {
            let why = format!("the editor's MCP server does not speak the revision {REVISION} of MCP");
            return Err(OverAcpFailure::new(INVALID_REQUEST, why));
        }
        let mut capabilities = reply.get("capabilities").cloned().unwrap_or_else(|| json!({}));
        if let Some(resources) = capabilities.get_mut("resources").and_then(Value::as_object_mut) {
            // The new revision has no subscription to single resources.
            resources.remove("subscribe");
        }
        self.initialize_data().capabilities = capabilities.clone();
        let of_meta = || reply.get("_meta")?.get("io.modelcontextprotocol/serverInfo");
        let info = reply.get("serverInfo").or_else(of_meta).cloned();
        let mut result = json!({
            "protocolVersion": params.get("protocolVersion").cloned().unwrap_or_default(),
            "capabilities": capabilities,
            "serverInfo": info.unwrap_or_else(|| json!({ "name": &*self.peer.name, "version": "" })),
        });
        if let Some(instructions) = reply.get("instructions") {
            result["instructions"] = instructions.clone();
        }
        Ok(result)
    }

    /// Subscribes to changes of the server's lists, if the server offers that.
    fn listen(self: Arc<Self>) -> Option<impl Future<Output = ()> + Send> {
        let mut wanted = Map::new();
        for (what, filter) in [
            ("tools", "toolsListChanged"),
            ("prompts", "promptsListChanged"),
            ("resources", "resourcesListChanged"),
        ] {
            if self.initialize_data().capabilities[what]["listChanged"] == true {
                wanted.insert(filter.to_owned(), Value::Bool(true));
            }
        }
        if wanted.is_empty() {
            return None;
        }
        let mut params = Map::new();
        params.insert("notifications".to_owned(), Value::Object(wanted));
        Some(async move {
            let ended = self.once("subscriptions/listen", params).await;
            tracing::debug!(server = %self.peer.name, ?ended, "changes of an MCP server of the editor are no longer reported");
        })
    }

    /// Sends a request to the server, and repeats it with the user's input as long as the server asks for some.
    async fn ask(&self, method: &str, params: Map<String, Value>) -> McpResult {
        let mut asking = params.clone();
        for _ in 0..ROUNDS {
            let result = self.once(method, asking).await?;
            if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
                return Ok(result);
            }
            let mut answers = Map::new();
            for (key, wanted) in result
                .get("inputRequests")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                answers.insert(key.clone(), self.input(wanted).await?);
            }
            asking = params.clone();
            if !answers.is_empty() {
                asking.insert("inputResponses".to_owned(), Value::Object(answers));
            }
            if let Some(state) = result.get("requestState") {
                asking.insert("requestState".to_owned(), state.clone());
            }
        }
        let why = format!("the editor's MCP server asked {ROUNDS} times for something and did not answer");
        Err(OverAcpFailure::new(INTERNAL, why))
    }

    /// Gets the input that a server asked for.
    async fn input(&self, wanted: &Value) -> McpResult {
        let params = &wanted["params"];
        let text = |name: &str| params[name].as_str().map(str::to_owned);
        let editor = &self.peer.editor;
        match wanted["method"].as_str().unwrap_or_default() {
            "elicitation/create" => {
                let form = Form {
                    message: text("message").unwrap_or_default(),
                    url: text("url").map(|url| {
                        let id = text("elicitationId").unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
                        (url, id)
                    }),
                    schema: params
                        .get("requestedSchema")
                        .and_then(|schema| RawJson::encode(schema).ok()),
                };
                Ok(match editor.forms.ask(form).await {
                    Filled::Accepted(None) => json!({ "action": "accept" }),
                    Filled::Accepted(Some(content)) => json!({ "action": "accept", "content": content }),
                    Filled::Declined => json!({ "action": "decline" }),
                    Filled::Cancelled => json!({ "action": "cancel" }),
                })
            }
            "roots/list" => {
                let roots = editor.roots.iter().map(|root| {
                    let name = root.file_name().unwrap_or(root.as_os_str());
                    json!({ "uri": file_uri(root), "name": name.to_string_lossy() })
                });
                Ok(json!({ "roots": roots.collect::<Vec<_>>() }))
            }
            method => {
                let why = format!("the editor's MCP server asks for {method:?}, which it was not offered");
                Err(OverAcpFailure::new(METHOD_NOT_FOUND, why))
            }
        }
    }

    /// Sends one request to the server. Its notifications go to the CLI before the answer.
    ///
    /// Without a deadline: the CLI has one, and cancels the request.
    async fn once(&self, method: &str, mut params: Map<String, Value>) -> McpResult {
        let Peer { editor, id, .. } = &self.peer;
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            let mut put = |key: &str, value: Option<Value>| {
                if let Some(value) = value {
                    meta.insert(format!("io.modelcontextprotocol/{key}"), value);
                }
            };
            let data = self.initialize_data();
            put("protocolVersion", Some(json!(REVISION)));
            put("clientCapabilities", Some(editor.capabilities()));
            put("clientInfo", data.client.clone());
            put("logLevel", data.log_level.clone());
        }
        let mut route = editor.routes.open(id);
        let request = acp::MessageMcpRequest::new(id.clone(), route.id.clone(), method).params(params);
        let mut answer = editor.client.mcp(request);
        let answered = loop {
            tokio::select! {
                biased;
                Some(notification) = route.notifications.recv() => self.pass_on(notification).await,
                answered = &mut answer => break answered,
            }
        };
        // Notifications that came with the answer.
        while let Ok(notification) = route.notifications.try_recv() {
            self.pass_on(notification).await;
        }
        match answered {
            Ok(acp::MessageMcpResponse::Result { result, .. }) => Ok(result),
            Ok(acp::MessageMcpResponse::Error { error, .. }) => {
                let error = serde_json::to_value(error);
                Err(error.map_or_else(
                    |error| OverAcpFailure::new(INTERNAL, error.to_string()),
                    OverAcpFailure,
                ))
            }
            Ok(_) => Err(OverAcpFailure::new(
                INTERNAL,
                "the editor's answer is of a kind that is not known",
            )),
            Err(error) => {
                let why = format!(
                    "the editor did not pass it on to its MCP server: {}",
                    error.message
                );
                Err(OverAcpFailure::new(INTERNAL, why))
            }
        }
    }

    /// Passes a notification of the server to the CLI.
    async fn pass_on(&self, notification: acp::MessageMcpNotification) {
        // These fields belong to the transport.
        if notification.method == "notifications/subscriptions/acknowledged"
            || notification.method == "notifications/cancelled"
        {
            return;
        }
        let mut message = json!({ "jsonrpc": "2.0", "method": notification.method });
        if let Some(params) = notification.params {
            message["params"] = Value::Object(params);
        }
        self.send(&message).await;
    }
}

/// The `file:` URL of a path.
fn file_uri(path: &Path) -> String {
    let path = path.to_string_lossy();
    let path = if cfg!(windows) {
        format!("/{}", path.replace('\\', "/"))
    } else {
        path.into_owned()
    };
    let mut uri = "file://".to_owned();
    for byte in path.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"/-._~:@!$&'()*+,;=".contains(&byte);
        if plain {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn addresses_of_files_are_escaped() {
        assert_eq!(
            file_uri(Path::new("/a b/\u{e4}?#%.txt")),
            "file:///a%20b/%C3%A4%3F%23%25.txt"
        );
    }
}
