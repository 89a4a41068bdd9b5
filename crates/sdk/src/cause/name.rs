//! The list of all causes, with their names.

use super::Cause;

/// Makes [`Cause::name`] and [`Cause::ALL`] of one list. A variant that is missing here does not compile.
macro_rules! causes {
    ($($variant:ident $(($($inner:tt)*))? $({$($field:tt)*})? => $name:literal,)+) => {
        impl Cause {
            /// One cause of each kind, in the order of the declaration. What a variant holds is empty, such as the status of
            /// [`Api`](Self::Api) and the reason of [`TurnFailed`](Self::TurnFailed); a signal is 0.
            ///
            /// For programs that have to know all kinds: to declare their metrics, or to test that each has a text of theirs.
            pub const ALL: &[Self] = &[$(Self::$variant $(($($inner)*))? $({$($field)*})?),+];

            /// The variant in `snake_case`, for logs and metrics: `rate_limit`, `not_logged_in`, `refused`, …
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)+
                }
            }
        }
    };
}

causes! {
    BinaryMissing => "binary_missing",
    NotExecutable => "not_executable",
    WrongPlatform => "wrong_platform",
    BatchFile => "batch_file",
    BeingUpdated => "being_updated",
    CwdMissing => "cwd_missing",
    ArgumentsTooLong => "arguments_too_long",
    SystemLimit => "system_limit",
    NotLoggedIn => "not_logged_in",
    InvalidKey => "invalid_key",
    RootBypass => "root_bypass",
    UnknownOption => "unknown_option",
    InvalidArgument => "invalid_argument",
    NestedSession => "nested_session",
    UnknownSession => "unknown_session",
    SessionInUse => "session_in_use",
    McpConfig => "mcp_config",
    Settings => "settings",
    UnsupportedVersion => "unsupported_version",
    StartupFailed(None) => "startup_failed",
    InputRefused => "input_refused",
    MaxTurns => "max_turns",
    Budget => "budget",
    TooLong => "too_long",
    StructuredOutput => "structured_output",
    NoStructuredOutput => "no_structured_output",
    MaxOutputTokens => "max_output_tokens",
    Refused => "refused",
    RateLimit => "rate_limit",
    Billing => "billing",
    ConnectionFailed => "connection_failed",
    Api { status: None } => "api",
    TurnFailed(String::new()) => "turn_failed",
    EndedByUs => "ended_by_us",
    DeadlinePassed => "deadline_passed",
    OutOfHeap => "out_of_heap",
    OutOfMemory => "out_of_memory",
    Killed => "killed",
    Terminated { signal: 0 } => "terminated",
    Crashed { signal: None } => "crashed",
    Truncated => "truncated",
    Unexplained => "unexplained",
}
