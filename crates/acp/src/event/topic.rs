//! The topics of data for programs. Each has a key below `_meta.claudeCode`.
//!
//! `docs/acp-extensions.md` documents the data of each topic, and when it is sent. The keys are a public interface: they stay, with
//! their meaning.

macro_rules! topics {
    ($($name:ident = $key:literal,)+) => {
        /// The topic of data for programs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Topic {
            $($name,)+
        }

        impl Topic {
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name,)+];

            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $key,)+
                }
            }
        }
    };
}

topics! {
    ActiveGoal = "active_goal",
    AgentsKilled = "agents_killed",
    ApiError = "api_error",
    ApiRetry = "api_retry",
    AttachmentsMissing = "attachments_missing",
    AuthStatus = "auth_status",
    Autocompact = "autocompact",
    AwaySummary = "away_summary",
    BackgroundTasks = "background_tasks",
    CloudSession = "cloud_session",
    CodeChange = "code_change",
    ContextUsage = "context_usage",
    ControlRequestProgress = "control_request_progress",
    ConversationId = "conversationId",
    ConversationReset = "conversation_reset",
    DevIntent = "dev_intent",
    ElicitationComplete = "elicitation_complete",
    Fallback = "fallback",
    FeedbackDraft = "feedback_draft",
    FilesPersisted = "files_persisted",
    HookProgress = "hook_progress",
    HookResponse = "hook_response",
    HookStarted = "hook_started",
    IdleCompaction = "idle_compaction",
    Informational = "informational",
    InheritedAsksSettled = "inherited_asks_settled",
    InstructionSize = "instruction_size",
    LateAllowNotRun = "late_allow_not_run",
    McpServer = "mcp_server",
    McpServerError = "mcp_server_error",
    MemorySaved = "memory_saved",
    MirrorError = "mirror_error",
    MirrorLag = "mirror_lag",
    Misfit = "misfit",
    ModelConsentFallback = "model_consent_fallback",
    ModelFallback = "model_fallback",
    ModelRefusalFallback = "model_refusal_fallback",
    ModelRefusalNoFallback = "model_refusal_no_fallback",
    Notification = "notification",
    PeerMessageHold = "peer_message_hold",
    PerTurnEffort = "per_turn_effort",
    PermissionCheckStatus = "permission_check_status",
    PermissionDenied = "permission_denied",
    PermissionRetry = "permission_retry",
    PluginError = "plugin_error",
    PluginInstall = "plugin_install",
    PluginLog = "plugin_log",
    PluginNotice = "plugin_notice",
    PluginStatus = "plugin_status",
    PluginWarning = "plugin_warning",
    PostTurnSummary = "post_turn_summary",
    PromptSuggestion = "prompt_suggestion",
    RateLimit = "rate_limit",
    ScheduledTaskFire = "scheduled_task_fire",
    SessionMetadata = "session_metadata",
    SessionWritesLost = "session_writes_lost",
    ShellCwd = "shell_cwd",
    StopHookSummary = "stop_hook_summary",
    StructuredOutput = "structured_output",
    SubagentRetry = "subagent_retry",
    TaskEnded = "task_ended",
    TaskProgress = "task_progress",
    TaskStarted = "task_started",
    TaskSummary = "task_summary",
    ThinkingTokens = "thinking_tokens",
    ToolUseSummary = "tool_use_summary",
    TurnDuration = "turn_duration",
    TurnHandoffAvailable = "turn_handoff_available",
    TurnPreempted = "turn_preempted",
    Unknown = "unknown",
    UsageReport = "usage_report",
    VcsState = "vcs_state",
}

impl std::fmt::Display for Topic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
