//! MCP servers that are processes of their own: the CLI is their client, over their stdin and stdout.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};

use super::context::{Cancel, Context, HostReply};
use super::environment;
use super::mcp;
use crate::fields::JsonFields as _;
use crate::running;

/// How many messages wait for a server that does not read.
const BACKLOG: usize = 64;

/// Requests that wait for the server, by their ids.
type Open = Arc<Mutex<HashMap<String, oneshot::Sender<HostReply>>>>;

/// The way to a server.
#[derive(Debug, Clone)]
pub(super) struct Pipe {
    lines: mpsc::Sender<Value>,
    open: Open,
}

impl Pipe {
    /// Starts a server by its configuration. It ends when its handle is dropped.
    pub(super) fn start(ctx: &Arc<Context>, name: &str, config: &Value) -> Result<Self, String> {
        let strings = |key: &str| -> Vec<String> {
            let list = config[key].as_array().into_iter().flatten();
            list.filter_map(|entry| entry.as_str().map(str::to_owned))
                .collect()
        };
        let environment = config["env"].as_object().into_iter().flatten();
        let environment =
            environment.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
        let mut server = Command::new(config["command"].as_str().unwrap_or_default());
        environment::of_server(ctx, &mut server);
        let child = server
            .args(strings("args"))
            .envs(environment)
            .current_dir(ctx.cwd())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| error.to_string())?;
        let (lines, waiting) = mpsc::channel(BACKLOG);
        let pipe = Self {
            lines,
            open: Arc::default(),
        };
        let task = tokio::spawn(run(
            ctx.clone(),
            name.to_owned(),
            child,
            waiting,
            pipe.open.clone(),
        ));
        ctx.state().connecting.push(task.abort_handle());
        Ok(pipe)
    }

    /// Sends a message. A request gets its answer; anything else counts as answered once it is on its way.
    pub(super) async fn send(&self, message: Value) -> oneshot::Receiver<HostReply> {
        let (sender, receiver) = oneshot::channel();
        let is_request = message["method"].is_string() && !message["id"].is_null();
        let id = message["id"].to_string();
        if is_request {
            lock(&self.open).insert(id.clone(), sender);
            if self.lines.send(message).await.is_err() {
                // Dropping the sender ends the wait.
                lock(&self.open).remove(&id);
            }
        } else if self.lines.send(message).await.is_ok() {
            let _ = sender.send(HostReply::Success(json!({})));
        }
        receiver
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries messages to and fro until either side ends.
async fn run(
    ctx: Arc<Context>,
    name: String,
    mut child: Child,
    mut waiting: mpsc::Receiver<Value>,
    open: Open,
) {
    if let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) {
        let mut lines = BufReader::new(stdout).lines();
        loop {
            tokio::select! {
                message = waiting.recv() => {
                    let Some(message) = message else { break };
                    let line = format!("{message}\n");
                    if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
                        break;
                    }
                }
                line = lines.next_line() => {
                    let Ok(Some(line)) = line else { break };
                    // Lines that are no JSON are log output.
                    if let Ok(message) = running::parse(&line) {
                        take(&ctx, &name, message, &open).await;
                    }
                }
            }
        }
    }
    lock(&open).clear();
    mcp::has_gone(&ctx, &name, |pipe| Arc::ptr_eq(&pipe.open, &open));
}

/// A message of a server: an answer, something of its own, or a question for the host.
async fn take(ctx: &Arc<Context>, name: &str, message: Value, open: &Open) {
    match message["method"].as_str() {
        None => {
            let waiting = lock(open).remove(&message["id"].to_string());
            if let Some(waiting) = waiting {
                let _ = waiting.send(HostReply::Success(json!({"mcp_response": message})));
            }
        }
        Some("elicitation/create") => {
            let (ctx, name) = (ctx.clone(), name.to_owned());
            // The host may take its time; the server may send other messages meanwhile.
            tokio::spawn(async move { elicit(&ctx, &name, &message).await });
        }
        // In a task of its own, since the reply to its message comes the same way.
        Some(_) => {
            let (ctx, name) = (ctx.clone(), name.to_owned());
            tokio::spawn(async move { mcp::receive(&ctx, &name, &message).await });
        }
    }
}

/// Hands a question of a server on to the host. An answer that is none counts as a refusal to answer.
async fn elicit(ctx: &Arc<Context>, name: &str, message: &Value) {
    let params = &message["params"];
    let mut request = json!({
        "subtype": "elicitation", "mcp_server_name": name, "message": params["message"],
        "mode": params["mode"].as_str().unwrap_or("form"),
    });
    if let Some(schema) = params.get("requestedSchema") {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let order: Vec<&String> = properties.map(|(name, _)| name).collect();
        request["property_order"] = json!(order);
        request["requested_schema"] = schema.clone();
    }
    for (from, to) in [("url", "url"), ("elicitationId", "elicitation_id")] {
        request.put(to, params.get(from));
    }
    let prompt_id = ctx.state().prompt_id.clone();
    if ctx.is_hooked("Elicitation") {
        let mut fields = request.clone();
        if let Some(fields) = fields.as_object_mut() {
            fields.retain(|key, _| key != "subtype" && key != "property_order");
        }
        // Whatever the hooks reply, the host gets the request.
        ctx.fire("Elicitation", Some(name), prompt_id.as_deref(), fields)
            .await;
    }
    let mode = request["mode"].clone();
    let (_, answer) = ctx.request(request, Cancel::Never).await;
    let result = match answer.await {
        Ok(HostReply::Success(answer)) if answer["action"].is_string() => answer,
        _ => json!({"action": "cancel"}),
    };
    let mut fields = json!({"mcp_server_name": name, "mode": mode, "action": result["action"]});
    fields.put("content", result.get("content"));
    ctx.fire("ElicitationResult", Some(name), prompt_id.as_deref(), fields)
        .await;
    mcp::reply(
        ctx,
        name,
        json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
    )
    .await;
}
