//! `result`: the end of a turn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::api_error::ApiErrorKind;
use super::system::{FastModeDisabledReason, FastModeState};
use crate::RawJson;
use crate::open_enum;
use crate::shared::{ModelUsage, Origin, Usage, amount, count};

/// `result`: the end of a turn. Not one per prompt: prompts may share a turn, and background work starts turns of its
/// own; see `user_message_uuids` and `origin`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ResultMessage {
    /// How the turn ended. `success` does not mean that all is well: `is_error` can be true.
    pub subtype: ResultSubtype,
    /// Whether the turn failed.
    pub is_error: bool,
    /// On `success`: the text of the last answer, or of the API error.
    pub result: Option<String>,
    /// On the error subtypes: what went wrong.
    pub errors: Option<Vec<String>>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
    /// How long the turn took, in milliseconds.
    pub duration_ms: f64,
    /// How long the API requests of the turn took, in milliseconds.
    pub duration_api_ms: f64,
    /// The number of messages of the turn, those to the model included.
    #[serde(deserialize_with = "count")]
    pub num_turns: u64,
    /// Why the model stopped last.
    pub stop_reason: Option<String>,
    /// Why the turn ended; absent when nothing was asked of the model.
    pub terminal_reason: Option<TerminalReason>,
    /// Money since the session began, in US dollars; an estimate.
    #[serde(deserialize_with = "amount")]
    pub total_cost_usd: f64,
    /// Tokens of this turn, without subagents.
    pub usage: Usage,
    /// Tokens and money by model since the session began, everything included.
    #[serde(rename = "modelUsage", default)]
    pub model_usage: BTreeMap<String, ModelUsage>,
    /// The same since the result before.
    pub model_usage_since_last_result: Option<BTreeMap<String, ModelUsage>>,
    /// Tool calls that were refused.
    #[serde(default)]
    pub permission_denials: Vec<PermissionDenial>,
    /// The answer in the shape asked for by a JSON schema.
    pub structured_output: Option<RawJson>,
    /// The tool call that was deferred and waits for its result.
    pub deferred_tool_use: Option<DeferredToolUse>,
    /// Where the turn came from, if not from a prompt of ours.
    pub origin: Option<Origin>,
    /// The last prompt that the turn answers.
    pub user_message_uuid: Option<String>,
    /// All prompts that the turn answers.
    pub user_message_uuids: Option<Vec<String>>,
    /// API messages that were begun.
    pub begun_message_ids: Option<Vec<String>>,
    /// Why the turn was taken up again.
    pub resume_reason: Option<String>,
    /// Counts the results of the process, from 0, without gaps.
    pub result_index: Option<u64>,
    /// Turns that wait. Was 0 whenever seen.
    pub queued_turn_count: Option<u64>,
    /// The slash command that the CLI ran itself.
    pub local_command: Option<String>,
    /// Subagents since the session began.
    pub subagent_stats: Option<SubagentStats>,
    /// How often a safety system stopped a request since the session began.
    pub safety_stops: Option<u64>,
    /// The kind of the API error, in the CLI's words.
    pub api_error: Option<ApiErrorKind>,
    /// HTTP status of the API's error.
    pub api_error_status: Option<u64>,
    /// The API's type for the error.
    pub api_error_type: Option<String>,
    /// The API's code for the error.
    pub api_error_code: Option<String>,
    /// `first_party` if Anthropic's own API said so.
    pub api_error_origin: Option<String>,
    /// Whether fast mode is on.
    pub fast_mode_state: Option<FastModeState>,
    /// Why fast mode is off.
    pub fast_mode_disabled_reason: Option<FastModeDisabledReason>,
    /// When the login expires, as ISO 8601.
    pub credential_expires_at: Option<String>,
    /// Why the CLI could not start.
    pub startup_failure_reason: Option<StartupFailureReason>,
    /// The configuration file that could not be read.
    pub invalid_config_file: Option<InvalidConfigFile>,
    /// How a remote runner ended.
    pub runner_exit: Option<RunnerExit>,
    /// Why a prompt did not reach a remote session: `session_not_opened` or `send_failed`.
    pub message_undelivered: Option<String>,
    /// The organisation's verdict.
    pub policy_answer: Option<String>,
    /// The reason that the policy gives.
    pub policy_answer_reason: Option<String>,
    /// Whether the process was asked to end.
    pub interrupted_by_shutdown: Option<bool>,
    /// True if a permission check ended the turn.
    pub stopped_by_permission_check: Option<bool>,
    /// The rewind that was made good again.
    pub restored_rewind: Option<RestoredRewind>,
    /// Input tokens of the turn's first request.
    pub first_request_input_tokens: Option<u64>,
    /// The tokens among these that came from the cache.
    pub first_request_cache_read_input_tokens: Option<u64>,
    /// From the request to its first token, in milliseconds.
    pub ttft_ms: Option<f64>,
    /// From the turn's start to the first streamed token, in milliseconds.
    pub ttft_stream_ms: Option<f64>,
    /// From the turn's start to its first request, in milliseconds.
    pub time_to_request_ms: Option<f64>,
    /// The same by phase, in milliseconds.
    pub time_to_request_phases_ms: Option<BTreeMap<String, f64>>,
    /// Processor time until the first request, in milliseconds.
    pub time_to_request_cpu_ms: Option<f64>,
    /// Event loop lag until the first request, in milliseconds.
    pub time_to_request_loop_lag_ms: Option<f64>,
    /// Page faults until the first request.
    pub time_to_request_major_faults: Option<f64>,
    /// From the process's start to the first request, in milliseconds.
    pub time_to_request_from_spawn_ms: Option<f64>,
    /// When the first request was sent, in milliseconds since 1970.
    pub request_sent_wall_ms: Option<f64>,
    /// When the server received the prompt, in milliseconds since 1970.
    pub user_message_server_received_wall_ms: Option<f64>,
    /// From the turn's start to the first content frame, in milliseconds.
    pub first_content_frame_ms: Option<f64>,
    /// From the turn's start to the first post of a streamed event, in milliseconds.
    pub first_stream_post_ms: Option<f64>,
    /// From the turn's start to the acknowledgement of that post, in milliseconds.
    pub first_stream_post_ack_ms: Option<f64>,
    /// How long the first post waited in the queue, in milliseconds.
    pub first_stream_post_queue_wait_ms: Option<f64>,
    /// What the first post waited for: `durable_post`, `ephemeral_post`, `retry_backoff`, `hold` or `none`.
    pub first_stream_post_queued_behind: Option<String>,
    /// When the first post was sent, in milliseconds since 1970.
    pub first_stream_post_wall_ms: Option<f64>,
    /// From the turn's start to the first post of text, in milliseconds.
    pub first_text_post_ms: Option<f64>,
    /// How long the first text waited in the queue, in milliseconds.
    pub first_text_post_queue_wait_ms: Option<f64>,
    /// What the first text waited for; see `first_stream_post_queued_behind`.
    pub first_text_post_queued_behind: Option<String>,
    /// When the first text was posted, in milliseconds since 1970.
    pub first_text_post_wall_ms: Option<f64>,
    /// Posts of text.
    pub text_post_count: Option<f64>,
    /// Gaps of more than half a second between texts.
    pub text_post_gap_over_500ms_count: Option<f64>,
    /// By how much the flush timer was late at most, in milliseconds.
    pub text_post_flush_timer_max_late_ms: Option<f64>,
    /// When the prompt was received, in milliseconds since 1970.
    pub frame_received_wall_ms: Option<f64>,
    /// When the prompt was queued, in milliseconds since 1970.
    pub frame_enqueued_wall_ms: Option<f64>,
    /// How long taking the prompt in took, by phase, in milliseconds.
    pub frame_intake_phases_ms: Option<BTreeMap<String, f64>>,
    /// When the turn began, in milliseconds since 1970.
    pub turn_started_wall_ms: Option<f64>,
    /// How long the start of the turn took, by phase, in milliseconds.
    pub turn_start_phases_ms: Option<BTreeMap<String, f64>>,
    /// How long control requests delayed the start of the turn, in milliseconds.
    pub turn_start_control_requests_ms: Option<f64>,
    /// What was resumed: `orphaned_permission`, `turn_handoff`, `deferred_tool_use` or `none`.
    pub turn_start_resume_kind: Option<String>,
    /// How long taking a handed over turn in took, by phase, in milliseconds.
    pub handoff_intake_phases_ms: Option<BTreeMap<String, f64>>,
    /// When the process began, in milliseconds since 1970.
    pub time_origin_ms: Option<f64>,
    /// Whether a process started in advance was used.
    pub warm_spare_claimed: Option<bool>,
    /// What made the CLI fetch its feature flags.
    pub flag_fetch_kick: Option<String>,
    /// Which turn of the process this is.
    pub process_turn_index: Option<f64>,
    /// Tuning of the process's start.
    pub process_start_tuning: Option<f64>,
    /// Delay of the memory purge at the start, in milliseconds.
    pub process_start_purge_delay_ms: Option<f64>,
    /// Garbage collections of the process.
    pub process_garbage_collections: Option<RawJson>,
    /// Resident memory when the turn began, in MiB.
    pub process_rss_mib_turn_start: Option<f64>,
    /// Anonymous memory when the turn began, in MiB.
    pub process_anon_mib_turn_start: Option<f64>,
    /// Resident memory at the end of the turn, in MiB.
    pub process_rss_mib_result: Option<f64>,
    /// Anonymous memory at the end of the turn, in MiB.
    pub process_anon_mib_result: Option<f64>,
    /// Highest resident memory, in MiB.
    pub process_peak_rss_mib: Option<f64>,
    /// Processor time between the turns, in milliseconds.
    pub process_cpu_ms_between_turns: Option<f64>,
    /// Time between the turns, in milliseconds.
    pub process_wall_ms_between_turns: Option<f64>,
    /// Processor time of the turn, in milliseconds.
    pub process_cpu_ms_turn: Option<f64>,
    /// Time of the turn, in milliseconds.
    pub process_wall_ms_turn: Option<f64>,
    /// Processor time while streaming, in milliseconds.
    pub process_cpu_ms_streaming: Option<f64>,
    /// Time while streaming, in milliseconds.
    pub process_wall_ms_streaming: Option<f64>,
    /// Time by what the turn was doing.
    pub process_turn_states: Option<RawJson>,
    /// Time by thread.
    pub process_turn_threads: Option<RawJson>,
    /// Processor time of the turn's shells, in milliseconds.
    pub shell_cpu_ms_turn: Option<f64>,
    /// Processor time of shells since the result before, in milliseconds.
    pub shell_cpu_ms_since_last_result: Option<f64>,
    /// Time of shells since the result before, in milliseconds.
    pub shell_wall_ms_since_last_result: Option<f64>,
    /// Streams of the main conversation.
    pub main_stream_count: Option<f64>,
    /// How many events these streams had.
    pub main_stream_event_count: Option<f64>,
    /// How many chunks these streams had.
    pub main_stream_chunk_count: Option<f64>,
    /// How often the tool set was built.
    pub tool_pool_build_count: Option<f64>,
    /// How often building the tool set took too long.
    pub tool_pool_build_lapsed_count: Option<f64>,
    /// How often the turn went on without the new tool set.
    pub tool_pool_moved_at_lapse_count: Option<f64>,
    /// How long building the tool set may take, in milliseconds.
    pub tool_pool_limit_ms: Option<f64>,
    /// How long collecting attachments took, in parts.
    pub input_attachments_detail: Option<RawJson>,
    /// What the memory check did.
    pub memory_check_detail: Option<RawJson>,
    /// How long storing a resumed session took, in parts.
    pub resume_store_confirm_detail: Option<RawJson>,
    /// How long building the tool schemas took, in parts.
    pub tool_schema_build_detail: Option<RawJson>,
    /// How long preparing the messages took, in parts.
    pub message_normalization_detail: Option<RawJson>,
    /// How long building the request took, in parts.
    pub request_build_detail: Option<RawJson>,
}

open_enum! {
    /// How a turn ended.
    pub enum ResultSubtype {
        /// The turn ran to the end; the end may be an API error, see `is_error`.
        Success = "success",
        /// The turn was interrupted, refused, or failed.
        ErrorDuringExecution = "error_during_execution",
        /// The limit of turns was reached.
        ErrorMaxTurns = "error_max_turns",
        /// The limit of money was reached.
        ErrorMaxBudgetUsd = "error_max_budget_usd",
        /// The model did not manage the shape asked for.
        ErrorMaxStructuredOutputRetries = "error_max_structured_output_retries",
    }
}

open_enum! {
    /// Why a turn ended.
    pub enum TerminalReason {
        /// The prompt is larger than the context.
        BlockingLimit = "blocking_limit",
        /// The context kept filling up again.
        RapidRefillBreaker = "rapid_refill_breaker",
        /// The API found the prompt too long.
        PromptTooLong = "prompt_too_long",
        /// An image or the request is too large.
        ImageError = "image_error",
        /// The model failed.
        ModelError = "model_error",
        /// The API failed or refused.
        ApiError = "api_error",
        /// The model kept writing broken tool calls.
        MalformedToolUseExhausted = "malformed_tool_use_exhausted",
        /// Interrupted while the model spoke.
        AbortedStreaming = "aborted_streaming",
        /// Interrupted while tools ran.
        AbortedTools = "aborted_tools",
        /// A Stop hook ended the turn.
        StopHookPrevented = "stop_hook_prevented",
        /// Another hook ended the turn.
        HookStopped = "hook_stopped",
        /// A tool call was put off.
        ToolDeferred = "tool_deferred",
        /// The limit of turns.
        MaxTurns = "max_turns",
        /// The turn continued in the background.
        BackgroundRequested = "background_requested",
        /// The model was done.
        Completed = "completed",
        /// The limit of money.
        BudgetExhausted = "budget_exhausted",
        /// The model did not manage the shape asked for.
        StructuredOutputRetryExhausted = "structured_output_retry_exhausted",
        /// A tool call should have been put off and could not.
        ToolDeferredUnavailable = "tool_deferred_unavailable",
        /// The turn could not begin.
        TurnSetupFailed = "turn_setup_failed",
    }
}

open_enum! {
    /// Why the CLI could not start.
    pub enum StartupFailureReason {
        /// The API key is not the required organisation's.
        OrgPinApiKeyConflict = "org_pin_api_key_conflict",
        /// The API provider is not allowed.
        ProviderNotAllowed = "provider_not_allowed",
        /// The organisation could not be checked.
        OrgVerifyFailed = "org_verify_failed",
        /// The login is not the required organisation's.
        OrgPinMismatch = "org_pin_mismatch",
        /// The managed settings are broken.
        ManagedSettingsInvalid = "managed_settings_invalid",
        /// Required remote settings could not be fetched.
        RemoteSettingsRequiredUnavailable = "remote_settings_required_unavailable",
        /// The gateway wants a login.
        GatewaySigninRequired = "gateway_signin_required",
        /// The gateway refuses access.
        GatewayAccessDenied = "gateway_access_denied",
        /// The proxy setting is broken.
        ProxyInvalid = "proxy_invalid",
        /// The temporary directory cannot be used.
        TempDirUnusable = "temp_dir_unusable",
        /// The working directory cannot be used.
        CwdUnavailable = "cwd_unavailable",
        /// There is no shell.
        ShellToolMissing = "shell_tool_missing",
        /// A background process holds the session.
        SessionHeldByBackground = "session_held_by_background",
        /// The session's worktree may not be taken up.
        WorktreeResumeRefused = "worktree_resume_refused",
        /// The session's worktree could not be checked.
        WorktreeUnverified = "worktree_unverified",
        /// This version is not allowed any more.
        CliVersionTooOld = "cli_version_too_old",
        /// Permissions may not be bypassed as root.
        BypassRoot = "bypass_root",
        /// The organisation's required configuration could not be fetched.
        OrgConfigRequiredUnavailable = "org_config_required_unavailable",
        /// The organisation's configuration was refused.
        OrgConfigRefused = "org_config_refused",
        /// A required sandbox is not there.
        SandboxRequiredUnavailable = "sandbox_required_unavailable",
        /// Something was sent before `initialize`.
        InitializeNotFirst = "initialize_not_first",
        /// A configuration file is broken.
        ConfigFileInvalid = "config_file_invalid",
        /// The host did not deliver managed settings.
        ManagedSettingsNotDelivered = "managed_settings_not_delivered",
        /// The host did not deliver fields of `initialize`.
        InitializeFieldsNotDelivered = "initialize_fields_not_delivered",
        /// Flags that load something from outside are not allowed.
        SideloadFlagsDisabled = "sideload_flags_disabled",
    }
}

/// A tool call that was refused.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PermissionDenial {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_use_id: String,
    /// The call's arguments.
    pub tool_input: RawJson,
}

/// A tool call that was put off.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct DeferredToolUse {
    /// The call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The call's arguments.
    pub input: RawJson,
}

/// A configuration file that could not be read.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct InvalidConfigFile {
    /// The file's path.
    pub path: String,
    /// Whether the file is the user's global one.
    pub is_global: bool,
    /// Whether a backup was looked for.
    pub backup_searched: bool,
    /// The backup that was found.
    pub backup_path: Option<String>,
}

/// How a remote runner ended.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RunnerExit {
    /// `setup` or `run`.
    pub phase: String,
    /// The runner's exit code.
    pub exit_code: Option<i64>,
    /// The signal that ended the process.
    pub signal: Option<String>,
}

/// A rewind that was made good again.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RestoredRewind {
    /// The request.
    pub request_id: String,
    /// The last message that was kept.
    pub last_message_uuid: String,
}

/// Subagents since the session began.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SubagentStats {
    /// Started.
    pub spawned: u64,
    /// How the subagents were requested.
    pub requested: SubagentsRequested,
    /// Started in the background.
    pub started_in_background: u64,
    /// Started, by kind.
    #[serde(default)]
    pub by_type: BTreeMap<String, u64>,
    /// How deep the subagents nested.
    pub max_depth: u64,
    /// Started by subagents.
    pub spawned_by_subagents: u64,
    /// Completed.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
    /// Stopped.
    pub killed: SubagentsKilled,
    /// Not started.
    pub refused: SubagentsRefused,
}

/// How subagents were asked for.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SubagentsRequested {
    /// In the background.
    pub background: u64,
    /// In the foreground.
    pub foreground: u64,
    /// Without saying.
    pub unset: u64,
}

/// Who stopped subagents.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SubagentsKilled {
    /// The agent that started the subagents.
    pub parent: u64,
    /// The user.
    pub user: u64,
    /// The CLI.
    pub system: u64,
}

/// Why subagents were not started.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SubagentsRefused {
    /// Nested too deep.
    pub depth_limit: u64,
    /// Too many at once.
    pub concurrency_limit: u64,
    /// No money left.
    pub budget: u64,
}
