//! Control requests of the host.

use std::sync::Arc;

use serde_json::{Value, json};

use super::context::{Abort, Context};
use super::hooks;
use super::mcp;
use super::session::{failure, success};
use super::structured::Schema;
use super::subagent::Definition;
use super::{
    BYPASS, background, commands, delivered, files, mcp_control, model, not_simulated, payload, settings,
    subagent,
};
use crate::fields::JsonFields as _;
use crate::flaw::Flaw;

pub(super) const MODES: &[&str] = &["acceptEdits", "auto", BYPASS, "default", "dontAsk", "plan"];

/// The reply to a request.
pub(super) enum ControlReply {
    /// A success without a payload.
    Done,
    /// Something, once it is there.
    Later,
    Payload(Value),
    Error(String),
    Coded(String, &'static str),
    /// An error with its code, and the model that stays.
    SameModel(String, &'static str),
    Unsupported,
}

/// Handles one request. Returns whether the process should end.
pub(super) async fn handle(ctx: &Arc<Context>, id: Option<&Value>, request: &Value) -> bool {
    let subtype = request["subtype"].as_str().unwrap_or("undefined");
    let switches = matches!(subtype, "set_model" | "apply_flag_settings");
    if switches && ctx.is_hooked("PreModelSwitch") {
        // The host gets a request meanwhile, and its reply comes the same way as this request.
        let (task_ctx, id, request) = (ctx.clone(), id.cloned(), request.clone());
        let task = tokio::spawn(async move { respond(&task_ctx, id.as_ref(), &request).await });
        ctx.state().connecting.push(task.abort_handle());
        return false;
    }
    respond(ctx, id, request).await
}

async fn respond(ctx: &Arc<Context>, id: Option<&Value>, request: &Value) -> bool {
    let subtype = request["subtype"].as_str().unwrap_or("undefined");
    let string = |key: &str| request[key].as_str();
    let reply = match subtype {
        "initialize" => return initialize(ctx, id, request).await,
        "interrupt" => interrupt(ctx, request).await,
        "end_session" => {
            ctx.send(success(id, None)).await;
            ctx.abort_turn(Abort::Interrupt).await;
            return true;
        }
        "cancel_async_message" => cancel(ctx, string("message_uuid").unwrap_or_default()).await,
        "claim_session" => claim(ctx, request),
        "set_model" if ctx.is_parked() => Some(ControlReply::Error(
            "not_claimed: this process is a spare waiting for claim_session; send this request after the claim"
                .to_owned(),
        )),
        "set_model" => {
            let before = ctx.state().model.clone();
            let reply = model::set(ctx, request).await;
            let mut state = ctx.state();
            // The exit code follows the last message, which is no result any more if the model is another one.
            state.last_is_error &= state.model == before;
            Some(reply)
        }
        "set_permission_mode" => set_mode(ctx, request, id).await,
        "set_max_thinking_tokens" => {
            let tokens = &request["max_thinking_tokens"];
            let display = &request["thinking_display"];
            let known = ["summarized", "omitted", "highlights"]
                .iter()
                .any(|known| display == known);
            if (tokens.is_null() || tokens.is_i64()) && (display.is_null() || known) {
                ctx.state().thinking = tokens.as_u64();
                Some(ControlReply::Done)
            } else {
                let what = "max_thinking_tokens must be an integer or null and thinking_display must be \"summarized\", \
                            \"omitted\", \"highlights\", or null";
                Some(ControlReply::Error(format!("set_max_thinking_tokens: {what}")))
            }
        }
        "mcp_status" => Some(ControlReply::Payload(mcp::status(ctx))),
        "mcp_set_servers" => match mcp::set(ctx, &request["servers"]) {
            Err(error) => Some(ControlReply::Error(error)),
            Ok(set) => {
                mcp_control::set(ctx, id, set);
                None
            }
        },
        "mcp_message" => {
            let (server, message) = (string("server_name").unwrap_or_default(), &request["message"]);
            // What it has no answer to it refuses at once.
            let is_refused = mcp::is_refused(message);
            if is_refused {
                mcp::receive(ctx, server, message).await;
            }
            ctx.send(success(id, None)).await;
            if !is_refused {
                mcp::receive(ctx, server, message).await;
            }
            None
        }
        "get_context_usage" => Some(ControlReply::Payload(context_usage(ctx))),
        "list_models" => Some(ControlReply::Payload(json!({"models": payload::models()}))),
        "get_binary_version" => Some(ControlReply::Payload(json!({
            "version": payload::VERSION, "buildTime": "2026-11-20T17:34:37Z", "oldestDesktopSdk": "0.3.280",
        }))),
        "stop_task" if !request["task_id"].is_string() => {
            Some(ControlReply::Error("stop_task: task_id must be a string".to_owned()))
        }
        "stop_task" => {
            let id = string("task_id").unwrap_or_default();
            background::stop(ctx, id, background::StoppedBy::Host).await;
            Some(ControlReply::Payload(json!({})))
        }
        "background_tasks" => {
            background::move_all(ctx).await;
            Some(ControlReply::Payload(json!({})))
        }
        "get_task_output" => Some(
            match background::output(ctx, string("task_id").unwrap_or_default()) {
                Some(output) => {
                    ControlReply::Payload(json!({"output": output, "total_bytes": output.len(), "truncated": false}))
                }
                None => ControlReply::Error(
                    "get_task_output: no shell or Monitor task with that task_id in this session".to_owned(),
                ),
            },
        ),
        "rename_session" => match string("title") {
            Some(title) => {
                rename(ctx, title).await;
                Some(ControlReply::Done)
            }
            None => Some(ControlReply::Error("rename_session: title must be a string".to_owned())),
        },
        "rewind_files" => Some(files::rewind(ctx, request).await),
        "set_has_subscribers" | "seed_read_state" | "set_prompt_suggestions_paused" => Some(ControlReply::Done),
        _ => Some(elsewhere(ctx, id, subtype, request).await),
    };
    let line = match reply {
        None | Some(ControlReply::Later) => return false,
        Some(ControlReply::Done) => success(id, None),
        Some(ControlReply::Payload(payload)) => success(id, Some(payload)),
        Some(ControlReply::Error(error)) => failure(id, &error, None),
        Some(ControlReply::Coded(error, code)) => failure(id, &error, Some(code)),
        Some(ControlReply::SameModel(error, code)) => {
            let mut line = failure(id, &error, Some(code));
            line["response"]["model"] = json!(ctx.state().model);
            line
        }
        Some(ControlReply::Unsupported) => {
            let error = format!("Unsupported control request subtype: {subtype}");
            failure(id, &error, Some("unsupported_request"))
        }
    };
    ctx.send(line).await;
    false
}

/// Requests that are answered in files of their own.
async fn elsewhere(ctx: &Arc<Context>, id: Option<&Value>, subtype: &str, request: &Value) -> ControlReply {
    if let Some(reply) = settings::handle(ctx, subtype, request).await {
        return reply;
    }
    if let Some(reply) = mcp_control::handle(ctx, id, subtype, request) {
        return reply;
    }
    match not_simulated::request(subtype) {
        Some(text) => {
            ctx.log.flaw(Flaw::new("control_request", text.clone()));
            ControlReply::Error(text)
        }
        None => ControlReply::Unsupported,
    }
}

async fn initialize(ctx: &Arc<Context>, id: Option<&Value>, request: &Value) -> bool {
    if let Some(error) = flaw(request) {
        ctx.send(failure(id, error, None)).await;
        return false;
    }
    let named = request["sdkMcpServers"].as_array().into_iter().flatten();
    let mut servers: Vec<String> = named
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    servers.extend(ctx.config.sdk_servers.iter().cloned());
    let (mut applied, of_host) = delivered::take(ctx, request);
    if let Some(recorded) = delivered::trust(ctx, request) {
        applied.insert("workspace_trust_recorded".to_owned(), recorded.into());
    }
    servers.extend(of_host);
    mcp_control::start(ctx);
    // The servers hear from us before the host gets its answer.
    let manifests = &request["sdkMcpServerManifests"];
    let told = mcp::connect(ctx, &servers, false, manifests).await;
    if let Some(title) = request["title"].as_str() {
        rename(ctx, title).await;
    }
    let commands = commands::listed(ctx);
    let (line, again) = {
        let mut state = ctx.state();
        if !state.initialized {
            if let Ok(schema) = Schema::read(&request["jsonSchema"]) {
                state.schema = Some(schema);
            }
            if let Some(agents) = Definition::read_all(&request["agents"]) {
                state.agents.extend(agents);
            }
            state.system_prompt = match &request["systemPrompt"] {
                Value::String(text) => Some(text.clone()),
                Value::Array(parts) => {
                    let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
                    Some(parts.join("\n"))
                }
                _ => state.system_prompt.take(),
            };
            if let Some(text) = request["appendSystemPrompt"].as_str() {
                state.appended_prompt = Some(text.to_owned());
            }
            let aliases = request["toolAliases"].as_object().into_iter().flatten();
            let aliases =
                aliases.filter_map(|(alias, tool)| Some((alias.clone(), tool.as_str()?.to_owned())));
            state.tool_aliases.extend(aliases);
            state.forward_text |= request["forwardSubagentText"] == true;
            state.forward_nested_calls |= request["forwardNestedSubagentToolCalls"] == true;
            state.spares_agents |= request["perTaskStopAffordance"] == true;
        }
        let session_state = match &state.deferred {
            Some(_) => "running",
            None => state.session_state,
        };
        let mut payload = payload::initialize(&ctx.config.home, &state.mode, &state.model, session_state);
        if !request["hooks"].is_null() {
            state.hooks = hooks::read(&request["hooks"]);
            payload["hooks_applied"] = json!(true);
        }
        payload["commands"] = commands;
        payload.merge(Value::Object(applied));
        payload.put("sdk_mcp_manifests_parked", (!manifests.is_null()).then_some(told));
        payload["agents"] = json!(subagent::listed(&ctx.config, &state));
        let mut line = success(id, Some(payload));
        line["response"]["pending_permission_requests"] = json!([]);
        line["response"]["pending_user_dialog_requests"] = json!([]);
        let begun = !state.queue.is_empty() || state.running || state.turns > 0;
        (line, std::mem::replace(&mut state.initialized, true) || begun)
    };
    ctx.send(line).await;
    if again {
        background::send_list(ctx).await;
    }
    false
}

/// Names the session.
pub(super) async fn rename(ctx: &Context, title: &str) {
    ctx.state().title = Some(title.to_owned());
    ctx.keep(|transcript| transcript.title(title));
    ctx.send_system("session_title_changed", json!({"title": title}))
        .await;
}

/// Becomes a session. As with the CLI, one that was refused can be claimed again.
fn claim(ctx: &Context, request: &Value) -> Option<ControlReply> {
    if !ctx.is_parked() {
        let error = "not_a_spare: claim_session is only accepted by a process started with --await-claim that has not been \
                     claimed yet";
        return Some(ControlReply::Error(error.to_owned()));
    }
    let cwd = request["cwd"].as_str().unwrap_or_default();
    if !cwd.starts_with('/') {
        let error = "cwd_not_found: the claim cwd does not exist or is not accessible";
        return Some(ControlReply::Error(error.to_owned()));
    }
    let mode = match request["permission_mode"].as_str() {
        Some(mode) if !MODES.contains(&mode) => {
            let error = format!(
                "permission_mode_not_claimable: Cannot set permission mode: must be one of {}",
                MODES.join(", ")
            );
            return Some(ControlReply::Error(error));
        }
        mode => mode,
    };
    ctx.claim(cwd.into());
    let mut state = ctx.state();
    if let Some(mode) = mode {
        state.mode = mode.to_owned();
    }
    let more = request["additional_directories"].as_array().into_iter().flatten();
    state
        .directories
        .extend(more.filter_map(|directory| directory.as_str().map(str::to_owned)));
    let mut reply = json!({
        "status": "ok", "cwd": cwd, "session_id": state.session_id, "sdk_mcp_settled": true,
        "parked_ms": ctx.log.elapsed().as_millis() as u64,
    });
    if request["include_initialize"] == true {
        reply["initialize"] =
            payload::initialize(&ctx.config.home, &state.mode, &state.model, state.session_state);
    }
    Some(ControlReply::Payload(reply))
}

/// The problem of an `initialize`, if there is one.
fn flaw(request: &Value) -> Option<&'static str> {
    let strings = |value: &Value| {
        value
            .as_array()
            .is_some_and(|list| list.iter().all(Value::is_string))
    };
    let matcher = |matcher: &Value| {
        strings(&matcher["hookCallbackIds"])
            && (matcher["matcher"].is_null() || matcher["matcher"].is_string())
    };
    let event = |matchers: &Value| {
        matchers
            .as_array()
            .is_some_and(|matchers| matchers.iter().all(matcher))
    };
    let hooks = &request["hooks"];
    if !hooks.is_null() && !hooks.as_object().is_some_and(|hooks| hooks.values().all(event)) {
        return Some(
            "initialize: hooks must map hook events to arrays of matchers carrying hookCallbackIds arrays and string \
             matchers",
        );
    }
    if !request["sdkMcpServers"].is_null() && !strings(&request["sdkMcpServers"]) {
        return Some(
            "initialize: sdkMcpServers and webSearchIsolationExemptMcpServers must be arrays of strings",
        );
    }
    None
}

async fn interrupt(ctx: &Context, request: &Value) -> Option<ControlReply> {
    let cancelled = if request["cancel_queued"] == true {
        let queue = std::mem::take(&mut ctx.state().queue);
        for prompt in &queue {
            ctx.send_lifecycle(prompt, "cancelled").await;
        }
        Some(
            queue
                .into_iter()
                .filter_map(|prompt| prompt.uuid)
                .collect::<Vec<String>>(),
        )
    } else {
        None
    };
    let (still_queued, early) = {
        let mut state = ctx.state();
        let early = !state.running && !state.queue.is_empty();
        state.abort_next |= early;
        (state.queued_uuids(), early)
    };
    if !ctx.state().spares_agents {
        background::stop_agents(ctx).await;
    }
    if !early {
        ctx.abort_turn(Abort::Interrupt).await;
    }
    let mut receipt = json!({"still_queued": still_queued});
    receipt.put("cancelled", cancelled);
    Some(ControlReply::Payload(receipt))
}

async fn cancel(ctx: &Context, uuid: &str) -> Option<ControlReply> {
    let prompt = {
        let mut state = ctx.state();
        let position = state
            .queue
            .iter()
            .position(|prompt| prompt.uuid.as_deref() == Some(uuid));
        position.and_then(|n| state.queue.remove(n))
    };
    Some(ControlReply::Payload(match prompt {
        Some(prompt) => {
            ctx.send_lifecycle(&prompt, "cancelled").await;
            json!({"cancelled": true, "message_uuid": uuid})
        }
        None => json!({"cancelled": false}),
    }))
}

async fn set_mode(ctx: &Context, request: &Value, id: Option<&Value>) -> Option<ControlReply> {
    let mode = match request["mode"].as_str() {
        Some("manual") => "default",
        Some(mode) if MODES.contains(&mode) => mode,
        _ => {
            let error = format!("Cannot set permission mode: must be one of {}", MODES.join(", "));
            return Some(ControlReply::Coded(error, "invalid_mode"));
        }
    };
    if ctx.state().settings.disable(mode) {
        let (why, code) = match mode {
            BYPASS => (
                " because it is disabled by settings or configuration",
                "bypass_disabled",
            ),
            _ => (": auto mode disabled by settings", "auto_mode_settings"),
        };
        let error = format!("Cannot set permission mode to {mode}{why}");
        return Some(ControlReply::Coded(error, code));
    }
    if mode == BYPASS && !ctx.config.may_bypass(&ctx.state().settings) {
        let error = "Cannot set permission mode to bypassPermissions because the session was not launched with \
                     --dangerously-skip-permissions";
        return Some(ControlReply::Coded(error.to_owned(), "bypass_not_launched"));
    }
    let changed = {
        let mut state = ctx.state();
        state.is_mode_answered = false;
        std::mem::replace(&mut state.mode, mode.to_owned()) != mode
    };
    ctx.send(success(id, Some(json!({"mode": mode})))).await;
    if changed {
        // The exit code follows the last message, which is no result any more.
        ctx.state().last_is_error = false;
        ctx.send_system("status", json!({"status": null, "permissionMode": mode}))
            .await;
    }
    None
}

fn context_usage(ctx: &Context) -> Value {
    let state = ctx.state();
    let (input, output) = state
        .used
        .values()
        .fold((0, 0), |sum, used| (sum.0 + used.input, sum.1 + used.output));
    // So much of the context the CLI keeps free.
    let (maximum, buffer) = (1_000_000_u64, 33_000);
    let used = input + output;
    let category = |id: &str, name: &str, tokens: u64, color: &str, kind: &str| json!({"id": id, "name": name, "tokens": tokens, "color": color, "kind": kind});
    json!({
        "categories": [
            category("messages", "Messages", used, "purple_FOR_SUBAGENTS_ONLY", "used"),
            category("autocompact_buffer", "Autocompact buffer", buffer, "inactive", "buffer"),
            category("free_space", "Free space", maximum.saturating_sub(used + buffer), "promptBorder", "free"),
        ],
        "totalTokens": used,
        "maxTokens": maximum,
        "rawMaxTokens": maximum,
        "autocompactSource": "model-default",
        "percentage": used * 100 / maximum,
        "gridRows": [],
        "model": state.model,
        "memoryFiles": [],
        "mcpTools": [],
        "mcpInstructions": [],
        "agents": [],
        "slashCommands": {"totalCommands": 0, "includedCommands": 0, "tokens": 0},
        "skills": {"totalSkills": 0, "includedSkills": 0, "tokens": 0, "skillFrontmatter": []},
        "autoCompactThreshold": maximum - buffer,
        "isAutoCompactEnabled": true,
        "messageBreakdown": {
            "toolCallTokens": 0, "toolResultTokens": 0, "attachmentTokens": 0, "assistantMessageTokens": output,
            "userMessageTokens": input, "redirectedContextTokens": 0, "unattributedTokens": 0,
            "toolCallsByType": [], "attachmentsByType": [],
        },
        "apiUsage": null,
    })
}
