//! A session's MCP servers while it runs: extensions of the protocol, and what the CLI has of servers.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v2::schema as draft;
use agent_client_protocol::{Error, JsonRpcRequest, JsonRpcResponse};
use outrigger::Session;
use outrigger::mcp::McpServers;
use outrigger::protocol::shared::McpServerStatus;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::error;
use crate::mcp::{Host, Servers};
use crate::sdk_error;

/// How long servers in the editor may take to connect before the editor is told how they fare.
const CONNECTED: Duration = Duration::from_secs(15);

/// From now on the session has these servers of the editor's, and no others.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/set_mcp_servers", response = Told)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetMcpServers {
    pub(crate) session_id: acp::SessionId,
    pub(crate) mcp_servers: Vec<acp::McpServer>,
}

/// The same in the draft of the second version.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/set_mcp_servers", response = Told)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DraftSetMcpServers {
    pub(crate) session_id: acp::SessionId,
    pub(crate) mcp_servers: Vec<draft::McpServer>,
}

/// How the servers of a session fare, whoever brought them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/mcp_status", response = Told)]
#[serde(rename_all = "camelCase")]
pub(crate) struct McpStatus {
    pub(crate) session_id: acp::SessionId,
}

/// Connects a server anew.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/mcp_reconnect", response = Told)]
#[serde(rename_all = "camelCase")]
pub(crate) struct McpReconnect {
    pub(crate) session_id: acp::SessionId,
    pub(crate) server_name: String,
}

/// Switches a server off, or on again.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/mcp_toggle", response = Told)]
#[serde(rename_all = "camelCase")]
pub(crate) struct McpToggle {
    pub(crate) session_id: acp::SessionId,
    pub(crate) server_name: String,
    pub(crate) enabled: bool,
}

/// The answer to any of these.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcResponse)]
#[serde(untagged)]
pub(crate) enum Told {
    Set {
        added: Vec<String>,
        removed: Vec<String>,
        errors: BTreeMap<String, String>,
    },
    Status {
        servers: Vec<Value>,
    },
    Done {},
}

/// Whom the end of it is told.
pub(crate) type Reply = oneshot::Sender<Result<Told, Error>>;

/// What is to be done.
#[derive(Debug, Clone)]
pub(crate) enum Wish {
    Set(Servers),
    Status,
    Reconnect(String),
    Toggle { name: String, enabled: bool },
}

/// The editor's servers, and what the CLI has of them.
pub(crate) struct Mcp {
    host: Host,
    /// Those that a process of this session is started with.
    at_start: Servers,
    /// Those that the session is to have.
    now: Servers,
    /// Whether the process that runs was told of others since it was started. It replaces only what it was told then.
    was_told: bool,
}

impl Mcp {
    pub(crate) fn new(host: Host, servers: Servers) -> Self {
        Self {
            host,
            at_start: servers.clone(),
            now: servers,
            was_told: false,
        }
    }

    /// What a new process has to be told, which has the servers of the start.
    pub(super) fn again(&mut self) -> Option<Wish> {
        let is_other = std::mem::take(&mut self.was_told);
        is_other.then(|| Wish::Set(self.now.clone()))
    }

    /// Says what is to be done in words of the SDK.
    pub(super) fn plan(&self, wish: &Wish) -> Plan {
        match wish {
            Wish::Set(servers) => {
                let leaving = if self.was_told {
                    Servers::default()
                } else {
                    self.at_start.without(servers)
                };
                Plan::Set {
                    first: (!leaving.is_empty()).then(|| servers.and(&leaving).for_session(&self.host)),
                    then: servers.for_session(&self.host),
                    in_editor: servers.in_editor(),
                    leaving,
                }
            }
            Wish::Status => Plan::Status,
            Wish::Reconnect(name) => Plan::Reconnect {
                name: name.clone(),
                in_editor: self.now.in_editor().contains(name),
            },
            Wish::Toggle { name, enabled } => Plan::Toggle(name.clone(), *enabled),
        }
    }

    /// It was done.
    pub(super) fn done(&mut self, wish: &Wish) {
        if let Wish::Set(servers) = wish {
            self.now = servers.clone();
            self.was_told = true;
        }
    }
}

/// See [`Mcp::plan`].
pub(super) enum Plan {
    Set {
        /// The CLI does not let go of a server that it was started with, unless it was told of it again.
        first: Option<McpServers>,
        then: McpServers,
        /// Those that live in the editor, to which the CLI connects when it has answered.
        in_editor: Vec<String>,
        leaving: Servers,
    },
    Status,
    Reconnect {
        name: String,
        in_editor: bool,
    },
    Toggle(String, bool),
}

impl Plan {
    pub(super) async fn run(self, session: &Session) -> Result<Told, Failure> {
        match self {
            Self::Set {
                first,
                then,
                mut in_editor,
                leaving,
            } => {
                let mut added = Vec::new();
                let mut errors = BTreeMap::new();
                if let Some(first) = first {
                    let told = session.mcp_set_servers(first).await?;
                    added.extend(told.added);
                    errors.extend(told.errors);
                }
                let told = session.mcp_set_servers(then).await?;
                added.extend(told.added);
                errors.extend(told.errors);
                added.retain(|name| !leaving.has(name));
                added.sort();
                added.dedup();
                errors.retain(|name, _| !leaving.has(name));
                in_editor.retain(|name| added.contains(name));
                if !in_editor.is_empty() {
                    errors.extend(not_connected(session, in_editor).await?);
                }
                let mut removed = told.removed;
                // One that only began anew.
                removed.retain(|name| !added.contains(name));
                Ok(Told::Set {
                    added,
                    removed,
                    errors,
                })
            }
            Self::Status => {
                let status = session.mcp_status().await?;
                let servers = status.mcp_servers.iter().map(shown).collect();
                Ok(Told::Status { servers })
            }
            Self::Reconnect { name, in_editor } => {
                let done = if in_editor {
                    // The CLI knows no other way for these.
                    match session.mcp_toggle(&name, false).await {
                        Ok(_) => session.mcp_toggle(&name, true).await,
                        refused => refused,
                    }
                } else {
                    session.mcp_reconnect(&name).await
                };
                done.map_err(|error| about(&name, error))?;
                if in_editor && let Some((name, why)) = not_connected(session, vec![name]).await?.pop_first()
                {
                    let failed = format!("the MCP server {name} did not connect again: {why}");
                    return Err(error::internal(failed).into());
                }
                Ok(Told::Done {})
            }
            Self::Toggle(name, enabled) => {
                let done = session.mcp_toggle(&name, enabled).await;
                done.map_err(|error| about(&name, error))?;
                Ok(Told::Done {})
            }
        }
    }
}

/// Why something was not done.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: Error,
    /// The process ended meanwhile, so that it can be done in the next.
    pub(super) is_lost: bool,
}

impl From<outrigger::Error> for Failure {
    fn from(error: outrigger::Error) -> Self {
        Self {
            error: sdk_error::of_sdk(&error),
            is_lost: error.is_closed(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            error,
            is_lost: false,
        }
    }
}

/// Waits for servers to connect, and says why they have not.
async fn not_connected(session: &Session, names: Vec<String>) -> Result<BTreeMap<String, String>, Failure> {
    let Err(error) = session.mcp_ready(names, CONNECTED).await else {
        return Ok(BTreeMap::new());
    };
    let Some(problem) = error.as_mcp_not_ready() else {
        return Err(error.into());
    };
    let late = format!("it has not connected within {CONNECTED:?}");
    let pending = problem.pending.iter().map(|name| (name.clone(), late.clone()));
    Ok(problem.failed.clone().into_iter().chain(pending).collect())
}

/// A server, without how it is configured: that may hold secrets.
fn shown(status: &McpServerStatus) -> Value {
    let mut shown = serde_json::to_value(status).unwrap_or_default();
    if let Some(fields) = shown.as_object_mut() {
        fields.retain(|name, value| name != "config" && !value.is_null());
    }
    shown
}

fn about(name: &str, error: outrigger::Error) -> Failure {
    let refusal = error.as_refusal().map(|refusal| refusal.message.as_str());
    if refusal.is_some_and(|refusal| refusal.contains("Server not found")) {
        return error::bad("serverName", format!("the session has no MCP server {name:?}")).into();
    }
    error.into()
}
