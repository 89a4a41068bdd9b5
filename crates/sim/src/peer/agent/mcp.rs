//! MCP servers inside the host: the handshake, their tools, and messages both ways.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::brain::ToolOutcome;
use super::context::{Cancel, Context, HostReply};
use super::pipe::Pipe;
use super::{commands, payload};
use crate::fields::JsonFields as _;

/// The protocol that the CLI speaks with servers.
const PROTOCOL: &str = "2025-11-25";

/// How long a server may take to answer a message of the handshake.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A server that the host runs, or one of another kind, which this simulation cannot reach.
#[derive(Debug, Default)]
pub(super) struct Server {
    pub(super) name: String,
    status: Status,
    info: Value,
    tools: Vec<Value>,
    /// The prompts of the server, which are slash commands.
    prompts: Vec<Value>,
    /// The resources of the server, once the model has asked for them; nothing for a server without any.
    resources: Option<Option<Vec<Value>>>,
    next_id: u64,
    /// Whether the server came by `mcp_set_servers`.
    dynamic: bool,
    transport: String,
    /// The configuration of the server, if it is not a server of the host.
    config: Value,
    /// The way to it, if it is a process.
    pipe: Option<Pipe>,
    /// Why the server cannot be reached.
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Status {
    #[default]
    Pending,
    /// The server has failed once, and is tried again.
    Retrying,
    Connected,
    Failed,
    Disabled,
}

impl Server {
    fn new(name: &str, transport: &str, dynamic: bool) -> Self {
        Self {
            name: name.to_owned(),
            status: if transport == "sdk" {
                Status::Pending
            } else {
                Status::Failed
            },
            dynamic,
            transport: transport.to_owned(),
            ..Self::default()
        }
    }

    /// The scope of the server's configuration.
    fn source(&self) -> &str {
        if self.transport == "sdk" { "sdk" } else { "dynamic" }
    }

    fn status(&self) -> &'static str {
        match self.status {
            Status::Pending => "pending",
            Status::Connected => "connected",
            Status::Failed | Status::Retrying => "failed",
            Status::Disabled => "disabled",
        }
    }

    fn tool_names(&self) -> impl Iterator<Item = String> {
        self.tools
            .iter()
            .filter_map(|tool| Some(tool_name(&self.name, tool["name"].as_str()?)))
    }
}

/// The name under which the model knows a tool.
fn tool_name(server: &str, tool: &str) -> String {
    let plain = |name: &str| -> String {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        name.chars().map(|c| if allowed(c) { c } else { '_' }).collect()
    };
    format!("mcp__{}__{}", plain(server), plain(tool))
}

/// A tool of a server: who runs it, and its own name.
pub(super) struct FoundTool {
    pub(super) server: String,
    /// The name that the server gives itself.
    pub(super) server_shown: String,
    pub(super) tool: String,
}

/// The tool that the model knows by this name, with its server.
fn known<'a>(servers: &'a [Server], name: &str) -> Option<(&'a Server, &'a Value)> {
    let connected = servers.iter().filter(|server| server.status == Status::Connected);
    let mut tools = connected.flat_map(|server| server.tools.iter().map(move |tool| (server, tool)));
    tools.find(|(server, tool)| {
        let tool = tool["name"].as_str();
        tool.is_some_and(|tool| tool_name(&server.name, tool) == name)
    })
}

/// Finds the tool that the model knows by this name.
pub(super) fn find(ctx: &Context, name: &str) -> Option<FoundTool> {
    let state = ctx.state();
    let (server, tool) = known(&state.servers, name)?;
    Some(FoundTool {
        server: server.name.clone(),
        server_shown: server.info["name"].as_str().unwrap_or(&server.name).to_owned(),
        tool: tool["name"].as_str()?.to_owned(),
    })
}

/// The schema of the tool that the model knows by this name.
pub(super) fn schema(ctx: &Context, name: &str) -> Option<Value> {
    let state = ctx.state();
    known(&state.servers, name).map(|(_, tool)| tool["inputSchema"].clone())
}

/// Whether the server says that this tool changes nothing.
pub(super) fn only_reads(servers: &[Server], name: &str) -> bool {
    known(servers, name).is_some_and(|(_, tool)| tool["annotations"]["readOnlyHint"] == true)
}

/// The names of all tools of all servers.
pub(super) fn tool_names(servers: &[Server]) -> Vec<String> {
    let connected = servers.iter().filter(|server| server.status == Status::Connected);
    connected.flat_map(Server::tool_names).collect()
}

/// A name as it is shown: words apart, each with a large first letter.
pub(super) fn display_name(tool: &str) -> String {
    let words = tool.split(['_', '-', ' ']).map(|word| {
        let mut characters = word.chars();
        let first = characters.next().into_iter().flat_map(char::to_uppercase);
        first.chain(characters).collect::<String>()
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The servers in `system/init`.
pub(super) fn listed(servers: &[Server]) -> Value {
    let entry =
        |server: &Server| json!({"name": server.name, "status": server.status(), "source": server.source()});
    servers.iter().map(entry).collect()
}

/// What `mcp_status` answers.
pub(super) fn status(ctx: &Context) -> Value {
    let state = ctx.state();
    let servers: Vec<Value> = state
        .servers
        .iter()
        .map(|server| {
            let connected = server.status == Status::Connected;
            let scope = if server.dynamic || connected {
                "dynamic"
            } else {
                "user"
            };
            let mut entry = json!({
                "name": server.name, "status": server.status(), "transport": server.transport, "scope": scope,
                "source": server.source(),
            });
            if !server.config.is_null() {
                entry["config"] = server.config.clone();
                entry["scope"] = json!("dynamic");
            }
            entry.put("error", server.error.as_ref());
            if connected {
                entry["serverInfo"] = server.info.clone();
                let tools = server.tools.iter();
                entry["tools"] = tools
                    .map(|tool| {
                        let annotations = tool.get("annotations").cloned().unwrap_or_else(|| json!({}));
                        json!({"name": tool["name"], "annotations": annotations})
                    })
                    .collect();
            }
            entry
        })
        .collect();
    json!({"mcpServers": servers})
}

/// What is wrong with the configuration of a server, as `system/init` tells it.
pub(super) fn config_error(name: &str, config: &Value) -> Option<Value> {
    let (kind, why) = match config["type"].as_str().unwrap_or("stdio") {
        "stdio" if config["command"].is_string() => return None,
        "stdio" => (
            "invalid_config",
            format!("the configuration of the MCP server {name} has no command"),
        ),
        "http" | "sse" | "ws" | "sdk" => return None,
        kind => (
            "unknown_type",
            format!("the MCP server {name} has the unknown type {kind}"),
        ),
    };
    Some(json!({"name": name, "type": kind, "message": format!("Skipped: {why}")}))
}

/// What the host has told of a server, so that nobody needs to ask it.
struct Manifest {
    initialized: Value,
    tools: Option<Value>,
}

impl Manifest {
    /// Reads that of a server, if there is one. Returns what the host hears of it when it is of no use.
    fn read(manifests: &Value, name: &str) -> Option<Result<Self, &'static str>> {
        let manifest = match manifests {
            Value::Object(manifests) => manifests.get(name)?,
            other => other,
        };
        let initialized = &manifest["initializeResult"];
        Some(match initialized["protocolVersion"].as_str() {
            None => Err("malformed"),
            Some(PROTOCOL) => Ok(Self {
                initialized: initialized.clone(),
                tools: manifest.get("toolsListResult").cloned(),
            }),
            Some(_) => Err("protocol_version_mismatch"),
        })
    }
}

/// Adds servers of the host and begins to connect them. Servers that are there already are left alone. Returns what becomes of
/// what the host has told of them.
pub(super) async fn connect(ctx: &Arc<Context>, names: &[String], dynamic: bool, manifests: &Value) -> Value {
    let mut told = serde_json::Map::new();
    for name in names {
        let mut manifest = (!manifests.is_null())
            .then(|| Manifest::read(manifests, name))
            .flatten();
        let is_new = {
            let mut state = ctx.state();
            let is_new = state.server(name).is_none();
            if is_new {
                state.servers.push(Server::new(name, "sdk", dynamic));
            }
            is_new
        };
        if let Some(manifest) = &manifest {
            let outcome = match manifest {
                _ if !is_new => "already_connected",
                Ok(_) => "parked",
                Err(why) => why,
            };
            told.insert(name.clone(), json!(outcome));
        }
        if !is_new {
            continue;
        }
        let manifest = manifest.take().and_then(Result::ok);
        let first = match manifest {
            Some(_) => None,
            None => Some(send_initialize(ctx, name).await),
        };
        let (task_ctx, name) = (ctx.clone(), name.clone());
        let task = tokio::spawn(async move {
            if let Some(manifest) = manifest
                && take_in(&task_ctx, &name, manifest).await
            {
                return;
            }
            handshake(&task_ctx, &name, first).await;
        });
        ctx.state().connecting.push(task.abort_handle());
    }
    announce(ctx);
    Value::Object(told)
}

/// Connects a server by what the host has told of it. Returns whether that could be.
async fn take_in(ctx: &Context, name: &str, manifest: Manifest) -> bool {
    let set_next = |id: u64| {
        if let Some(server) = ctx.state().server_mut(name) {
            server.next_id = id;
        }
    };
    // The messages that are not sent count.
    set_next(1);
    let tools = match manifest.tools {
        _ if manifest.initialized["capabilities"]["tools"].is_null() => Some(Vec::new()),
        None => list(ctx, name, "tools").await,
        Some(listed) => listed["tools"].as_array().cloned(),
    };
    let Some(tools) = tools else {
        set_next(0);
        return false;
    };
    set_next(2);
    let connected = Connected {
        info: manifest.initialized["serverInfo"].clone(),
        tools,
        prompts: Vec::new(),
        has_resources: !manifest.initialized["capabilities"]["resources"].is_null(),
    };
    settle(ctx, name, Some(connected)).await;
    true
}

/// Wakes waiting tasks once all servers have settled.
fn announce(ctx: &Context) {
    let settled = ctx
        .state()
        .servers
        .iter()
        .all(|server| !matches!(server.status, Status::Pending | Status::Retrying));
    ctx.servers_settled.send_replace(settled);
}

/// Waits until no server is connecting any more.
pub(super) async fn settled(ctx: &Context) {
    // The sender lives as long as the context.
    let _ = ctx.servers_settled.subscribe().wait_for(|settled| *settled).await;
}

/// Adds a server that is not the host's, and begins to connect it if it is a process. Returns the problem, once
/// it is known.
pub(super) async fn connect_configured(ctx: &Arc<Context>, name: &str, config: &Value) -> Option<String> {
    let kind = config["type"].as_str().unwrap_or("stdio");
    let mut server = Server::new(name, kind, true);
    server.config = config.clone();
    if kind == "stdio" && config["args"].is_null() {
        server.config["args"] = json!([]);
    }
    if kind != "stdio" {
        server.error = Some(format!("{kind} servers are not simulated"));
    } else {
        match Pipe::start(ctx, name, config) {
            Ok(pipe) => {
                server.pipe = Some(pipe);
                server.status = Status::Pending;
            }
            Err(error) => server.error = Some(error),
        }
    }
    let error = server.error.clone();
    {
        let mut state = ctx.state();
        state.servers.retain(|known| known.name != name);
        state.servers.push(server);
    }
    announce(ctx);
    if error.is_none() {
        let connecting = async {
            let answer = send_initialize(ctx, name).await;
            handshake(ctx, name, Some(answer)).await;
        };
        let limit = ctx.config.mcp_timeout;
        if tokio::time::timeout(limit, connecting).await.is_err() {
            if let Some(server) = ctx.state().server_mut(name) {
                server.error = Some(format!(
                    "MCP server \"{name}\" connection timed out after {}ms",
                    limit.as_millis()
                ));
                // Its process ends.
                server.pipe = None;
            }
            settle(ctx, name, None).await;
        }
    }
    let mut state = ctx.state();
    let server = state.server_mut(name)?;
    if server.status == Status::Failed && server.error.is_none() {
        server.error = Some("Connection closed".to_owned());
    }
    server.error.clone()
}

/// The process of a server has ended.
pub(super) fn has_gone(ctx: &Context, name: &str, is_it: impl Fn(&Pipe) -> bool) {
    // Another one may have taken its name.
    if let Some(server) = ctx.state().server_mut(name)
        && server.pipe.take_if(|pipe| is_it(pipe)).is_some()
        && server.status != Status::Disabled
    {
        server.status = Status::Failed;
        server.error = Some("Connection closed".to_owned());
    }
    announce(ctx);
}

async fn send_initialize(ctx: &Context, name: &str) -> oneshot::Receiver<HostReply> {
    // Servers of the host can't send requests through the CLI.
    let is_process = pipe_of(ctx, name).is_some();
    let capabilities = if is_process {
        json!({"elicitation": {}})
    } else {
        json!({})
    };
    let params = json!({
        "protocolVersion": PROTOCOL,
        "capabilities": capabilities,
        "clientInfo": {
            "name": "claude-code", "title": "Claude Code", "description": "Anthropic's agentic coding tool",
            "websiteUrl": "https://claude.com/claude-code", "version": payload::VERSION,
        },
    });
    call(ctx, name, "initialize", params).await.1
}

/// Sends a JSON-RPC request and gives its id.
async fn call(ctx: &Context, name: &str, method: &str, params: Value) -> (u64, oneshot::Receiver<HostReply>) {
    let id = {
        let mut state = ctx.state();
        match state.server_mut(name) {
            Some(server) => {
                server.next_id += 1;
                server.next_id - 1
            }
            None => 0,
        }
    };
    let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
    if !params.is_null() {
        if method == "tools/call" {
            message["params"] = params;
            message["params"]["_meta"]["progressToken"] = json!(id);
        } else {
            message["params"] = params;
        }
    }
    // Calls of the host do not belong to the turn.
    let of_turn = message["params"]["_meta"]["claudecode/toolUseId"].is_string();
    let cancel = if of_turn {
        Cancel::Mcp {
            server: name.to_owned(),
            id,
        }
    } else {
        Cancel::Never
    };
    (id, send(ctx, name, message, cancel).await)
}

fn pipe_of(ctx: &Context, name: &str) -> Option<Pipe> {
    let state = ctx.state();
    let server = state.server(name)?;
    server.pipe.clone()
}

/// Answers a request of a server.
pub(super) async fn reply(ctx: &Context, server: &str, response: Value) {
    drop(send(ctx, server, response, Cancel::Never).await);
}

async fn send(ctx: &Context, server: &str, message: Value, cancel: Cancel) -> oneshot::Receiver<HostReply> {
    if let Some(pipe) = pipe_of(ctx, server) {
        return pipe.send(message).await;
    }
    if transport(ctx, server).is_some_and(|transport| transport != "sdk") {
        // Its process has ended: the sender goes at once, and that is the answer.
        return oneshot::channel().1;
    }
    let request = json!({"subtype": "mcp_message", "server_name": server, "message": message});
    ctx.request(request, cancel).await.1
}

/// Takes back a tool call.
pub(super) async fn cancel_call(ctx: &Context, server: &str, id: u64) {
    let message = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": id, "reason": "AbortError: remote-cancel"},
    });
    drop(send(ctx, server, message, Cancel::Never).await);
}

/// The result of a JSON-RPC request, or the reason of its failure.
async fn result(answer: oneshot::Receiver<HostReply>) -> Result<Value, String> {
    match answer.await {
        Ok(HostReply::Success(payload)) => {
            let response = &payload["mcp_response"];
            if let Some(error) = response.get("error") {
                return Err(error["message"]
                    .as_str()
                    .unwrap_or("an error without a message")
                    .to_owned());
            }
            match response.get("result") {
                Some(result) => Ok(result.clone()),
                // An answer without a response counts as none.
                None => std::future::pending().await,
            }
        }
        Ok(HostReply::Error(error)) => Err(error),
        Ok(HostReply::Closed) | Err(_) => Err("the host has closed its input".to_owned()),
    }
}

/// Takes a server from its first message to the list of its tools; tries twice.
async fn handshake(ctx: &Context, name: &str, mut first: Option<oneshot::Receiver<HostReply>>) {
    let mut connected = None;
    for _ in 0..2 {
        let answer = match first.take() {
            Some(answer) => answer,
            None => send_initialize(ctx, name).await,
        };
        connected = attempt(ctx, name, answer).await;
        if connected.is_some() || ctx.state().closed {
            break;
        }
        if let Some(server) = ctx.state().server_mut(name) {
            server.status = Status::Retrying;
        }
    }
    settle(ctx, name, connected).await;
}

/// Notes that a server is connected, with what it says of itself, or that it is not.
async fn settle(ctx: &Context, name: &str, connected: Option<Connected>) {
    if let Some(server) = ctx.state().server_mut(name) {
        match connected {
            Some(connected) => {
                server.status = Status::Connected;
                server.info = connected.info;
                server.tools = connected.tools;
                server.prompts = connected.prompts;
                server.resources = connected.has_resources.then_some(None);
            }
            None => server.status = Status::Failed,
        }
    }
    tell_commands(ctx).await;
    announce(ctx);
}

/// What a server says of itself, its tools and its prompts.
struct Connected {
    info: Value,
    tools: Vec<Value>,
    prompts: Vec<Value>,
    has_resources: bool,
}

/// Tells the host of its slash commands, if prompts of servers have come or gone.
pub(super) async fn tell_commands(ctx: &Context) {
    let names: Vec<String> = prompts(&ctx.state().servers).map(|prompt| prompt.name).collect();
    let told = std::mem::replace(&mut ctx.state().told_prompts, names.clone());
    if told != names {
        let commands = commands::listed(ctx);
        ctx.send_system("commands_changed", json!({"commands": commands}))
            .await;
    }
}

/// A prompt of a server, as a slash command.
pub(super) struct McpPrompt {
    pub(super) name: String,
    server: String,
    prompt: Value,
}

/// The names of the servers that are connected.
pub(super) fn connected(servers: &[Server]) -> impl Iterator<Item = &str> {
    let connected = servers.iter().filter(|server| server.status == Status::Connected);
    connected.map(|server| server.name.as_str())
}

/// The names of those that have resources.
pub(super) fn with_resources(servers: &[Server]) -> impl Iterator<Item = &str> {
    let have = servers
        .iter()
        .filter(|server| server.status == Status::Connected && server.resources.is_some());
    have.map(|server| server.name.as_str())
}

/// The prompts of all servers.
pub(super) fn prompts(servers: &[Server]) -> impl Iterator<Item = McpPrompt> {
    let connected = servers.iter().filter(|server| server.status == Status::Connected);
    connected.flat_map(|server| {
        server.prompts.iter().filter_map(|prompt| {
            Some(McpPrompt {
                name: tool_name(&server.name, prompt["name"].as_str()?),
                server: server.name.clone(),
                prompt: prompt.clone(),
            })
        })
    })
}

impl McpPrompt {
    fn arguments(&self) -> impl Iterator<Item = &str> {
        let arguments = self.prompt["arguments"].as_array().into_iter().flatten();
        arguments.filter_map(|argument| argument["name"].as_str())
    }

    /// The command among those of `initialize`.
    pub(super) fn listed(&self) -> Value {
        let name = self.prompt["name"].as_str().unwrap_or_default();
        json!({
            "name": format!("{}:{name} (MCP)", self.server), "description": self.prompt["description"],
            "argumentHint": "",
        })
    }

    /// The text of the prompt with these arguments, each of which is a word.
    pub(super) async fn text(&self, ctx: &Context, arguments: &str) -> Result<String, String> {
        let words = arguments.split_whitespace().map(|word| json!(word));
        let arguments: serde_json::Map<String, Value> =
            self.arguments().map(str::to_owned).zip(words).collect();
        let params = json!({"name": self.prompt["name"], "arguments": arguments});
        let result = ask(ctx, &self.server, "prompts/get", params).await?;
        let messages = result["messages"].as_array().into_iter().flatten();
        let texts: Vec<&str> = messages
            .filter_map(|message| message["content"]["text"].as_str())
            .collect();
        Ok(texts.join("\n"))
    }
}

async fn attempt(ctx: &Context, name: &str, answer: oneshot::Receiver<HostReply>) -> Option<Connected> {
    let timed = |answer| tokio::time::timeout(TIMEOUT, answer);
    let initialized = timed(Box::pin(result(answer))).await.ok()?.ok()?;
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let ack = send(ctx, name, notification, Cancel::Never).await;
    // Any answer will do, but there must be one.
    match tokio::time::timeout(TIMEOUT, ack).await {
        Ok(Ok(HostReply::Success(_) | HostReply::Error(_))) => {}
        _ => return None,
    }
    let tools = list(ctx, name, "tools").await?;
    let has = |what: &str| !initialized["capabilities"][what].is_null();
    // Those of servers of the host are no commands.
    let prompts = match has("prompts") && pipe_of(ctx, name).is_some() {
        true => list(ctx, name, "prompts").await.unwrap_or_default(),
        false => Vec::new(),
    };
    Some(Connected {
        info: initialized["serverInfo"].clone(),
        tools,
        prompts,
        has_resources: has("resources"),
    })
}

/// The resources of a server, which it is asked for once.
pub(super) async fn resources(ctx: &Context, name: &str) -> Vec<Value> {
    let known = ctx
        .state()
        .server(name)
        .and_then(|server| server.resources.clone());
    match known {
        None => Vec::new(),
        Some(Some(known)) => known,
        Some(None) => {
            let listed = list(ctx, name, "resources").await;
            if let Some(server) = ctx.state().server_mut(name) {
                server.resources = Some(listed.clone());
            }
            listed.unwrap_or_default()
        }
    }
}

/// What a server has of this kind: `tools`, `prompts` or `resources`.
async fn list(ctx: &Context, name: &str, what: &str) -> Option<Vec<Value>> {
    let (_, answer) = call(ctx, name, &format!("{what}/list"), Value::Null).await;
    let listed = tokio::time::timeout(TIMEOUT, result(answer)).await.ok()?.ok()?;
    Some(listed[what].as_array().cloned().unwrap_or_default())
}

/// Calls a tool and returns the server's result.
pub(super) async fn call_tool(
    ctx: &Context,
    found: &FoundTool,
    input: &Value,
    tool_use_id: Option<&str>,
) -> Result<Value, String> {
    let mut params = json!({"name": found.tool, "arguments": input, "_meta": {}});
    params["_meta"].put("claudecode/toolUseId", tool_use_id);
    let (id, answer) = call(ctx, &found.server, "tools/call", params).await;
    let in_a_process = tool_use_id.is_some() && pipe_of(ctx, &found.server).is_some();
    if in_a_process {
        ctx.state().piped.push((found.server.clone(), id));
    }
    let result = result(answer).await;
    if in_a_process {
        let over = |call: &(String, u64)| call.0 == found.server && call.1 == id;
        ctx.state().piped.retain(|call| !over(call));
    }
    result
}

/// Sends a request to a server.
pub(super) async fn ask(ctx: &Context, server: &str, method: &str, params: Value) -> Result<Value, String> {
    let (_, answer) = call(ctx, server, method, params).await;
    result(answer).await
}

/// The texts of a tool's result.
pub(super) fn text_of(result: &Value) -> String {
    let texts = result["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = texts.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// How a server is reached; none if there is no such server.
pub(super) fn transport(ctx: &Context, name: &str) -> Option<String> {
    let state = ctx.state();
    let server = state.server(name)?;
    Some(server.transport.clone())
}

/// Whether a server is connected.
pub(super) fn is_connected(ctx: &Context, name: &str) -> bool {
    let state = ctx.state();
    state
        .server(name)
        .is_some_and(|server| server.status == Status::Connected)
}

/// Takes a server away for now, or lets it be connected again.
pub(super) fn set_enabled(ctx: &Context, name: &str, enabled: bool) {
    let mut state = ctx.state();
    if let Some(server) = state.server_mut(name) {
        server.status = match (enabled, server.transport.as_str()) {
            (false, _) => Status::Disabled,
            (true, "sdk") => Status::Pending,
            (true, _) => Status::Failed,
        };
    }
    drop(state);
    announce(ctx);
}

/// Reconnects a server. Returns whether that worked.
pub(super) async fn reconnect(ctx: &Arc<Context>, name: &str) -> bool {
    let config = {
        let state = ctx.state();
        let config = state.server(name).map(|server| server.config.clone());
        config.filter(|config| !config.is_null())
    };
    if let Some(config) = config {
        return connect_configured(ctx, name, &config).await.is_none();
    }
    let answer = send_initialize(ctx, name).await;
    handshake(ctx, name, Some(answer)).await;
    is_connected(ctx, name)
}

/// Runs a tool of a server.
pub(super) async fn run(ctx: &Context, found: &FoundTool, input: &Value, tool_use_id: &str) -> ToolOutcome {
    let result = match call_tool(ctx, found, input, Some(tool_use_id)).await {
        Ok(result) => result,
        Err(error) => return ToolOutcome::error(error),
    };
    if let Some(place) = malformed(&result) {
        let server = &found.server;
        return ToolOutcome::error(format!(
            "MCP server \"{server}\" returned a malformed result: {place} is no content"
        ));
    }
    if result["isError"] == true {
        let text = text_of(&result);
        return ToolOutcome::error(if text.is_empty() {
            "Unknown error".to_owned()
        } else {
            text
        });
    }
    let mut outcome = ToolOutcome::text("");
    let mut details = json!({});
    if let Some(structured) = result.get("structuredContent") {
        outcome.content = json!(structured.to_string());
        details["content"] = outcome.content.clone();
        details["structuredContent"] = structured.clone();
        details.put("_meta", result.get("_meta"));
        return outcome.with_details(details);
    }
    let blocks = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    let shown = blocks.iter().flat_map(|block| shown(ctx, &found.server, block));
    outcome.content = Value::Array(shown.collect());
    details["content"] = outcome.content.clone();
    // The model gets no notes about a text.
    for block in outcome.content.as_array_mut().into_iter().flatten() {
        if let Some(block) = block.as_object_mut() {
            block.shift_remove("_meta");
        }
    }
    let links = blocks.iter().filter(|block| block["type"] == "resource_link");
    let links: Vec<Value> = links.map(link).collect();
    if !links.is_empty() {
        details["resourceLinks"] = json!(links);
    }
    details.put("_meta", result.get("_meta"));
    let has_more = details.as_object().is_some_and(|details| details.len() > 1);
    outcome.details = if has_more {
        details
    } else {
        details["content"].take()
    };
    if blocks.iter().all(|block| block["text"] == "") {
        let name = tool_name(&found.server, &found.tool);
        outcome.content = json!(format!("({name} completed with no output)"));
    }
    outcome
}

/// Whether a text could be data.
fn is_base64(text: &Value) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/= \t\r\n".contains(&byte);
    text.as_str().is_some_and(|text| text.bytes().all(is_digit))
}

/// The place in a result at which something stands that is no content; none if there is nothing of the kind.
fn malformed(result: &Value) -> Option<String> {
    let is_block = |block: &Value| {
        let has = |value: &Value, keys: &[&str]| keys.iter().all(|key| value[*key].is_string());
        match block["type"].as_str() {
            Some("text") => has(block, &["text"]),
            Some("image" | "audio") => has(block, &["data", "mimeType"]) && is_base64(&block["data"]),
            Some("resource_link") => has(block, &["uri", "name"]),
            Some("resource") => {
                let resource = &block["resource"];
                has(resource, &["uri"]) && (has(resource, &["text"]) || is_base64(&resource["blob"]))
            }
            _ => false,
        }
    };
    match result.get("content")? {
        Value::Array(blocks) => {
            let at = blocks.iter().position(|block| !is_block(block))?;
            Some(format!("content[{at}]"))
        }
        _ => Some("content".to_owned()),
    }
}

/// The kind of picture that data is, by what it begins with.
fn picture_kind(data: &[u8]) -> Option<&'static str> {
    let begins = |beginning: &[u8]| data.starts_with(beginning);
    if begins(b"RIFF") && data.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    let kinds: [(&[u8], _); 3] = [
        (b"\x89PNG", "image/png"),
        (b"\xFF\xD8\xFF", "image/jpeg"),
        (b"GIF8", "image/gif"),
    ];
    let kind = kinds.into_iter().find(|(beginning, _)| begins(beginning));
    kind.map(|(_, kind)| kind)
}

/// A picture, as the model gets it, and where it is kept.
fn picture(ctx: &Context, kind: &str, data: &str) -> [Value; 2] {
    let text = |text: String| json!({"type": "text", "text": text});
    let (path, bytes) = saved(ctx, kind, data);
    match picture_kind(&bytes) {
        Some(kind) => {
            let source = json!({"type": "base64", "media_type": kind, "data": data});
            [
                json!({"type": "image", "source": source}),
                text(format!("[Image: source: {path}]")),
            ]
        }
        None => [
            text("[Image could not be processed: the data is no PNG, JPEG, GIF or WebP]".to_owned()),
            text(format!("[Image source: {path}]")),
        ],
    }
}

/// A link to a resource, as the host gets it.
fn link(block: &Value) -> Value {
    let mut link = block.clone();
    if let Some(link) = link.as_object_mut() {
        link.shift_remove("type");
    }
    link
}

/// Keeps data in a file. Gives the path of the file, and the bytes.
fn saved(ctx: &Context, kind: &str, data: &str) -> (String, Vec<u8>) {
    let end = match kind.rsplit('/').next().unwrap_or_default() {
        "octet-stream" | "" => "bin",
        end => end,
    };
    let path = format!("{}.{end}", ctx.result_file().trim_end_matches(".txt"));
    let bytes = STANDARD.decode(data).unwrap_or_default();
    if ctx.config.real_tools {
        // Without the file the host still knows what was to be in it.
        let _ = Path::new(&path).parent().map(std::fs::create_dir_all);
        let _ = std::fs::write(&path, &bytes);
    }
    (path, bytes)
}

/// Keeps a resource that is no text in a file. Gives the path of the file, and what the model reads of the resource.
pub(super) fn keep_blob(ctx: &Context, server: &str, resource: &Value) -> (String, String) {
    let field = |key: &str| resource[key].as_str().unwrap_or_default();
    let (uri, kind) = (field("uri"), field("mimeType"));
    let (path, bytes) = saved(ctx, kind, field("blob"));
    let size = bytes.len();
    let text =
        format!("[Resource from {server} at {uri}] Binary content ({kind}, {size} bytes) saved to {path}");
    (path, text)
}

/// A block of a result, as the model gets it. What is no text is kept in a file.
fn shown(ctx: &Context, server: &str, block: &Value) -> Vec<Value> {
    let text = |text: String| json!({"type": "text", "text": text});
    let field = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let kind = field(block, "mimeType");
    let data = field(block, "data");
    match block["type"].as_str() {
        Some("image") => picture(ctx, &kind, &data).to_vec(),
        Some("audio") => {
            let (path, bytes) = saved(ctx, &kind, &data);
            let size = bytes.len();
            let what = format!("Binary content ({kind}, {size} bytes) saved to {path}");
            vec![text(format!("[Audio from {server}] {what}"))]
        }
        Some("resource") if block["resource"]["text"].is_string() => {
            let (uri, said) = (
                field(&block["resource"], "uri"),
                field(&block["resource"], "text"),
            );
            vec![text(format!("[Resource from {server} at {uri}] {said}"))]
        }
        Some("resource") if field(&block["resource"], "mimeType").starts_with("image/") => {
            let resource = &block["resource"];
            let whose = format!("[Resource from {server} at {}]", field(resource, "uri"));
            let [shown, place] = picture(ctx, &field(resource, "mimeType"), &field(resource, "blob"));
            vec![text(whose), shown, place]
        }
        Some("resource") => vec![text(keep_blob(ctx, server, &block["resource"]).1)],
        Some("text") => {
            let mut text = text(field(block, "text"));
            text.put("_meta", block.get("_meta"));
            vec![text]
        }
        Some("resource_link") => {
            let about = block["description"].as_str().map(|about| format!(" ({about})"));
            let (name, uri) = (field(block, "name"), field(block, "uri"));
            vec![text(format!(
                "[Resource link: {name}] {uri}{}",
                about.unwrap_or_default()
            ))]
        }
        _ => vec![block.clone()],
    }
}

/// Whether a message from a server of the host is a request that the CLI does not know.
pub(super) fn is_refused(message: &Value) -> bool {
    let method = message["method"].as_str();
    message.get("id").is_some() && method.is_some_and(|method| method != "ping")
}

/// A message from a server of the host: a change of its tools, or a request of its own.
pub(super) async fn receive(ctx: &Arc<Context>, server: &str, message: &Value) {
    if ctx.state().server(server).is_none() {
        return;
    }
    let response = match (message["method"].as_str(), message.get("id")) {
        (Some("notifications/tools/list_changed"), _) => {
            let (ctx_of_task, name) = (ctx.clone(), server.to_owned());
            let task = tokio::spawn(async move {
                if let Some(tools) = list(&ctx_of_task, &name, "tools").await
                    && let Some(server) = ctx_of_task.state().server_mut(&name)
                {
                    server.tools = tools;
                }
            });
            ctx.state().connecting.push(task.abort_handle());
            return;
        }
        _ if is_refused(message) => json!({
            "jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"},
        }),
        (Some("ping"), Some(id)) => json!({"result": {}, "jsonrpc": "2.0", "id": id}),
        _ => return,
    };
    drop(send(ctx, server, response, Cancel::Never).await);
}

/// The result of `mcp_set_servers`, and the servers still to connect.
pub(super) struct Set {
    /// The reply, without errors of the servers that are still to be connected.
    pub(super) answer: Value,
    /// Servers of the host, which are connected behind the answer.
    pub(super) of_host: Vec<String>,
    /// Others, which are connected first.
    pub(super) configured: Vec<(String, Value)>,
}

/// `mcp_set_servers`: replaces the dynamic servers.
pub(super) fn set(ctx: &Context, servers: &Value) -> Result<Set, String> {
    let Some(wanted) = servers
        .as_object()
        .filter(|servers| servers.values().all(Value::is_object))
    else {
        return Err("mcp_set_servers: servers must be an object of config objects".to_owned());
    };
    let mut state = ctx.state();
    let (mut added, mut sdk, mut configured) = (Vec::new(), Vec::new(), Vec::new());
    let mut errors = serde_json::Map::new();
    let gone =
        |server: &Server| (server.dynamic || server.transport == "sdk") && !wanted.contains_key(&server.name);
    let removed: Vec<String> = state
        .servers
        .iter()
        .filter(|server| gone(server))
        .map(|server| server.name.clone())
        .collect();
    state.servers.retain(|server| !gone(server));
    for (name, config) in wanted {
        if state.server(name).is_some() {
            continue;
        }
        added.push(name.clone());
        let kind = config["type"].as_str().unwrap_or("stdio");
        if kind == "sdk" {
            sdk.push(name.clone());
            continue;
        }
        if kind == "stdio" && !config["args"].is_array() {
            let error = "Spread syntax requires ...iterable not be null or undefined";
            errors.insert(name.clone(), json!(error));
            let mut server = Server::new(name, kind, true);
            server.config = config.clone();
            server.error = Some(error.to_owned());
            state.servers.push(server);
        } else {
            configured.push((name.clone(), config.clone()));
        }
    }
    Ok(Set {
        answer: json!({"added": added, "removed": removed, "errors": errors}),
        of_host: sdk,
        configured,
    })
}
