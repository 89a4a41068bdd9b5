//! What `initialize` brings in place of flags: settings, disallowed tools, MCP servers and plugins.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Config;
use super::context::Context;
use super::not_simulated::Feature;
use super::rules::SettingsPlace;
use super::{mcp, settings_files};

/// The fields that `--initialize-fields` may name, each with the flag that it replaces.
pub(in crate::peer) const FIELDS: [(&str, &str); 2] = [
    ("settings", "--settings"),
    ("disallowedTools", "--disallowedTools"),
];

/// Why the CLI ends at such a request, which is its first line.
pub(super) fn refusal(config: &Config, request: &Value) -> Option<String> {
    let names = |field: &str| config.initialize_fields.iter().any(|name| name == field);
    let (settings, tools) = (&request["settings"], &request["disallowedTools"]);
    if names("settings") && !settings.is_object() {
        return Some(
            "Error: --initialize-fields=settings requires initialize.settings to be a JSON object."
                .to_owned(),
        );
    }
    let is_list = |value: &Value| {
        let list = value.as_array();
        list.is_some_and(|list| list.iter().all(Value::is_string))
    };
    if names("disallowedTools") && !is_list(tools) {
        return Some(
            "Error: --initialize-fields=disallowedTools requires initialize.disallowedTools to be a list of strings."
                .to_owned(),
        );
    }
    let servers = &request["mcpServers"];
    if !servers.is_null() && !servers.is_object() {
        return Some(
            "Error: initialize.mcpServers must be a JSON object of MCP server configs keyed by server name."
                .to_owned(),
        );
    }
    let plugins = &request["plugins"];
    if !plugins.is_null() && !plugins.is_array() {
        return Some(
            "Error: initialize.plugins must be an array of { type: 'local', path: string, skipMcpDiscovery?: boolean } entries."
                .to_owned(),
        );
    }
    None
}

/// Lets the project grant permissions, if the host says that a person trusts it. Gives whether that is noted; nothing if nobody does.
pub(super) fn trust(ctx: &Context, request: &Value) -> Option<bool> {
    let trust = &request["workspaceTrust"];
    if trust["accepted"] != true || ctx.state().initialized {
        return None;
    }
    let directory = trust["directory"].as_str().unwrap_or_default();
    let directory = Path::new(directory);
    let is_real = |directory: PathBuf| directory == ctx.config.cwd;
    let is_here = directory == ctx.config.cwd || directory.canonicalize().is_ok_and(is_real);
    if !is_here || settings_files::note_trust(&ctx.config).is_err() {
        return Some(false);
    }
    let mut state = ctx.state();
    let mut rules = std::mem::take(&mut state.rules);
    state.settings.trust(&mut rules);
    state.rules = rules;
    Some(true)
}

/// Applies these fields of a request. Gives what the reply says of each that the request has, and the servers of the host.
pub(super) fn take(ctx: &Arc<Context>, request: &Value) -> (Map<String, Value>, Vec<String>) {
    let config = &ctx.config;
    let mut state = ctx.state();
    let is_first = config.await_initialize && !state.initialized;
    let counts = |field: &str| is_first && config.initialize_fields.iter().any(|name| name == field);
    let (mut applied, mut of_host) = (Map::new(), Vec::new());
    let mut tell = |field: &str, name: &str, is_applied: bool| {
        if !request[field].is_null() {
            applied.insert(name.to_owned(), is_applied.into());
        }
        is_applied && !request[field].is_null()
    };
    let has_settings = tell("settings", "settings_applied", counts("settings"));
    let has_tools = tell(
        "disallowedTools",
        "disallowed_tools_applied",
        counts("disallowedTools"),
    );
    let manages = is_first && config.unsimulated.contains(&Feature::ManagedSettings);
    tell("managedSettings", "managed_settings_applied", manages);
    if let (true, Some(settings)) = (has_settings, request["settings"].as_object()) {
        state
            .settings
            .set_flags(settings.clone(), SettingsPlace::Elsewhere);
    }
    if has_settings || has_tools {
        let mut disallowed = config.disallowed.clone();
        if has_tools {
            disallowed.extend(settings_files::strings(&request["disallowedTools"]));
        }
        state.configure(config, &disallowed);
    }
    if tell("mcpServers", "mcp_servers_applied", is_first) {
        for (name, server) in request["mcpServers"].as_object().into_iter().flatten() {
            match mcp::config_error(name, server) {
                Some(error) => state.server_errors.push(error),
                None if server["type"] == "sdk" => of_host.push(name.clone()),
                None => {
                    state.configured.retain(|(known, _)| known != name);
                    state.configured.push((name.clone(), server.clone()));
                }
            }
        }
    }
    if tell("plugins", "plugins_applied", is_first)
        && request["plugins"]
            .as_array()
            .is_some_and(|plugins| !plugins.is_empty())
    {
        state.unsimulated = Some(Feature::Plugins);
    }
    (applied, of_host)
}
