//! The server of a set of tools.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorCode, ErrorData, Implementation, InitializeRequestParams,
    InitializeResult, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use rmcp::{ServerHandler, ServiceError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::output::failed;
use super::tool::Tool;
use super::tool_context::ToolContext;
use crate::deadline::{NoResult, in_time};
use crate::mcp::InvalidServer;

/// How long a report to the CLI that failed waits to be sent again. The time doubles, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The problem of a server's tools, if any.
type Checked = Result<(), String>;

/// A handle that adds and removes the tools of a server while sessions run; from
/// [`SdkMcpServer::tools`](crate::mcp::SdkMcpServer::tools). A cheap handle.
///
/// All sessions with the server see the same tools. After each change the SDK sends `notifications/tools/list_changed`, and the
/// CLI requests the list again; the model sees the change from its next turn on.
#[derive(Clone, Debug)]
pub struct ToolSet(pub(in crate::mcp) Arc<Toolbox>);

impl ToolSet {
    /// Adds a tool, or replaces the one of the same name. Running calls of the old one go on.
    ///
    /// # Errors
    /// When the tool is invalid: its name, or a schema that is not of an object. Then nothing is changed.
    pub fn add(&self, tool: Tool) -> Result<(), InvalidServer> {
        check_tool(&tool).map_err(InvalidServer::new)?;
        {
            let mut tools = self.0.tools();
            let mut others = tools.iter().filter(|other| other.name() != tool.name());
            if let Some(other) = others.find(|other| seen_as(other.name()) == seen_as(tool.name())) {
                return Err(InvalidServer::new(same(tool.name(), other.name())));
            }
            match tools.iter_mut().find(|other| other.name() == tool.name()) {
                Some(old) => *old = tool,
                None => tools.push(tool),
            }
        }
        self.0.changed();
        Ok(())
    }

    /// Removes a tool; `false` if there is none of this name. Its running calls go on.
    pub fn remove(&self, name: &str) -> bool {
        let removed = {
            let mut tools = self.0.tools();
            let before = tools.len();
            tools.retain(|tool| tool.name() != name);
            tools.len() < before
        };
        if removed {
            self.0.changed();
        }
        removed
    }

    /// The names of the tools.
    pub fn names(&self) -> Vec<String> {
        self.0.tools().iter().map(|tool| tool.name().to_owned()).collect()
    }
}

/// What [`ToolSet`] share.
#[derive(Debug)]
pub(in crate::mcp) struct Toolbox {
    tools: Mutex<Vec<Tool>>,
    /// Counts the changes.
    version: watch::Sender<u64>,
}

impl Toolbox {
    pub(in crate::mcp) fn new(tools: Vec<Tool>) -> Self {
        Self {
            tools: Mutex::new(tools),
            version: watch::Sender::new(0),
        }
    }

    pub(in crate::mcp) fn tools(&self) -> MutexGuard<'_, Vec<Tool>> {
        // Valid after every line, and nothing that could panic runs while it is held.
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    /// Checks the tools.
    pub(in crate::mcp) fn check(&self) -> Checked {
        let tools = self.tools();
        for (index, tool) in tools.iter().enumerate() {
            check_tool(tool)?;
            let mut before = tools.iter().take(index);
            if let Some(other) = before.find(|other| seen_as(other.name()) == seen_as(tool.name())) {
                return Err(same(tool.name(), other.name()));
            }
        }
        Ok(())
    }
}

fn check_tool(tool: &Tool) -> Checked {
    match &tool.problem {
        Some(problem) => Err(format!("tool {:?}: {problem}", tool.name())),
        None => Ok(()),
    }
}

/// The name as the model sees it.
fn seen_as(name: &str) -> String {
    name.replace('.', "_")
}

fn same(name: &str, other: &str) -> String {
    if name == other {
        format!("tool {name:?}: there are two of this name")
    } else {
        format!(
            "tool {name:?}: the model could not tell it from {other:?}, since it sees dots as underscores"
        )
    }
}

/// The name, version and instructions of the server.
#[derive(Clone, Debug)]
pub(in crate::mcp) struct Card {
    pub(in crate::mcp) name: String,
    pub(in crate::mcp) version: String,
    pub(in crate::mcp) instructions: Option<String>,
    /// Whether tools without a setting are offered from the start.
    pub(in crate::mcp) always_load: bool,
}

/// One session's server of these tools.
pub(in crate::mcp) struct ToolServer {
    pub(in crate::mcp) card: Card,
    pub(in crate::mcp) toolbox: Arc<Toolbox>,
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let card = Implementation::new(self.card.name.clone(), self.card.version.clone());
        let mut info = ServerConfig::new(capabilities).with_server_info(card);
        info.instructions = self.card.instructions.clone();
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut version = self.toolbox.version.subscribe();
        // Ends with the connection.
        tokio::spawn(async move {
            loop {
                let changed = tokio::select! {
                    changed = version.changed() => changed.is_ok(),
                    () = context.ct.cancelled() => false,
                };
                if !changed || !tell_change(&context.peer, &context.ct).await {
                    break;
                }
            }
        });
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.toolbox.tools();
        let definition = |tool: &Tool| {
            let mut tool = tool.clone();
            if self.card.always_load && !tool.has_meta(ALWAYS_LOAD) {
                tool = tool.always_load();
            }
            tool.definition
        };
        Ok(ListToolsResult::with_all_items(
            tools.iter().map(definition).collect(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = self
            .toolbox
            .tools()
            .iter()
            .find(|tool| tool.name() == request.name)
            .cloned();
        let Some(tool) = tool else {
            let why = format!("there is no tool {:?}", request.name);
            return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, why, None));
        };
        let (called, arguments) = (tool.clone(), request.arguments.unwrap_or_default());
        // Made inside, since the tool's own code runs as its future is made.
        let call = async move { called.call(arguments, ToolContext::new(context)).await };
        let mut result = match tool.timeout {
            None => call.await,
            Some(limit) => {
                let done = in_time(limit, call).await;
                done.map_err(NoResult::unwind).unwrap_or_else(|_| {
                    failed(format!(
                        "the tool {:?} was given up after {limit:?}, its time limit",
                        tool.name()
                    ))
                })
            }
        };
        if tool.ends_turn && result.is_error != Some(true) {
            let meta = result.meta.get_or_insert_default();
            meta.insert(END_TURN.to_owned(), serde_json::Value::Bool(true));
        }
        Ok(result.into())
    }
}

/// Reports to the CLI that the tools have changed, as often as needed. `false` if the connection has ended.
async fn tell_change(cli: &Peer<RoleServer>, end: &CancellationToken) -> bool {
    let mut pause = FIRST_PAUSE;
    loop {
        match cli.notify_tool_list_changed().await {
            Ok(()) => return true,
            Err(ServiceError::TransportClosed) => return false,
            Err(error) => tracing::debug!(%error, "the change of tools is reported again"),
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = end.cancelled() => return false,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

pub(in crate::mcp) const END_TURN: &str = "claude/endTurn";
pub(in crate::mcp) const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";
