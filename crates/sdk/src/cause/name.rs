//! The names of the causes.

use super::Cause;

impl Cause {
    /// The variant in `snake_case`, for logs and metrics: `rate_limit`, `not_logged_in`, `refused`, …
    pub fn name(&self) -> &'static str {
        match self {
            Self::BinaryMissing => "binary_missing",
            Self::NotExecutable => "not_executable",
            Self::WrongPlatform => "wrong_platform",
            Self::BatchFile => "batch_file",
            Self::BeingUpdated => "being_updated",
            Self::CwdMissing => "cwd_missing",
            Self::ArgumentsTooLong => "arguments_too_long",
            Self::SystemLimit => "system_limit",
            Self::NotLoggedIn => "not_logged_in",
            Self::InvalidKey => "invalid_key",
            Self::RootBypass => "root_bypass",
            Self::UnknownOption => "unknown_option",
            Self::InvalidArgument => "invalid_argument",
            Self::NestedSession => "nested_session",
            Self::UnknownSession => "unknown_session",
            Self::SessionInUse => "session_in_use",
            Self::McpConfig => "mcp_config",
            Self::Settings => "settings",
            Self::UnsupportedVersion => "unsupported_version",
            Self::StartupFailed(_) => "startup_failed",
            Self::InputRefused => "input_refused",
            Self::MaxTurns => "max_turns",
            Self::Budget => "budget",
            Self::TooLong => "too_long",
            Self::StructuredOutput => "structured_output",
            Self::NoStructuredOutput => "no_structured_output",
            Self::MaxOutputTokens => "max_output_tokens",
            Self::Refused => "refused",
            Self::RateLimit => "rate_limit",
            Self::Billing => "billing",
            Self::ConnectionFailed => "connection_failed",
            Self::Api { .. } => "api",
            Self::TurnFailed(_) => "turn_failed",
            Self::EndedByUs => "ended_by_us",
            Self::OutOfHeap => "out_of_heap",
            Self::OutOfMemory => "out_of_memory",
            Self::Killed => "killed",
            Self::Terminated { .. } => "terminated",
            Self::Crashed { .. } => "crashed",
            Self::Truncated => "truncated",
            Self::Unexplained => "unexplained",
        }
    }
}
