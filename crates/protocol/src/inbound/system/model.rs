//! The API and its models: retries, refusals, models that stand in.

use serde::{Deserialize, Serialize};

use crate::inbound::AssistantError;
use crate::open_enum;

/// `api_retry`: an API request failed and is tried again.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ApiRetry {
    /// Which attempt, from 1.
    pub attempt: u64,
    /// How many there will be.
    pub max_retries: u64,
    /// How long until the next one, in milliseconds.
    pub retry_delay_ms: f64,
    /// HTTP status; null without an answer.
    pub error_status: Option<u64>,
    /// The kind of error.
    pub error: AssistantError,
    /// Set if the API did not answer.
    pub no_response: Option<NoResponse>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// The API did not answer.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct NoResponse {
    /// How long the CLI waited for a response, in milliseconds.
    pub waited_ms: f64,
    /// How long until the next attempt, in milliseconds.
    pub retry_wait_ms: f64,
}

/// `api_error`: a failed API request, as the terminal shows it.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ApiError {
    /// The error.
    pub error: ApiErrorDetail,
    /// How long until the next attempt, in milliseconds.
    pub retry_in_ms: f64,
    /// Which attempt, from 1.
    pub retry_attempt: u64,
    /// How many there will be.
    pub max_retries: u64,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// What went wrong with an API request.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ApiErrorDetail {
    /// What the API said.
    pub message: String,
    /// HTTP status.
    pub status: Option<u64>,
    /// The API's id of the request.
    pub request_id: Option<String>,
    /// Text to show.
    pub formatted: String,
    /// Why there was no connection.
    pub connection: Option<ConnectionError>,
    /// Whether the network is down.
    pub is_network_down: bool,
    /// The limit that was met.
    pub rate_limits: Option<ApiErrorRateLimits>,
}

/// Why there was no connection.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ConnectionError {
    /// The system's code, such as `ECONNREFUSED`.
    pub code: String,
    /// The error, for people.
    pub message: String,
    /// Whether TLS is the cause.
    pub is_ssl_error: bool,
}

/// The limit that was met.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ApiErrorRateLimits {
    /// When the limit starts anew, in seconds since 1970.
    pub resets_at: Option<u64>,
    /// Which limit.
    pub rate_limit_type: Option<String>,
}

/// `control_request_progress`: a control request of ours takes its time. Only for side questions so far.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ControlRequestProgress {
    /// The request.
    pub request_id: String,
    /// The state of the request.
    pub status: ControlProgress,
    /// Which attempt, from 1.
    pub attempt: Option<u64>,
    /// How many there will be.
    pub max_retries: Option<u64>,
    /// How long until the next one, in milliseconds.
    pub retry_delay_ms: Option<f64>,
    /// HTTP status; null without an answer.
    pub error_status: Option<u64>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// Where a control request is.
    pub enum ControlProgress {
        /// The CLI began to handle the request.
        Started = "started",
        /// An API request failed and is tried again.
        ApiRetry = "api_retry",
    }
}

/// `model_fallback`: another model stands in.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ModelFallback {
    /// The cause of the fallback.
    pub trigger: FallbackReason,
    /// The model asked for.
    pub original_model: String,
    /// The model that stands in.
    pub fallback_model: String,
    /// Text to show.
    pub content: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// Why another model stands in.
    pub enum FallbackReason {
        /// There is no such model.
        ModelNotFound = "model_not_found",
        /// The model is not allowed.
        PermissionDenied = "permission_denied",
        /// The model is overloaded.
        Overloaded = "overloaded",
        /// The model failed.
        ServerError = "server_error",
        /// Nothing else worked.
        LastResort = "last_resort",
        /// The model is blocked.
        ModelBlocked = "model_blocked",
    }
}

/// `model_consent_fallback`: the user was asked for another model.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ModelConsentFallback {
    /// The answer.
    pub choice: ConsentChoice,
    /// The model asked for.
    pub original_model: String,
    /// The model's name for people.
    pub original_model_name: Option<String>,
    /// The model offered.
    pub fallback_model: String,
    /// Whether the model became the default.
    pub persisted_as_default: bool,
    /// Text to show.
    pub content: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// What the user said to another model.
    pub enum ConsentChoice {
        /// Yes.
        Consent = "consent",
        /// Yes, for ever.
        SwitchDefault = "switch_default",
        /// No.
        Cancelled = "cancelled",
    }
}

/// `model_refusal_fallback`: the model refused and another one stands in.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ModelRefusalFallback {
    /// Always `refusal`.
    pub trigger: String,
    /// What happens.
    pub direction: RefusalDirection,
    /// How far the change of the model reaches: `session` or `local`.
    pub scope: Option<String>,
    /// The model that refused.
    pub original_model: String,
    /// The model that stands in.
    pub fallback_model: String,
    /// The API's id of the refused request.
    pub request_id: Option<String>,
    /// The policy area.
    pub api_refusal_category: Option<String>,
    /// True if a refusal was about attacks on computers.
    pub saw_cyber_refusal: Option<bool>,
    /// The explanation of the refusal, for people.
    pub api_refusal_explanation: Option<String>,
    /// What verification would change the refusal.
    pub api_refusal_cyber_verification: Option<CyberVerification>,
    /// Lines that are taken back.
    pub retracted_message_uuids: Option<Vec<String>>,
    /// The prompt that was refused.
    pub refused_user_message_uuid: Option<String>,
    /// Text to show.
    pub content: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// What happens after a refusal.
    pub enum RefusalDirection {
        /// The other model answers.
        Retry = "retry",
        /// The first model is back.
        Revert = "revert",
        /// The other model stays.
        Sticky = "sticky",
    }
}

/// A verification that would lift a refusal.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CyberVerification {
    /// The kind of verification.
    #[serde(rename = "type")]
    pub kind: String,
    /// The verification's level.
    pub tier: Option<String>,
    /// The reason for the verification.
    pub reason: Option<String>,
}

/// `model_refusal_no_fallback`: the model refused and no other one stands in.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ModelRefusalNoFallback {
    /// The model that refused.
    pub original_model: String,
    /// The API's id of the refused request.
    pub request_id: Option<String>,
    /// The policy area.
    pub api_refusal_category: Option<String>,
    /// The explanation of the refusal, for people.
    pub api_refusal_explanation: Option<String>,
    /// The prompt that was refused.
    pub refused_user_message_uuid: Option<String>,
    /// Text to show.
    pub content: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}
