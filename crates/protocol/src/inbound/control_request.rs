//! What the CLI asks.

use serde::{Deserialize, Serialize};

use crate::RawJson;
use crate::open_enum;
pub use crate::shared::ElicitationMode;
use crate::shared::{HookInput, PermissionUpdate};
use crate::wire_enum;

wire_enum! {
    /// What the CLI asks. Requests that are not known have to be answered with an error.
    pub enum InboundRequest by "subtype" {
        /// May this tool call run?
        "can_use_tool" => CanUseTool(Box<CanUseTool>),
        /// A hook of ours.
        "hook_callback" => HookCallback(Box<HookCallback>),
        /// A message for an MCP server of ours. Each needs an answer, notifications too.
        "mcp_message" => McpMessage(McpMessage),
        /// An MCP server asks the user something.
        "elicitation" => Elicitation(Elicitation),
        /// The CLI asks the user something.
        "request_user_dialog" => RequestUserDialog(RequestUserDialog),
        /// The login has to be renewed.
        "oauth_token_refresh" => OauthTokenRefresh(OauthTokenRefresh),
        /// The host's token has to be renewed.
        "host_auth_token_refresh" => HostAuthTokenRefresh(HostAuthTokenRefresh),
        /// The secret of a remote controlled session.
        "remote_control_work_secret" => RemoteControlWorkSecret(RemoteControlWorkSecret),
        /// A plugin copies text.
        "ui_copy" => UiCopy(UiCopy),
        /// A plugin reads the prompt.
        "ui_prompt_read" => UiPromptRead(UiTarget),
        /// A plugin writes the prompt.
        "ui_prompt_fill" => UiPromptFill(UiPromptFill),
        /// A plugin decorates the prompt.
        "ui_prompt_paint" => UiPromptPaint(UiPromptPaint),
        /// A plugin suggests a prompt.
        "ui_prompt_suggest" => UiPromptSuggest(UiPromptSuggest),
        /// A plugin reads the selection.
        "ui_read_selection" => UiReadSelection(UiTarget),
        /// A tool of the host is called. SDKs leave these unanswered on purpose.
        "remote_tool_call" => RemoteToolCall(RemoteToolCall),
        /// The host's plumbing is called. SDKs leave these unanswered on purpose.
        "remote_plumbing_call" => RemotePlumbingCall(RemotePlumbingCall),
        /// Is the host there? SDKs leave these unanswered on purpose.
        "remote_tools_probe" => RemoteToolsProbe(RemoteToolsProbe),
        /// The host is to announce its tools again. SDKs leave these unanswered on purpose.
        "remote_tools_reannounce" => RemoteToolsReannounce(RemoteToolsReannounce),
    }
}

/// `can_use_tool`: may this tool call run? There is no deadline.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CanUseTool {
    /// The tool.
    pub tool_name: String,
    /// The id of the call. The first CLIs of version 2.0 do not send the id.
    pub tool_use_id: Option<String>,
    /// The call's arguments.
    pub input: RawJson,
    /// The MCP server of the tool.
    pub mcp_server: Option<RequestingServer>,
    /// Changes of rules that would make such questions needless.
    pub permission_suggestions: Option<Vec<PermissionUpdate>>,
    /// The path that made the CLI request permission.
    pub blocked_path: Option<String>,
    /// Why the CLI requests permission, in words.
    pub decision_reason: Option<String>,
    /// Why the CLI requests permission.
    pub decision_reason_type: Option<DecisionReasonType>,
    /// Why the CLI requests permission, as a code.
    pub decision_reason_code: Option<String>,
    /// Where the rule that asks is from.
    pub decision_reason_rule_source: Option<String>,
    /// The event of the hook that asks.
    pub decision_reason_hook_event: Option<String>,
    /// Where that hook is configured.
    pub decision_reason_hook_source: Option<String>,
    /// The plugin that brought that hook.
    pub decision_reason_hook_plugin_id: Option<String>,
    /// Whether only the server's policy asks.
    pub server_policy_ask_only: Option<bool>,
    /// Whether a classifier may approve the call.
    pub classifier_approvable: Option<bool>,
    /// True if auto mode's check asks.
    pub auto_modes_check_raised: Option<bool>,
    /// Whether not to offer a lasting rule.
    pub suppress_always_allow_rule: Option<bool>,
    /// Whether a lasting rule is usually offered.
    pub rule_usually_offered: Option<bool>,
    /// Whether no should be the default.
    pub default_to_no: Option<bool>,
    /// The rule that asks.
    pub matched_ask_rule: Option<AskRule>,
    /// A title for the question.
    pub title: Option<String>,
    /// The tool's name for people.
    pub display_name: Option<String>,
    /// What the call does.
    pub description: Option<String>,
    /// The subagent that makes the call.
    pub agent_id: Option<String>,
    /// The plugin concerned.
    pub plugin: Option<String>,
    /// True if the tool itself is a question, so that a person has to answer.
    pub requires_user_interaction: Option<bool>,
    /// What the server wants to be asked.
    pub server_prompt: Option<String>,
    /// The folder of a computer.
    pub computer_folder: Option<ComputerFolder>,
    /// `one_at_a_time` or `all_at_once`.
    pub provenance_prompt_line: Option<String>,
    /// The kind of tool.
    pub tool_kind: Option<String>,
    /// The skill of an MCP server.
    pub mcp_skill: Option<RawJson>,
}

open_enum! {
    /// Why a permission is asked for.
    pub enum DecisionReasonType {
        /// A rule says so.
        Rule = "rule",
        /// The permission mode says so.
        Mode = "mode",
        /// A part of the command.
        SubcommandResults = "subcommandResults",
        /// The permission prompt tool.
        PermissionPromptTool = "permissionPromptTool",
        /// A hook.
        Hook = "hook",
        /// A background agent cannot ask.
        AsyncAgent = "asyncAgent",
        /// The call asks to run outside of the sandbox.
        SandboxOverride = "sandboxOverride",
        /// The call reaches outside of the working directories.
        WorkingDir = "workingDir",
        /// A safety check.
        SafetyCheck = "safetyCheck",
        /// A classifier.
        Classifier = "classifier",
        /// Something else.
        Unsorted = "other",
    }
}

/// The MCP server of a tool.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RequestingServer {
    /// The server's name.
    pub name: String,
    /// Where the server is configured, such as `sdk` or `plugin`.
    pub source: String,
}

/// A rule that asks.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AskRule {
    /// Where the rule comes from.
    pub source: String,
    /// The tool that the rule is about.
    pub tool_name: String,
    /// The calls that the rule matches.
    pub rule_content: Option<String>,
}

/// A folder of a computer.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ComputerFolder {
    /// The folder.
    pub path: String,
    /// The computer.
    pub computer_name: String,
}

/// `hook_callback`: a hook of ours is called. Times out after 600 s, or the matcher's own timeout; then it is taken
/// back and the tool is not run.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct HookCallback {
    /// The id of the callback, from `initialize`.
    pub callback_id: String,
    /// The input of the hook: the event and its data.
    pub input: HookInput,
    /// The tool call; a random id for events that have none.
    pub tool_use_id: Option<String>,
    /// When the CLI called the hook, in milliseconds since 1970.
    pub issued_at: Option<f64>,
    /// How long there is to answer, in milliseconds.
    pub deadline_ms: Option<f64>,
}

/// `mcp_message`: a JSON-RPC message for an MCP server of ours. Comes before the answer to `initialize`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpMessage {
    /// The server.
    pub server_name: String,
    /// The message.
    pub message: RawJson,
}

/// `elicitation`: an MCP server asks the user something.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Elicitation {
    /// The server.
    pub mcp_server_name: String,
    /// The question of the server.
    pub message: String,
    /// How; absent means by form.
    pub mode: Option<ElicitationMode>,
    /// The address to open.
    pub url: Option<String>,
    /// The id of the question, which `elicitation_complete` names.
    pub elicitation_id: Option<String>,
    /// JSON Schema of the form.
    pub requested_schema: Option<RawJson>,
    /// The order of the fields in the form.
    pub property_order: Option<Vec<String>>,
    /// A title for the question.
    pub title: Option<String>,
    /// The server's name for people.
    pub display_name: Option<String>,
    /// What the server is.
    pub description: Option<String>,
}

/// `request_user_dialog`: the CLI asks the user something. Kinds that are not known have to be answered as cancelled.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RequestUserDialog {
    /// The kind of dialog.
    pub dialog_kind: String,
    /// What the dialog shows.
    pub payload: RawJson,
    /// The tool call concerned.
    pub tool_use_id: Option<String>,
}

/// `oauth_token_refresh`: the login has to be renewed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct OauthTokenRefresh {
    /// `sessions` for the token of sessions.
    pub kind: Option<String>,
    /// Hashes of the tokens that were refused.
    pub refused_bearer_sha256: Option<Vec<String>>,
    /// `refused` or `not_refused`.
    pub token_state: Option<String>,
    /// What was refused: `model`, `connector` or `other`.
    pub refused_call: Option<String>,
}

/// `host_auth_token_refresh`: the host's token has to be renewed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct HostAuthTokenRefresh {
    /// The HTTP status, 401 or 403.
    pub status: Option<u64>,
    /// `not_refused` if the token was not refused.
    pub token_state: Option<String>,
}

/// `remote_control_work_secret`: the secret of a remote controlled session.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RemoteControlWorkSecret {
    /// The session.
    pub session_id: String,
}

/// A request about a screen, without further fields.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiTarget {
    /// The screen.
    pub surface: String,
    /// The client.
    pub client_id: String,
}

/// `ui_copy`: a plugin copies text.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiCopy {
    /// The screen.
    pub surface: String,
    /// The client.
    pub client_id: String,
    /// The plugin.
    pub plugin: String,
    /// The text.
    pub text: String,
    /// The id of the press of a key that this answers.
    pub answers_press: Option<String>,
}

/// `ui_prompt_fill`: a plugin writes the prompt.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiPromptFill {
    /// The screen.
    pub surface: String,
    /// The client.
    pub client_id: String,
    /// The text.
    pub text: String,
    /// `replace`, `append` or `insert`.
    pub mode: String,
    /// The decorations of the text.
    pub decorations: Option<RawJson>,
    /// Where the cursor goes.
    pub cursor: Option<u64>,
    /// The id of the press of a key that this answers.
    pub answers_press: Option<String>,
}

/// `ui_prompt_paint`: a plugin decorates the prompt.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiPromptPaint {
    /// The screen.
    pub surface: String,
    /// The client.
    pub client_id: String,
    /// The layer of decoration.
    pub layer: String,
    /// The text that the decorations are for.
    pub text: Option<String>,
    /// The decorations.
    pub decorations: Option<RawJson>,
}

/// `ui_prompt_suggest`: a plugin suggests a prompt.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiPromptSuggest {
    /// The screen.
    pub surface: String,
    /// The client.
    pub client_id: String,
    /// The suggestion.
    pub text: String,
}

/// `remote_tool_call`: a tool of the host is called.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RemoteToolCall {
    /// The host's instance.
    pub instance_id: String,
    /// The host.
    pub host: String,
    /// The tool.
    pub name: String,
    /// The call's arguments.
    pub input: RawJson,
    /// Data that belongs to the call.
    pub envelope: RawJson,
    /// The call.
    pub tool_use_id: String,
    /// When the CLI sent the call, in milliseconds since 1970.
    pub issued_at: f64,
    /// How long there is to answer, in milliseconds.
    pub deadline_ms: f64,
}

/// `remote_plumbing_call`: the host's plumbing is called.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RemotePlumbingCall {
    /// The host's instance.
    pub instance_id: String,
    /// The host.
    pub host: String,
    /// What is called.
    pub name: String,
    /// The call's arguments.
    pub args: RawJson,
    /// When the CLI sent the call, in milliseconds since 1970.
    pub issued_at: f64,
    /// How long there is to answer, in milliseconds.
    pub deadline_ms: f64,
}

/// `remote_tools_probe`: is the host there?
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RemoteToolsProbe {
    /// The host's instance.
    pub instance_id: String,
    /// When the CLI sent the request, in milliseconds since 1970.
    pub issued_at: f64,
    /// How long there is to answer, in milliseconds.
    pub deadline_ms: f64,
}

/// `remote_tools_reannounce`: requests that the host announces its tools again.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RemoteToolsReannounce {
    /// Which process of the session asks.
    pub worker_epoch: u64,
    /// How long there is to answer, in milliseconds.
    pub deadline_ms: f64,
}
