//! What the CLI tells in return for `initialize`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::inbound::system::{
    FastModeDisabledReason, FastModeState, FooterIndicator, SessionState, SlashCommand,
};
use crate::outbound::control::{AccountInfo, ModelInfo};
use crate::shared::ReportedPermissionMode;
use crate::{RawJson, open_enum};

/// The reply to `initialize`. Older CLIs send fewer fields; those that are missing are empty.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct InitializeReply {
    /// The slash commands.
    pub commands: Vec<SlashCommand>,
    /// The subagents, ours included.
    pub agents: Vec<AgentInfo>,
    /// The output style.
    pub output_style: String,
    /// The output styles that there are.
    pub available_output_styles: Vec<String>,
    /// Where the user's own output styles are.
    pub user_output_styles_dir: Option<String>,
    /// The models.
    pub models: Vec<ModelInfo>,
    /// Models that the account cannot use.
    pub unavailable_models: Option<Vec<ModelInfo>>,
    /// The account.
    pub account: AccountInfo,
    /// Set if there are two sign-ins that contradict each other.
    pub auth_conflict: Option<AuthConflict>,
    /// The model.
    pub current_model: Option<String>,
    /// How tool calls are decided.
    pub current_permission_mode: Option<ReportedPermissionMode>,
    /// Whether prompts of other sessions are acknowledged.
    pub inbound_read_receipts: Option<bool>,
    /// What the session does.
    pub session_state: Option<SessionState>,
    /// Whether the hooks were taken.
    pub hooks_applied: Option<bool>,
    /// Whether `onFailure` of hooks counts.
    pub hook_on_failure_supported: Option<bool>,
    /// For how many hooks the CLI keeps what they declared for a missing reply.
    pub hooks_when_unanswered_kept: Option<u64>,
    /// Whether a hook that asks outranks our own decision.
    pub other_hook_ask_outranks_host: Option<bool>,
    /// Tools of MCP servers that run code, as taken.
    pub code_running_mcp_tools_applied: Option<BTreeMap<String, Vec<String>>>,
    /// Whether the plugins were taken.
    pub plugins_applied: Option<bool>,
    /// Whether the organization's settings were taken.
    pub managed_settings_applied: Option<bool>,
    /// Whether the settings were taken.
    pub settings_applied: Option<bool>,
    /// Whether the tools that may not be used were taken.
    pub disallowed_tools_applied: Option<bool>,
    /// Whether the MCP servers were taken.
    pub mcp_servers_applied: Option<bool>,
    /// Whether a hook may word the permission request that its `ask` leads to.
    pub host_worded_asks: Option<bool>,
    /// Whether the trust was recorded.
    pub workspace_trust_recorded: Option<bool>,
    /// What became of the manifests, by server.
    pub sdk_mcp_manifests_parked: Option<BTreeMap<String, ManifestOutcome>>,
    /// Whether the mode is a default because the wanted one could not be had.
    pub permission_mode_from_default_fallback: Option<bool>,
    /// The mode that the CLI suggests as default.
    pub auto_default_nudge: Option<ReportedPermissionMode>,
    /// What became of bypassing permissions.
    pub bypass_auto_switch: Option<BypassAutoSwitch>,
    /// The CLI's process.
    pub pid: Option<u64>,
    /// The CLI's version.
    pub claude_code_version: Option<String>,
    /// Whether fast mode is on.
    pub fast_mode_state: Option<FastModeState>,
    /// Why fast mode is off.
    pub fast_mode_disabled_reason: Option<FastModeDisabledReason>,
    /// What to show at the bottom.
    pub footer_indicator: Option<FooterIndicator>,
    /// When to ask how the session went.
    pub feedback_survey_config: Option<FeedbackSurveyConfig>,
    /// What to ask afterwards.
    pub survey_followup_box: Option<SurveyFollowupBox>,
    /// How feedback is sent.
    pub feedback_mode: Option<FeedbackMode>,
    /// Whether statistics are off.
    pub analytics_disabled: Option<bool>,
    /// Whether the CLI runs shell commands in its sandbox: a boolean, or the text `unknown` if the CLI cannot tell yet.
    pub sandbox_enabled: Option<RawJson>,
    /// Whether remote control is on from the start.
    pub remote_control_auto_enable: Option<bool>,
    /// Whether remote control is on by default.
    pub remote_control_auto_on_by_default: Option<bool>,
    /// Whether remote control connects by default.
    pub remote_control_auto_connect_default: Option<bool>,
    /// Whether remote control is available.
    pub remote_control_available: Option<bool>,
    /// Whether an editor may switch remote control on.
    pub ide_rc_auto_enable_gate: Option<bool>,
    /// Whether the session used the browser when it started.
    pub claude_in_chrome_at_startup: Option<bool>,
    /// Whether the prompt for the browser is left out.
    pub claude_in_chrome_prompt_disabled: Option<bool>,
    /// What this CLI can do. To be asked instead of the version.
    pub capabilities: Vec<String>,
}

impl InitializeReply {
    /// Whether the CLI has the capability of this name.
    pub fn has_capability(&self, name: &str) -> bool {
        self.capabilities.iter().any(|capability| capability == name)
    }
}

/// A subagent that there is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AgentInfo {
    /// The subagent's name.
    pub name: String,
    /// When to use the agent.
    pub description: String,
    /// The subagent's model.
    pub model: Option<String>,
}

/// Two sign-ins that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AuthConflict {
    /// Where the sign-in comes from.
    pub token_source: String,
    /// Where the API key comes from.
    pub api_key_source: String,
}

open_enum! {
    /// What became of a manifest.
    pub enum ManifestOutcome {
        /// The manifest will be used.
        Parked = "parked",
        /// The server was connected already.
        AlreadyConnected = "already_connected",
        /// The manifest is of another protocol version.
        ProtocolVersionMismatch = "protocol_version_mismatch",
        /// The manifest is malformed.
        Malformed = "malformed",
        /// The CLI does not use the manifest.
        NotHonoured = "not_honoured",
    }
}

/// What became of bypassing permissions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct BypassAutoSwitch {
    /// For how many days a person may switch the mode on again.
    pub pause_days: i64,
    /// Whether the CLI offers to set the mode up.
    pub offers_setup: bool,
    /// Whether the CLI explains the mode.
    pub introduces_setup: bool,
    /// Whether the mode was changed.
    pub has_switched: bool,
    /// Whether to ask why.
    pub asks_reason: bool,
}

/// When to ask how the session went.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FeedbackSurveyConfig {
    /// Not before the session is as old, in milliseconds.
    pub min_time_before_feedback_ms: f64,
    /// Not as soon after the last time in this session, in milliseconds.
    pub min_time_between_feedback_ms: f64,
    /// Not as soon after the last time in any session, in milliseconds.
    pub min_time_between_global_feedback_ms: f64,
    /// Not before as many prompts.
    pub min_user_turns_before_feedback: f64,
    /// Not as few prompts after the last time.
    pub min_user_turns_between_feedback: f64,
    /// How long to say thank you, in milliseconds.
    pub hide_thanks_after_ms: f64,
    /// With which models.
    pub on_for_models: Vec<String>,
    /// How often, from 0 to 1.
    pub probability: f64,
    /// When the survey was shown last, in milliseconds since 1970.
    pub last_survey_shown_time: Option<f64>,
}

/// What to ask after a survey.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SurveyFollowupBox {
    /// Whether the conversation may be sent.
    pub transcript_allowed: bool,
    /// Whether logs may be.
    pub logs_followup: Option<bool>,
    /// Whether to ask whatever was chosen.
    pub every_rating: bool,
}

/// How feedback is sent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FeedbackMode {
    /// How feedback is sent.
    pub kind: FeedbackModeKind,
}

open_enum! {
    /// How feedback is sent.
    pub enum FeedbackModeKind {
        /// To the maker of the CLI.
        Post = "post",
        /// Into a file.
        Bundle = "bundle",
        /// By sharing the conversation.
        Share = "share",
        /// Feedback is disabled.
        Disabled = "disabled",
    }
}
