//! What went wrong with an API request, as the CLI sorts it.

use serde::{Deserialize, Serialize};

use super::rate_limit::RateLimitInfo;
use crate::open_enum;

open_enum! {
    /// What went wrong with an API request; in `assistant.api_error` and `result.api_error`.
    pub enum ApiErrorKind {
        /// The answer grew too long.
        MaxOutputTokens = "max_output_tokens",
        /// A data loss filter refused the request.
        DlpRequestDenied = "dlp_request_denied",
        /// This version of the CLI is no longer served.
        ClaudeCodeVersionTooOld = "claude_code_version_too_old",
        /// A safety monitor stopped the request.
        SafetyMonitorBlocked = "safety_monitor_blocked",
        /// A hook refused the request.
        HookDenied = "hook_denied",
        /// The effort asked for needs thinking to be on.
        EffortRequiresThinking = "effort_requires_thinking",
        /// The advisor does not go with the model.
        AdvisorIncompatible = "advisor_incompatible",
        /// Tool calls and results do not match.
        ToolHistoryMismatch = "tool_history_mismatch",
        /// Compaction did not make enough room.
        AutocompactThrashing = "autocompact_thrashing",
        /// A PDF is too large.
        PdfTooLarge = "pdf_too_large",
        /// A PDF is locked.
        PdfPasswordProtected = "pdf_password_protected",
        /// The stored login was refused.
        StoredLoginRefused = "stored_login_refused",
        /// The refreshed login could not be stored.
        OauthRefreshStoreRefused = "oauth_refresh_store_refused",
        /// Images or documents were left out.
        MediaRemoved = "media_removed",
        /// The API did not answer.
        NoResponse = "no_response",
        /// The certificate authority is not trusted.
        TlsUntrustedCa = "tls_untrusted_ca",
        /// The certificate's signature is wrong.
        TlsCertSignatureFailure = "tls_cert_signature_failure",
        /// A gateway answered with something else than JSON.
        GatewayContentType = "gateway_content_type",
        /// No connection.
        ConnectionFailed = "connection_failed",
        /// The stream fell silent.
        StreamIdleTimeout = "stream_idle_timeout",
        /// The computer was asleep.
        ComputerSlept = "computer_slept",
        /// The cloud provider's credentials do not work.
        ProviderCredentials = "provider_credentials",
        /// The gateway wants a login.
        GatewaySigninRequired = "gateway_signin_required",
        /// The gateway's session is over.
        GatewaySessionExpired = "gateway_session_expired",
        /// API keys are switched off.
        ApiKeyAuthDisabled = "api_key_auth_disabled",
        /// The organisation switched this credential off.
        OrgDisabledCredential = "org_disabled_credential",
        /// The credential cannot be sent.
        InvalidCredentialHeader = "invalid_credential_header",
        /// The model needs credits.
        ModelRequiresUsageCredits = "model_requires_usage_credits",
        /// A long context needs credits.
        LongContextCreditsRequired = "long_context_credits_required",
        /// A question for consent was left open.
        ConsentUnanswered = "consent_unanswered",
        /// No other model is allowed.
        NoAllowedFallback = "no_allowed_fallback",
        /// Another model may not stand in.
        ModelSubstitutionDisabled = "model_substitution_disabled",
        /// A request field is not granted.
        FieldNotGranted = "field_not_granted",
        /// The usage limit is reached.
        UsageLimitReached = "usage_limit_reached",
        /// The model said nothing.
        EmptyCompletion = "empty_completion",
        /// The model kept writing broken tool calls.
        MalformedToolUseExhausted = "malformed_tool_use_exhausted",
        /// Too many unattended starts.
        UnattendedStartLimit = "unattended_start_limit",
        /// An unattended start was not confirmed.
        UnattendedStartUnconfirmed = "unattended_start_unconfirmed",
        /// The prompt is larger than the context.
        MessageOverContextLimit = "message_over_context_limit",
        /// Something in the network blocked the request.
        NetworkEdgeBlocked = "network_edge_blocked",
        /// The credential profile does not work.
        NamedProfileUnusable = "named_profile_unusable",
    }
}

/// Facts for the text of an API error.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ApiErrorParams {
    /// The effort asked for.
    pub effort: Option<String>,
    /// The provider, such as `bedrock` or `vertex`.
    pub provider: Option<String>,
    /// What helps: `refresh_command`, `refresh_credentials`, `adc`, `gateway_token`, `host_managed` or
    /// `model_access`.
    pub remedy: Option<String>,
    /// `image` or `document`.
    pub media: Option<String>,
    /// Why media were removed: `unprocessable`, `unsupported_by_model` or `media_budget`.
    pub media_reason: Option<String>,
    /// The rate limit that was met.
    pub rate_limit_info: Option<RateLimitInfo>,
    /// What cut the answer: `output_limit` or `context_window`.
    pub cut: Option<String>,
}
