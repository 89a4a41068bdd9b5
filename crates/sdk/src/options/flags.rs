//! Which flags and fields of `initialize` only ever come from an option or from the session itself.

/// The flags that the session depends on.
pub(super) const RESERVED: &[&str] = &[
    "output-format",
    "input-format",
    "verbose",
    "print",
    "help",
    "version",
    "await-initialize",
    "await-claim",
    "initialize-fields",
    "managed-settings-in-initialize",
    "session-mirror",
    "sdk-url",
];

/// The flags that have an option, in either of the spellings that the CLI takes.
pub(super) const OPTIONS: &[&str] = &[
    "add-dir",
    "agent",
    "agents",
    "allow-dangerously-skip-permissions",
    "allowedTools",
    "allowed-tools",
    "append-system-prompt",
    "betas",
    "channels",
    "continue",
    "dangerously-skip-permissions",
    "debug",
    "debug-file",
    "disallowedTools",
    "disallowed-tools",
    "effort",
    "exclude-dynamic-system-prompt-sections",
    "fallback-model",
    "fork-session",
    "forward-subagent-text",
    "include-hook-events",
    "include-partial-messages",
    "json-schema",
    "managed-settings",
    "max-budget-usd",
    "max-thinking-tokens",
    "max-turns",
    "mcp-config",
    "model",
    "no-session-persistence",
    "permission-mode",
    "permission-prompt-tool",
    "permission-prompts",
    "plugin-dir",
    "plugin-dir-no-mcp",
    "project-config-root",
    "prompt-suggestions",
    "resume",
    "resume-drops-turn",
    "resume-session-at",
    "session-id",
    "setting-sources",
    "settings",
    "strict-mcp-config",
    "system-prompt",
    "system-prompt-file",
    "system-prompt-snapshot",
    "task-budget",
    "thinking",
    "thinking-display",
    "tools",
    "workload",
    "worktree",
];

/// Whether this flag only ever comes from an option or from the session itself.
pub(super) fn is_ours(flag: &str) -> bool {
    RESERVED.contains(&flag) || OPTIONS.contains(&flag)
}

/// The fields of `initialize` that the session fills in.
pub(super) const SESSION_FIELDS: &[&str] = &[
    "subtype",
    "hooks",
    "sdkMcpServers",
    "sdkMcpServerConfigs",
    "sdkMcpServerManifests",
    "sdkMcpServerManifestsOrigin",
];
