//! `initialize`: how a program introduces itself, and what the CLI tells in return.

mod reply;

pub use reply::*;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::control::request;
use crate::RawJson;
use crate::shared::closed_enum::closed_enum;
use crate::shared::{
    AgentDefinition, HookEvent, JsonObject, McpServerConfig, McpServerToolPolicy, PluginConfig, SystemPrompt,
};

request! {
    /// Introduces the program. Usually the first line; without it the first prompt starts the session with defaults. A later one is
    /// answered with the state at that time, and only some of it counts: hooks, title, in-process servers.
    pub struct Initialize {
        optional {
            /// Hooks, by event. Unknown events are accepted. What was given before is replaced.
            hooks: "hooks" => BTreeMap<String, Vec<HookCallbackMatcher>>,
            /// MCP servers in our own program, by name.
            sdk_mcp_servers: "sdkMcpServers" => Vec<String>,
            /// How the CLI treats these servers.
            sdk_mcp_server_configs: "sdkMcpServerConfigs" => BTreeMap<String, SdkMcpServerSettings>,
            /// What these servers would reply. With the manifests the CLI sends no requests for this.
            sdk_mcp_server_manifests: "sdkMcpServerManifests" => BTreeMap<String, SdkMcpServerManifest>,
            /// Where the manifests come from.
            sdk_mcp_server_manifests_origin: "sdkMcpServerManifestsOrigin" => ManifestsOrigin,
            /// The JSON Schema of the structured output. An invalid one switches structured output off without an error.
            json_schema: "jsonSchema" => JsonObject,
            /// The system prompt as texts. One empty text is an empty prompt; unset is the preset.
            system_prompt: "systemPrompt" => Vec<String>,
            /// What to say after the system prompt.
            append_system_prompt: "appendSystemPrompt" => String,
            /// Whether the session keeps the prompt it was started with when it is resumed.
            system_prompt_snapshot: "systemPromptSnapshot" => bool,
            /// Instructions for the model in plan mode.
            plan_mode_instructions: "planModeInstructions" => String,
            /// What to say after the system prompt of subagents.
            append_subagent_system_prompt: "appendSubagentSystemPrompt" => String,
            /// Other names of tools, for the model.
            tool_aliases: "toolAliases" => BTreeMap<String, String>,
            /// Tools of MCP servers that run code, by server.
            code_running_mcp_tools: "codeRunningMcpTools" => BTreeMap<String, Vec<String>>,
            /// Leaves out of the preset what changes from session to session.
            exclude_dynamic_sections: "excludeDynamicSections" => bool,
            /// Subagents, by name. If one is invalid the CLI silently drops all; see [`AgentDefinition::validate`].
            agents: "agents" => BTreeMap<String, AgentDefinition>,
            /// The session's name.
            title: "title" => String,
            /// The only skills that the model knows of.
            skills: "skills" => Vec<String>,
            /// MCP servers that keep their tools while web search is isolated.
            web_search_isolation_exempt_mcp_servers: "webSearchIsolationExemptMcpServers" => Vec<String>,
            /// Wants suggestions of prompts.
            prompt_suggestions: "promptSuggestions" => bool,
            /// Wants summaries of what subagents do, about every 30 s.
            agent_progress_summaries: "agentProgressSummaries" => bool,
            /// Wants text and thinking of subagents too.
            forward_subagent_text: "forwardSubagentText" => bool,
            /// Dialogs that we can show. The CLI asks for no other.
            supported_dialog_kinds: "supportedDialogKinds" => Vec<String>,
            /// We can show the offer to set up the browser.
            renders_chrome_setup_offer: "rendersChromeSetupOffer" => bool,
            /// Says that the program can stop single tasks, so that an interrupt spares tasks in the background.
            per_task_stop_affordance: "perTaskStopAffordance" => bool,
            /// Wants the tool calls of subagents' subagents too.
            forward_nested_subagent_tool_calls: "forwardNestedSubagentToolCalls" => bool,
            /// We offer to go back to bypassing permissions.
            offers_bypass_switch_back: "offersBypassSwitchBack" => bool,
            /// We keep bypassing permissions at hand.
            keeps_bypass_held: "keepsBypassHeld" => bool,
            /// Whether a prompt displaces another that was sent shortly before.
            rapid_followup_preempt: "rapidFollowupPreempt" => bool,
            /// Wants prompts of cloud sessions echoed before the session began.
            cloud_echo_before_init: "cloudEchoBeforeInit" => bool,
            /// Wants the status of cloud sessions before the session began.
            cloud_status_before_init: "cloudStatusBeforeInit" => bool,
            /// Plugins. Needs `--await-initialize`.
            plugins: "plugins" => Vec<PluginConfig>,
            /// MCP servers outside our program. Needs `--await-initialize`; keeps them off the command line.
            mcp_servers: "mcpServers" => BTreeMap<String, McpServerConfig>,
            /// The organization's settings. Needs `--managed-settings-in-initialize`.
            managed_settings: "managedSettings" => JsonObject,
            /// Settings as with `--settings`. Needs `--initialize-fields=settings`.
            settings: "settings" => JsonObject,
            /// Tools that may not be used. Needs `--initialize-fields=disallowedTools`.
            disallowed_tools: "disallowedTools" => Vec<String>,
            /// A person trusts the directory.
            workspace_trust: "workspaceTrust" => WorkspaceTrust,
            /// The request of a served session that this process is for.
            attach_serve_request: "attachServeRequest" => AttachServeRequest,
        }
        extra { extra }
    }
}

impl Initialize {
    /// Adds hook callbacks for an event.
    pub fn hook(mut self, event: &HookEvent, matcher: HookCallbackMatcher) -> Self {
        self.hooks
            .get_or_insert_default()
            .entry(event.as_str().to_owned())
            .or_default()
            .push(matcher);
        self
    }

    /// Spreads a system prompt over the fields that it goes into. `None` is the empty prompt, as with the official SDKs.
    pub fn prompt(mut self, prompt: Option<&SystemPrompt>) -> Self {
        match prompt {
            None => self.system_prompt = Some(vec![String::new()]),
            Some(SystemPrompt::Text(text)) => self.system_prompt = Some(vec![text.clone()]),
            Some(SystemPrompt::List(texts)) => self.system_prompt = Some(texts.clone()),
            Some(SystemPrompt::Custom { prompt, snapshot }) => {
                self.system_prompt = Some(prompt.clone());
                self.system_prompt_snapshot = *snapshot;
            }
            Some(SystemPrompt::Preset {
                append,
                exclude_dynamic_sections,
                snapshot,
            }) => {
                self.system_prompt = None;
                self.append_system_prompt = append.clone();
                self.exclude_dynamic_sections = *exclude_dynamic_sections;
                self.system_prompt_snapshot = *snapshot;
            }
        }
        self
    }
}

/// Callbacks of ours for some of the occurrences of an event.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HookCallbackMatcher {
    /// Which occurrences: for tools a name or a pattern, for others the source or trigger. All of them if `None`, empty or `*`.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub matcher: Option<String>,
    /// The ids of the callbacks. The CLI calls all of them at once.
    pub hook_callback_ids: Vec<String>,
    /// How long a callback may take, in seconds; 600 if `None`. Then it is taken back, and a tool it guards is not run.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub timeout: Option<f64>,
    /// What a callback that fails means. Only counts if the reply says `hook_on_failure_supported`.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub on_failure: Option<HookFailure>,
    /// What a callback that nobody answers means.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub when_unanswered: Option<WhenUnanswered>,
    /// The callback only adds context for the model, so nothing needs to wait for it.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub context_only: Option<bool>,
    /// The frame that says the same, so that a host that reads it need not be called.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub replaced_by_frame: Option<String>,
}

impl HookCallbackMatcher {
    /// Callbacks for every occurrence.
    pub fn new<S: Into<String>>(callback_ids: impl IntoIterator<Item = S>) -> Self {
        Self {
            matcher: None,
            hook_callback_ids: callback_ids.into_iter().map(Into::into).collect(),
            timeout: None,
            on_failure: None,
            when_unanswered: None,
            context_only: None,
            replaced_by_frame: None,
        }
    }

    /// Limits the hooks to events that match.
    pub fn matcher(mut self, matcher: impl Into<String>) -> Self {
        self.matcher = Some(matcher.into());
        self
    }

    /// Says how long the hooks may take, in seconds.
    pub fn timeout(mut self, seconds: f64) -> Self {
        self.timeout = Some(seconds);
        self
    }

    /// Says what a failure means.
    pub fn on_failure(mut self, failure: HookFailure) -> Self {
        self.on_failure = Some(failure);
        self
    }
}

/// What a hook callback that nobody answers means: calls that stay within some directories go on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WhenUnanswered {
    /// After how many seconds.
    pub after_seconds: f64,
    /// The directories.
    pub within: Vec<String>,
    /// Directories that may be read as well.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub reads_also_within: Option<Vec<String>>,
    /// Directories that may not be written all the same.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub no_writes_within: Option<Vec<String>>,
}

impl WhenUnanswered {
    /// Calls that stay within these directories go on after that many seconds.
    pub fn new<S: Into<String>>(after_seconds: f64, within: impl IntoIterator<Item = S>) -> Self {
        Self {
            after_seconds,
            within: within.into_iter().map(Into::into).collect(),
            reads_also_within: None,
            no_writes_within: None,
        }
    }
}

closed_enum! {
    /// What a hook callback that fails means.
    pub enum HookFailure {
        /// What the hook guards goes on.
        Continue = "continue",
        /// What the hook guards is stopped.
        Block = "block",
    }
}

/// How an MCP server in our own program is treated.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SdkMcpServerSettings {
    /// How long one tool call may take, in milliseconds.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub timeout: Option<u64>,
    /// What to do about single tools.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub tools: Option<Vec<McpServerToolPolicy>>,
    /// Does not put long calls into the background.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub disable_auto_background: Option<bool>,
    /// The connector that the server stands for.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub connector_id: Option<String>,
    /// Tools that receive what auto mode decided.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub auto_mode_verdict_tools: Option<Vec<String>>,
    /// Keys of `_meta` that remote control passes on.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub remote_control_meta_keys: Option<Vec<String>>,
    /// What the server is, for keeping data apart.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub data_flow_server: Option<RawJson>,
    /// Set if the tools act on a person's own machine.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub on_persons_machine: Option<OnPersonsMachine>,
}

/// The tools of a server act on a person's own machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OnPersonsMachine {
    /// Tools that do not.
    pub except_tools: Vec<String>,
}

/// What an MCP server in our own program would say.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SdkMcpServerManifest {
    /// The result of MCP's `initialize`. Its protocol version must be the one that the CLI asks for.
    pub initialize_result: JsonObject,
    /// The result of `tools/list`, if that is the whole list.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub tools_list_result: Option<JsonObject>,
}

impl SdkMcpServerManifest {
    /// What a server would say to `initialize`, and to `tools/list`.
    pub fn new(initialize_result: JsonObject, tools_list_result: Option<JsonObject>) -> Self {
        Self {
            initialize_result,
            tools_list_result,
        }
    }
}

closed_enum! {
    /// Where manifests come from.
    #[non_exhaustive]
    pub enum ManifestsOrigin {
        /// The host made the manifests for this line.
        HostPerSend = "host_per_send",
    }
}

/// A person trusts a directory.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct WorkspaceTrust {
    /// Whether a person trusts the directory. Set this only after a person was asked.
    pub accepted: bool,
    /// The directory.
    pub directory: String,
}

/// The request of a served session that a process is for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachServeRequest {
    /// The request.
    pub work_id: String,
    /// The id of the environment.
    pub environment_id: String,
    /// Only goes on with a session that there is.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub resume_only: Option<bool>,
}
