//! Between the CLI's `mcp_message` and the servers of a session.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_protocol::outbound::{
    Initialize, McpMessageAnswer, SdkMcpServerManifest, SdkMcpServerSettings,
};
use outrigger_protocol::{Frame, RawJson};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::connection::{NotTaken, ServerConnection};
use super::jsonrpc::{INTERNAL_ERROR, INVALID_REQUEST, MessageHead, RequestId, failure};
use super::manifest;
use super::server::SdkMcpServer;
use super::server_messages::ServerMessages;
use crate::conn::Conn;
use crate::conn::Context;
use crate::conn::cli_requests::{Answerer, CliReply, CliRequest};
use crate::peer::BoxFuture;
use crate::spawn::spawn;

/// The servers of one session.
pub(crate) struct Bridge {
    servers: Mutex<BTreeMap<String, BridgedServer>>,
    outlet: Arc<ServerMessages>,
    /// Fires at the session's end.
    end: CancellationToken,
    /// Held while the CLI is told of other servers, so that what it has and what is here stay the same.
    pub(crate) setting: tokio::sync::Mutex<()>,
}

struct BridgedServer {
    server: SdkMcpServer,
    /// The server that the CLI has under this name. It is another than `server` until the CLI connects anew.
    connected: SdkMcpServer,
    /// Made when the CLI says `initialize`, or before, to tell it ahead.
    connection: Option<ServerConnection>,
}

impl BridgedServer {
    fn new(server: SdkMcpServer) -> Self {
        Self {
            connected: server.clone(),
            server,
            connection: None,
        }
    }
}

/// What a message is, as far as the bridge cares.
enum MessageKind {
    /// A new connection.
    Initialize(RequestId),
    Request(RequestId),
    Cancelled(RequestId),
    /// A notification, or an answer to a request of the server's.
    Other,
    /// No JSON-RPC.
    Bad(&'static str),
}

impl Bridge {
    pub(crate) fn new(servers: BTreeMap<String, SdkMcpServer>) -> Self {
        let entries = servers
            .into_iter()
            .map(|(name, server)| (name, BridgedServer::new(server)));
        let end = CancellationToken::new();
        Self {
            servers: Mutex::new(entries.collect()),
            outlet: Arc::new(ServerMessages::new(end.clone())),
            end,
            setting: tokio::sync::Mutex::default(),
        }
    }

    /// Says where the CLI is, and ends the servers when it does.
    pub(crate) fn attach(&self, conn: &Arc<Conn>) {
        self.outlet.attach(conn);
        let (end, mut ended) = (self.end.clone(), conn.ended.clone());
        spawn(async move {
            // A connection that is gone has ended.
            let _ = ended.wait_for(Option::is_some).await;
            end.cancel();
        });
    }

    fn servers(&self) -> MutexGuard<'_, BTreeMap<String, BridgedServer>> {
        // Valid after every line, and none of the program's code runs while it is held.
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The servers as they are now, to be made again elsewhere.
    pub(crate) fn recipes(&self) -> BTreeMap<String, SdkMcpServer> {
        let servers = self.servers();
        servers
            .iter()
            .map(|(name, entry)| (name.clone(), entry.server.clone()))
            .collect()
    }

    /// The names of these servers under which the CLI has another server.
    pub(crate) fn others(&self, servers: &BTreeMap<String, SdkMcpServer>) -> BTreeSet<String> {
        let entries = self.servers();
        let is_other = |(name, server): &(&String, &SdkMcpServer)| {
            let entry = entries.get(*name);
            entry.is_some_and(|entry| !entry.connected.is_same(server))
        };
        let others = servers.iter().filter(is_other);
        others.map(|(name, _)| name.clone()).collect()
    }

    /// Adds servers, for the CLI to connect to. One that takes the place of another does so when the CLI connects anew.
    pub(crate) fn add(&self, added: &BTreeMap<String, SdkMcpServer>) {
        let mut servers = self.servers();
        for (name, server) in added {
            match servers.get_mut(name) {
                Some(entry) => entry.server = server.clone(),
                None => {
                    let entry = BridgedServer::new(server.clone());
                    servers.insert(name.clone(), entry);
                }
            }
        }
    }

    /// Has these servers and no others; those that are not among them end.
    pub(crate) fn replace(&self, all: BTreeMap<String, SdkMcpServer>) {
        self.add(&all);
        let mut ended = Vec::new();
        self.servers().retain(|name, entry| {
            let stays = all.contains_key(name);
            entry.connected = entry.server.clone();
            if !stays {
                ended.extend(entry.connection.take());
            }
            stays
        });
        // What the program's code does when it ends is not done under the lock.
        drop(ended);
    }

    /// Fills in what `initialize` says of the servers. What they would say themselves is asked of them here.
    pub(crate) async fn introduce(&self, request: &mut Initialize, with_manifests: bool) {
        let (names, settings): (Vec<String>, BTreeMap<String, SdkMcpServerSettings>) = {
            let servers = self.servers();
            let told = servers.iter().filter_map(|(name, entry)| {
                let settings = entry.server.registration().clone();
                (settings != SdkMcpServerSettings::default()).then(|| (name.clone(), settings))
            });
            (servers.keys().cloned().collect(), told.collect())
        };
        if names.is_empty() {
            return;
        }
        if with_manifests {
            let manifests = self.manifests(&names).await;
            request.sdk_mcp_server_manifests = (!manifests.is_empty()).then_some(manifests);
        }
        request.sdk_mcp_servers = Some(names);
        request.sdk_mcp_server_configs = (!settings.is_empty()).then_some(settings);
    }

    async fn manifests(&self, names: &[String]) -> BTreeMap<String, SdkMcpServerManifest> {
        let mut started = BTreeMap::new();
        for name in names {
            let server = self.servers().get(name).map(|entry| entry.server.clone());
            if let Some(server) = server {
                let connection = ServerConnection::start(name, &server, &self.outlet, &self.end);
                started.insert(name.clone(), connection);
            }
        }
        let (manifests, connections) = manifest::capture(started).await;
        let mut servers = self.servers();
        for (name, connection) in connections {
            if let Some(entry) = servers.get_mut(&name) {
                entry.connection = Some(connection);
            }
        }
        manifests
    }

    /// The CLI has answered `initialize`, so it knows the servers.
    pub(crate) fn introduced(&self) {
        self.outlet.open();
    }

    /// Takes a message in: hands it to its server, in the order in which they come.
    fn take(&self, frame: &Frame, context: Context) -> BoxFuture<'static, CliReply> {
        let ready = |answer| -> BoxFuture<'static, CliReply> { Box::pin(std::future::ready(answer)) };
        let Posted { server_name, message } = match read(frame) {
            Ok(posted) => posted,
            Err(error) => {
                return ready(CliReply::Error(format!(
                    "the MCP message could not be read: {error}"
                )));
            }
        };
        let mut servers = self.servers();
        let Some(entry) = servers.get_mut(&server_name) else {
            return ready(CliReply::Error(format!(
                "SDK MCP server not found: {server_name}"
            )));
        };
        let kind = classify(&message);
        let mut replaced = None;
        if let MessageKind::Initialize(_) = kind {
            let connection = ServerConnection::start(&server_name, &entry.server, &self.outlet, &self.end);
            replaced = entry.connection.replace(connection);
            entry.connected = entry.server.clone();
        }
        let answer = match (kind, &entry.connection) {
            (MessageKind::Bad(why), _) => ready(mcp_response(failure(None, INVALID_REQUEST, why))),
            (MessageKind::Initialize(id) | MessageKind::Request(id), Some(connection)) => {
                match connection.ask(id.clone(), message, Some(context)) {
                    Ok(answered) => {
                        let name = server_name.clone();
                        Box::pin(async move {
                            match answered.await {
                                Ok(answer) => mcp_response(answer),
                                Err(_) => mcp_response(ended(&name, &id)),
                            }
                        })
                    }
                    Err(why) => ready(mcp_response(not_taken(&server_name, &id, &why))),
                }
            }
            (MessageKind::Request(id), None) => ready(mcp_response(ended(&server_name, &id))),
            (MessageKind::Cancelled(id), Some(connection)) => {
                let taken = connection.post(message, Some(context));
                connection.cancelled(&id);
                ready(acknowledge(&server_name, taken))
            }
            (_, Some(connection)) => {
                let taken = connection.post(message, Some(context));
                ready(acknowledge(&server_name, taken))
            }
            // There is nothing left for it to be about.
            (_, None) => ready(acknowledgement()),
        };
        drop(servers);
        drop(replaced);
        answer
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge")
            .field("servers", &self.servers().keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Answerer for Bridge {
    fn accept(&self, asking: CliRequest) -> BoxFuture<'static, CliReply> {
        self.take(&asking.frame, asking.context)
    }

    fn refuse(&self, frame: &Frame, why: &str) -> CliReply {
        let message = read(frame).map(|posted| posted.message);
        let head: MessageHead = message
            .ok()
            .and_then(|message| message.decode().ok())
            .unwrap_or_default();
        match head.id() {
            Some(id) if head.method.is_some() => mcp_response(failure(Some(&id), INTERNAL_ERROR, why)),
            _ => CliReply::Error(why.to_owned()),
        }
    }
}

#[derive(Deserialize)]
struct Posted {
    server_name: String,
    message: RawJson,
}

/// Reads what matters of a control request.
fn read(frame: &Frame) -> Result<Posted, String> {
    #[derive(Deserialize)]
    struct ControlRequestLine {
        request: Posted,
    }
    if let Some(flaw) = frame.flaw() {
        return Err(flaw.to_string());
    }
    let line = RawJson::from_text(frame.text()).and_then(|line| line.decode::<ControlRequestLine>());
    line.map(|line| line.request).map_err(|error| error.to_string())
}

fn classify(message: &RawJson) -> MessageKind {
    #[derive(Deserialize)]
    struct Cancelled {
        params: CancelledParams,
    }
    #[derive(Deserialize)]
    struct CancelledParams {
        #[serde(rename = "requestId")]
        request_id: RequestId,
    }
    // A list would be read as the fields of the struct in their order.
    let is_object = message.get().trim_start().starts_with('{');
    let Some(head) = message.decode::<MessageHead>().ok().filter(|_| is_object) else {
        return MessageKind::Bad("the message is no JSON object with a text as its method");
    };
    match (head.method.as_deref(), head.id()) {
        (Some("initialize"), Some(id)) => MessageKind::Initialize(id),
        (Some(_), Some(id)) => MessageKind::Request(id),
        (Some(_), None) if head.has_id() => MessageKind::Bad("the id is neither a string nor a whole number"),
        (Some("notifications/cancelled"), None) => match message.decode::<Cancelled>() {
            Ok(cancelled) => MessageKind::Cancelled(cancelled.params.request_id),
            Err(_) => MessageKind::Other,
        },
        _ => MessageKind::Other,
    }
}

fn mcp_response(message: RawJson) -> CliReply {
    CliReply::success(&McpMessageAnswer {
        mcp_response: message,
    })
}

/// The answer to what has no answer. Any will do, but there must be one.
fn acknowledgement() -> CliReply {
    #[derive(serde::Serialize)]
    struct Empty {}
    #[derive(serde::Serialize)]
    struct Acknowledgement {
        jsonrpc: &'static str,
        result: Empty,
        id: u64,
    }
    #[derive(serde::Serialize)]
    struct Payload {
        mcp_response: Acknowledgement,
    }
    CliReply::success(&Payload {
        mcp_response: Acknowledgement {
            jsonrpc: "2.0",
            result: Empty {},
            id: 0,
        },
    })
}

fn acknowledge(server: &str, taken: Result<(), NotTaken>) -> CliReply {
    match taken {
        Ok(()) => acknowledgement(),
        Err(why) => {
            tracing::warn!(server, ?why, "a message for an MCP server was dropped");
            acknowledgement()
        }
    }
}

fn ended(server: &str, id: &RequestId) -> RawJson {
    let why = format!("the MCP server {server:?} has ended; it begins anew when it is initialized");
    failure(Some(id), INTERNAL_ERROR, &why)
}

fn not_taken(server: &str, id: &RequestId, why: &NotTaken) -> RawJson {
    match why {
        NotTaken::Ended => ended(server, id),
        NotTaken::Duplicate => {
            let why = format!("a request with the id {id} is open already");
            failure(Some(id), INVALID_REQUEST, &why)
        }
        NotTaken::Full => {
            let why = format!("too many messages wait for the MCP server {server:?}");
            failure(Some(id), INTERNAL_ERROR, &why)
        }
    }
}
