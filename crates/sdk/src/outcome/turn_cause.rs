//! Why a turn failed.

use super::Facts;
use crate::cause::{Cause, WORDS, from_words};

/// What the CLI writes in the place of an answer, where nothing else tells. The beginning of a line, or with `*` in front anywhere
/// in it. Versions before 2.1.150 say little more than these.
const ANSWERS: &[(&str, Cause)] = &[
    ("*appears to violate our Usage Policy", Cause::Refused),
    ("*safeguards flagged this message", Cause::Refused),
    ("Prompt is too long", Cause::TooLong),
    ("Credit balance is too low", Cause::Billing),
    ("API Error: Connection error", Cause::ConnectionFailed),
    ("API Error: Connection refused", Cause::ConnectionFailed),
    ("API Error: Connection dropped", Cause::ConnectionFailed),
    ("API Error: Unable to connect to API", Cause::ConnectionFailed),
    ("API Error: Request timed out", Cause::ConnectionFailed),
];

impl Cause {
    /// Why a turn failed whose result is no success.
    ///
    /// What the CLI says for programs goes before what it says for people: the reason and the kind of the API's error, the kind of
    /// the message that it wrote in the place of the model's, the HTTP status; then its words.
    pub(crate) fn of_turn(facts: &Facts) -> Self {
        if let Some(cause) = Self::of_startup(facts) {
            return cause;
        }
        let reason = facts.terminal_reason.as_deref();
        let subtype = facts.subtype.as_deref().unwrap_or_default();
        // A `success` that is an error is a failed request to the API, which older versions tell in no other way.
        let is_request = subtype == "success" && facts.is_error == Some(true);
        let is_api = match reason {
            Some("api_error") => true,
            None | Some("completed") => is_request,
            Some(_) => false,
        };
        if is_request && (facts.refused || facts.stop_reason.as_deref() == Some("refusal")) {
            return Self::Refused;
        }
        if let Some(cause) = facts.api_error.as_deref().and_then(Self::of_api_error) {
            return cause;
        }
        if !is_api && facts.api_error_status.is_none() {
            return Self::TurnFailed(reason.unwrap_or(subtype).to_owned());
        }
        Self::of_request(facts)
    }

    /// Why the CLI could not start the session, if that is what the result says.
    pub(crate) fn of_startup(facts: &Facts) -> Option<Self> {
        if let Some(reason) = &facts.startup_failure_reason {
            return Some(Self::of_startup_reason(reason));
        }
        // A result before any turn could begin is what a failed `--resume` leaves.
        let is_bare = facts.terminal_reason.is_none()
            && facts.subtype.as_deref() == Some("error_during_execution")
            && facts.is_error != Some(false)
            && facts.num_turns == Some(0);
        if !is_bare {
            return None;
        }
        let said = facts.errors.iter().find_map(|words| from_words(WORDS, words));
        match said {
            // So does the first turn of an older CLI that was interrupted.
            None if facts.interrupted => None,
            said => Some(said.unwrap_or(Self::StartupFailed(None))),
        }
    }

    /// The CLI's `startup_failure_reason`.
    fn of_startup_reason(reason: &str) -> Self {
        match reason {
            "bypass_root" => Self::RootBypass,
            "cwd_unavailable" => Self::CwdMissing,
            "session_held_by_background" => Self::SessionInUse,
            "cli_version_too_old" => Self::UnsupportedVersion,
            "config_file_invalid" | "managed_settings_invalid" => Self::Settings,
            "initialize_not_first" | "initialize_fields" => Self::InputRefused,
            other => Self::StartupFailed(Some(other.to_owned())),
        }
    }

    /// The kind of an API error: `api_error` of the result, or of the message before it.
    fn of_api_error(kind: &str) -> Option<Self> {
        Some(match kind {
            "connection_failed"
            | "no_response"
            | "stream_idle_timeout"
            | "computer_slept"
            | "tls_untrusted_ca"
            | "tls_cert_signature_failure"
            | "gateway_content_type"
            | "network_edge_blocked" => Self::ConnectionFailed,
            "safety_monitor_blocked" | "dlp_request_denied" => Self::Refused,
            "max_output_tokens" => Self::MaxOutputTokens,
            "message_over_context_limit" | "autocompact_thrashing" => Self::TooLong,
            "usage_limit_reached" => Self::RateLimit,
            "model_requires_usage_credits" | "long_context_credits_required" => Self::Billing,
            "claude_code_version_too_old" => Self::UnsupportedVersion,
            "gateway_signin_required" => Self::NotLoggedIn,
            "stored_login_refused"
            | "gateway_session_expired"
            | "provider_credentials"
            | "invalid_credential_header"
            | "api_key_auth_disabled"
            | "org_disabled_credential" => Self::InvalidKey,
            _ => return None,
        })
    }

    /// Why a request to the API failed.
    fn of_request(facts: &Facts) -> Self {
        let text = facts.result.as_deref().unwrap_or_default();
        // Older versions write the status at the beginning of the text.
        let status = facts.api_error_status.or_else(|| {
            let digits = text.strip_prefix("API Error: ")?.get(..3)?;
            digits.parse().ok().filter(|status| (400..600).contains(status))
        });
        match (facts.kind.as_deref(), status) {
            (Some("billing_error"), _) => return Self::Billing,
            (Some("rate_limit"), _) | (_, Some(429)) => return Self::RateLimit,
            (_, Some(401)) => return Self::InvalidKey,
            // A stored login that was revoked.
            (Some("authentication_failed"), Some(403)) if text.contains("Please run /login") => {
                return Self::InvalidKey;
            }
            (_, Some(status)) => return Self::Api { status: Some(status) },
            // The API's way to say the same.
            (Some("overloaded"), None) => return Self::Api { status: Some(529) },
            (Some("max_output_tokens"), None) => return Self::MaxOutputTokens,
            (Some("cloud_credential_error"), None) => return Self::InvalidKey,
            _ => {}
        }
        // Only what the CLI says by itself is known: the API's words, of which a status tells, may hold anything.
        let said = from_words(ANSWERS, text).or_else(|| from_words(WORDS, text));
        match (said, facts.kind.as_deref()) {
            (Some(cause), _) => cause,
            // No request was sent.
            (None, Some("authentication_failed")) => Self::NotLoggedIn,
            (None, _) => Self::Api { status: None },
        }
    }
}
