//! `init`: the session's state at the start of a turn.

use serde::{Deserialize, Serialize};

use super::session::CloudSession;
use crate::RawJson;
use crate::inbound::ReportedThinkingDisplay;
use crate::open_enum;
use crate::shared::ReportedPermissionMode;

/// `init`: the session's state. Comes at the start of each turn, never before the first prompt; the session id may
/// have changed since the last one.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Init {
    /// The session.
    pub session_id: String,
    /// The id of this frame.
    pub uuid: String,
    /// The working directory.
    pub cwd: String,
    /// The model.
    pub model: String,
    /// The permission mode.
    #[serde(rename = "permissionMode")]
    pub permission_mode: ReportedPermissionMode,
    /// Names of the tools. The subagent tool is listed as `Task` although calls name it `Agent`.
    #[serde(default)]
    pub tools: Vec<String>,
    /// The MCP servers.
    #[serde(default)]
    pub mcp_servers: Vec<InitMcpServer>,
    /// Names of the slash commands.
    #[serde(default)]
    pub slash_commands: Vec<String>,
    /// Those that only work in a terminal.
    pub terminal_slash_commands: Option<Vec<String>>,
    /// Names of the agents.
    pub agents: Option<Vec<String>>,
    /// Names of the skills.
    #[serde(default)]
    pub skills: Vec<String>,
    /// The plugins.
    #[serde(default)]
    pub plugins: Vec<InitPlugin>,
    /// Plugins that could not be loaded.
    pub plugin_errors: Option<Vec<PluginError>>,
    /// Remarks on plugins.
    pub plugin_warnings: Option<Vec<PluginWarning>>,
    /// MCP servers whose configuration is wrong.
    pub mcp_server_errors: Option<Vec<McpServerError>>,
    /// The output style.
    pub output_style: String,
    /// Where the API key came from.
    #[serde(rename = "apiKeySource")]
    pub api_key_source: ApiKeySource,
    /// The CLI's version.
    pub claude_code_version: Option<String>,
    /// What this CLI can do; ask for these instead of comparing versions.
    pub capabilities: Option<Vec<String>>,
    /// API betas in use.
    pub betas: Option<Vec<String>>,
    /// Whether fast mode is on.
    pub fast_mode_state: Option<FastModeState>,
    /// Why fast mode is off.
    pub fast_mode_disabled_reason: Option<FastModeDisabledReason>,
    /// The effort; null for the model's default.
    pub effort: Option<String>,
    /// Whether effort can be set by turn.
    pub per_turn_effort_active: Option<bool>,
    /// Whether a prompt can ask for more effort by a word.
    pub ultrathink_available: Option<bool>,
    /// Whether that word, typed, raises the effort.
    pub ultrathink_typed_raises: Option<bool>,
    /// `focus` or `default`.
    pub view_mode: Option<String>,
    /// A text for the footer.
    pub footer_indicator: Option<FooterIndicator>,
    /// Whether usage data are switched off.
    pub analytics_disabled: Option<bool>,
    /// Whether surveys are switched off.
    pub product_feedback_disabled: Option<bool>,
    /// Whether Anthropic's own API serves the model.
    pub served_by_anthropic: Option<bool>,
    /// Whether the CLI runs shell commands in its sandbox: a boolean, or the text `unknown` if the CLI cannot tell yet.
    pub sandbox_enabled: Option<RawJson>,
    /// Where memories are kept.
    pub memory_paths: Option<MemoryPaths>,
    /// A directory for notes.
    pub scratchpad_path: Option<String>,
    /// The directory that the process was started in.
    pub original_cwd: Option<String>,
    /// Further directories that may be worked in.
    pub additional_directories: Option<Vec<String>>,
    /// The socket for messages of other sessions.
    pub messaging_socket_path: Option<String>,
    /// Where synchronised skills are.
    pub synced_skills_path: Option<String>,
    /// The PowerShell in use.
    pub powershell_path: Option<String>,
    /// Environment variables that the host left out.
    pub host_dropped_env: Option<Vec<DroppedEnv>>,
    /// What the client asked for about thinking.
    pub client_thinking: Option<ClientThinking>,
    /// True if settings were restated without a change.
    pub flag_restate_noop: Option<bool>,
    /// Which process of the session this is.
    pub worker_epoch: Option<u64>,
    /// How long start-up took, in parts.
    pub startup_timing: Option<RawJson>,
    /// The cloud session, if the session runs in the cloud.
    pub cloud_session: Option<CloudSession>,
    /// The prompts of the turn.
    pub user_message_uuids: Option<Vec<String>>,
}

/// An MCP server.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct InitMcpServer {
    /// The server's name.
    pub name: String,
    /// `connected`, `failed`, `needs-auth`, `pending` or `disabled`.
    pub status: String,
    /// Where the server is configured, such as `sdk`, `dynamic` or `plugin`.
    pub source: Option<String>,
}

/// A plugin.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct InitPlugin {
    /// The plugin's name.
    pub name: String,
    /// The plugin's directory; `builtin` for the CLI's own.
    pub path: String,
    /// Where the plugin comes from, as `name@marketplace`.
    pub source: Option<String>,
    /// The version of the plugin, from its manifest.
    pub version: Option<String>,
}

/// A plugin that could not be loaded.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PluginError {
    /// The plugin.
    pub plugin: String,
    /// What is wrong, such as `path-not-found`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The error, for people.
    pub message: String,
    /// The path concerned.
    pub path: Option<String>,
    /// The rule of managed settings in the way.
    pub managed_lock: Option<ManagedLock>,
}

/// A rule of managed settings about a plugin.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ManagedLock {
    /// Whether the plugin is on.
    pub plugin_enabled: bool,
    /// The plugin.
    pub name: String,
    /// The marketplace of the plugin.
    pub marketplace: Option<String>,
}

/// A remark on a plugin.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PluginWarning {
    /// The plugin.
    pub plugin: String,
    /// The subject of the warning.
    #[serde(rename = "type")]
    pub kind: String,
    /// The warning, for people.
    pub message: String,
}

/// An MCP server whose configuration is wrong.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpServerError {
    /// The server.
    pub name: String,
    /// What is wrong, such as `invalid_config`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The error, for people.
    pub message: String,
}

open_enum! {
    /// Where the API key came from.
    pub enum ApiKeySource {
        /// The environment variable.
        AnthropicApiKey = "ANTHROPIC_API_KEY",
        /// The configured helper command.
        ApiKeyHelper = "apiKeyHelper",
        /// A key made by `/login`.
        LoginManagedKey = "/login managed key",
        /// There is none: a subscription, a token or a cloud provider.
        None = "none",
        /// Not written any more.
        User = "user",
        /// Not written any more.
        Project = "project",
        /// Not written any more.
        Org = "org",
        /// Not written any more.
        Temporary = "temporary",
        /// Not written any more.
        Oauth = "oauth",
    }
}

open_enum! {
    /// Whether fast mode is on.
    pub enum FastModeState {
        /// Fast mode is off.
        Off = "off",
        /// Fast mode pauses.
        Cooldown = "cooldown",
        /// Fast mode is on.
        On = "on",
    }
}

open_enum! {
    /// Why fast mode is off.
    pub enum FastModeDisabledReason {
        /// Not with a free account.
        Free = "free",
        /// The user's choice.
        Preference = "preference",
        /// Usage beyond the subscription is off.
        ExtraUsageDisabled = "extra_usage_disabled",
        /// The reason could not be found out.
        NetworkError = "network_error",
        /// No reason given.
        Unknown = "unknown",
        /// Only with Anthropic's own API.
        NotFirstParty = "not_first_party",
        /// Switched off by the environment.
        DisabledByEnv = "disabled_by_env",
        /// Not with this model.
        ModelNotAllowed = "model_not_allowed",
        /// The driving program has to switch fast mode on.
        SdkOptInRequired = "sdk_opt_in_required",
        /// Not yet known.
        Pending = "pending",
    }
}

/// A text for the footer.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FooterIndicator {
    /// The text.
    pub text: String,
}

/// Where memories are kept.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MemoryPaths {
    /// Those that the CLI writes by itself.
    pub auto: Option<String>,
    /// The team's.
    pub team: Option<String>,
}

/// Environment variables that the host left out.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct DroppedEnv {
    /// Where the variables were set.
    pub source: String,
    /// The variables' names.
    #[serde(default)]
    pub names: Vec<String>,
}

/// What the client asked for about thinking.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ClientThinking {
    /// The budget; null for the default.
    pub max_thinking_tokens: Option<u64>,
    /// How to show the thinking.
    pub thinking_display: Option<ReportedThinkingDisplay>,
}
