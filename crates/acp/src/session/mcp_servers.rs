//! The MCP servers of a running session: the extension requests, and their execution by the CLI.

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
use crate::mcp::{ServerMaker, Servers};
use crate::sdk_error;

/// How long servers in the editor may take to connect before the request is answered.
const CONNECTED: Duration = Duration::from_secs(15);

/// Replaces the session's servers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/set_mcp_servers", response = McpResponse)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetMcpServers {
    pub(crate) session_id: acp::SessionId,
    pub(crate) mcp_servers: Vec<acp::McpServer>,
}

/// The same in the draft of version 2.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/set_mcp_servers", response = McpResponse)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DraftSetMcpServers {
    pub(crate) session_id: acp::SessionId,
    pub(crate) mcp_servers: Vec<draft::McpServer>,
}

/// The status of all servers of a session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/mcp_status", response = McpResponse)]
#[serde(rename_all = "camelCase")]
pub(crate) struct McpStatus {
    pub(crate) session_id: acp::SessionId,
}

/// Reconnects a server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/mcp_reconnect", response = McpResponse)]
#[serde(rename_all = "camelCase")]
pub(crate) struct McpReconnect {
    pub(crate) session_id: acp::SessionId,
    pub(crate) server_name: String,
}

/// Disables a server, or enables it again.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/mcp_toggle", response = McpResponse)]
#[serde(rename_all = "camelCase")]
pub(crate) struct McpToggle {
    pub(crate) session_id: acp::SessionId,
    pub(crate) server_name: String,
    pub(crate) enabled: bool,
}

/// The response to all of these.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcResponse)]
#[serde(untagged)]
pub(crate) enum McpResponse {
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

pub(crate) type McpReply = oneshot::Sender<Result<McpResponse, Error>>;

/// A request of the editor.
#[derive(Debug, Clone)]
pub(crate) enum Wish {
    Set(Servers),
    Status,
    Reconnect(String),
    Toggle { name: String, enabled: bool },
}

/// The editor's servers, and which of them the CLI has.
pub(crate) struct Mcp {
    host: ServerMaker,
    /// The servers that a new process of the session gets.
    at_start: Servers,
    /// The servers that the session should have.
    now: Servers,
    /// Whether the process got other servers since its start. It replaces only those that it got then.
    was_told: bool,
}

impl Mcp {
    pub(crate) fn new(host: ServerMaker, servers: Servers) -> Self {
        Self {
            host,
            at_start: servers.clone(),
            now: servers,
            was_told: false,
        }
    }

    /// The request for a new process, which has the servers of the start.
    pub(super) fn again(&mut self) -> Option<Wish> {
        let is_other = std::mem::take(&mut self.was_told);
        is_other.then(|| Wish::Set(self.now.clone()))
    }

    /// Makes the steps for a request.
    pub(super) fn plan(&self, wish: &Wish) -> RequestSteps {
        match wish {
            Wish::Set(servers) => {
                let leaving = if self.was_told {
                    Servers::default()
                } else {
                    self.at_start.without(servers)
                };
                RequestSteps::Set {
                    first: (!leaving.is_empty()).then(|| servers.and(&leaving).for_session(&self.host)),
                    then: servers.for_session(&self.host),
                    in_editor: servers.in_editor(),
                    leaving,
                }
            }
            Wish::Status => RequestSteps::Status,
            Wish::Reconnect(name) => RequestSteps::Reconnect {
                name: name.clone(),
                in_editor: self.now.in_editor().contains(name),
            },
            Wish::Toggle { name, enabled } => RequestSteps::Toggle(name.clone(), *enabled),
        }
    }

    /// The request was executed.
    pub(super) fn done(&mut self, wish: &Wish) {
        if let Wish::Set(servers) = wish {
            self.now = servers.clone();
            self.was_told = true;
        }
    }
}

/// The steps for a request.
pub(super) enum RequestSteps {
    Set {
        /// The CLI removes a server of its start only if it was set again before.
        first: Option<McpServers>,
        then: McpServers,
        /// The servers in the editor, to which the CLI connects after its reply.
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

impl RequestSteps {
    pub(super) async fn run(self, session: &Session) -> Result<McpResponse, McpFailure> {
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
                // A server that was only restarted is not removed.
                removed.retain(|name| !added.contains(name));
                Ok(McpResponse::Set {
                    added,
                    removed,
                    errors,
                })
            }
            Self::Status => {
                let status = session.mcp_status().await?;
                let servers = status.mcp_servers.iter().map(shown).collect();
                Ok(McpResponse::Status { servers })
            }
            Self::Reconnect { name, in_editor } => {
                let done = if in_editor {
                    // The CLI can't reconnect these in another way.
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
                Ok(McpResponse::Done {})
            }
            Self::Toggle(name, enabled) => {
                let done = session.mcp_toggle(&name, enabled).await;
                done.map_err(|error| about(&name, error))?;
                Ok(McpResponse::Done {})
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct McpFailure {
    pub(super) error: Error,
    /// Whether the process ended, so that the next one can do it.
    pub(super) is_lost: bool,
}

impl From<outrigger::Error> for McpFailure {
    fn from(error: outrigger::Error) -> Self {
        Self {
            error: sdk_error::of_sdk(&error),
            is_lost: error.is_closed(),
        }
    }
}

impl From<Error> for McpFailure {
    fn from(error: Error) -> Self {
        Self {
            error,
            is_lost: false,
        }
    }
}

/// Waits for servers to connect, and returns the reasons of those that have not.
async fn not_connected(
    session: &Session,
    names: Vec<String>,
) -> Result<BTreeMap<String, String>, McpFailure> {
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

/// The status of a server without its configuration, which may have secrets.
fn shown(status: &McpServerStatus) -> Value {
    let mut shown = serde_json::to_value(status).unwrap_or_default();
    if let Some(fields) = shown.as_object_mut() {
        fields.retain(|name, value| name != "config" && !value.is_null());
    }
    shown
}

fn about(name: &str, error: outrigger::Error) -> McpFailure {
    let refusal = error.as_refusal().map(|refusal| refusal.message.as_str());
    if refusal.is_some_and(|refusal| refusal.contains("Server not found")) {
        return error::bad("serverName", format!("the session has no MCP server {name:?}")).into();
    }
    error.into()
}
