//! Requests of the host about its MCP servers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::context::Context;
use super::control::ControlReply;
use super::mcp;
use super::session::{failure, success};
use crate::fields::JsonFields as _;

/// While a request of the host is at work it hears this often that it is.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);

/// Answers a request about MCP servers; `None` is about something else.
pub(super) fn handle(
    ctx: &Arc<Context>,
    id: Option<&Value>,
    subtype: &str,
    request: &Value,
) -> Option<ControlReply> {
    let name = request["serverName"].as_str().unwrap_or_default();
    let transport = || mcp::transport(ctx, name);
    let unknown = || ControlReply::Error(format!("Server not found: {name}"));
    Some(match subtype {
        "mcp_call" => call(ctx, id, request),
        "mcp_toggle" => {
            if transport().is_none() {
                return Some(unknown());
            }
            let enabled = request["enabled"] != false;
            mcp::set_enabled(ctx, name, enabled);
            if enabled {
                spawn(ctx, None, reconnect(ctx.clone(), name.to_owned()));
            } else {
                spawn(ctx, None, forget(ctx.clone()));
            }
            ControlReply::Done
        }
        "mcp_reconnect" => {
            if transport().is_none() {
                return Some(unknown());
            }
            if transport().as_deref() == Some("sdk") {
                return Some(ControlReply::Error(
                    "SDK servers should be handled in print.ts".to_owned(),
                ));
            }
            mcp::set_enabled(ctx, name, true);
            spawn(ctx, id.cloned(), reconnect(ctx.clone(), name.to_owned()));
            ControlReply::Later
        }
        _ => return None,
    })
}

/// Connects the servers of the configuration, the first time.
pub(super) fn start(ctx: &Arc<Context>) {
    let configured = std::mem::take(&mut ctx.state().configured);
    for (name, config) in configured {
        let ctx_of_task = ctx.clone();
        let work = async move {
            mcp::connect_configured(&ctx_of_task, &name, &config).await;
            Ok(None)
        };
        spawn(ctx, None, work);
    }
}

/// Connects new servers: those that are processes before the answer, those of the host behind it.
pub(super) fn set(ctx: &Arc<Context>, id: Option<&Value>, set: mcp::Set) {
    let (task_ctx, id) = (ctx.clone(), id.cloned());
    let task = tokio::spawn(async move {
        let mut answer = set.answer;
        for (name, config) in set.configured {
            if let Some(error) = mcp::connect_configured(&task_ctx, &name, &config).await {
                answer["errors"][&name] = json!(error);
            }
        }
        mcp::tell_commands(&task_ctx).await;
        task_ctx.send(success(id.as_ref(), Some(answer))).await;
        mcp::connect(&task_ctx, &set.of_host, true, &Value::Null).await;
    });
    ctx.state().connecting.push(task.abort_handle());
}

/// The host takes back a request of its own.
pub(super) async fn cancel(ctx: &Context, id: &Value) {
    let call = ctx.state().calls.remove(&id.to_string());
    if let Some((server, handle)) = call {
        handle.abort();
        let error = format!("mcp_call cancelled by client: {server}");
        ctx.send(failure(Some(id), &error, None)).await;
    }
}

type McpAnswer = Result<Option<Value>, String>;

/// Answers once the work is done, if there is a request to answer.
fn spawn(
    ctx: &Arc<Context>,
    id: Option<Value>,
    work: impl Future<Output = McpAnswer> + Send + 'static,
) -> tokio::task::AbortHandle {
    let task_ctx = ctx.clone();
    let task = tokio::spawn(async move {
        let mut work = std::pin::pin!(work);
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut work => break answer,
                () = tokio::time::sleep(SIGN_OF_LIFE) => {
                    if id.is_some() {
                        task_ctx.send(json!({"type": "keep_alive"})).await;
                    }
                }
            }
        };
        let Some(id) = id else { return };
        task_ctx.state().calls.remove(&id.to_string());
        let line = match answer {
            Ok(payload) => success(Some(&id), payload),
            Err(error) => failure(Some(&id), &error, None),
        };
        task_ctx.send(line).await;
    });
    let handle = task.abort_handle();
    ctx.state().connecting.push(handle.clone());
    handle
}

async fn reconnect(ctx: Arc<Context>, name: String) -> McpAnswer {
    if mcp::reconnect(&ctx, &name).await {
        Ok(None)
    } else {
        Err(format!("Failed to connect to {name}"))
    }
}

/// Tells the host, behind the answer, that the prompts of a server have gone.
async fn forget(ctx: Arc<Context>) -> McpAnswer {
    ctx.pause(ctx.config.latency).await;
    mcp::tell_commands(&ctx).await;
    Ok(None)
}

fn call(ctx: &Arc<Context>, id: Option<&Value>, request: &Value) -> ControlReply {
    let Some(tool) = request["tool"].as_str() else {
        return ControlReply::Error("mcp_call: tool must be a string".to_owned());
    };
    let Some(found) = mcp::find(ctx, tool) else {
        let server = tool.strip_prefix("mcp__").and_then(|tool| tool.split_once("__"));
        let server = server.map_or(tool, |(server, _)| server);
        return ControlReply::Error(format!("MCP server not connected: {server}"));
    };
    let (server, task_ctx) = (found.server.clone(), ctx.clone());
    if mcp::transport(ctx, &server).as_deref() == Some("sdk") {
        return ControlReply::Error(format!(
            "mcp_call does not support SDK MCP servers. SDK servers are caller-provided — invoke {server} directly."
        ));
    }
    let arguments = match &request["arguments"] {
        Value::Null => json!({}),
        arguments => arguments.clone(),
    };
    let work = async move {
        let result = mcp::call_tool(&task_ctx, &found, &arguments, None).await?;
        if result["isError"] == true {
            return Err(mcp::text_of(&result));
        }
        let mut payload = json!({"content": result["content"]});
        for key in ["structuredContent", "_meta"] {
            payload.put(key, result.get(key));
        }
        Ok(Some(payload))
    };
    let handle = spawn(ctx, id.cloned().or(Some(Value::Null)), work);
    if let Some(id) = id {
        ctx.state().calls.insert(id.to_string(), (server, handle));
    }
    ControlReply::Later
}
