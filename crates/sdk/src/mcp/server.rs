//! MCP servers in this program.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::raw::{RawConnection, Serve};
#[cfg(feature = "tools")]
use super::tools::{Card, Tool, ToolSet, Toolbox, serve_handler, serve_tools};
use outrigger_protocol::outbound::SdkMcpServerSettings;
use outrigger_protocol::shared::McpServerToolPolicy;

/// An MCP server that lives in this program, for [`Options::sdk_mcp_server`](crate::Options::sdk_mcp_server) and
/// [`McpServers`](super::McpServers). The CLI reaches it through the session's own pipe: no process, no port.
///
/// It is a template: each session makes its own server from it, when the session starts and whenever the CLI reconnects. It is
/// cheap to clone.
///
/// [`from_raw`](Self::from_raw) is always available; the rest needs the feature `tools`.
///
#[cfg_attr(feature = "tools", doc = "```")]
#[cfg_attr(not(feature = "tools"), doc = "```ignore")]
/// use outrigger::mcp::{SdkMcpServer, Tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Weather {
///     city: String,
/// }
///
/// let server = SdkMcpServer::new("weather").tool(
///     Tool::new("now", "The weather in a city", async |input: Weather, _| {
///         if input.city.is_empty() {
///             return Err("name a city");
///         }
///         Ok(format!("It rains in {}.", input.city))
///     })
///     .read_only(),
/// );
/// let options = outrigger::Agent::builder()
///     .sdk_mcp_server("weather", server)
///     .allowed_tools(["mcp__weather"]);
/// # let _ = options;
/// ```
#[derive(Clone)]
pub struct SdkMcpServer {
    kind: ServerKind,
    settings: SdkMcpServerSettings,
    /// The problem of the arguments, if any.
    problem: Option<String>,
}

#[derive(Clone)]
enum ServerKind {
    #[cfg(feature = "tools")]
    Tools {
        card: Card,
        toolbox: Arc<Toolbox>,
    },
    Whole(Serve),
}

/// Servers made of tools, or written with rmcp. They need the feature `tools`.
#[cfg(feature = "tools")]
impl SdkMcpServer {
    /// A server of tools; [`tool`](Self::tool) adds them. The name is that of the server's own `serverInfo`; the model sees the
    /// name under which the server is registered.
    pub fn new(name: impl Into<String>) -> Self {
        let card = Card {
            name: name.into(),
            version: "1.0.0".to_owned(),
            instructions: None,
            always_load: false,
        };
        let toolbox = Arc::new(Toolbox::new(Vec::new()));
        Self::of(ServerKind::Tools { card, toolbox })
    }

    /// Any server that is written with rmcp: tools, resources, prompts, completion, logging, and requests to the CLI.
    ///
    /// The function makes the server. It is called for each session and each connection, so it has to share state that outlives
    /// these. A handler that panics fails its request. After a cancellation by the CLI, a request has 5 s to react to its token;
    /// then its future is dropped.
    ///
    /// The request's [`Context`](crate::Context) is among rmcp's extensions:
    /// `context.extensions.get::<outrigger::Context>()`.
    pub fn from_handler<H: rmcp::ServerHandler>(make: impl Fn() -> H + Send + Sync + 'static) -> Self {
        Self::of(ServerKind::Whole(serve_handler(make)))
    }

    /// Adds a tool. Two tools of one name are an error when a session starts.
    pub fn tool(mut self, tool: Tool) -> Self {
        match &mut self.kind {
            ServerKind::Tools { toolbox, .. } => {
                // Not into one that clones of this server have.
                let mut tools = toolbox.tools().clone();
                tools.push(tool);
                *toolbox = Arc::new(Toolbox::new(tools));
            }
            ServerKind::Whole(_) => {
                self.wrong("a tool was added to a server that serves its tools itself");
            }
        }
        self
    }

    /// Adds tools.
    pub fn add_tools(self, tools: impl IntoIterator<Item = Tool>) -> Self {
        tools.into_iter().fold(self, Self::tool)
    }

    /// The version of the server; `1.0.0` unless set.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        let version = version.into();
        self.edit("version", |card| card.version = version);
        self
    }

    /// The instructions of the server for the model.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        let instructions = instructions.into();
        self.edit("instructions", |card| card.instructions = Some(instructions));
        self
    }

    /// Offers all its tools to the model from the start instead of on demand, except tools with another setting.
    pub fn always_load(mut self) -> Self {
        self.edit("always_load", |card| card.always_load = true);
        self
    }

    /// A handle that changes the tools while sessions run. Get it when the server is complete: [`tool`](Self::tool) makes another
    /// server. `None` for a server that serves its tools itself.
    pub fn tools(&self) -> Option<ToolSet> {
        match &self.kind {
            ServerKind::Tools { toolbox, .. } => Some(ToolSet(Arc::clone(toolbox))),
            ServerKind::Whole(_) => None,
        }
    }

    fn edit(&mut self, what: &str, change: impl FnOnce(&mut Card)) {
        match &mut self.kind {
            ServerKind::Tools { card, .. } => change(card),
            ServerKind::Whole(_) => self.wrong(format!(
                "`{what}` was set for a server that is more than tools, which decides that itself"
            )),
        }
    }
}

impl SdkMcpServer {
    /// Any server that reads and writes the JSON-RPC of MCP itself, for example a bridge to a remote one.
    ///
    /// The function serves one connection. It is called for each session, and each time that the CLI reconnects. The connection
    /// ends with the future, and the future is dropped with the connection. Requests that are open then get an error, and so do
    /// all others until the CLI reconnects.
    ///
    /// The CLI cancels a request by `notifications/cancelled`, which is a message like others; then the SDK answers it without the
    /// server. For other cancellations, see the message's [`Context`](crate::Context).
    ///
    /// ```
    /// use outrigger::mcp::SdkMcpServer;
    /// use outrigger::protocol::RawJson;
    ///
    /// let server = SdkMcpServer::from_raw(async |mut connection| {
    ///     let sender = connection.sender();
    ///     while let Some(asked) = connection.next().await {
    ///         #[derive(serde::Deserialize)]
    ///         struct Request {
    ///             id: RawJson,
    ///         }
    ///         let Ok(Request { id }) = asked.message.decode() else {
    ///             continue; // a notification
    ///         };
    ///         let no = r#"{"code":-32601,"message":"nothing is served here"}"#;
    ///         let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{no}}}"#, id.get());
    ///         if let Ok(answer) = RawJson::from_text(&answer) {
    ///             let _ = sender.send(answer).await;
    ///         }
    ///     }
    /// });
    /// # let _ = server;
    /// ```
    pub fn from_raw<F, S>(serve: F) -> Self
    where
        F: Fn(RawConnection) -> S + Send + Sync + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        Self::of(ServerKind::Whole(Arc::new(move |connection, end| {
            let served = serve(connection);
            Box::pin(async move {
                tokio::select! {
                    () = end.cancelled() => {}
                    () = served => {}
                }
            })
        })))
    }

    fn of(kind: ServerKind) -> Self {
        Self {
            kind,
            settings: SdkMcpServerSettings::default(),
            problem: None,
        }
    }

    /// How long the CLI waits for a call; at least a second, or the CLI takes its own default (`MCP_TOOL_TIMEOUT`). Progress
    /// does not extend it. When it passes, the CLI cancels the call.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        if timeout < Duration::from_secs(1) {
            self.wrong("`call_timeout` is less than a second, which the CLI would ignore");
        }
        self
    }

    /// The policy of single tools: always request permission, or always deny. It can only be stricter than the session's rules.
    pub fn tool_policies(mut self, policies: impl IntoIterator<Item = McpServerToolPolicy>) -> Self {
        self.settings.tools = Some(policies.into_iter().collect());
        self
    }

    /// The complete registration of the server; replaces what was set before.
    pub fn settings(mut self, settings: SdkMcpServerSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Checks the server. Options with it are checked the same way before anything is started.
    ///
    /// # Errors
    /// When a tool's name is invalid, two tools have the same, the JSON schema of an input or an output is not of type
    /// `object`, or what was set has no effect.
    pub fn check(&self) -> Result<(), InvalidServer> {
        if let Some(problem) = &self.problem {
            return Err(InvalidServer::new(problem.clone()));
        }
        match &self.kind {
            #[cfg(feature = "tools")]
            ServerKind::Tools { toolbox, .. } => toolbox.check().map_err(InvalidServer::new),
            ServerKind::Whole(_) => Ok(()),
        }
    }

    /// The function that serves one connection.
    pub(super) fn serve(&self) -> Serve {
        match &self.kind {
            #[cfg(feature = "tools")]
            ServerKind::Tools { card, toolbox } => serve_tools(card, toolbox),
            ServerKind::Whole(serve) => Arc::clone(serve),
        }
    }

    /// Whether both are clones of one server, with the same settings but for those of tools: the CLI heeds others only when it gets to
    /// know a server.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let lasting = |server: &Self| {
            let mut settings = server.settings.clone();
            settings.tools = None;
            settings
        };
        if lasting(self) != lasting(other) {
            return false;
        }
        match (&self.kind, &other.kind) {
            #[cfg(feature = "tools")]
            (ServerKind::Tools { toolbox: a, .. }, ServerKind::Tools { toolbox: b, .. }) => Arc::ptr_eq(a, b),
            (ServerKind::Whole(a), ServerKind::Whole(b)) => Arc::ptr_eq(a, b),
            #[cfg(feature = "tools")]
            _ => false,
        }
    }

    pub(super) fn registration(&self) -> &SdkMcpServerSettings {
        &self.settings
    }

    fn wrong(&mut self, problem: impl Into<String>) {
        self.problem.get_or_insert_with(|| problem.into());
    }
}

impl fmt::Debug for SdkMcpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SdkMcpServer");
        #[cfg(feature = "tools")]
        if let ServerKind::Tools { card, toolbox } = &self.kind {
            let tools = toolbox.tools();
            let names: Vec<&str> = tools.iter().map(Tool::name).collect();
            shown.field("name", &card.name).field("tools", &names);
        }
        shown.finish_non_exhaustive()
    }
}

/// A server, or a tool, that the CLI or the model could not use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct InvalidServer {
    problem: String,
}

impl InvalidServer {
    pub(super) fn new(problem: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
        }
    }
}

/// Checks the name of a server by the demands of the CLI and its permission rules.
pub(crate) fn check_server_name(name: &str) -> Result<(), &'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !(1..=64).contains(&name.len()) || !name.chars().all(allowed) {
        return Err("has to be 1 to 64 of the characters A-Z a-z 0-9 _ -");
    }
    // `mcp__a__b__c` could be tool `c` of `a__b`, or `b__c` of `a`, and a rule for one would hold for the other.
    if name.contains("__") || name.starts_with('_') || name.ends_with('_') {
        return Err(
            "has two underscores in a row, or one at its end, where the names of its tools (mcp__SERVER__TOOL) could be those \
             of another server",
        );
    }
    Ok(())
}
