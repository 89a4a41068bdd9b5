//! The flags: their names and their values.

use std::sync::LazyLock;

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
    "--betas",
    "--channels",
    "--debug",
    "--debug-file",
    "--debug-to-stderr",
    "--exclude-dynamic-system-prompt-sections",
    "--file",
    "--from-pr",
    "--include-hook-events",
    "--max-thinking-tokens",
    "--print",
    "--prompt-suggestions",
    "--system-prompt-snapshot",
    "--task-budget",
    "--thinking-display",
    "--workload",
];

/// Every flag as the CLI shows it in complaints. `<x>` is a value, `[x]` one that may be missing, `…` any number.
pub(super) static FLAGS: LazyLock<Vec<&str>> =
    LazyLock::new(|| serde_json::from_str(include_str!("flags.json")).unwrap_or_default());

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
