//! Requests of the CLI, its answers to ours, and requests that it takes back.

use serde::{Deserialize, Serialize};

use super::control_request::InboundRequest;
use crate::RawJson;
use crate::open_enum;
use crate::shared::RequestId;
use crate::wire_enum;

/// `control_request`: the CLI asks. Each has to be answered by a `control_response` with the same id; there is no
/// deadline for permissions.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ControlRequest {
    /// The request's id.
    pub request_id: RequestId,
    /// The request itself.
    pub request: InboundRequest,
}

/// `control_cancel_request`: the CLI takes a request of its own back. No reply follows, and a late answer is ignored.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ControlCancelRequest {
    /// The request.
    pub request_id: RequestId,
    /// True if a permission given later would still be taken.
    pub takes_late_allow: Option<bool>,
    /// The tool call that the request was about.
    pub tool_use_id: Option<String>,
}

/// `control_response`: the answer to a request of ours. With `--replay-user-messages` also an echo of our own
/// answers.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ControlResponse {
    /// The answer.
    pub response: ControlResult,
}

wire_enum! {
    /// The answer to a request.
    pub enum ControlResult by "subtype" {
        /// The request succeeded.
        "success" => Success(ControlSuccess),
        /// The request failed.
        "error" => Error(ControlError),
    }
}

/// `success`: the request was done.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ControlSuccess {
    /// The id of the request; absent if the request had no id.
    pub request_id: Option<RequestId>,
    /// What it gave back, by the request's subtype; absent for plain acknowledgements.
    pub response: Option<RawJson>,
    /// Permission requests that are still open. Always there in the answer to `initialize`.
    pub pending_permission_requests: Option<Vec<ControlRequest>>,
    /// Dialogs that are still open. Always there in the answer to `initialize`.
    pub pending_user_dialog_requests: Option<Vec<ControlRequest>>,
    /// Elicitations that are still open.
    pub pending_elicitation_requests: Option<Vec<ControlRequest>>,
}

/// `error`: the request was not done.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ControlError {
    /// The id of the request; absent if the request had no id.
    pub request_id: Option<RequestId>,
    /// The error message.
    pub error: String,
    /// Why, as a code.
    pub error_code: Option<ControlErrorCode>,
    /// The model that was asked for.
    pub model: Option<String>,
    /// Permission requests that are still open.
    pub pending_permission_requests: Option<Vec<ControlRequest>>,
    /// Dialogs that are still open.
    pub pending_user_dialog_requests: Option<Vec<ControlRequest>>,
    /// Elicitations that are still open.
    pub pending_elicitation_requests: Option<Vec<ControlRequest>>,
}

open_enum! {
    /// Why a control request was not done.
    pub enum ControlErrorCode {
        /// The CLI does not know the request.
        UnsupportedRequest = "unsupported_request",
        /// The request is wrong.
        InvalidRequest = "invalid_request",
        /// There is no such permission mode.
        InvalidMode = "invalid_mode",
        /// Bypassing permissions is not allowed here.
        BypassRestricted = "bypass_restricted",
        /// Bypassing permissions is switched off.
        BypassDisabled = "bypass_disabled",
        /// Bypassing permissions has to be allowed at the start.
        BypassNotLaunched = "bypass_not_launched",
        /// Settings rule auto mode out.
        AutoModeSettings = "auto_mode_settings",
        /// Auto mode is switched off for now.
        AutoModeCircuitBreaker = "auto_mode_circuit_breaker",
        /// Auto mode does not go with fast mode.
        AutoModeFastMode = "auto_mode_fast_mode",
        /// Auto mode does not go with the model.
        AutoModeModel = "auto_mode_model",
        /// Auto mode is not there.
        AutoModeUnavailable = "auto_mode_unavailable",
        /// The model is not in the catalogue.
        CatalogUnknown = "catalog_unknown",
        /// There is no such thing.
        NotFound = "not_found",
        /// The organisation does not allow this.
        RestrictedByOrg = "restricted_by_org",
        /// The account may not do this.
        UnavailableForAccount = "unavailable_for_account",
        /// The request is not offered.
        NotOffered = "not_offered",
        /// The long context is switched off.
        Alias1mDisabled = "alias_1m_disabled",
        /// The model has no long context.
        Alias1mUnsupported = "alias_1m_unsupported",
        /// A hook refused.
        BlockedByHook = "blocked_by_hook",
        /// Hooks could not be asked.
        HooksUnchecked = "hooks_unchecked",
        /// Hooks could not be asked because a plugin is not loaded.
        HooksUncheckedPluginNotLoaded = "hooks_unchecked_plugin_not_loaded",
        /// A check failed.
        CheckFailed = "check_failed",
        /// A check could not be reached.
        CheckUnreachable = "check_unreachable",
        /// A check's server failed.
        CheckServerError = "check_server_error",
        /// A check refused.
        CheckRejected = "check_rejected",
        /// The request needs credits.
        CreditsRequired = "credits_required",
        /// Too many requests.
        RateLimit = "rate_limit",
        /// The credentials were refused.
        AuthFailed = "auth_failed",
        /// The organisation does not allow this login.
        OauthOrgNotAllowed = "oauth_org_not_allowed",
        /// The model has changed meanwhile.
        ModelNotCurrent = "model_not_current",
        /// A verdict is still to come.
        VerdictPending = "verdict_pending",
        /// The CLI failed.
        InternalError = "internal_error",
        /// Remote control: not logged in.
        RemoteControlAuth = "remote_control_auth",
        /// Remote control: over for good.
        RemoteControlTerminal = "remote_control_terminal",
        /// Remote control: ended by another side.
        RemoteControlEndedElsewhere = "remote_control_ended_elsewhere",
        /// Remote control: not allowed.
        RemoteControlPolicyDisabled = "remote_control_policy_disabled",
        /// Remote control: switched off.
        RemoteControlFlagsDisabled = "remote_control_flags_disabled",
        /// Remote control: the CLI could not find out whether remote control is on.
        RemoteControlFlagsUnreachable = "remote_control_flags_unreachable",
        /// Remote control: not open to this account.
        RemoteControlGateOff = "remote_control_gate_off",
        /// Remote control: this version is too old.
        RemoteControlBelowFloor = "remote_control_below_floor",
        /// Remote control: no answer on versions.
        RemoteControlFloorUnanswered = "remote_control_floor_unanswered",
        /// Remote control: wrong answer on versions.
        RemoteControlFloorMalformed = "remote_control_floor_malformed",
        /// Remote control: could not ask for versions.
        RemoteControlFloorUnreachable = "remote_control_floor_unreachable",
        /// Remote control: the session could not be read.
        RemoteControlSessionUnread = "remote_control_session_unread",
        /// The difference is still being computed.
        WorkspaceDiffPending = "workspace_diff_pending",
        /// Another process has taken over.
        StaleWorkerEpoch = "stale_worker_epoch",
        /// There is no such process.
        InvalidWorkerEpoch = "invalid_worker_epoch",
        /// The MCP server does not register clients.
        McpClientRegistrationUnavailable = "mcp_client_registration_unavailable",
        /// The address to come back to does not work.
        McpRedirectUriUnusable = "mcp_redirect_uri_unusable",
        /// Policy does not allow the MCP server.
        McpPolicyBlocked = "mcp_policy_blocked",
        /// Too many refused MCP calls.
        McpCallRefusalLimit = "mcp_call_refusal_limit",
        /// The MCP call is wrong.
        McpCallMalformed = "mcp_call_malformed",
        /// Nobody vouches for the MCP call.
        McpCallNotVouched = "mcp_call_not_vouched",
        /// The MCP tool is not listed.
        McpCallNotListed = "mcp_call_not_listed",
        /// There is no container for the MCP call.
        McpCallNoContainer = "mcp_call_no_container",
        /// The file may not be read.
        ReadDenied = "read_denied",
        /// The directory has changed meanwhile.
        StaleRootId = "stale_root_id",
        /// The file looks like credentials.
        CredentialName = "credential_name",
        /// A side question is being answered.
        SideQuestionBusy = "side_question_busy",
        /// Settings of the project stand in the way of claiming the session.
        ProjectSettingsNotClaimable = "project_settings_not_claimable",
        /// A proxy helper stands in the way of claiming the session.
        ProxyAuthHelperNotClaimable = "proxy_auth_helper_not_claimable",
        /// A key helper stands in the way of claiming the session.
        ApiKeyHelperNotClaimable = "api_key_helper_not_claimable",
        /// Credentials of a provider stand in the way of claiming the session.
        ProviderCredentialsNotClaimable = "provider_credentials_not_claimable",
        /// The turn is over.
        StaleTurn = "stale_turn",
        /// Plugins cannot be reloaded while work is going on.
        ReloadPluginsBusy = "reload_plugins_busy",
    }
}
