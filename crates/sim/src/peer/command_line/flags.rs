//! The flags: their names and their values.

/// The value of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    One,
    Perhaps,
    Many,
}

/// Flags that are taken and checked but change nothing, for there is nothing for them to change here: no terminal, no
/// account, no prompt of the CLI's own, no API.
#[cfg(test)]
pub(super) const WITHOUT_EFFECT: &[&str] = &[
    "--append-subagent-system-prompt",
    "--bare",
    "--betas",
    "--channels",
    "--debug",
    "--debug-file",
    "--debug-to-stderr",
    "--exclude-dynamic-system-prompt-sections",
    "--file",
    "--from-pr",
    "--include-hook-events",
    "--initialize-fields",
    "--managed-settings-in-initialize",
    "--max-thinking-tokens",
    "--print",
    "--project-config-root",
    "--prompt-suggestions",
    "--restricted",
    "--safe-mode",
    "--strict-mcp-config",
    "--system-prompt-snapshot",
    "--task-budget",
    "--thinking-display",
    "--workload",
];

/// Every flag as the CLI shows it in complaints. `<x>` is a value, `[x]` one that may be missing, `…` any number.
pub(super) const FLAGS: &[&str] = &[
    "--add-dir <directories...>",
    "--agent <agent>",
    "--agents <json-or-file>",
    "--allow-dangerously-skip-permissions",
    "--allowedTools <tools...>",
    "--allowed-tools <tools...>",
    "--append-system-prompt <prompt>",
    "--append-system-prompt-file <file>",
    "--append-subagent-system-prompt <prompt>",
    "--autocompact <auto|tokens>",
    "--await-claim",
    "--await-initialize",
    "--bare",
    "--betas <betas...>",
    "--channels <channels...>",
    "--continue",
    "-c",
    "--dangerously-skip-permissions",
    "--debug [filter]",
    "-d [filter]",
    "--debug-file <path>",
    "--debug-to-stderr",
    "--disable-slash-commands",
    "--disallowedTools <tools...>",
    "--disallowed-tools <tools...>",
    "--effort <level>",
    "--exclude-dynamic-system-prompt-sections",
    "--fallback-model <model>",
    "--file <specs...>",
    "--fork-session",
    "--forward-subagent-text",
    "--from-pr [value]",
    "--include-hook-events",
    "--include-partial-messages",
    "--initialize-fields <fields>",
    "--input-format <format>",
    "--json-schema <schema>",
    "--managed-settings <json>",
    "--managed-settings-in-initialize",
    "--max-budget-usd <amount>",
    "--max-thinking-tokens <tokens>",
    "--max-turns <turns>",
    "--mcp-config <configs...>",
    "--model <model>",
    "--name <name>",
    "-n <name>",
    "--no-session-persistence",
    "--output-format <format>",
    "--permission-mode <mode>",
    "--permission-prompt-tool <tool>",
    "--permission-prompts <target>",
    "--plugin-dir <path>",
    "--plugin-dir-no-mcp <path>",
    "--plugin-url <url>",
    "--print",
    "-p",
    "--project-config-root <path>",
    "--prompt-suggestions [value]",
    "--replay-user-messages",
    "--restricted",
    "--resume [value]",
    "-r [value]",
    "--resume-drops-turn <uuid>",
    "--resume-session-at <uuid>",
    "--safe-mode",
    "--session-id <uuid>",
    "--session-mirror",
    "--setting-sources <sources>",
    "--settings <file-or-json>",
    "--strict-mcp-config",
    "--system-prompt <prompt>",
    "--system-prompt-file <file>",
    "--system-prompt-snapshot <on|off>",
    "--task-budget <tokens>",
    "--thinking <mode>",
    "--thinking-display <mode>",
    "--tools <tools...>",
    "--verbose",
    "--version",
    "-v",
    "--workload <name>",
    "--worktree [name]",
];

pub(super) const MODES: &str = "acceptEdits, auto, bypassPermissions, manual, dontAsk, plan";

/// A flag without what it takes.
pub(super) fn flag_name(shown: &str) -> &str {
    shown.split_once(' ').map_or(shown, |(name, _)| name)
}

/// The name under which a flag is asked for.
pub(super) fn long_name(shown: &str) -> &str {
    match flag_name(shown) {
        "-c" => "--continue",
        "-d" => "--debug",
        "-n" => "--name",
        "-p" => "--print",
        "-r" => "--resume",
        "-v" => "--version",
        "--allowed-tools" => "--allowedTools",
        "--disallowed-tools" => "--disallowedTools",
        name => name,
    }
}

/// What a flag takes, as it is shown.
pub(super) fn takes(shown: &str) -> Takes {
    match shown.split_once(' ') {
        None => Takes::Nothing,
        Some((_, value)) if value.starts_with('[') => Takes::Perhaps,
        Some((_, value)) if value.ends_with("...>") => Takes::Many,
        Some(_) => Takes::One,
    }
}
