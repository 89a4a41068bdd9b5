//! The long payloads, with the fields that the CLI gives them.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::cost::Used;
use super::models::Model;
use super::subagent::Stats;
use crate::fields::JsonFields as _;

/// The CLI version whose behaviour is simulated.
pub(crate) const VERSION: &str = "2.1.332";

/// The default model.
pub(crate) const MODEL: &str = "claude-opus-5-5";

const INITIALIZE: &str = include_str!("initialize.json");
const INIT: &str = include_str!("init.json");
const SYNTHETIC: &str = include_str!("synthetic_message.json");

/// A template of ours; they are checked by a test.
fn template(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

/// One field of a template.
fn listed<T: DeserializeOwned + Default>(text: &str, field: &str) -> T {
    let value = template(text).remove(field);
    value
        .and_then(|value| serde_json::from_value(value).ok())
        .unwrap_or_default()
}

fn fill(text: &str, fields: Value) -> Value {
    let mut payload = Value::Object(template(text));
    payload.merge(fields);
    payload
}

/// The payload that answers `initialize`. The model of the session is listed behind those that there always are.
pub(crate) fn initialize(home: &str, mode: &str, model: &str, session_state: &str) -> Value {
    let fields = json!({
        "user_output_styles_dir": format!("{home}/.claude/output-styles"),
        "pid": std::process::id(),
        "claude_code_version": VERSION,
        "current_permission_mode": mode,
        "session_state": session_state,
    });
    let mut payload = fill(INITIALIZE, fields);
    if let Some(models) = payload["models"].as_array_mut()
        && !models.iter().any(|listed| listed["resolvedModel"] == model)
    {
        models.push(Model::of(model).listed(model));
    }
    payload
}

/// The fields of `system/init` about the session.
pub(in crate::peer) struct Init<'a> {
    pub(in crate::peer) cwd: &'a Path,
    pub(in crate::peer) project: &'a Path,
    pub(in crate::peer) home: &'a str,
    pub(in crate::peer) session_id: &'a str,
    pub(in crate::peer) model: &'a str,
    pub(in crate::peer) mode: &'a str,
    pub(in crate::peer) tools: Vec<String>,
    pub(in crate::peer) directories: &'a [String],
    pub(in crate::peer) mcp_servers: Value,
}

/// A `system/init` line, without its `uuid`.
pub(in crate::peer) fn init(about: &Init<'_>) -> Value {
    let project = about.project.to_string_lossy();
    // All worktrees of a project have one memory.
    let memory = project.split("/.claude/worktrees/").next().unwrap_or_default();
    let fields = json!({
        "type": "system",
        "subtype": "init",
        "tools": about.tools,
        "cwd": about.cwd.to_string_lossy(),
        "session_id": about.session_id,
        "mcp_servers": about.mcp_servers,
        "model": about.model,
        "permissionMode": about.mode,
        "claude_code_version": VERSION,
        "memory_paths": {"auto": format!("{}/.claude/projects/{}/memory/", about.home, super::transcript::project_name(memory))},
        "original_cwd": project,
        "additional_directories": about.directories,
        "per_turn_effort_active": Model::of(about.model).current,
        "messaging_socket_path": format!("/tmp/cc-socks/{}.sock", std::process::id()),
    });
    fill(INIT, fields)
}

/// The names of the tools that `system/init` lists.
pub(in crate::peer) fn tools() -> Vec<String> {
    listed(INIT, "tools")
}

/// The skills that `system/init` lists.
pub(super) fn skills() -> Vec<String> {
    listed(INIT, "skills")
}

/// The kinds of agents that the CLI brings, as `initialize` lists them. That about the CLI itself is not for the programs of SDKs.
pub(super) fn agents(entrypoint: &str) -> Vec<Value> {
    let mut agents: Vec<Value> = listed(INITIALIZE, "agents");
    agents.retain(|agent| {
        agent["name"] != "claude-code-guide" || !matches!(entrypoint, "sdk-cli" | "sdk-ts" | "sdk-py")
    });
    agents
}

/// The slash commands that `initialize` lists.
pub(super) fn commands() -> Vec<Value> {
    listed(INITIALIZE, "commands")
}

/// The models that `initialize` lists.
pub(super) fn models() -> Value {
    listed(INITIALIZE, "models")
}

/// A `usage` object of a message while it is under way.
pub(in crate::peer) fn usage_so_far(input: u64, output: u64) -> Value {
    json!({"input_tokens": input, "output_tokens": output, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0})
}

/// The result of a session that has ended with these errors.
pub(super) fn crashed(errors: Value) -> Value {
    json!({
        "type": "result", "subtype": "error_during_execution", "duration_ms": 0, "duration_api_ms": 0, "is_error": true,
        "num_turns": 0, "stop_reason": null, "total_cost_usd": 0, "usage": usage(0, 0), "modelUsage": {},
        "permission_denials": [], "errors": errors, "result_index": 0,
    })
}

/// The `usage` object of a `result`.
pub(in crate::peer) fn usage(input: u64, output: u64) -> Value {
    json!({
        "input_tokens": input,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output,
        "output_tokens_details": {"thinking_tokens": 0},
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "service_tier": "standard",
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
        "inference_geo": "",
        "iterations": [],
        "speed": "standard",
        "fallback_credit": null,
    })
}

/// One entry of `modelUsage`.
pub(in crate::peer) fn model_usage(model: &str, input: u64, output: u64) -> Value {
    let mut used = Used::default();
    used.add(model, input, output);
    used.entry(model)
}

/// What tokens cost in US dollars, at the default model's list price.
pub(in crate::peer) fn cost(input: u64, output: u64) -> f64 {
    let mut used = Used::default();
    used.add(MODEL, input, output);
    used.cost
}

/// The `subagent_stats` of a session that has started none.
pub(in crate::peer) fn subagent_stats() -> Value {
    Stats::default().to_json()
}

/// The message of an assistant line that the CLI made up itself.
pub(super) fn synthetic_message(id: &str, text: &str) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    fill(SYNTHETIC, json!({"id": id, "content": content}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_objects() {
        assert!(template(INITIALIZE).contains_key("commands"));
        assert!(template(SYNTHETIC).contains_key("usage"));
        assert!(tools().contains(&"Bash".to_owned()));
    }
}
