//! `_meta.claudeCode.options`: options of the SDK, by the names that they have in TypeScript.

use std::collections::BTreeMap;
use std::path::PathBuf;

use agent_client_protocol::Error;
use outrigger::Options;
use outrigger::options::{SettingsInput, Skills, Tools, Worktree};
use outrigger::protocol::settings::{SandboxSettings, Settings};
use outrigger::protocol::shared::{AgentDefinition, JsonObject, McpServerConfig, OutputFormat};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::bad;

/// Options that the agent sets itself. Editors send them nonetheless, without effect.
const IGNORED: &[&str] = &[
    "abortController",
    "cwd",
    "forwardSubagentText",
    "includePartialMessages",
];

/// Options that the protocol or the agent has in another way, and what to do instead.
const REFUSED: &[(&str, &str)] = &[
    ("canUseTool", NO_CODE),
    ("continue", "use session/resume or session/load"),
    ("executable", "CLAUDE_CODE_EXECUTABLE names the CLI"),
    ("executableArgs", "CLAUDE_CODE_EXECUTABLE names the CLI"),
    ("forkSession", "use session/fork"),
    ("hooks", NO_CODE),
    ("onElicitation", NO_CODE),
    ("onUserDialog", NO_CODE),
    (
        "pathToClaudeCodeExecutable",
        "CLAUDE_CODE_EXECUTABLE names the CLI",
    ),
    ("permissionPromptToolName", "the user of the editor is asked"),
    ("permissionPrompts", "the user of the editor is asked"),
    ("resume", "use session/resume or session/load"),
    ("resumeDropsTurn", "use _session/rewind"),
    (
        "resumeSessionAt",
        "use _session/rewind, or session/fork with upToMessageId",
    ),
    ("sessionId", "the agent chooses the id"),
    ("spawnClaudeCodeProcess", NO_CODE),
    ("stderr", NO_CODE),
    (
        "systemPrompt",
        "use systemPrompt of the request, or _meta.systemPrompt",
    ),
];

const NO_CODE: &str = "no code can be handed over in a message";

const UNKNOWN: &str = "there is no such option here";

/// Whether an option of this name has an effect.
pub(crate) fn is_option(name: &str) -> bool {
    let is_without_effect = IGNORED.contains(&name) || REFUSED.iter().any(|(refused, _)| *refused == name);
    // Most options do not take `null`.
    let put = put(outrigger::Agent::builder(), name, &Value::Null);
    !is_without_effect && !put.is_err_and(|error| error.message.contains(UNKNOWN))
}

/// Applies one option.
pub(super) fn put(mut options: Options, name: &str, value: &Value) -> Result<Options, Error> {
    match name {
        name if IGNORED.contains(&name) => {}
        "additionalDirectories" => options
            .additional_directories
            .extend(read::<Vec<PathBuf>>(name, value)?),
        "agent" => options.agent = Some(read(name, value)?),
        "agentProgressSummaries" => options.agent_progress_summaries = read(name, value)?,
        "agents" => options
            .agents
            .extend(read::<BTreeMap<String, AgentDefinition>>(name, value)?),
        // An editor can only switch it off. Who runs the agent decides whether it is on.
        "allowDangerouslySkipPermissions" => {
            options.allow_dangerously_skip_permissions &= read::<bool>(name, value)?;
        }
        "allowedTools" => options.allowed_tools.extend(read::<Vec<String>>(name, value)?),
        "betas" => options.betas.extend(read::<Vec<String>>(name, value)?),
        "debug" => options.debug = read(name, value)?,
        "debugFile" => options.debug_file = Some(read(name, value)?),
        "disallowedTools" => options.disallowed_tools.extend(read::<Vec<String>>(name, value)?),
        "effort" => options.effort = Some(read(name, value)?),
        "enableFileCheckpointing" => options.enable_file_checkpointing = read(name, value)?,
        "env" => {
            for (name, value) in read::<BTreeMap<String, Option<String>>>(name, value)? {
                options.environment = match value {
                    Some(value) => options.environment.set(name, value),
                    None => options.environment.unset(name),
                };
            }
        }
        "extraArgs" => options
            .extra_args
            .extend(read::<BTreeMap<String, Option<String>>>(name, value)?),
        "fallbackModel" => options.fallback_model = Some(read(name, value)?),
        "includeHookEvents" => options.include_hook_events = read(name, value)?,
        "managedSettings" => options.managed_settings = Some(read::<Settings>(name, value)?.into()),
        "maxBudgetUsd" => options.max_budget_usd = Some(read(name, value)?),
        "maxThinkingTokens" => options.max_thinking_tokens = Some(read(name, value)?),
        "maxTurns" => options.max_turns = Some(read(name, value)?),
        "mcpServers" => options
            .mcp_servers
            .extend(read::<BTreeMap<String, McpServerConfig>>(name, value)?),
        "model" => options.model = Some(read(name, value)?),
        "outputFormat" => options.output_format = Some(output_format(name, value)?),
        "perTaskStopAffordance" => options.per_task_stop_affordance = read(name, value)?,
        "permissionMode" => options.permission_mode = Some(read(name, value)?),
        "persistSession" => options.persist_session = Some(read(name, value)?),
        "planModeInstructions" => options.plan_mode_instructions = Some(read(name, value)?),
        "plugins" => options.plugins.extend(read::<Vec<_>>(name, value)?),
        "projectConfigRoot" => options.project_config_root = Some(read(name, value)?),
        "promptSuggestions" => options.prompt_suggestions = read(name, value)?,
        "sandbox" => options.sandbox = Some(read::<SandboxSettings>(name, value)?.into()),
        "settingSources" => options.setting_sources = Some(read(name, value)?),
        "settings" => {
            options.settings = Some(match value {
                Value::String(file) => SettingsInput::File(file.into()),
                value => SettingsInput::from(read::<Settings>(name, value)?),
            });
        }
        "skills" => {
            options.skills = Some(match value {
                Value::String(all) if all == "all" => Skills::All,
                value => Skills::named(read::<Vec<String>>(name, value)?),
            });
        }
        "strictMcpConfig" => options.strict_mcp_config = Some(read(name, value)?),
        "taskBudget" => options.task_budget = Some(read::<TaskBudget>(name, value)?.total),
        "thinking" => options.thinking = Some(read(name, value)?),
        "title" => options.title = Some(read(name, value)?),
        "toolAliases" => options
            .tool_aliases
            .extend(read::<BTreeMap<String, String>>(name, value)?),
        "tools" => options.tools = Some(tools(name, value)?),
        "worktree" => {
            options.worktree = Some(match value {
                Value::Bool(true) => Worktree::Unnamed,
                value => Worktree::Named(read(name, value)?),
            });
        }
        "verbatimPrompts" => options.verbatim_prompts = read(name, value)?,
        name => {
            let refused = REFUSED.iter().find(|(refused, _)| *refused == name);
            let why = refused.map_or(UNKNOWN, |(_, why)| *why);
            return Err(wrong(name, why));
        }
    }
    Ok(options)
}

fn wrong(name: &str, why: impl std::fmt::Display) -> Error {
    bad(&format!("_meta.claudeCode.options.{name}"), why)
}

/// Decodes a value from its text, since some types keep the text. Some languages write 3 as 3.0.
fn read<T: DeserializeOwned>(name: &str, value: &Value) -> Result<T, Error> {
    let text = value.to_string();
    let text = match value {
        Value::Number(_) => text.strip_suffix(".0").unwrap_or(&text),
        _ => &text,
    };
    serde_json::from_str(text).map_err(|error| {
        let why = error.to_string();
        // The position in this text says nothing to the editor.
        let why = why.split(" at line ").next().unwrap_or_default();
        wrong(name, why)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskBudget {
    total: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Format {
    r#type: String,
    schema: JsonObject,
}

fn output_format(name: &str, value: &Value) -> Result<OutputFormat, Error> {
    let format: Format = read(name, value)?;
    match format.r#type.as_str() {
        "json_schema" => Ok(OutputFormat::JsonSchema {
            schema: format.schema,
        }),
        other => Err(wrong(name, format!("the type {other:?} is not \"json_schema\""))),
    }
}

fn tools(name: &str, value: &Value) -> Result<Tools, Error> {
    match value {
        Value::Object(preset)
            if preset.get("type").is_some_and(|kind| kind == "preset")
                && preset.get("preset").is_some_and(|preset| preset == "claude_code") =>
        {
            Ok(Tools::Preset)
        }
        value => Ok(Tools::Only(read(name, value)?)),
    }
}
